// SPDX-License-Identifier: Apache-2.0
//! Private directories with a lock that is held as long as their owner lives. Whoever makes one removes those whose lock is free:
//! their owners were killed.

use crate::content::hex;
use rustix::fs::{FlockOperation, flock};
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A directory that has not got its name yet is given so long for that.
const SETTLING: Duration = Duration::from_secs(60);

/// A private directory; removed when dropped.
#[derive(Debug)]
pub struct Guarded {
    path: PathBuf,
    _lock: fs::File,
}

impl Guarded {
    /// One below the user's cache, where other nodes may see it, after removing what killed agents left.
    pub fn in_cache(cache: &Path) -> io::Result<Self> {
        let jobs = cache.join("jobs");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&jobs)?;
        let user = rustix::process::getuid().as_raw();
        sweep(&jobs, "job-", user);
        Self::create(&jobs, "job-")
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// One below `base`; its name begins with `prefix` and cannot be guessed. It gets that name with its lock held, so whoever sees it
    /// with a free lock knows that its owner is gone.
    pub fn create(base: &Path, prefix: &str) -> io::Result<Self> {
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
            .open(unnamed.join("lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(&unnamed, &path)?;
        Ok(Self { path, _lock: lock })
    }
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
        if unnamed.unwrap_or(name).starts_with(prefix) && is_abandoned(&entry, unnamed.is_some(), user) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(entry: &fs::DirEntry, unnamed: bool, user: u32) -> bool {
    let Ok(metadata) = fs::symlink_metadata(entry.path()) else {
        return false;
    };
    if !metadata.is_dir() || metadata.uid() != user {
        return false;
    }
    let age = metadata.modified().ok().and_then(|m| m.elapsed().ok());
    if unnamed && age.is_none_or(|age| age < SETTLING) {
        return false;
    }
    match fs::OpenOptions::new().write(true).open(entry.path().join("lock")) {
        Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}
