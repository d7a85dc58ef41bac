// SPDX-License-Identifier: Apache-2.0
//! Memory of the node in which the members of a communicator meet, if they are all there.
//!
//! The first member takes a frame and tells the others when the communicator is made. A member that has freed the
//! communicator gives its part of the frame back when it makes the next one; when all have, another communicator can
//! have it. There are few frames: without one, collective operations use messages.

use std::sync::{Arc, Mutex, PoisonError};

use isthmus_engine::Engine;

/// Frames of communicators that this process has freed.
#[derive(Debug, Default)]
pub(crate) struct Freed(Mutex<Vec<u32>>);

impl Freed {
    /// Gives back what no operation uses any more.
    pub(crate) fn give_back(&self, engine: &mut Engine) {
        self.list().retain(|&frame| {
            let used = engine.frames().is_in_use(frame);
            if !used {
                engine.frames().give_back(frame);
            }
            used
        });
    }

    fn list(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The use of a frame by a communicator.
#[derive(Debug)]
pub(crate) struct Use {
    frame: u32,
    freed: Arc<Freed>,
}

impl Use {
    /// Of a frame that was taken for the communicator.
    pub(crate) fn of(frame: u32, freed: &Arc<Freed>) -> Self {
        Self {
            frame,
            freed: Arc::clone(freed),
        }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.freed.list().push(self.frame);
    }
}
