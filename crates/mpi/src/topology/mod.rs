// SPDX-License-Identifier: Apache-2.0
//! Process topologies (MPI 5.0 chapter 8).

use std::ffi::c_int;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_core::topology::{Topology, balance};
use isthmus_lock::untrapped;

use crate::c::{Out, count};
use crate::call::{call, call_on};
use crate::comm;

mod cart;
mod dist_graph;
mod graph;

/// A length argument that says how much room an array has.
fn room(argument: &str, value: c_int) -> Result<usize> {
    Ok(count(argument, value)? as usize)
}

/// A length argument that must be at least what there is to give.
fn room_for(argument: &str, value: c_int, needed: usize) -> Result<usize> {
    let room = room(argument, value)?;
    if room < needed {
        fail!(
            abi::MPI_ERR_ARG,
            argument(argument),
            "is {room}, but there are {needed}"
        );
    }
    Ok(needed)
}

/// Writes numbers into an array.
fn put(out: Out<c_int>, argument: &str, numbers: impl ExactSizeIterator<Item = c_int>) -> Result<()> {
    let places = out.slice(argument, numbers.len())?;
    for (place, number) in places.iter_mut().zip(numbers) {
        *place = number;
    }
    Ok(())
}

/// A rank for the program.
fn rank_or(rank: Option<u32>, otherwise: c_int) -> c_int {
    rank.map_or(otherwise, |r| r as c_int)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Topo_test(comm: h::Comm, status: Out<c_int>) -> c_int {
    call_on("MPI_Topo_test", comm, || {
        let kind = match comm::find(comm)?.topology() {
            None => abi::MPI_UNDEFINED,
            Some(Topology::Cart(_)) => abi::MPI_CART,
            Some(Topology::Graph(_)) => abi::MPI_GRAPH,
            Some(Topology::DistGraph(_)) => abi::MPI_DIST_GRAPH,
        };
        status.set("status", kind)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Dims_create(nodes: c_int, n: c_int, dims: Out<c_int>) -> c_int {
    call("MPI_Dims_create", || {
        let n = room("ndims", n)?;
        let dims = dims.slice("dims", n)?;
        untrapped(|| balance(nodes, dims))
    })
}
