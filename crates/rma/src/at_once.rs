// SPDX-License-Identifier: Apache-2.0
//! Operations on bytes that lie in one piece in mapped memory, done without a closer look: false tells that one is
//! needed, and that nothing was done.

use isthmus_core::world::WindowCount;
use isthmus_datatype::Basic;
use isthmus_datatype::op::{Predefined, Spacing};
use isthmus_datatype::raw::{ReadMemory, WriteMemory};

use crate::data::Piece;
use crate::elements::{known_on, takes_swaps};
use crate::locks::blocks;
use crate::target;
use crate::window::Window;

/// The process that an operation goes to, and how far behind the beginning of its part, if it may go there now without
/// more ado; `None`: that takes a closer look.
#[inline]
fn allowed(window: &Window, piece: &Piece) -> Option<(u32, u64)> {
    let rank = u32::try_from(piece.rank).ok()?;
    if rank as usize >= window.parts.count() || !window.epochs.allow(rank, false) {
        return None;
    }
    let part = window.parts.get(rank);
    let first = u64::try_from(piece.disp).ok()?.checked_mul(part.unit)?;
    let start = first.checked_add_signed(piece.offset as i64)?;
    if start.checked_add(piece.length)? > part.size {
        return None;
    }
    Some((rank, start))
}

/// Memory of a process that this one reaches by load and store, if operations may go there now without more ado, and
/// how far behind the beginning of the process's part it is; `None`: that takes a closer look.
#[inline]
fn at_hand(window: &Window, piece: &Piece) -> Option<(WriteMemory, u64)> {
    let (rank, start) = allowed(window, piece)?;
    Some((target::at_hand(window, rank, start, piece.length)?, start))
}

/// Whether an operation that may be called moves nothing: then it is over, wherever it goes.
#[inline]
fn is_over(window: &Window, piece: &Piece) -> bool {
    piece.length == 0 && allowed(window, piece).is_some()
}

/// MPI_Put.
#[inline]
pub fn put_at_once(window: &Window, data: &ReadMemory, to: &Piece) -> bool {
    let Some((mut there, _)) = at_hand(window, to).filter(|_| to.length > 0) else {
        return is_over(window, to);
    };
    window.counted.add(WindowCount::Put, to.length);
    there.copy(0, data, 0, to.length as usize);
    true
}

/// MPI_Get.
#[inline]
pub fn get_at_once(window: &Window, into: &mut WriteMemory, from: &Piece) -> bool {
    let Some((there, _)) = at_hand(window, from).filter(|_| from.length > 0) else {
        return is_over(window, from);
    };
    window.counted.add(WindowCount::Get, from.length);
    into.copy(0, &there.reading(), 0, from.length as usize);
    true
}

/// Does something to elements of one block under its lock, if nobody has that.
#[inline]
fn alone(window: &Window, piece: &Piece, act: impl FnOnce(WriteMemory)) -> bool {
    let Some((there, start)) = at_hand(window, piece).filter(|_| piece.length > 0) else {
        return false;
    };
    let which = blocks(piece.rank as u32, start, start + piece.length);
    let locks = window.store.blocks();
    if !which.is_power_of_two() || !locks.enter(which.trailing_zeros(), window.comm.rank()) {
        return false;
    }
    act(there);
    locks.leave(which);
    window.counted.add(WindowCount::Accumulate, piece.length);
    true
}

/// MPI_Accumulate and, with memory for what was there, MPI_Get_accumulate and MPI_Fetch_and_op, of elements of this
/// type. MPI_NO_OP reads no data.
#[inline]
pub fn accumulate_at_once(
    window: &Window,
    operation: Predefined,
    basic: Basic,
    data: &ReadMemory,
    before: Option<&mut WriteMemory>,
    piece: &Piece,
) -> bool {
    let Some(kernel) = known_on(operation, basic) else {
        return false;
    };
    let length = piece.length as usize;
    alone(window, piece, |mut there| {
        if let Some(before) = before {
            before.copy(0, &there.reading(), 0, length);
        }
        match operation {
            Predefined::NoOp => {}
            Predefined::Replace => there.copy(0, data, 0, length),
            _ => there.combine(length, data, |operands, target| {
                kernel.apply(Spacing::Packed, operands, target, false);
            }),
        }
    })
}

/// MPI_Compare_and_swap of an element of this type: `new` takes the place of `old`.
#[inline]
pub fn swap_at_once(
    window: &Window,
    basic: Basic,
    new: &ReadMemory,
    old: &ReadMemory,
    before: &mut WriteMemory,
    piece: &Piece,
) -> bool {
    const MOST: usize = 16;
    let size = piece.length as usize;
    if !takes_swaps(basic) || size > MOST {
        return false;
    }
    // All three may be the same memory of the program.
    let (mut wanted, mut found) = ([0; MOST], [0; MOST]);
    old.read(0, &mut wanted[..size]);
    alone(window, piece, |mut there| {
        there.reading().read(0, &mut found[..size]);
        if found == wanted {
            there.copy(0, new, 0, size);
        }
        before.write(0, &found[..size]);
    })
}
