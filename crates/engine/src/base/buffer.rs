// SPDX-License-Identifier: Apache-2.0
//! User memory with a datatype: what a message is read from and written to.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use isthmus_datatype::raw::{OwnMemory, ReadMemory, WriteMemory};
use isthmus_datatype::{Basic, Datatype, Foreign, Packer, TypeError, Unpacker};

use crate::EngineError;
use crate::base::block::{self, Block};

/// Data to send.
#[derive(Clone)]
pub struct SendBuffer {
    pub(crate) form: SendForm,
    pub(crate) length: u64,
    /// Data in the common form: see [`SendBuffer::packed`].
    pub(crate) common: bool,
}

#[derive(Clone)]
pub(crate) enum SendForm {
    /// From the origin on.
    Contiguous(ReadMemory),
    /// The stream of a packer from a byte on.
    Typed(Box<Packer>, u64),
    /// The stream of several blocks from a byte on.
    Blocks(Arc<[(u64, Block)]>, u64),
    /// A copy of our own (buffered mode), and what it is charged to.
    Owned(
        Box<[u8]>,
        #[expect(dead_code, reason = "only dropped, with the copy")] Option<Charge>,
    ),
    /// Data of buffered mode before they are copied.
    Charged(Box<(Self, Charge)>),
}

/// Something that lives as long as the engine keeps a copy of a message: what the copy takes of an attached buffer.
pub type Charge = Arc<dyn Any + Send + Sync>;

/// Memory to receive into.
#[derive(Clone, Debug)]
pub struct ReceiveBuffer {
    pub(super) form: ReceiveForm,
    pub(super) length: u64,
    /// For messages of unlike processes.
    pub(super) elements: Option<Box<Elements>>,
}

#[derive(Clone, Debug)]
pub(crate) enum ReceiveForm {
    /// From the origin on.
    Contiguous(WriteMemory),
    /// The stream of an unpacker from a byte on.
    Typed(Box<Unpacker>, u64),
    /// The stream of several blocks from a byte on.
    Blocks(Arc<[(u64, Block)]>, u64),
}

impl SendBuffer {
    /// A message without data.
    pub const EMPTY: Self = Self {
        form: SendForm::Contiguous(ReadMemory::EMPTY),
        length: 0,
        common: false,
    };

    /// `length` bytes at `offset` from the origin: the fast way, no reference count is touched.
    /// [`Datatype::contiguous`] gives both numbers.
    #[inline]
    pub fn contiguous(memory: ReadMemory, offset: isize, length: u64) -> Self {
        let memory = if offset == 0 { memory } else { memory.shifted(offset) };
        Self {
            form: SendForm::Contiguous(memory),
            length,
            common: false,
        }
    }

    /// A message in memory of our own.
    pub fn owned(bytes: Box<[u8]>) -> Self {
        Self {
            length: bytes.len() as u64,
            form: SendForm::Owned(bytes, None),
            common: false,
        }
    }

    /// `count` elements; `memory` has their [window](Datatype::window).
    pub fn typed(memory: ReadMemory, datatype: &Datatype, count: u64) -> Result<Self, TypeError> {
        if let Some((offset, length)) = datatype.contiguous(count) {
            return Ok(Self::contiguous(memory, offset, length));
        }
        let packer = Packer::new(datatype, count, memory)?;
        Ok(Self {
            length: packer.size(),
            form: SendForm::Typed(Box::new(packer), 0),
            common: false,
        })
    }

    /// Says that the data were packed (MPI_PACKED) in a communicator whose members represent data differently: they are
    /// in the common form, whoever sends them.
    pub fn packed(mut self) -> Self {
        self.common = true;
        self
    }

    /// Bytes of the message.
    #[inline]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The same message for [`Mode::Buffered`](crate::Mode::Buffered): `charge` is dropped when no copy is kept (any
    /// more).
    pub fn charged(self, charge: Charge) -> Self {
        Self {
            form: SendForm::Charged(Box::new((self.form, charge))),
            length: self.length,
            common: self.common,
        }
    }

    /// Memory whose first `length` bytes are the message.
    #[inline]
    pub(crate) fn memory(&self) -> Option<ReadMemory> {
        match &self.form {
            SendForm::Contiguous(memory) => Some(memory.clone()),
            _ => None,
        }
    }

    /// Lends the bytes `at .. at + length` of the message, if they lie in one piece.
    #[inline]
    pub(crate) fn with_piece<R>(&self, at: u64, length: usize, look: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.form.with_piece(at, length, look)
    }

    /// Reads the bytes of the message from `at` on.
    pub(crate) fn read(&mut self, at: u64, out: &mut [u8]) {
        self.form.read(at, out);
    }

    /// A copy of the message.
    pub fn copied(mut self) -> OwnMemory {
        let copy = OwnMemory::new(0, self.length as isize);
        self.read_into(&copy);
        copy
    }

    /// Copies the message to the beginning of this memory.
    pub(crate) fn read_into(&mut self, memory: &OwnMemory) {
        let length = self.length as usize;
        memory.memory().with_mut(0, length, |bytes| self.read(0, bytes));
    }

    /// The same message, whose data are here: in one piece, out of which others may copy it.
    pub(crate) fn with_data(self, memory: ReadMemory) -> Self {
        Self {
            form: SendForm::Contiguous(memory),
            ..self
        }
    }

    /// The same message in memory of our own.
    pub fn into_owned(mut self) -> Self {
        self.own();
        self
    }

    /// Copies the data: from now on the program's memory is not read.
    pub(crate) fn own(&mut self) {
        if matches!(self.form, SendForm::Owned(..)) {
            return;
        }
        let mut bytes = vec![0; self.length as usize];
        self.read(0, &mut bytes);
        let nothing = SendForm::Owned(Box::default(), None);
        let charge = match std::mem::replace(&mut self.form, nothing) {
            SendForm::Charged(both) => Some(both.1),
            _ => None,
        };
        self.form = SendForm::Owned(bytes.into(), charge);
    }
}

impl SendForm {
    #[inline]
    fn with_piece<R>(&self, at: u64, length: usize, look: impl FnOnce(&[u8]) -> R) -> Option<R> {
        match self {
            Self::Contiguous(memory) => Some(memory.with(at as isize, length, look)),
            Self::Owned(bytes, _) => bytes.get(at as usize..at as usize + length).map(look),
            Self::Charged(both) => both.0.with_piece(at, length, look),
            Self::Typed(..) | Self::Blocks(..) => None,
        }
    }

    fn read(&mut self, at: u64, out: &mut [u8]) {
        match self {
            Self::Typed(packer, start) => {
                packer.seek(*start + at);
                packer.pack(out);
            }
            Self::Blocks(blocks, start) => block::read(blocks, *start + at, out),
            Self::Charged(both) => both.0.read(at, out),
            Self::Contiguous(memory) => memory.read(at as isize, out),
            Self::Owned(..) => {
                self.with_piece(at, out.len(), |piece| out.copy_from_slice(piece));
            }
        }
    }
}

impl fmt::Debug for SendBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SendBuffer of {} bytes", self.length)
    }
}

impl ReceiveBuffer {
    /// Room for a message without data.
    pub const EMPTY: Self = Self {
        form: ReceiveForm::Contiguous(WriteMemory::EMPTY),
        length: 0,
        elements: None,
    };

    /// `length` bytes at `offset` from the origin: the fast way.
    #[inline]
    pub fn contiguous(memory: WriteMemory, offset: isize, length: u64) -> Self {
        let memory = if offset == 0 { memory } else { memory.shifted(offset) };
        Self {
            form: ReceiveForm::Contiguous(memory),
            length,
            elements: None,
        }
    }

    /// `count` elements; `memory` has their [window](Datatype::window).
    pub fn typed(memory: WriteMemory, datatype: &Datatype, count: u64) -> Result<Self, TypeError> {
        if let Some((offset, length)) = datatype.contiguous(count) {
            return Ok(Self::contiguous(memory, offset, length));
        }
        let unpacker = Unpacker::new(datatype, count, memory)?;
        Ok(Self {
            length: unpacker.size(),
            form: ReceiveForm::Typed(Box::new(unpacker), 0),
            elements: None,
        })
    }

    /// Bytes that fit.
    #[inline]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Memory whose first `length` bytes are the message.
    #[inline]
    pub(crate) fn memory(&self) -> Option<WriteMemory> {
        match &self.form {
            ReceiveForm::Contiguous(memory) => Some(memory.clone()),
            _ => None,
        }
    }

    /// The same for a part of a message of `whole` bytes.
    pub(crate) fn write_part(&mut self, at: u64, data: &[u8], whole: u64) {
        match &mut self.form {
            ReceiveForm::Contiguous(memory) if whole > PAST_CACHES => memory.write_past_caches(at as isize, data),
            _ => self.write(at, data),
        }
    }

    /// Writes bytes of the message from `at` on; they must fit.
    #[inline]
    pub(crate) fn write(&mut self, at: u64, data: &[u8]) {
        match &mut self.form {
            ReceiveForm::Contiguous(memory) => memory.write(at as isize, data),
            ReceiveForm::Typed(unpacker, start) => {
                unpacker.seek(*start + at);
                unpacker.unpack(data);
            }
            ReceiveForm::Blocks(blocks, start) => block::write(blocks, *start + at, data),
        }
    }
}

/// Longer messages do not stay in a core's caches beside what they came from: they are written past them.
const PAST_CACHES: u64 = 512 << 10;

/// Bytes that go through memory in between in one go, where neither side lies in one piece: they stay in the first
/// caches.
const PIECE: usize = 32 << 10;

/// Copies the first `length` bytes of a message into a receive buffer; `chunk` is memory to work with.
pub(crate) fn transfer(from: &mut SendBuffer, to: &mut ReceiveBuffer, length: u64, chunk: &mut [u8]) {
    if let (SendForm::Contiguous(from), ReceiveForm::Contiguous(to)) = (&from.form, &mut to.form) {
        return to.copy(0, from, 0, length as usize);
    }
    if let Some(()) = from.with_piece(0, length as usize, |piece| to.write(0, piece)) {
        return;
    }
    if let ReceiveForm::Contiguous(memory) = &mut to.form {
        return memory.with_mut(0, length as usize, |out| from.read(0, out));
    }
    let mut at = 0;
    while at < length {
        let take = chunk.len().min(PIECE).min((length - at) as usize);
        from.read(at, &mut chunk[..take]);
        to.write(at, &chunk[..take]);
        at += take as u64;
    }
}

/// What a receive buffer is made of.
#[derive(Clone, Debug)]
pub(crate) struct Elements {
    /// With the window of the elements.
    pub(super) memory: WriteMemory,
    pub(super) datatype: Datatype,
    pub(super) count: u64,
}

impl Elements {
    pub(crate) fn are_packed(&self) -> bool {
        self.datatype.signature().uniform() == Some(Basic::Packed)
    }
}

/// A message that is converted when it has arrived.
#[derive(Debug)]
pub(crate) enum Conversion {
    Whole {
        foreign: Foreign,
        /// The message as it was sent.
        bytes: OwnMemory,
        elements: Elements,
    },
    /// Cannot be converted: it is received as if there were no room for it.
    Refused(EngineError),
}
