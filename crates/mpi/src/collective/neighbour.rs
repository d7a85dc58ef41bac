// SPDX-License-Identifier: Apache-2.0
//! Neighbourhood collectives (MPI 5.0 section 8.6): blocks by neighbour. Units are bytes of the packed stream.

use std::sync::Arc;

use isthmus_abi::constants as abi;
use isthmus_core::collective::{Performed, Prepared};
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_core::topology::Neighbours;
use isthmus_engine::Binding;
use isthmus_schedule::{Blocks, Call, Operation};

use super::arguments::{Elements, Unequal};
use super::place::Place;
use super::rows;
use crate::c::{Source, Target};

fn neighbours(place: &Place) -> Result<Arc<Neighbours>> {
    match place.comm.neighbours() {
        Some(neighbours) => Ok(neighbours),
        None => fail!(
            abi::MPI_ERR_TOPOLOGY,
            "{} has no process topology; make one with MPI_Cart_create, MPI_Graph_create or MPI_Dist_graph_create",
            place.comm.describe()
        ),
    }
}

pub(super) fn neighbor_allgather(place: &Place, from: Elements<Source>, into: Elements<Target>) -> Result<Performed> {
    place.perform_along(
        |edges| rows::neighbor_allgather(edges, &from, &into),
        || all_gathered(place, from, into),
    )
}

fn all_gathered(place: &Place, from: Elements<Source>, into: Elements<Target>) -> Result<Prepared> {
    let sources = neighbours(place)?.sources.len();
    let mut call = Call::new(Operation::NeighborAllgather, from.bytes(place)?);
    call.receive_blocks = Blocks::Equal(into.bytes(place)?);
    Ok(Prepared::new(call, Binding::bytes(from.bind(1)?, into.bind(sources)?)))
}

pub(super) fn neighbor_allgatherv(place: &Place, from: Elements<Source>, into: Unequal<Target>) -> Result<Performed> {
    place.perform_along(
        |edges| rows::neighbor_allgatherv(edges, &from, &into),
        || all_gathered_unequal(place, from, into),
    )
}

fn all_gathered_unequal(place: &Place, from: Elements<Source>, into: Unequal<Target>) -> Result<Prepared> {
    let into = into.read(place, neighbours(place)?.sources.len())?;
    let mut call = Call::new(Operation::NeighborAllgatherv, from.bytes(place)?);
    call.receive_blocks = Blocks::known(into.sizes());
    Ok(Prepared::new(call, Binding::bytes(from.bind(1)?, into.bind()?)))
}

pub(super) fn neighbor_alltoall(place: &Place, from: Elements<Source>, into: Elements<Target>) -> Result<Performed> {
    place.perform_along(
        |edges| rows::neighbor_alltoall(edges, &from, &into),
        || exchanged(place, from, into),
    )
}

fn exchanged(place: &Place, from: Elements<Source>, into: Elements<Target>) -> Result<Prepared> {
    let neighbours = neighbours(place)?;
    let mut call = Call::new(Operation::NeighborAlltoall, from.bytes(place)?);
    call.receive_blocks = Blocks::Equal(into.bytes(place)?);
    let send = from.bind(neighbours.destinations.len())?;
    Ok(Prepared::new(
        call,
        Binding::bytes(send, into.bind(neighbours.sources.len())?),
    ))
}

pub(super) fn neighbor_alltoallv(place: &Place, from: Unequal<Source>, into: Unequal<Target>) -> Result<Performed> {
    exchange_unequal(place, Operation::NeighborAlltoallv, from, into)
}

pub(super) fn neighbor_alltoallw(place: &Place, from: Unequal<Source>, into: Unequal<Target>) -> Result<Performed> {
    exchange_unequal(place, Operation::NeighborAlltoallw, from, into)
}

fn exchange_unequal(place: &Place, what: Operation, from: Unequal<Source>, into: Unequal<Target>) -> Result<Performed> {
    place.perform_along(
        |edges| rows::neighbor_alltoallv(edges, what, &from, &into),
        || exchanged_unequal(place, what, from, into),
    )
}

fn exchanged_unequal(
    place: &Place,
    operation: Operation,
    from: Unequal<Source>,
    into: Unequal<Target>,
) -> Result<Prepared> {
    let neighbours = neighbours(place)?;
    let from = from.read(place, neighbours.destinations.len())?;
    let into = into.read(place, neighbours.sources.len())?;
    let mut call = Call::new(operation, 0);
    call.blocks = Blocks::known(from.sizes());
    call.receive_blocks = Blocks::known(into.sizes());
    Ok(Prepared::new(call, Binding::bytes(from.bind()?, into.bind()?)))
}
