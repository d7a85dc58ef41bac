// SPDX-License-Identifier: Apache-2.0
//! A mutex that costs nothing where the program's threads take turns.
//!
//! For what only functions touch that need MPI to be initialized, and no thread of the library: then below
//! MPI_THREAD_MULTIPLE nobody else can be there, because the program has promised so (MPI 5.0 section 11.6). What may
//! be called before MPI_Init, or by several threads whatever was promised (MPI 5.0 section 11.6.1: info objects,
//! sessions, error handlers), needs a real mutex.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::process;

/// See the module.
pub(crate) struct Turns<T> {
    /// False: an ordinary mutex.
    turns: bool,
    mutex: Mutex<()>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard only, and there is one guard at a time: the mutex sees to that, or the
// program's promise together with that of `Turns::lock`.
unsafe impl<T: Send> Sync for Turns<T> {}

/// The right to use the value.
pub(crate) struct Guard<'a, T> {
    value: &'a UnsafeCell<T>,
    /// `None`: threads take turns.
    _mutex: Option<MutexGuard<'a, ()>>,
}

impl<T> Turns<T> {
    /// For functions of the kind that the module speaks of.
    pub(crate) const fn new(value: T) -> Self {
        Self::of(true, value)
    }

    /// For any function: a mutex.
    pub(crate) const fn never(value: T) -> Self {
        Self::of(false, value)
    }

    const fn of(turns: bool, value: T) -> Self {
        Self {
            turns,
            mutex: Mutex::new(()),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes the value, after whoever has it.
    ///
    /// # Safety
    /// The thread has no other guard of this value, and if that was made with [`Turns::new`] it is in a function of the
    /// kind that the module speaks of.
    #[inline]
    pub(crate) unsafe fn lock(&self) -> Guard<'_, T> {
        let mutex = if self.turns && process::takes_turns() {
            None
        } else {
            Some(self.mutex.lock().unwrap_or_else(PoisonError::into_inner))
        };
        Guard {
            value: &self.value,
            _mutex: mutex,
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: there is one guard at a time, see `Sync` of `Turns`.
        unsafe { &*self.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: there is one guard at a time, see `Sync` of `Turns`, and it is borrowed exclusively here.
        unsafe { &mut *self.value.get() }
    }
}
