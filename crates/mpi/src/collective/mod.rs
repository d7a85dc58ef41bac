// SPDX-License-Identifier: Apache-2.0
//! Collective communication (MPI 5.0 chapter 6 and section 8.6): arguments become a prepared operation, or a plain one.
//! How it goes is decided below ([`isthmus_core::collective`]).
//!
//! * this file: the forms of every function: blocking, nonblocking, persistent;
//! * `membership`: where an operation takes place;
//! * `arguments`: buffers, counts and datatypes as the functions pass them;
//! * `nothing`: operations of no elements;
//! * `plain`, `rows`: operations about which nothing is unusual, of equal blocks and others; `pieces`: their buffers;
//! * `data`: operations that move data; `neighbour`: those along a topology; `reduction`: operations that compute
//!   (`operands`: with what);
//! * `entry` (generated from `spec/functions.tsv`): the functions that C calls. Each operation
//!   `fn x(member: &Membership, …)` of the files above gives `MPI_X`, `MPI_Ix` and `MPI_X_init`, with counts of `int`
//!   and `MPI_Count`.

use std::ffi::c_int;

use isthmus_abi::Status;
use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::collective::{Form, Performed, Persistent};
use isthmus_core::error::Result;
use isthmus_core::fail;

use crate::c::Out;
use crate::call::call_on;
use crate::request::{self, Operation};
use crate::{comm, info};
use membership::Membership;

mod arguments;
mod data;
#[rustfmt::skip]
#[expect(clippy::useless_conversion, reason = "counts that are wide already are converted as the others")]
#[path = "../../generated/collectives.rs"]
mod entry;
mod membership;
mod neighbour;
mod nothing;
mod operands;
mod pieces;
mod plain;
mod reduction;
mod rows;

/// Does an operation and waits for its end.
#[inline(always)]
fn blocking(function: &'static str, comm: h::Comm, perform: impl FnOnce(&Membership) -> Result<Performed>) -> c_int {
    call_on(function, comm, || {
        perform(&Membership::of(comm, Form::Blocking)?)?;
        Ok(())
    })
}

/// Starts an operation and gives its request.
fn nonblocking(
    function: &'static str,
    comm: h::Comm,
    request: Out<h::Request>,
    perform: impl FnOnce(&Membership) -> Result<Performed>,
) -> c_int {
    call_on(function, comm, || {
        request.set("request", h::MPI_REQUEST_NULL)?;
        let begun = match perform(&Membership::of(comm, Form::Nonblocking)?)? {
            Performed::Started(started) => Operation::Other(started),
            Performed::Done => return request.set("request", request::over(comm)),
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
    perform: impl FnOnce(&Membership) -> Result<Performed>,
) -> c_int {
    call_on(function, comm, || {
        request.set("request", h::MPI_REQUEST_NULL)?;
        info::find(info)?;
        let member = Membership::of(comm, Form::Persistent)?;
        let world = member.world;
        let Performed::Prepared(prepared) = perform(&member)? else {
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
