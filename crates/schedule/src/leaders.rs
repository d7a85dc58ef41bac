// SPDX-License-Identifier: Apache-2.0
//! Which leaders exchange blocks in a reduce_scatter, and which blocks.

use crate::row::BlockRow;
use crate::script::Script;
use crate::step::Slice;
use crate::tree::Council;

/// What the leaders exchange: each gets the combined blocks of those it acts for.
pub(crate) struct LeadersExchange<'a> {
    pub(crate) council: &'a Council,
    pub(crate) row: &'a BlockRow,
    /// All blocks, combined from those that the leader acts for.
    pub(crate) all: Slice,
}

/// Memory for so many units.
pub(crate) fn memory(script: &mut Script, length: u64) -> Slice {
    Slice {
        buffer: script.memory(length),
        offset: 0,
        length,
    }
}
