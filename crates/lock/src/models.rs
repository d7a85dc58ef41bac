// SPDX-License-Identifier: Apache-2.0
//! Models of the lock: the checker goes through every interleaving.

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
