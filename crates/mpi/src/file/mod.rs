// SPDX-License-Identifier: Apache-2.0
//! Files (MPI 5.0 chapter 14).
//!
//! * this file: objects behind the handles; `handlers`: their error handlers;
//! * `manage`: opening, closing, sizes, hints, consistency; `view`: views and pointers;
//! * `access`: reading and writing; `representation`: how data are represented in files.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::errhandler::ErrorHandler;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_datatype::{Basic, Datatype};
use isthmus_engine::Request;
use isthmus_io::File;

use crate::handle::{Kind, Table};
use representation::Form;

mod access;
mod handlers;
mod manage;
mod representation;
mod view;

/// What a handle names.
struct Object {
    file: Arc<File>,
    /// What this process does for others while the file is open.
    service: Mutex<Option<Request>>,
    handler: Mutex<ErrorHandler>,
    shown: Mutex<Shown>,
}

/// What MPI_File_get_view tells of a view, and what accesses through it need.
#[derive(Clone)]
struct Shown {
    etype: (h::Datatype, Datatype),
    filetype: (h::Datatype, Datatype),
    form: Form,
}

impl Default for Shown {
    fn default() -> Self {
        let byte = (h::MPI_BYTE, Datatype::of(Basic::Byte));
        Self {
            etype: byte.clone(),
            filetype: byte,
            form: Form::Native,
        }
    }
}

static FILES: Table<Object> = Table::new(Kind::File);

/// The handler of MPI_FILE_NULL: of errors without a file, and initially of every file.
static DEFAULT: Mutex<ErrorHandler> = Mutex::new(ErrorHandler::Return);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn find(handle: h::File) -> Result<&'static Object> {
    match FILES.get(handle.0) {
        Some(object) => Ok(object),
        None if handle == h::MPI_FILE_NULL => fail!(abi::MPI_ERR_FILE, argument("fh"), "is MPI_FILE_NULL"),
        None => fail!(
            abi::MPI_ERR_FILE,
            argument("fh"),
            "is {:#x}, which is not the handle of a file",
            handle.0
        ),
    }
}

/// The handler for errors of a file, and the handle that it is told.
fn handler_of(handle: h::File) -> (usize, ErrorHandler) {
    match FILES.get(handle.0) {
        Some(object) => (handle.0, locked(&object.handler).clone()),
        None => (h::MPI_FILE_NULL.0, locked(&DEFAULT).clone()),
    }
}

/// An error of a call on a file, which tells what file that is.
fn named(handle: h::File, error: Error) -> Error {
    match FILES.get(handle.0) {
        Some(object) => object.file.here().named(error),
        None => error,
    }
}

/// The handler of a file or of MPI_FILE_NULL.
fn error_handler(handle: h::File) -> Result<ErrorHandler> {
    if handle != h::MPI_FILE_NULL {
        find(handle)?;
    }
    Ok(handler_of(handle).1)
}

/// Sets it.
fn set_error_handler(handle: h::File, handler: ErrorHandler) -> Result<()> {
    if handle == h::MPI_FILE_NULL {
        *locked(&DEFAULT) = handler;
    } else {
        *locked(&find(handle)?.handler) = handler;
    }
    Ok(())
}
