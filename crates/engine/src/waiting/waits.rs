// SPDX-License-Identifier: Apache-2.0
//! What this process waits for, as people ask when a program hangs. Looked up only when nothing has come for a second.

use std::time::Duration;

use isthmus_wire::waiting::Item;

use crate::waiting::shared::{Inner, NAP, Shared};

/// Hears what this process waits for when nothing has come for a second and for how long; `None`: something has come since. Says
/// whether that could be passed on.
pub type Watcher = Box<dyn Fn(Option<(Duration, &[Item], u32)>) -> bool + Send + Sync>;

/// Hears once a second that a thread waits and nothing has come.
pub type Teller = Box<dyn Fn() + Send + Sync>;

impl Shared {
    /// Whoever is told that time passes while nothing comes; the first one counts.
    pub fn tell_time(&self, teller: Teller) {
        // A second one has nothing to hear.
        let _ = self.teller.set(teller);
    }

    /// Whoever hears what this process waits for; the first one counts. Costs nothing while messages come: only a sleep that ended
    /// without any is told of, and the end of such a wait.
    pub fn tell_waits(&self, watcher: Watcher) {
        // A second one has nothing to hear.
        let _ = self.watcher.set(watcher);
    }

    /// After a sleep of this length.
    #[cold]
    pub(crate) fn report(&self, inner: &mut Inner, slept: Duration) {
        let Some(watcher) = self.watcher.get() else { return };
        if slept < NAP {
            if inner.told.is_some() && watcher(None) {
                inner.told = None;
            }
            inner.idle = Duration::ZERO;
            return;
        }
        inner.idle += slept;
        if let Some(teller) = self.teller.get() {
            teller();
        }
        let (items, more) = inner.engine.waits();
        if inner.told.as_ref() != Some(&items) && watcher(Some((inner.idle, &items, more))) {
            inner.told = Some(items);
        }
    }
}
