// SPDX-License-Identifier: Apache-2.0
//! Whose error handler hears of the error of a request.

use std::borrow::Cow;
use std::ffi::c_int;

use isthmus_abi::handles as h;
use isthmus_core::errhandler::ErrorHandler;
use isthmus_core::error::Error;

use crate::call::{Holder, raise};
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

impl Hears {
    /// What has the error handler.
    pub(super) fn whose(&self) -> Whose {
        match self {
            Self::Comm(comm) => Whose::Comm(comm.handle()),
            Self::Win(window) => Whose::Win(*window),
            Self::File(file) => Whose::File(*file),
        }
    }
}

/// What a request belongs to.
#[derive(Clone, Copy)]
pub(crate) enum Whose {
    Comm(h::Comm),
    Win(h::Win),
    File(h::File),
}

impl Whose {
    /// What an operation that is no message is called.
    pub(super) fn operation(self) -> &'static str {
        match self {
            Self::Comm(_) => "collective operation",
            Self::Win(_) => "operation on a window",
            Self::File(_) => "operation on a file",
        }
    }
}

impl Holder for Whose {
    fn handler(self) -> (usize, ErrorHandler) {
        match self {
            Self::Comm(comm) => comm.handler(),
            Self::Win(window) => window.handler(),
            Self::File(file) => file.handler(),
        }
    }

    fn named(self, error: &Error) -> Cow<'_, Error> {
        match self {
            Self::Comm(comm) => Cow::Owned(comm.named(error).into_owned()),
            Self::Win(window) => Cow::Owned(window.named(error).into_owned()),
            Self::File(file) => Cow::Owned(file.named(error).into_owned()),
        }
    }
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
