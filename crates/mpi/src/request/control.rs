// SPDX-License-Identifier: Apache-2.0
//! Starting, cancelling and freeing requests (MPI 5.0 sections 3.7.3, 3.8.4 and 3.9).

use std::ffi::c_int;
use std::sync::Arc;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::error::Result;
use isthmus_core::fail;

use super::copies::Left;
use super::{Object, Operation, Role, find, remove, started, whose_at};
use crate::c::{In, Out, count};
use crate::call::{call, call_on};
use crate::process;

fn start(handle: h::Request) -> Result<()> {
    let object = find(handle)?;
    let (Role::Persistent(starter) | Role::Partitioned(starter, _)) = &object.role else {
        fail!(
            abi::MPI_ERR_REQUEST,
            "the request is not a persistent one; only what an MPI_..._init function made can be started"
        );
    };
    if object.is_active() {
        fail!(
            abi::MPI_ERR_REQUEST,
            "the persistent request is active already; wait for it first"
        );
    }
    // What is sent in parts is copied as parts become ready.
    let in_parts = matches!(&object.role, Role::Partitioned(_, role) if role.is_send());
    if let Some(copies) = object.copies.as_ref().filter(|_| !in_parts) {
        copies.begin();
    }
    // The state is never locked before the engine.
    let operation = starter()?;
    *object.state() = Some(operation);
    started();
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Start(request: Out<h::Request>) -> c_int {
    call_on("MPI_Start", whose_at(request), || start(request.get("request")?))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Startall(n: c_int, requests: In<h::Request>) -> c_int {
    call("MPI_Startall", || {
        requests
            .slice("array_of_requests", count("count", n)? as usize)?
            .iter()
            .try_for_each(|r| start(*r))
    })
}

/// Collective and partitioned operations must be complete first (MPI 5.0 sections 6.12, 6.13 and 4.2).
fn may_be_freed(object: &Object) -> Result<()> {
    if matches!(object.role, Role::Generalized(_)) {
        return Ok(());
    }
    {
        // The state is never locked before the engine.
        let mut engine = process::world()?.engine().lock();
        engine.progress();
        if object.is_complete(&engine) {
            return Ok(());
        }
    }
    match (&object.role, &*object.state()) {
        (Role::Once | Role::Persistent(_), Some(Operation::Other(_))) => fail!(
            abi::MPI_ERR_REQUEST,
            argument("request"),
            "is an active {}, which cannot be freed; wait for it first",
            object.hears.whose().operation()
        ),
        (Role::Partitioned(..), Some(Operation::Send(_) | Operation::Receive(_))) => fail!(
            abi::MPI_ERR_REQUEST,
            argument("request"),
            "is an active partitioned operation, which cannot be freed; wait for it first"
        ),
        _ => Ok(()),
    }
}

fn free(request: Out<h::Request>) -> Result<()> {
    let handle = request.get("request")?;
    let object = find(handle)?;
    may_be_freed(object)?;
    request.set("request", h::MPI_REQUEST_NULL)?;
    if let Role::Generalized(callbacks) = &object.role {
        // It lives until the program says that the operation is complete.
        return if callbacks.clone().set_freed() {
            super::generalized::remove(handle)
        } else {
            Ok(())
        };
    }
    let operation = object.state().take();
    if let Some(operation) = operation {
        let copies = object.copies.clone().map(|copies| Arc::new(Left(copies)));
        operation.release(&mut process::world()?.engine().lock(), copies.as_ref());
    }
    match remove(handle).map(|object| object.role) {
        Some(Role::Partitioned(_, role)) => role.release(),
        _ => Ok(()),
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Request_free(request: Out<h::Request>) -> c_int {
    call_on("MPI_Request_free", whose_at(request), || free(request))
}

fn cancel(handle: h::Request) -> Result<()> {
    let object = find(handle)?;
    if let Role::Generalized(callbacks) = &object.role {
        return callbacks.cancel();
    }
    if matches!(object.role, Role::Partitioned(..)) {
        fail!(abi::MPI_ERR_REQUEST, "partitioned communication cannot be cancelled");
    }
    let operation = object.state().clone();
    match operation {
        Some(Operation::Send(r) | Operation::Receive(r)) => process::world()?.engine().lock().cancel(r),
        Some(Operation::Sent(sent)) => {
            let recall = process::world()?.engine().lock().cancel_sent(sent);
            *object.state() = Some(Operation::Send(recall));
        }
        // Complete already.
        Some(Operation::Done(_)) => {}
        Some(Operation::Reply(_) | Operation::Other(_) | Operation::Pair(..) | Operation::Flush(_)) => fail!(
            abi::MPI_ERR_REQUEST,
            "only sends, receives and generalized requests can be cancelled; this is a request of another kind"
        ),
        None => fail!(abi::MPI_ERR_REQUEST, "the persistent request is not active"),
    }
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Cancel(request: Out<h::Request>) -> c_int {
    call_on("MPI_Cancel", whose_at(request), || cancel(request.get("request")?))
}
