// SPDX-License-Identifier: Apache-2.0
//! Error classes, codes and their texts (MPI 5.0 sections 9.4 and 9.5): what the program has added, and the sentence of
//! the last error. What the program calls stands in `error_classes.rs`.

use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;

/// A class or code that the program added.
pub(crate) struct Added {
    pub(crate) number: c_int,
    pub(crate) class: c_int,
    pub(crate) text: String,
}

static ADDED: Mutex<Vec<Added>> = Mutex::new(Vec::new());

thread_local! {
    pub(crate) static LAST: RefCell<Option<(c_int, String)>> = const { RefCell::new(None) };
}

/// What the program has added.
pub(crate) fn added<R>(with: impl FnOnce(&mut Vec<Added>) -> R) -> R {
    with(&mut ADDED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Largest class or code in use (attribute MPI_LASTUSEDCODE).
pub(crate) fn last_used_code() -> c_int {
    added(|a| a.iter().map(|e| e.number).max()).unwrap_or(abi::MPI_ERR_LASTCODE)
}

/// Keeps the sentence of the last error of this thread for MPI_Error_string.
pub(crate) fn remember(function: &str, error: &Error) {
    if error.class == abi::MPI_SUCCESS {
        // A program may call a handler with it; it says nothing about a failure.
        return;
    }
    LAST.with(|last| *last.borrow_mut() = Some((error.class, format!("{function} failed: {error}"))));
}

/// `MPI_ERR_…`, for messages.
pub(crate) fn class_name(class: c_int) -> &'static str {
    isthmus_abi::error_class(class).map_or("error code added by the program", |c| c.name)
}

/// Exit status of a process that ends because of an error of this class.
pub(crate) fn exit_status(class: c_int) -> c_int {
    if (1..=255).contains(&class) { class } else { 1 }
}

/// The class of a code.
pub(crate) fn class_of(code: c_int) -> Result<c_int> {
    if isthmus_abi::error_class(code).is_some() {
        return Ok(code);
    }
    match added(|a| a.iter().find(|e| e.number == code).map(|e| e.class)) {
        Some(class) => Ok(class),
        None => fail!(
            abi::MPI_ERR_ARG,
            argument("errorcode"),
            "is {code}, which is not an error code"
        ),
    }
}

/// The error that a program gives to a handler, with the text that it has added for it.
pub(crate) fn called(code: c_int) -> Error {
    let text = added(|a| a.iter().find(|e| e.number == code).map(|e| e.text.clone()));
    let text = text.filter(|text| !text.is_empty());
    Error::new(code, text.unwrap_or_else(|| "called by the program".to_owned()))
}
