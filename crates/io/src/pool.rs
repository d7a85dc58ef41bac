// SPDX-License-Identifier: Apache-2.0
//! Threads that use the disk while the program computes. They know nothing of MPI, and end when there is nothing to do
//! for a while.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

pub(crate) type Work = Box<dyn FnOnce() + Send>;

/// Threads at most: enough to keep a disk busy; more would only take cores from the program.
const THREADS: usize = 4;
/// How long a thread waits for more to do.
const IDLE: Duration = Duration::from_secs(5);

struct Pool {
    queue: VecDeque<Work>,
    threads: usize,
    idle: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool {
    queue: VecDeque::new(),
    threads: 0,
    idle: 0,
});
static MORE: Condvar = Condvar::new();

/// Lets a thread do this, soon. Without a thread to be had it is done at once.
pub(crate) fn run(work: Work) {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if pool.queue.len() < pool.idle || pool.threads == THREADS {
        pool.queue.push_back(work);
        MORE.notify_one();
        return;
    }
    pool.threads += 1;
    drop(pool);
    if !begin(work, serve) {
        POOL.lock().unwrap_or_else(PoisonError::into_inner).threads -= 1;
    }
}

/// Lets a thread of its own do this. Without one to be had it is done at once.
pub(crate) fn apart(work: Work) {
    begin(work, || ());
}

/// Begins a thread that does this, and then something else; false: there was none to be had, and this was done at once.
fn begin(work: Work, then: fn()) -> bool {
    let slot = std::sync::Arc::new(Mutex::new(Some(work)));
    let first = slot.clone();
    let started = isthmus_lock::spawn_quiet("isthmus-io", move || {
        take(&first);
        then();
    });
    if started.is_err() {
        take(&slot);
    }
    started.is_ok()
}

fn take(slot: &Mutex<Option<Work>>) {
    let work = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(work) = work {
        work();
    }
}

fn serve() {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some(work) = pool.queue.pop_front() {
            drop(pool);
            work();
            pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        pool.idle += 1;
        let (locked, waited) = MORE.wait_timeout(pool, IDLE).unwrap_or_else(PoisonError::into_inner);
        pool = locked;
        pool.idle -= 1;
        if waited.timed_out() && pool.queue.is_empty() {
            pool.threads -= 1;
            return;
        }
    }
}
