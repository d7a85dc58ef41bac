// SPDX-License-Identifier: Apache-2.0
//! Where the blocks of an operation lie in which they may differ in length: still in the arguments of the call, or
//! bound for an operation that goes on after it.

use isthmus_datatype::raw::{ReadMemory, UserMemory, WriteMemory};
use isthmus_schedule::Operation as What;
use isthmus_transport::slabs::{Given, Giving};

use crate::base::binding::{Binding, Blocks, BoundBuffer, Reducer, Unit};
use crate::base::block::Block;
use crate::groups::unmoved::Moving;

/// What a member does, as far as its buffers do not say it.
#[derive(Clone, Copy, Debug)]
pub struct Unequal {
    /// Gatherv, scatterv, allgatherv, alltoallv, alltoallw or reduce_scatter.
    pub what: What,
    /// The root, or 0.
    pub root: u32,
    /// Called with MPI_IN_PLACE; not alltoallv and alltoallw.
    pub in_place: bool,
    /// Of a reduce_scatter: units before the own block, and units of it.
    pub own: (u64, u64),
    /// As that of [`Short::reducer`](crate::Short::reducer).
    pub operator: u8,
}

impl Unequal {
    /// For whom the slots are that a member gives.
    #[inline]
    pub(crate) fn receivers(&self, members: u32) -> std::ops::Range<u32> {
        match self.what {
            What::Scatterv | What::Alltoallv | What::Alltoallw => 0..members,
            _ => 0..1,
        }
    }

    /// The slot of a member in the cell of another.
    #[inline]
    pub(crate) fn slot(&self, giver: u32, taker: u32) -> usize {
        match self.what {
            What::Alltoallv | What::Alltoallw => (taker - u32::from(taker > giver)) as usize,
            _ => 0,
        }
    }

    /// Whether what a member gives itself does not go through cells.
    #[inline]
    pub(crate) fn is_apart(&self) -> bool {
        matches!(self.what, What::Alltoallv | What::Alltoallw)
    }
}

/// What a reduction computes with elements that lie one behind the other.
#[derive(Clone)]
pub struct Arithmetic {
    /// The operation, which the library computes.
    reducer: Reducer,
    /// Bytes of an element.
    unit: u64,
}

impl Arithmetic {
    /// The operation, which the library computes, and bytes of an element.
    #[inline]
    pub fn new(reducer: Reducer, unit: u64) -> Self {
        Self { reducer, unit }
    }

    #[inline]
    pub(crate) fn parts(&self) -> (&Reducer, u64) {
        (&self.reducer, self.unit)
    }

    /// The same.
    #[inline]
    pub fn into_parts(self) -> (Reducer, u64) {
        (self.reducer, self.unit)
    }
}

/// Blocks that each lie in one piece, from the memory's origin to the end of its window, as the arguments of a call
/// say. A buffer that the operation does not use has empty ones.
pub trait Pieces {
    /// What goes to a member, or the only block of the send buffer.
    fn send(&self, to: u32) -> ReadMemory;
    /// Where the block of a member goes, or the only block of the receive buffer.
    fn receive(&self, from: u32) -> WriteMemory;
    /// Bytes of what goes to a member.
    fn sends(&self, to: u32) -> u64;
    /// Bytes of what comes from a member.
    fn receives(&self, from: u32) -> u64;
    /// Bytes of the longest of this member's blocks, or of those of all members where all know them.
    fn longest(&self) -> u64;
    /// What a reduction computes.
    fn computes(&self) -> Option<&Arithmetic> {
        None
    }
}

/// One of the two buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Send,
    Receive,
}

/// Blocks by number; a buffer of one block has it under every number.
pub(crate) trait Data {
    /// Bytes of a block.
    fn length(&self, side: Side, block: u32) -> u64;
    /// Bytes of the longest one, where each lies in one piece. `None`: that is not known.
    fn longest(&self) -> Option<u64>;
    /// Copies a block to where it goes in a cell.
    fn fill(&self, side: Side, block: u32, cell: &mut Giving<'_>, at: usize);
    /// A block of so many bytes, if it lies in one piece.
    fn whole(&self, side: Side, block: u32, bytes: u64) -> Option<ReadMemory>;
    /// Where a block of so many bytes is received, if that is one piece of the user's memory.
    fn target(&self, block: u32, bytes: u64) -> Option<UserMemory>;
    /// Replaces the first bytes of a block of the receive buffer.
    fn put(&self, block: u32, data: &Given<'_>, bytes: usize);
    /// Where a block of the receive buffer of so many bytes goes, if that is one piece.
    fn place(&self, block: u32, bytes: u64) -> Option<WriteMemory>;
    /// The first bytes of the receive buffer, if they lie in one piece.
    fn result(&self, bytes: usize) -> Option<WriteMemory>;
    /// Copies as many bytes of what this member sends itself to where it receives them.
    fn keep(&self, block: u32, bytes: usize);
    /// What a reduction computes.
    fn computes(&self) -> Option<&Arithmetic>;
    /// How long blocks are moved straight from memory to memory, if they are.
    #[inline]
    fn moving(&self) -> Option<&Moving> {
        None
    }
    /// The same for an operation that goes on.
    fn bound(self, step: Unequal, members: u32) -> Bound;
}

impl<P: Pieces> Data for &P {
    #[inline]
    fn length(&self, side: Side, block: u32) -> u64 {
        match side {
            Side::Send => self.sends(block),
            Side::Receive => self.receives(block),
        }
    }

    #[inline]
    fn longest(&self) -> Option<u64> {
        Some(P::longest(self))
    }

    #[inline]
    fn whole(&self, side: Side, block: u32, _: u64) -> Option<ReadMemory> {
        Some(match side {
            Side::Send => self.send(block),
            Side::Receive => self.receive(block).reading(),
        })
    }

    fn target(&self, block: u32, _: u64) -> Option<UserMemory> {
        self.receive(block).of_user()
    }

    #[inline]
    fn fill(&self, side: Side, block: u32, cell: &mut Giving<'_>, at: usize) {
        let memory = match side {
            Side::Send => self.send(block),
            Side::Receive => self.receive(block).reading(),
        };
        let (_, end) = memory.window();
        cell.copy(at as isize, &memory, 0, end as usize);
    }

    #[inline]
    fn put(&self, block: u32, data: &Given<'_>, bytes: usize) {
        data.copy_to(0, &mut self.receive(block), 0, bytes);
    }

    #[inline]
    fn place(&self, block: u32, _: u64) -> Option<WriteMemory> {
        Some(self.receive(block))
    }

    fn result(&self, bytes: usize) -> Option<WriteMemory> {
        Some(self.receive(0).part(0, bytes))
    }

    #[inline]
    fn keep(&self, block: u32, bytes: usize) {
        self.receive(block).copy(0, &self.send(block), 0, bytes);
    }

    fn computes(&self) -> Option<&Arithmetic> {
        P::computes(self)
    }

    fn bound(self, step: Unequal, members: u32) -> Bound {
        let blocks = |many: bool| if many { members } else { 1 };
        let (gives, takes) = shapes(step.what);
        let sends = (0..blocks(gives)).map(|to| self.send(to)).map(|memory| {
            let length = memory.window().1 as u64;
            Block::plain(memory, None, length)
        });
        let receives = (0..blocks(takes)).map(|from| self.receive(from)).map(|memory| {
            let length = memory.window().1 as u64;
            Block::plain(memory.reading(), Some(memory), length)
        });
        Bound {
            send: buffer(gives, sends),
            receive: buffer(takes, receives),
            computes: P::computes(self).cloned(),
            moving: None,
        }
    }
}

/// Whether the send buffer of an operation has a block for each member, and the receive buffer.
fn shapes(what: What) -> (bool, bool) {
    match what {
        What::Gatherv | What::Allgatherv => (false, true),
        What::Scatterv => (true, false),
        What::Alltoallv | What::Alltoallw => (true, true),
        _ => (false, false),
    }
}

fn buffer(many: bool, mut blocks: impl Iterator<Item = Block>) -> BoundBuffer {
    match many {
        true => BoundBuffer::many(blocks),
        false => blocks.next().map_or_else(BoundBuffer::none, BoundBuffer::one),
    }
}

/// Buffers that are bound.
pub(crate) struct Bound {
    send: BoundBuffer,
    receive: BoundBuffer,
    computes: Option<Arithmetic>,
    moving: Option<Moving>,
}

impl Bound {
    pub(crate) fn of(binding: &Binding) -> Self {
        Self {
            send: binding.send.clone(),
            receive: binding.receive.clone(),
            computes: Arithmetic::of(binding),
            moving: None,
        }
    }

    /// The same where long blocks are moved straight from memory to memory.
    pub(crate) fn moving(self, moving: Option<Moving>) -> Self {
        Self { moving, ..self }
    }

    fn side(&self, side: Side) -> &BoundBuffer {
        match side {
            Side::Send => &self.send,
            Side::Receive => &self.receive,
        }
    }
}

impl Arithmetic {
    fn of(binding: &Binding) -> Option<Self> {
        match &binding.unit {
            Unit::Byte => None,
            Unit::Element { reducer, .. } => Some(Self {
                reducer: reducer.clone(),
                unit: binding.unit_bytes(),
            }),
        }
    }
}

/// Where a block of a buffer begins, and its length.
fn block(buffer: &BoundBuffer, index: u32) -> (u64, u64) {
    match &buffer.blocks {
        Blocks::None => (0, 0),
        Blocks::One(block) => (0, block.length),
        Blocks::Many(blocks) => blocks
            .get(index as usize)
            .map_or((0, 0), |(start, block)| (*start, block.length)),
    }
}

impl Data for Bound {
    fn length(&self, side: Side, index: u32) -> u64 {
        block(self.side(side), index).1
    }

    fn longest(&self) -> Option<u64> {
        None
    }

    fn fill(&self, side: Side, index: u32, cell: &mut Giving<'_>, at: usize) {
        let buffer = self.side(side);
        let (from, length) = block(buffer, index);
        match buffer.readable(from, length) {
            Some(memory) => cell.copy(at as isize, &memory, 0, length as usize),
            None => cell.with_mut(at as isize, length as usize, |cell| buffer.read(from, cell)),
        }
    }

    fn whole(&self, side: Side, index: u32, bytes: u64) -> Option<ReadMemory> {
        let buffer = self.side(side);
        buffer.readable(block(buffer, index).0, bytes)
    }

    fn target(&self, index: u32, bytes: u64) -> Option<UserMemory> {
        self.receive.whole(block(&self.receive, index).0, bytes)?.of_user()
    }

    fn put(&self, index: u32, data: &Given<'_>, bytes: usize) {
        data.with(0, bytes, |data| self.receive.write(block(&self.receive, index).0, data));
    }

    fn place(&self, index: u32, bytes: u64) -> Option<WriteMemory> {
        self.receive.whole(block(&self.receive, index).0, bytes)
    }

    fn result(&self, bytes: usize) -> Option<WriteMemory> {
        self.receive.whole(0, bytes as u64)
    }

    fn keep(&self, index: u32, bytes: usize) {
        let ((from, _), (to, _)) = (block(&self.send, index), block(&self.receive, index));
        match self.send.readable(from, bytes as u64).filter(|_| bytes > 0) {
            Some(memory) => memory.with(0, bytes, |data| self.receive.write(to, data)),
            None => {
                let mut copy = vec![0; bytes];
                self.send.read(from, &mut copy);
                self.receive.write(to, &copy);
            }
        }
    }

    fn computes(&self) -> Option<&Arithmetic> {
        self.computes.as_ref()
    }

    fn moving(&self) -> Option<&Moving> {
        self.moving.as_ref()
    }

    fn bound(self, _: Unequal, _: u32) -> Self {
        self
    }
}
