// SPDX-License-Identifier: Apache-2.0
//! What wakes threads of this process.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// Wakes threads of this process that sleep.
#[derive(Default)]
pub(crate) struct Bell(std::sync::OnceLock<OwnedFd>);

impl Bell {
    pub(crate) fn descriptor(&self) -> io::Result<BorrowedFd<'_>> {
        if self.0.get().is_none() {
            // One thread at a time gets here: under the engine's lock, or the only one that sleeps on it.
            let _ = self.0.set(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        }
        self.0.get().map(AsFd::as_fd).ok_or_else(|| io::ErrorKind::Other.into())
    }

    /// Fails only when it rings already.
    pub(crate) fn ring(&self) {
        if let Some(descriptor) = self.0.get() {
            let _ = rustix::io::write(descriptor, &1_u64.to_ne_bytes());
        }
    }

    /// Fails only when it is silent already.
    pub(crate) fn silence(&self) {
        if let Some(descriptor) = self.0.get() {
            let _ = rustix::io::read(descriptor, &mut [0; 8]);
        }
    }
}
