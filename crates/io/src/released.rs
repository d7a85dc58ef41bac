// SPDX-License-Identifier: Apache-2.0
//! Closing a file so that one hears what close(2) says: a network file system tells there which of the data that it
//! took it could not write.
//!
//! The only unsafe code of this room: what the standard library has for closing keeps the error for itself.
#![expect(unsafe_code, reason = "close(2) with its error")]

use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::os::fd::{IntoRawFd, OwnedFd};

unsafe extern "C" {
    fn close(descriptor: c_int) -> c_int;
}

/// Closes it. Whatever comes of it the descriptor is gone.
pub(crate) fn release(file: File) -> io::Result<()> {
    // SAFETY: the descriptor was owned, and nobody has it any more: it is closed once, here.
    match unsafe { close(OwnedFd::from(file).into_raw_fd()) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            // On Linux it is closed all the same.
            error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            error => Err(error),
        },
    }
}
