// SPDX-License-Identifier: Apache-2.0
//! Error handlers of files (MPI 5.0 section 9.3.3).

use std::borrow::Cow;
use std::ffi::c_int;

use isthmus_abi::handles as h;
use isthmus_core::errhandler::{ErrorHandler, Owner};
use isthmus_core::error::Error;

use super::{error_handler, handler_of, named, set_error_handler};
use crate::c::Out;
use crate::call::{Holder, call_anytime, call_on, raise};
use crate::errhandler::{HandlerFunction, create, find_for, handle_of};
use crate::error::{called, class_of};

impl Holder for h::File {
    fn handler(self) -> (usize, ErrorHandler) {
        handler_of(self)
    }

    fn named(self, error: &Error) -> Cow<'_, Error> {
        Cow::Owned(named(self, error.clone()))
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_create_errhandler(function: Option<HandlerFunction>, out: Out<h::Errhandler>) -> c_int {
    call_anytime("MPI_File_create_errhandler", || create(Owner::File, function, out))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_set_errhandler(file: h::File, handler: h::Errhandler) -> c_int {
    call_on("MPI_File_set_errhandler", file, || {
        set_error_handler(file, find_for(Owner::File, handler)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_get_errhandler(file: h::File, out: Out<h::Errhandler>) -> c_int {
    call_on("MPI_File_get_errhandler", file, || {
        out.set("errhandler", handle_of(&error_handler(file)?))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_call_errhandler(file: h::File, code: c_int) -> c_int {
    call_on("MPI_File_call_errhandler", file, || {
        error_handler(file)?;
        class_of(code)?;
        let error = called(code);
        raise("MPI_File_call_errhandler", file, &error);
        Ok(())
    })
}
