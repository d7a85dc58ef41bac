// SPDX-License-Identifier: Apache-2.0
//! Reductions in one order of association, whatever the shape of the group: results are bit-identical over any number
//! of sites.
//!
//! **The order** is a tree over ranks that depends on nothing else. The ranks `[a, b)` are combined as `[a, m) ∘ [m,
//! b)`, where `m - a` is the greatest power of two below `b - a`:
//!
//! ```text
//! 7 processes: ((0 ∘ 1) ∘ (2 ∘ 3)) ∘ ((4 ∘ 5) ∘ 6)
//! ```
//!
//! So every interval `[k 2^j, (k + 1) 2^j)` is combined alike in every group, and the scan of rank r is the reduction
//! of ranks 0 to r.
//!
//! **Moving little.** A process that acts for others cannot combine their contributions into one value where they are
//! not neighbours in this order. It sends the *cover* of its ranks: the values of the greatest intervals of the tree
//! that hold only its ranks, in one message. For 2^j ranks from a multiple of 2^j on that is one value, for consecutive
//! ranks at most 2 log2 p; no order-keeping algorithm sends fewer.

use crate::Network;
use crate::script::{Cut, Kind, Piece, Script};
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::{Call, strategy::Strategy};
use std::collections::HashMap;
use std::ops::Range;

/// Pieces of a long message under way at a time.
const LANES: u64 = 4;

/// Consecutive ranks that are combined: a node of the tree, or of the tree of a smaller group.
pub(crate) type Interval = (Rank, Rank);

/// Both halves of an interval of at least two ranks.
fn halves((low, high): Interval) -> (Interval, Interval) {
    let half = 1 << (high - low - 1).ilog2();
    ((low, low + half), (low + half, high))
}

/// The ranks of processes at consecutive positions.
#[derive(Debug)]
pub(crate) struct Ranks(Vec<Rank>);

impl Ranks {
    pub(crate) fn at(network: &Network, positions: Range<u32>) -> Self {
        let mut ranks: Vec<Rank> = positions.map(|p| network.rank_at(p)).collect();
        ranks.sort_unstable();
        Self(ranks)
    }

    /// How many are in an interval.
    fn count(&self, (low, high): Interval) -> u32 {
        (self.0.partition_point(|&r| r < high) - self.0.partition_point(|&r| r < low)) as u32
    }

    /// The greatest intervals of a group's tree that hold only these ranks, in order.
    pub(crate) fn cover(&self, group: u32) -> Vec<Interval> {
        let mut found = Vec::new();
        self.cover_of((0, group), &mut found);
        found
    }

    fn cover_of(&self, interval: Interval, found: &mut Vec<Interval>) {
        match self.count(interval) {
            0 => {}
            n if n == interval.1 - interval.0 => found.push(interval),
            _ => {
                let (left, right) = halves(interval);
                self.cover_of(left, found);
                self.cover_of(right, found);
            }
        }
    }

    /// What these processes together cannot compute alone of the intervals from 0 to each of them (`inclusive`: and
    /// with it).
    pub(crate) fn missing(&self, inclusive: bool) -> Vec<Interval> {
        let mut found = Vec::new();
        for &rank in &self.0 {
            self.missing_of((0, rank + u32::from(inclusive)), &mut found);
        }
        found
    }

    fn missing_of(&self, interval: Interval, found: &mut Vec<Interval>) {
        let (size, own) = (interval.1 - interval.0, self.count(interval));
        if own == size || found.contains(&interval) {
            return;
        }
        // Only intervals of the tree have a place there; [0, rank] is one if its length is a power of two.
        if own == 0 && size.is_power_of_two() {
            found.push(interval);
            return;
        }
        let (left, right) = halves(interval);
        self.missing_of(left, found);
        self.missing_of(right, found);
    }
}

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// The own contribution, which may be in the user's input.
    Own,
    /// The result buffer.
    Result,
    /// Scratch memory.
    Spare(u32),
}

/// What a message is for: its kind, and which of several of that kind it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purpose {
    pub(crate) kind: Kind,
    pub(crate) index: u64,
    pub(crate) of: u64,
}

impl From<Kind> for Purpose {
    fn from(kind: Kind) -> Self {
        Self { kind, index: 0, of: 1 }
    }
}

impl Purpose {
    fn slot(&self, piece: &Piece) -> u16 {
        piece.item(self.index, self.of).slot(self.kind)
    }
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Send {
        to: Rank,
        first: Operand,
        count: u32,
        purpose: Purpose,
    },
    Receive {
        from: Rank,
        first: Operand,
        count: u32,
        purpose: Purpose,
    },
    Copy {
        from: Operand,
        to: Operand,
    },
    /// target = operand ∘ target if the operand is left, else target ∘ operand.
    Reduce {
        operand: Operand,
        target: Operand,
        left: bool,
    },
}

/// What a process does for each piece, and what it knows on the way.
#[derive(Debug)]
pub(crate) struct Ledger {
    group: u32,
    acts: Vec<Act>,
    places: u32,
    have: HashMap<Interval, Operand>,
    /// Values are used once: their places may take results.
    consume: bool,
}

impl Ledger {
    /// A process that has its own contribution. `consume`: every value is used once. In place it is where the result
    /// comes.
    pub(crate) fn new(group: u32, me: Rank, consume: bool, in_place: bool) -> Self {
        let mut ledger = Self {
            group,
            acts: Vec::new(),
            places: 0,
            have: HashMap::new(),
            consume,
        };
        let mut own = Operand::Own;
        if in_place {
            own = ledger.places(1);
            let (from, to) = (Operand::Result, own);
            ledger.acts.push(Act::Copy { from, to });
        }
        ledger.have.insert((me, me + 1), own);
        ledger
    }

    fn places(&mut self, count: u32) -> Operand {
        self.places += count;
        Operand::Spare(self.places - count)
    }

    /// Receives the values of intervals in one message.
    pub(crate) fn receive(&mut self, from: Rank, intervals: &[Interval], purpose: impl Into<Purpose>) {
        if intervals.is_empty() {
            return;
        }
        let count = intervals.len() as u32;
        let (first, purpose) = (self.places(count), purpose.into());
        self.acts.push(Act::Receive {
            from,
            first,
            count,
            purpose,
        });
        for (&interval, i) in intervals.iter().zip(self.places - count..) {
            self.have.insert(interval, Operand::Spare(i));
        }
    }

    /// Sends the values of intervals in one message.
    pub(crate) fn send(&mut self, to: Rank, intervals: &[Interval], purpose: impl Into<Purpose>) {
        let count = intervals.len() as u32;
        let first = match intervals {
            [] => return,
            &[interval] => self.value(interval),
            _ => self.row(intervals),
        };
        let purpose = purpose.into();
        self.acts.push(Act::Send {
            to,
            first,
            count,
            purpose,
        });
    }

    /// The values of intervals one behind the other.
    fn row(&mut self, intervals: &[Interval]) -> Operand {
        let values: Vec<Operand> = intervals.iter().map(|&i| self.value(i)).collect();
        if let Some(first) = consecutive(&values) {
            return first;
        }
        let first = self.places(intervals.len() as u32);
        for (i, (from, &interval)) in (self.places - intervals.len() as u32..).zip(values.into_iter().zip(intervals)) {
            let to = Operand::Spare(i);
            self.acts.push(Act::Copy { from, to });
            self.have.insert(interval, to);
        }
        first
    }

    /// Where the value of an interval is, after it has been combined.
    fn value(&mut self, interval: Interval) -> Operand {
        if let Some(&place) = self.have.get(&interval) {
            return place;
        }
        assert!(interval.1 - interval.0 > 1, "nobody has brought {interval:?}");
        let (left, right) = halves(interval);
        let (left, right) = (self.value(left), self.value(right));
        let place = match (left, right) {
            (Operand::Spare(_), _) if self.consume => self.reduce(right, left, false),
            (_, Operand::Spare(_)) if self.consume => self.reduce(left, right, true),
            _ => {
                let place = self.places(1);
                self.acts.push(Act::Copy { from: left, to: place });
                self.reduce(right, place, false)
            }
        };
        self.have.insert(interval, place);
        place
    }

    fn reduce(&mut self, operand: Operand, target: Operand, left: bool) -> Operand {
        self.acts.push(Act::Reduce { operand, target, left });
        target
    }

    /// Puts the value of the ranks below `end` into the result buffer.
    pub(crate) fn result(&mut self, end: Rank) {
        if self.have.contains_key(&(0, end)) || end == 1 {
            let from = self.value((0, end));
            let to = Operand::Result;
            return self.acts.push(Act::Copy { from, to });
        }
        let (left, right) = halves((0, end));
        let (left, right) = (self.value(left), self.value(right));
        let to = Operand::Result;
        self.acts.push(Act::Copy { from: left, to });
        self.reduce(right, Operand::Result, false);
    }

    /// The reduction of the whole group in the result buffer.
    pub(crate) fn total(&mut self) {
        self.result(self.group);
    }

    /// Receives the result whole.
    pub(crate) fn receive_result(&mut self, from: Rank) {
        let (first, count, purpose) = (Operand::Result, 1, Kind::Down.into());
        self.acts.push(Act::Receive {
            from,
            first,
            count,
            purpose,
        });
    }

    /// Sends the result whole.
    pub(crate) fn send_result(&mut self, to: impl Iterator<Item = Rank>) {
        let (first, count, purpose) = (Operand::Result, 1, Kind::Down.into());
        self.acts.extend(to.map(|to| Act::Send {
            to,
            first,
            count,
            purpose,
        }));
    }

    /// The plan that does all that for every piece.
    pub(crate) fn plan(self, call: &Call, strategy: &Strategy, units: u64) -> Box<dyn Plan> {
        let cut = strategy.cut(call, units);
        let cut = Cut {
            lanes: cut.lanes.min(LANES),
            ..cut
        };
        let mut script = Script::default();
        let pool = cut.pool(&mut script, u64::from(self.places));
        let own = if call.in_place { Buffer::Recv } else { Buffer::Send };
        let acts = self.acts;
        script.pieces(cut, move |script, piece| {
            let place = |place: Operand, count: u32| match place {
                Operand::Own => piece.of(own),
                Operand::Result => piece.of(Buffer::Recv),
                Operand::Spare(i) => pool.row(&piece, u64::from(i), u64::from(count)),
            };
            for act in &acts {
                act.write(script, &piece, place);
            }
        })
    }
}

impl Act {
    fn write(&self, script: &mut Script, piece: &Piece, place: impl Fn(Operand, u32) -> Slice) {
        match *self {
            Self::Send {
                to,
                first,
                count,
                purpose,
            } => _ = script.send(to, place(first, count), purpose.slot(piece)),
            Self::Receive {
                from,
                first,
                count,
                purpose,
            } => {
                script.receive(from, place(first, count), purpose.slot(piece));
            }
            Self::Copy { from, to } => script.copy(place(from, 1), place(to, 1)),
            Self::Reduce { operand, target, left } => script.reduce(place(operand, 1), place(target, 1), left),
        }
    }
}

/// The first of values that stand one behind the other already, as they came.
fn consecutive(values: &[Operand]) -> Option<Operand> {
    let Some(&Operand::Spare(first)) = values.first() else {
        return None;
    };
    (first..)
        .zip(values)
        .all(|(i, &place)| place == Operand::Spare(i))
        .then_some(Operand::Spare(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_splits_at_powers_of_two() {
        assert_eq!(halves((0, 7)), ((0, 4), (4, 7)));
        assert_eq!(halves((4, 7)), ((4, 6), (6, 7)));
        assert_eq!(halves((0, 8)), ((0, 4), (4, 8)));
    }

    #[test]
    fn covers_are_small_for_consecutive_ranks() {
        assert_eq!(Ranks((4..8).collect()).cover(13), [(4, 8)]);
        assert_eq!(Ranks((3..11).collect()).cover(13), [(3, 4), (4, 8), (8, 10), (10, 11)]);
        assert_eq!(Ranks(vec![0, 2, 4]).cover(5), [(0, 1), (2, 3), (4, 5)]);
        assert_eq!(Ranks((0..13).collect()).cover(13), [(0, 13)]);
    }

    #[test]
    fn what_is_missing_for_a_scan_is_what_lies_to_the_left() {
        assert_eq!(Ranks(vec![5]).missing(true), [(0, 4), (4, 5)]);
        assert_eq!(Ranks(vec![2, 3]).missing(true), [(0, 2)]);
        assert_eq!(Ranks(vec![4]).missing(false), [(0, 4)]);
    }
}
