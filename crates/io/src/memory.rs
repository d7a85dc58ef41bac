// SPDX-License-Identifier: Apache-2.0
//! The program's side of an access: data in memory as one stream, in the representation of the file.

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_datatype::{Datatype, Foreign, Packer, Unpacker};

/// Memory for so many bytes that are converted.
pub fn room(length: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let there = usize::try_from(length).is_ok_and(|length| bytes.try_reserve_exact(length).is_ok());
    if !there {
        fail!(
            abi::MPI_ERR_NO_MEM,
            "there is no memory for the {length} bytes that the access converts; access them in parts"
        );
    }
    bytes.resize(length as usize, 0);
    Ok(bytes)
}

/// What is moved.
pub enum Buffer {
    /// To the file; and how many bytes the data have in memory.
    Write(Source, u64),
    /// From the file.
    Read(Target),
}

impl Buffer {
    /// What an access with it does.
    pub(crate) fn doing(&self) -> &'static str {
        match self {
            Self::Write(..) => "write",
            Self::Read(_) => "read",
        }
    }

    /// Bytes of the stream.
    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::Write(source, _) => source.length(),
            Self::Read(target) => target.length(),
        }
    }
}

/// Data to be written.
pub enum Source {
    /// In one piece.
    Piece(ReadMemory, u64),
    /// In several.
    Typed(Packer),
    /// Converted already.
    Bytes(Vec<u8>),
}

impl Source {
    /// `count` elements at `memory`, which has their window, as the file's representation has them.
    pub fn new(memory: ReadMemory, ty: &Datatype, count: u64, foreign: Option<&Foreign>) -> Result<Self> {
        if let Some(foreign) = foreign {
            let mut bytes = room(foreign.bytes(count)?)?;
            let mut packer = Packer::new(ty, count, memory)?;
            foreign.pack(0, count * ty.signature().elements(), &mut packer, &mut bytes)?;
            return Ok(Self::Bytes(bytes));
        }
        Ok(match ty.contiguous(count) {
            Some((_, 0)) => Self::Bytes(Vec::new()),
            Some((offset, length)) => Self::Piece(memory.part(offset, length as usize), length),
            None => Self::Typed(Packer::new(ty, count, memory)?),
        })
    }

    /// Bytes of the stream.
    pub fn length(&self) -> u64 {
        match self {
            Self::Piece(_, length) => *length,
            Self::Typed(packer) => packer.size(),
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Lends `length` bytes from `at` on, without a copy, if they lie in one piece.
    pub(crate) fn with_piece<R>(&self, at: u64, length: u64, look: impl FnOnce(&[u8]) -> R) -> Option<R> {
        match self {
            Self::Piece(memory, _) => Some(memory.with(at as isize, length as usize, look)),
            Self::Typed(_) => None,
            Self::Bytes(bytes) => bytes.get(at as usize..(at + length) as usize).map(look),
        }
    }

    /// Copies bytes from `at` on to `out`.
    pub(crate) fn read(&mut self, at: u64, out: &mut [u8]) {
        if let Self::Typed(packer) = self {
            packer.seek(at);
            packer.pack(out);
        } else {
            self.with_piece(at, out.len() as u64, |piece| out.copy_from_slice(piece));
        }
    }
}

/// Takes what was read of the stream of a file to its place in memory; gives the bytes there.
pub type Convert = Box<dyn FnMut(&[u8]) -> Result<u64> + Send>;

/// Room for data that are read.
pub enum Target {
    /// In one piece.
    Piece(WriteMemory, u64),
    /// In several.
    Typed(Unpacker),
    /// The stream of the file, to be converted at the end.
    Converted(Vec<u8>, Convert),
    /// As `Piece`, in memory of the library.
    Bytes(Vec<u8>),
}

impl Target {
    /// As [`Source::new`].
    pub fn new(memory: WriteMemory, ty: &Datatype, count: u64, foreign: Option<Foreign>) -> Result<Self> {
        if let Some(foreign) = foreign {
            let bytes = room(foreign.bytes(count)?)?;
            let mut unpacker = Unpacker::new(ty, count, memory)?;
            let convert = move |data: &[u8]| {
                let (whole, _) = foreign.basics_in(data.len() as u64);
                let used = foreign.bytes_of(whole) as usize;
                foreign.unpack(0, whole, &data[..used], &mut unpacker)?;
                Ok(foreign.local_bytes_of(whole))
            };
            return Ok(Self::Converted(bytes, Box::new(convert)));
        }
        Ok(match ty.contiguous(count) {
            Some((_, 0)) => Self::Bytes(Vec::new()),
            Some((offset, length)) => Self::Piece(memory.part(offset, length as usize), length),
            None => Self::Typed(Unpacker::new(ty, count, memory)?),
        })
    }

    /// Bytes of the stream.
    pub fn length(&self) -> u64 {
        match self {
            Self::Piece(_, length) => *length,
            Self::Typed(unpacker) => unpacker.size(),
            Self::Converted(bytes, _) | Self::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Gives the place of `length` bytes from `at` on to `change`, if it is one piece.
    pub(crate) fn with_piece<R>(&mut self, at: u64, length: u64, change: impl FnOnce(&mut [u8]) -> R) -> Option<R> {
        match self {
            Self::Piece(memory, _) => Some(memory.with_mut(at as isize, length as usize, change)),
            Self::Typed(_) => None,
            Self::Converted(bytes, _) | Self::Bytes(bytes) => {
                bytes.get_mut(at as usize..(at + length) as usize).map(change)
            }
        }
    }

    /// Stores bytes from `at` on.
    pub(crate) fn write(&mut self, at: u64, data: &[u8]) {
        if let Self::Typed(unpacker) = self {
            unpacker.seek(at);
            unpacker.unpack(data);
        } else {
            self.with_piece(at, data.len() as u64, |piece| piece.copy_from_slice(data));
        }
    }

    /// Ends a read of `bytes` bytes of the stream: converts what has to be; gives the bytes in the representation of
    /// this process.
    pub(crate) fn finish(&mut self, bytes: u64) -> Result<u64> {
        match self {
            Self::Converted(data, convert) => convert(&data[..bytes as usize]),
            _ => Ok(bytes),
        }
    }
}
