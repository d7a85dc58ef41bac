// SPDX-License-Identifier: Apache-2.0
//! Where the nodes of a grid or graph go: nodes that are next to each other onto processes that are.
//!
//! Every process computes the same answer from the place table, without a message. The cost of an order is the weight
//! of edges that cross sites, then of those that cross machines, then of those that cross nodes. Several orders are
//! tried and improved by exchanging pairs; the given one is among them, so the answer is never worse.

use crate::comm::{Comm, joined};
use crate::create::RESOURCES;
use crate::world::World;

/// Levels that an edge can cross.
const LEVELS: usize = RESOURCES.len();

/// Weights of the edges that cross sites, machines, nodes and no node, outermost first.
type Cost = [u64; LEVELS];

/// Neighbours of each node with the weights of the edges.
type Adjacency = [Vec<(u32, u32)>];

/// Above this many nodes exchanging pairs would take too long: it looks at all pairs.
const EXCHANGE_LIMIT: usize = 512;

/// Which rank of the communicator each node should be.
pub(super) fn order(world: &World, comm: &Comm, adjacency: &Adjacency) -> Vec<u32> {
    let (topology, places) = joined::places(world, comm, comm.group());
    let uses = |&place: &u32| topology.clusters_of(place);
    best(&places.iter().map(uses).collect::<Vec<_>>(), adjacency)
}

/// As [`order`], for processes that use these resources.
fn best(places: &[[u32; LEVELS]], adjacency: &Adjacency) -> Vec<u32> {
    let given: Vec<u32> = (0..adjacency.len() as u32).collect();
    let mut problem = Problem {
        places,
        neighbours: both_ways(adjacency),
        order: given,
    };
    let mut cost = problem.cost();
    if cost == Cost::default() {
        return problem.order;
    }
    problem.exchange(&mut cost);
    let (mut least, mut chosen) = (cost, problem.order.clone());
    for candidate in [problem.grown(), problem.stripes()] {
        problem.order = candidate;
        let mut cost = problem.cost();
        problem.exchange(&mut cost);
        if cost < least {
            (least, chosen) = (cost, problem.order.clone());
        }
    }
    chosen
}

/// Every edge in the lists of both its nodes.
fn both_ways(adjacency: &Adjacency) -> Vec<Vec<(u32, u32)>> {
    let mut both = vec![Vec::new(); adjacency.len()];
    for (from, around) in adjacency.iter().enumerate() {
        for &(to, weight) in around.iter().filter(|(to, _)| *to as usize != from) {
            both[from].push((to, weight));
            both[to as usize].push((from as u32, weight));
        }
    }
    both
}

struct Problem<'a> {
    places: &'a [[u32; LEVELS]],
    neighbours: Vec<Vec<(u32, u32)>>,
    /// Process of each node.
    order: Vec<u32>,
}

impl Problem<'_> {
    /// Adds what the edges of a node cost.
    fn add(&self, node: u32, cost: &mut Cost) {
        let own = &self.places[self.order[node as usize] as usize];
        for &(other, weight) in &self.neighbours[node as usize] {
            let theirs = &self.places[self.order[other as usize] as usize];
            if let Some(level) = (0..LEVELS).find(|&l| own[l] != theirs[l]) {
                cost[level] += u64::from(weight);
            }
        }
    }

    fn cost(&self) -> Cost {
        let mut cost = Cost::default();
        (0..self.order.len() as u32).for_each(|node| self.add(node, &mut cost));
        cost.map(|c| c / 2)
    }

    /// Exchanges pairs of nodes as long as that helps.
    fn exchange(&mut self, cost: &mut Cost) {
        let nodes = self.order.len();
        if nodes > EXCHANGE_LIMIT {
            return;
        }
        let mut improved = true;
        while improved {
            improved = false;
            for a in 0..nodes {
                for b in a + 1..nodes {
                    improved |= self.try_exchange(a, b);
                }
            }
        }
        *cost = self.cost();
    }

    fn try_exchange(&mut self, a: usize, b: usize) -> bool {
        let place = |node: usize| self.places[self.order[node] as usize];
        if place(a) == place(b) {
            return false;
        }
        let around = |problem: &Self| {
            let mut cost = Cost::default();
            problem.add(a as u32, &mut cost);
            problem.add(b as u32, &mut cost);
            cost
        };
        let before = around(self);
        self.order.swap(a, b);
        if around(self) < before {
            return true;
        }
        self.order.swap(a, b);
        false
    }

    /// The processes that nodes go to, those of a place one behind the other, places in the order of their first
    /// process.
    fn line(&self) -> Vec<u32> {
        let used = &self.places[..self.order.len()];
        let first = |place: &[u32], level: usize| used.iter().position(|p| p[..=level] == place[..=level]);
        let mut line: Vec<u32> = (0..used.len() as u32).collect();
        let keys: Vec<[usize; LEVELS]> = used
            .iter()
            .map(|place| std::array::from_fn(|level| first(place, level).unwrap_or(0)))
            .collect();
        line.sort_by_key(|&rank| keys[rank as usize]);
        line
    }

    /// The nodes as they are numbered, onto the line of processes: cuts a grid across its first dimension.
    fn stripes(&self) -> Vec<u32> {
        self.line()
    }

    /// Nodes one after the other, each time the one with the heaviest edges to those of the place that is being filled,
    /// onto the line of processes.
    fn grown(&self) -> Vec<u32> {
        let line = self.line();
        let nodes = self.order.len();
        let mut order = vec![u32::MAX; nodes];
        // Weight of the edges to nodes on the same site, machine, node as the next process, and, negative, to free
        // nodes.
        let mut pull = vec![([0i64; LEVELS], 0i64); nodes];
        for (node, around) in self.neighbours.iter().enumerate() {
            pull[node].1 = -around.iter().map(|(_, w)| i64::from(*w)).sum::<i64>();
        }
        let mut before: Option<[u32; LEVELS]> = None;
        for &process in &line {
            let place = self.places[process as usize];
            if let Some(level) = before.and_then(|b| (0..LEVELS).find(|&l| b[l] != place[l])) {
                pull.iter_mut().for_each(|(p, _)| p[level..].fill(0));
            }
            before = Some(place);
            let free = (0..nodes).filter(|&n| order[n] == u32::MAX);
            // The first of the best: `max_by_key` would give the last.
            let Some(node) = free.rev().max_by_key(|&n| pull[n]) else {
                break;
            };
            order[node] = process;
            for &(other, weight) in &self.neighbours[node] {
                let (near, free) = &mut pull[other as usize];
                near.iter_mut().for_each(|p| *p += i64::from(weight));
                *free += i64::from(weight);
            }
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A grid of these dimensions, open at the borders.
    fn grid(rows: u32, columns: u32) -> Vec<Vec<(u32, u32)>> {
        let node = |r: u32, c: u32| r * columns + c;
        let around = |at: u32| {
            let (r, c) = (at / columns, at % columns);
            let mut around = Vec::new();
            if r + 1 < rows {
                around.push((node(r + 1, c), 1));
            }
            if c + 1 < columns {
                around.push((node(r, c + 1), 1));
            }
            around
        };
        (0..rows * columns).map(around).collect()
    }

    fn cost(places: &[[u32; LEVELS]], adjacency: &Adjacency, order: Vec<u32>) -> Cost {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(
            sorted.iter().enumerate().all(|(i, &r)| i as u32 == r),
            "a permutation: {order:?}"
        );
        Problem {
            places,
            neighbours: both_ways(adjacency),
            order,
        }
        .cost()
    }

    fn compare(places: &[[u32; LEVELS]], adjacency: &Adjacency) -> (Cost, Cost) {
        let given = (0..adjacency.len() as u32).collect();
        (
            cost(places, adjacency, given),
            cost(places, adjacency, best(places, adjacency)),
        )
    }

    #[test]
    fn alternating_sites_are_sorted_out() {
        let places: Vec<_> = (0..16).map(|r| [r % 2, r % 2, r % 4]).collect();
        let (before, after) = compare(&places, &grid(4, 4));
        assert_eq!(before[0], 12, "every edge along a row");
        assert_eq!(after[0], 4, "a cut through the middle");
        assert!(after[2] <= 6, "{after:?}");
    }

    #[test]
    fn a_long_grid_is_cut_across_its_length() {
        let places: Vec<_> = (0..32).map(|r| [r / 16, r / 16, r / 4]).collect();
        let (before, after) = compare(&places, &grid(2, 16));
        assert_eq!((before[0], after[0]), (16, 2));
    }

    #[test]
    fn it_is_never_worse_and_stays_as_it_is_on_one_node() {
        for sites in 1..5u32 {
            for (rows, columns) in [(1, 12), (3, 4), (6, 6), (5, 7)] {
                let places: Vec<_> = (0..rows * columns)
                    .map(|r| [r * 7 % sites, r * 7 % sites, r % (2 * sites)])
                    .collect();
                let (before, after) = compare(&places, &grid(rows, columns));
                assert!(
                    after <= before,
                    "{sites} sites, {rows} x {columns}: {before:?} {after:?}"
                );
            }
        }
        let same = vec![[0, 0, 0]; 12];
        assert_eq!(best(&same, &grid(3, 4)), (0..12).collect::<Vec<_>>());
    }
}
