// SPDX-License-Identifier: Apache-2.0
//! Error handlers of communicators (MPI 5.0 section 9.3.1).

use std::ffi::c_int;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::errhandler::{ErrorHandler, Owner};
use isthmus_core::error::Result;

use super::{find, handler_of, set_error_handler};
use crate::c::Out;
use crate::call::{Holder, call_anytime, call_on, raise, raise_to};
use crate::errhandler::{HandlerFunction, create, find_for, handle_of, initial};
use crate::error::{called, class_of};
use crate::process;

impl Holder for h::Comm {
    fn handler(self) -> (usize, ErrorHandler) {
        handler_of(self)
    }
}

/// Runs a body that makes a communicator from groups: its error goes to the handler that the new communicator was to
/// have (MPI 5.0 sections 7.4.2 and 7.6.2), and if that is none, to that of MPI_COMM_SELF.
pub(crate) fn call_for_new(
    function: &'static str,
    handler: h::Errhandler,
    body: impl FnOnce(ErrorHandler) -> Result<()>,
) -> c_int {
    let found = process::running().and_then(|_| find_for(Owner::Comm, handler));
    match found {
        Err(error) => raise(function, h::MPI_COMM_NULL, &error),
        Ok(handler) => match body(handler.clone()) {
            Ok(()) => abi::MPI_SUCCESS,
            Err(error) => raise_to(function, h::MPI_COMM_NULL.0, handler, &error),
        },
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_create_errhandler(function: Option<HandlerFunction>, out: Out<h::Errhandler>) -> c_int {
    call_anytime("MPI_Comm_create_errhandler", || create(Owner::Comm, function, out))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_set_errhandler(comm: h::Comm, handler: h::Errhandler) -> c_int {
    call_on("MPI_Comm_set_errhandler", comm, || {
        set_error_handler(comm, find_for(Owner::Comm, handler)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_get_errhandler(comm: h::Comm, out: Out<h::Errhandler>) -> c_int {
    call_on("MPI_Comm_get_errhandler", comm, || {
        let handler = find(comm)?.user().error_handler().unwrap_or_else(initial);
        out.set("errhandler", handle_of(&handler))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_call_errhandler(comm: h::Comm, code: c_int) -> c_int {
    call_on("MPI_Comm_call_errhandler", comm, || {
        find(comm)?;
        class_of(code)?;
        raise("MPI_Comm_call_errhandler", comm, &called(code));
        Ok(())
    })
}
