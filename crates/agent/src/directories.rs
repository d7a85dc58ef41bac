// SPDX-License-Identifier: Apache-2.0
//! The private directories of a subjob on a node, and their end.
//!
//! ```text
//!  $XDG_RUNTIME_DIR or /tmp: isthmus-<user>-<random>/r       rendezvous socket
//!  /dev/shm (ISTHMUS_SHM_DIRECTORY): isthmus-<user>-<random>/memory  shared memory of the processes
//!                                                   /...     doorbells
//! ```
//! In a container that lets nobody write into one of them the next place serves: $TMPDIR and /dev/shm for the first,
//! the place of the first for the second.
//!
//! Each is readable by its user only, has an unguessable name and holds a locked file `lock` as long as its
//! agent lives. When it is killed its sweeper removes them (`sweeper.rs`). An agent that starts or ends removes all
//! whose lock is free: their agent, or coordinator, was killed.

use crate::sweeper;
use isthmus_stage::guarded::{Guarded, sweep};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Child;

/// Longest base of the private directory, bytes: the path of a socket has at most 107, ours adds 54 at most.
const LONGEST: usize = 53;

/// The directories; removed when dropped.
#[derive(Debug)]
pub(crate) struct Directories {
    private: Guarded,
    node: Guarded,
    sweeper: Option<Child>,
}

impl Drop for Directories {
    fn drop(&mut self) {
        if let Some(sweeper) = &mut self.sweeper {
            let _ = sweeper.kill();
            let _ = sweeper.wait();
        }
        // A coordinator on this machine that was killed has left the one for its connections of ssh.
        if let Some(base) = self.private.path().parent() {
            let user = rustix::process::getuid().as_raw();
            sweep(base, &format!("isthmus-{user}-"), user);
        }
    }
}

impl Directories {
    /// Makes them, after removing what killed agents left.
    ///
    /// `shared` is where shared memory goes; by default the system's place for it. `binary`: ours, which removes them
    /// if this process is killed.
    pub(crate) fn create(shared: Option<PathBuf>, binary: &Path) -> io::Result<Self> {
        let user = rustix::process::getuid().as_raw();
        let prefix = format!("isthmus-{user}-");
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let system = PathBuf::from("/dev/shm");
        let runtime = variable("XDG_RUNTIME_DIR").filter(|p| is_own_directory(p, user));
        let temporary = variable("TMPDIR").filter(|p| p.is_absolute());
        let bases = runtime.into_iter().chain([PathBuf::from("/tmp")]).chain(temporary);
        let bases: Vec<PathBuf> = bases
            .chain([system.clone()])
            .filter(|p| p.as_os_str().len() <= LONGEST)
            .collect();
        let private = first_of(&bases, &prefix, user)?;
        let base = || {
            private
                .path()
                .parent()
                .map_or_else(|| PathBuf::from("/tmp"), Path::to_owned)
        };
        let bases = shared.map_or_else(|| vec![system, base()], |named| vec![named]);
        let node = first_of(&bases, &prefix, user)?;
        let sweeper = sweeper::start(binary, &[private.path(), node.path()]);
        Ok(Self { private, node, sweeper })
    }

    /// Path of the rendezvous socket.
    pub(crate) fn rendezvous(&self) -> PathBuf {
        self.private.path().join("r")
    }

    /// Directory on the node for doorbells.
    pub(crate) fn node(&self) -> &Path {
        self.node.path()
    }

    /// Path of the shared-memory file: the processes make it.
    pub(crate) fn shared_memory(&self) -> PathBuf {
        self.node.path().join("memory")
    }
}

/// A directory in the first of these places that lets us make one, after removing what killed agents left there. The
/// error is that of the first place.
fn first_of(bases: &[PathBuf], prefix: &str, user: u32) -> io::Result<Guarded> {
    let mut first = None;
    for base in bases {
        sweep(base, prefix, user);
        match Guarded::create(base, prefix) {
            Ok(made) => return Ok(made),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| io::Error::other("there is no place for them")))
}

fn is_own_directory(path: &Path, user: u32) -> bool {
    fs::metadata(path).is_ok_and(|m| m.is_dir() && m.uid() == user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_place_serves_where_the_first_cannot() {
        let good = std::env::temp_dir();
        let bases = [PathBuf::from("/proc"), PathBuf::from("/nowhere/at/all"), good.clone()];
        let prefix = format!("isthmus-test-{}-", std::process::id());
        let made = first_of(&bases, &prefix, 0).unwrap();
        assert_eq!(made.path().parent(), Some(good.as_path()));
        let error = first_of(&bases[1..2], &prefix, 0).unwrap_err();
        assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
    }

    #[test]
    fn directories_are_private_and_vanish() {
        let directories = Directories::create(None, Path::new("/bin/false")).unwrap();
        let node = directories.node().to_owned();
        let private = directories.private.path().to_owned();
        for path in [&node, &private] {
            assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o700);
        }
        assert!(!directories.shared_memory().exists());
        // A second agent does not take them for abandoned.
        drop(Directories::create(None, Path::new("/bin/false")).unwrap());
        assert!(node.exists() && private.exists());
        drop(directories);
        assert!(!node.exists() && !private.exists());
    }
}
