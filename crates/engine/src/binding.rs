// SPDX-License-Identifier: Apache-2.0
//! What the buffers of a plan are: from names and unit ranges to memory.

use std::fmt;
use std::sync::Arc;

use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_datatype::{Datatype, TypeError};
use isthmus_schedule::step::Plan;

/// Applies a reduction operation to whole elements as they lie in memory. Arguments: operand, target, number of elements,
/// operand is left. Both slices begin at the first byte of data of their first element (true lower bound), and end behind
/// the last byte of data of their last one; elements are an extent apart.
pub type Reducer = Arc<dyn Fn(&[u8], &mut [u8], u64, bool) + Send + Sync>;

/// Called when a plan has ended: another one for the same request, or the end.
pub type Next = Box<dyn FnOnce() -> Option<(Box<dyn Plan>, Binding)> + Send>;

/// What offsets and lengths in a plan count.
#[derive(Clone)]
pub enum Unit {
    /// Bytes of the packed stream of a buffer: operations that only move data.
    Byte,
    /// Elements of this datatype: reductions.
    Element {
        /// Type of the elements; all buffers hold them.
        datatype: Datatype,
        /// The operation.
        reducer: Reducer,
    },
}

impl fmt::Debug for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Byte => f.write_str("Byte"),
            Self::Element { datatype, .. } => write!(f, "Element of {} bytes", datatype.size()),
        }
    }
}

/// The memory behind [`Buffer::Send`](isthmus_schedule::step::Buffer::Send) and `Recv`.
#[derive(Debug)]
pub struct Binding {
    pub(crate) send: BoundBuffer,
    pub(crate) receive: BoundBuffer,
    pub(crate) unit: Unit,
}

impl Binding {
    /// For operations that only move data.
    pub fn bytes(send: BoundBuffer, receive: BoundBuffer) -> Self {
        Self { send, receive, unit: Unit::Byte }
    }

    /// For reductions; the buffers hold elements of `datatype` in one block each.
    pub fn elements(send: BoundBuffer, receive: BoundBuffer, datatype: Datatype, reducer: Reducer) -> Self {
        Self { send, receive, unit: Unit::Element { datatype, reducer } }
    }

    /// For operations without data (barrier).
    pub fn nothing() -> Self {
        Self::bytes(BoundBuffer::none(), BoundBuffer::none())
    }
}

/// A piece of a buffer: elements of one datatype.
#[derive(Clone, Debug)]
pub struct Block {
    pub(crate) read: ReadMemory,
    /// `None`: only for reading.
    pub(crate) write: Option<WriteMemory>,
    /// `None`: contiguous from the origin.
    pub(crate) datatype: Option<(Datatype, u64)>,
    pub(crate) length: u64,
}

impl Block {
    /// Elements that are only read.
    pub fn reading(memory: ReadMemory, datatype: &Datatype, count: u64) -> Result<Self, TypeError> {
        Self::new(memory, None, datatype, count)
    }

    /// Elements that are read and written.
    pub fn writing(memory: WriteMemory, datatype: &Datatype, count: u64) -> Result<Self, TypeError> {
        Self::new(memory.reading(), Some(memory), datatype, count)
    }

    fn new(read: ReadMemory, write: Option<WriteMemory>, datatype: &Datatype, count: u64) -> Result<Self, TypeError> {
        if let Some((offset, length)) = datatype.contiguous(count) {
            let (read, write) = (read.shifted(offset), write.map(|w| w.shifted(offset)));
            return Ok(Self { read, write, datatype: None, length });
        }
        Ok(Self { read, write, datatype: Some((datatype.clone(), count)), length: datatype.bytes(count)? })
    }

    /// Bytes of the packed stream.
    pub fn length(&self) -> u64 {
        self.length
    }
}

/// Blocks one behind the other: their packed streams make up the stream of the buffer.
#[derive(Clone, Debug)]
pub struct BoundBuffer {
    pub(crate) blocks: Blocks,
}

#[derive(Clone, Debug)]
pub(crate) enum Blocks {
    None,
    One(Block),
    /// Each with the byte of the stream at which it starts.
    Many(Arc<[(u64, Block)]>),
}

impl BoundBuffer {
    /// A buffer that the plan does not touch.
    pub fn none() -> Self {
        Self { blocks: Blocks::None }
    }

    /// One block.
    pub fn one(block: Block) -> Self {
        Self { blocks: Blocks::One(block) }
    }

    /// Several (the v and w collectives).
    pub fn many(blocks: impl IntoIterator<Item = Block>) -> Self {
        let mut start = 0;
        let placed = blocks.into_iter().map(|block| {
            let at = start;
            start += block.length;
            (at, block)
        });
        Self { blocks: Blocks::Many(placed.collect()) }
    }
}
