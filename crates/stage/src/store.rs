// SPDX-License-Identifier: Apache-2.0
//! The cache of staged files at a site.
//!
//! ```text
//!  <cache>/isthmus/files/<hash in hexadecimal digits>/<name>   complete, verified, executable by the user
//!  <cache>/isthmus/files/.incoming-<process>-<number>          being received; renamed when verified
//! ```
//! The cache directory is readable by its user only. A file appears under its name at once and complete.

use crate::content::{MAX_FILE, hex};
use isthmus_wire::grid::Hash;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Most bytes of a file name.
const MAX_NAME: usize = 255;

/// A cache.
#[derive(Clone, Debug)]
pub struct Store {
    files: PathBuf,
}

/// A file being received. Dropped before [`Incoming::finish`] it leaves nothing.
#[derive(Debug)]
pub struct Incoming {
    file: fs::File,
    temporary: PathBuf,
    target: PathBuf,
    hash: Hash,
    size: u64,
    received: u64,
    hasher: Sha256,
}

/// Why a file could not be staged.
#[derive(Debug)]
pub enum StageError {
    /// The name would leave the cache.
    Name(String),
    /// More bytes than [`MAX_FILE`], or than announced.
    TooLong,
    /// Content and announced hash differ.
    Corrupt,
    /// The operating system refused.
    Io {
        /// What was being done.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

impl std::fmt::Display for StageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => write!(f, "'{name}' is not a file name"),
            Self::TooLong => f.write_str("the file is longer than announced or allowed"),
            Self::Corrupt => f.write_str("the file arrived damaged: its hash differs from the announced one"),
            Self::Io { doing, path, error } => write!(f, "cannot {doing} '{}': {error}", path.display()),
        }
    }
}

impl std::error::Error for StageError {}

impl Store {
    /// The cache in this directory (`$XDG_CACHE_HOME/isthmus` or `$HOME/.cache/isthmus`); made when needed.
    pub fn open(cache: &Path) -> Result<Self, StageError> {
        let files = cache.join("files");
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&files)
            .map_err(|error| StageError::Io {
                doing: "create",
                path: files.clone(),
                error,
            })?;
        Ok(Self { files })
    }

    /// The path of a file that is already here.
    pub fn find(&self, hash: &Hash, name: &str, size: u64) -> Result<Option<PathBuf>, StageError> {
        let path = self.path(hash, name)?;
        let here = fs::metadata(&path).is_ok_and(|m| m.is_file() && m.len() == size);
        Ok(here.then_some(path))
    }

    /// Begins to receive a file.
    pub fn receive(&self, hash: Hash, name: &str, size: u64) -> Result<Incoming, StageError> {
        if size > MAX_FILE {
            return Err(StageError::TooLong);
        }
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let temporary = self.files.join(format!(".incoming-{}-{number}", std::process::id()));
        let target = self.path(&hash, name)?;
        let _ = fs::remove_file(&temporary);
        let file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o700)
            .open(&temporary)
            .map_err(|error| StageError::Io {
                doing: "create",
                path: temporary.clone(),
                error,
            })?;
        Ok(Incoming {
            file,
            temporary,
            target,
            hash,
            size,
            received: 0,
            hasher: Sha256::new(),
        })
    }

    fn path(&self, hash: &Hash, name: &str) -> Result<PathBuf, StageError> {
        if name.is_empty() || name.len() > MAX_NAME || name == "." || name == ".." || name.contains(['/', '\0']) {
            return Err(StageError::Name(name.to_owned()));
        }
        Ok(self.files.join(hex(hash)).join(name))
    }
}

impl Incoming {
    /// Whether all announced bytes are here.
    pub fn is_complete(&self) -> bool {
        self.received == self.size
    }

    /// Takes the next bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), StageError> {
        self.received += bytes.len() as u64;
        if self.received > self.size {
            return Err(StageError::TooLong);
        }
        self.hasher.update(bytes);
        self.file.write_all(bytes).map_err(|error| self.failed("write", error))
    }

    /// Verifies the content and puts the file under its name.
    pub fn finish(mut self) -> Result<PathBuf, StageError> {
        let hash: Hash = std::mem::take(&mut self.hasher).finalize().into();
        if !self.is_complete() || hash != self.hash {
            return Err(StageError::Corrupt);
        }
        let directory = self.target.parent().unwrap_or(&self.target);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|error| self.failed("create the directory of", error))?;
        fs::rename(&self.temporary, &self.target).map_err(|error| self.failed("rename", error))?;
        Ok(self.target.clone())
    }

    fn failed(&self, doing: &'static str, error: io::Error) -> StageError {
        StageError::Io {
            doing,
            path: self.target.clone(),
            error,
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // After finish() the name is gone and this does nothing.
        let _ = fs::remove_file(&self.temporary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("isthmus-store-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn a_file_is_received_once_and_found_again() {
        let cache = scratch("found");
        let store = Store::open(&cache).unwrap();
        let hash: Hash = Sha256::digest(b"content").into();
        assert!(store.find(&hash, "prog", 7).unwrap().is_none());
        let mut incoming = store.receive(hash, "prog", 7).unwrap();
        incoming.write(b"con").unwrap();
        incoming.write(b"tent").unwrap();
        let path = incoming.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"content");
        assert_eq!(store.find(&hash, "prog", 7).unwrap(), Some(path));
        fs::remove_dir_all(&cache).unwrap();
    }

    #[test]
    fn damaged_long_and_abandoned_files_leave_nothing() {
        let cache = scratch("damaged");
        let store = Store::open(&cache).unwrap();
        let hash: Hash = Sha256::digest(b"content").into();
        let mut damaged = store.receive(hash, "prog", 7).unwrap();
        damaged.write(b"CONTENT").unwrap();
        assert!(matches!(damaged.finish(), Err(StageError::Corrupt)));
        let mut long = store.receive(hash, "prog", 7).unwrap();
        assert!(matches!(long.write(b"content and more"), Err(StageError::TooLong)));
        drop(long);
        drop(store.receive(hash, "prog", 7).unwrap());
        assert_eq!(fs::read_dir(cache.join("files")).unwrap().count(), 0);
        fs::remove_dir_all(&cache).unwrap();
    }

    #[test]
    fn names_cannot_leave_the_cache() {
        let cache = scratch("names");
        let store = Store::open(&cache).unwrap();
        for name in ["", ".", "..", "a/b", "/etc/passwd", "a\0b"] {
            assert!(
                matches!(store.receive([0; 32], name, 1), Err(StageError::Name(_))),
                "{name:?}"
            );
        }
        fs::remove_dir_all(&cache).unwrap();
    }
}
