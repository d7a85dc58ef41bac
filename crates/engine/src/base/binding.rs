// SPDX-License-Identifier: Apache-2.0
//! What the buffers of a plan are: from names and unit ranges to memory.

use std::fmt;
use std::sync::Arc;

use isthmus_datatype::raw::{OwnMemory, ReadMemory, WriteMemory};
use isthmus_datatype::{Basic, Datatype, Packer, Representation, Unpacker};
use isthmus_schedule::step::{Buffer, Plan, Slice, Together};

use isthmus_transport::native::{Element, Operator};

use crate::EngineError;
use crate::base::block::{self, Block};
use crate::base::buffer::{ReceiveBuffer, ReceiveForm, SendBuffer, SendForm};
use crate::base::mistake::wrong_length;

/// Applies a reduction operation to whole elements as they lie in memory. Arguments: operand, target, number of
/// elements, operand is left. Both slices hold all bytes of the elements' data and no others before or behind: they
/// begin at the first byte of data (true lower bound) of the first element or, if the extent is negative, of the last;
/// elements are an extent apart.
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
#[derive(Clone, Debug)]
pub struct Binding {
    pub(crate) send: BoundBuffer,
    pub(crate) receive: BoundBuffer,
    pub(crate) unit: Unit,
    pub(crate) calls_user: bool,
    /// What reductions compute, if a vendor MPI can.
    computes: Option<(Element, Operator)>,
    /// As that of [`Short::reducer`](crate::Short::reducer).
    operator: u8,
    /// Among processes that represent data differently: how data travel where the unit is a byte.
    pub(crate) form: Option<Representation>,
    /// Bytes of the operation, where all members must have said the same number.
    pub(crate) amount: Option<u64>,
    /// What the operation ends with, although it goes on to its end for the sake of others.
    pub(crate) mistake: Option<EngineError>,
}

impl Binding {
    /// For operations that only move data.
    pub fn bytes(send: BoundBuffer, receive: BoundBuffer) -> Self {
        Self {
            send,
            receive,
            unit: Unit::Byte,
            calls_user: false,
            computes: None,
            operator: 0,
            form: None,
            amount: None,
            mistake: None,
        }
    }

    /// For reductions; the buffers hold elements of `datatype` in one block each.
    pub fn elements(send: BoundBuffer, receive: BoundBuffer, datatype: Datatype, reducer: Reducer) -> Self {
        Self {
            send,
            receive,
            unit: Unit::Element { datatype, reducer },
            calls_user: true,
            computes: None,
            operator: 0,
            form: None,
            amount: None,
            mistake: None,
        }
    }

    /// The reducer never calls code of the user (predefined operations), so a transport's thread may run it while the
    /// user computes.
    pub fn on_any_thread(mut self) -> Self {
        self.calls_user = false;
        self
    }

    /// A reduction that computes this, which a vendor MPI can too.
    pub fn computing(mut self, what: Option<(Element, Operator)>) -> Self {
        self.computes = what;
        self
    }

    /// A reduction that all members know by this number, below 32.
    pub fn known_as(mut self, operator: u8) -> Self {
        self.operator = operator;
        self
    }

    /// The number by which all members know a reduction.
    pub fn operator(&self) -> u8 {
        self.operator
    }

    /// What a reduction computes, if a vendor MPI can.
    pub fn computes(&self) -> Option<(Element, Operator)> {
        self.computes
    }

    /// Among processes that represent data differently (with `Some`): bytes of a plan are bytes of this form, elements
    /// are converted by whoever receives them. Blocks must be [described](Block::described) then.
    pub fn in_form(mut self, form: Option<Representation>) -> Self {
        self.form = form;
        self
    }

    /// Bytes of the operation, where all members must have said the same number: one that said another one is told of.
    pub fn of_all(mut self, bytes: Option<u64>) -> Self {
        self.amount = bytes;
        self
    }

    /// The receive buffer is shorter or longer than what rank `root` says that it sends: nothing is written to it, and
    /// the operation ends with an error, once others have got what they get through this process.
    pub fn expecting(mut self, root: u32, says: u64, expected: u64) -> Self {
        let bytes = Datatype::of(Basic::Byte);
        let window = bytes.window(says).ok();
        let memory = window.and_then(|(low, high)| OwnMemory::try_new(low, high));
        let block = memory.and_then(|memory| Block::own(&memory, &bytes, says).ok());
        self.receive = block.map_or_else(BoundBuffer::none, BoundBuffer::one);
        self.mistake = Some(wrong_length(root, says, expected));
        self
    }

    /// Bytes of a unit in the packed stream.
    pub(crate) fn unit_bytes(&self) -> u64 {
        match &self.unit {
            Unit::Byte => 1,
            Unit::Element { datatype, .. } => datatype.size().max(1),
        }
    }

    /// Buffers as a step together needs them; `scratch` gives those of the plan.
    pub(crate) fn sides<'a>(
        &'a self,
        step: &Together,
        scratch: impl Fn(u8) -> Option<&'a BoundBuffer>,
    ) -> Result<Sides, EngineError> {
        let unit = self.unit_bytes();
        let reducer = match &self.unit {
            Unit::Byte => None,
            Unit::Element { reducer, .. } => Some(reducer.clone()),
        };
        let side = |slice: &Slice| {
            if slice.length == 0 {
                return Ok(None);
            }
            let buffer = match slice.buffer {
                Buffer::Send => Some(&self.send),
                Buffer::Recv => Some(&self.receive),
                Buffer::Scratch(i) => scratch(i),
            };
            let at = slice.offset.checked_mul(unit);
            let end = slice
                .offset
                .checked_add(slice.length)
                .and_then(|end| end.checked_mul(unit));
            match (buffer, at, end) {
                (Some(buffer), Some(at), Some(end)) if end <= buffer.length() => Ok(Some((buffer.clone(), at))),
                _ => Err(EngineError::Plan {
                    what: "a step together outside its buffers",
                }),
            }
        };
        Ok(Sides {
            give: side(&step.give)?,
            take: side(&step.take)?,
            unit,
            reducer,
            computes: self.computes,
            operator: self.operator,
        })
    }

    /// Whether elements of reductions lie one behind the other without gaps, and the library alone computes with them:
    /// then packed data and memory are the same.
    pub fn is_dense(&self) -> bool {
        match &self.unit {
            Unit::Byte => true,
            Unit::Element { datatype, .. } => {
                let size = datatype.size() as i64;
                !self.calls_user && size == datatype.extent() && datatype.contiguous(1).is_some_and(|(at, _)| at == 0)
            }
        }
    }

    /// For operations without data (barrier).
    pub fn nothing() -> Self {
        Self::bytes(BoundBuffer::none(), BoundBuffer::none())
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
        Self {
            blocks: Blocks::One(block),
        }
    }

    /// Several (the v and w collectives).
    pub fn many(blocks: impl IntoIterator<Item = Block>) -> Self {
        let mut start = 0;
        let placed = blocks.into_iter().map(|block| {
            let at = start;
            start += block.length;
            (at, block)
        });
        Self {
            blocks: Blocks::Many(placed.collect()),
        }
    }
}

impl BoundBuffer {
    /// Bytes of the stream.
    pub(crate) fn length(&self) -> u64 {
        match &self.blocks {
            Blocks::None => 0,
            Blocks::One(block) => block.length,
            Blocks::Many(blocks) => blocks.last().map_or(0, |(start, block)| start + block.length),
        }
    }

    /// Whether each block lies in one piece.
    pub(crate) fn is_plain(&self) -> bool {
        match &self.blocks {
            Blocks::None => true,
            Blocks::One(block) => block.datatype.is_none(),
            Blocks::Many(blocks) => blocks.iter().all(|(_, block)| block.datatype.is_none()),
        }
    }

    /// Bytes of the stream from `at` on, all of which there are.
    pub(crate) fn read(&self, at: u64, out: &mut [u8]) {
        match &self.blocks {
            Blocks::None => {}
            Blocks::One(block) => block.read(at, out),
            Blocks::Many(blocks) => block::read(blocks, at, out),
        }
    }

    /// Replaces bytes of the stream from `at` on, all of which there are.
    pub(crate) fn write(&self, at: u64, data: &[u8]) {
        match &self.blocks {
            Blocks::None => {}
            Blocks::One(block) => block.write(at, data),
            Blocks::Many(blocks) => block::write(blocks, at, data),
        }
    }

    /// The same for data that are not about to be read: see [`WriteMemory::write_past_caches`].
    pub(crate) fn write_past_caches(&self, at: u64, data: &[u8]) {
        match self.whole(at, data.len() as u64) {
            Some(mut memory) => memory.write_past_caches(0, data),
            None => self.write(at, data),
        }
    }

    /// Part of the stream as memory that can be written, if it lies in one piece.
    pub(crate) fn whole(&self, at: u64, length: u64) -> Option<WriteMemory> {
        let (block, at) = self.block(at, length)?;
        match &block.datatype {
            None => Some(
                block
                    .write
                    .as_ref()?
                    .part(isize::try_from(at).ok()?, usize::try_from(length).ok()?),
            ),
            Some(_) => None,
        }
    }

    /// The same to be read.
    pub(crate) fn readable(&self, at: u64, length: u64) -> Option<ReadMemory> {
        let (block, at) = self.block(at, length)?;
        match &block.datatype {
            None => Some(
                block
                    .read
                    .part(isize::try_from(at).ok()?, usize::try_from(length).ok()?),
            ),
            Some(_) => None,
        }
    }

    /// The one contiguous or typed block that holds the range and where in it the range begins.
    fn block(&self, at: u64, length: u64) -> Option<(&Block, u64)> {
        match &self.blocks {
            Blocks::None => None,
            Blocks::One(block) => Some((block, at)),
            Blocks::Many(blocks) => {
                let index = blocks.partition_point(|(start, block)| start + block.length <= at);
                let (start, block) = blocks.get(index)?;
                (at >= *start && at + length <= start + block.length).then(|| (block, at - start))
            }
        }
    }

    /// A range of the stream as data to send; `None` if it lies outside.
    pub(crate) fn sending(&self, at: u64, length: u64) -> Option<SendBuffer> {
        if length == 0 {
            return Some(SendBuffer::EMPTY);
        }
        if at.checked_add(length)? > self.length() {
            return None;
        }
        let Some((block, at)) = self.block(at, length) else {
            let Blocks::Many(blocks) = &self.blocks else {
                return None;
            };
            return Some(SendBuffer {
                form: SendForm::Blocks(blocks.clone(), at),
                length,
                common: false,
            });
        };
        match &block.datatype {
            None => Some(SendBuffer::contiguous(block.read.clone(), at as isize, length)),
            Some((datatype, count)) => {
                let packer = Packer::new(datatype, *count, block.read.clone()).ok()?;
                Some(SendBuffer {
                    form: SendForm::Typed(Box::new(packer), at),
                    length,
                    common: false,
                })
            }
        }
    }

    /// A range of the stream as memory to receive into; `None` if it lies outside or must not be written.
    pub(crate) fn receiving(&self, at: u64, length: u64) -> Option<ReceiveBuffer> {
        if length == 0 {
            return Some(ReceiveBuffer::EMPTY);
        }
        if at.checked_add(length)? > self.length() {
            return None;
        }
        let Some((block, at)) = self.block(at, length) else {
            let Blocks::Many(blocks) = &self.blocks else {
                return None;
            };
            return Some(ReceiveBuffer {
                form: ReceiveForm::Blocks(blocks.clone(), at),
                length,
                elements: None,
            });
        };
        let memory = block.write.clone()?;
        match &block.datatype {
            None => Some(ReceiveBuffer::contiguous(memory, at as isize, length)),
            Some((datatype, count)) => {
                let unpacker = Unpacker::new(datatype, *count, memory).ok()?;
                Some(ReceiveBuffer {
                    form: ReceiveForm::Typed(Box::new(unpacker), at),
                    length,
                    elements: None,
                })
            }
        }
    }

    /// The memory of whole elements of the only block: `first .. first + count`, from the lowest byte of data to behind
    /// the highest.
    pub(crate) fn elements(
        &self,
        datatype: &Datatype,
        first: u64,
        count: u64,
    ) -> Option<(ReadMemory, Option<WriteMemory>, usize)> {
        let Blocks::One(block) = &self.blocks else { return None };
        let at = i64::try_from(first).ok()?.checked_mul(datatype.extent())?;
        let span = i64::try_from(count.checked_sub(1)?)
            .ok()?
            .checked_mul(datatype.extent())?;
        // A negative extent puts later elements before earlier ones.
        let length = usize::try_from(span.checked_abs()?)
            .ok()?
            .checked_add(usize::try_from(datatype.true_extent()).ok()?)?;
        let skip = if block.datatype.is_some() {
            datatype.true_lower_bound()
        } else {
            0
        };
        let at = isize::try_from(at.checked_add(skip)?.checked_add(span.min(0))?).ok()?;
        Some((
            block.read.shifted(at),
            block.write.as_ref().map(|w| w.shifted(at)),
            length,
        ))
    }
}

/// A buffer from some byte on.
pub(crate) type Side = (BoundBuffer, u64);

/// The buffers of a step, as far as this member has them.
#[derive(Default)]
pub(crate) struct Sides {
    pub(crate) give: Option<Side>,
    pub(crate) take: Option<Side>,
    /// Bytes of an element.
    pub(crate) unit: u64,
    pub(crate) reducer: Option<Reducer>,
    /// What it computes, if a vendor MPI can.
    pub(crate) computes: Option<(Element, Operator)>,
    /// A number for it.
    pub(crate) operator: u8,
}
