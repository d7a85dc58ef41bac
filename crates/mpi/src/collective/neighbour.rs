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
use super::membership::Membership;
use super::rows;
use crate::c::{Source, Target};

fn neighbours(member: &Membership) -> Result<Arc<Neighbours>> {
    match member.comm.neighbours() {
        Some(neighbours) => Ok(neighbours),
        None => fail!(
            abi::MPI_ERR_TOPOLOGY,
            "{} has no process topology; make one with MPI_Cart_create, MPI_Graph_create or MPI_Dist_graph_create",
            member.comm.describe()
        ),
    }
}

pub(super) fn neighbor_allgather(
    member: &Membership,
    from: Elements<Source>,
    into: Elements<Target>,
) -> Result<Performed> {
    member.perform_along(
        |edges| rows::neighbor_allgather(edges, &from, &into),
        || all_gathered(member, from, into),
    )
}

fn all_gathered(member: &Membership, from: Elements<Source>, into: Elements<Target>) -> Result<Prepared> {
    let sources = neighbours(member)?.sources.len();
    let mut call = Call::new(Operation::NeighborAllgather, from.bytes(member)?);
    call.receive_blocks = Blocks::Equal(into.bytes(member)?);
    Ok(Prepared::new(call, Binding::bytes(from.bind(1)?, into.bind(sources)?)))
}

pub(super) fn neighbor_allgatherv(
    member: &Membership,
    from: Elements<Source>,
    into: Unequal<Target>,
) -> Result<Performed> {
    member.perform_along(
        |edges| rows::neighbor_allgatherv(edges, &from, &into),
        || all_gathered_unequal(member, from, into),
    )
}

fn all_gathered_unequal(member: &Membership, from: Elements<Source>, into: Unequal<Target>) -> Result<Prepared> {
    let into = into.read(member, neighbours(member)?.sources.len())?;
    let mut call = Call::new(Operation::NeighborAllgatherv, from.bytes(member)?);
    call.receive_blocks = Blocks::known(into.sizes());
    Ok(Prepared::new(call, Binding::bytes(from.bind(1)?, into.bind()?)))
}

pub(super) fn neighbor_alltoall(
    member: &Membership,
    from: Elements<Source>,
    into: Elements<Target>,
) -> Result<Performed> {
    member.perform_along(
        |edges| rows::neighbor_alltoall(edges, &from, &into),
        || exchanged(member, from, into),
    )
}

fn exchanged(member: &Membership, from: Elements<Source>, into: Elements<Target>) -> Result<Prepared> {
    let neighbours = neighbours(member)?;
    let mut call = Call::new(Operation::NeighborAlltoall, from.bytes(member)?);
    call.receive_blocks = Blocks::Equal(into.bytes(member)?);
    let send = from.bind(neighbours.destinations.len())?;
    Ok(Prepared::new(
        call,
        Binding::bytes(send, into.bind(neighbours.sources.len())?),
    ))
}

pub(super) fn neighbor_alltoallv(
    member: &Membership,
    from: Unequal<Source>,
    into: Unequal<Target>,
) -> Result<Performed> {
    exchange_unequal(member, Operation::NeighborAlltoallv, from, into)
}

pub(super) fn neighbor_alltoallw(
    member: &Membership,
    from: Unequal<Source>,
    into: Unequal<Target>,
) -> Result<Performed> {
    exchange_unequal(member, Operation::NeighborAlltoallw, from, into)
}

fn exchange_unequal(
    member: &Membership,
    what: Operation,
    from: Unequal<Source>,
    into: Unequal<Target>,
) -> Result<Performed> {
    member.perform_along(
        |edges| rows::neighbor_alltoallv(edges, what, &from, &into),
        || exchanged_unequal(member, what, from, into),
    )
}

fn exchanged_unequal(
    member: &Membership,
    operation: Operation,
    from: Unequal<Source>,
    into: Unequal<Target>,
) -> Result<Prepared> {
    let neighbours = neighbours(member)?;
    let from = from.read(member, neighbours.destinations.len())?;
    let into = into.read(member, neighbours.sources.len())?;
    let mut call = Call::new(operation, 0);
    call.blocks = Blocks::known(from.sizes());
    call.receive_blocks = Blocks::known(into.sizes());
    Ok(Prepared::new(call, Binding::bytes(from.bind()?, into.bind()?)))
}
