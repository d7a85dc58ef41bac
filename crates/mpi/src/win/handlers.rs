// SPDX-License-Identifier: Apache-2.0
//! Error handlers of windows (MPI 5.0 section 9.3.2).

use std::borrow::Cow;
use std::ffi::c_int;

use isthmus_abi::handles as h;
use isthmus_core::errhandler::{ErrorHandler, Owner};
use isthmus_core::error::Error;

use super::{WINDOWS, find, locked};
use crate::c::Out;
use crate::call::{Holder, call_anytime, call_on, raise};
use crate::errhandler::{HandlerFunction, create, find_for, handle_of};
use crate::error::{called, class_of};

impl Holder for h::Win {
    /// Errors without a window go to the handler of MPI_COMM_SELF.
    fn handler(self) -> (usize, ErrorHandler) {
        match WINDOWS.get(self.0) {
            Some(object) => (self.0, locked(&object.more.handler).clone()),
            None => h::MPI_COMM_NULL.handler(),
        }
    }

    fn named(self, error: &Error) -> Cow<'_, Error> {
        Cow::Owned(match WINDOWS.get(self.0) {
            Some(object) => object.window.named(error),
            None => error.clone(),
        })
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_create_errhandler(function: Option<HandlerFunction>, out: Out<h::Errhandler>) -> c_int {
    call_anytime("MPI_Win_create_errhandler", || create(Owner::Win, function, out))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_set_errhandler(win: h::Win, handler: h::Errhandler) -> c_int {
    call_on("MPI_Win_set_errhandler", win, || {
        let handler = find_for(Owner::Win, handler)?;
        *locked(&find(win)?.more.handler) = handler;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_get_errhandler(win: h::Win, out: Out<h::Errhandler>) -> c_int {
    call_on("MPI_Win_get_errhandler", win, || {
        let handler = locked(&find(win)?.more.handler).clone();
        out.set("errhandler", handle_of(&handler))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_call_errhandler(win: h::Win, code: c_int) -> c_int {
    call_on("MPI_Win_call_errhandler", win, || {
        find(win)?;
        class_of(code)?;
        raise("MPI_Win_call_errhandler", win, &called(code));
        Ok(())
    })
}
