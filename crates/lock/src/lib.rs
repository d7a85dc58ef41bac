// SPDX-License-Identifier: Apache-2.0
//! A lock that costs next to nothing when only one thread at a time uses it.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Somebody's word that threads take turns.
#[derive(Clone, Copy, Debug)]
pub struct OneAtATime(());

impl OneAtATime {
    /// # Safety
    /// No two threads use a [`Lock`] that was made with this value at the same time; what one thread does with it happens before what
    /// the next one does.
    pub const unsafe fn promised() -> Self {
        Self(())
    }
}

/// Exclusive access to a value.
pub struct Lock<T> {
    /// `None`: threads take turns by promise.
    mutex: Option<Mutex<()>>,
    /// Without a mutex: somebody has the value.
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard only, and there is one guard at a time: the mutex sees to that, or the flag
// together with the promise that no other thread looks at the flag meanwhile.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The right to use the value.
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
    /// Also keeps the guard on its thread.
    mutex: Option<MutexGuard<'a, ()>>,
    /// A guard is shared between threads as the value would be.
    _value: PhantomData<&'a mut T>,
}

impl<T> Lock<T> {
    /// For several threads.
    pub const fn new(value: T) -> Self {
        Self {
            mutex: Some(Mutex::new(())),
            held: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// For threads that take turns.
    pub const fn for_one_at_a_time(value: T, _promise: OneAtATime) -> Self {
        Self {
            mutex: None,
            held: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes the value, waiting for it if other threads may have it. A panic of another holder is not passed on.
    ///
    /// # Panics
    /// Without a mutex, if the value is taken: by this thread, or against the promise.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        match &self.mutex {
            None => {
                if !self.take() {
                    taken();
                }
                self.guard(None)
            }
            Some(mutex) => self.guard(Some(mutex.lock().unwrap_or_else(PoisonError::into_inner))),
        }
    }

    /// Takes the value if nobody has it.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        let Some(mutex) = &self.mutex else {
            return self.take().then(|| self.guard(None));
        };
        match mutex.try_lock() {
            Ok(guard) => Some(self.guard(Some(guard))),
            Err(TryLockError::Poisoned(error)) => Some(self.guard(Some(error.into_inner()))),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    #[inline]
    fn take(&self) -> bool {
        let free = !self.held.load(Ordering::Relaxed);
        self.held.store(true, Ordering::Relaxed);
        free
    }

    #[inline]
    fn guard<'a>(&'a self, mutex: Option<MutexGuard<'a, ()>>) -> Guard<'a, T> {
        Guard {
            lock: self,
            mutex,
            _value: PhantomData,
        }
    }
}

#[cold]
#[inline(never)]
fn taken() -> ! {
    panic!(
        "MPI was called by two threads at once, or out of a callback that must not call it; programs whose threads call MPI at the \
         same time ask for MPI_THREAD_MULTIPLE in MPI_Init_thread"
    )
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: there is one guard at a time, see `Sync` of the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: there is one guard at a time, see `Sync` of the lock, and it is borrowed exclusively here.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.mutex.is_none() {
            self.lock.held.store(false, Ordering::Relaxed);
        }
    }
}

impl<T> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.mutex.is_some() {
            "Lock"
        } else {
            "Lock without a mutex"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both() -> [Lock<u64>; 2] {
        // SAFETY: the tests give it to one thread after the other.
        [
            Lock::new(0),
            Lock::for_one_at_a_time(0, unsafe { OneAtATime::promised() }),
        ]
    }

    #[test]
    fn the_value_has_one_holder() {
        for lock in both() {
            let mut guard = lock.lock();
            *guard += 1;
            assert!(lock.try_lock().is_none());
            drop(guard);
            assert_eq!(lock.try_lock().map(|value| *value), Some(1));
            assert_eq!(*lock.lock(), 1);
        }
    }

    #[test]
    fn threads_take_turns() {
        for lock in both() {
            for _ in 0..3 {
                std::thread::scope(|scope| {
                    scope.spawn(|| *lock.lock() += 1);
                });
            }
            assert_eq!(*lock.lock(), 3);
        }
    }

    #[test]
    fn several_threads_count_right() {
        let lock = Lock::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| *lock.lock() += 1));
            }
        });
        assert_eq!(*lock.lock(), 40_000);
    }

    #[test]
    fn taking_it_twice_is_found_out() {
        let [_, lock] = both();
        let _guard = lock.lock();
        let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(lock.lock())));
        assert!(again.is_err());
    }

    #[test]
    fn a_panic_of_a_holder_frees_it() {
        for lock in both() {
            let holder = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _guard = lock.lock();
                panic!("on purpose");
            }));
            assert!(holder.is_err());
            assert_eq!(*lock.lock(), 0);
        }
    }
}
