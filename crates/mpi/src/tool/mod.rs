// SPDX-License-Identifier: Apache-2.0
//! The tool interface (MPI 5.0 chapter 15). Functions of this chapter return codes of their own and call no error
//! handler.
//!
//! * this file: MPI_T_init_thread, MPI_T_finalize and what all share;
//! * `control`: control variables, the settings of `spec/settings.tsv`;
//! * `variable`: which performance variables there are; `performance`: sessions and handles;
//! * `event`: which events there are and what they carry; `registration`: callbacks and how they are called;
//! * `category`, `enumeration`: how all that is grouped and named.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;

use crate::c::{Out, Text};

mod category;
mod control;
mod enumeration;
mod event;
mod performance;
mod registration;
mod variable;

pub(crate) use registration::{begin, dispatch, error_raised};

/// Result of a body; the error is the code that C gets.
type Code<T = ()> = Result<T, c_int>;

/// Was more than MPI_THREAD_FUNNELED asked for? Threads of a tool that take turns among themselves need not take turns
/// with those of the program, since the levels are independent (MPI 5.0 section 15.3.4). If it was before MPI_Init, the
/// engine is made for several.
static CONCURRENT: AtomicBool = AtomicBool::new(false);

/// May a thread use the tool interface while another one is inside MPI?
pub(crate) fn is_concurrent() -> bool {
    CONCURRENT.load(Ordering::SeqCst)
}

/// How often MPI_T_init_thread was called more than MPI_T_finalize.
static INITIALIZED: Mutex<u32> = Mutex::new(0);

/// A value of a variable or of an element of an event, of one of the datatypes that MPI_T uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Int(c_int),
    Wide(u64),
}

impl Value {
    fn datatype(self) -> h::Datatype {
        match self {
            Self::Int(_) => h::MPI_INT,
            Self::Wide(_) => h::MPI_UNSIGNED_LONG_LONG,
        }
    }

    fn size(self) -> usize {
        match self {
            Self::Int(_) => size_of::<c_int>(),
            Self::Wide(_) => size_of::<u64>(),
        }
    }

    /// Writes the value where the tool wants it.
    fn give(self, buffer: Out<u8>) -> Code {
        let target = buffer.slice("buf", self.size()).map_err(|_| abi::MPI_T_ERR_INVALID)?;
        match self {
            Self::Int(value) => target.copy_from_slice(&value.to_ne_bytes()),
            Self::Wide(value) => target.copy_from_slice(&value.to_ne_bytes()),
        }
        Ok(())
    }
}

fn code(body: impl FnOnce() -> Code) -> c_int {
    body().err().unwrap_or(abi::MPI_SUCCESS)
}

fn initialized() -> std::sync::MutexGuard<'static, u32> {
    INITIALIZED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Functions other than MPI_T_init_thread need it first.
fn tool(body: impl FnOnce() -> Code) -> c_int {
    code(|| {
        if *initialized() == 0 {
            return Err(abi::MPI_T_ERR_NOT_INITIALIZED);
        }
        body()
    })
}

fn set<T>(out: Out<T>, value: T) -> Code {
    out.set("", value).map_err(|_| abi::MPI_T_ERR_INVALID)
}

fn get<T: Copy>(out: Out<T>) -> Code<T> {
    out.get("").map_err(|_| abi::MPI_T_ERR_INVALID)
}

/// A name that the tool looks for.
fn name<'a>(text: Text) -> Code<std::borrow::Cow<'a, str>> {
    text.get("name", 0).map_err(|_| abi::MPI_T_ERR_INVALID)
}

/// The item of this index.
fn nth<T>(items: &[T], index: c_int) -> Code<&T> {
    let index = usize::try_from(index).map_err(|_| abi::MPI_T_ERR_INVALID_INDEX)?;
    items.get(index).ok_or(abi::MPI_T_ERR_INVALID_INDEX)
}

/// Writes a text (MPI 5.0 section 15.3.3): `length` is the room before the call and what the whole text with its
/// terminator needs after it. Null pointers: not wanted.
fn text(out: Out<c_char>, length: Out<c_int>, text: &str) -> Code {
    if length.is_null() {
        return Ok(());
    }
    let room = usize::try_from(get(length)?).unwrap_or(0);
    if !out.is_null() && room > 0 {
        out.text("", text, room).map_err(|_| abi::MPI_T_ERR_INVALID)?;
    }
    set(length, text.len() as c_int + 1)
}

/// Writes as many items of a list as the tool has room for.
fn list(out: Out<c_int>, length: c_int, items: &[usize]) -> Code {
    let length = usize::try_from(length).map_err(|_| abi::MPI_T_ERR_INVALID)?;
    let n = length.min(items.len());
    let target = out.slice("indices", n).map_err(|_| abi::MPI_T_ERR_INVALID)?;
    for (to, from) in target.iter_mut().zip(items) {
        *to = *from as c_int;
    }
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_init_thread(required: c_int, provided: Out<c_int>) -> c_int {
    code(|| {
        let mut granted = crate::environment::granted(required).map_err(|_| abi::MPI_T_ERR_INVALID)?;
        if granted > abi::MPI_THREAD_FUNNELED {
            CONCURRENT.store(true, Ordering::SeqCst);
            if crate::process::takes_turns() {
                // The engine was made for threads that take turns.
                granted = abi::MPI_THREAD_FUNNELED;
            }
        }
        set(provided, granted)?;
        *initialized() += 1;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_finalize() -> c_int {
    code(|| {
        let mut count = initialized();
        match count.checked_sub(1) {
            None => return Err(abi::MPI_T_ERR_NOT_INITIALIZED),
            Some(rest) => *count = rest,
        }
        if *count == 0 {
            control::end();
            performance::end();
            registration::end();
        }
        Ok(())
    })
}

/// MPI_Pcontrol (section 15.2.4) is for profiling libraries; without one it has no effect. Its other arguments are
/// theirs.
#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Pcontrol(_level: c_int) -> c_int {
    abi::MPI_SUCCESS
}
