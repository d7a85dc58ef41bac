// SPDX-License-Identifier: Apache-2.0
//! Client and server (MPI 5.0 section 11.9). Arguments that the standard makes significant at the root alone are looked
//! at there only.

use std::ffi::c_int;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::comm::Comm;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_dynamic::Accept;
use rustix::fs::OFlags;

use crate::apart::Connecting;
use crate::c::{Out, Text};
use crate::call::{call, call_on};
use crate::comm::{give, intra, root_of};
use crate::{info, process};

/// Room that MPI_Open_port has for the name.
const NAME: usize = abi::MPI_MAX_PORT_NAME as usize;

fn name(port: Text) -> Result<String> {
    Ok(port.get("port_name", abi::MPI_ERR_PORT)?.into_owned())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Open_port(hints: h::Info, port: Out<std::ffi::c_char>) -> c_int {
    call("MPI_Open_port", || {
        let takes = takes(hints)?.map_or_else(usual, Ok)?;
        let name = isthmus_dynamic::open_port(process::world()?, &takes)?;
        port.text("port_name", &name, NAME).map(drop)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Close_port(port: Text) -> c_int {
    call("MPI_Close_port", || isthmus_dynamic::close_port(&name(port)?))
}

const ACCEPT: &str = "isthmus_accept";
const WORDS: &str = "user, user=NAME,… with names of keys, or any-with-port";

/// Whom a port takes: the hint `isthmus_accept`, if it is there.
fn takes(hints: h::Info) -> Result<Option<Accept>> {
    let hints = info::find(hints)?;
    let Some(text) = hints.get(ACCEPT)? else {
        return Ok(None);
    };
    match Accept::parse(text) {
        Some(takes) => Ok(Some(takes)),
        None => fail!(
            abi::MPI_ERR_INFO_VALUE,
            argument("info"),
            "has {ACCEPT} = '{text}', expected {WORDS}"
        ),
    }
}

/// The same where the program says nothing.
fn usual() -> Result<Accept> {
    let setting = isthmus_settings::ACCEPT.read(std::env::var_os);
    let text = setting.as_deref().unwrap_or("user");
    Accept::parse(text).ok_or_else(|| {
        let why = format!("ISTHMUS_ACCEPT is '{text}', expected {WORDS}");
        Error::new(abi::MPI_ERR_OTHER, why)
    })
}

/// Nobody waits for longer: clocks count no further.
const LONGEST: Duration = Duration::from_secs(u32::MAX as u64);

/// How long who connects waits for who accepts: the hint `timeout`, in seconds.
fn patience(hints: h::Info) -> Result<Duration> {
    let hints = info::find(hints)?;
    let Some(text) = hints.get("timeout")? else {
        return Ok(isthmus_dynamic::PATIENCE);
    };
    match text.trim().parse::<u64>() {
        Ok(seconds) => Ok(Duration::from_secs(seconds).min(LONGEST)),
        Err(_) => fail!(
            abi::MPI_ERR_INFO_VALUE,
            argument("info"),
            "has timeout = '{text}', expected a number of seconds"
        ),
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_accept(
    port: Text,
    hints: h::Info,
    root: c_int,
    comm: h::Comm,
    new: Out<h::Comm>,
) -> c_int {
    let at_root = || {
        let takes = takes(hints)?;
        Ok((name(port)?, takes))
    };
    make("MPI_Comm_accept", comm, new, |comm| {
        isthmus_dynamic::accept(process::world()?, comm, root_of(comm, root)?, at_root)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_connect(
    port: Text,
    hints: h::Info,
    root: c_int,
    comm: h::Comm,
    new: Out<h::Comm>,
) -> c_int {
    let at_root = || Ok((name(port)?, patience(hints)?));
    make("MPI_Comm_connect", comm, new, |comm| {
        isthmus_dynamic::connect(process::world()?, comm, root_of(comm, root)?, at_root)
    })
}

fn make(
    function: &'static str,
    comm: h::Comm,
    new: Out<h::Comm>,
    join: impl FnOnce(&Comm) -> Result<Arc<Comm>>,
) -> c_int {
    call_on(function, comm, || {
        give(new, || {
            let comm = intra(comm)?;
            let _connecting = Connecting::begin();
            let met = join(comm)?;
            process::has_met(process::world()?);
            Ok(Some(met))
        })
    })
}

/// A stream over the socket of the program, and whether calls on it wait: they do not until this is dropped.
struct Socket {
    stream: UnixStream,
    flags: OFlags,
}

impl Socket {
    fn of(fd: c_int) -> Result<Self> {
        let bad = |why: &str| Error::of_argument(abi::MPI_ERR_ARG, "fd", format!("is {fd}: {why}"));
        if fd < 0 {
            return Err(bad("no descriptor"));
        }
        // SAFETY: the number is used for one call, which asks the system for another descriptor of the same socket and
        // fails if there is none.
        let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
        let own = borrowed.try_clone_to_owned().map_err(|error| bad(&error.to_string()))?;
        let flags = rustix::fs::fcntl_getfl(&own).map_err(|error| bad(&error.to_string()))?;
        let socket = Self {
            stream: UnixStream::from(own),
            flags,
        };
        let waits = rustix::fs::fcntl_setfl(&socket.stream, flags | OFlags::NONBLOCK);
        waits.map_err(|error| bad(&error.to_string()))?;
        Ok(socket)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // As the program had it.
        let _ = rustix::fs::fcntl_setfl(&self.stream, self.flags);
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_join(fd: c_int, new: Out<h::Comm>) -> c_int {
    call_on("MPI_Comm_join", h::MPI_COMM_SELF, || {
        give(new, || {
            let mut socket = Socket::of(fd)?;
            let _connecting = Connecting::begin();
            let own = &process::get()?.comm_self;
            let met = isthmus_dynamic::join(process::world()?, own, &mut socket.stream, &usual()?)?;
            process::has_met(process::world()?);
            Ok(Some(met))
        })
    })
}
