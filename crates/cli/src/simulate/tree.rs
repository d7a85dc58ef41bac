// SPDX-License-Identifier: Apache-2.0
//! Who sends to whom, as a drawing: sites and machines are boxes, processes stand in them, messages are arrows. Of too
//! many processes, sites only.

use super::simulated::Simulated;
use super::svg::{Canvas, colour};
use isthmus_simulate::Kind;
use isthmus_topology::Level;
use std::collections::BTreeMap;

/// Most processes that are drawn one by one.
const PROCESSES: usize = 512;
/// Places in a row: of processes of a node, of machines of a site.
const RANKS: usize = 8;
const MACHINES: usize = 4;
/// Room of a process, and of a site without its processes.
const RANK: (f64, f64) = (52.0, 40.0);
const SITE: (f64, f64) = (170.0, 110.0);
/// From a box to what is in it, room for its name, and from box to box.
const EDGE: f64 = 12.0;
const NAME: f64 = 18.0;
const APART: f64 = 70.0;
const HEAD: f64 = 90.0;

type Point = (f64, f64);

/// What messages between two nodes were.
#[derive(Clone, Copy, Default)]
struct Passed {
    messages: u64,
    bytes: u64,
}

/// Dots and the arrows between them.
struct Graph {
    names: Vec<String>,
    arrows: BTreeMap<(usize, usize), (Level, Passed)>,
    /// Who meets whom in shared memory, without messages: each with one of its node that has some.
    met: Vec<(usize, usize)>,
    root: usize,
}

/// Where everything is.
#[derive(Default)]
struct Layout {
    /// Corner, size, name, and whether it is a site's.
    boxes: Vec<(Point, Point, String, bool)>,
    dots: BTreeMap<usize, Point>,
    size: Point,
}

/// The drawing, one SVG document.
pub(super) fn draw(all: &Simulated) -> String {
    let by_process = all.outcome.finished.len() <= PROCESSES && !all.outcome.records_dropped;
    let (graph, layout) = match by_process {
        true => (processes(all), layout(all)),
        false => (sites(all), row_of_sites(all.grid.sites.len())),
    };
    let what = if by_process { "processes" } else { "sites" };
    let (operation, size) = (&all.asked.name, &all.asked.size);
    let title = format!("{operation} of {size}: who sends to whom, {} {what}", graph.names.len());
    let (width, height) = layout.size;
    let mut canvas = Canvas::new(&title, width.max(720.0), height + HEAD + 20.0);
    canvas.levels();
    canvas.text(
        "soft small",
        "start",
        (10.0, 68.0),
        "arrows: messages, for numbers point at one; dashed: through shared memory, no message",
    );
    let moved = |(x, y): Point| (x, y + HEAD);
    for (corner, size, name, is_site) in &layout.boxes {
        canvas.area(moved(*corner), *size, name, *is_site);
    }
    let place = |node: usize| layout.dots.get(&node).copied().map(moved).unwrap_or_default();
    for &(from, to) in &graph.met {
        let told = format!("{} and {}: shared memory", graph.names[from], graph.names[to]);
        canvas.meeting(place(from), place(to), &told);
    }
    for (&(from, to), &(level, Passed { messages, bytes })) in &graph.arrows {
        let (from_name, to_name) = (&graph.names[from], &graph.names[to]);
        let plural = if messages == 1 { "" } else { "s" };
        let told = format!("{from_name} to {to_name}: {messages} message{plural}, {bytes} bytes, {level}");
        canvas.arrow(place(from), place(to), colour(level), &told);
    }
    for (node, name) in graph.names.iter().enumerate() {
        canvas.dot(place(node), node == graph.root, true, name);
    }
    canvas.finish()
}

fn processes(all: &Simulated) -> Graph {
    let mut arrows: BTreeMap<(usize, usize), (Level, Passed)> = BTreeMap::new();
    for record in all.outcome.records.iter().filter(|r| r.kind == Kind::Link) {
        let ends = (record.rank as usize, record.peer as usize);
        let (_, passed) = arrows.entry(ends).or_insert_with(|| (record.level, Passed::default()));
        passed.messages += 1;
        passed.bytes += record.bytes;
    }
    let root = all.asked.call.root as usize;
    Graph {
        names: (0..all.outcome.finished.len()).map(|rank| rank.to_string()).collect(),
        met: met(all, &arrows, root),
        arrows,
        root,
    }
}

/// Whoever has no message within its node meets the others of it in memory: whom it is joined with is the root or the
/// one with most messages.
fn met(all: &Simulated, arrows: &BTreeMap<(usize, usize), (Level, Passed)>, root: usize) -> Vec<(usize, usize)> {
    let node = |rank: usize| all.grid.topology.clusters_of(rank as u32)[2];
    let mut outside = vec![0u64; all.outcome.finished.len()];
    let mut inside = vec![false; outside.len()];
    for (&(from, to), (_, passed)) in arrows {
        for end in [from, to] {
            inside[end] |= node(from) == node(to);
            outside[end] += passed.messages;
        }
    }
    let mut nodes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    (0..outside.len()).for_each(|rank| nodes.entry(node(rank)).or_default().push(rank));
    let mut met = Vec::new();
    for members in nodes.values() {
        let first = members
            .iter()
            .copied()
            .max_by_key(|&r| (r == root, outside[r], usize::MAX - r));
        let alone = |r: &&usize| !inside[**r] && Some(**r) != first;
        met.extend(members.iter().filter(alone).filter_map(|&r| Some((first?, r))));
    }
    met
}

fn sites(all: &Simulated) -> Graph {
    let mut arrows: BTreeMap<(usize, usize), (Level, Passed)> = BTreeMap::new();
    for link in all.outcome.links.iter().filter(|l| l.level == Level::WideArea) {
        let ends = (link.from as usize, link.to as usize);
        let (_, passed) = arrows.entry(ends).or_insert_with(|| (link.level, Passed::default()));
        passed.messages += link.messages;
        passed.bytes += link.bytes;
    }
    Graph {
        names: all.grid.sites.clone(),
        arrows,
        met: Vec::new(),
        root: all.grid.topology.clusters_of(all.asked.call.root)[0] as usize,
    }
}

/// Columns that make about a square.
fn columns(count: usize) -> usize {
    (1..=count).find(|c| c * c >= count).unwrap_or(1)
}

fn row_of_sites(count: usize) -> Layout {
    let columns = columns(count);
    let place = |i: usize| {
        (
            (i % columns) as f64 * SITE.0 + 40.0,
            (i / columns) as f64 * SITE.1 + 40.0,
        )
    };
    Layout {
        boxes: Vec::new(),
        dots: (0..count).map(|i| (i, place(i))).collect(),
        size: (columns as f64 * SITE.0, count.div_ceil(columns) as f64 * SITE.1),
    }
}

/// Sites in a square of boxes, in each its machines, in those the processes, node by node.
fn layout(all: &Simulated) -> Layout {
    let mut sites: BTreeMap<u32, BTreeMap<u32, BTreeMap<u32, Vec<usize>>>> = BTreeMap::new();
    for rank in 0..all.outcome.finished.len() {
        let [site, machine, node] = all.grid.topology.clusters_of(rank as u32);
        let machines = sites.entry(site).or_default();
        machines.entry(machine).or_default().entry(node).or_default().push(rank);
    }
    let count = sites.len();
    let parts = sites.into_iter().map(|(site, machines)| {
        let parts = machines.into_iter().map(|(number, nodes)| {
            let ranks = nodes.into_values().map(|ranks| {
                let parts = ranks.into_iter().map(|rank| Layout {
                    dots: BTreeMap::from([(rank, (RANK.0 / 3.0, RANK.1 / 2.0))]),
                    size: RANK,
                    ..Layout::default()
                });
                arranged(parts.collect(), RANKS, 0.0)
            });
            arranged(ranks.collect(), 1, 6.0).framed(format!("machine {number}"), false)
        });
        arranged(parts.collect(), MACHINES, EDGE).framed(all.grid.sites[site as usize].clone(), true)
    });
    arranged(parts.collect(), columns(count), APART).framed(String::new(), false)
}

/// Parts in rows of so many.
fn arranged(parts: Vec<Layout>, columns: usize, apart: f64) -> Layout {
    let mut whole = Layout::default();
    let (mut x, mut y, mut tallest) = (0.0f64, 0.0f64, 0.0f64);
    for (i, part) in parts.into_iter().enumerate() {
        if i > 0 && i % columns == 0 {
            (x, y, tallest) = (0.0, y + tallest + apart, 0.0);
        }
        let by = |(a, b): Point| (a + x, b + y);
        let boxes = part.boxes.into_iter();
        whole
            .boxes
            .extend(boxes.map(|(corner, size, name, is_site)| (by(corner), size, name, is_site)));
        whole.dots.extend(part.dots.into_iter().map(|(dot, at)| (dot, by(at))));
        tallest = tallest.max(part.size.1);
        whole.size = (whole.size.0.max(x + part.size.0), whole.size.1.max(y + part.size.1));
        x += part.size.0 + apart;
    }
    whole
}

impl Layout {
    /// In a box with a name; without one, only with room around it.
    fn framed(self, name: String, is_site: bool) -> Self {
        let inner = Self {
            size: (self.size.0 + EDGE, self.size.1 + EDGE),
            boxes: self.boxes,
            dots: self.dots,
        };
        let (dx, dy) = (EDGE, EDGE + NAME);
        let boxes = inner.boxes.into_iter();
        let mut boxes: Vec<_> = boxes
            .map(|((x, y), size, name, site)| ((x + dx, y + dy), size, name, site))
            .collect();
        let size = (inner.size.0 + dx, inner.size.1 + dy);
        if !name.is_empty() {
            boxes.insert(0, ((0.0, 0.0), size, name, is_site));
        }
        let dots = inner.dots.into_iter().map(|(dot, (x, y))| (dot, (x + dx, y + dy)));
        Self {
            boxes,
            dots: dots.collect(),
            size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_in_their_boxes_and_not_on_one_another() {
        let part = |dot: usize| Layout {
            dots: BTreeMap::from([(dot, (5.0, 5.0))]),
            size: (10.0, 10.0),
            ..Layout::default()
        };
        let whole = arranged((0..5).map(part).collect(), 2, 3.0).framed("box".to_owned(), true);
        let places: std::collections::BTreeSet<_> = whole.dots.values().map(|(x, y)| (*x as u32, *y as u32)).collect();
        assert_eq!(places.len(), 5);
        let (_, size, name, _) = &whole.boxes[0];
        assert_eq!(name, "box");
        assert!(
            whole.dots.values().all(|(x, y)| *x < size.0 && *y < size.1),
            "{:?}",
            whole.dots
        );
        assert_eq!([1, 2, 3, 4, 5, 9, 10].map(columns), [1, 2, 2, 2, 3, 3, 4]);
    }
}
