// SPDX-License-Identifier: Apache-2.0
//! A lock that costs next to nothing when only one thread at a time uses it; threads and work of the library that the
//! program's signals and floating-point traps do not reach; files that would be too long, before a signal says so.

#[cfg(all(test, loom))]
mod models;
mod quiet;
pub mod shared;
mod size_limit;

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};

pub use quiet::{spawn_quiet, untrapped};
pub use size_limit::within_size_limit;

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
    /// Threads that take turns by promise, and guests if they are invited.
    Turns,
}

/// Exclusive access to a value.
///
/// **Guests** ([`Lock::visit`]) never wait, and pay for everybody: those who take turns write that they hold the value
/// and look whether there is a guest, without a fence in between; a guest writes that it is there, makes every other
/// thread of the process execute a fence (`membarrier`), and looks whether the value is held. So either the holder sees
/// the guest, and steps back until it has gone, or the guest sees the holder, and goes.
///
/// Those who take turns do the same whether guests are invited or not. So they may be invited at any time
/// ([`Lock::invite`]), also while somebody has the value.
pub struct Lock<T> {
    form: Form,
    /// [`Form::Turns`]: guests may come.
    invited: AtomicBool,
    /// [`Form::Threads`]: who has the value. [`Form::Turns`]: which guest is there.
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
            invited: AtomicBool::new(false),
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
    pub fn with_guests(value: T, promise: OneAtATime) -> Self {
        let lock = Self::for_one_at_a_time(value, promise);
        if lock.invite() {
            return lock;
        }
        Self {
            form: Form::Threads,
            ..lock
        }
    }

    /// From now on guests may come. False: they cannot, because the system has no `membarrier` (Linux before 4.14) and
    /// threads take turns.
    pub fn invite(&self) -> bool {
        if self.form == Form::Threads || self.invited.load(Ordering::Acquire) {
            return true;
        }
        let prepared = fence::prepare();
        if prepared {
            // A guest that sees this comes after the preparation, without which there are no heavy fences.
            self.invited.store(true, Ordering::Release);
        }
        prepared
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

    /// [`Lock::lock`] for those who take turns. `None`: threads are all alike here. Always part of its caller: that the
    /// guard has no mutex is then known there.
    #[inline(always)]
    pub fn in_turns(&self) -> Option<Guard<'_, T>> {
        if self.form == Form::Threads {
            return None;
        }
        if !self.take() {
            taken();
        }
        if self.guest.load(Ordering::Acquire) {
            self.step_back();
        }
        Some(self.guard(None))
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
        let turns = self.form == Form::Turns;
        if turns && !self.invited.load(Ordering::Acquire) {
            return None;
        }
        let mutex = self.try_mutex()?;
        if turns {
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
            Form::Turns => fence::light(),
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
        } else if self.lock.form == Form::Turns {
            self.lock.guest.store(false, Ordering::Release);
        }
    }
}

impl<T> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lock of {:?}", self.form)
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
    fn the_value_is_had_for_a_moment_by_those_who_take_turns() {
        let [threads, turns, guests] = all();
        for lock in [&turns, &guests] {
            let mut guard = lock.in_turns().expect("they do");
            assert_eq!(std::mem::replace(&mut *guard, 7), 0);
            assert!(lock.try_lock().is_none());
            drop(guard);
            assert_eq!(*lock.lock(), 7);
            let panics = std::panic::AssertUnwindSafe(|| {
                let _guard = lock.in_turns();
                panic!("on purpose");
            });
            assert!(std::panic::catch_unwind(panics).is_err());
            assert!(lock.try_lock().is_some(), "a panic frees it");
        }
        assert!(threads.in_turns().is_none());
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
    fn guests_may_be_invited_while_others_count() {
        // SAFETY: one thread takes turns with itself.
        let lock = Lock::for_one_at_a_time(0_u64, unsafe { OneAtATime::promised() });
        let visits = std::thread::scope(|scope| {
            let guest = scope.spawn(|| {
                let visit = |_: &i32| lock.visit().map(|mut value| *value += 1).is_some();
                (0..50_000).filter(visit).count() as u64
            });
            for round in 0..200_000 {
                let mut value = lock.lock();
                if round == 100 {
                    // Without membarrier nobody comes.
                    lock.invite();
                }
                *value += 1;
            }
            guest.join().expect("no panic")
        });
        assert_eq!(*lock.lock(), 200_000 + visits);
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
        assert!(turns.visit().is_none(), "none are invited");
        assert_eq!(turns.invite(), turns.visit().is_some());
    }
}
