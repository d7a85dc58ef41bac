// SPDX-License-Identifier: Apache-2.0
//! Messages between parts, and what they tell of the clocks.

use crate::trace::{IN, OUT, nanoseconds};
use serde_json::Value;
use std::collections::HashMap;

/// Most messages between parts that are remembered, the first ones; others get no arrows.
const MESSAGES: usize = 1 << 20;
/// Messages from each part to each other one that are remembered even so: one file may have as many messages as there
/// is room for, and the clocks of other parts are to be known too. With 256 parts they are another million.
const OF_A_PAIR: u32 = 16;

pub(super) fn pid(event: &Value) -> Option<u32> {
    u32::try_from(event["pid"].as_u64()?).ok()
}

/// Nanoseconds since the part began.
pub(super) fn time(event: &Value) -> Option<i64> {
    event["ts"].as_f64().map(nanoseconds)
}

/// A message: sender, receiver, context, and which of them it is.
type Name = (u32, u32, u32, u64);

/// An event that is one end of a message.
pub(super) struct End {
    name: Name,
    pub(super) peer: u32,
    at: i64,
    is_sent: bool,
}

impl End {
    pub(super) fn of(event: &Value) -> Option<Self> {
        if event["ph"] != "X" || event["cat"] != "message" {
            return None;
        }
        let (rank, at, args) = (pid(event)?, time(event)?, &event["args"]);
        let word = |key: &str| u32::try_from(args[key].as_u64()?).ok();
        let (peer, context, number) = (word("peer")?, word("context")?, args["number"].as_u64()?);
        let is_sent = match u32::try_from(event["tid"].as_u64()?).ok()? {
            OUT => true,
            IN => false,
            _ => return None,
        };
        let (from, to) = if is_sent { (rank, peer) } else { (peer, rank) };
        Some(Self {
            name: (from, to, context, number),
            peer,
            at,
            is_sent,
        })
    }
}

/// A message between two parts.
#[derive(Default)]
struct Known {
    /// Where, and when by the clock of that part.
    sent: Option<(usize, i64)>,
    came: Option<(usize, i64)>,
    /// The number of its arrow, once that has one.
    arrow: Option<u64>,
}

/// From one part to another.
#[derive(Clone, Default)]
struct Way {
    /// The shortest one, by their clocks.
    shortest: Option<i64>,
    /// Messages that are remembered.
    messages: u32,
}

/// What the clock of a part is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Set {
    /// How far it is ahead of that of the first part.
    pub(super) ahead: i64,
    /// The part that it is compared with.
    pub(super) with: usize,
    /// What the difference between these two is right to.
    pub(super) right_to: u64,
}

/// What goes between parts.
pub(super) struct Between {
    messages: HashMap<Name, Known>,
    most: usize,
    /// From, to.
    ways: Vec<Vec<Way>>,
    forgotten: u64,
}

impl Between {
    pub(super) fn new(parts: usize) -> Self {
        Self {
            messages: HashMap::new(),
            most: MESSAGES,
            ways: vec![vec![Way::default(); parts]; parts],
            forgotten: 0,
        }
    }

    /// Messages that are not remembered.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Of an event in a part, whose peer is in another one.
    pub(super) fn note(&mut self, end: End, part: usize, other: usize, began: i64) {
        let (from, to) = if end.is_sent { (part, other) } else { (other, part) };
        let is_new = !self.messages.contains_key(&end.name);
        let way = &mut self.ways[from][to];
        if is_new && self.messages.len() >= self.most && way.messages >= OF_A_PAIR {
            // What is not remembered at one end is not at the other: once there is no room, there is none later.
            self.forgotten += u64::from(end.is_sent);
            return;
        }
        way.messages = way.messages.saturating_add(u32::from(is_new));
        let known = self.messages.entry(end.name).or_default();
        let side = if end.is_sent { &mut known.sent } else { &mut known.came };
        if side.is_some() {
            return;
        }
        *side = Some((part, began.saturating_add(end.at)));
        if let (Some((_, sent)), Some((_, came))) = (known.sent, known.came) {
            let time = came.saturating_sub(sent);
            way.shortest = Some(way.shortest.map_or(time, |known| known.min(time)));
        }
    }

    fn shortest(&self, from: usize, to: usize) -> Option<i64> {
        self.ways[from][to].shortest
    }

    /// What the clocks are taken for. `order`: of the parts, which are compared with the first one of it where they can
    /// be. `rights`: what times in each part are right to.
    pub(super) fn clocks(&self, order: &[usize], rights: &[u64]) -> Vec<Set> {
        let mut clocks: Vec<Option<Set>> = vec![None; self.ways.len()];
        // The first one's clock is what the others are told by: nothing moves it.
        while let Some(root) = self.next(order, &clocks) {
            let group = self.group(root, rights);
            let moved = self.moved(&group, &clocks);
            for (at, set) in group {
                let ahead = set.ahead.saturating_add(moved);
                clocks[at] = Some(Set { ahead, ..set });
            }
        }
        clocks.into_iter().flatten().collect()
    }

    /// The part that parts are compared with next: one that messages went to or from, if there is one.
    fn next(&self, order: &[usize], clocks: &[Option<Set>]) -> Option<usize> {
        let mut left = order.iter().copied().filter(|&at| clocks[at].is_none());
        let first = left.clone().next()?;
        let is_met = |&at: &usize| {
            let mut known = (0..clocks.len()).filter(|&other| clocks[other].is_some());
            known.any(|other| self.shortest(at, other).is_some() || self.shortest(other, at).is_some())
        };
        Some(left.find(is_met).unwrap_or(first))
    }

    /// The parts that messages compare with one, there and back, directly or by way of others; and by how much.
    fn group(&self, root: usize, rights: &[u64]) -> Vec<(usize, Set)> {
        let mut clocks: Vec<Option<(i64, u64)>> = vec![None; self.ways.len()];
        clocks[root] = Some((0, 0));
        let mut done = vec![false; clocks.len()];
        let mut group = Vec::new();
        // The surest one next, over parts whose clocks are surer.
        while let Some((right_to, from, ahead)) = (0..clocks.len())
            .filter(|&at| !done[at])
            .filter_map(|at| clocks[at].map(|(ahead, right_to)| (right_to, at, ahead)))
            .min()
        {
            done[from] = true;
            let with = root;
            group.push((from, Set { ahead, with, right_to }));
            for to in (0..clocks.len()).filter(|&to| !done[to]) {
                let (Some(there), Some(back)) = (self.shortest(from, to), self.shortest(to, from)) else {
                    continue;
                };
                let half = there.saturating_add(back).unsigned_abs().div_ceil(2);
                let inside = rights[from].saturating_add(rights[to]);
                let more = right_to.saturating_add(half).saturating_add(inside);
                if clocks[to].is_none_or(|(_, known)| more < known) {
                    let between = there.saturating_sub(back) / 2;
                    clocks[to] = Some((ahead.saturating_add(between), more));
                }
            }
        }
        group
    }

    /// How far the clocks of parts that are compared with one of them are moved as one: as far as messages demand that
    /// went one way to others, or came from them.
    fn moved(&self, group: &[(usize, Set)], clocks: &[Option<Set>]) -> i64 {
        let (mut least, mut most) = (i64::MIN, i64::MAX);
        for (at, own) in group {
            for (other, set) in clocks.iter().enumerate() {
                let Some(theirs) = set.map(|set| set.ahead) else {
                    continue;
                };
                if let Some(way) = self.shortest(other, *at) {
                    most = most.min(theirs.saturating_add(way).saturating_sub(own.ahead));
                }
                if let Some(way) = self.shortest(*at, other) {
                    least = least.max(theirs.saturating_sub(way).saturating_sub(own.ahead));
                }
            }
        }
        // Clocks drift, so that these may contradict each other.
        0.min(most).max(least)
    }

    /// The arrow that begins or ends at one end of a message, in a part. There is none where the other end is not
    /// known, or where it would point backwards: clocks drift.
    pub(super) fn arrow(
        &mut self,
        end: &End,
        part: usize,
        clocks: &[Set],
        arrows: &mut u64,
    ) -> Option<(&'static str, u64)> {
        let known = self.messages.get_mut(&end.name)?;
        let at = |(part, at): (usize, i64)| at.saturating_sub(clocks[part].ahead);
        let (sent, came) = (known.sent?, known.came?);
        let own = if end.is_sent { sent } else { came };
        if own.0 != part || at(came) <= at(sent) {
            return None;
        }
        let arrow = *known.arrow.get_or_insert_with(|| {
            *arrows += 1;
            *arrows
        });
        Some((if end.is_sent { "s" } else { "f" }, arrow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of 100 ns from one part to another, which has the rank of its number; only one end of it.
    fn end(from: u32, to: u32, number: u64, is_sent: bool) -> End {
        End {
            name: (from, to, 2, number),
            peer: if is_sent { to } else { from },
            at: if is_sent { 1000 } else { 1100 },
            is_sent,
        }
    }

    #[test]
    fn what_is_too_much_is_counted_and_other_parts_are_still_compared() {
        let mut between = Between::new(3);
        between.most = 20;
        for (is_sent, part) in [(true, 0), (false, 1)] {
            for number in 0..25 {
                between.note(end(0, 1, number, is_sent), part, 1 - part, 0);
            }
            assert_eq!((between.messages.len(), between.forgotten()), (20, 5));
        }
        for (from, to) in [(1, 2), (2, 1)] {
            for (is_sent, part, other) in [(true, from, to), (false, to, from)] {
                between.note(end(from as u32, to as u32, 1, is_sent), part, other, 0);
            }
        }
        let clocks = between.clocks(&[0, 1, 2], &[0; 3]);
        assert_eq!((clocks[2].with, clocks[2].right_to), (1, 100));
    }
}
