// SPDX-License-Identifier: Apache-2.0
//! Asking about requests without ending them (MPI 5.0 section 3.7.6), and what their statuses say.

use std::ffi::c_int;

use isthmus_abi::Status;
use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::error::Result;
use isthmus_engine::Engine;

use super::completion::{all, any_active};
use super::{Role, find, give_empty, give_status, is_active};
use crate::c::{In, Out, count, flag};
use crate::call::call;
use crate::process;

/// The engine after a round of progress.
fn progressed() -> Result<isthmus_engine::Guard<'static>> {
    let mut engine = process::world()?.engine().lock();
    engine.progress();
    Ok(engine)
}

fn is_complete(handle: h::Request, engine: &Engine) -> Result<bool> {
    Ok(handle == h::MPI_REQUEST_NULL || super::is_complete(handle, engine)?)
}

/// Status of a complete request, which stays, none if it is null or inactive; asks the program if the operation is its
/// own, so the engine must not be locked.
fn status_of(handle: h::Request) -> Result<Option<Status>> {
    if !is_active(handle)? {
        return Ok(None);
    }
    let object = find(handle)?;
    let mut status = {
        let engine = process::world()?.engine().lock();
        let state = object.state();
        state
            .as_ref()
            .map_or_else(Status::empty, |operation| operation.look(&engine).0)
    };
    if let Role::Generalized(callbacks) = &object.role {
        callbacks.query(&mut status)?;
    }
    if let Some(copies) = &object.copies {
        copies.end();
    }
    Ok(Some(status))
}

fn give_status_of(handle: h::Request, out: Out<Status>) -> Result<()> {
    match status_of(handle)? {
        Some(status) => give_status(out, status),
        None => give_empty(out),
    }
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Request_get_status(request: h::Request, done: Out<c_int>, status: Out<Status>) -> c_int {
    call("MPI_Request_get_status", || {
        let complete = is_complete(request, &*progressed()?)?;
        if complete {
            give_status_of(request, status)?;
        } else {
            process::world()?.engine().idle();
        }
        done.set("flag", flag(complete))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Request_get_status_any(
    n: c_int,
    requests: In<h::Request>,
    index: Out<c_int>,
    done: Out<c_int>,
    status: Out<Status>,
) -> c_int {
    call("MPI_Request_get_status_any", || {
        let slots = requests.slice("array_of_requests", count("count", n)? as usize)?;
        if !any_active(slots)? {
            index.set("index", abi::MPI_UNDEFINED)?;
            give_empty(status);
            return done.set("flag", flag(true));
        }
        let first = complete(slots)?.first().copied();
        index.set("index", first.map_or(abi::MPI_UNDEFINED, |at| at as c_int))?;
        if let Some(at) = first {
            give_status_of(slots[at], status)?;
        }
        done.set("flag", flag(first.is_some()))
    })
}

/// Which of the requests are active and complete.
fn complete(slots: &[h::Request]) -> Result<Vec<usize>> {
    let engine = progressed()?;
    let mut found = Vec::new();
    for (at, &slot) in slots.iter().enumerate() {
        if is_active(slot)? && is_complete(slot, &engine)? {
            found.push(at);
        }
    }
    Ok(found)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Request_get_status_all(
    n: c_int,
    requests: In<h::Request>,
    done: Out<c_int>,
    statuses: Out<Status>,
) -> c_int {
    all("MPI_Request_get_status_all", statuses, |many| {
        let slots = requests.slice("array_of_requests", count("count", n)? as usize)?;
        let engine = progressed()?;
        for &slot in slots {
            if !is_complete(slot, &engine)? {
                return done.set("flag", flag(false));
            }
        }
        drop(engine);
        for &slot in slots {
            many.put_outcome(status_of(slot)?.unwrap_or_else(Status::empty), None);
        }
        done.set("flag", flag(true))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Request_get_status_some(
    n: c_int,
    requests: In<h::Request>,
    outcount: Out<c_int>,
    indices: Out<c_int>,
    statuses: Out<Status>,
) -> c_int {
    all("MPI_Request_get_status_some", statuses, |many| {
        let slots = requests.slice("array_of_requests", count("incount", n)? as usize)?;
        if !any_active(slots)? {
            return outcount.set("outcount", abi::MPI_UNDEFINED);
        }
        let found = complete(slots)?;
        let indices = indices.slice("array_of_indices", found.len())?;
        for (at, index) in found.iter().zip(indices) {
            *index = *at as c_int;
            many.put_outcome(status_of(slots[*at])?.unwrap_or_else(Status::empty), None);
        }
        outcount.set("outcount", found.len() as c_int)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Test_cancelled(status: In<Status>, cancelled: Out<c_int>) -> c_int {
    call("MPI_Test_cancelled", || {
        let status = status.slice("status", 1)?;
        cancelled.set("flag", flag(status[0].cancelled()))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Status_set_cancelled(status: Out<Status>, cancelled: c_int) -> c_int {
    call("MPI_Status_set_cancelled", || {
        let mut changed = status.get("status")?;
        changed.set_cancelled(cancelled != 0);
        status.set("status", changed)
    })
}
