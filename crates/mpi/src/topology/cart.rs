// SPDX-License-Identifier: Apache-2.0
//! Cartesian topologies (MPI 5.0 section 8.5).

use std::ffi::c_int;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::create::topologies;
use isthmus_core::error::Result;
use isthmus_core::topology::Cart;

use super::{put, rank_or, room, room_for};
use crate::c::{In, Out, flag};
use crate::call::call_on;
use crate::comm::{find, give, intra};
use crate::process;

fn grid(comm: h::Comm, n: c_int, dims: In<c_int>, periods: In<c_int>) -> Result<Cart> {
    let n = room("ndims", n)?;
    let periods: Vec<bool> = periods.slice("periods", n)?.iter().map(|p| *p != 0).collect();
    Cart::new(intra(comm)?.size(), dims.slice("dims", n)?, &periods)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Cart_create(
    comm: h::Comm,
    n: c_int,
    dims: In<c_int>,
    periods: In<c_int>,
    reorder: c_int,
    new: Out<h::Comm>,
) -> c_int {
    call_on("MPI_Cart_create", comm, || {
        give(new, || {
            let cart = grid(comm, n, dims, periods)?;
            topologies::cart_create(process::world()?, find(comm)?, cart, reorder != 0)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Cart_map(
    comm: h::Comm,
    n: c_int,
    dims: In<c_int>,
    periods: In<c_int>,
    rank: Out<c_int>,
) -> c_int {
    call_on("MPI_Cart_map", comm, || {
        let cart = grid(comm, n, dims, periods)?;
        let mapped = topologies::cart_map(process::world()?, find(comm)?, &cart);
        rank.set("newrank", rank_or(mapped, abi::MPI_UNDEFINED))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Cartdim_get(comm: h::Comm, n: Out<c_int>) -> c_int {
    call_on("MPI_Cartdim_get", comm, || {
        n.set("ndims", topologies::cart(find(comm)?)?.dims().len() as c_int)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Cart_get(
    comm: h::Comm,
    n: c_int,
    dims: Out<c_int>,
    periods: Out<c_int>,
    coordinates: Out<c_int>,
) -> c_int {
    call_on("MPI_Cart_get", comm, || {
        let comm = find(comm)?;
        let cart = topologies::cart(comm)?;
        room_for("maxdims", n, cart.dims().len())?;
        put(dims, "dims", cart.dims().iter().map(|d| *d as c_int))?;
        put(periods, "periods", cart.periods().iter().map(|p| flag(*p)))?;
        let own = cart.coordinates(comm.rank());
        put(coordinates, "coords", own.iter().map(|c| *c as c_int))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Cart_rank(comm: h::Comm, coordinates: In<c_int>, rank: Out<c_int>) -> c_int {
    call_on("MPI_Cart_rank", comm, || {
        let cart = topologies::cart(find(comm)?)?;
        let coordinates = coordinates.slice("coords", cart.dims().len())?;
        rank.set("rank", cart.rank(coordinates)? as c_int)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Cart_coords(comm: h::Comm, rank: c_int, n: c_int, coordinates: Out<c_int>) -> c_int {
    call_on("MPI_Cart_coords", comm, || {
        let comm = find(comm)?;
        let cart = topologies::cart(comm)?;
        let rank = topologies::check_node(comm, "rank", rank)?;
        room_for("maxdims", n, cart.dims().len())?;
        put(
            coordinates,
            "coords",
            cart.coordinates(rank).iter().map(|c| *c as c_int),
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Cart_shift(
    comm: h::Comm,
    direction: c_int,
    by: c_int,
    source: Out<c_int>,
    destination: Out<c_int>,
) -> c_int {
    call_on("MPI_Cart_shift", comm, || {
        let comm = find(comm)?;
        let (from, to) = topologies::cart(comm)?.shift(comm.rank(), direction, by)?;
        source.set("rank_source", rank_or(from, abi::MPI_PROC_NULL))?;
        destination.set("rank_dest", rank_or(to, abi::MPI_PROC_NULL))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Cart_sub(comm: h::Comm, keep: In<c_int>, new: Out<h::Comm>) -> c_int {
    call_on("MPI_Cart_sub", comm, || {
        give(new, || {
            let comm = find(comm)?;
            let keep = keep.slice("remain_dims", topologies::cart(comm)?.dims().len())?;
            let keep: Vec<bool> = keep.iter().map(|k| *k != 0).collect();
            topologies::cart_sub(process::world()?, comm, &keep).map(Some)
        })
    })
}
