// SPDX-License-Identifier: Apache-2.0
//! Private directories with a lock that is held as long as an owner lives. Whoever makes one removes those whose lock
//! is free: their owners were killed. One with a *lease*, a file that says for how many seconds, stays for so long
//! after the lease was last renewed (when the file was last touched): another owner may come.

use crate::content::hex;
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A directory that has not got its name yet is given so long for that.
const SETTLING: Duration = Duration::from_secs(60);
/// Names in a directory.
const LOCK: &str = "lock";
const LEASE: &str = "lease";
const NOTE: &str = "scratch";
/// No lease is longer, seconds.
const LONGEST_LEASE: u64 = 30 * 86_400;

/// Names of directories of jobs begin so.
pub(crate) const JOB: &str = "job-";

/// Names of directories that jobs have elsewhere begin so.
pub(crate) const SCRATCH: &str = "isthmus-scratch-";

/// Notes a directory elsewhere that goes with this one.
pub(crate) fn note_scratch(path: &Path, scratch: &Path) -> io::Result<()> {
    fs::write(path.join(NOTE), scratch.as_os_str().as_bytes())
}

/// The directory elsewhere that goes with this one.
pub(crate) fn scratch(path: &Path) -> Option<PathBuf> {
    let noted = PathBuf::from(OsString::from_vec(fs::read(path.join(NOTE)).ok()?));
    let ours = noted.file_name()?.as_bytes().starts_with(SCRATCH.as_bytes());
    (ours && noted.is_absolute()).then_some(noted)
}

/// Removes a directory, and what it has elsewhere.
pub(crate) fn remove_all(path: &Path) -> io::Result<()> {
    if let Some(elsewhere) = scratch(path) {
        let _ = fs::remove_dir_all(elsewhere);
    }
    fs::remove_dir_all(path)
}

/// Where the directories of jobs are in a cache, after removing those that were left.
pub(crate) fn jobs(cache: &Path) -> io::Result<PathBuf> {
    let jobs = cache.join("jobs");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&jobs)?;
    sweep(&jobs, JOB, rustix::process::getuid().as_raw());
    Ok(jobs)
}

/// A private directory; removed when dropped.
#[derive(Debug)]
pub struct Guarded {
    path: PathBuf,
    _lock: fs::File,
}

impl Guarded {
    /// One below the user's cache, where other nodes may see it, after removing what killed agents left.
    pub fn in_cache(cache: &Path) -> io::Result<Self> {
        Self::create(&jobs(cache)?, JOB)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// One below `base`; its name begins with `prefix` and cannot be guessed. It gets that name with its lock held, so
    /// whoever sees it with a free lock knows that its owner is gone.
    pub fn create(base: &Path, prefix: &str) -> io::Result<Self> {
        let (path, lock) = make(base, prefix, |_| Ok(()))?;
        Ok(Self { path, _lock: lock })
    }
}

/// Keeps others who ask for the same from files in a directory until it is dropped: for files that are read, changed
/// and written again. Nothing where the file system has no such locks.
pub fn alone_in(directory: &Path) -> Option<fs::File> {
    let lock = fs::File::open(directory).ok()?;
    let locked = rustix::io::retry_on_intr(|| flock(&lock, FlockOperation::LockExclusive));
    locked.is_ok().then_some(lock)
}

/// Makes such a directory, with what `fill` puts into it before it has its name. Several owners may hold the lock; it
/// keeps sweepers away.
pub(crate) fn make(
    base: &Path,
    prefix: &str,
    fill: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<(PathBuf, fs::File)> {
    let name = format!("{prefix}{}", hex(&random::<16>()?));
    let (path, unnamed) = (base.join(&name), base.join(format!(".{name}")));
    fs::DirBuilder::new()
        .mode(0o700)
        .create(&unnamed)
        .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
    let lock = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(unnamed.join(LOCK))?;
    flock(&lock, FlockOperation::NonBlockingLockShared)?;
    fill(&unnamed)?;
    fs::rename(&unnamed, &path)?;
    Ok((path, lock))
}

/// Joins the owners of a directory. None: it is gone, or is being removed.
pub(crate) fn join(path: &Path) -> io::Result<Option<fs::File>> {
    // A lock is taken on an open file; NFS wants it open for writing.
    let lock = match fs::OpenOptions::new().read(true).write(true).open(path.join(LOCK)) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // Who only looks whether it is owned holds the lock for a moment.
    for attempt in 0.. {
        match flock(&lock, FlockOperation::NonBlockingLockShared) {
            Ok(()) => break,
            Err(rustix::io::Errno::WOULDBLOCK) if attempt < 20 => std::thread::sleep(Duration::from_millis(10)),
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
    // Whoever removed it before we had the lock has removed the file first or will find it locked.
    Ok(path.join(LOCK).exists().then_some(lock))
}

/// Removes a directory that nobody owns any more and whose lease is over.
pub(crate) fn remove_left(path: &Path) -> bool {
    let lock = match fs::OpenOptions::new().write(true).open(path.join(LOCK)) {
        Ok(lock) => Some(lock),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(_) => return false,
    };
    if lock.is_some_and(|lock| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() || is_leased(path)) {
        return false;
    }
    remove_all(path).is_ok()
}

/// Notes for how long a directory is to stay without an owner.
pub(crate) fn write_lease(path: &Path, lease: Duration) -> io::Result<()> {
    fs::write(path.join(LEASE), lease.as_secs().to_string())
}

/// From now on.
pub(crate) fn renew_lease(path: &Path) {
    let lease = fs::OpenOptions::new().write(true).open(path.join(LEASE));
    let _ = lease.and_then(|file| file.set_modified(std::time::SystemTime::now()));
}

/// How long ago a lease was renewed; none when there is none, or it is over.
pub(crate) fn lease_age(path: &Path) -> Option<Duration> {
    let file = path.join(LEASE);
    let seconds: u64 = fs::read_to_string(&file).ok()?.trim().parse().ok()?;
    let renewed = fs::metadata(&file).and_then(|m| m.modified()).ok()?;
    // Touched in the future, by another clock: just now.
    let age = renewed.elapsed().unwrap_or_default();
    (age < Duration::from_secs(seconds.min(LONGEST_LEASE))).then_some(age)
}

/// Whether somebody holds its lock.
pub(crate) fn is_owned(path: &Path) -> bool {
    let lock = fs::OpenOptions::new().write(true).open(path.join(LOCK));
    lock.is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err())
}

fn is_leased(path: &Path) -> bool {
    lease_age(path).is_some()
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Bytes that nobody can guess.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Removes what killed owners left below `base` under names with this prefix.
pub fn sweep(base: &Path, prefix: &str, user: u32) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_str().unwrap_or_default();
        let unnamed = name.strip_prefix('.');
        if unnamed.unwrap_or(name).starts_with(prefix) && may_be_abandoned(&entry, unnamed.is_some(), user) {
            remove_left(&entry.path());
        }
    }
}

fn may_be_abandoned(entry: &fs::DirEntry, unnamed: bool, user: u32) -> bool {
    let Ok(metadata) = fs::symlink_metadata(entry.path()) else {
        return false;
    };
    if !metadata.is_dir() || metadata.uid() != user {
        return false;
    }
    let age = metadata.modified().ok().and_then(|m| m.elapsed().ok());
    !unnamed || age.is_some_and(|age| age >= SETTLING)
}
