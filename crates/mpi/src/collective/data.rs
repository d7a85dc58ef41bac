// SPDX-License-Identifier: Apache-2.0
//! Operations that move data. Units are bytes of the packed stream.

use std::ffi::c_int;

use isthmus_abi::constants as abi;
use isthmus_core::collective::{Performed, Prepared};
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_engine::{Binding, BoundBuffer};
use isthmus_schedule::{Blocks, Call, Operation};

use super::arguments::{Elements, Memory, Unequal, UnequalBlocks};
use super::membership::{Membership, Role};
use super::{nothing, plain, rows};
use crate::c::{Source, Target};
use crate::check::{self, Region, distinct};

pub(super) fn barrier(member: &Membership) -> Result<Performed> {
    let general = || Ok(Prepared::new(Call::new(Operation::Barrier, 0), Binding::nothing()));
    member.perform(|| Some(plain::barrier()), general)
}

#[inline(always)]
pub(super) fn bcast(member: &Membership, data: Elements<Target>, root: c_int) -> Result<Performed> {
    if let Some(over) = nothing::bcast(member, &data, root) {
        return Ok(over);
    }
    member.perform(|| plain::bcast(member, &data, root), || broadcast(member, data, root))
}

#[inline(never)]
fn broadcast(member: &Membership, data: Elements<Target>, root: c_int) -> Result<Prepared> {
    let root = member.root(root)?;
    if matches!(root.role, Role::Bystander) {
        return Ok(Prepared::bystander(Operation::Bcast));
    }
    let mut call = Call::new(Operation::Bcast, data.bytes(member)?);
    call.root = root.rank;
    Ok(Prepared::new(call, Binding::bytes(BoundBuffer::none(), data.bind(1)?)))
}

#[inline(always)]
pub(super) fn gather(
    member: &Membership,
    from: Elements<Source>,
    into: Elements<Target>,
    root: c_int,
) -> Result<Performed> {
    if let Some(over) = nothing::gather(member, &from, &into, root) {
        return Ok(over);
    }
    let plain = || plain::gather(member, &from, &into, root);
    member.perform(plain, || gathered(member, from, into, root))
}

#[inline(never)]
fn gathered(member: &Membership, from: Elements<Source>, into: Elements<Target>, root: c_int) -> Result<Prepared> {
    let root = member.root(root)?;
    let mut call = Call::new(Operation::Gather, 0);
    call.root = root.rank;
    match root.role {
        Role::Bystander => return Ok(Prepared::bystander(Operation::Gather)),
        Role::Other => {
            call.blocks = Blocks::Equal(from.bytes(member)?);
            return Ok(Prepared::new(call, Binding::bytes(from.bind(1)?, BoundBuffer::none())));
        }
        Role::Root => {}
    }
    call.in_place = !member.is_inter() && from.is_in_place();
    call.blocks = Blocks::Equal(into.bytes(member)?);
    if !call.in_place {
        own_lengths(member, &from, &into)?;
    }
    let send = own_block(member, call.in_place, &from, into.region(member.blocks())?)?;
    Ok(Prepared::new(call, Binding::bytes(send, into.bind(member.blocks())?)))
}

pub(super) fn gatherv(
    member: &Membership,
    from: Elements<Source>,
    into: Unequal<Target>,
    root: c_int,
) -> Result<Performed> {
    if let Some(over) = nothing::gatherv(member, &from, &into, root) {
        return over;
    }
    member.perform_unequal(
        || rows::gatherv(member, &from, &into, root),
        || gathered_unequal(member, from, into, root),
    )
}

fn gathered_unequal(
    member: &Membership,
    from: Elements<Source>,
    into: Unequal<Target>,
    root: c_int,
) -> Result<Prepared> {
    let root = member.root(root)?;
    let mut call = Call::new(Operation::Gatherv, 0);
    call.root = root.rank;
    match root.role {
        Role::Bystander => return Ok(Prepared::bystander(Operation::Gatherv)),
        Role::Other => {
            let own = from.bytes(member)?;
            call.blocks = Blocks::Own(own);
            let binding = Binding::bytes(from.bind(1)?, BoundBuffer::none());
            return Ok(Prepared::with_counts(call, binding, vec![own]));
        }
        Role::Root => {}
    }
    let into = into.read(member, member.blocks())?;
    call.in_place = !member.is_inter() && from.is_in_place();
    call.blocks = Blocks::known(into.sizes());
    let own = into.sizes().nth(member.rank()).unwrap_or(0);
    if !call.in_place && !member.is_inter() {
        same_length(from.bytes(member)?, own)?;
    }
    let send = match into.region(member.rank()) {
        Some(region) => own_block(member, call.in_place, &from, region)?,
        None => BoundBuffer::none(),
    };
    Ok(Prepared::with_counts(
        call,
        Binding::bytes(send, into.bind()?),
        vec![own],
    ))
}

#[inline(always)]
pub(super) fn scatter(
    member: &Membership,
    from: Elements<Source>,
    into: Elements<Target>,
    root: c_int,
) -> Result<Performed> {
    if let Some(over) = nothing::scatter(member, &from, &into, root) {
        return Ok(over);
    }
    let plain = || plain::scatter(member, &from, &into, root);
    member.perform(plain, || scattered(member, from, into, root))
}

#[inline(never)]
fn scattered(member: &Membership, from: Elements<Source>, into: Elements<Target>, root: c_int) -> Result<Prepared> {
    let root = member.root(root)?;
    let mut call = Call::new(Operation::Scatter, 0);
    call.root = root.rank;
    match root.role {
        Role::Bystander => return Ok(Prepared::bystander(Operation::Scatter)),
        Role::Other => {
            call.blocks = Blocks::Equal(into.bytes(member)?);
            return Ok(Prepared::new(call, Binding::bytes(BoundBuffer::none(), into.bind(1)?)));
        }
        Role::Root => {}
    }
    call.blocks = Blocks::Equal(from.bytes(member)?);
    call.in_place = !member.is_inter() && into.is_in_place();
    if !call.in_place {
        own_lengths(member, &from, &into)?;
    }
    let receive = own_block(member, call.in_place, &into, from.region(member.blocks())?)?;
    Ok(Prepared::new(
        call,
        Binding::bytes(from.bind(member.blocks())?, receive),
    ))
}

pub(super) fn scatterv(
    member: &Membership,
    from: Unequal<Source>,
    into: Elements<Target>,
    root: c_int,
) -> Result<Performed> {
    if let Some(over) = nothing::scatterv(member, &from, &into, root) {
        return over;
    }
    member.perform_unequal(
        || rows::scatterv(member, &from, &into, root),
        || scattered_unequal(member, from, into, root),
    )
}

fn scattered_unequal(
    member: &Membership,
    from: Unequal<Source>,
    into: Elements<Target>,
    root: c_int,
) -> Result<Prepared> {
    let root = member.root(root)?;
    let mut call = Call::new(Operation::Scatterv, 0);
    call.root = root.rank;
    match root.role {
        Role::Bystander => return Ok(Prepared::bystander(Operation::Scatterv)),
        Role::Other => {
            call.blocks = Blocks::Own(into.bytes(member)?);
            let binding = Binding::bytes(BoundBuffer::none(), into.bind(1)?);
            return Ok(Prepared::with_counts(call, binding, Vec::new()));
        }
        Role::Root => {}
    }
    let from = from.read(member, member.blocks())?;
    call.blocks = Blocks::known(from.sizes());
    call.in_place = !member.is_inter() && into.is_in_place();
    if !call.in_place && !member.is_inter() {
        same_length(from.sizes().nth(member.rank()).unwrap_or(0), into.bytes(member)?)?;
    }
    let receive = match from.region(member.rank()) {
        Some(region) => own_block(member, call.in_place, &into, region)?,
        None => BoundBuffer::none(),
    };
    // Between groups the root is a member of the plan too, with an empty block before those of the others.
    let counts = member.is_inter().then_some(0).into_iter().chain(from.sizes()).collect();
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
fn own_lengths(member: &Membership, from: &Elements<Source>, into: &Elements<Target>) -> Result<()> {
    if member.is_inter() {
        return Ok(());
    }
    same_length(from.bytes(member)?, into.bytes(member)?)
}

/// The root's own block, unless it is found in the other buffer, which has `other`, or the root's group has none.
fn own_block<B: Memory>(
    member: &Membership,
    in_place: bool,
    block: &Elements<B>,
    other: Region<'_>,
) -> Result<BoundBuffer> {
    if in_place || member.is_inter() {
        return Ok(BoundBuffer::none());
    }
    distinct(block.region(1)?, other)?;
    block.bind(1)
}

#[inline(always)]
pub(super) fn allgather(member: &Membership, from: Elements<Source>, into: Elements<Target>) -> Result<Performed> {
    if let Some(over) = nothing::exchange(member, Operation::Allgather, &from, &into) {
        return Ok(over);
    }
    let plain = || plain::exchange(member, Operation::Allgather, &from, 1, &into);
    member.perform(plain, || all_gathered(member, from, into))
}

#[inline(never)]
fn all_gathered(member: &Membership, from: Elements<Source>, into: Elements<Target>) -> Result<Prepared> {
    let blocks = member.blocks();
    let mut call = Call::new(Operation::Allgather, into.bytes(member)?);
    call.in_place = member.in_place("sendbuf", from.is_in_place())?;
    if member.is_inter() {
        call.receive_blocks = Blocks::Equal(into.bytes(member)?);
        call.blocks = Blocks::Equal(from.bytes(member)?);
    }
    if !call.in_place {
        own_lengths(member, &from, &into)?;
        distinct(from.region(1)?, into.region(blocks)?)?;
    }
    let binding = Binding::bytes(from.bind_unless_in_place(1)?, into.bind(blocks)?);
    Ok(Prepared::new(call, binding))
}

pub(super) fn allgatherv(member: &Membership, from: Elements<Source>, into: Unequal<Target>) -> Result<Performed> {
    if let Some(over) = nothing::allgatherv(member, &from, &into) {
        return over;
    }
    member.perform_unequal(
        || rows::allgatherv(member, &from, &into),
        || all_gathered_unequal(member, from, into),
    )
}

fn all_gathered_unequal(member: &Membership, from: Elements<Source>, into: Unequal<Target>) -> Result<Prepared> {
    let mut call = Call::new(Operation::Allgatherv, 0);
    let into = into.read(member, member.blocks())?;
    call.in_place = member.in_place("sendbuf", from.is_in_place())?;
    call.blocks = Blocks::known(into.sizes());
    if member.is_inter() {
        let own = from.bytes(member)?;
        call.receive_blocks = std::mem::replace(&mut call.blocks, Blocks::Own(own));
        let binding = Binding::bytes(from.bind(1)?, into.bind()?);
        return Ok(Prepared::with_counts(call, binding, vec![own]));
    }
    if !call.in_place {
        same_length(from.bytes(member)?, into.sizes().nth(member.rank()).unwrap_or(0))?;
        distinct_from_own(member, &into, from.region(1)?)?;
    }
    Ok(Prepared::new(
        call,
        Binding::bytes(from.bind_unless_in_place(1)?, into.bind()?),
    ))
}

#[inline(always)]
pub(super) fn alltoall(member: &Membership, from: Elements<Source>, into: Elements<Target>) -> Result<Performed> {
    if let Some(over) = nothing::exchange(member, Operation::Alltoall, &from, &into) {
        return Ok(over);
    }
    let plain = || plain::exchange(member, Operation::Alltoall, &from, member.size(), &into);
    member.perform(plain, || exchanged(member, from, into))
}

#[inline(never)]
fn exchanged(member: &Membership, from: Elements<Source>, into: Elements<Target>) -> Result<Prepared> {
    let blocks = member.blocks();
    let mut call = Call::new(Operation::Alltoall, into.bytes(member)?);
    call.in_place = member.in_place("sendbuf", from.is_in_place())?;
    if member.is_inter() {
        call.receive_blocks = Blocks::Equal(into.bytes(member)?);
        call.blocks = Blocks::Equal(from.bytes(member)?);
    }
    if !call.in_place {
        own_lengths(member, &from, &into)?;
        distinct(from.region(blocks)?, into.region(blocks)?)?;
    }
    let binding = Binding::bytes(from.bind_unless_in_place(blocks)?, into.bind(blocks)?);
    Ok(Prepared::new(call, binding))
}

pub(super) fn alltoallv(member: &Membership, from: Unequal<Source>, into: Unequal<Target>) -> Result<Performed> {
    if let Some(over) = nothing::alltoallv(member, &from, &into) {
        return over;
    }
    exchange_unequal(member, Operation::Alltoallv, from, into)
}

pub(super) fn alltoallw(member: &Membership, from: Unequal<Source>, into: Unequal<Target>) -> Result<Performed> {
    exchange_unequal(member, Operation::Alltoallw, from, into)
}

fn exchange_unequal(
    member: &Membership,
    what: Operation,
    from: Unequal<Source>,
    into: Unequal<Target>,
) -> Result<Performed> {
    member.perform_unequal(
        || rows::alltoallv(member, what, &from, &into),
        || exchanged_unequal(member, what, from, into),
    )
}

/// Alltoallv and alltoallw.
fn exchanged_unequal(
    member: &Membership,
    operation: Operation,
    from: Unequal<Source>,
    into: Unequal<Target>,
) -> Result<Prepared> {
    let mut call = Call::new(operation, 0);
    call.in_place = member.in_place("sendbuf", from.is_in_place())?;
    let into = into.read(member, member.blocks())?;
    call.receive_blocks = Blocks::known(into.sizes());
    if call.in_place {
        // In place what is sent has the shape of what is received (MPI 5.0 section 6.8).
        call.blocks = call.receive_blocks.clone();
        let binding = Binding::bytes(BoundBuffer::none(), into.bind()?);
        return Ok(Prepared::with_counts(call, binding, Vec::new()));
    }
    let from = from.read(member, member.blocks())?;
    if let (false, Some(own)) = (member.is_inter(), from.region(member.rank())) {
        let (gives, takes) = (from.sizes().nth(member.rank()), into.sizes().nth(member.rank()));
        same_length(gives.unwrap_or(0), takes.unwrap_or(0))?;
        distinct_from_own(member, &into, own)?;
    }
    call.blocks = Blocks::known(from.sizes());
    let binding = Binding::bytes(from.bind()?, into.bind()?);
    Ok(Prepared::with_counts(call, binding, Vec::new()))
}

/// A buffer must not be where the own block of the other is.
fn distinct_from_own<B: Memory>(member: &Membership, row: &UnequalBlocks<B>, other: Region<'_>) -> Result<()> {
    match row.region(member.rank()) {
        Some(own) => distinct(own, other),
        None => Ok(()),
    }
}
