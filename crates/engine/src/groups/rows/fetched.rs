// SPDX-License-Identifier: Apache-2.0
//! Long blocks of a scatterv, an alltoallv or an alltoallw: whoever takes one reads it from the memory of its giver,
//! who says in a cell where it is. In messages both would go to and fro between them once more.
//!
//! ```text
//!  short cell     behind the length of such a block: the transport's offer; zeros if it goes in a message
//!  middle cell    of who takes it: one byte for its giver, in the slot for a block; if no slot of the cell has a
//!                 block, it consists of such bytes
//! ```
//! A giver waits for that byte. It offers nothing to a member of which it expects a block in the middle cell, nor what
//! does not lie in one piece: that goes in a message afterwards, as does what could not be read. Both know it of each
//! block.
//!
//! Whoever gives does not know whether it is expected to: a member that expects another length says so with the byte,
//! and one that expects nothing leaves its rounds in a way that others see at once.

mod reading;

use isthmus_transport::slabs::Slab;

use crate::groups::unmoved::bit;

/// What became of a block: another length is expected; it has been read; it could not be.
const UNWANTED: u8 = 0;
const READ: u8 = 1;
const REFUSED: u8 = 2;

/// How far a member is with long blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fetching {
    /// The next member whose block is read, counted from this one on, and the end of them.
    next: u32,
    end: u32,
    /// A bit for each member: a block is offered to it; its block has been read; its block could not be.
    offered: u64,
    read: u64,
    refused: u64,
    /// The next member that is to say what became of its block.
    heard: u32,
    /// The member that is waited for has gone on without a word.
    silent: bool,
}

impl Fetching {
    /// Whether there may be blocks that are still to be read.
    #[inline]
    pub(super) fn is_pending(&self) -> bool {
        self.next < self.end
    }

    /// Whether nobody is still to say what became of a block.
    #[inline]
    pub(super) fn knows_all(&self) -> bool {
        self.offered & u64::MAX.checked_shl(self.heard).unwrap_or(0) == 0
    }

    /// The member whose block is to be read next.
    fn giver(&self, slab: &Slab) -> u32 {
        (slab.me + self.next) % slab.members
    }

    /// The next member that is to say what became of its block, if there is one.
    fn hears_of(&self) -> u32 {
        let left = self.offered & u64::MAX.checked_shl(self.heard).unwrap_or(0);
        left.trailing_zeros()
    }

    /// The byte for a member.
    pub(super) fn outcome(&self, of: u32) -> u8 {
        match bit(of) {
            of if self.read & of != 0 => READ,
            of if self.refused & of != 0 => REFUSED,
            _ => UNWANTED,
        }
    }
}
