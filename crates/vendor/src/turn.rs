// SPDX-License-Identifier: Apache-2.0
//! One call of a vendor's MPI at a time.
//!
//! It was asked for no more (MPI_THREAD_SERIALIZED, or less), and a process has several holders of it: the transport,
//! the communicators, what settles it. All are used under the engine's lock, and a caller that is not is stopped before
//! it reaches the library.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::interface::Functions;

/// Whether a call runs. A process has one vendor.
static BUSY: AtomicBool = AtomicBool::new(false);

/// An adaptor's functions, to be called by whoever has the turn.
#[derive(Clone, Copy)]
pub(crate) struct Table(&'static Functions);

impl Table {
    pub(crate) fn of(functions: &'static Functions) -> Self {
        Self(functions)
    }

    /// Until it is dropped nobody else calls the vendor.
    ///
    /// # Panics
    /// Somebody does already: a bug of ours.
    #[inline]
    pub(crate) fn turn(self) -> Turn {
        assert!(
            !BUSY.swap(true, Ordering::Acquire),
            "two threads call the machine's MPI at once"
        );
        Turn(self.0)
    }
}

/// The right to call a vendor.
pub(crate) struct Turn(&'static Functions);

impl Deref for Turn {
    type Target = Functions;

    #[inline]
    fn deref(&self) -> &Functions {
        self.0
    }
}

impl Drop for Turn {
    #[inline]
    fn drop(&mut self) {
        BUSY.store(false, Ordering::Release);
    }
}
