// SPDX-License-Identifier: Apache-2.0
//! Collective communication (MPI 5.0 chapter 6): arguments become a call, its buffers a binding.
//!
//! * this file: what all share;
//! * `data`: operations that move data; `reduction`: operations that compute;
//! * `entry`: the functions that C calls: blocking, nonblocking (`I…`) and with large counts (`…_c`).

use std::ffi::c_int;

use isthmus_abi::Aint;
use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::comm::Comm;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_core::world::World;
use isthmus_datatype::Datatype;
use isthmus_engine::{Block, BoundBuffer, Request};

use crate::buffer::{reading, writing};
use crate::c::{In, Out, Source, Target, count};
use crate::call::call_on;
use crate::request::{self, Operation};
use crate::{comm, datatype, process};

mod data;
mod entry;
mod reduction;

/// A count or displacement argument: `int`, `MPI_Count` or `MPI_Aint`.
pub(crate) trait Number: Copy {
    fn wide(self) -> i64;
}

impl Number for c_int {
    fn wide(self) -> i64 {
        self.into()
    }
}

impl Number for i64 {
    fn wide(self) -> i64 {
        self
    }
}

impl Number for Aint {
    fn wide(self) -> i64 {
        self as i64
    }
}

/// A communicator with the world that it is part of.
struct Place {
    world: &'static World,
    comm: &'static Comm,
}

impl Place {
    fn of(handle: h::Comm) -> Result<Self> {
        Ok(Self {
            world: process::world()?,
            comm: comm::find(handle)?,
        })
    }

    fn size(&self) -> usize {
        self.comm.size() as usize
    }

    fn rank(&self) -> usize {
        self.comm.rank() as usize
    }

    /// Bytes of the packed stream of `count` elements as it travels in this communicator.
    fn bytes(&self, ty: &Datatype, count: u64) -> Result<u64> {
        Ok(ty.bytes(count)?)
    }

    /// The root argument of a rooted operation.
    fn root(&self, root: c_int) -> Result<u32> {
        match u32::try_from(root) {
            Ok(rank) if rank < self.comm.size() => Ok(rank),
            _ => fail!(
                abi::MPI_ERR_ROOT,
                "argument root is {root}, but {} has the ranks 0 to {}",
                self.comm.describe(),
                self.comm.size() - 1
            ),
        }
    }
}

/// Elements of one datatype at an address: one block, or as many as there are processes.
#[derive(Clone, Copy)]
struct Elements<B> {
    buffer: B,
    count: i64,
    datatype: h::Datatype,
}

/// Blocks of unequal size, by rank.
#[derive(Clone, Copy)]
struct Unequal<B, C: Copy, D: Copy> {
    buffer: B,
    counts: In<C>,
    displacements: In<D>,
    datatype: h::Datatype,
}

impl<B> Elements<B> {
    fn parts(&self) -> Result<(u64, &'static Datatype)> {
        Ok((count("count", self.count)?, datatype::find(self.datatype)?))
    }

    /// Bytes of one block's packed stream as it travels.
    fn bytes(&self, place: &Place) -> Result<u64> {
        let (count, ty) = self.parts()?;
        place.bytes(ty, count)
    }
}

impl Elements<Source> {
    fn is_in_place(&self) -> bool {
        self.buffer.address() == abi::MPI_IN_PLACE
    }

    /// `blocks` blocks, one behind the other.
    fn reading(&self, blocks: usize) -> Result<BoundBuffer> {
        let (count, ty) = self.parts()?;
        Ok(BoundBuffer::one(reading(self.buffer, total(count, blocks)?, ty)?))
    }
}

impl Elements<Target> {
    fn is_in_place(&self) -> bool {
        self.buffer.address() == abi::MPI_IN_PLACE
    }

    /// `blocks` blocks, one behind the other.
    fn writing(&self, blocks: usize) -> Result<BoundBuffer> {
        let (count, ty) = self.parts()?;
        Ok(BoundBuffer::one(writing(self.buffer, total(count, blocks)?, ty)?))
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

impl<B: Copy, C: Number, D: Number> Unequal<B, C, D> {
    /// Count and byte displacement of each block.
    fn blocks(&self, processes: usize, ty: &Datatype) -> Result<Vec<(u64, i64)>> {
        let counts = self.counts.slice("counts", processes)?;
        let displacements = self.displacements.slice("displs", processes)?;
        let place = |(c, d): (&C, &D)| {
            let Some(at) = d.wide().checked_mul(ty.extent()) else {
                fail!(
                    abi::MPI_ERR_ARG,
                    "the displacement {} leaves the address space",
                    d.wide()
                )
            };
            Ok((count("counts", c.wide())?, at))
        };
        counts.iter().zip(displacements).map(place).collect()
    }

    /// Bytes of the packed stream of each block as it travels.
    fn sizes(&self, place: &Place) -> Result<Vec<u64>> {
        let processes = place.size();
        let ty = datatype::find(self.datatype)?;
        let counts = self.counts.slice("counts", processes)?;
        counts
            .iter()
            .map(|c| place.bytes(ty, count("counts", c.wide())?))
            .collect()
    }

    fn bind(&self, processes: usize, block: impl Fn(B, i64, u64, &Datatype) -> Result<Block>) -> Result<BoundBuffer> {
        let ty = datatype::find(self.datatype)?;
        let blocks = self.blocks(processes, ty)?;
        let bound = blocks.into_iter().map(|(n, at)| block(self.buffer, at, n, ty));
        Ok(BoundBuffer::many(bound.collect::<Result<Vec<_>>>()?))
    }
}

impl<C: Number, D: Number> Unequal<Source, C, D> {
    fn reading(&self, processes: usize) -> Result<BoundBuffer> {
        self.bind(processes, |buffer, at, n, ty| reading(buffer.offset(at), n, ty))
    }
}

impl<C: Number, D: Number> Unequal<Target, C, D> {
    fn writing(&self, processes: usize) -> Result<BoundBuffer> {
        self.bind(processes, |buffer, at, n, ty| writing(buffer.offset(at), n, ty))
    }
}

/// Starts an operation and waits for it.
fn blocking(function: &'static str, comm: h::Comm, start: impl FnOnce(&Place) -> Result<Request>) -> c_int {
    call_on(function, comm, || {
        let place = Place::of(comm)?;
        place.world.wait(start(&place)?).map(drop)
    })
}

/// Starts an operation and gives its request.
fn nonblocking(
    function: &'static str,
    comm: h::Comm,
    request: Out<h::Request>,
    start: impl FnOnce(&Place) -> Result<Request>,
) -> c_int {
    call_on(function, comm, || {
        request.set("request", h::MPI_REQUEST_NULL)?;
        let started = start(&Place::of(comm)?)?;
        request.set("request", request::insert(comm, Operation::Other(started)))
    })
}
