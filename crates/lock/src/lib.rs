// SPDX-License-Identifier: Apache-2.0
//! A lock that costs next to nothing when only one thread at a time uses it.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};

// The real ones, or those of the model checker (`--cfg loom`), so that what is checked is what runs.
#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, Ordering};
#[cfg(loom)]
use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(not(loom))]
use std::sync::{Mutex, MutexGuard};

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
    pub fn new(value: T) -> Self {
        Self {
            mutex: Some(Mutex::new(())),
            held: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// For threads that take turns.
    pub fn for_one_at_a_time(value: T, _promise: OneAtATime) -> Self {
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

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// What the lock guards: the model checker sees who touches it when.
    type Value = loom::cell::UnsafeCell<u32>;

    fn add(lock: &Lock<Value>) {
        let guard = lock.lock();
        // SAFETY: the guard is the only one.
        guard.with_mut(|value| unsafe { *value += 1 });
    }

    fn value(lock: &Lock<Value>) -> u32 {
        // SAFETY: the guard is the only one.
        lock.lock().with(|value| unsafe { *value })
    }

    fn one_at_a_time() -> Arc<Lock<Value>> {
        // SAFETY: the models below hand it from thread to thread.
        let promise = unsafe { OneAtATime::promised() };
        Arc::new(Lock::for_one_at_a_time(Value::new(0), promise))
    }

    /// MPI_THREAD_SERIALIZED: a lock of the program's own says whose turn it is.
    #[test]
    fn turns_by_a_lock_of_the_program() {
        loom::model(|| {
            let (lock, turn) = (one_at_a_time(), Arc::new(Mutex::new(())));
            let threads = [0, 1].map(|_| {
                let (lock, turn) = (lock.clone(), turn.clone());
                thread::spawn(move || {
                    let _mine = turn.lock().unwrap();
                    add(&lock);
                    add(&lock);
                })
            });
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(value(&lock), 4);
        });
    }

    /// The same with a flag: the flag of the lock is relaxed, so its order is that of the program's.
    #[test]
    fn turns_by_a_flag_of_the_program() {
        loom::model(|| {
            let (lock, done) = (one_at_a_time(), Arc::new(AtomicBool::new(false)));
            let first = {
                let (lock, done) = (lock.clone(), done.clone());
                thread::spawn(move || {
                    add(&lock);
                    done.store(true, Ordering::Release);
                })
            };
            if done.load(Ordering::Acquire) {
                assert!(lock.try_lock().is_some());
                add(&lock);
            }
            first.join().unwrap();
            assert!(value(&lock) >= 1);
        });
    }

    /// MPI_THREAD_MULTIPLE, and the thread of wide-area connections, which never waits for the lock.
    #[test]
    fn no_turns_with_a_mutex() {
        loom::model(|| {
            let lock = Arc::new(Lock::new(Value::new(0)));
            let adds = {
                let lock = lock.clone();
                thread::spawn(move || add(&lock))
            };
            let tries = {
                let lock = lock.clone();
                thread::spawn(move || {
                    let guard = lock.try_lock()?;
                    // SAFETY: the guard is the only one.
                    guard.with_mut(|value| unsafe { *value += 1 });
                    Some(())
                })
            };
            adds.join().unwrap();
            let had_it = tries.join().unwrap().is_some();
            assert_eq!(value(&lock), 1 + u32::from(had_it));
        });
    }
}

#[cfg(all(test, not(loom)))]
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
