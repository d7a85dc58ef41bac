// SPDX-License-Identifier: Apache-2.0
//! Operations about which nothing is unusual, for the short ways of the room below: each buffer is one piece of memory,
//! the buffers do not touch each other, and no argument is wrong. `None`: the general way finds out what is.

use std::ffi::c_int;
use std::sync::OnceLock;

use isthmus_abi::PREDEFINED_HANDLES_END;
use isthmus_abi::handles as h;
use isthmus_core::collective::Plain;
use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_datatype::{Basic, Datatype};
use isthmus_engine::Short;
use isthmus_schedule::Operation;

use super::Place;
use super::arguments::Elements;
use super::reduction::{Operands, computes};
use crate::c::{Source, Target};
use crate::{check, datatype, op};

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
    let dense = |ty: Datatype| (ty.contiguous(2) == Some((0, 2 * ty.size()))).then(|| ty.size());
    let width = |handle| u8::try_from(dense(Datatype::of(Basic::from_handle(handle)?))?).ok();
    (0..PREDEFINED_HANDLES_END as u32)
        .map(|handle| width(handle).unwrap_or(0))
        .collect()
}

/// A buffer in one piece.
#[derive(Clone, Copy)]
struct Piece<B> {
    buffer: B,
    /// Where it begins behind the buffer's address.
    offset: i64,
    bytes: u64,
}

impl<B: Buffer> Piece<B> {
    /// Blocks of elements that lie in one piece.
    #[inline(always)]
    fn of(elements: &Elements<B>, blocks: usize) -> Option<Self> {
        let count = u64::try_from(elements.count)
            .ok()
            .filter(|&count| count <= 1 << 40)?
            .checked_mul(blocks as u64)?;
        let (offset, bytes) = match width(elements.datatype) {
            0 => datatype::known(elements.datatype)?.contiguous(count)?,
            width => (0, count * width),
        };
        let at = elements.buffer.address().wrapping_add_signed(offset);
        (bytes == 0 || check::is_memory(at)).then_some(Self {
            buffer: elements.buffer,
            offset: offset as i64,
            bytes,
        })
    }

    #[inline(always)]
    fn address(&self) -> usize {
        self.buffer.address().wrapping_add_signed(self.offset as isize)
    }
}

impl Piece<Source> {
    #[inline(always)]
    fn memory(&self) -> ReadMemory {
        self.buffer.offset(self.offset).memory(0, self.bytes as i64)
    }
}

impl Piece<Target> {
    #[inline(always)]
    fn memory(&self) -> WriteMemory {
        self.buffer.offset(self.offset).memory(0, self.bytes as i64)
    }
}

/// An address in the program.
trait Buffer: super::arguments::Memory {}
impl<B: super::arguments::Memory> Buffer for B {}

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
        (block * taken as u64 == take.bytes && (apart || block == 0)).then_some(Self { give, take, block })
    }
}

/// The root, if it is a rank.
#[inline(always)]
fn root(here: &Place, root: c_int) -> Option<u32> {
    u32::try_from(root).ok().filter(|&root| root < here.comm.size())
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
pub(super) fn bcast(here: &Place, data: &Elements<Target>, at: c_int) -> Option<Plain> {
    let root = root(here, at)?;
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
    here: &Place,
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
pub(super) fn gather(here: &Place, from: &Elements<Source>, into: &Elements<Target>, at: c_int) -> Option<Plain> {
    let root = root(here, at)?;
    if here.comm.rank() != root {
        let piece = Piece::of(from, 1).filter(|_| !from.is_in_place())?;
        return Some(moving(Operation::Gather, root, piece.bytes, Some(piece.memory()), None));
    }
    let sides = Sides::of(from, 1, into, here.size())?;
    let (give, take) = (sides.give.memory(), sides.take.memory());
    Some(moving(Operation::Gather, root, sides.block, Some(give), Some(take)))
}

#[inline(always)]
pub(super) fn scatter(here: &Place, from: &Elements<Source>, into: &Elements<Target>, at: c_int) -> Option<Plain> {
    let root = root(here, at)?;
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
pub(super) fn allreduce(here: &Place, operands: &Operands, n: i64) -> Option<Plain> {
    let sides = Sides::of(&operands.send(n), 1, &operands.receive(n), 1)?;
    let (give, take) = (sides.give.memory(), sides.take.memory());
    let plain = moving(Operation::Allreduce, 0, sides.block, Some(give), Some(take));
    reducing(here, operands, plain, n)
}

#[inline(always)]
pub(super) fn reduce(here: &Place, operands: &Operands, n: i64, at: c_int) -> Option<Plain> {
    let root = root(here, at)?;
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
pub(super) fn prefix(here: &Place, what: Operation, operands: &Operands, n: i64) -> Option<Plain> {
    let sides = Sides::of(&operands.send(n), 1, &operands.receive(n), 1)?;
    let takes = what == Operation::Scan || here.comm.rank() > 0;
    let take = takes.then(|| sides.take.memory());
    let plain = moving(what, 0, sides.block, Some(sides.give.memory()), take);
    reducing(here, operands, plain, n)
}

#[inline(always)]
pub(super) fn reduce_scatter_block(here: &Place, operands: &Operands, n: i64) -> Option<Plain> {
    let sides = Sides::of(&operands.send(n), here.size(), &operands.receive(n), 1)?;
    let (give, take) = (sides.give.memory(), sides.take.memory());
    let plain = moving(Operation::ReduceScatterBlock, 0, sides.block, Some(give), Some(take));
    reducing(here, operands, plain, n)
}

/// The same with what is computed: by the library, with elements one behind the other.
#[inline(always)]
fn reducing(here: &Place, operands: &Operands, mut plain: Plain, n: i64) -> Option<Plain> {
    let ty = datatype::known(operands.datatype)?;
    let reduction = op::find(operands.op, ty, operands.datatype).ok()?;
    let dense = ty.size() as i64 == ty.extent() && ty.contiguous(1).is_some_and(|(at, _)| at == 0);
    if dense && ty.size() > 0 && !reduction.calls_program {
        plain.short.reducer = Some((reduction.reducer, ty.size()));
    }
    plain.count = n as u64;
    if here.comm.asks_what_is_computed() {
        plain.computes = computes(operands).ok()?;
    }
    Some(plain)
}
