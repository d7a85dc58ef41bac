// SPDX-License-Identifier: Apache-2.0
//! Locks of the cache. One counts only as long as the file that is locked still has its name: whoever removes or
//! renames what a lock stands for holds it alone, and who waited for it meanwhile has locked a file without a name.

use rustix::fs::{FlockOperation, flock};
use rustix::io::retry_on_intr;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// What is in use, in the directory of each file.
pub(super) const LEASE: &str = ".lease";

// NFS wants a file that is locked alone to be open for writing.
fn open(path: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

/// Whether this is the file of that name.
pub(super) fn is_at(file: &fs::File, path: &Path) -> bool {
    let number = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let own = file.metadata().map(number);
    own.is_ok_and(|own| fs::symlink_metadata(path).map(number).is_ok_and(|other| own == other))
}

/// The lock of this name, with others. An error of the kind `NotFound`: its directory is not there, or not any more.
pub(super) fn share(path: &Path) -> io::Result<fs::File> {
    loop {
        let file = open(path)?;
        retry_on_intr(|| flock(&file, FlockOperation::LockShared))?;
        if is_at(&file, path) {
            return Ok(file);
        }
    }
}

/// The lock of this name alone, if nobody else has it.
pub(super) fn alone(path: &Path) -> io::Result<fs::File> {
    let file = open(path)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    if is_at(&file, path) {
        Ok(file)
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Whether somebody has the lock of this name.
pub(super) fn is_locked(path: &Path) -> bool {
    let lock = || flock(open(path)?, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from);
    lock().is_err()
}
