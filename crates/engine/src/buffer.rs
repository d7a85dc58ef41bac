// SPDX-License-Identifier: Apache-2.0
//! User memory with a datatype: what a message is read from and written to.

use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_datatype::{Datatype, Packer, TypeError, Unpacker};

/// Data to send.
#[derive(Clone, Debug)]
pub struct SendBuffer {
    pub(crate) form: SendForm,
    pub(crate) length: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum SendForm {
    /// From the origin on.
    Contiguous(ReadMemory),
    Typed(Box<Packer>),
}

/// Memory to receive into.
#[derive(Debug)]
pub struct ReceiveBuffer {
    pub(crate) form: ReceiveForm,
    pub(crate) length: u64,
}

#[derive(Debug)]
pub(crate) enum ReceiveForm {
    /// From the origin on.
    Contiguous(WriteMemory),
    Typed(Box<Unpacker>),
}

impl SendBuffer {
    /// A message without data.
    pub const EMPTY: Self = Self { form: SendForm::Contiguous(ReadMemory::EMPTY), length: 0 };

    /// `length` bytes at `offset` from the origin: the fast way, no reference count is touched.
    /// [`Datatype::contiguous`] gives both numbers.
    #[inline]
    pub fn contiguous(memory: ReadMemory, offset: isize, length: u64) -> Self {
        let memory = if offset == 0 { memory } else { memory.shifted(offset) };
        Self { form: SendForm::Contiguous(memory), length }
    }

    /// `count` elements; `memory` has their [window](Datatype::window).
    pub fn typed(memory: ReadMemory, datatype: &Datatype, count: u64) -> Result<Self, TypeError> {
        if let Some((offset, length)) = datatype.contiguous(count) {
            return Ok(Self::contiguous(memory, offset, length));
        }
        let packer = Packer::new(datatype, count, memory)?;
        Ok(Self { length: packer.size(), form: SendForm::Typed(Box::new(packer)) })
    }

    /// Bytes of the message.
    pub fn length(&self) -> u64 {
        self.length
    }
}

impl ReceiveBuffer {
    /// Room for a message without data.
    pub const EMPTY: Self = Self { form: ReceiveForm::Contiguous(WriteMemory::EMPTY), length: 0 };

    /// `length` bytes at `offset` from the origin: the fast way.
    #[inline]
    pub fn contiguous(memory: WriteMemory, offset: isize, length: u64) -> Self {
        let memory = if offset == 0 { memory } else { memory.shifted(offset) };
        Self { form: ReceiveForm::Contiguous(memory), length }
    }

    /// `count` elements; `memory` has their [window](Datatype::window).
    pub fn typed(memory: WriteMemory, datatype: &Datatype, count: u64) -> Result<Self, TypeError> {
        if let Some((offset, length)) = datatype.contiguous(count) {
            return Ok(Self::contiguous(memory, offset, length));
        }
        let unpacker = Unpacker::new(datatype, count, memory)?;
        Ok(Self { length: unpacker.size(), form: ReceiveForm::Typed(Box::new(unpacker)) })
    }

    /// Bytes that fit.
    pub fn length(&self) -> u64 {
        self.length
    }
}
