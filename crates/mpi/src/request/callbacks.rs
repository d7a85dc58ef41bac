// SPDX-License-Identifier: Apache-2.0
//! The program's part of a generalized request: its functions, and how far the operation is.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use isthmus_abi::Status;
use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;

use crate::c::{Extra, flag};

pub(super) type QueryFunction = extern "C" fn(Extra, *mut Status) -> c_int;
pub(super) type FreeFunction = extern "C" fn(Extra) -> c_int;
pub(super) type CancelFunction = extern "C" fn(Extra, c_int) -> c_int;

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
    /// Of an operation that begins.
    pub(super) fn new(query: QueryFunction, free: FreeFunction, cancel: CancelFunction, extra: Extra) -> Self {
        Self {
            query,
            free,
            cancel,
            extra,
            complete: AtomicBool::new(false),
            freed: AtomicBool::new(false),
        }
    }

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
    pub(super) fn set_complete(&self) -> Result<bool> {
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
