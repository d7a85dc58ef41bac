// SPDX-License-Identifier: Apache-2.0
//! Data at a target as a packed stream that is read and written from any byte on, however the memory is reached.

use std::sync::Arc;

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_datatype::raw::WriteMemory;
use isthmus_datatype::{Datatype, Packer, Unpacker};
use isthmus_engine::{Reach, Run};

use crate::error::unreached;
use crate::spot::Spot;

/// See the module.
pub(crate) enum Stream<'a> {
    /// One piece of memory that is mapped here.
    Piece(WriteMemory, isize),
    /// Several.
    Pieces(Box<(Packer, Unpacker)>),
    /// Memory of another process.
    Far {
        reach: Arc<dyn Reach>,
        address: u64,
        datatype: &'a Datatype,
        count: u64,
    },
}

impl<'a> Stream<'a> {
    pub(crate) fn new(spot: &Spot, datatype: &'a Datatype, count: u64) -> Result<Self> {
        Ok(match spot {
            Spot::Here(memory) => match datatype.contiguous(count) {
                Some((offset, _)) => Self::Piece(memory.clone(), offset),
                None => {
                    let packer = Packer::new(datatype, count, memory.reading())?;
                    Self::Pieces(Box::new((packer, Unpacker::new(datatype, count, memory.clone())?)))
                }
            },
            Spot::There(reach, address) => Self::Far {
                reach: reach.clone(),
                address: *address,
                datatype,
                count,
            },
            Spot::Far(_) => fail!(abi::MPI_ERR_INTERN, "memory on another node has no stream"),
        })
    }

    /// Reads bytes from byte `at` on.
    pub(crate) fn read(&mut self, at: u64, out: &mut [u8]) -> Result<()> {
        match self {
            Self::Piece(memory, offset) => memory.reading().read(*offset + at as isize, out),
            Self::Pieces(both) => {
                both.0.seek(at);
                both.0.pack(out);
            }
            Self::Far {
                reach,
                address,
                datatype,
                count,
            } => {
                let runs = runs(datatype, *count, *address, at, out.len() as u64);
                reach.read(&runs, out).map_err(|error| unreached(&error))?;
            }
        }
        Ok(())
    }

    /// Replaces bytes from byte `at` on.
    pub(crate) fn write(&mut self, at: u64, data: &[u8]) -> Result<()> {
        match self {
            Self::Piece(memory, offset) => memory.write(*offset + at as isize, data),
            Self::Pieces(both) => {
                both.1.seek(at);
                both.1.unpack(data);
            }
            Self::Far {
                reach,
                address,
                datatype,
                count,
            } => {
                let runs = runs(datatype, *count, *address, at, data.len() as u64);
                reach.write(&runs, data).map_err(|error| unreached(&error))?;
            }
        }
        Ok(())
    }
}

/// Where `length` bytes of the stream of `count` elements lie, from byte `skip` on, if the first element's origin is at
/// `address`.
fn runs(datatype: &Datatype, count: u64, address: u64, mut skip: u64, mut length: u64) -> Vec<Run> {
    if let Some((offset, _)) = datatype.contiguous(count) {
        return vec![(
            address.wrapping_add_signed(offset as i64).wrapping_add(skip),
            length as usize,
        )];
    }
    let mut all: Vec<Run> = Vec::new();
    let size = datatype.size();
    while length > 0 && size > 0 {
        let (element, within) = (skip / size, skip % size);
        let take = length.min(size - within);
        let origin = address.wrapping_add((element as i64).wrapping_mul(datatype.extent()) as u64);
        datatype.runs(within, take, &mut |at, bytes| {
            let start = origin.wrapping_add_signed(at);
            match all.last_mut() {
                Some((first, before)) if first.wrapping_add(*before as u64) == start => *before += bytes as usize,
                _ => all.push((start, bytes as usize)),
            }
        });
        (skip, length) = (skip + take, length - take);
    }
    all
}

#[cfg(test)]
mod tests {
    use isthmus_datatype::Basic;

    use super::*;

    #[test]
    fn runs_of_several_elements_follow_their_extent() {
        let int = Datatype::of(Basic::Int32);
        assert_eq!(runs(&int, 10, 1000, 8, 12), [(1008, 12)]);
        let vector = Datatype::vector(2, 1, 3, &int).expect("a type");
        // An element: bytes 0 to 4 and 12 to 16; the next begins at 16.
        assert_eq!(runs(&vector, 2, 1000, 0, 16), [(1000, 4), (1012, 8), (1028, 4)]);
        assert_eq!(runs(&vector, 2, 1000, 6, 4), [(1014, 4)]);
    }
}
