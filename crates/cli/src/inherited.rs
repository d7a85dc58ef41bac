// SPDX-License-Identifier: Apache-2.0
//! Standard streams that were closed when the command began (`isthmus run … >&-`). Before `main` the runtime opens
//! /dev/null in their place, and what is written there is gone without an error: so they are looked at before that.
//!
//! The only unsafe code of this room: the linker is told of a function that runs before the runtime. It makes two
//! system calls and stores what they say.
#![expect(unsafe_code, reason = "the place of a function that runs before main")]

use rustix::io::Errno;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static OUTPUT_CLOSED: AtomicBool = AtomicBool::new(false);
static ERRORS_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the section holds addresses of C functions, which the C runtime calls once, on the only thread, before main.
// This one needs nothing that is made later: no allocation, no thread, no stream.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let is_closed = |fd| rustix::io::fcntl_getfd(fd) == Err(Errno::BADF);
    OUTPUT_CLOSED.store(is_closed(rustix::stdio::stdout()), Ordering::Relaxed);
    ERRORS_CLOSED.store(is_closed(rustix::stdio::stderr()), Ordering::Relaxed);
}

/// Fails where there is no standard output.
pub(crate) fn output() -> io::Result<()> {
    open(&OUTPUT_CLOSED)
}

/// Fails where there is no standard error.
pub(crate) fn errors() -> io::Result<()> {
    open(&ERRORS_CLOSED)
}

fn open(closed: &AtomicBool) -> io::Result<()> {
    match closed.load(Ordering::Relaxed) {
        true => Err(io::Error::new(
            io::ErrorKind::NotConnected,
            "it is closed (>/dev/null throws output away)",
        )),
        false => Ok(()),
    }
}
