// SPDX-License-Identifier: Apache-2.0
//! Collective communication (MPI 5.0 chapter 6 and section 8.6): arguments become a
//! [`Prepared`] operation, or a plain one. How it goes is decided below ([`isthmus_core::collective`]).
//!
//! * this file: where an operation takes place, and the forms of every function: blocking, nonblocking, persistent;
//! * `arguments`: buffers, counts and datatypes as the functions pass them;
//! * `plain`, `rows`: operations about which nothing is unusual, of equal blocks and others; `pieces`: their buffers;
//! * `data`: operations that move data; `reduction`: operations that compute; `neighbour`: those along a topology;
//! * `entry` (generated from `spec/functions.tsv`): the functions that C calls. Each operation `fn x(place: &Place, …)`
//!   of the files above gives `MPI_X`, `MPI_Ix` and `MPI_X_init`, with counts of `int` and `MPI_Count`.

use std::ffi::c_int;

use isthmus_abi::Status;
use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::collective::{self, Form, Performed, Persistent, Plain, PlainUnequal, Prepared};
use isthmus_core::comm::Comm;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_core::world::World;
use isthmus_datatype::{Datatype, Foreign};

use crate::c::Out;
use crate::call::call_on;
use crate::request::{self, Operation};
use crate::{comm, info, process};

mod arguments;
mod data;
#[rustfmt::skip]
#[expect(clippy::useless_conversion, reason = "counts that are wide already are converted as the others")]
#[path = "../../generated/collectives.rs"]
mod entry;
mod neighbour;
mod pieces;
mod plain;
mod reduction;
mod rows;

/// A communicator with the world that it is part of.
struct Place {
    world: &'static World,
    comm: &'static Comm,
    form: Form,
}

/// What this process is in a rooted operation.
enum Role {
    Root,
    /// One of those that the root serves.
    Other,
    /// In the root's group of an intercommunicator: does nothing.
    Bystander,
}

/// A root argument that has been understood.
struct Root {
    /// Rank as plans count: of an intercommunicator, in both groups together.
    rank: u32,
    role: Role,
}

impl Place {
    #[inline(always)]
    fn of(handle: h::Comm, form: Form) -> Result<Self> {
        let process = process::get()?;
        Ok(Self {
            world: process.world(),
            comm: comm::of(process, handle)?,
            form,
        })
    }

    /// Does or starts an operation, which `plain` gives where nothing is unusual, `general` always.
    #[inline(always)]
    fn perform(
        &self,
        plain: impl FnOnce() -> Option<Plain>,
        general: impl FnOnce() -> Result<Prepared>,
    ) -> Result<Performed> {
        collective::perform(self.world, self.comm, self.form, plain, general)
    }

    /// The same for an operation of blocks that may differ in length.
    #[inline]
    fn perform_unequal<'a>(
        &self,
        plain: impl FnOnce() -> Option<PlainUnequal<rows::Blocks<'a>>>,
        general: impl FnOnce() -> Result<Prepared>,
    ) -> Result<Performed> {
        collective::perform_unequal(self.world, self.comm, self.form, plain, general)
    }

    fn perform_in_general(&self, general: impl FnOnce() -> Result<Prepared>) -> Result<Performed> {
        self.perform(|| None, general)
    }

    /// Number of processes of the (local) group.
    fn size(&self) -> usize {
        self.comm.size() as usize
    }

    /// Number of blocks that an operation gets from or has for all: of an intercommunicator, the remote group's.
    fn blocks(&self) -> usize {
        self.comm.remote().map_or_else(|| self.size(), |group| group.size())
    }

    fn rank(&self) -> usize {
        self.comm.rank() as usize
    }

    fn is_inter(&self) -> bool {
        self.comm.remote().is_some()
    }

    /// Whether an operation is in place, which it cannot be between two groups.
    fn in_place(&self, argument: &str, given: bool) -> Result<bool> {
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
    fn bytes(&self, ty: &Datatype, count: u64) -> Result<u64> {
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
    fn plain_root(&self, root: c_int) -> Option<u32> {
        u32::try_from(root).ok().filter(|&root| root < self.comm.size())
    }

    /// The root argument of a rooted operation.
    #[inline]
    fn root(&self, root: c_int) -> Result<Root> {
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

/// Does an operation and waits for its end.
#[inline(always)]
fn blocking(function: &'static str, comm: h::Comm, perform: impl FnOnce(&Place) -> Result<Performed>) -> c_int {
    call_on(function, comm, || {
        perform(&Place::of(comm, Form::Blocking)?)?;
        Ok(())
    })
}

/// Starts an operation and gives its request.
fn nonblocking(
    function: &'static str,
    comm: h::Comm,
    request: Out<h::Request>,
    perform: impl FnOnce(&Place) -> Result<Performed>,
) -> c_int {
    call_on(function, comm, || {
        request.set("request", h::MPI_REQUEST_NULL)?;
        let begun = match perform(&Place::of(comm, Form::Nonblocking)?)? {
            Performed::Started(started) => Operation::Other(started),
            Performed::Done => Operation::Done(Status::empty()),
            Performed::Prepared(_) => fail!(abi::MPI_ERR_INTERN, "an operation that was to be started was not"),
        };
        request.set("request", request::insert(comm, begun))
    })
}

/// Gives a request that starts the operation as often as the program likes (MPI 5.0 section 6.13). It keeps what the
/// operation needs of communicator, datatypes and count arrays, so their handles may be freed.
fn persistent(
    function: &'static str,
    comm: h::Comm,
    info: h::Info,
    request: Out<h::Request>,
    perform: impl FnOnce(&Place) -> Result<Performed>,
) -> c_int {
    call_on(function, comm, || {
        request.set("request", h::MPI_REQUEST_NULL)?;
        info::find(info)?;
        let place = Place::of(comm, Form::Persistent)?;
        let world = place.world;
        let Performed::Prepared(prepared) = perform(&place)? else {
            fail!(abi::MPI_ERR_INTERN, "an operation that was to be kept was started");
        };
        let operation = Persistent::new(world, prepared, comm::hold(comm)?)?;
        let starter = Box::new(move || {
            Ok(match operation.start(world)? {
                Performed::Started(started) => Operation::Other(started),
                _ => Operation::Done(Status::empty()),
            })
        });
        request.set("request", request::insert_persistent(comm, starter))
    })
}
