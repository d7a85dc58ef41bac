// SPDX-License-Identifier: Apache-2.0
//! Buffers, counts and datatypes as the collective functions pass them.

use std::ffi::c_int;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_abi::{Aint, Count};
use isthmus_core::error::{About, Result};
use isthmus_core::fail;
use isthmus_datatype::Datatype;
use isthmus_engine::{Block, BoundBuffer};

use super::membership::Membership;
use crate::buffer::{reading, writing};
use crate::c::{In, Number, Source, Target, count};
use crate::check::Region;
use crate::datatype;

/// An array of counts or displacements: `int`, `MPI_Count` or `MPI_Aint`.
#[derive(Clone, Copy)]
pub(super) enum Numbers {
    Int(In<c_int>),
    Count(In<Count>),
    Aint(In<Aint>),
}

impl From<In<c_int>> for Numbers {
    fn from(array: In<c_int>) -> Self {
        Self::Int(array)
    }
}

impl From<In<Count>> for Numbers {
    fn from(array: In<Count>) -> Self {
        Self::Count(array)
    }
}

impl From<In<Aint>> for Numbers {
    fn from(array: In<Aint>) -> Self {
        Self::Aint(array)
    }
}

impl Numbers {
    /// The first `n`.
    pub(super) fn list(&self, argument: &str, n: usize) -> Result<List<'_>> {
        Ok(match self {
            Self::Int(array) => List::Int(array.slice(argument, n)?),
            Self::Count(array) => List::Count(array.slice(argument, n)?),
            Self::Aint(array) => List::Aint(array.slice(argument, n)?),
        })
    }

    /// The first `n`, which must not be negative.
    pub(super) fn counts(&self, argument: &str, n: usize) -> Result<Vec<u64>> {
        let list = self.list(argument, n)?;
        (0..n).map(|at| count(argument, list.at(at))).collect()
    }
}

/// Such an array where it lies.
#[derive(Clone, Copy)]
pub(super) enum List<'a> {
    Int(&'a [c_int]),
    Count(&'a [Count]),
    Aint(&'a [Aint]),
}

impl List<'_> {
    #[inline]
    pub(super) fn at(&self, index: usize) -> i64 {
        match self {
            Self::Int(list) => list[index].wide(),
            Self::Count(list) => list[index].wide(),
            Self::Aint(list) => list[index].wide(),
        }
    }
}

/// A buffer argument: one to read or one to write.
pub(super) trait Memory: Copy {
    fn address(self) -> usize;
    fn offset(self, bytes: i64) -> Self;
    fn block(self, n: u64, ty: &Datatype) -> Result<Block>;
}

impl Memory for Source {
    fn address(self) -> usize {
        Self::address(self)
    }
    fn offset(self, bytes: i64) -> Self {
        Self::offset(self, bytes)
    }
    fn block(self, n: u64, ty: &Datatype) -> Result<Block> {
        reading(self, n, ty)
    }
}

impl Memory for Target {
    fn address(self) -> usize {
        Self::address(self)
    }
    fn offset(self, bytes: i64) -> Self {
        Self::offset(self, bytes)
    }
    fn block(self, n: u64, ty: &Datatype) -> Result<Block> {
        writing(self, n, ty)
    }
}

/// Names of a buffer argument and its count, for messages.
pub(super) type Names = [&'static str; 2];

/// Name of the datatype argument that belongs to them.
fn datatype_of(names: Names) -> &'static str {
    match names {
        ["sendbuf", "sendcount" | "sendcounts"] => "sendtype",
        ["recvbuf", "recvcount" | "recvcounts"] => "recvtype",
        _ => "datatype",
    }
}

/// Elements of one datatype at an address: one block, or as many alike as there are processes.
#[derive(Clone, Copy)]
pub(super) struct Elements<B> {
    pub(super) names: Names,
    pub(super) buffer: B,
    pub(super) count: i64,
    pub(super) datatype: h::Datatype,
}

/// Blocks of unequal size, by rank.
#[derive(Clone, Copy)]
pub(super) struct Unequal<B> {
    pub(super) names: Names,
    pub(super) buffer: B,
    pub(super) counts: Numbers,
    pub(super) displacements: Numbers,
    pub(super) datatypes: Types,
}

/// Datatypes of unequal blocks.
#[derive(Clone, Copy)]
pub(super) enum Types {
    /// One for all; displacements count its extents.
    One(h::Datatype),
    /// One for each; displacements count bytes.
    Each(In<h::Datatype>),
}

/// Whether an address is MPI_IN_PLACE.
#[inline]
fn is_in_place(buffer: impl Memory) -> bool {
    buffer.address() == abi::MPI_IN_PLACE
}

fn not_in_place(buffer: impl Memory, name: &str) -> Result<()> {
    if is_in_place(buffer) {
        fail!(
            abi::MPI_ERR_BUFFER,
            argument(name),
            "is MPI_IN_PLACE, which this process must not give here"
        );
    }
    Ok(())
}

impl<B: Memory> Elements<B> {
    fn parts(&self) -> Result<(u64, &'static Datatype)> {
        Ok((
            count(self.names[1], self.count)?,
            datatype::find(self.datatype).about(datatype_of(self.names))?,
        ))
    }

    #[inline]
    pub(super) fn is_in_place(&self) -> bool {
        is_in_place(self.buffer)
    }

    /// Bytes of one block's packed stream as it travels.
    pub(super) fn bytes(&self, member: &Membership) -> Result<u64> {
        let (count, ty) = self.parts()?;
        member.bytes(ty, count)
    }

    /// `blocks` blocks, one behind the other.
    pub(super) fn bind(&self, blocks: usize) -> Result<BoundBuffer> {
        not_in_place(self.buffer, self.names[0])?;
        let (count, ty) = self.parts()?;
        Ok(BoundBuffer::one(
            self.buffer.block(total(count, blocks)?, ty).about(self.names[0])?,
        ))
    }

    /// As [`Elements::bind`], or no buffer if the argument is MPI_IN_PLACE.
    pub(super) fn bind_unless_in_place(&self, blocks: usize) -> Result<BoundBuffer> {
        if self.is_in_place() {
            return Ok(BoundBuffer::none());
        }
        self.bind(blocks)
    }

    /// What `blocks` blocks hold, for checks.
    pub(super) fn region(&self, blocks: usize) -> Result<Region<'static>> {
        let (count, datatype) = self.parts()?;
        Ok(Region {
            argument: self.names[0],
            address: self.buffer.address(),
            count: total(count, blocks)?,
            datatype,
        })
    }
}

fn total(count: u64, blocks: usize) -> Result<u64> {
    match count.checked_mul(blocks as u64) {
        Some(total) => Ok(total),
        None => fail!(
            abi::MPI_ERR_COUNT,
            "{blocks} blocks of {count} elements are more than can be addressed"
        ),
    }
}

/// One of unequal blocks.
struct UnequalBlock {
    count: u64,
    bytes: u64,
    /// Bytes from the start of the buffer.
    at: i64,
    datatype: &'static Datatype,
}

impl<B: Memory> Unequal<B> {
    #[inline]
    pub(super) fn is_in_place(&self) -> bool {
        is_in_place(self.buffer)
    }

    /// Counts and displacements.
    #[inline]
    pub(super) fn lists(&self, blocks: usize) -> Result<(List<'_>, List<'_>)> {
        let displacements = match self.names[0] {
            "sendbuf" => "sdispls",
            _ => "rdispls",
        };
        Ok((
            self.counts.list(self.names[1], blocks)?,
            self.displacements.list(displacements, blocks)?,
        ))
    }

    /// Reads the arrays; the buffer is bound only if it is not MPI_IN_PLACE.
    pub(super) fn read(&self, member: &Membership, blocks: usize) -> Result<UnequalBlocks<B>> {
        let (counts, displacements) = self.lists(blocks)?;
        let argument = match self.datatypes {
            Types::One(_) => datatype_of(self.names),
            Types::Each(_) if self.names[0] == "sendbuf" => "sendtypes",
            Types::Each(_) => "recvtypes",
        };
        let types = match &self.datatypes {
            Types::One(handle) => OfBlocks::One(datatype::find(*handle).about(argument)?),
            Types::Each(handles) => OfBlocks::Each(handles.slice(argument, blocks)?),
        };
        let part = |block: usize| {
            let count = count(self.names[1], counts.at(block))?;
            let (datatype, unit) = match &types {
                OfBlocks::One(datatype) => (*datatype, datatype.extent()),
                // No elements of no datatype are accepted: programs that leave out neighbours write that.
                OfBlocks::Each(handles) if handles[block] == h::MPI_DATATYPE_NULL && count == 0 => {
                    (datatype::find(h::MPI_BYTE)?, 1)
                }
                OfBlocks::Each(handles) => (datatype::find(handles[block]).about(argument)?, 1),
            };
            let displacement = displacements.at(block);
            let Some(at) = displacement.checked_mul(unit) else {
                fail!(
                    abi::MPI_ERR_ARG,
                    "the displacement {displacement} leaves the address space"
                )
            };
            Ok(UnequalBlock {
                count,
                bytes: member.bytes(datatype, count)?,
                at,
                datatype,
            })
        };
        Ok(UnequalBlocks {
            name: self.names[0],
            buffer: self.buffer,
            parts: (0..blocks).map(part).collect::<Result<_>>()?,
        })
    }
}

/// The datatypes of blocks: displacements count extents of the only one, or bytes.
enum OfBlocks<'a> {
    One(&'static Datatype),
    Each(&'a [h::Datatype]),
}

/// Unequal blocks whose arrays have been read.
pub(super) struct UnequalBlocks<B> {
    name: &'static str,
    buffer: B,
    parts: Vec<UnequalBlock>,
}

impl<B: Memory> UnequalBlocks<B> {
    /// Bytes of the packed stream of each block as it travels.
    pub(super) fn sizes(&self) -> impl Iterator<Item = u64> + '_ {
        self.parts.iter().map(|part| part.bytes)
    }

    /// The blocks in order of rank, each where its displacement says.
    pub(super) fn bind(&self) -> Result<BoundBuffer> {
        not_in_place(self.buffer, self.name)?;
        let block = |part: &UnequalBlock| {
            let block = self.buffer.offset(part.at).block(part.count, part.datatype);
            block.about(self.name)
        };
        let bound: Result<Vec<Block>> = self.parts.iter().map(block).collect();
        Ok(BoundBuffer::many(bound?))
    }

    /// What the block of a rank holds, for checks.
    pub(super) fn region(&self, rank: usize) -> Option<Region<'static>> {
        self.parts.get(rank).map(|part| Region {
            argument: self.name,
            address: self.buffer.offset(part.at).address(),
            count: part.count,
            datatype: part.datatype,
        })
    }
}
