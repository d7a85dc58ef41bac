// SPDX-License-Identifier: Apache-2.0
//! Generalized requests: operations of the program (MPI 5.0 section 13.2).
//!
//! Such a request goes away when the program has said that the operation is complete *and* has completed or freed the
//! request.

use std::ffi::c_int;
use std::sync::Arc;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_engine::Completion;

use super::callbacks::{Callbacks, CancelFunction, FreeFunction, QueryFunction};
use super::{Operation, Role, find, insert_object};
use crate::c::{Extra, Out};
use crate::call::call;
use crate::process;

/// Ends a freed request. If two threads find that it is time, one gets it.
pub(super) fn remove(handle: h::Request) -> Result<()> {
    let removed = super::remove(handle);
    let Some(object) = removed else { return Ok(()) };
    if let Some(Operation::Other(r)) = &*object.state() {
        process::world()?.engine().lock().release(*r);
    }
    match &object.role {
        Role::Generalized(callbacks) => callbacks.free(),
        Role::Once | Role::Persistent(_) | Role::Partitioned(..) => Ok(()),
    }
}

fn complete(handle: h::Request) -> Result<()> {
    let object = find(handle)?;
    let Role::Generalized(callbacks) = &object.role else {
        fail!(
            abi::MPI_ERR_REQUEST,
            "the request is not one that MPI_Grequest_start made"
        );
    };
    let Some(Operation::Other(request)) = object.state().clone() else {
        fail!(abi::MPI_ERR_REQUEST, "the generalized request is complete already");
    };
    // A thread that frees or waits for the request may end it from here on.
    let freed = callbacks.clone().set_complete()?;
    process::world()?
        .engine()
        .lock()
        .core
        .complete_user(request, Completion::default());
    if freed { remove(handle) } else { Ok(()) }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Grequest_start(
    query: Option<QueryFunction>,
    free: Option<FreeFunction>,
    cancel: Option<CancelFunction>,
    extra: Extra,
    request: Out<h::Request>,
) -> c_int {
    call("MPI_Grequest_start", || {
        request.set("request", h::MPI_REQUEST_NULL)?;
        let (Some(query), Some(free), Some(cancel)) = (query, free, cancel) else {
            fail!(
                abi::MPI_ERR_ARG,
                "a callback is a null pointer; query_fn, free_fn and cancel_fn must all be given"
            );
        };
        let callbacks = Callbacks::new(query, free, cancel, extra);
        let operation = Operation::Other(process::world()?.engine().lock().core.user_request());
        request.set(
            "request",
            insert_object(
                h::MPI_COMM_SELF,
                Some(operation),
                Role::Generalized(Arc::new(callbacks)),
            ),
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Grequest_complete(request: h::Request) -> c_int {
    call("MPI_Grequest_complete", || complete(request))
}
