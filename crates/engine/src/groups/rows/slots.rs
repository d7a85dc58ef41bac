// SPDX-License-Identifier: Apache-2.0
//! Slots: where in cells the blocks are of an operation of blocks that may differ in length.

use isthmus_schedule::{COPIED, Operation as What};
use isthmus_transport::slabs::{CellSize, OFFER, SharedSlabs};

/// Bytes of a length in front of a block.
pub(super) const LENGTH: usize = size_of::<u32>();
/// Bytes of what the root of a gatherv says to a member of a long block: its length, and where it goes.
pub(super) const ENTRY: usize = size_of::<u64>() + OFFER;
/// Shortest slot of a short cell that is of use.
const SLOT: usize = 2 * size_of::<u64>();

/// Bytes of slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots {
    count: usize,
    short: usize,
    middle: usize,
}

impl Slots {
    /// `None`: they would be too short.
    pub(crate) fn of(slabs: &dyn SharedSlabs, what: What, members: u32) -> Option<Self> {
        let count = Self::in_a_cell(what, members);
        let bytes = |size| slabs.cell_bytes(members, size) / count / LENGTH * LENGTH;
        let (short, middle) = (bytes(CellSize::Short), bytes(CellSize::Middle));
        (short >= SLOT).then_some(Self { count, short, middle })
    }

    /// How many there are in a cell.
    #[inline]
    pub(crate) fn in_a_cell(what: What, members: u32) -> usize {
        match what {
            // Nobody needs one for itself.
            What::Alltoallv | What::Alltoallw => (members as usize - 1).max(1),
            _ => 1,
        }
    }

    /// Slots in a cell.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Bytes of one in a short cell.
    #[inline]
    pub(super) fn short(&self) -> usize {
        self.short
    }

    /// Bytes of one in a middle cell.
    #[inline]
    pub(super) fn middle(&self) -> usize {
        self.middle
    }

    /// Bytes of a block that fits into a short cell.
    #[inline]
    pub(super) fn short_block(&self) -> usize {
        // A cell of one block that is full says that the block is elsewhere.
        self.short - if self.count == 1 { 1 } else { LENGTH }
    }

    /// Longest block that goes through cells.
    pub(crate) fn longest(&self) -> u64 {
        self.middle.max(self.short_block()) as u64
    }

    /// Where a block of so many bytes goes; `None`: in a message.
    #[inline]
    pub(super) fn size(&self, bytes: u64) -> Option<CellSize> {
        match bytes {
            _ if bytes <= self.short_block() as u64 => Some(CellSize::Short),
            _ if bytes <= self.middle as u64 => Some(CellSize::Middle),
            _ => None,
        }
    }

    /// Shortest block that is moved straight from memory to memory among so many members. `None`: none is. The same at
    /// all members.
    pub(crate) fn moved(&self, what: What, members: u32) -> Option<u64> {
        self.written(what, members).or_else(|| self.fetched(what, members))
    }

    /// Shortest block that its owner writes to the root of a gatherv.
    fn written(&self, what: What, members: u32) -> Option<u64> {
        let table = members as usize * ENTRY;
        let fits = members <= u64::BITS && table <= self.middle() && (self.middle() as u64) < COPIED;
        (what == What::Gatherv && fits).then_some(COPIED)
    }

    /// Shortest block that is read from its giver's memory.
    pub(super) fn fetched(&self, what: What, members: u32) -> Option<u64> {
        let word = if self.count() == 1 { size_of::<u64>() } else { LENGTH };
        let is_one = matches!(what, What::Scatterv | What::Alltoallv | What::Alltoallw);
        let fits = members <= u64::BITS && word + OFFER <= self.short() && (self.middle() as u64) < COPIED;
        (is_one && fits).then_some(COPIED)
    }
}
