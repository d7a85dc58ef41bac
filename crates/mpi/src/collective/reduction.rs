// SPDX-License-Identifier: Apache-2.0
//! Operations that compute. Units are elements of the datatype.

use std::ffi::c_int;

use isthmus_abi::constants as abi;
use isthmus_core::collective::{Performed, PlainUnequal, Prepared};
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_engine::BoundBuffer;
use isthmus_schedule::{Blocks, Call, Operation};

use super::arguments::Numbers;
use super::membership::{Membership, Role};
use super::operands::Operands;
use super::{nothing, plain, rows};
use crate::c::count;
use crate::check::distinct;

#[inline(always)]
pub(super) fn allreduce(member: &Membership, operands: Operands, n: i64) -> Result<Performed> {
    if let Some(over) = nothing::reducing(member, Operation::Allreduce, &operands, n) {
        return Ok(over);
    }
    member.perform(
        || plain::allreduce(member, &operands, n),
        || all_reduced(member, operands, n),
    )
}

#[inline(never)]
fn all_reduced(member: &Membership, operands: Operands, n: i64) -> Result<Prepared> {
    let call = Call::new(Operation::Allreduce, count("count", n)?);
    operands.gives_and_gets(member, call, n, n)
}

pub(super) fn scan(member: &Membership, operands: Operands, n: i64) -> Result<Performed> {
    if let Some(over) = nothing::reducing(member, Operation::Scan, &operands, n) {
        return Ok(over);
    }
    let plain = || plain::prefix(member, Operation::Scan, &operands, n);
    member.perform(plain, || prefix(member, Operation::Scan, operands, n))
}

pub(super) fn exscan(member: &Membership, operands: Operands, n: i64) -> Result<Performed> {
    if let Some(over) = nothing::reducing(member, Operation::Exscan, &operands, n) {
        return Ok(over);
    }
    let plain = || plain::prefix(member, Operation::Exscan, &operands, n);
    member.perform(plain, || prefix(member, Operation::Exscan, operands, n))
}

fn prefix(member: &Membership, operation: Operation, operands: Operands, n: i64) -> Result<Prepared> {
    if member.is_inter() {
        fail!(
            abi::MPI_ERR_COMM,
            "{} is an intercommunicator; MPI_Scan and MPI_Exscan are defined within one group only",
            member.comm.describe()
        );
    }
    let call = Call::new(operation, count("count", n)?);
    let from = operands.send(n);
    if operation == Operation::Exscan && member.rank() == 0 && !from.is_in_place() {
        // The first process has no result, its receive buffer no meaning; but a mistake that all make is found by all.
        distinct(from.region(1)?, operands.receive(n).region(1)?)?;
        return operands.prepare(member, call, from.bind(1)?, BoundBuffer::none());
    }
    operands.gives_and_gets(member, call, n, n)
}

#[inline(always)]
pub(super) fn reduce(member: &Membership, operands: Operands, n: i64, root: c_int) -> Result<Performed> {
    if let Some(over) = nothing::reduce(member, &operands, n, root) {
        return Ok(over);
    }
    let plain = || plain::reduce(member, &operands, n, root);
    member.perform(plain, || reduced(member, operands, n, root))
}

#[inline(never)]
fn reduced(member: &Membership, operands: Operands, n: i64, root: c_int) -> Result<Prepared> {
    let root = member.root(root)?;
    let mut call = Call::new(Operation::Reduce, count("count", n)?);
    call.root = root.rank;
    match root.role {
        Role::Bystander => Ok(Prepared::bystander(Operation::Reduce)),
        Role::Other => operands.prepare(member, call, operands.send(n).bind(1)?, BoundBuffer::none()),
        Role::Root if member.is_inter() => {
            operands.prepare(member, call, BoundBuffer::none(), operands.receive(n).bind(1)?)
        }
        Role::Root => operands.gives_and_gets(member, call, n, n),
    }
}

pub(super) fn reduce_scatter_block(member: &Membership, operands: Operands, n: i64) -> Result<Performed> {
    if let Some(over) = nothing::reducing(member, Operation::ReduceScatterBlock, &operands, n) {
        return Ok(over);
    }
    let plain = || plain::reduce_scatter_block(member, &operands, n);
    member.perform(plain, || {
        let call = Call::new(Operation::ReduceScatterBlock, count("recvcount", n)?);
        let all = n.saturating_mul(member.size() as i64);
        operands.gives_and_gets(member, call, all, n)
    })
}

pub(super) fn reduce_scatter(member: &Membership, operands: Operands, counts: Numbers) -> Result<Performed> {
    if let Some(over) = nothing::reduce_scatter(member, &operands, &counts) {
        return over;
    }
    member.perform_unequal(
        || plainly_scattered(member, &operands, &counts),
        || reduced_and_scattered(member, operands, counts),
    )
}

fn plainly_scattered(
    member: &Membership,
    operands: &Operands,
    counts: &Numbers,
) -> Option<PlainUnequal<rows::Blocks<'static>>> {
    let list = counts.list("recvcounts", member.size()).ok()?;
    let (mut before, mut all) = (0, 0u64);
    for rank in 0..member.size() {
        if rank == member.rank() {
            before = all;
        }
        all = all.checked_add(u64::try_from(list.at(rank)).ok()?)?;
    }
    let (given, own) = (i64::try_from(all).ok()?, list.at(member.rank()));
    let own_elements = [before, own as u64];
    let (from, into) = (operands.send(given), operands.receive(own));
    let mut plain = rows::reduce_scatter(&from, &into, own_elements, operands.arithmetic()??)?;
    plain.step.operator = operands.number();
    Some(plain)
}

fn reduced_and_scattered(member: &Membership, operands: Operands, counts: Numbers) -> Result<Prepared> {
    let sizes = counts.counts("recvcounts", member.size())?;
    let all = sizes.iter().fold(0u64, |sum, n| sum.saturating_add(*n));
    let own = sizes[member.rank()];
    let mut call = Call::new(Operation::ReduceScatter, 0);
    call.blocks = Blocks::known(sizes);
    operands.gives_and_gets(member, call, i64::try_from(all).unwrap_or(i64::MAX), own as i64)
}
