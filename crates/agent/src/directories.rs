// SPDX-License-Identifier: Apache-2.0
//! The private directories of a subjob on a node, and their end.
//!
//! ```text
//!  $XDG_RUNTIME_DIR or /tmp: isthmus-<user>-<random>/r       rendezvous socket
//!  /dev/shm (ISTHMUS_SHM_DIRECTORY): isthmus-<user>-<random>/memory  shared memory of the processes
//!                                                   /...     doorbells
//! ```
//! Each is readable by its user only, has an unguessable name and holds a locked file `lock` as long as its
//! agent lives. An agent that starts removes those whose lock is free: their agent was killed.

use isthmus_stage::content::hex;
use rustix::fs::{FlockOperation, flock};
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A directory younger than this may not have its lock yet.
const SETTLING: Duration = Duration::from_secs(60);

/// Longest base of the private directory, bytes: the path of a socket has at most 107, ours adds 54 at most.
const LONGEST: usize = 53;

/// The directories; removed when dropped.
#[derive(Debug)]
pub(crate) struct Directories {
    private: Guarded,
    node: Guarded,
}

/// A private directory with a lock that is held as long as its agent lives; removed when dropped.
#[derive(Debug)]
pub(crate) struct Guarded {
    path: PathBuf,
    _lock: fs::File,
}

impl Directories {
    /// Makes them, after removing what killed agents left.
    ///
    /// `shared` is where shared memory goes; by default the system's place for it.
    pub(crate) fn create(shared: Option<PathBuf>) -> io::Result<Self> {
        let user = rustix::process::getuid().as_raw();
        let prefix = format!("isthmus-{user}-");
        let runtime = std::env::var_os("XDG_RUNTIME_DIR")
            .map(PathBuf::from)
            .filter(|p| is_own_directory(p, user) && p.as_os_str().len() <= LONGEST);
        let private = runtime.unwrap_or_else(|| PathBuf::from("/tmp"));
        let system = || Some(PathBuf::from("/dev/shm")).filter(|p| p.is_dir());
        let node = shared.or_else(system).unwrap_or_else(|| private.clone());
        for base in [&private, &node] {
            sweep(base, &prefix, user);
        }
        Ok(Self {
            private: Guarded::create(&private, &prefix)?,
            node: Guarded::create(&node, &prefix)?,
        })
    }

    /// Path of the rendezvous socket.
    pub(crate) fn rendezvous(&self) -> PathBuf {
        self.private.path.join("r")
    }

    /// Directory on the node for doorbells.
    pub(crate) fn node(&self) -> &Path {
        &self.node.path
    }

    /// Path of the shared-memory file: the processes make it.
    pub(crate) fn shared_memory(&self) -> PathBuf {
        self.node.path.join("memory")
    }
}

impl Guarded {
    /// One below the user's cache, where other nodes may see it, after removing what killed agents left.
    pub(crate) fn in_cache(cache: &Path) -> io::Result<Self> {
        let jobs = cache.join("jobs");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&jobs)?;
        let user = rustix::process::getuid().as_raw();
        sweep(&jobs, "job-", user);
        Self::create(&jobs, "job-")
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn create(base: &Path, prefix: &str) -> io::Result<Self> {
        let path = base.join(format!("{prefix}{}", hex(&random::<16>()?)));
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
        let lock = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path.join("lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn is_own_directory(path: &Path, user: u32) -> bool {
    fs::metadata(path).is_ok_and(|m| m.is_dir() && m.uid() == user)
}

fn sweep(base: &Path, prefix: &str, user: u32) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix)) && is_abandoned(&entry, user) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(entry: &fs::DirEntry, user: u32) -> bool {
    let Ok(metadata) = fs::symlink_metadata(entry.path()) else {
        return false;
    };
    if !metadata.is_dir() || metadata.uid() != user {
        return false;
    }
    if metadata
        .modified()
        .ok()
        .and_then(|m| m.elapsed().ok())
        .is_none_or(|age| age < SETTLING)
    {
        return false;
    }
    match fs::OpenOptions::new().write(true).open(entry.path().join("lock")) {
        Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_private_and_vanish() {
        let directories = Directories::create(None).unwrap();
        let node = directories.node().to_owned();
        let private = directories.private.path.clone();
        for path in [&node, &private] {
            assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o700);
        }
        assert!(!directories.shared_memory().exists());
        // A second agent does not take them for abandoned.
        drop(Directories::create(None).unwrap());
        assert!(node.exists() && private.exists());
        drop(directories);
        assert!(!node.exists() && !private.exists());
    }
}
