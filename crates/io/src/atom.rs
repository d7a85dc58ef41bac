// SPDX-License-Identifier: Apache-2.0
//! Atomic mode: an access has the file for itself from its beginning to its end, also one that goes to the file in
//! pieces.
//!
//! ```text
//!  gate of this process  -->  lock of the whole file, by the system      who reaches the file
//!  gate of this process  -->  both at the server, for all pieces         who does not
//! ```
//! The gate comes first: the system's lock does not tell the accesses of one process apart. Nobody waits for either on
//! a thread that others need: the lock may be held for a process whose pieces this one has yet to write.

use std::io;
use std::sync::Arc;

use isthmus_core::error::Result;
use rustix::fs::FlockOperation;

use crate::disk::Own;
use crate::gate::locked;
use crate::here::Here;
use crate::task::Post;

/// Kept while an access in atomic mode lasts.
pub(crate) struct Atom {
    here: Arc<Here>,
    /// What is locked, if this process reaches the file.
    locked: Option<Arc<Own>>,
}

impl Drop for Atom {
    fn drop(&mut self) {
        if let Some(disk) = self.locked.take() {
            let _ = locked(&disk, FlockOperation::Unlock);
        }
        self.here.gate().leave();
    }
}

impl Here {
    /// In atomic mode, the right to access the file.
    pub(crate) async fn atom(self: &Arc<Self>, post: &Post, writes: bool) -> Result<Option<Atom>> {
        match self.is_atomic() {
            true => self.lock(post, writes).await.map(Some),
            false => Ok(None),
        }
    }

    /// The right to access the file: for all processes of all jobs, by the system's lock of the whole file, if this one
    /// reaches it.
    pub(crate) async fn lock(self: &Arc<Self>, post: &Post, writes: bool) -> Result<Atom> {
        self.gate().enter(post).await;
        let mut atom = Atom {
            here: self.clone(),
            locked: None,
        };
        if !self.is_reached() {
            return Ok(atom);
        }
        let (now, later) = match writes {
            true => (FlockOperation::NonBlockingLockExclusive, FlockOperation::LockExclusive),
            false => (FlockOperation::NonBlockingLockShared, FlockOperation::LockShared),
        };
        let disk = self.disk()?;
        let tried = disk.clone();
        let mut done = post.disk(move || locked(&tried, now)).await;
        if done
            .as_ref()
            .is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        {
            let waits = disk.clone();
            done = post.aside(move || locked(&waits, later)).await;
        }
        done.map_err(|error| self.failed("lock", &error))?;
        atom.locked = Some(disk);
        Ok(atom)
    }
}
