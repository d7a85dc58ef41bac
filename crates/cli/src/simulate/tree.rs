// SPDX-License-Identifier: Apache-2.0
//! Who sends to whom, as a drawing: rings around the root, of processes or, where those are too many, of sites.

use super::Simulated;
use super::svg::{Canvas, colour};
use isthmus_schedule::simulate::Kind;
use isthmus_topology::Level;
use std::collections::{BTreeMap, VecDeque};
use std::f64::consts::TAU;

/// Most processes that are drawn one by one.
const PROCESSES: usize = 512;
/// Most nodes whose names are written.
const NAMED: usize = 120;
const SIZE: f64 = 1000.0;
const HEAD: f64 = 70.0;

/// Nodes, the edges between them with messages, and where the tree begins.
struct Graph {
    names: Vec<String>,
    edges: BTreeMap<(usize, usize), (Level, u64)>,
    root: usize,
}

/// Where a node is.
#[derive(Clone, Copy, Default)]
struct Spot {
    angle: f64,
    ring: usize,
}

/// The drawing, one SVG document.
pub(super) fn draw(all: &Simulated) -> String {
    let by_process = all.outcome.finished.len() <= PROCESSES && !all.outcome.records_dropped;
    let graph = if by_process { processes(all) } else { sites(all) };
    let parents = graph.parents();
    let (spots, rings) = graph.spots(&parents);
    let what = if by_process { "processes" } else { "sites" };
    let title = format!(
        "{} of {}: who sends to whom, {} {what}",
        all.asked.name,
        all.asked.size,
        graph.names.len()
    );
    let mut canvas = Canvas::new(&title, SIZE, SIZE + HEAD);
    canvas.levels();
    let place = |node: usize| {
        let radius = (SIZE / 2.0 - 60.0) * spots[node].ring as f64 / rings.max(1) as f64;
        let (sin, cos) = spots[node].angle.sin_cos();
        (SIZE / 2.0 + radius * cos, HEAD + SIZE / 2.0 + radius * sin)
    };
    // What is not of the tree lies behind it.
    for is_tree in [false, true] {
        for (&(from, to), &(level, messages)) in &graph.edges {
            let of_tree = parents[to] == Some(from) || parents[from] == Some(to);
            if of_tree == is_tree {
                let told = format!(
                    "{} to {}: {messages} messages, {level}",
                    graph.names[from], graph.names[to]
                );
                canvas.edge(place(from), place(to), colour(level), of_tree, &told);
            }
        }
    }
    let few = graph.names.len() <= NAMED;
    for (node, name) in graph.names.iter().enumerate() {
        canvas.dot(place(node), node == graph.root, few, name);
    }
    canvas.finish()
}

fn add(edges: &mut BTreeMap<(usize, usize), (Level, u64)>, from: usize, to: usize, level: Level, messages: u64) {
    edges.entry((from, to)).or_insert((level, 0)).1 += messages;
}

fn processes(all: &Simulated) -> Graph {
    let mut edges = BTreeMap::new();
    for record in all.outcome.records.iter().filter(|r| r.kind == Kind::Link) {
        add(&mut edges, record.rank as usize, record.peer as usize, record.level, 1);
    }
    Graph {
        names: (0..all.outcome.finished.len()).map(|rank| rank.to_string()).collect(),
        edges,
        root: all.asked.call.root as usize,
    }
}

fn sites(all: &Simulated) -> Graph {
    let mut edges = BTreeMap::new();
    for link in all.outcome.links.iter().filter(|l| l.level == Level::WideArea) {
        add(
            &mut edges,
            link.from as usize,
            link.to as usize,
            link.level,
            link.messages,
        );
    }
    Graph {
        names: all.grid.sites.clone(),
        edges,
        root: all.grid.topology.clusters_of(all.asked.call.root)[0] as usize,
    }
}

impl Graph {
    /// The parent of each node on a shortest way from the root, by edges of either direction.
    fn parents(&self) -> Vec<Option<usize>> {
        let mut near = vec![Vec::new(); self.names.len()];
        for &(from, to) in self.edges.keys() {
            near[from].push(to);
            near[to].push(from);
        }
        let (mut parents, mut seen) = (vec![None; self.names.len()], vec![false; self.names.len()]);
        let mut queue = VecDeque::from([self.root]);
        seen[self.root] = true;
        while let Some(node) = queue.pop_front() {
            for &next in &near[node] {
                if !seen[next] {
                    (seen[next], parents[next]) = (true, Some(node));
                    queue.push_back(next);
                }
            }
        }
        parents
    }

    /// Every subtree has an angle in proportion to its leaves. Nodes that nobody sends to stand on the outermost ring.
    fn spots(&self, parents: &[Option<usize>]) -> (Vec<Spot>, usize) {
        let mut children = vec![Vec::new(); self.names.len()];
        for (node, parent) in parents.iter().enumerate() {
            match parent {
                Some(parent) => children[*parent].push(node),
                None if node != self.root => children[self.root].push(node),
                None => {}
            }
        }
        let mut order = vec![self.root];
        let mut at = 0;
        while at < order.len() {
            order.extend_from_slice(&children[order[at]]);
            at += 1;
        }
        let mut leaves = vec![0usize; self.names.len()];
        for &node in order.iter().rev() {
            leaves[node] = children[node].iter().map(|&c| leaves[c]).sum::<usize>().max(1);
        }
        let (mut spots, mut begins) = (vec![Spot::default(); self.names.len()], vec![0.0; self.names.len()]);
        let whole = TAU / leaves[self.root].max(1) as f64;
        let mut rings = 0;
        for &node in &order {
            let mut begin = begins[node];
            for &child in &children[node] {
                let angle = whole * leaves[child] as f64;
                begins[child] = begin;
                spots[child] = Spot {
                    angle: begin + angle / 2.0,
                    ring: spots[node].ring + 1,
                };
                rings = rings.max(spots[child].ring);
                begin += angle;
            }
        }
        (spots, rings)
    }
}
