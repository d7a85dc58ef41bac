// SPDX-License-Identifier: Apache-2.0
//! What keeps a file of the cache from being removed.

use rustix::fs::{FlockOperation, flock};
use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// What is in use, in the directory of each file.
pub(super) const LEASE: &str = ".lease";

pub(super) fn open_lease(path: &PathBuf) -> io::Result<fs::File> {
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

pub(super) fn is_locked(path: &PathBuf) -> bool {
    let lock = || flock(open_lease(path)?, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from);
    lock().is_err()
}
