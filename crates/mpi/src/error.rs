// SPDX-License-Identifier: Apache-2.0
//! Error classes, codes and their texts (MPI 5.0 sections 9.4 and 9.5).

use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::sync::{Mutex, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_core::error::{About, Error, Result};
use isthmus_core::fail;

use crate::c::{Out, Text};
use crate::call::{call_anytime, call_on};
use isthmus_abi::handles as h;

/// A class or code that the program added.
struct Added {
    number: c_int,
    class: c_int,
    text: String,
}

static ADDED: Mutex<Vec<Added>> = Mutex::new(Vec::new());

thread_local! {
    static LAST: RefCell<Option<(c_int, String)>> = const { RefCell::new(None) };
}

fn added<R>(with: impl FnOnce(&mut Vec<Added>) -> R) -> R {
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

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Error_class(code: c_int, class: Out<c_int>) -> c_int {
    call_anytime("MPI_Error_class", || class.set("errorclass", class_of(code)?))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Error_string(code: c_int, string: Out<c_char>, length: Out<c_int>) -> c_int {
    call_anytime("MPI_Error_string", || {
        class_of(code)?;
        let text = match isthmus_abi::error_class(code) {
            Some(c) => format!("{}: {}", c.name, c.text),
            None => added(|a| a.iter().find(|e| e.number == code).map(|e| e.text.clone())).unwrap_or_default(),
        };
        // Texts that the program made are given as they are.
        let predefined = isthmus_abi::error_class(code).is_some();
        let last = LAST.with(|l| {
            let last = l.borrow();
            last.as_ref()
                .filter(|(c, _)| predefined && *c == code)
                .map(|(_, t)| t.clone())
        });
        let text = last.map_or_else(|| text.clone(), |sentence| format!("{text}; {sentence}"));
        let written = string.text("string", &text, abi::MPI_MAX_ERROR_STRING as usize)?;
        length.set("resultlen", written as c_int)
    })
}

fn add(class: Option<c_int>) -> c_int {
    added(|a| {
        let number = a.iter().map(|e| e.number).max().unwrap_or(abi::MPI_ERR_LASTCODE) + 1;
        a.push(Added {
            number,
            class: class.unwrap_or(number),
            text: String::new(),
        });
        number
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Add_error_class(class: Out<c_int>) -> c_int {
    call_anytime("MPI_Add_error_class", || class.set("errorclass", add(None)))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Add_error_code(class: c_int, code: Out<c_int>) -> c_int {
    call_anytime("MPI_Add_error_code", || {
        if class_of(class).about("errorclass")? != class {
            fail!(
                abi::MPI_ERR_ARG,
                argument("errorclass"),
                "is {class}, which is an error code, expected an error class"
            );
        }
        code.set("errorcode", add(Some(class)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Add_error_string(code: c_int, string: Text) -> c_int {
    call_anytime("MPI_Add_error_string", || {
        let text = string.get("string", abi::MPI_ERR_ARG)?.into_owned();
        if text.len() >= abi::MPI_MAX_ERROR_STRING as usize {
            fail!(
                abi::MPI_ERR_ARG,
                argument("string"),
                "is a text of {} bytes, allowed are {}",
                text.len(),
                abi::MPI_MAX_ERROR_STRING - 1
            );
        }
        match added(|a| a.iter_mut().find(|e| e.number == code).map(|e| e.text = text)) {
            Some(()) => Ok(()),
            None => fail!(
                abi::MPI_ERR_ARG,
                argument("errorcode"),
                "is {code}, which was not added by this program"
            ),
        }
    })
}

/// The error that a program gives to a handler, with the text that it has added for it.
pub(crate) fn called(code: c_int) -> Error {
    let text = added(|a| a.iter().find(|e| e.number == code).map(|e| e.text.clone()));
    let text = text.filter(|text| !text.is_empty());
    Error::new(code, text.unwrap_or_else(|| "called by the program".to_owned()))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_call_errhandler(comm: h::Comm, code: c_int) -> c_int {
    call_on("MPI_Comm_call_errhandler", comm, || {
        crate::comm::find(comm)?;
        class_of(code)?;
        crate::call::raise("MPI_Comm_call_errhandler", comm, &called(code));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_call_errhandler(file: h::File, code: c_int) -> c_int {
    call_on("MPI_File_call_errhandler", file, || {
        crate::file::error_handler(file)?;
        class_of(code)?;
        let error = called(code);
        crate::call::raise("MPI_File_call_errhandler", file, &error);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Session_call_errhandler(session: h::Session, code: c_int) -> c_int {
    crate::session::call_in("MPI_Session_call_errhandler", session, |object| {
        class_of(code)?;
        let error = called(code);
        crate::call::raise_to("MPI_Session_call_errhandler", session.0, object.error_handler(), &error);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Remove_error_string(code: c_int) -> c_int {
    remove("MPI_Remove_error_string", "errorcode", code, |a, at| {
        if a[at].text.is_empty() {
            fail!(abi::MPI_ERR_ARG, argument("errorcode"), "is {code}, which has no text");
        }
        a[at].text.clear();
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Remove_error_code(code: c_int) -> c_int {
    remove("MPI_Remove_error_code", "errorcode", code, |a, at| {
        if a[at].class == code {
            fail!(
                abi::MPI_ERR_ARG,
                argument("errorcode"),
                "is {code}, which is an error class"
            );
        }
        without_text(&a[at], "errorcode")?;
        a.remove(at);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Remove_error_class(class: c_int) -> c_int {
    remove("MPI_Remove_error_class", "errorclass", class, |a, at| {
        if a[at].class != class {
            fail!(
                abi::MPI_ERR_ARG,
                argument("errorclass"),
                "is {class}, which is an error code"
            );
        }
        let codes = a.iter().filter(|e| e.class == class).count() - 1;
        if codes > 0 {
            fail!(
                abi::MPI_ERR_ARG,
                argument("errorclass"),
                "is {class}, which still has {codes} error codes; remove them first"
            );
        }
        without_text(&a[at], "errorclass")?;
        a.remove(at);
        Ok(())
    })
}

/// The text of a class or code is removed before itself (MPI 5.0 section 9.5).
fn without_text(added: &Added, argument: &str) -> Result<()> {
    if added.text.is_empty() {
        return Ok(());
    }
    fail!(
        abi::MPI_ERR_ARG,
        argument(argument),
        "is {}, which still has a text; remove it first with MPI_Remove_error_string",
        added.number
    )
}

fn remove(
    function: &'static str,
    argument: &str,
    number: c_int,
    with: impl FnOnce(&mut Vec<Added>, usize) -> Result<()>,
) -> c_int {
    call_anytime(function, || {
        let found = added(|a| a.iter().position(|e| e.number == number).map(|at| with(a, at)));
        match found {
            Some(done) => done,
            None => fail!(
                abi::MPI_ERR_ARG,
                argument(argument),
                "is {number}, which was not added by this program"
            ),
        }
    })
}
