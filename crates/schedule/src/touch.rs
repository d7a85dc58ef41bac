// SPDX-License-Identifier: Apache-2.0
//! What steps read and write, and which must not run at the same time.

use crate::step::{Action, Buffer, Slice};

/// What an action reads and writes. A reduction's target counts as written: whoever conflicts with the reading
/// conflicts with the writing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Touch {
    pub(crate) read: Extent,
    pub(crate) write: Extent,
}

impl Touch {
    /// Of one action.
    #[inline]
    pub fn of(action: &Action) -> Self {
        let (read, write) = match action {
            Action::Send { data, .. } => (Extent::of(data), Extent::NONE),
            Action::Receive { data, .. } => (Extent::NONE, Extent::of(data)),
            Action::Forward { .. } => (Extent::NONE, Extent::NONE),
            Action::Reduce { operand, target, .. } => (Extent::of(operand), Extent::of(target)),
            Action::Copy { from, to } => (Extent::of(from), Extent::of(to)),
            Action::Together(together) => (Extent::of(&together.give), Extent::of(&together.take)),
        };
        Self { read, write }
    }

    /// True if the two may not run at the same time or in the other order.
    #[inline]
    pub fn conflicts(&self, other: &Self) -> bool {
        self.write.meets(&other.write) || self.write.meets(&other.read) || self.read.meets(&other.write)
    }

    /// The last of several that it conflicts with. Plans of many pieces spend most of their time here.
    #[inline]
    pub(crate) fn last_conflict(&self, earlier: &[Self]) -> Option<usize> {
        match (self.read.is_empty(), self.write.is_empty()) {
            (true, true) => None,
            (false, true) => earlier.iter().rposition(|old| self.read.meets(&old.write)),
            (true, false) => {
                let conflicts = |old: &Self| self.write.meets(&old.write) | self.write.meets(&old.read);
                earlier.iter().rposition(conflicts)
            }
            (false, false) => earlier.iter().rposition(|old| self.conflicts(old)),
        }
    }

    /// Forgets what an earlier step has written whole: whatever came before that and conflicts there, that step has
    /// waited for.
    #[inline]
    pub(crate) fn settle(&mut self, earlier: &Self) {
        if self.read.lies_in(&earlier.write) {
            self.read = Extent::NONE;
        }
        if self.write.lies_in(&earlier.write) {
            self.write = Extent::NONE;
        }
    }
}

/// A slice, ready for comparisons: all buffers in one row, each with 2⁵⁴ places, more than there is memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extent {
    start: u64,
    end: u64,
}

impl Extent {
    pub(crate) const NONE: Self = Self { start: 0, end: 0 };
    /// Of a place within a buffer.
    const BITS: u32 = 54;

    #[inline]
    pub(crate) fn of(slice: &Slice) -> Self {
        let buffer = match slice.buffer {
            Buffer::Send => 0,
            Buffer::Recv => 1,
            Buffer::Scratch(i) => 2 + u64::from(i),
        };
        let start = (buffer << Self::BITS) + slice.offset;
        Self {
            start,
            end: start + slice.length,
        }
    }

    /// True if the two have a unit in common.
    #[inline]
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.start.max(other.start) < self.end.min(other.end)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Number of its buffer in the row.
    #[inline]
    pub(crate) fn buffer(&self) -> usize {
        (self.start >> Self::BITS) as usize
    }

    /// Becomes what holds itself, unless that is nothing, and another.
    #[inline]
    pub(crate) fn cover(&mut self, other: &Self) {
        if self.is_empty() {
            *self = *other;
        }
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
    }

    #[inline]
    pub(crate) fn lies_in(&self, other: &Self) -> bool {
        self.start >= other.start && self.end <= other.end
    }
}
