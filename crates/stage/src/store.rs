// SPDX-License-Identifier: Apache-2.0
//! The cache of staged files at a site.
//!
//! ```text
//!  <cache>/isthmus/files/<hash in hexadecimal>/<name>   complete, verified, read-only, executable by the user
//!  <cache>/isthmus/files/<hash>/.lease                  locked by whoever uses it; its age is that of the last use
//!  <cache>/isthmus/files/.partial-<hash>                pieces of it, which are verified again before they count
//!  <cache>/isthmus/files/.receiving-<hash>              locked by those who receive pieces of it
//!  <cache>/isthmus/files/.incoming-<number>             being received as a stream; renamed when verified
//!  <cache>/isthmus/files/.removed-<number>              being removed
//!  <cache>/isthmus/limit                                most bytes of all this, when it is not the usual one
//! ```
//! The cache directory is readable by its user only. A file appears under its name at once and complete. Before a file
//! is received what has not been used for longest is removed until there is room; what is in use stays.

mod evict;
mod lease;
mod partial;

pub use crate::error::StageError;
pub use evict::{Held, USUAL_LIMIT};
pub use partial::Partial;

use crate::content::{Hasher, MAX_FILE, hex, unhex};
use crate::error::failed;
use crate::guarded;
use crate::words;
use isthmus_wire::grid::Hash;
use isthmus_wire::service::Placed;
use lease::{LEASE, is_locked};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Most bytes of a file name.
const MAX_NAME: usize = 255;
/// So often a directory is made anew that others remove.
const ATTEMPTS: u32 = 100;
/// How names of files that arrive as streams begin.
const INCOMING: &str = ".incoming-";

/// A cache. What it has given away cannot be removed from it as long as it lives.
#[derive(Clone, Debug)]
pub struct Store {
    cache: PathBuf,
    leases: Arc<Mutex<BTreeMap<Hash, fs::File>>>,
}

/// A file being received as a stream. Dropped before [`Incoming::finish`] it leaves nothing.
#[derive(Debug)]
pub struct Incoming {
    store: Store,
    /// None once it is complete.
    file: Option<fs::File>,
    temporary: PathBuf,
    name: String,
    hash: Hash,
    size: u64,
    received: u64,
    hasher: Hasher,
}

impl Store {
    /// The cache in this directory (`$XDG_CACHE_HOME/isthmus` or `$HOME/.cache/isthmus`); made when needed.
    pub fn open(cache: &Path) -> Result<Self, StageError> {
        let store = Self {
            cache: cache.to_owned(),
            leases: Arc::default(),
        };
        let files = store.files();
        make_directory(&files).map_err(failed("create", &files))?;
        Ok(store)
    }

    fn files(&self) -> PathBuf {
        self.cache.join("files")
    }

    /// The path of a file that is already here, which then stays.
    pub fn find(&self, hash: &Hash, name: &str, size: u64) -> Result<Option<PathBuf>, StageError> {
        let path = self.path(hash, name)?;
        let here = |path: &Path| fs::symlink_metadata(path).is_ok_and(|m| m.is_file() && m.len() == size);
        if !here(&path) {
            // The same content under another name gets one more.
            let Some(other) = self.same_content(hash).filter(|other| here(other)) else {
                return Ok(None);
            };
            if fs::hard_link(other, &path).is_err() && !here(&path) {
                return Ok(None);
            }
        }
        // It may have been removed before it was leased.
        Ok((self.lease(hash)? && here(&path)).then_some(path))
    }

    /// Keeps the file at this path, if it is one of the cache.
    pub fn keep(&self, path: &Path) -> Result<(), StageError> {
        let directory = path.parent().filter(|d| d.parent() == Some(&self.files()));
        let hash = directory.and_then(|d| unhex(d.file_name()?.to_str()?));
        match hash {
            Some(hash) if !self.lease(&hash)? => Err(failed("find", path)(io::ErrorKind::NotFound.into())),
            _ => Ok(()),
        }
    }

    fn same_content(&self, hash: &Hash) -> Option<PathBuf> {
        let entries = fs::read_dir(self.files().join(hex(hash))).ok()?;
        let mut names = entries.flatten().filter(|e| e.file_name() != LEASE);
        names.next().map(|e| e.path())
    }

    /// Begins to receive a file as a stream.
    pub fn receive(&self, hash: Hash, name: &str, size: u64) -> Result<Incoming, StageError> {
        if size > MAX_FILE {
            return Err(StageError::TooLong);
        }
        self.path(&hash, name)?;
        self.make_room(size)?;
        let temporary = self.unique(INCOMING)?;
        let file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o700)
            .open(&temporary)
            .map_err(failed("create", &temporary))?;
        Ok(Incoming {
            store: self.clone(),
            file: Some(file),
            temporary,
            name: name.to_owned(),
            hash,
            size,
            received: 0,
            hasher: Hasher::default(),
        })
    }

    fn path(&self, hash: &Hash, name: &str) -> Result<PathBuf, StageError> {
        let odd = name.is_empty() || words::os(name).len() > MAX_NAME || matches!(name, "." | "..");
        if odd || name.contains(['/', '\0']) {
            return Err(StageError::Name(name.to_owned()));
        }
        // What has the name of our own file there is kept under another one, which may be any: the content is the same.
        let name = if name == LEASE { "lease" } else { name };
        Ok(self.files().join(hex(hash)).join(words::path(name)))
    }

    /// A name that nobody else has, on other nodes that see the cache either.
    fn unique(&self, prefix: &str) -> Result<PathBuf, StageError> {
        let number = guarded::random::<16>().map_err(failed("name a file in", &self.cache))?;
        Ok(self.files().join(format!("{prefix}{}", hex(&number))))
    }

    /// Keeps others from removing a file, and notes that it is used. False: it has no directory, or somebody removes
    /// it.
    fn lease(&self, hash: &Hash) -> Result<bool, StageError> {
        let path = self.files().join(hex(hash)).join(LEASE);
        let file = match lease::share(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            file => file.map_err(failed("lease", &path))?,
        };
        file.set_modified(std::time::SystemTime::now())
            .map_err(failed("lease", &path))?;
        self.leases
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(*hash, file);
        Ok(true)
    }

    /// The same for one that need not be here yet: others may be removing what was here of the same content.
    fn lease_anew(&self, hash: &Hash, directory: &Path) -> Result<(), StageError> {
        for _ in 0..ATTEMPTS {
            make_directory(directory).map_err(failed("create", directory))?;
            if self.lease(hash)? {
                return Ok(());
            }
        }
        Err(failed("lease", directory)(io::ErrorKind::NotFound.into()))
    }

    /// Gives up the hold on a file.
    fn release(&self, hash: &Hash) {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner).remove(hash);
    }

    /// Puts a complete and verified file under its name, unless another one has come before it.
    fn adopt(&self, temporary: &Path, hash: &Hash, name: &str, size: u64) -> Result<PathBuf, StageError> {
        let target = self.path(hash, name)?;
        let directory = target.parent().unwrap_or(&target);
        self.lease_anew(hash, directory)?;
        // Whoever runs the one that is there keeps it under its name.
        if let Some(there) = self.find(hash, name, size)? {
            let _ = fs::remove_file(temporary);
            return Ok(there);
        }
        let put = || {
            // Nobody changes it from here; programs that try are told.
            fs::set_permissions(temporary, fs::Permissions::from_mode(0o500))?;
            fs::rename(temporary, &target)
        };
        put().map_err(failed("rename to", &target))?;
        Ok(target)
    }

    /// Gives a file a place of its own outside of the cache, which loses it unless it is to `keep` it or somebody else
    /// uses it.
    pub fn deliver(&self, placed: &Placed, target: &Path, keep: bool) -> Result<(), StageError> {
        let Placed {
            hash,
            name,
            size,
            executable,
            ..
        } = placed;
        let (size, executable) = (*size, *executable);
        let source = self.path(hash, name)?;
        if self.find(hash, name, size)?.is_none() {
            return Err(failed("find", &source)(io::ErrorKind::NotFound.into()));
        }
        let mode = crate::local::mode(executable);
        let part = crate::local::beside(target);
        // What a job uses stays where it is.
        self.release(hash);
        let used = is_locked(&self.files().join(hex(hash)).join(LEASE));
        if !self.lease(hash)? {
            return Err(failed("find", &source)(io::ErrorKind::NotFound.into()));
        }
        let copy = || fs::copy(&source, &part).map(|_| ());
        let done = if used || keep {
            copy()
        } else {
            fs::rename(&source, &part).or_else(|_| copy())
        };
        let put = || {
            done?;
            fs::set_permissions(&part, fs::Permissions::from_mode(mode))?;
            fs::rename(&part, target)
        };
        let result = put().map_err(failed("write", target));
        if result.is_err() {
            let _ = fs::remove_file(&part);
        }
        if !keep {
            self.release(hash);
            self.remove_unused(hash);
        }
        result
    }
}

fn make_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
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
        let file = self.file.as_mut().ok_or(StageError::TooLong)?;
        file.write_all(bytes).map_err(failed("write", &self.temporary))
    }

    /// Verifies the content and puts the file under its name.
    pub fn finish(mut self) -> Result<PathBuf, StageError> {
        let manifest = std::mem::take(&mut self.hasher).finish();
        if !self.is_complete() || manifest.hash != self.hash {
            return Err(StageError::Corrupt);
        }
        // A program that is open for writing cannot be run, and others may run it as soon as it has its name.
        self.file = None;
        self.store.adopt(&self.temporary, &self.hash, &self.name, self.size)
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // After finish() the name is gone and this does nothing.
        let _ = fs::remove_file(&self.temporary);
    }
}

#[cfg(test)]
mod tests;
