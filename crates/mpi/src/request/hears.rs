// SPDX-License-Identifier: Apache-2.0
//! Whose error handler hears of the error of a request.

use std::ffi::c_int;

use isthmus_abi::handles as h;
use isthmus_core::error::Error;

use crate::call::raise;
use crate::comm::Held;

/// Whose error handler hears of the error of a request.
#[derive(Clone)]
pub(crate) enum Hears {
    /// Of its communicator.
    Comm(Held),
    /// Of its window.
    Win(h::Win),
    /// Of its file.
    File(h::File),
}

/// The same for the communicator, window or file of a request, which may have been freed meanwhile.
#[cold]
pub(crate) fn raise_on(function: &'static str, hears: &Hears, error: &Error) -> c_int {
    match hears {
        Hears::Comm(comm) => comm.raise(function, error),
        Hears::Win(window) => raise(function, *window, error),
        Hears::File(file) => raise(function, *file, error),
    }
}
