// SPDX-License-Identifier: Apache-2.0
//! Where a collective operation takes place: a communicator, and what this process is in it.

use std::ffi::c_int;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::collective::{self, Form, Performed, Plain, PlainAlong, PlainUnequal, Prepared};
use isthmus_core::comm::Comm;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_core::topology::Neighbours;
use isthmus_core::world::World;
use isthmus_datatype::{Datatype, Foreign};
use isthmus_engine::Pieces;

use crate::{comm, process};

/// A communicator with the world that it is part of.
pub(super) struct Membership {
    pub(super) world: &'static World,
    pub(super) comm: &'static Comm,
    pub(super) form: Form,
}

/// What this process is in a rooted operation.
pub(super) enum Role {
    Root,
    /// One of those that the root serves.
    Other,
    /// In the root's group of an intercommunicator: does nothing.
    Bystander,
}

/// A root argument that has been understood.
pub(super) struct Root {
    /// Rank as plans count: of an intercommunicator, in both groups together.
    pub(super) rank: u32,
    pub(super) role: Role,
}

impl Membership {
    #[inline(always)]
    pub(super) fn of(handle: h::Comm, form: Form) -> Result<Self> {
        let process = process::get()?;
        Ok(Self {
            world: process.world(),
            comm: comm::of(process, handle)?,
            form,
        })
    }

    /// Does or starts an operation, which `plain` gives where nothing is unusual, `general` always.
    #[inline(always)]
    pub(super) fn perform(
        &self,
        plain: impl FnOnce() -> Option<Plain>,
        general: impl FnOnce() -> Result<Prepared>,
    ) -> Result<Performed> {
        collective::perform(self.world, self.comm, self.form, plain, general)
    }

    /// The same for an operation of blocks that may differ in length.
    #[inline]
    pub(super) fn perform_unequal<P: Pieces>(
        &self,
        plain: impl FnOnce() -> Option<PlainUnequal<P>>,
        general: impl FnOnce() -> Result<Prepared>,
    ) -> Result<Performed> {
        collective::perform_unequal(self.world, self.comm, self.form, plain, general)
    }

    /// The same for an operation along the edges of a topology.
    #[inline]
    pub(super) fn perform_along<P: Pieces>(
        &self,
        plain: impl FnOnce(&Neighbours) -> Option<PlainAlong<P>>,
        general: impl FnOnce() -> Result<Prepared>,
    ) -> Result<Performed> {
        collective::perform_along(self.world, self.comm, self.form, plain, general)
    }

    /// Number of processes of the (local) group.
    pub(super) fn size(&self) -> usize {
        self.comm.size() as usize
    }

    /// Number of blocks that an operation gets from or has for all: of an intercommunicator, the remote group's.
    pub(super) fn blocks(&self) -> usize {
        self.comm.remote().map_or_else(|| self.size(), |group| group.size())
    }

    pub(super) fn rank(&self) -> usize {
        self.comm.rank() as usize
    }

    pub(super) fn is_inter(&self) -> bool {
        self.comm.remote().is_some()
    }

    /// Whether an operation is in place, which it cannot be between two groups.
    pub(super) fn in_place(&self, argument: &str, given: bool) -> Result<bool> {
        if given && self.is_inter() {
            fail!(
                abi::MPI_ERR_BUFFER,
                argument(argument),
                "is MPI_IN_PLACE, which has no meaning on an intercommunicator"
            );
        }
        Ok(given)
    }

    /// Bytes of the packed stream of `count` elements as it travels in this communicator.
    pub(super) fn bytes(&self, ty: &Datatype, count: u64) -> Result<u64> {
        let acting = self.comm.joint().map_or(self.comm, |joint| &joint.comm);
        let bytes = match Foreign::new(ty, acting.form(self.world))? {
            None => ty.bytes(count)?,
            Some(foreign) => foreign.bytes(count)?,
        };
        // What plans calculate with: no sum of blocks and no place in a row of them is beyond this.
        let all = bytes.checked_mul(acting.size().into());
        if all.is_none_or(|all| i64::try_from(all).is_err()) {
            fail!(
                abi::MPI_ERR_COUNT,
                "{} blocks of {bytes} bytes are more than can be addressed",
                acting.size()
            );
        }
        Ok(bytes)
    }

    /// The root argument, if it is a rank of this group.
    #[inline(always)]
    pub(super) fn plain_root(&self, root: c_int) -> Option<u32> {
        u32::try_from(root).ok().filter(|&root| root < self.comm.size())
    }

    /// The root argument of a rooted operation.
    #[inline]
    pub(super) fn root(&self, root: c_int) -> Result<Root> {
        if let Some(joint) = self.comm.joint() {
            let (rank, role) = match root {
                abi::MPI_ROOT => (joint.local.start + self.comm.rank(), Role::Root),
                abi::MPI_PROC_NULL => (joint.local.start, Role::Bystander),
                root => (joint.remote.start + self.root_below(root, self.blocks())?, Role::Other),
            };
            return Ok(Root { rank, role });
        }
        let rank = self.root_below(root, self.size())?;
        let role = if rank == self.comm.rank() {
            Role::Root
        } else {
            Role::Other
        };
        Ok(Root { rank, role })
    }

    #[inline]
    fn root_below(&self, root: c_int, size: usize) -> Result<u32> {
        match u32::try_from(root) {
            Ok(rank) if (rank as usize) < size => Ok(rank),
            _ => self.no_root(root, size),
        }
    }

    #[cold]
    fn no_root(&self, root: c_int, size: usize) -> Result<u32> {
        fail!(
            abi::MPI_ERR_ROOT,
            argument("root"),
            "is {root}, but {} has the {}ranks 0 to {}{}",
            self.comm.describe(),
            if self.is_inter() { "remote " } else { "" },
            size.saturating_sub(1),
            if self.is_inter() {
                ", or MPI_ROOT and MPI_PROC_NULL in the root's own group"
            } else {
                ""
            }
        )
    }
}
