// SPDX-License-Identifier: Apache-2.0
//! The shapes of trees inside one council, as ways to cut an interval of its members.
//!
//! A member that has something for an interval hands parts of the interval to their first members, keeps the rest, and
//! goes on. So every subtree is an interval, for any root: gathered data stay together, reductions stay in order.
//!
//! - flat: every other member is a part. One trip.
//! - k-nomial: k equal parts, again and again. Radix 2 is the binomial tree. log_k trips of k − 1 messages.
//! - Fibonacci: parts as large as can be reached while the sender goes on sending: the optimal tree of the postal
//!   model, in which a message arrives λ sends after it began. (Bar-Noy and Kipnis: Designing broadcasting algorithms
//!   in the postal model, 1994.)
//! - chain: one part on either side. Each member sends a long message to one other only.
//! - together: no messages but one step in the memory of a node ([`node`](crate::node)).
//! - routed: as [`Routes`](crate::routes::Routes) says, by the latencies of the links.

use crate::routes::{Handoff, Routes};
use std::ops::Range;
use std::sync::Arc;

/// Name in overrides of what processes do together in memory that they share. Any other name that is said about an
/// operation means messages.
pub(crate) const TOGETHER: &str = "together";

/// How something is handed on from one member of a council to all others, or, backwards, brought to it.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    Flat,
    /// Radix, at least 2.
    Knomial(u32),
    /// Latency in sends, at least 1.
    Fibonacci(u32),
    Chain,
    Routed(Arc<Routes>),
    Together,
}

impl Form {
    /// Name for people and in overrides.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Flat => "flat".to_owned(),
            Self::Knomial(2) => "binomial".to_owned(),
            Self::Knomial(radix) => format!("knomial({radix})"),
            Self::Fibonacci(latency) => format!("fibonacci({latency})"),
            Self::Chain => "chain".to_owned(),
            Self::Routed(_) => "routed".to_owned(),
            Self::Together => TOGETHER.to_owned(),
        }
    }

    /// The form of a name in an override. `latency` is that of the link in sends; `known` has the routes if there are
    /// any, and the memory of nodes.
    pub(crate) fn named(name: &str, latency: u32, known: &[Self]) -> Option<Self> {
        let (stem, number) = match name.split_once('(') {
            Some((stem, number)) => (stem, number.trim_end_matches(')').parse::<u32>().ok()),
            None => (name, None),
        };
        match stem {
            "flat" => Some(Self::Flat),
            "binomial" => Some(Self::Knomial(2)),
            "knomial" => Some(Self::Knomial(number.unwrap_or(4).max(2))),
            "fibonacci" => Some(Self::Fibonacci(number.unwrap_or(latency).max(1))),
            "chain" => Some(Self::Chain),
            TOGETHER => known.iter().find(|f| matches!(f, Self::Together)).cloned(),
            "routed" => known.iter().find(|f| matches!(f, Self::Routed(_))).cloned(),
            _ => None,
        }
    }

    /// The next parts that `root` hands on, in the order in which it serves them, and what it keeps. Read backwards,
    /// each part is adjacent to what has been combined before it.
    pub(crate) fn split(&self, interval: &Range<u32>, root: u32, parts: &mut Vec<Handoff>) -> Range<u32> {
        let alone = root..root + 1;
        match self {
            // Together: everybody meets the one who acts for them, as if he served each.
            Self::Flat | Self::Together => {
                let right = (root + 1..interval.end).rev();
                parts.extend(right.chain(interval.start..root).map(|i| Handoff::of(i..i + 1)));
                alone
            }
            Self::Knomial(radix) => equal_parts(interval, root, *radix, parts),
            Self::Fibonacci(latency) => postal_part(interval, root, *latency, parts),
            Self::Chain => {
                let sides = [root + 1..interval.end, interval.start..root];
                parts.extend(sides.into_iter().filter(|side| !side.is_empty()).map(Handoff::of));
                alone
            }
            Self::Routed(routes) => {
                routes.split(interval, root, parts);
                alone
            }
        }
    }
}

/// Far parts first on either side.
fn equal_parts(interval: &Range<u32>, root: u32, radix: u32, parts: &mut Vec<Handoff>) -> Range<u32> {
    let length = interval.end - interval.start;
    let count = radix.clamp(2, length.max(2));
    let begin = |j: u32| interval.start + (u64::from(j) * u64::from(length) / u64::from(count)) as u32;
    let part = |j: u32| begin(j)..begin(j + 1);
    let own = (((u64::from(root - interval.start) + 1) * u64::from(count) - 1) / u64::from(length)) as u32;
    parts.extend((own + 1..count).rev().chain(0..own).map(|j| Handoff::of(part(j))));
    part(own)
}

/// One part, as large as its first member can serve in the time in which the root serves the rest; from the side where
/// there is room.
fn postal_part(interval: &Range<u32>, root: u32, latency: u32, parts: &mut Vec<Handoff>) -> Range<u32> {
    let length = interval.end - interval.start;
    let size = postal_share(length, latency);
    let (left, right) = (root - interval.start, interval.end - root - 1);
    let (part, rest) = if right >= left {
        let cut = interval.end - size.min(right);
        (cut..interval.end, interval.start..cut)
    } else {
        let cut = interval.start + size.min(left);
        (interval.start..cut, cut..interval.end)
    };
    parts.push(Handoff::of(part));
    rest
}

/// Members to hand on first, of `length` > 1: reached in t sends are N(t) = N(t − 1) + N(t − λ) members, N(t) = 1 for t
/// < λ.
fn postal_share(length: u32, latency: u32) -> u32 {
    let latency = latency.max(1) as usize;
    // More than `length` sends are never needed: the flat tree takes that many.
    let mut reached = std::collections::VecDeque::from(vec![1u32; latency]);
    loop {
        let (before, last) = (reached[0], reached[latency - 1]);
        let now = last.saturating_add(before);
        if now >= length {
            return before.min(length - 1);
        }
        reached.pop_front();
        reached.push_back(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Children of `me` as "first member: interval", and its parent.
    fn stand(form: &Form, size: u32, root: u32, me: u32) -> (String, Option<u32>) {
        let (mut children, mut parent) = (Vec::new(), None);
        let (mut interval, mut root) = (0..size, root);
        while interval.len() > 1 {
            let mut parts = Vec::new();
            let rest = form.split(&interval, root, &mut parts);
            if root == me {
                children.extend(
                    parts
                        .iter()
                        .map(|p| format!("{}:{}..{}", p.first, p.members.start, p.members.end)),
                );
            }
            interval = rest;
            if let Some(part) = parts.into_iter().find(|p| p.members.contains(&me)) {
                parent = Some(root);
                (interval, root) = (part.members, part.first);
            }
        }
        (children.join(" "), parent)
    }

    #[test]
    fn radix_2_is_the_binomial_tree() {
        let form = Form::Knomial(2);
        assert_eq!(stand(&form, 8, 0, 0), ("4:4..8 2:2..4 1:1..2".into(), None));
        assert_eq!(stand(&form, 8, 0, 4), ("6:6..8 5:5..6".into(), Some(0)));
        assert_eq!(stand(&form, 8, 0, 7), (String::new(), Some(6)));
        assert_eq!(stand(&form, 8, 5, 5), ("0:0..4 6:6..8 4:4..5".into(), None));
        assert_eq!(stand(&form, 8, 5, 0), ("2:2..4 1:1..2".into(), Some(5)));
    }

    #[test]
    fn flat_and_chain() {
        assert_eq!(stand(&Form::Flat, 4, 1, 1), ("3:3..4 2:2..3 0:0..1".into(), None));
        assert_eq!(stand(&Form::Flat, 4, 1, 3), (String::new(), Some(1)));
        assert_eq!(stand(&Form::Chain, 5, 1, 1), ("2:2..5 0:0..1".into(), None));
        assert_eq!(stand(&Form::Chain, 5, 1, 3), ("4:4..5".into(), Some(2)));
    }

    #[test]
    fn postal_trees_reach_as_many_as_the_recurrence_says() {
        // λ = 3: N = 1 1 1 2 3 4 6 9 13 ...: 13 members take 8 sends.
        assert_eq!(postal_share(13, 3), 4);
        assert_eq!(
            stand(&Form::Fibonacci(3), 13, 0, 0).0,
            "9:9..13 6:6..9 4:4..6 3:3..4 2:2..3 1:1..2"
        );
        // λ = 1: the binomial tree.
        assert_eq!(stand(&Form::Fibonacci(1), 8, 0, 0).0, "4:4..8 2:2..4 1:1..2");
    }

    #[test]
    fn every_tree_reaches_everybody_once() {
        let forms = [
            Form::Flat,
            Form::Knomial(2),
            Form::Knomial(3),
            Form::Knomial(5),
            Form::Fibonacci(2),
            Form::Fibonacci(7),
            Form::Chain,
        ];
        for form in forms {
            for size in [1, 2, 7, 13, 16, 40] {
                for root in 0..size {
                    let with_parents = (0..size).filter(|&me| stand(&form, size, root, me).1.is_some()).count() as u32;
                    let children: usize = (0..size)
                        .map(|me| stand(&form, size, root, me).0.split_whitespace().count())
                        .sum();
                    assert_eq!(
                        (with_parents, children as u32),
                        (size - 1, size - 1),
                        "{form:?}, size {size}, root {root}"
                    );
                }
            }
        }
    }
}
