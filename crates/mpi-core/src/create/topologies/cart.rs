// SPDX-License-Identifier: Apache-2.0
//! Communicators with Cartesian topologies.

use std::sync::Arc;

use isthmus_abi::constants as abi;

use super::placement;
use crate::comm::Comm;
use crate::create::{self, Alike};
use crate::error::Result;
use crate::fail;
use crate::info::Info;
use crate::topology::{Cart, Topology};
use crate::world::World;

/// The grid of a communicator with a Cartesian topology.
pub fn cart(comm: &Comm) -> Result<&Arc<Cart>> {
    match comm.topology() {
        Some(Topology::Cart(cart)) => Ok(cart),
        _ => fail!(abi::MPI_ERR_TOPOLOGY, "{} has no Cartesian topology", comm.describe()),
    }
}

/// Which member of the communicator each node of a grid should be: members next to each other where nodes are.
fn order(world: &World, comm: &Comm, cart: &Cart, reorder: bool) -> Vec<u32> {
    if !reorder {
        return (0..cart.size()).collect();
    }
    placement::order(world, comm, &cart.adjacency())
}

/// MPI_Cart_create; collective. `None` for processes outside the grid.
pub fn cart_create(world: &World, comm: &Comm, cart: Cart, reorder: bool) -> Result<Option<Arc<Comm>>> {
    let order = order(world, comm, &cart, reorder);
    let shape = cart.dims().iter().zip(cart.periods());
    let words = shape.map(|(&dim, &wraps)| u64::from(dim) << 1 | u64::from(wraps));
    let said = Alike::new("dimensions and periods of the grid", words);
    let topology = Topology::Cart(Arc::new(cart));
    create::with_topology(world, comm, &order, topology, Info::default(), &said)
}

/// MPI_Cart_map: the rank that this process would have with `reorder`.
pub fn cart_map(world: &World, comm: &Comm, cart: &Cart) -> Option<u32> {
    let order = order(world, comm, cart, true);
    order.iter().position(|&r| r == comm.rank()).map(|r| r as u32)
}

/// MPI_Cart_sub; collective. `keep`: which dimensions stay.
pub fn cart_sub(world: &World, comm: &Comm, keep: &[bool]) -> Result<Arc<Comm>> {
    let cart = cart(comm)?;
    let coordinates = cart.coordinates(comm.rank());
    let (mut color, mut key) = (0, 0);
    for ((&stays, &dim), &at) in keep.iter().zip(cart.dims()).zip(&coordinates) {
        let number = if stays { &mut key } else { &mut color };
        *number = *number * dim + at;
    }
    let topology = Some(Topology::Cart(Arc::new(cart.of_kept(keep))));
    match create::split_as(world, comm, Some(color as i32), key as i32, Info::default(), topology)? {
        Some(comm) => Ok(comm),
        None => fail!(abi::MPI_ERR_INTERN, "a process has no place in its own grid"),
    }
}
