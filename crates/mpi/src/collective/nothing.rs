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
    #[inline(always)]
    fn are_zero(&self, n: usize) -> bool {
        match self {
            Self::Int(list) => list.slice("counts", n).is_ok_and(|list| list.iter().all(|n| *n == 0)),
            Self::Count(list) => list.slice("counts", n).is_ok_and(|list| list.iter().all(|n| *n == 0)),
            Self::Aint(list) => list.slice("counts", n).is_ok_and(|list| list.iter().all(|n| *n == 0)),
        }
    }

    /// Whether there are `n` of them, such that no multiple of them leaves the address space.
    #[inline(always)]
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
    #[inline(always)]
    fn are_none(&self, blocks: usize) -> bool {
        let is_known = matches!(self.datatypes, Types::One(handle) if datatype::known(handle).is_some());
        is_known && !self.is_in_place() && self.counts.are_zero(blocks) && self.displacements.are_short(blocks)
    }
}

impl Operands {
    /// Whether there is no mistake in a call of no elements. `gets`: this process gets a result.
    #[inline(always)]
    fn are_none(&self, gets: bool) -> bool {
        let is_in_place = self.send(0).is_in_place() || gets && self.receive(0).is_in_place();
        !is_in_place && op::is_usual(self.op, self.datatype)
    }
}

impl Membership {
    /// The end of an operation of `count` elements, if no member has anything to do. `is_empty`: whether that is so
    /// where there are none here.
    #[inline(always)]
    fn over(&self, count: i64, what: Operation, is_empty: impl FnOnce() -> bool) -> Option<Performed> {
        if count != 0 || !is_empty() {
            return None;
        }
        collective::perform_nothing(self.world, self.comm, self.form, what)
    }

    /// The same where others may have something to do.
    #[inline(always)]
    fn passes(&self, what: Operation, root: Option<u32>, is_empty: impl FnOnce() -> bool) -> Option<Result<Performed>> {
        // Between two groups there are as many counts as members of the other one, and ranks of that one are roots.
        let root = root.filter(|_| !self.is_inter() && is_empty())?;
        let step = Step {
            what,
            root,
            in_place: false,
            own: (0, 0),
            operator: 0,
        };
        collective::perform_passing(self.world, self.comm, self.form, step)
    }

    fn is_at(&self, root: c_int) -> bool {
        self.plain_root(root) == Some(self.comm.rank())
    }
}

#[inline(always)]
pub(super) fn bcast(here: &Membership, data: &Elements<Target>, root: c_int) -> Option<Performed> {
    here.over(data.count, Operation::Bcast, || {
        data.are_none() && here.plain_root(root).is_some()
    })
}

/// Allgather and alltoall.
#[inline(always)]
pub(super) fn exchange(
    here: &Membership,
    what: Operation,
    from: &Elements<Source>,
    into: &Elements<Target>,
) -> Option<Performed> {
    here.over(from.count, what, || from.are_none() && into.are_none())
}

#[inline(always)]
pub(super) fn gather(
    here: &Membership,
    from: &Elements<Source>,
    into: &Elements<Target>,
    root: c_int,
) -> Option<Performed> {
    here.over(from.count, Operation::Gather, || {
        from.are_none() && here.plain_root(root).is_some() && (!here.is_at(root) || into.are_none())
    })
}

#[inline(always)]
pub(super) fn scatter(
    here: &Membership,
    from: &Elements<Source>,
    into: &Elements<Target>,
    root: c_int,
) -> Option<Performed> {
    here.over(into.count, Operation::Scatter, || {
        into.are_none() && here.plain_root(root).is_some() && (!here.is_at(root) || from.are_none())
    })
}

/// Those in which all members give and get.
#[inline(always)]
pub(super) fn reducing(here: &Membership, what: Operation, operands: &Operands, n: i64) -> Option<Performed> {
    here.over(n, what, || operands.are_none(true))
}

#[inline(always)]
pub(super) fn reduce(here: &Membership, operands: &Operands, n: i64, root: c_int) -> Option<Performed> {
    here.over(n, Operation::Reduce, || {
        here.plain_root(root).is_some() && operands.are_none(here.is_at(root))
    })
}

pub(super) fn reduce_scatter(here: &Membership, operands: &Operands, counts: &Numbers) -> Option<Result<Performed>> {
    let is_empty = || counts.are_zero(here.size()) && operands.are_none(true);
    here.passes(Operation::ReduceScatter, Some(0), is_empty)
}

pub(super) fn allgatherv(
    here: &Membership,
    from: &Elements<Source>,
    into: &Unequal<Target>,
) -> Option<Result<Performed>> {
    let is_empty = || from.are_none() && into.are_none(here.size());
    here.passes(Operation::Allgatherv, Some(0), is_empty)
}

pub(super) fn gatherv(
    here: &Membership,
    from: &Elements<Source>,
    into: &Unequal<Target>,
    root: c_int,
) -> Option<Result<Performed>> {
    let is_empty = || from.are_none() && (!here.is_at(root) || into.are_none(here.size()));
    here.passes(Operation::Gatherv, here.plain_root(root), is_empty)
}

pub(super) fn scatterv(
    here: &Membership,
    from: &Unequal<Source>,
    into: &Elements<Target>,
    root: c_int,
) -> Option<Result<Performed>> {
    let is_empty = || into.are_none() && (!here.is_at(root) || from.are_none(here.size()));
    here.passes(Operation::Scatterv, here.plain_root(root), is_empty)
}

pub(super) fn alltoallv(
    here: &Membership,
    from: &Unequal<Source>,
    into: &Unequal<Target>,
) -> Option<Result<Performed>> {
    let is_empty = || from.are_none(here.size()) && into.are_none(here.size());
    here.passes(Operation::Alltoallv, Some(0), is_empty)
}
