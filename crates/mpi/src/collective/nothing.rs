// SPDX-License-Identifier: Apache-2.0
//! Operations of no elements, which wait for nobody: a call is over when its arguments have been checked. What is
//! unusual about them (MPI_IN_PLACE, an operation of the program, a mistake) takes the general way, whose answer is the
//! same as far as others see.

use std::ffi::c_int;

use isthmus_core::collective::{self, Performed};
use isthmus_core::error::Result;
use isthmus_engine::Unequal as Step;
use isthmus_schedule::Operation;

use super::arguments::{Elements, Memory, Numbers, Types, Unequal};
use super::membership::Membership;
use super::operands::Operands;
use crate::c::{Source, Target};
use crate::{datatype, op};

impl Numbers {
    /// Whether the first `n` are 0.
    fn are_zero(&self, n: usize) -> bool {
        match self {
            Self::Int(list) => list.slice("counts", n).is_ok_and(|list| list.iter().all(|n| *n == 0)),
            Self::Count(list) => list.slice("counts", n).is_ok_and(|list| list.iter().all(|n| *n == 0)),
            Self::Aint(list) => list.slice("counts", n).is_ok_and(|list| list.iter().all(|n| *n == 0)),
        }
    }

    /// Whether there are `n` of them, such that no multiple of them leaves the address space.
    fn are_short(&self, n: usize) -> bool {
        matches!(self, Self::Int(list) if list.slice("displs", n).is_ok())
    }
}

impl<B: Memory> Elements<B> {
    #[inline(always)]
    fn are_none(&self) -> bool {
        self.count == 0 && !self.is_in_place() && datatype::known(self.datatype).is_some()
    }
}

impl<B: Memory> Unequal<B> {
    fn are_none(&self, blocks: usize) -> bool {
        let is_known = matches!(self.datatypes, Types::One(handle) if datatype::known(handle).is_some());
        is_known && !self.is_in_place() && self.counts.are_zero(blocks) && self.displacements.are_short(blocks)
    }
}

impl Operands {
    #[inline(always)]
    fn are_none(&self, n: i64, gives: bool, gets: bool) -> bool {
        n == 0
            && op::is_usual(self.op, self.datatype)
            && !(gives && self.send(n).is_in_place())
            && !(gets && self.receive(n).is_in_place())
    }
}

impl Membership {
    /// The end of an operation, if no member has anything to do. `is_empty`: whether that is so.
    #[inline(always)]
    fn over(&self, what: Operation, is_empty: bool) -> Option<Performed> {
        match is_empty {
            true => collective::perform_nothing(self.world, self.comm, self.form, what),
            false => None,
        }
    }

    /// The same where others may have something to do.
    #[inline(always)]
    fn passes(&self, what: Operation, root: Option<u32>, is_empty: bool) -> Option<Result<Performed>> {
        let root = root.filter(|_| is_empty)?;
        let step = Step {
            what,
            root,
            in_place: false,
            own: (0, 0),
        };
        collective::perform_passing(self.world, self.comm, self.form, step)
    }

    fn is_at(&self, root: c_int) -> bool {
        self.plain_root(root) == Some(self.comm.rank())
    }
}

#[inline(always)]
pub(super) fn bcast(here: &Membership, data: &Elements<Target>, root: c_int) -> Option<Performed> {
    here.over(Operation::Bcast, data.are_none() && here.plain_root(root).is_some())
}

/// Allgather and alltoall.
#[inline(always)]
pub(super) fn exchange(
    here: &Membership,
    what: Operation,
    from: &Elements<Source>,
    into: &Elements<Target>,
) -> Option<Performed> {
    here.over(what, from.are_none() && into.are_none())
}

#[inline(always)]
pub(super) fn gather(
    here: &Membership,
    from: &Elements<Source>,
    into: &Elements<Target>,
    root: c_int,
) -> Option<Performed> {
    let is_empty = from.are_none() && here.plain_root(root).is_some();
    here.over(Operation::Gather, is_empty && (!here.is_at(root) || into.are_none()))
}

#[inline(always)]
pub(super) fn scatter(
    here: &Membership,
    from: &Elements<Source>,
    into: &Elements<Target>,
    root: c_int,
) -> Option<Performed> {
    let is_empty = into.are_none() && here.plain_root(root).is_some();
    here.over(Operation::Scatter, is_empty && (!here.is_at(root) || from.are_none()))
}

/// Those in which all members give and get.
#[inline(always)]
pub(super) fn reducing(here: &Membership, what: Operation, operands: &Operands, n: i64) -> Option<Performed> {
    here.over(what, operands.are_none(n, true, true))
}

#[inline(always)]
pub(super) fn reduce(here: &Membership, operands: &Operands, n: i64, root: c_int) -> Option<Performed> {
    let is_empty = n == 0 && here.plain_root(root).is_some();
    here.over(
        Operation::Reduce,
        is_empty && operands.are_none(n, true, here.is_at(root)),
    )
}

pub(super) fn reduce_scatter(here: &Membership, operands: &Operands, counts: &Numbers) -> Option<Result<Performed>> {
    let is_empty = counts.are_zero(here.size()) && operands.are_none(0, true, true);
    here.passes(Operation::ReduceScatter, Some(0), is_empty)
}

pub(super) fn allgatherv(
    here: &Membership,
    from: &Elements<Source>,
    into: &Unequal<Target>,
) -> Option<Result<Performed>> {
    let is_empty = from.are_none() && into.are_none(here.size());
    here.passes(Operation::Allgatherv, Some(0), is_empty)
}

pub(super) fn gatherv(
    here: &Membership,
    from: &Elements<Source>,
    into: &Unequal<Target>,
    root: c_int,
) -> Option<Result<Performed>> {
    let is_empty = from.are_none() && (!here.is_at(root) || into.are_none(here.size()));
    here.passes(Operation::Gatherv, here.plain_root(root), is_empty)
}

pub(super) fn scatterv(
    here: &Membership,
    from: &Unequal<Source>,
    into: &Elements<Target>,
    root: c_int,
) -> Option<Result<Performed>> {
    let is_empty = into.are_none() && (!here.is_at(root) || from.are_none(here.size()));
    here.passes(Operation::Scatterv, here.plain_root(root), is_empty)
}

pub(super) fn alltoallv(
    here: &Membership,
    from: &Unequal<Source>,
    into: &Unequal<Target>,
) -> Option<Result<Performed>> {
    let is_empty = from.are_none(here.size()) && into.are_none(here.size());
    here.passes(Operation::Alltoallv, Some(0), is_empty)
}
