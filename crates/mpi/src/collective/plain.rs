// SPDX-License-Identifier: Apache-2.0
//! Operations about which nothing is unusual, for the short ways of the room below: each buffer is one piece of memory,
//! the buffers do not touch each other, and no argument is wrong. `None`: the general way finds out what is.

use std::ffi::c_int;

use isthmus_core::collective::Plain;
use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_engine::{Arithmetic, Short};
use isthmus_schedule::Operation;

use super::arguments::Elements;
use super::membership::Membership;
use super::operands::{Operands, computes};
use super::pieces::Piece;
use crate::c::{Source, Target};

/// What a process gives and takes, one block or as many as there are processes; apart from each other, and equally long
/// blocks.
struct Sides {
    give: Piece<Source>,
    take: Piece<Target>,
    block: u64,
}

impl Sides {
    #[inline(always)]
    fn of(from: &Elements<Source>, given: usize, into: &Elements<Target>, taken: usize) -> Option<Self> {
        if from.is_in_place() || into.is_in_place() {
            return None;
        }
        let (give, take) = (Piece::of(from, given)?, Piece::of(into, taken)?);
        let block = if given == 1 {
            give.bytes
        } else {
            give.bytes / given as u64
        };
        let (read, write) = (give.address(), take.address());
        let apart = read.wrapping_add(give.bytes as usize) <= write || write.wrapping_add(take.bytes as usize) <= read;
        (block.checked_mul(taken as u64) == Some(take.bytes) && (apart || block == 0)).then_some(Self {
            give,
            take,
            block,
        })
    }
}

#[inline(always)]
fn moving(what: Operation, root: u32, block: u64, give: Option<ReadMemory>, take: Option<WriteMemory>) -> Plain {
    Plain {
        short: Short {
            what,
            root,
            block,
            give,
            take,
            reducer: None,
        },
        count: 0,
        computes: None,
        buffer: None,
    }
}

#[inline(always)]
pub(super) fn barrier() -> Plain {
    moving(Operation::Barrier, 0, 0, None, None)
}

#[inline(always)]
pub(super) fn bcast(here: &Membership, data: &Elements<Target>, at: c_int) -> Option<Plain> {
    let root = here.plain_root(at)?;
    let piece = Piece::of(data, 1).filter(|_| !data.is_in_place())?;
    let (memory, gives) = (piece.memory(), here.comm.rank() == root);
    let give = gives.then(|| memory.reading());
    let take = if gives { None } else { Some(memory.clone()) };
    Some(Plain {
        buffer: Some(memory),
        ..moving(Operation::Bcast, root, piece.bytes, give, take)
    })
}

/// Allgather and alltoall. `given`: blocks in the send buffer.
#[inline(always)]
pub(super) fn exchange(
    here: &Membership,
    what: Operation,
    from: &Elements<Source>,
    given: usize,
    into: &Elements<Target>,
) -> Option<Plain> {
    let sides = Sides::of(from, given, into, here.size())?;
    let (give, take) = (sides.give.memory(), sides.take.memory());
    Some(moving(what, 0, sides.block, Some(give), Some(take)))
}

#[inline(always)]
pub(super) fn gather(here: &Membership, from: &Elements<Source>, into: &Elements<Target>, at: c_int) -> Option<Plain> {
    let root = here.plain_root(at)?;
    if here.comm.rank() != root {
        let piece = Piece::of(from, 1).filter(|_| !from.is_in_place())?;
        return Some(moving(Operation::Gather, root, piece.bytes, Some(piece.memory()), None));
    }
    let sides = Sides::of(from, 1, into, here.size())?;
    let (give, take) = (sides.give.memory(), sides.take.memory());
    Some(moving(Operation::Gather, root, sides.block, Some(give), Some(take)))
}

#[inline(always)]
pub(super) fn scatter(here: &Membership, from: &Elements<Source>, into: &Elements<Target>, at: c_int) -> Option<Plain> {
    let root = here.plain_root(at)?;
    if here.comm.rank() != root {
        let piece = Piece::of(into, 1).filter(|_| !into.is_in_place())?;
        return Some(moving(
            Operation::Scatter,
            root,
            piece.bytes,
            None,
            Some(piece.memory()),
        ));
    }
    let sides = Sides::of(from, here.size(), into, 1)?;
    let (give, take) = (sides.give.memory(), sides.take.memory());
    Some(moving(Operation::Scatter, root, sides.block, Some(give), Some(take)))
}

#[inline(always)]
pub(super) fn allreduce(here: &Membership, operands: &Operands, n: i64) -> Option<Plain> {
    let sides = Sides::of(&operands.send(n), 1, &operands.receive(n), 1)?;
    let (give, take) = (sides.give.memory(), sides.take.memory());
    let plain = moving(Operation::Allreduce, 0, sides.block, Some(give), Some(take));
    reducing(here, operands, plain, n)
}

#[inline(always)]
pub(super) fn reduce(here: &Membership, operands: &Operands, n: i64, at: c_int) -> Option<Plain> {
    let root = here.plain_root(at)?;
    let from = operands.send(n);
    if here.comm.rank() != root {
        let piece = Piece::of(&from, 1).filter(|_| !from.is_in_place())?;
        let plain = moving(Operation::Reduce, root, piece.bytes, Some(piece.memory()), None);
        return reducing(here, operands, plain, n);
    }
    let sides = Sides::of(&from, 1, &operands.receive(n), 1)?;
    let (give, take) = (sides.give.memory(), sides.take.memory());
    let plain = moving(Operation::Reduce, root, sides.block, Some(give), Some(take));
    reducing(here, operands, plain, n)
}

/// Scan and exscan. (The first process has no result of an exscan, and its receive buffer no meaning.)
#[inline(always)]
pub(super) fn prefix(here: &Membership, what: Operation, operands: &Operands, n: i64) -> Option<Plain> {
    let sides = Sides::of(&operands.send(n), 1, &operands.receive(n), 1)?;
    let takes = what == Operation::Scan || here.comm.rank() > 0;
    let take = takes.then(|| sides.take.memory());
    let plain = moving(what, 0, sides.block, Some(sides.give.memory()), take);
    reducing(here, operands, plain, n)
}

#[inline(always)]
pub(super) fn reduce_scatter_block(here: &Membership, operands: &Operands, n: i64) -> Option<Plain> {
    let sides = Sides::of(&operands.send(n), here.size(), &operands.receive(n), 1)?;
    let (give, take) = (sides.give.memory(), sides.take.memory());
    let plain = moving(Operation::ReduceScatterBlock, 0, sides.block, Some(give), Some(take));
    reducing(here, operands, plain, n)
}

/// The same with what is computed.
#[inline(always)]
fn reducing(here: &Membership, operands: &Operands, mut plain: Plain, n: i64) -> Option<Plain> {
    plain.short.reducer = operands
        .arithmetic()?
        .map(Arithmetic::into_parts)
        .map(|(reducer, unit)| (reducer, unit, operands.number()));
    plain.count = n as u64;
    if here.comm.asks_what_is_computed() {
        plain.computes = computes(operands).ok()?;
    }
    Some(plain)
}
