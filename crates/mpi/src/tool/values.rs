// SPDX-License-Identifier: Apache-2.0
//! Values, texts and lists as functions of the tool interface pass them, and what is around every body.

use std::ffi::{c_char, c_int};
use std::sync::{Mutex, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::words;

use crate::c::{Out, Text};

/// Result of a body; the error is the code that C gets.
pub(super) type Code<T = ()> = Result<T, c_int>;

/// A value of a variable or of an element of an event, of one of the datatypes that MPI_T uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Int(c_int),
    Wide(u64),
}

impl Value {
    pub(super) fn datatype(self) -> h::Datatype {
        match self {
            Self::Int(_) => h::MPI_INT,
            Self::Wide(_) => h::MPI_UNSIGNED_LONG_LONG,
        }
    }

    pub(super) fn size(self) -> usize {
        match self {
            Self::Int(_) => size_of::<c_int>(),
            Self::Wide(_) => size_of::<u64>(),
        }
    }

    /// Writes the value where the tool wants it.
    pub(super) fn give(self, buffer: Out<u8>) -> Code {
        let target = buffer.slice("buf", self.size()).map_err(|_| abi::MPI_T_ERR_INVALID)?;
        match self {
            Self::Int(value) => target.copy_from_slice(&value.to_ne_bytes()),
            Self::Wide(value) => target.copy_from_slice(&value.to_ne_bytes()),
        }
        Ok(())
    }
}

pub(super) fn code(body: impl FnOnce() -> Code) -> c_int {
    body().err().unwrap_or(abi::MPI_SUCCESS)
}

/// How often MPI_T_init_thread was called more than MPI_T_finalize.
static INITIALIZED: Mutex<u32> = Mutex::new(0);

pub(super) fn initialized() -> std::sync::MutexGuard<'static, u32> {
    INITIALIZED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Functions other than MPI_T_init_thread need it first.
pub(super) fn tool(body: impl FnOnce() -> Code) -> c_int {
    code(|| {
        if *initialized() == 0 {
            return Err(abi::MPI_T_ERR_NOT_INITIALIZED);
        }
        body()
    })
}

pub(super) fn set<T>(out: Out<T>, value: T) -> Code {
    out.set("", value).map_err(|_| abi::MPI_T_ERR_INVALID)
}

pub(super) fn get<T: Copy>(out: Out<T>) -> Code<T> {
    out.get("").map_err(|_| abi::MPI_T_ERR_INVALID)
}

/// A name that the tool looks for.
pub(super) fn name<'a>(text: Text) -> Code<std::borrow::Cow<'a, str>> {
    text.get("name", 0).map_err(|_| abi::MPI_T_ERR_INVALID)
}

/// The item of this index.
pub(super) fn nth<T>(items: &[T], index: c_int) -> Code<&T> {
    let index = usize::try_from(index).map_err(|_| abi::MPI_T_ERR_INVALID_INDEX)?;
    items.get(index).ok_or(abi::MPI_T_ERR_INVALID_INDEX)
}

/// Writes a text (MPI 5.0 section 15.3.3): `length` is the room before the call and what the whole text with its
/// terminator needs after it. Null pointers: not wanted.
pub(super) fn text(out: Out<c_char>, length: Out<c_int>, text: &str) -> Code {
    if length.is_null() {
        return Ok(());
    }
    let room = usize::try_from(get(length)?).unwrap_or(0);
    if !out.is_null() && room > 0 {
        out.text("", text, room).map_err(|_| abi::MPI_T_ERR_INVALID)?;
    }
    set(length, words::length(text) as c_int + 1)
}

/// Writes as many items of a list as the tool has room for.
pub(super) fn list(out: Out<c_int>, length: c_int, items: &[usize]) -> Code {
    let length = usize::try_from(length).map_err(|_| abi::MPI_T_ERR_INVALID)?;
    let n = length.min(items.len());
    let target = out.slice("indices", n).map_err(|_| abi::MPI_T_ERR_INVALID)?;
    for (to, from) in target.iter_mut().zip(items) {
        *to = *from as c_int;
    }
    Ok(())
}
