// SPDX-License-Identifier: Apache-2.0
//! Communicators that are there when a request is complete (MPI_Comm_idup and its like).

use std::ffi::c_int;
use std::sync::Arc;

use isthmus_abi::handles as h;
use isthmus_core::comm::Comm;
use isthmus_core::create;
use isthmus_core::error::Result;
use isthmus_core::info::Info;
use isthmus_engine::Request;

use crate::c::Out;
use crate::call::call_on;
use crate::comm::create::{copied, hints};
use crate::comm::{Pending, find, insert_pending};
use crate::process;
use crate::request::{self, Operation};

/// As `duplicate`, with a request. Attributes are copied now.
fn duplicate_later(handle: h::Comm, hints: Info, new: Out<h::Comm>, request: Out<h::Request>) -> Result<()> {
    request.set("request", h::MPI_REQUEST_NULL)?;
    new.set("newcomm", h::MPI_COMM_NULL)?;
    let old = find(handle)?;
    let attributes = copied(old, handle)?;
    later(handle, new, request, |place| {
        create::duplicate_later(process::world()?, old, hints, move |comm: Arc<Comm>| {
            comm.user().replace_attributes(attributes);
            place(comm);
        })
    })
}

/// What gets a communicator when it is there.
type Taker = Box<dyn FnOnce(Arc<Comm>) + Send>;

/// Gives a communicator that is there when its request is complete: what `start` gives, who hands the communicator
/// over.
pub(crate) fn later(
    handle: h::Comm,
    new: Out<h::Comm>,
    request: Out<h::Request>,
    start: impl FnOnce(Taker) -> Result<Request>,
) -> Result<()> {
    request.set("request", h::MPI_REQUEST_NULL)?;
    new.set("newcomm", h::MPI_COMM_NULL)?;
    let result = Arc::new(Pending::default());
    let place = result.clone();
    let started = start(Box::new(move |comm| place.complete(comm)))?;
    new.set("newcomm", insert_pending(result))?;
    request.set("request", request::insert(handle, Operation::Other(started)))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_idup(comm: h::Comm, new: Out<h::Comm>, request: Out<h::Request>) -> c_int {
    call_on("MPI_Comm_idup", comm, || {
        duplicate_later(comm, Info::default(), new, request)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_idup_with_info(
    comm: h::Comm,
    info: h::Info,
    new: Out<h::Comm>,
    request: Out<h::Request>,
) -> c_int {
    call_on("MPI_Comm_idup_with_info", comm, || {
        duplicate_later(comm, hints(info)?, new, request)
    })
}
