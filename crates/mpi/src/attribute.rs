// SPDX-License-Identifier: Apache-2.0
//! Callbacks of attribute keys, which communicators, datatypes and windows have alike (MPI 5.0 sections 7.7 and 16.1).

use std::ffi::{c_int, c_void};

use isthmus_abi::constants as abi;
use isthmus_core::attribute::{self, Copy, Delete};
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;

use crate::c::Extra;

/// `MPI_Comm_copy_attr_function` and its twins for other objects: the handle is a pointer-sized value.
type CopyFunction = extern "C" fn(usize, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
/// `MPI_Comm_delete_attr_function` and its twins.
type DeleteFunction = extern "C" fn(usize, c_int, *mut c_void, *mut c_void) -> c_int;

/// A callback argument: one of the predefined small constants, or a function.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Callback(usize);

/// The copy callback as a closure.
pub(crate) fn copy_closure(function: Callback, extra: Extra) -> Copy {
    match function.0 {
        abi::MPI_COMM_NULL_COPY_FN => Box::new(|_, _, _| Ok(None)),
        abi::MPI_COMM_DUP_FN => Box::new(|_, _, value| Ok(Some(value))),
        address => {
            // SAFETY: MPI asks the program for a function of this type; the predefined constants are dealt with above.
            let copy = unsafe { std::mem::transmute::<usize, CopyFunction>(address) };
            Box::new(move |handle, key, value| {
                let (mut new, mut keep) = (std::ptr::null_mut::<c_void>(), 0);
                let code = copy(
                    handle,
                    key,
                    extra.0 as _,
                    value as _,
                    (&raw mut new).cast(),
                    &raw mut keep,
                );
                check(code, "copy", key)?;
                Ok((keep != 0).then_some(new as usize))
            })
        }
    }
}

/// The delete callback as a closure.
pub(crate) fn delete_closure(function: Callback, extra: Extra) -> Delete {
    if function.0 == abi::MPI_COMM_NULL_DELETE_FN {
        return Box::new(|_, _, _| Ok(()));
    }
    // SAFETY: MPI asks the program for a function of this type; the predefined constant is dealt with above.
    let delete = unsafe { std::mem::transmute::<usize, DeleteFunction>(function.0) };
    Box::new(move |handle, key, value| check(delete(handle, key, value as _, extra.0 as _), "delete", key))
}

fn check(code: c_int, which: &str, key: i32) -> Result<()> {
    if code == abi::MPI_SUCCESS {
        return Ok(());
    }
    Err(Error::new(
        code,
        format!("the {which} callback of key {key} returned {code}"),
    ))
}

pub(crate) fn user_key(key: c_int) -> Result<()> {
    if (1..attribute::FIRST_USER_KEY).contains(&key) {
        fail!(
            abi::MPI_ERR_KEYVAL,
            argument("keyval"),
            "is {key}, a predefined key, which cannot be changed"
        );
    }
    Ok(())
}
