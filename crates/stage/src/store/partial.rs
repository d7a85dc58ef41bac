// SPDX-License-Identifier: Apache-2.0
//! A file that arrives by pieces, in any order, on one connection after the other.
//!
//! Several may write the same one, at once too: jobs that begin together, or a connection that takes the place of one
//! that is not known to be cut yet. All hold its lock. A program that somebody has open for writing cannot be run, so
//! the file itself gets its name only from the last of them; the others make a copy.

use super::Store;
use super::lease;
use crate::content::{self, hex};
use crate::error::{StageError, failed};
use isthmus_wire::grid::Hash;
use isthmus_wire::service::{Manifest, PIECE};
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Such a file. A piece is verified before it is written, so all who write it write the same.
#[derive(Debug)]
pub struct Partial {
    store: Store,
    manifest: Manifest,
    name: String,
    file: fs::File,
    path: PathBuf,
    lock: fs::File,
    missing: Vec<bool>,
    left: usize,
}

impl Store {
    /// Begins or goes on to receive a file by pieces.
    pub fn receive_pieces(&self, manifest: Manifest, name: &str) -> Result<Partial, StageError> {
        self.path(&manifest.hash, name)?;
        Partial::open(self, manifest, name)
    }

    pub(super) fn partial(&self, hash: &Hash) -> PathBuf {
        self.files().join(format!(".partial-{}", hex(hash)))
    }

    fn partial_lock(&self, hash: &Hash) -> PathBuf {
        self.files().join(format!(".receiving-{}", hex(hash)))
    }

    /// Removes what has arrived of a file, unless somebody receives it.
    pub(super) fn remove_partial(&self, hash: &Hash) -> bool {
        let path = self.partial_lock(hash);
        let Ok(_alone) = lease::alone(&path) else { return false };
        let gone = fs::remove_file(self.partial(hash)).is_ok();
        let _ = fs::remove_file(path);
        gone
    }
}

impl Partial {
    fn open(store: &Store, manifest: Manifest, name: &str) -> Result<Self, StageError> {
        if !content::is_sound(&manifest) {
            return Err(StageError::Corrupt);
        }
        let path = store.partial(&manifest.hash);
        let is_begun = || fs::symlink_metadata(&path).is_ok_and(|m| m.is_file() && m.len() == manifest.size);
        if !is_begun() {
            store.make_room(manifest.size)?;
        }
        let lock = store.partial_lock(&manifest.hash);
        let lock = lease::share(&lock).map_err(failed("lock", &lock))?;
        let begun = is_begun();
        let file = crate::local::with_room(&path, manifest.size)?;
        let missing = vec![true; manifest.pieces.len()];
        let mut partial = Self {
            store: store.clone(),
            left: missing.len(),
            missing,
            manifest,
            name: name.to_owned(),
            file,
            path,
            lock,
        };
        if begun {
            partial.verify();
        }
        Ok(partial)
    }

    /// What an earlier connection has written counts only when it is right.
    fn verify(&mut self) {
        let mut buffer = vec![0; PIECE];
        for number in 0..self.manifest.pieces.len() {
            let piece = u32::try_from(number).unwrap_or(u32::MAX);
            let bytes = &mut buffer[..self.manifest.length(piece)];
            let read = self.file.read_exact_at(bytes, number as u64 * PIECE as u64).is_ok();
            if read && content::is_piece(&self.manifest, piece, bytes) {
                self.missing[number] = false;
                self.left -= 1;
            }
        }
    }

    /// Numbers of the pieces that are not here.
    pub fn missing(&self) -> Vec<u32> {
        (0..).zip(&self.missing).filter(|(_, m)| **m).map(|(n, _)| n).collect()
    }

    /// Whether all pieces are here.
    pub fn is_complete(&self) -> bool {
        self.left == 0
    }

    /// Takes a piece.
    pub fn write(&mut self, number: u32, bytes: &[u8]) -> Result<(), StageError> {
        if !content::is_piece(&self.manifest, number, bytes) {
            return Err(StageError::Corrupt);
        }
        let at = u64::from(number) * PIECE as u64;
        self.file.write_all_at(bytes, at).map_err(failed("write", &self.path))?;
        if std::mem::replace(&mut self.missing[number as usize], false) {
            self.left -= 1;
        }
        Ok(())
    }

    /// Puts the file under its name.
    pub fn finish(self) -> Result<PathBuf, StageError> {
        if !self.is_complete() {
            return Err(StageError::Corrupt);
        }
        let Self {
            store,
            manifest: Manifest { hash, size, .. },
            name,
            file,
            path,
            lock,
            ..
        } = self;
        // A file of the right length whose content was never written must not survive a crash of the machine.
        file.sync_data().map_err(failed("write", &path))?;
        let mut whole = fs::File::open(&path).map_err(failed("read", &path))?;
        drop((file, lock));
        let alone = lease::alone(&store.partial_lock(&hash)).ok();
        let is_ours = lease::is_at(&whole, &path);
        let placed = match store.find(&hash, &name, size)? {
            Some(there) => there,
            // Whoever was alone before us may have taken it, and another one begun anew.
            None if alone.is_some() && is_ours => store.adopt(&path, &hash, &name, size)?,
            None => copy(&store, &mut whole, hash, &name, size)?,
        };
        drop(alone);
        store.remove_partial(&hash);
        Ok(placed)
    }
}

/// A file of the cache with this content.
fn copy(store: &Store, whole: &mut fs::File, hash: Hash, name: &str, size: u64) -> Result<PathBuf, StageError> {
    let mut incoming = store.receive(hash, name, size)?;
    let mut buffer = vec![0; PIECE];
    loop {
        let read = io::Read::read(whole, &mut buffer).map_err(failed("read", &store.partial(&hash)))?;
        if read == 0 {
            return incoming.finish();
        }
        incoming.write(&buffer[..read])?;
    }
}
