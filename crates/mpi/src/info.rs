// SPDX-License-Identifier: Apache-2.0
//! Info objects (MPI 5.0 chapter 10).

use std::ffi::{c_char, c_int};
use std::sync::{Mutex, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_core::info::Info;
use isthmus_core::words;

use crate::c::{In, Out, Text, flag};
use crate::call::call_anytime;
use crate::handle::{Kind, Table};

static INFOS: Table<Mutex<Info>> = Table::new(Kind::Info);

/// A copy of the info of a handle; MPI_INFO_NULL has no keys.
pub(crate) fn find(handle: h::Info) -> Result<Info> {
    if handle == h::MPI_INFO_NULL {
        return Ok(Info::default());
    }
    with(handle, |info| Ok(info.clone()))
}

/// A handle for an info.
pub(crate) fn insert(info: Info) -> h::Info {
    h::Info(INFOS.insert(Mutex::new(info)))
}

/// Tells the program something in an info that it gave, unless that is MPI_INFO_NULL.
pub(crate) fn tell(handle: h::Info, key: &str, value: Option<String>) -> Result<()> {
    match value {
        Some(value) if handle != h::MPI_INFO_NULL => with(handle, |info| info.set(key, &value)),
        _ => Ok(()),
    }
}

fn with<R>(handle: h::Info, body: impl FnOnce(&mut Info) -> Result<R>) -> Result<R> {
    if handle == h::MPI_INFO_ENV {
        return body(&mut crate::process::job_info());
    }
    match INFOS.get(handle.0) {
        Some(info) => body(&mut info.lock().unwrap_or_else(PoisonError::into_inner)),
        None if handle == h::MPI_INFO_NULL => fail!(abi::MPI_ERR_INFO, argument("info"), "is MPI_INFO_NULL"),
        None => fail!(
            abi::MPI_ERR_INFO,
            argument("info"),
            "is {:#x}, which is not the handle of an info object",
            handle.0
        ),
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Info_create(info: Out<h::Info>) -> c_int {
    call_anytime("MPI_Info_create", || {
        info.set("info", h::MPI_INFO_NULL)?;
        info.set("info", insert(Info::default()))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Info_create_env(_argc: c_int, _argv: In<*mut c_char>, info: Out<h::Info>) -> c_int {
    // The system knows the arguments, too.
    call_anytime("MPI_Info_create_env", || {
        info.set("info", h::MPI_INFO_NULL)?;
        info.set("info", insert(crate::process::environment_info()))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Info_dup(info: h::Info, copy: Out<h::Info>) -> c_int {
    call_anytime("MPI_Info_dup", || {
        copy.set("newinfo", h::MPI_INFO_NULL)?;
        let content = with(info, |i| Ok(i.clone()))?;
        copy.set("newinfo", insert(content))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Info_free(info: Out<h::Info>) -> c_int {
    call_anytime("MPI_Info_free", || {
        let handle = info.get("info")?;
        if INFOS.remove(handle.0).is_none() {
            fail!(
                abi::MPI_ERR_INFO,
                argument("info"),
                "is {:#x}, which is not the handle of an info object that can be freed",
                handle.0
            );
        }
        info.set("info", h::MPI_INFO_NULL)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Info_set(info: h::Info, key: Text, value: Text) -> c_int {
    call_anytime("MPI_Info_set", || {
        let key = key.get("key", abi::MPI_ERR_INFO_KEY)?;
        let value = value.get("value", abi::MPI_ERR_INFO_VALUE)?;
        if info == h::MPI_INFO_ENV {
            fail!(abi::MPI_ERR_INFO, "MPI_INFO_ENV cannot be changed");
        }
        with(info, |i| i.set(&key, &value))?;
        look_at(&key);
        Ok(())
    })
}

/// Most keys that somebody is told of.
const MOST_TOLD: usize = 20;

/// Tells once of a key that begins as ours do and has no meaning; one process speaks for the job.
fn look_at(key: &str) {
    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let Some(text) = isthmus_settings::unknown_hint(key) else {
        return;
    };
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if told.len() < MOST_TOLD && !told.contains(&text) && crate::process::speaks() {
        crate::process::say(&format!("isthmus: warning: {text}"));
        told.push(text);
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Info_delete(info: h::Info, key: Text) -> c_int {
    call_anytime("MPI_Info_delete", || {
        let key = key.get("key", abi::MPI_ERR_INFO_KEY)?;
        with(info, |i| i.delete(&key))
    })
}

fn lookup(info: h::Info, key: Text) -> Result<Option<String>> {
    let key = key.get("key", abi::MPI_ERR_INFO_KEY)?;
    with(info, |i| Ok(i.get(&key)?.map(str::to_owned)))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Info_get(
    info: h::Info,
    key: Text,
    length: c_int,
    value: Out<c_char>,
    found: Out<c_int>,
) -> c_int {
    call_anytime("MPI_Info_get", || {
        let text = lookup(info, key)?;
        found.set("flag", flag(text.is_some()))?;
        if length < 0 {
            fail!(
                abi::MPI_ERR_ARG,
                argument("valuelen"),
                "is {length}, expected 0 or more"
            );
        }
        match text {
            Some(text) => value.text("value", &text, length as usize + 1).map(drop),
            None => Ok(()),
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Info_get_valuelen(info: h::Info, key: Text, length: Out<c_int>, found: Out<c_int>) -> c_int {
    call_anytime("MPI_Info_get_valuelen", || {
        let text = lookup(info, key)?;
        found.set("flag", flag(text.is_some()))?;
        text.map_or(Ok(()), |text| length.set("valuelen", words::length(&text) as c_int))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Info_get_string(
    info: h::Info,
    key: Text,
    length: Out<c_int>,
    value: Out<c_char>,
    found: Out<c_int>,
) -> c_int {
    call_anytime("MPI_Info_get_string", || {
        let text = lookup(info, key)?;
        found.set("flag", flag(text.is_some()))?;
        let room = length.get("buflen")?;
        if room < 0 {
            fail!(abi::MPI_ERR_ARG, argument("buflen"), "is {room}, expected 0 or more");
        }
        let Some(text) = text else { return Ok(()) };
        if room > 0 {
            value.text("value", &text, room as usize)?;
        }
        length.set("buflen", words::length(&text) as c_int + 1)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Info_get_nkeys(info: h::Info, n: Out<c_int>) -> c_int {
    call_anytime("MPI_Info_get_nkeys", || {
        with(info, |i| n.set("nkeys", i.len() as c_int))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Info_get_nthkey(info: h::Info, n: c_int, key: Out<c_char>) -> c_int {
    call_anytime("MPI_Info_get_nthkey", || {
        with(info, |i| {
            let Ok(at) = usize::try_from(n) else {
                fail!(abi::MPI_ERR_ARG, argument("n"), "is {n}, the keys are counted from 0")
            };
            key.text("key", i.nth_key(at)?, abi::MPI_MAX_INFO_KEY as usize)
                .map(drop)
        })
    })
}
