// SPDX-License-Identifier: Apache-2.0
//! Pieces of user memory, each with a datatype of its own.

use isthmus_datatype::raw::{OwnMemory, ReadMemory, WriteMemory};
use isthmus_datatype::{Datatype, Packer, TypeError, Unpacker};

/// A piece of a buffer: elements of one datatype.
#[derive(Clone, Debug)]
pub struct Block {
    pub(crate) read: ReadMemory,
    /// `None`: only for reading.
    pub(crate) write: Option<WriteMemory>,
    /// `None`: contiguous from the origin.
    pub(crate) datatype: Option<(Datatype, u64)>,
    pub(crate) length: u64,
    /// Set where data may have to be converted.
    pub(crate) described: Option<Box<Described>>,
}

/// The elements of a block, whose memory is seen from their origin.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub(crate) read: ReadMemory,
    pub(crate) write: Option<WriteMemory>,
    pub(crate) datatype: Datatype,
    pub(crate) count: u64,
}

impl Block {
    /// Bytes one behind the other.
    pub(crate) fn plain(read: ReadMemory, write: Option<WriteMemory>, length: u64) -> Self {
        Self {
            read,
            write,
            datatype: None,
            length,
            described: None,
        }
    }

    /// Elements that are only read.
    pub fn reading(memory: ReadMemory, datatype: &Datatype, count: u64) -> Result<Self, TypeError> {
        Self::new(memory, None, datatype, count)
    }

    /// Elements that are read and written.
    pub fn writing(memory: WriteMemory, datatype: &Datatype, count: u64) -> Result<Self, TypeError> {
        Self::new(memory.reading(), Some(memory), datatype, count)
    }

    /// Elements in memory of the library's own, which lives as long as the block.
    pub fn own(memory: &OwnMemory, datatype: &Datatype, count: u64) -> Result<Self, TypeError> {
        Self::writing(memory.memory(), datatype, count)
    }

    fn new(read: ReadMemory, write: Option<WriteMemory>, datatype: &Datatype, count: u64) -> Result<Self, TypeError> {
        if let Some((offset, length)) = datatype.contiguous(count) {
            let (read, write) = (read.shifted(offset), write.map(|w| w.shifted(offset)));
            return Ok(Self::plain(read, write, length));
        }
        // Proves that packers can be made later.
        let length = Packer::new(datatype, count, read.clone())?.size();
        Ok(Self {
            read,
            write,
            datatype: Some((datatype.clone(), count)),
            length,
            described: None,
        })
    }

    /// Says which elements these are (those the block was made of), so that they can be converted.
    pub fn described(mut self, datatype: &Datatype, count: u64) -> Self {
        let offset = match &self.datatype {
            None => datatype.contiguous(count).map_or(0, |(offset, _)| offset),
            Some(_) => 0,
        };
        self.described = Some(Box::new(Described {
            read: self.read.shifted(-offset),
            write: self.write.as_ref().map(|w| w.shifted(-offset)),
            datatype: datatype.clone(),
            count,
        }));
        self
    }

    pub(crate) fn read(&self, at: u64, out: &mut [u8]) {
        match &self.datatype {
            None => self.read.read(at as isize, out),
            Some((datatype, count)) => {
                if let Ok(mut packer) = Packer::new(datatype, *count, self.read.clone()) {
                    packer.seek(at);
                    packer.pack(out);
                }
            }
        }
    }

    pub(crate) fn write(&self, at: u64, data: &[u8]) {
        let Some(mut memory) = self.write.clone() else { return };
        match &self.datatype {
            None => memory.write(at as isize, data),
            Some((datatype, count)) => {
                if let Ok(mut unpacker) = Unpacker::new(datatype, *count, memory) {
                    unpacker.seek(at);
                    unpacker.unpack(data);
                }
            }
        }
    }
}

/// Calls `each` for the parts of the blocks that make up the bytes `at .. at + length` of their stream:
/// block, first byte within it, range of the request.
fn parts(blocks: &[(u64, Block)], at: u64, length: usize, mut each: impl FnMut(&Block, u64, std::ops::Range<usize>)) {
    let end = at + length as u64;
    let first = blocks.partition_point(|(start, block)| start + block.length <= at);
    for (start, block) in &blocks[first..] {
        if *start >= end {
            break;
        }
        let from = at.max(*start);
        let to = end.min(start + block.length);
        if from < to {
            each(block, from - start, (from - at) as usize..(to - at) as usize);
        }
    }
}

pub(crate) fn read(blocks: &[(u64, Block)], at: u64, out: &mut [u8]) {
    parts(blocks, at, out.len(), |block, inside, range| {
        block.read(inside, &mut out[range])
    });
}

pub(crate) fn write(blocks: &[(u64, Block)], at: u64, data: &[u8]) {
    parts(blocks, at, data.len(), |block, inside, range| {
        block.write(inside, &data[range])
    });
}
