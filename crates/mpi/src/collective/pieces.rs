// SPDX-License-Identifier: Apache-2.0
//! Buffers in one piece: no argument is wrong, and data lie one behind the other.

use std::sync::OnceLock;

use isthmus_abi::PREDEFINED_HANDLES_END;
use isthmus_abi::handles as h;
use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_datatype::{Basic, Datatype};

use super::arguments::{Elements, Memory};
use crate::c::{Source, Target};
use crate::{check, datatype};

/// More bytes than any buffer has, so few that those of all processes fit 63 bits: what is longer goes the general way,
/// which knows what is wrong with it.
pub(super) const LONGEST: u64 = 1 << 47;

/// Bytes of an element of a predefined datatype without gaps; 0: it is another one.
#[inline(always)]
fn width(datatype: h::Datatype) -> u64 {
    static ALL: OnceLock<Box<[u8]>> = OnceLock::new();
    let all = match ALL.get() {
        Some(all) => all,
        None => ALL.get_or_init(all_widths),
    };
    all.get(datatype.0).copied().unwrap_or(0).into()
}

#[cold]
fn all_widths() -> Box<[u8]> {
    let width = |handle| u8::try_from(dense(&Datatype::of(Basic::from_handle(handle)?))?).ok();
    (0..PREDEFINED_HANDLES_END as u32)
        .map(|handle| width(handle).unwrap_or(0))
        .collect()
}

/// Bytes of an element of a datatype without gaps before, in, or behind it.
fn dense(ty: &Datatype) -> Option<u64> {
    (ty.contiguous(2) == Some((0, 2 * ty.size()))).then(|| ty.size())
}

/// The same of any datatype that may be used.
#[inline]
pub(super) fn width_of(datatype: h::Datatype) -> Option<u64> {
    match width(datatype) {
        0 => dense(datatype::known(datatype)?),
        width => Some(width),
    }
}

/// A buffer in one piece.
#[derive(Clone, Copy)]
pub(super) struct Piece<B> {
    pub(super) buffer: B,
    /// Where it begins behind the buffer's address.
    pub(super) offset: i64,
    pub(super) bytes: u64,
}

impl<B: Memory> Piece<B> {
    /// Blocks of elements that lie in one piece.
    #[inline(always)]
    pub(super) fn of(elements: &Elements<B>, blocks: usize) -> Option<Self> {
        let count = u64::try_from(elements.count).ok()?.checked_mul(blocks as u64)?;
        let (offset, bytes) = match width(elements.datatype) {
            0 => datatype::known(elements.datatype)?.contiguous(count)?,
            width => (0, count.checked_mul(width)?),
        };
        if bytes > LONGEST {
            return None;
        }
        let at = elements.buffer.address().wrapping_add_signed(offset);
        (bytes == 0 || check::is_memory(at)).then_some(Self {
            buffer: elements.buffer,
            offset: offset as i64,
            bytes,
        })
    }

    #[inline(always)]
    pub(super) fn address(&self) -> usize {
        self.buffer.address().wrapping_add_signed(self.offset as isize)
    }
}

impl Piece<Source> {
    #[inline(always)]
    pub(super) fn memory(&self) -> ReadMemory {
        self.buffer.offset(self.offset).memory(0, self.bytes as i64)
    }
}

impl Piece<Target> {
    #[inline(always)]
    pub(super) fn memory(&self) -> WriteMemory {
        self.buffer.offset(self.offset).memory(0, self.bytes as i64)
    }
}
