// SPDX-License-Identifier: Apache-2.0
//! Operations that move data. Units are bytes of the packed stream.

use std::ffi::c_int;

use isthmus_abi::constants as abi;
use isthmus_core::collective::{Performed, Prepared};
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_engine::{Binding, BoundBuffer};
use isthmus_schedule::{Blocks, Call, Operation};

use super::arguments::{Elements, Memory, Row, Unequal};
use super::place::{Place, Role};
use super::{plain, rows};
use crate::c::{Source, Target};
use crate::check::{self, Region, distinct};

pub(super) fn barrier(place: &Place) -> Result<Performed> {
    let general = || Ok(Prepared::new(Call::new(Operation::Barrier, 0), Binding::nothing()));
    place.perform(|| Some(plain::barrier()), general)
}

#[inline(always)]
pub(super) fn bcast(place: &Place, data: Elements<Target>, root: c_int) -> Result<Performed> {
    place.perform(|| plain::bcast(place, &data, root), || broadcast(place, data, root))
}

#[inline(never)]
fn broadcast(place: &Place, data: Elements<Target>, root: c_int) -> Result<Prepared> {
    let root = place.root(root)?;
    if matches!(root.role, Role::Bystander) {
        return Ok(Prepared::bystander(Operation::Bcast));
    }
    let mut call = Call::new(Operation::Bcast, data.bytes(place)?);
    call.root = root.rank;
    Ok(Prepared::new(call, Binding::bytes(BoundBuffer::none(), data.bind(1)?)))
}

#[inline(always)]
pub(super) fn gather(place: &Place, from: Elements<Source>, into: Elements<Target>, root: c_int) -> Result<Performed> {
    let plain = || plain::gather(place, &from, &into, root);
    place.perform(plain, || gathered(place, from, into, root))
}

#[inline(never)]
fn gathered(place: &Place, from: Elements<Source>, into: Elements<Target>, root: c_int) -> Result<Prepared> {
    let root = place.root(root)?;
    let mut call = Call::new(Operation::Gather, 0);
    call.root = root.rank;
    match root.role {
        Role::Bystander => return Ok(Prepared::bystander(Operation::Gather)),
        Role::Other => {
            call.blocks = Blocks::Equal(from.bytes(place)?);
            return Ok(Prepared::new(call, Binding::bytes(from.bind(1)?, BoundBuffer::none())));
        }
        Role::Root => {}
    }
    call.in_place = !place.is_inter() && from.is_in_place();
    call.blocks = Blocks::Equal(into.bytes(place)?);
    if !call.in_place {
        own_lengths(place, &from, &into)?;
    }
    let send = own_block(place, call.in_place, &from, into.region(place.blocks())?)?;
    Ok(Prepared::new(call, Binding::bytes(send, into.bind(place.blocks())?)))
}

pub(super) fn gatherv(place: &Place, from: Elements<Source>, into: Unequal<Target>, root: c_int) -> Result<Performed> {
    place.perform_unequal(
        || rows::gatherv(place, &from, &into, root),
        || gathered_unequal(place, from, into, root),
    )
}

fn gathered_unequal(place: &Place, from: Elements<Source>, into: Unequal<Target>, root: c_int) -> Result<Prepared> {
    let root = place.root(root)?;
    let mut call = Call::new(Operation::Gatherv, 0);
    call.root = root.rank;
    match root.role {
        Role::Bystander => return Ok(Prepared::bystander(Operation::Gatherv)),
        Role::Other => {
            let own = from.bytes(place)?;
            call.blocks = Blocks::Own(own);
            let binding = Binding::bytes(from.bind(1)?, BoundBuffer::none());
            return Ok(Prepared::with_counts(call, binding, vec![own]));
        }
        Role::Root => {}
    }
    let into = into.read(place, place.blocks())?;
    call.in_place = !place.is_inter() && from.is_in_place();
    call.blocks = Blocks::known(into.sizes());
    let own = into.sizes().nth(place.rank()).unwrap_or(0);
    if !call.in_place && !place.is_inter() {
        same_length(from.bytes(place)?, own)?;
    }
    let send = match into.region(place.rank()) {
        Some(region) => own_block(place, call.in_place, &from, region)?,
        None => BoundBuffer::none(),
    };
    Ok(Prepared::with_counts(
        call,
        Binding::bytes(send, into.bind()?),
        vec![own],
    ))
}

#[inline(always)]
pub(super) fn scatter(place: &Place, from: Elements<Source>, into: Elements<Target>, root: c_int) -> Result<Performed> {
    let plain = || plain::scatter(place, &from, &into, root);
    place.perform(plain, || scattered(place, from, into, root))
}

#[inline(never)]
fn scattered(place: &Place, from: Elements<Source>, into: Elements<Target>, root: c_int) -> Result<Prepared> {
    let root = place.root(root)?;
    let mut call = Call::new(Operation::Scatter, 0);
    call.root = root.rank;
    match root.role {
        Role::Bystander => return Ok(Prepared::bystander(Operation::Scatter)),
        Role::Other => {
            call.blocks = Blocks::Equal(into.bytes(place)?);
            return Ok(Prepared::new(call, Binding::bytes(BoundBuffer::none(), into.bind(1)?)));
        }
        Role::Root => {}
    }
    call.blocks = Blocks::Equal(from.bytes(place)?);
    call.in_place = !place.is_inter() && into.is_in_place();
    if !call.in_place {
        own_lengths(place, &from, &into)?;
    }
    let receive = own_block(place, call.in_place, &into, from.region(place.blocks())?)?;
    Ok(Prepared::new(call, Binding::bytes(from.bind(place.blocks())?, receive)))
}

pub(super) fn scatterv(place: &Place, from: Unequal<Source>, into: Elements<Target>, root: c_int) -> Result<Performed> {
    place.perform_unequal(
        || rows::scatterv(place, &from, &into, root),
        || scattered_unequal(place, from, into, root),
    )
}

fn scattered_unequal(place: &Place, from: Unequal<Source>, into: Elements<Target>, root: c_int) -> Result<Prepared> {
    let root = place.root(root)?;
    let mut call = Call::new(Operation::Scatterv, 0);
    call.root = root.rank;
    match root.role {
        Role::Bystander => return Ok(Prepared::bystander(Operation::Scatterv)),
        Role::Other => {
            call.blocks = Blocks::Own(into.bytes(place)?);
            let binding = Binding::bytes(BoundBuffer::none(), into.bind(1)?);
            return Ok(Prepared::with_counts(call, binding, Vec::new()));
        }
        Role::Root => {}
    }
    let from = from.read(place, place.blocks())?;
    call.blocks = Blocks::known(from.sizes());
    call.in_place = !place.is_inter() && into.is_in_place();
    if !call.in_place && !place.is_inter() {
        same_length(from.sizes().nth(place.rank()).unwrap_or(0), into.bytes(place)?)?;
    }
    let receive = match from.region(place.rank()) {
        Some(region) => own_block(place, call.in_place, &into, region)?,
        None => BoundBuffer::none(),
    };
    // Between groups the root is a member of the plan too, with an empty block before those of the others.
    let counts = place.is_inter().then_some(0).into_iter().chain(from.sizes()).collect();
    Ok(Prepared::with_counts(
        call,
        Binding::bytes(from.bind()?, receive),
        counts,
    ))
}

/// What a process gives to itself and what it takes from itself are as long (MPI 5.0 sections 6.5 to 6.8).
fn same_length(gives: u64, takes: u64) -> Result<()> {
    if gives == takes || !check::on() {
        return Ok(());
    }
    let class = if gives > takes {
        abi::MPI_ERR_TRUNCATE
    } else {
        abi::MPI_ERR_COUNT
    };
    fail!(
        class,
        "arguments sendcount and recvcount do not fit each other: this process sends {gives} bytes to itself and expects {takes} bytes \
         from itself, but both must be the same; to leave data where they are, give MPI_IN_PLACE, and where blocks differ, \
         use the form of the function that ends with v"
    )
}

/// The same for blocks of one length, within a group.
fn own_lengths(place: &Place, from: &Elements<Source>, into: &Elements<Target>) -> Result<()> {
    if place.is_inter() {
        return Ok(());
    }
    same_length(from.bytes(place)?, into.bytes(place)?)
}

/// The root's own block, unless it is found in the other buffer, which has `other`, or the root's group has none.
fn own_block<B: Memory>(place: &Place, in_place: bool, block: &Elements<B>, other: Region<'_>) -> Result<BoundBuffer> {
    if in_place || place.is_inter() {
        return Ok(BoundBuffer::none());
    }
    distinct(block.region(1)?, other)?;
    block.bind(1)
}

#[inline(always)]
pub(super) fn allgather(place: &Place, from: Elements<Source>, into: Elements<Target>) -> Result<Performed> {
    let plain = || plain::exchange(place, Operation::Allgather, &from, 1, &into);
    place.perform(plain, || all_gathered(place, from, into))
}

#[inline(never)]
fn all_gathered(place: &Place, from: Elements<Source>, into: Elements<Target>) -> Result<Prepared> {
    let blocks = place.blocks();
    let mut call = Call::new(Operation::Allgather, into.bytes(place)?);
    call.in_place = place.in_place("sendbuf", from.is_in_place())?;
    if place.is_inter() {
        call.receive_blocks = Blocks::Equal(into.bytes(place)?);
        call.blocks = Blocks::Equal(from.bytes(place)?);
    }
    if !call.in_place {
        own_lengths(place, &from, &into)?;
        distinct(from.region(1)?, into.region(blocks)?)?;
    }
    let binding = Binding::bytes(from.bind_unless_in_place(1)?, into.bind(blocks)?);
    Ok(Prepared::new(call, binding))
}

pub(super) fn allgatherv(place: &Place, from: Elements<Source>, into: Unequal<Target>) -> Result<Performed> {
    place.perform_unequal(
        || rows::allgatherv(place, &from, &into),
        || all_gathered_unequal(place, from, into),
    )
}

fn all_gathered_unequal(place: &Place, from: Elements<Source>, into: Unequal<Target>) -> Result<Prepared> {
    let mut call = Call::new(Operation::Allgatherv, 0);
    let into = into.read(place, place.blocks())?;
    call.in_place = place.in_place("sendbuf", from.is_in_place())?;
    call.blocks = Blocks::known(into.sizes());
    if place.is_inter() {
        let own = from.bytes(place)?;
        call.receive_blocks = std::mem::replace(&mut call.blocks, Blocks::Own(own));
        let binding = Binding::bytes(from.bind(1)?, into.bind()?);
        return Ok(Prepared::with_counts(call, binding, vec![own]));
    }
    if !call.in_place {
        same_length(from.bytes(place)?, into.sizes().nth(place.rank()).unwrap_or(0))?;
        distinct_from_own(place, &into, from.region(1)?)?;
    }
    Ok(Prepared::new(
        call,
        Binding::bytes(from.bind_unless_in_place(1)?, into.bind()?),
    ))
}

#[inline(always)]
pub(super) fn alltoall(place: &Place, from: Elements<Source>, into: Elements<Target>) -> Result<Performed> {
    let plain = || plain::exchange(place, Operation::Alltoall, &from, place.size(), &into);
    place.perform(plain, || exchanged(place, from, into))
}

#[inline(never)]
fn exchanged(place: &Place, from: Elements<Source>, into: Elements<Target>) -> Result<Prepared> {
    let blocks = place.blocks();
    let mut call = Call::new(Operation::Alltoall, into.bytes(place)?);
    call.in_place = place.in_place("sendbuf", from.is_in_place())?;
    if place.is_inter() {
        call.receive_blocks = Blocks::Equal(into.bytes(place)?);
        call.blocks = Blocks::Equal(from.bytes(place)?);
    }
    if !call.in_place {
        own_lengths(place, &from, &into)?;
        distinct(from.region(blocks)?, into.region(blocks)?)?;
    }
    let binding = Binding::bytes(from.bind_unless_in_place(blocks)?, into.bind(blocks)?);
    Ok(Prepared::new(call, binding))
}

pub(super) fn alltoallv(place: &Place, from: Unequal<Source>, into: Unequal<Target>) -> Result<Performed> {
    exchange_unequal(place, Operation::Alltoallv, from, into)
}

pub(super) fn alltoallw(place: &Place, from: Unequal<Source>, into: Unequal<Target>) -> Result<Performed> {
    exchange_unequal(place, Operation::Alltoallw, from, into)
}

fn exchange_unequal(place: &Place, what: Operation, from: Unequal<Source>, into: Unequal<Target>) -> Result<Performed> {
    place.perform_unequal(
        || rows::alltoallv(place, what, &from, &into),
        || exchanged_unequal(place, what, from, into),
    )
}

/// Alltoallv and alltoallw.
fn exchanged_unequal(
    place: &Place,
    operation: Operation,
    from: Unequal<Source>,
    into: Unequal<Target>,
) -> Result<Prepared> {
    let mut call = Call::new(operation, 0);
    call.in_place = place.in_place("sendbuf", from.is_in_place())?;
    let into = into.read(place, place.blocks())?;
    call.receive_blocks = Blocks::known(into.sizes());
    if call.in_place {
        // In place what is sent has the shape of what is received (MPI 5.0 section 6.8).
        call.blocks = call.receive_blocks.clone();
        let binding = Binding::bytes(BoundBuffer::none(), into.bind()?);
        return Ok(Prepared::with_counts(call, binding, Vec::new()));
    }
    let from = from.read(place, place.blocks())?;
    if let (false, Some(own)) = (place.is_inter(), from.region(place.rank())) {
        let (gives, takes) = (from.sizes().nth(place.rank()), into.sizes().nth(place.rank()));
        same_length(gives.unwrap_or(0), takes.unwrap_or(0))?;
        distinct_from_own(place, &into, own)?;
    }
    call.blocks = Blocks::known(from.sizes());
    let binding = Binding::bytes(from.bind()?, into.bind()?);
    Ok(Prepared::with_counts(call, binding, Vec::new()))
}

/// A buffer must not be where the own block of the other is.
fn distinct_from_own<B: Memory>(place: &Place, row: &Row<B>, other: Region<'_>) -> Result<()> {
    match row.region(place.rank()) {
        Some(own) => distinct(own, other),
        None => Ok(()),
    }
}
