// SPDX-License-Identifier: Apache-2.0
//! Generalized requests: operations of the program (MPI 5.0 section 13.2).
//!
//! Such a request goes away when the program has said that the operation is complete *and* has completed or freed the
//! request.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use isthmus_abi::Status;
use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_engine::Completion;

use super::{Operation, Role, find, insert_object};
use crate::attribute::Extra;
use crate::c::{Out, flag};
use crate::call::call;
use crate::process;

type QueryFunction = extern "C" fn(Extra, *mut Status) -> c_int;
type FreeFunction = extern "C" fn(Extra) -> c_int;
type CancelFunction = extern "C" fn(Extra, c_int) -> c_int;

/// What the program gave, and how far the operation is.
pub(super) struct Callbacks {
    query: QueryFunction,
    free: FreeFunction,
    cancel: CancelFunction,
    extra: Extra,
    complete: AtomicBool,
    freed: AtomicBool,
}

impl Callbacks {
    pub(super) fn query(&self, status: &mut Status) -> Result<()> {
        check((self.query)(self.extra, status), "query")
    }

    pub(super) fn free(&self) -> Result<()> {
        check((self.free)(self.extra), "free")
    }

    pub(super) fn cancel(&self) -> Result<()> {
        let complete = self.complete.load(Ordering::SeqCst);
        check((self.cancel)(self.extra, flag(complete)), "cancel")
    }

    /// The program has freed the request; true if the operation was complete before.
    pub(super) fn set_freed(&self) -> bool {
        self.freed.store(true, Ordering::SeqCst);
        self.complete.load(Ordering::SeqCst)
    }

    /// The operation is complete, which is said once only; true if the request was freed before.
    fn set_complete(&self) -> Result<bool> {
        if self.complete.swap(true, Ordering::SeqCst) {
            fail!(abi::MPI_ERR_REQUEST, "the generalized request is complete already");
        }
        Ok(self.freed.load(Ordering::SeqCst))
    }
}

fn check(code: c_int, which: &str) -> Result<()> {
    if code == abi::MPI_SUCCESS {
        return Ok(());
    }
    Err(Error::new(
        code,
        format!("the {which} callback of a generalized request returned {code}"),
    ))
}

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
        let callbacks = Callbacks {
            query,
            free,
            cancel,
            extra,
            complete: AtomicBool::new(false),
            freed: AtomicBool::new(false),
        };
        let operation = Operation::Other(process::world()?.engine().lock().user_request());
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
