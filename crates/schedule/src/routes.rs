// SPDX-License-Identifier: Apache-2.0
//! The quickest trees between sites whose links are unlike.
//!
//! Latencies between sites do not obey the triangle inequality: with round trips of 20, 40 and 75 ms the way through
//! the middle site takes 30 ms where the direct one takes 37.5. A tree by latency still has one message per site.
//!
//! Where everybody gets the same, everybody's item takes its quickest [`Ways`]. Where messages are put together or cut,
//! subtrees must be intervals of members ([`form`](crate::form)). Among those trees the quickest is found by dynamic
//! programming: a member x that has something for an interval cuts it, on either side of itself, into parts with a
//! first member each. What such [`Routes`] reach depends on the order of the members, so where order does not matter
//! they are [arranged](arrangement) as if they stood along a line.

use isthmus_topology::Link;
use std::ops::Range;

/// A part of an interval and the member it is handed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handoff {
    pub(crate) first: u32,
    pub(crate) members: Range<u32>,
}

impl Handoff {
    pub(crate) fn of(members: Range<u32>) -> Self {
        Self {
            first: members.start,
            members,
        }
    }
}

/// One way between each two members of the outermost council, for a short message with what handing it on costs.
#[derive(Clone, Debug)]
pub(crate) struct Latency {
    members: u32,
    /// Nanoseconds, by sender and receiver.
    times: Vec<u64>,
}

impl Latency {
    /// Most members: the tables grow with the cube, the work with the fifth power.
    const MOST: u32 = 12;

    /// Of so many members; `None` if they are many. `link`: between two of them.
    pub(crate) fn among<'a>(members: u32, link: impl Fn(u32, u32) -> &'a Link) -> Option<Self> {
        if !(3..=Self::MOST).contains(&members) {
            return None;
        }
        let cost = |(a, b)| match a == b {
            true => 0,
            false => {
                let link = link(a, b);
                link.latency + link.send.at(0) + link.receive.at(0)
            }
        };
        let pairs = (0..members).flat_map(|a| (0..members).map(move |b| (a, b)));
        Some(Self {
            members,
            times: pairs.map(cost).collect(),
        })
    }

    fn at(&self, a: u32, b: u32) -> u64 {
        self.times[(a * self.members + b) as usize]
    }

    /// The same with the members in another order.
    fn arranged(&self, order: &[u32]) -> Self {
        let pairs = order.iter().flat_map(|&a| order.iter().map(move |&b| (a, b)));
        Self {
            members: self.members,
            times: pairs.map(|(a, b)| self.at(a, b)).collect(),
        }
    }
}

/// The quickest ways from each member of the outermost council to each other, where some lead through others.
#[derive(Debug)]
pub(crate) struct Ways {
    members: u32,
    /// By first and last member of a way: the member before the last.
    before: Vec<u32>,
}

impl Ways {
    /// The ways between these; `None` if all are direct.
    pub(crate) fn new(latency: &Latency) -> Option<Self> {
        let ways = Self::of(latency);
        let pairs = |from| (0..latency.members).map(move |to| (from, to));
        let direct = (0..latency.members)
            .flat_map(pairs)
            .all(|(from, to)| ways.before(from, to) == from);
        (!direct).then_some(ways)
    }

    fn of(latency: &Latency) -> Self {
        let trees = (0..latency.members).flat_map(|root| quickest(latency, root));
        Self {
            members: latency.members,
            before: trees.map(|(_, before)| before).collect(),
        }
    }

    /// The ways around a ring of all members, given in its order.
    pub(crate) fn around(order: &[u32]) -> Self {
        let members = order.len() as u32;
        let mut previous = vec![0; order.len()];
        for (&member, &next) in order.iter().zip(order.iter().cycle().skip(1)) {
            previous[next as usize] = member;
        }
        let before = (0..members).flat_map(|from| {
            let own = |to: u32| if to == from { from } else { previous[to as usize] };
            (0..members).map(own).collect::<Vec<_>>()
        });
        Self {
            members,
            before: before.collect(),
        }
    }

    /// The member that hands the item of `from` to `to`.
    pub(crate) fn before(&self, from: u32, to: u32) -> u32 {
        self.before[(from * self.members + to) as usize]
    }

    /// Whether the way from `from` to `to` leads through `by` or ends there.
    pub(crate) fn passes(&self, from: u32, by: u32, mut to: u32) -> bool {
        while to != by && to != from {
            to = self.before(from, to);
        }
        to == by
    }

    /// The member to whom `by` hands the item of `from` that is for `to`, on whose way it is.
    pub(crate) fn next(&self, from: u32, by: u32, mut to: u32) -> u32 {
        while self.before(from, to) != by {
            to = self.before(from, to);
        }
        to
    }

    /// The members to whom `by` hands the item of `from`, in order of their distance in the circle of members.
    pub(crate) fn after(&self, from: u32, by: u32) -> impl Iterator<Item = u32> + '_ {
        let k = self.members;
        (1..k)
            .map(move |d| (by + d) % k)
            .filter(move |&to| to != from && self.before(from, to) == by)
    }
}

/// When each member can have what the root has, and from whom. Equally quick ways have the fewest members between.
fn quickest(latency: &Latency, root: u32) -> Vec<(u64, u32)> {
    let mut best: Vec<(u64, u32)> = (0..latency.members).map(|to| (latency.at(root, to), root)).collect();
    let mut open: Vec<u32> = (0..latency.members).filter(|&i| i != root).collect();
    while let Some(next) = (0..open.len()).min_by_key(|&i| best[open[i] as usize].0) {
        let by = open.swap_remove(next);
        for &to in &open {
            let time = best[by as usize].0.saturating_add(latency.at(by, to));
            // No measurement of links is better than that.
            if time.saturating_add(latency.at(root, to) / 32) < best[to as usize].0 {
                best[to as usize] = (time, by);
            }
        }
    }
    best
}

/// Most members that are arranged: each order that is tried takes the tables of its routes.
const ARRANGED: u32 = 8;

/// The order of the parts of the outermost tier in which routes are quickest, if it is another than theirs. The same on
/// all members.
pub(crate) fn arrangement(latency: &Latency) -> Option<Vec<u32>> {
    if latency.members > ARRANGED {
        return None;
    }
    let all = 0..latency.members;
    let least: u64 = all
        .clone()
        .map(|root| quickest(latency, root).iter().map(|b| b.0).max().unwrap_or(0))
        .sum();
    let reach = |order: &[u32]| {
        let routes = Routes::of(&latency.arranged(order));
        all.clone().map(|root| routes.reach(root)).sum::<u64>()
    };
    let natural: Vec<u32> = all.clone().collect();
    let (mut best, mut order) = (reach(&natural), natural.clone());
    let enough = best - best / 32;
    while best > least {
        let tried = neighbours(&order).map(|order| (reach(&order), order));
        match tried.min_by_key(|t| t.0) {
            Some((time, better)) if time < best => (best, order) = (time, better),
            _ => break,
        }
    }
    (best < enough && order != natural).then_some(order)
}

/// The orders in which one member stands elsewhere, or a stretch of members is turned round.
pub(crate) fn neighbours(order: &[u32]) -> impl Iterator<Item = Vec<u32>> + '_ {
    let k = order.len();
    let pairs = (0..k).flat_map(move |a| (0..k).map(move |b| (a, b)));
    pairs.filter(|(a, b)| a != b).map(|(a, b)| {
        let mut other = order.to_vec();
        if a < b {
            other[a..=b].reverse();
        } else {
            let member = other.remove(a);
            other.insert(b, member);
        }
        other
    })
}

/// The quickest trees among the members of one council, for every root.
#[derive(Debug)]
pub(crate) struct Routes {
    latency: Latency,
    /// For each root and interval beside it or around it: when its last member has it, and the first cut.
    best: Vec<Cut>,
}

/// What a member does in the tree of one root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stand {
    /// From whom it has what it hands on; none at the root.
    pub(crate) parent: Option<u32>,
    /// The members that it acts for, itself among them.
    pub(crate) members: Range<u32>,
    /// To whom it hands parts, and for whom. Read backwards, each part is adjacent to the member with those before it.
    pub(crate) parts: Vec<Handoff>,
}

/// How `root` serves an interval that it is next to or in.
#[derive(Clone, Copy, Debug, Default)]
struct Cut {
    /// Nanoseconds until the last member has the message.
    time: u64,
    /// The far part: its beginning or end, and its first member. Unused for empty intervals.
    at: u32,
    first: u32,
}

impl Routes {
    /// The trees among these.
    pub(crate) fn of(latency: &Latency) -> Self {
        let members = latency.members;
        let mut routes = Self {
            latency: latency.clone(),
            best: vec![Cut::default(); members as usize * (members as usize + 1).pow(2)],
        };
        for length in 1..members {
            for start in 0..=members - length {
                routes.serve(start..start + length);
            }
        }
        routes
    }

    /// Finds how the neighbours of an interval on its left and right serve it.
    fn serve(&mut self, interval: Range<u32>) {
        for root in 0..self.latency.members {
            if !interval.contains(&root) {
                let cut = self.cheapest(&interval, root);
                let place = self.place(&interval, root);
                self.best[place] = cut;
            }
        }
    }

    /// The part that is farthest from the root goes first, the rest is served in its own best way.
    fn cheapest(&self, interval: &Range<u32>, root: u32) -> Cut {
        let right = root < interval.start;
        let mut best = Cut {
            time: u64::MAX,
            ..Cut::default()
        };
        let (low, high) = if right {
            (interval.start, interval.end - 1)
        } else {
            (interval.start + 1, interval.end)
        };
        for at in low..=high {
            let (part, rest) = match right {
                true => (at..interval.end, interval.start..at),
                false => (interval.start..at, at..interval.end),
            };
            let rest = self.time(&rest, root);
            for first in part.clone() {
                let time = rest.max(self.latency.at(root, first) + self.through(&part, first));
                if time < best.time {
                    best = Cut { time, at, first };
                }
            }
        }
        best
    }

    /// Until all of an interval have what a member of it has.
    fn through(&self, interval: &Range<u32>, first: u32) -> u64 {
        let (left, right) = (interval.start..first, first + 1..interval.end);
        self.time(&left, first).max(self.time(&right, first))
    }

    fn time(&self, interval: &Range<u32>, root: u32) -> u64 {
        match interval.is_empty() {
            true => 0,
            false => self.best[self.place(interval, root)].time,
        }
    }

    fn place(&self, interval: &Range<u32>, root: u32) -> usize {
        let n = self.latency.members as usize + 1;
        (root as usize * n + interval.start as usize) * n + interval.end as usize
    }

    /// Until the last member has what the root has, nanoseconds.
    fn reach(&self, root: u32) -> u64 {
        self.through(&(0..self.latency.members), root)
    }

    /// What a member does in the tree of a root.
    pub(crate) fn stand(&self, root: u32, me: u32) -> Stand {
        let (mut members, mut first, mut parent) = (0..self.latency.members, root, None);
        loop {
            let mut parts = Vec::new();
            self.split(&members, first, &mut parts);
            if first == me {
                return Stand { parent, members, parts };
            }
            let Some(part) = parts.into_iter().find(|part| part.members.contains(&me)) else {
                unreachable!("parts and their root are all members")
            };
            (members, parent, first) = (part.members, Some(first), part.first);
        }
    }

    /// The same trees as ways.
    pub(crate) fn ways(&self) -> Ways {
        let pairs = (0..self.latency.members).flat_map(|root| (0..self.latency.members).map(move |to| (root, to)));
        Ways {
            members: self.latency.members,
            before: pairs
                .map(|(root, to)| self.stand(root, to).parent.unwrap_or(root))
                .collect(),
        }
    }

    /// The parts that `root` hands on: far ones first on either side.
    pub(crate) fn split(&self, interval: &Range<u32>, root: u32, parts: &mut Vec<Handoff>) {
        for mut side in [root + 1..interval.end, interval.start..root] {
            while !side.is_empty() {
                let cut = self.best[self.place(&side, root)];
                let (part, rest) = match root < side.start {
                    true => (cut.at..side.end, side.start..cut.at),
                    false => (side.start..cut.at, cut.at..side.end),
                };
                parts.push(Handoff {
                    first: cut.first,
                    members: part,
                });
                side = rest;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Network;

    /// 10, 20 and 37.5 ms.
    const THREE: [[u64; 3]; 3] = [[0, 10, 37], [10, 0, 20], [37, 20, 0]];

    fn three(order: [usize; 3]) -> Latency {
        let times = order.iter().flat_map(|&a| order.iter().map(move |&b| THREE[a][b]));
        Latency {
            members: 3,
            times: times.collect(),
        }
    }

    fn reach(latency: &Latency) -> Vec<u64> {
        let routes = Routes::of(latency);
        (0..latency.members).map(|root| routes.reach(root)).collect()
    }

    #[test]
    fn a_quick_way_through_another_site_is_taken() {
        for order in [[0, 1, 2], [2, 1, 0]] {
            assert_eq!(reach(&three(order)), [30, 20, 30], "sites {order:?}");
        }
        // Where the middle site is not between the others, what goes through it is no interval.
        assert_eq!(reach(&three([1, 0, 2])), [20, 37, 30]);
    }

    #[test]
    fn ways_need_no_intervals() {
        let ways = Ways::of(&three([1, 0, 2]));
        assert_eq!((ways.before(1, 2), ways.before(2, 1), ways.before(0, 1)), (0, 0, 0));
        assert_eq!(ways.after(1, 0).collect::<Vec<_>>(), [2]);
        assert_eq!(ways.after(0, 0).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(ways.after(1, 2).count(), 0);
    }

    fn network(order: [usize; 3]) -> std::sync::Arc<Network> {
        use isthmus_topology::{Level, Link, Links, Shape};
        let mut links = Links::default();
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            links.set_pair(
                a,
                b,
                Link::simple(
                    THREE[order[a as usize]][order[b as usize]] * 1_000_000,
                    12_500_000,
                    10_000,
                ),
            );
        }
        let shape = Shape::from_colours(&[Level::WideArea, Level::Node], 6, |rank, _| rank / 2);
        Network::of_shape(
            &std::sync::Arc::new(shape),
            std::sync::Arc::new(links),
            std::sync::Arc::default(),
        )
    }

    #[test]
    fn the_middle_site_is_put_between_the_others() {
        assert_eq!(network([0, 1, 2]).latency().and_then(|l| arrangement(&l)), None);
        for order in [[1, 0, 2], [1, 2, 0], [0, 2, 1], [2, 0, 1]] {
            let arranged = network(order)
                .latency()
                .and_then(|l| arrangement(&l))
                .expect("an order");
            assert_eq!(order[arranged[1] as usize], 1, "sites {order:?} as {arranged:?}");
        }
    }

    #[test]
    fn sites_along_a_line_are_found_in_any_order() {
        let order = [3u32, 0, 5, 1, 4, 2];
        let times = order
            .iter()
            .flat_map(|&a| order.iter().map(move |&b| u64::from(a.abs_diff(b)).pow(2)));
        let latency = Latency {
            members: 6,
            times: times.collect(),
        };
        let line = latency.arranged(&[1, 3, 5, 0, 4, 2]);
        assert_eq!(reach(&line), [5, 4, 3, 3, 4, 5]);
        let mut order: Vec<u32> = (0..6).collect();
        let sum = |order: &[u32]| reach(&latency.arranged(order)).iter().sum::<u64>();
        while let Some(better) = neighbours(&order)
            .min_by_key(|o| sum(o))
            .filter(|o| sum(o) < sum(&order))
        {
            order = better;
        }
        assert_eq!(sum(&order), 24);
    }

    #[test]
    fn parts_are_intervals_that_cover_all_others_once() {
        let times = (0..49u64).map(|i| 1 + (i % 7).abs_diff(i / 7) * (i % 5 + 1)).collect();
        let routes = Routes::of(&Latency { members: 7, times });
        for root in 0..7 {
            let (mut open, mut seen) = (vec![(0..7, root)], vec![root]);
            while let Some((interval, root)) = open.pop() {
                let mut parts = Vec::new();
                routes.split(&interval, root, &mut parts);
                for part in parts {
                    assert!(part.members.contains(&part.first) && !part.members.contains(&root));
                    seen.push(part.first);
                    open.push((part.members, part.first));
                }
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..7).collect::<Vec<_>>(), "root {root}");
        }
    }
}
