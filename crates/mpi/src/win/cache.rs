// SPDX-License-Identifier: Apache-2.0
//! Names of windows and what is cached on them (MPI 5.0 sections 7.7.3, 7.8 and 12.2.6).

use std::ffi::{c_char, c_int};

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::attribute::{self, Keys, Owner};
use isthmus_core::error::Result;
use isthmus_core::words;

use super::{Object, find};
use crate::attribute::{Callback, copy_closure, delete_closure, user_key};
use crate::c::{Extra, Out, Text, flag};
use crate::call::{call, call_on};

/// Keys for windows.
static KEYS: Keys = Keys::new(Owner::Win);

impl Object {
    /// The value of a predefined key: the address itself of the memory, and pointers to the others.
    fn predefined(&self, key: c_int) -> Option<usize> {
        fn at<T>(value: &T) -> Option<usize> {
            Some(std::ptr::from_ref(value).expose_provenance())
        }
        match key {
            abi::MPI_WIN_BASE => Some(self.window.base()),
            abi::MPI_WIN_SIZE => at(&self.cached().values.size),
            abi::MPI_WIN_DISP_UNIT => at(&self.cached().values.unit),
            abi::MPI_WIN_CREATE_FLAVOR => at(&self.cached().values.flavor),
            abi::MPI_WIN_MODEL => at(&self.cached().values.model),
            _ => None,
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_set_name(win: h::Win, name: Text) -> c_int {
    call_on("MPI_Win_set_name", win, || {
        let name = name.get("win_name", abi::MPI_ERR_ARG)?;
        let name = words::cut(&name, abi::MPI_MAX_OBJECT_NAME as usize - 1);
        find(win)?.window.set_name(name);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_get_name(win: h::Win, name: Out<c_char>, length: Out<c_int>) -> c_int {
    call_on("MPI_Win_get_name", win, || {
        let text = if win == h::MPI_WIN_NULL {
            "MPI_WIN_NULL".to_owned()
        } else {
            find(win)?.window.name()
        };
        let n = name.text("win_name", &text, abi::MPI_MAX_OBJECT_NAME as usize)?;
        length.set("resultlen", n as c_int)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_create_keyval(copy: Callback, delete: Callback, key: Out<c_int>, extra: Extra) -> c_int {
    call("MPI_Win_create_keyval", || {
        key.set("win_keyval", abi::MPI_KEYVAL_INVALID)?;
        key.set(
            "win_keyval",
            KEYS.create(copy_closure(copy, extra), delete_closure(delete, extra)),
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_free_keyval(key: Out<c_int>) -> c_int {
    call("MPI_Win_free_keyval", || {
        let number = key.get("win_keyval")?;
        user_key(number)?;
        KEYS.free(number)?;
        key.set("win_keyval", abi::MPI_KEYVAL_INVALID)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_set_attr(win: h::Win, key: c_int, value: usize) -> c_int {
    call_on("MPI_Win_set_attr", win, || {
        user_key(key)?;
        attribute::set(&find(win)?.cached().attributes, win.0, &KEYS.usable(key)?, value)
    })
}

fn get(win: h::Win, key: c_int, value: Out<usize>, found: Out<c_int>) -> Result<()> {
    let object = find(win)?;
    let content = match object.predefined(key) {
        Some(content) => Some(content),
        None => {
            KEYS.find(key)?;
            attribute::get(&object.cached().attributes, key)
        }
    };
    found.set("flag", flag(content.is_some()))?;
    content.map_or(Ok(()), |content| value.set("attribute_val", content))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_get_attr(win: h::Win, key: c_int, value: Out<usize>, found: Out<c_int>) -> c_int {
    call_on("MPI_Win_get_attr", win, || get(win, key, value, found))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_delete_attr(win: h::Win, key: c_int) -> c_int {
    call_on("MPI_Win_delete_attr", win, || {
        user_key(key)?;
        KEYS.find(key)?;
        attribute::delete(&find(win)?.cached().attributes, win.0, key).map(drop)
    })
}
