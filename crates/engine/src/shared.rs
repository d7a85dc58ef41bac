// SPDX-License-Identifier: Apache-2.0
//! One engine for all threads of a process: locking and waiting.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Engine;

/// How a process waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// At least as many cores as processes of the job on this node: spinning hurts nobody.
    pub spare_cores: bool,
    /// Several threads call MPI (MPI_THREAD_MULTIPLE), or a transport's thread calls [`Shared::progress_from_thread`].
    pub threads: bool,
}

/// The engine of a process.
pub struct Shared {
    engine: Mutex<Engine>,
    policy: Policy,
}

/// The right to use the engine. Must not be held while waiting: use [`Shared::wait`].
pub struct Guard<'a>(MutexGuard<'a, Engine>);

impl Deref for Guard<'_> {
    type Target = Engine;
    fn deref(&self) -> &Engine {
        &self.0
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut Engine {
        &mut self.0
    }
}

impl Shared {
    /// Takes the engine.
    pub fn new(engine: Engine, policy: Policy) -> Self {
        Self { engine: Mutex::new(engine), policy }
    }

    /// The engine, for a short moment.
    pub fn lock(&self) -> Guard<'_> {
        Guard(self.engine.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes progress until `check` gives something. `check` is called with the engine after each round of progress (and once before the first).
    pub fn wait<T>(&self, mut check: impl FnMut(&mut Engine) -> Option<T>) -> T {
        loop {
            let mut engine = self.lock();
            if let Some(found) = check(&mut engine) {
                return found;
            }
            engine.progress();
            drop(engine);
            if !self.policy.spare_cores {
                std::thread::yield_now();
            }
        }
    }

    /// For a transport's own thread, after it has queued arrivals: makes progress if no thread is inside MPI;
    /// if one is, that one will find them.
    pub fn progress_from_thread(&self) {
        if let Ok(mut engine) = self.engine.try_lock() {
            engine.progress();
        }
    }
}
