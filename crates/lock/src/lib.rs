// SPDX-License-Identifier: Apache-2.0
//! A lock that costs next to nothing when only one thread at a time uses it; threads and work of the library that the
//! program's signals and floating-point traps do not reach.

mod quiet;

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};

pub use quiet::{spawn_quiet, untrapped};

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
    /// No two threads use a [`Lock`] that was made with this value at the same time ([`Lock::visit`] is not meant);
    /// what one thread does with it happens before what the next one does.
    pub const unsafe fn promised() -> Self {
        Self(())
    }
}

/// Who shares the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Threads that are all alike: a mutex.
    Threads,
    /// Threads that take turns by promise.
    Turns,
    /// Threads that take turns by promise, and guests.
    Guests,
}

/// Exclusive access to a value.
///
/// **Guests** ([`Lock::visit`]) never wait, and pay for everybody: those who take turns write that they hold the value
/// and look whether there is a guest, without a fence in between; a guest writes that it is there, makes every other
/// thread of the process execute a fence (`membarrier`), and looks whether the value is held. So either the holder sees
/// the guest, and steps back until it has gone, or the guest sees the holder, and goes.
pub struct Lock<T> {
    form: Form,
    /// [`Form::Threads`]: who has the value. [`Form::Guests`]: which guest is there.
    mutex: Mutex<()>,
    /// One of those who take turns has the value.
    held: AtomicBool,
    /// A guest has the value or is about to.
    guest: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard only, and there is one guard at a time: the mutex sees to that, or the
// flags together with the promise that no two of those who take turns look at them at once.
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
    fn of(form: Form, value: T) -> Self {
        Self {
            form,
            mutex: Mutex::new(()),
            held: AtomicBool::new(false),
            guest: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// For several threads.
    pub fn new(value: T) -> Self {
        Self::of(Form::Threads, value)
    }

    /// For threads that take turns.
    pub fn for_one_at_a_time(value: T, _promise: OneAtATime) -> Self {
        Self::of(Form::Turns, value)
    }

    /// For threads that take turns, and guests. The promise need not speak of guests. On a system without `membarrier`
    /// the same as [`Lock::new`].
    pub fn with_guests(value: T, _promise: OneAtATime) -> Self {
        let form = if fence::prepare() { Form::Guests } else { Form::Threads };
        Self::of(form, value)
    }

    /// Takes the value, waiting for it if other threads may have it. A panic of another holder is not passed on.
    ///
    /// # Panics
    /// If those who take turns have it: this thread, or another one against the promise.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        if self.form == Form::Threads {
            return self.guard(Some(self.mutex()));
        }
        if !self.take() {
            taken();
        }
        if self.guest.load(Ordering::Acquire) {
            self.step_back();
        }
        self.guard(None)
    }

    /// Takes the value if nobody has it but a guest, who goes soon. Not for guests.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        if self.form == Form::Threads {
            return self.try_mutex().map(|guard| self.guard(Some(guard)));
        }
        if !self.take() {
            return None;
        }
        if self.guest.load(Ordering::Acquire) {
            self.step_back();
        }
        Some(self.guard(None))
    }

    /// For a guest: takes the value if nobody has it.
    pub fn visit(&self) -> Option<Guard<'_, T>> {
        if self.form == Form::Turns {
            return None;
        }
        let mutex = self.try_mutex()?;
        if self.form == Form::Guests {
            self.guest.store(true, Ordering::Relaxed);
            fence::heavy();
            if self.held.load(Ordering::Acquire) {
                self.guest.store(false, Ordering::Release);
                return None;
            }
        }
        Some(self.guard(Some(mutex)))
    }

    /// Orders this thread's unlocking before what it reads next: whatever another thread wrote before its
    /// [`Lock::visit`] was refused, this one reads after the unlocking.
    #[inline]
    pub fn settle(&self) {
        match self.form {
            Form::Threads => fence::real(),
            Form::Turns | Form::Guests => fence::light(),
        }
    }

    fn mutex(&self) -> MutexGuard<'_, ()> {
        self.mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_mutex(&self) -> Option<MutexGuard<'_, ()>> {
        match self.mutex.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Writes that the value is held; false if it was. The caller has to look for a guest.
    #[inline]
    fn take(&self) -> bool {
        let free = !self.held.load(Ordering::Relaxed);
        if free {
            self.held.store(true, Ordering::Relaxed);
            fence::light();
        }
        free
    }

    /// Lets the guest finish.
    #[cold]
    fn step_back(&self) {
        while self.guest.load(Ordering::Acquire) {
            self.held.store(false, Ordering::Release);
            // A guest keeps it as long as it is there.
            drop(self.mutex());
            self.held.store(true, Ordering::Relaxed);
            fence::light();
        }
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

/// Fences of which one side pays for both.
mod fence {
    #[cfg(loom)]
    mod imp {
        use loom::sync::atomic::{Ordering, fence};

        // The model checker knows fences of equals only.
        pub(crate) fn prepare() -> bool {
            true
        }

        pub(crate) fn light() {
            fence(Ordering::SeqCst);
        }

        pub(crate) fn real() {
            fence(Ordering::SeqCst);
        }

        pub(crate) fn heavy() {
            fence(Ordering::SeqCst);
        }
    }

    #[cfg(not(loom))]
    mod imp {
        use std::sync::atomic::{Ordering, compiler_fence, fence};

        use rustix::thread::{MembarrierCommand, membarrier};

        /// Tells the system that this process will use heavy fences; false if it has none.
        pub(crate) fn prepare() -> bool {
            membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
        }

        /// Only the compiler is told.
        #[inline]
        pub(crate) fn light() {
            compiler_fence(Ordering::SeqCst);
        }

        #[inline]
        pub(crate) fn real() {
            fence(Ordering::SeqCst);
        }

        /// Makes every running thread of the process execute a fence, so that its light ones were real ones.
        pub(crate) fn heavy() {
            fence(Ordering::SeqCst);
            if let Err(error) = membarrier(MembarrierCommand::PrivateExpedited) {
                panic!("the system refuses membarrier, which it had granted: {error}");
            }
        }
    }

    pub(crate) use imp::{heavy, light, prepare, real};
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
            self.lock.held.store(false, Ordering::Release);
        } else if self.lock.form == Form::Guests {
            self.lock.guest.store(false, Ordering::Release);
        }
    }
}

impl<T> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lock of {:?}", self.form)
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

    /// A guest comes and goes while a thread of the program works, which may wait for it; nothing is lost and nobody is
    /// there at once.
    #[test]
    fn a_guest_of_those_who_take_turns() {
        loom::model(|| {
            // SAFETY: one thread of the model takes turns with itself.
            let promise = unsafe { OneAtATime::promised() };
            let lock = Arc::new(Lock::with_guests(Value::new(0), promise));
            let guest = {
                let lock = lock.clone();
                thread::spawn(move || {
                    let guard = lock.visit()?;
                    // SAFETY: the guard is the only one.
                    guard.with_mut(|value| unsafe { *value += 1 });
                    Some(())
                })
            };
            add(&lock);
            let guard = lock.try_lock().expect("a guest is waited for");
            // SAFETY: the guard is the only one.
            guard.with_mut(|value| unsafe { *value += 1 });
            drop(guard);
            let was_there = guest.join().unwrap().is_some();
            assert_eq!(value(&lock), 2 + u32::from(was_there));
        });
    }

    /// A flag that a guest has set before it was refused is seen after the unlocking.
    #[test]
    fn who_refuses_a_guest_sees_what_it_left() {
        loom::model(|| {
            // SAFETY: one thread of the model takes turns with itself.
            let promise = unsafe { OneAtATime::promised() };
            let (lock, due) = (
                Arc::new(Lock::with_guests(Value::new(0), promise)),
                Arc::new(AtomicBool::new(false)),
            );
            let guest = {
                let (lock, due) = (lock.clone(), due.clone());
                thread::spawn(move || {
                    due.store(true, Ordering::SeqCst);
                    lock.visit().is_some()
                })
            };
            add(&lock);
            lock.settle();
            let seen = due.load(Ordering::Relaxed);
            assert!(guest.join().unwrap() || seen);
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

    fn all() -> [Lock<u64>; 3] {
        // SAFETY: the tests give it to one thread after the other.
        let promise = unsafe { OneAtATime::promised() };
        [
            Lock::new(0),
            Lock::for_one_at_a_time(0, promise),
            Lock::with_guests(0, promise),
        ]
    }

    #[test]
    fn the_value_has_one_holder() {
        for lock in all() {
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
        for lock in all() {
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
        let [_, lock, _] = all();
        let _guard = lock.lock();
        let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(lock.lock())));
        assert!(again.is_err());
    }

    #[test]
    fn a_panic_of_a_holder_frees_it() {
        for lock in all() {
            let holder = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _guard = lock.lock();
                panic!("on purpose");
            }));
            assert!(holder.is_err());
            assert_eq!(*lock.lock(), 0);
        }
    }

    #[test]
    fn guests_and_those_who_take_turns_count_right() {
        // SAFETY: one thread takes turns with itself.
        let lock = Lock::with_guests(0_u64, unsafe { OneAtATime::promised() });
        let visits = std::thread::scope(|scope| {
            let guests: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let visit = |_: &i32| lock.visit().map(|mut value| *value += 1).is_some();
                        (0..20_000).filter(visit).count() as u64
                    })
                })
                .collect();
            (0..200_000).for_each(|_| *lock.lock() += 1);
            guests
                .into_iter()
                .map(|guest| guest.join().expect("no panic"))
                .sum::<u64>()
        });
        assert_eq!(*lock.lock(), 200_000 + visits);
        assert!(lock.visit().is_some(), "nobody is there");
    }

    #[test]
    fn a_guest_does_not_wait() {
        let [threads, turns, guests] = all();
        for lock in [&threads, &guests] {
            let guard = lock.lock();
            std::thread::scope(|scope| {
                scope.spawn(|| assert!(lock.visit().is_none()));
            });
            drop(guard);
            assert_eq!(lock.visit().map(|value| *value), Some(0));
        }
        assert!(turns.visit().is_none(), "none are expected");
    }
}
