// SPDX-License-Identifier: Apache-2.0
//! Memory of the node in which the members of a communicator meet, if they are all there.
//!
//! The first member takes a slab and tells the others when the communicator is made. A member that has freed the
//! communicator gives its part of the slab back when it makes the next one; when all have, another communicator can
//! have it. There are few slabs: without one, collective operations use messages. Persistent operations are lent some
//! of them, for as long as they are.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use isthmus_engine::Engine;

/// Most slabs that persistent operations of a process have: others are for communicators.
const LENT: u32 = 8;

/// Slabs that this process uses no longer.
#[derive(Debug, Default)]
pub(crate) struct Freed {
    list: Mutex<Vec<u32>>,
    /// How many persistent operations have.
    lent: AtomicU32,
}

impl Freed {
    /// Gives back what no operation uses any more.
    pub(crate) fn give_back(&self, engine: &mut Engine) {
        self.list().retain(|&slab| {
            let used = engine.slabs().is_in_use(slab);
            if !used {
                engine.slabs().give_back(slab);
            }
            used
        });
    }

    /// Whether another persistent operation may have one.
    pub(crate) fn may_lend(&self) -> bool {
        self.lent.load(Ordering::Relaxed) < LENT
    }

    fn list(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The use of a slab by a communicator or an operation.
#[derive(Debug)]
pub(crate) struct Use {
    slab: u32,
    freed: Arc<Freed>,
    lent: bool,
}

impl Use {
    /// Of a slab that was taken for the communicator.
    pub(crate) fn of(slab: u32, freed: &Arc<Freed>) -> Self {
        Self {
            slab,
            freed: Arc::clone(freed),
            lent: false,
        }
    }

    /// Of one that was taken for a persistent operation.
    pub(crate) fn lent(slab: u32, freed: &Arc<Freed>) -> Self {
        freed.lent.fetch_add(1, Ordering::Relaxed);
        let mut own = Self::of(slab, freed);
        own.lent = true;
        own
    }

    /// Its number.
    pub(crate) fn slab(&self) -> u32 {
        self.slab
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.freed.lent.fetch_sub(u32::from(self.lent), Ordering::Relaxed);
        self.freed.list().push(self.slab);
    }
}
