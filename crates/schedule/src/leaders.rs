// SPDX-License-Identifier: Apache-2.0
//! Who meets in a reduce_scatter, and about what.

use crate::row::BlockRow;
use crate::script::Script;
use crate::step::Slice;
use crate::tree::Council;

/// The leaders' meeting: each gets the combined blocks of those it acts for.
pub(crate) struct Meeting<'a> {
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
