// SPDX-License-Identifier: Apache-2.0
//! The quickest trees between sites whose links are unlike.
//!
//! Latencies between sites do not obey the triangle inequality: with round trips of 20, 40 and 75 ms the way through the middle site
//! takes 30 ms where the direct one takes 37.5. A tree by latency still has one message per site.
//!
//! Subtrees must be intervals of members ([`form`](crate::form)). Among those trees the quickest is found by dynamic programming: a
//! member x that has something for an interval cuts it, on either side of itself, into parts with a first member each.

use crate::Network;
use crate::form::Part;
use std::ops::Range;

/// The quickest trees among the members of one council, for every root.
#[derive(Debug)]
pub(crate) struct Routes {
    members: u32,
    /// One way between each two members, nanoseconds.
    latency: Vec<u64>,
    /// For each root and interval beside it or around it: when its last member has it, and the first cut.
    best: Vec<Cut>,
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
    /// Most members: the tables grow with the cube, the work with the fifth power.
    const MOST: u32 = 16;

    /// The trees among the parts of the outermost tier; `None` if they are many or their links alike.
    pub(crate) fn new(network: &Network) -> Option<Self> {
        let members = if network.tiers() == 0 { 0 } else { network.clusters(1) };
        if !(3..=Self::MOST).contains(&members) || !network.has_pairs() {
            return None;
        }
        let pairs = (0..members).flat_map(|a| (0..members).map(move |b| (a, b)));
        // A short message, with what handing it on costs.
        let cost = |(a, b)| {
            let link = network.outer(a, b);
            link.latency + link.send.at(0) + link.receive.at(0)
        };
        Some(Self::of(members, pairs.map(cost).collect()))
    }

    fn of(members: u32, latency: Vec<u64>) -> Self {
        let mut routes = Self {
            members,
            latency,
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
        for root in 0..self.members {
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
                let time = rest.max(self.way(root, first) + self.through(&part, first));
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
        let n = self.members as usize + 1;
        (root as usize * n + interval.start as usize) * n + interval.end as usize
    }

    fn way(&self, a: u32, b: u32) -> u64 {
        self.latency[(a * self.members + b) as usize]
    }

    /// Until the last member has what the root has, nanoseconds.
    #[cfg(test)]
    pub(crate) fn reach(&self, root: u32) -> u64 {
        self.through(&(0..self.members), root)
    }

    /// The parts that `root` hands on: far ones first on either side.
    pub(crate) fn split(&self, interval: &Range<u32>, root: u32, parts: &mut Vec<Part>) {
        for mut side in [root + 1..interval.end, interval.start..root] {
            while !side.is_empty() {
                let cut = self.best[self.place(&side, root)];
                let (part, rest) = match root < side.start {
                    true => (cut.at..side.end, side.start..cut.at),
                    false => (side.start..cut.at, cut.at..side.end),
                };
                parts.push(Part {
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

    /// 10, 20 and 37.5 ms.
    fn three(order: [usize; 3]) -> Routes {
        let way = [[0, 10, 37], [10, 0, 20], [37, 20, 0]];
        let latency = order.iter().flat_map(|&a| order.iter().map(move |&b| way[a][b]));
        Routes::of(3, latency.collect())
    }

    #[test]
    fn a_quick_way_through_another_site_is_taken() {
        for order in [[0, 1, 2], [2, 1, 0]] {
            let routes = three(order);
            let reach: Vec<u64> = (0..3).map(|root| routes.reach(root)).collect();
            assert_eq!(reach, [30, 20, 30], "sites {order:?}");
        }
        // Where the middle site is not between the others, what goes through it is no interval.
        let reach: Vec<u64> = (0..3).map(|root| three([1, 0, 2]).reach(root)).collect();
        assert_eq!(reach, [20, 37, 30]);
    }

    #[test]
    fn parts_are_intervals_that_cover_all_others_once() {
        let latency: Vec<u64> = (0..49u64).map(|i| 1 + (i % 7).abs_diff(i / 7) * (i % 5 + 1)).collect();
        let routes = Routes::of(7, latency);
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
