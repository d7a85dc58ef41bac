// SPDX-License-Identifier: Apache-2.0
//! Data of an operation: here, and at another process.

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_datatype::{Datatype, Packer, Unpacker};

/// In which epochs an operation may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// In all.
    Always,
    /// While the target is locked: operations that give a request.
    Locked,
}

/// Data here that go there. The memory has the window of the elements.
pub struct Source<'a> {
    /// Where they are.
    pub memory: ReadMemory,
    /// How many elements.
    pub count: u64,
    /// Of which type.
    pub datatype: &'a Datatype,
}

/// Memory here for what comes from there. It has the window of the elements.
pub struct Sink<'a> {
    /// Where it is.
    pub memory: WriteMemory,
    /// For how many elements.
    pub count: u64,
    /// Of which type.
    pub datatype: &'a Datatype,
}

/// Data at another process.
pub struct TargetData<'a> {
    /// The process.
    pub rank: i32,
    /// Displacement of the first element.
    pub disp: i64,
    /// How many elements.
    pub count: u64,
    /// Of which type.
    pub datatype: &'a Datatype,
}

/// Bytes at another process that lie in one piece.
pub struct Piece {
    /// The process.
    pub rank: i32,
    /// A displacement.
    pub disp: i64,
    /// From there to the bytes.
    pub offset: isize,
    /// How many.
    pub length: u64,
}

impl Source<'_> {
    /// Bytes of the data.
    pub(crate) fn bytes(&self) -> Result<u64> {
        Ok(self.datatype.bytes(self.count)?)
    }

    /// Copies the data, as a packed stream, to `out`, which they fill.
    pub(crate) fn take(&self, out: &mut [u8]) -> Result<()> {
        match self.datatype.contiguous(self.count) {
            Some((offset, _)) => self.memory.read(offset, out),
            None => {
                self.packer()?.pack(out);
            }
        }
        Ok(())
    }

    pub(crate) fn packer(&self) -> Result<Packer> {
        Ok(Packer::new(self.datatype, self.count, self.memory.clone())?)
    }
}

impl Sink<'_> {
    /// Bytes of the data.
    pub(crate) fn bytes(&self) -> Result<u64> {
        Ok(self.datatype.bytes(self.count)?)
    }

    /// Copies a packed stream, as long as the memory takes, there.
    pub(crate) fn put(&self, data: &[u8]) -> Result<()> {
        match self.datatype.contiguous(self.count) {
            Some((offset, _)) => self.memory.clone().write(offset, data),
            None => {
                self.unpacker()?.unpack(data);
            }
        }
        Ok(())
    }

    pub(crate) fn unpacker(&self) -> Result<Unpacker> {
        Ok(Unpacker::new(self.datatype, self.count, self.memory.clone())?)
    }
}

/// The data of one side of an operation.
pub(crate) struct Side {
    pub(crate) name: &'static str,
    pub(crate) bytes: u64,
}

impl Side {
    pub(crate) fn new(name: &'static str, bytes: u64) -> Self {
        Self { name, bytes }
    }
}

/// What comes from one side must fit into the other.
pub(crate) fn check_fits(from: &Side, into: &Side) -> Result<()> {
    if from.bytes <= into.bytes {
        return Ok(());
    }
    fail!(
        abi::MPI_ERR_TRUNCATE,
        "the {} data have {} bytes, the {} data have room for {}",
        from.name,
        from.bytes,
        into.name,
        into.bytes
    )
}
