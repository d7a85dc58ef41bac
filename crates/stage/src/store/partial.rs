// SPDX-License-Identifier: Apache-2.0
//! A file that arrives by pieces, in any order, on one connection after the other.

use super::Store;
use crate::content::{self, hex};
use crate::error::{StageError, failed};
use isthmus_wire::service::{Manifest, PIECE};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Such a file. Several may write the same one: a piece is verified before it is written, so they write the same.
#[derive(Debug)]
pub struct Partial {
    store: Store,
    manifest: Manifest,
    name: String,
    file: fs::File,
    path: PathBuf,
    missing: Vec<bool>,
    left: usize,
}

impl Store {
    /// Begins or goes on to receive a file by pieces.
    pub fn receive_pieces(&self, manifest: Manifest, name: &str) -> Result<Partial, StageError> {
        self.path(&manifest.hash, name)?;
        Partial::open(self, manifest, name)
    }
}

impl Partial {
    fn open(store: &Store, manifest: Manifest, name: &str) -> Result<Self, StageError> {
        if !content::is_sound(&manifest) {
            return Err(StageError::Corrupt);
        }
        let path = store.files().join(format!(".partial-{}", hex(&manifest.hash)));
        let begun = fs::symlink_metadata(&path).is_ok_and(|m| m.is_file() && m.len() == manifest.size);
        if !begun {
            store.make_room(manifest.size)?;
        }
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
        // A file of the right length whose content was never written must not survive a crash of the machine.
        self.file.sync_data().map_err(failed("write", &self.path))?;
        self.store.adopt(&self.path, &self.manifest.hash, &self.name)
    }
}
