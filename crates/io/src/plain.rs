// SPDX-License-Identifier: Apache-2.0
//! Opening as the system does.

use std::fs::{File as SystemFile, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use isthmus_abi::constants as abi;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use crate::mode::Mode;

/// Opens as the system does; `first`: the opener. What has no offsets is refused, and nobody waits for the other end of
/// a pipe.
pub(crate) fn open_here(path: &Path, mode: Mode, permissions: u32, first: bool) -> io::Result<SystemFile> {
    let file = again(|| {
        OpenOptions::new()
            .read(mode.reads())
            .write(mode.writes())
            .create(first && mode.has(abi::MPI_MODE_CREATE) && !mode.has(abi::MPI_MODE_EXCL))
            .create_new(first && mode.has(abi::MPI_MODE_CREATE) && mode.has(abi::MPI_MODE_EXCL))
            .mode(permissions)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(path)
    })?;
    settled(file)
}

/// A file that has just been opened, without waiting, as it is used.
pub(crate) fn settled(file: SystemFile) -> io::Result<SystemFile> {
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(Errno::ISDIR.into());
    }
    if kind.is_fifo() {
        return Err(Errno::SPIPE.into());
    }
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Tries again what a signal interrupted.
pub(crate) fn again<T>(mut act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match act() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
