// SPDX-License-Identifier: Apache-2.0
//! Which rings a process looks at by itself.

use super::{Active, ShmTransport};

/// Rings that are looked at without being told to. More would slow down polling when nothing arrives.
const WATCHED: usize = 8;

/// A watched ring that brought none of the last so many frames gives its place to a busier one. Of partners that come
/// in turn each brings one of [`WATCHED`], so it must be some times that, or they would take each other's places. A
/// place changes hands once in as many frames at most, for two updates of a word, 6 ns each: all places together a
/// nanosecond a frame at most. With more a ring is looked at longer for nothing.
const IDLE_FRAMES: u64 = 16 * WATCHED as u64;

impl ShmTransport {
    /// After polling: of the rings that are not watched, those that are empty now are forgotten, or watched if there is
    /// a place and they brought something (more than `before` had been delivered).
    pub(super) fn settle(&mut self, before: u64) {
        let mut index = 0;
        while index < self.active.len() {
            let Active { slot, watched, last } = self.active[index];
            let link = &self.links[slot];
            let alive = !link.lost;
            if watched || (alive && link.reader.ready()) {
                index += 1;
            } else if alive && last > before && self.may_watch() {
                self.watch(index);
                index += 1;
            } else {
                self.links[slot].active = false;
                self.active.swap_remove(index);
            }
        }
    }

    /// Is there a place among the watched rings, or one that can be made free?
    fn may_watch(&mut self) -> bool {
        if self.active.iter().filter(|a| a.watched).count() < WATCHED {
            return true;
        }
        let delivered = self.delivered;
        let Some(idle) = self
            .active
            .iter_mut()
            .find(|a| a.watched && a.last + IDLE_FRAMES < delivered)
        else {
            return false;
        };
        idle.watched = false;
        let slot = idle.slot;
        // It stays active, so it is looked at once more before it is forgotten.
        self.segment.block(self.slot).bell.unwatch(slot);
        true
    }

    fn watch(&mut self, index: usize) {
        self.active[index].watched = true;
        self.segment.block(self.slot).bell.watch(self.active[index].slot);
    }

    pub(super) fn restore_watching(&self) {
        let bell = &self.segment.block(self.slot).bell;
        for active in self.active.iter().filter(|a| a.watched) {
            bell.watch(active.slot);
        }
    }
}
