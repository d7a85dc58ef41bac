// SPDX-License-Identifier: Apache-2.0
//! A wait in a loop of the caller's own, for something outside of MPI: people see it as they see others.

use std::time::{Duration, Instant};

use super::Shared;

/// How often it is looked whether nothing has come for long.
const SEEN: Duration = Duration::from_millis(100);

/// Such a wait, as long as it lives. A thread has one at a time.
pub struct Looking<'s> {
    shared: &'s Shared,
    began: Instant,
    seen: Option<Instant>,
}

impl Shared {
    /// The calling thread waits in a loop of its own from now on.
    pub fn looking(&self) -> Looking<'_> {
        let began = self.lock().core.state.tools_mut().wait_begins();
        Looking {
            shared: self,
            began,
            seen: None,
        }
    }
}

impl Looking<'_> {
    /// Makes progress, and hears what has come from outside of MPI.
    pub fn look(&mut self) {
        let mut guard = self.shared.lock();
        guard.inner.listen();
        let news = guard.progress();
        let now = Instant::now();
        let first = self.seen.is_none();
        if news || self.seen.is_none_or(|seen| now.saturating_duration_since(seen) >= SEEN) {
            self.seen = Some(now);
            self.shared.reports.before_sleep(&mut guard.inner, news || first);
        }
    }
}

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        let mut guard = self.shared.lock();
        if self.seen.is_some() {
            self.shared.reports.over(&mut guard.inner);
        }
        guard.core.state.tools_mut().wait_ends(self.began);
    }
}
