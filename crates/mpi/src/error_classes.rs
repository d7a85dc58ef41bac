// SPDX-License-Identifier: Apache-2.0
//! What the program asks and tells of error classes and codes.

use std::ffi::{c_char, c_int};

use isthmus_abi::constants as abi;
use isthmus_core::error::{About, Result};
use isthmus_core::{fail, words};

use crate::c::{Out, Text};
use crate::call::call_anytime;
use crate::error::{Added, LAST, added, class_of};

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
        if words::length(&text) >= abi::MPI_MAX_ERROR_STRING as usize {
            fail!(
                abi::MPI_ERR_ARG,
                argument("string"),
                "is a text of {} bytes, allowed are {}",
                words::length(&text),
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
