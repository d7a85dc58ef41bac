// SPDX-License-Identifier: Apache-2.0
//! Models of the lock: the checker goes through every interleaving.

use super::*;
use loom::sync::Arc;
use loom::thread;

use crate::shared::{BlockLocks, LINE, LockKind, ProcessLock};

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

/// A guest who looks again and again is invited while a thread of the program has the value.
#[test]
fn a_guest_who_is_invited_later() {
    loom::model(|| {
        let lock = one_at_a_time();
        let guest = {
            let lock = lock.clone();
            thread::spawn(move || {
                let guard = lock.visit()?;
                // SAFETY: the guard is the only one.
                guard.with_mut(|value| unsafe { *value += 1 });
                Some(())
            })
        };
        let guard = lock.lock();
        assert!(lock.invite());
        // SAFETY: the guard is the only one.
        guard.with_mut(|value| unsafe { *value += 1 });
        drop(guard);
        add(&lock);
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

/// Memory that processes share: words of one lock, and what it guards.
struct Guarded {
    words: [loom::sync::atomic::AtomicU64; 5],
    value: Value,
}

impl Guarded {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            words: std::array::from_fn(|_| loom::sync::atomic::AtomicU64::new(0)),
            value: Value::new(0),
        })
    }

    fn lock(&self) -> ProcessLock<'_> {
        let [tickets, write, read, far, members @ ..] = &self.words;
        ProcessLock::new([tickets, write, read], far, members)
    }

    /// Member `me` enters, adds 1 or looks, and leaves. `lost`: whose steps it goes while it waits.
    fn use_as(&self, me: u32, kind: LockKind, lost: Option<u32>) {
        let lock = self.lock();
        let ticket = lock.join(me, kind);
        while !lock.let_in(me, kind, ticket) {
            if lost.is_some() {
                lock.recover(&|member| Some(member) == lost);
            }
            thread::yield_now();
        }
        self.use_value(kind);
        lock.give_back(me, kind);
    }

    /// Adds 1, or looks, in the lock.
    fn use_value(&self, kind: LockKind) {
        match kind {
            // SAFETY: writers are alone.
            LockKind::Exclusive => self.value.with_mut(|value| unsafe { *value += 1 }),
            // SAFETY: no writer is there with readers.
            LockKind::Shared | LockKind::All => self.value.with(|value| assert!(unsafe { *value } < 4)),
        }
    }
}

/// Every pair of readers and writers of a process's lock.
#[test]
fn members_enter_the_lock_of_a_process_as_they_may() {
    for kinds in [
        [LockKind::Exclusive, LockKind::Exclusive],
        [LockKind::Exclusive, LockKind::Shared],
        [LockKind::Shared, LockKind::Shared],
        [LockKind::Exclusive, LockKind::All],
        [LockKind::Shared, LockKind::All],
    ] {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let guarded = Guarded::new();
            let other = guarded.clone();
            let first = thread::spawn(move || other.use_as(0, kinds[0], None));
            guarded.use_as(1, kinds[1], None);
            first.join().unwrap();
            let writers = kinds.iter().filter(|&&kind| kind == LockKind::Exclusive).count();
            // SAFETY: the other thread has ended.
            guarded
                .value
                .with(|value| assert_eq!(unsafe { *value } as usize, writers));
        });
    }
}

/// Whoever enters at once or not at all is there as it may, and leaves nothing behind if it did not enter.
#[test]
fn who_does_not_wait_enters_as_it_may() {
    use LockKind::{All, Exclusive, Shared};
    for (waits, tries) in [Exclusive, Shared, All]
        .into_iter()
        .flat_map(|waits| [(waits, Exclusive), (waits, Shared)])
    {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let guarded = Guarded::new();
            let other = guarded.clone();
            let first = thread::spawn(move || {
                other.use_as(0, waits, None);
                other.use_as(0, waits, None);
            });
            let entered = guarded.lock().enter_at_once(tries);
            if entered {
                guarded.use_value(tries);
                guarded.lock().leave(tries);
            }
            first.join().unwrap();
            let writers = if waits == Exclusive { 2 } else { 0 } + u32::from(entered && tries == Exclusive);
            // SAFETY: the other thread has ended.
            guarded.value.with(|value| assert_eq!(unsafe { *value }, writers));
            assert!(guarded.lock().enter_at_once(Exclusive));
        });
    }
}

/// A member has died that had the lock, or waited for it: those who wait go its steps, once, and all enter.
#[test]
fn what_a_lost_member_had_goes_on_once() {
    for (lost, enters) in [
        (LockKind::Exclusive, true),
        (LockKind::Exclusive, false),
        (LockKind::Shared, true),
        (LockKind::Shared, false),
        (LockKind::All, true),
        (LockKind::All, false),
    ] {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(move || {
            let guarded = Guarded::new();
            let ticket = guarded.lock().join(2, lost);
            if enters {
                assert!(guarded.lock().let_in(2, lost, ticket));
            }
            let other = guarded.clone();
            let first = thread::spawn(move || other.use_as(0, LockKind::Exclusive, Some(2)));
            guarded.use_as(1, LockKind::Exclusive, Some(2));
            first.join().unwrap();
            // SAFETY: the other thread has ended.
            guarded.value.with(|value| assert_eq!(unsafe { *value }, 2));
            assert!(!guarded.lock().is_wanted_near(&|_| false));
        });
    }
}

/// Two change elements of a block, which a third one had that has died; with a line for each lock, and with a bit.
#[test]
fn one_at_a_time_changes_a_block() {
    for (bits, died) in [(false, false), (false, true), (true, false)] {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let words: Arc<Vec<_>> = Arc::new((0..LINE).map(|_| loom::sync::atomic::AtomicU64::new(0)).collect());
            let value = Arc::new(Value::new(0));
            if died {
                words[0].store(3, Ordering::Relaxed);
            }
            let change = move |me: u32, words: &[loom::sync::atomic::AtomicU64], value: &Value| {
                let locks = match bits {
                    true => BlockLocks::Bits(&words[0]),
                    false => BlockLocks::Lines(words),
                };
                while !locks.enter(0, me) && !locks.take_over(0, me, &|rank| rank == 2) {
                    thread::yield_now();
                }
                // SAFETY: nobody else has the lock.
                value.with_mut(|value| unsafe { *value += 1 });
                locks.leave(1);
            };
            let (theirs, seen) = (words.clone(), value.clone());
            let first = thread::spawn(move || change(0, &theirs, &seen));
            change(1, &words, &value);
            first.join().unwrap();
            // SAFETY: the other thread has ended.
            value.with(|value| assert_eq!(unsafe { *value }, 2));
        });
    }
}
