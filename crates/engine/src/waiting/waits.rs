// SPDX-License-Identifier: Apache-2.0
//! What this process waits for, as people ask when a program hangs. Looked up only when nothing has come for a second.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use isthmus_wire::time::Time;
use isthmus_wire::waiting::Item;

use crate::Engine;
use crate::base::requests::Owner;
use crate::machine::Machine;
use crate::p2p::waits::waits;
use crate::tools::waited::Waited;
use crate::waiting::Inner;
use crate::waiting::NAP;

/// What is pending, as much of it as is told, and how much more there is.
fn pending(engine: &Engine) -> (Vec<Item>, u32) {
    let state = &engine.core.state;
    waits(state, |owner, index| match owner {
        Owner::Plans => engine.plans.pending(state, index),
        Owner::Groups => engine.groups.pending(state, index),
        Owner::Vendor => engine.vendor.pending(state, index),
        Owner::Partitioned => engine.partitioned.pending(state, index),
        Owner::Registered(number) => engine.machines.get(number)?.pending(state, index),
    })
}

/// Hears what this process waits for when nothing has come for a second and for how long; `None`: something has come
/// since. Says whether that could be passed on.
pub type Watcher = Box<dyn Fn(Option<(Duration, &[Item], u32)>) -> bool + Send + Sync>;

/// Hears once a second that a thread waits and nothing has come.
pub type Teller = Box<dyn Fn() + Send + Sync>;

/// Who hears what this process waits for, and where its time goes.
#[derive(Default)]
pub struct Reports {
    watcher: OnceLock<Watcher>,
    teller: OnceLock<Teller>,
    /// Where time goes; from [`Shared::name_waits`](crate::Shared::name_waits) on.
    waited: OnceLock<Waited>,
}

impl Reports {
    pub(super) fn count(&self, waited: Waited) {
        // Once a process.
        let _ = self.waited.set(waited);
    }

    /// Where the time of this process has gone; needs no lock.
    pub fn time(&self) -> Time {
        self.waited.get().map(Waited::time).unwrap_or_default()
    }

    /// Whoever is told that time passes while nothing comes; the first one counts.
    pub fn tell_time(&self, teller: Teller) {
        // A second one has nothing to hear.
        let _ = self.teller.set(teller);
    }

    /// Whoever hears what this process waits for; the first one counts. Costs nothing while messages come: only a
    /// second without any is told of, and the end of such a wait.
    pub fn tell_waits(&self, watcher: Watcher) {
        // A second one has nothing to hear.
        let _ = self.watcher.set(watcher);
    }

    /// A thread is about to sleep. `news`: something has come since it slept last, or it has not slept yet.
    #[cold]
    pub(super) fn before_sleep(&self, inner: &mut Inner, news: bool) {
        let now = Instant::now();
        let transports = &mut inner.engine.core.transports;
        let moved = transports
            .iter_mut()
            .fold(false, |any, transport| any | transport.moved());
        let since = match inner.quiet.since {
            Some(since) if !news && !moved => since,
            _ => {
                self.over(inner);
                *inner.quiet.since.insert(now)
            }
        };
        let last = *inner.quiet.last.get_or_insert(since);
        if now.saturating_duration_since(last.max(since)) >= NAP {
            inner.quiet.last = Some(now);
            self.tell(inner, now.saturating_duration_since(since));
        }
    }

    /// A wait in which threads slept is over, or something has come.
    #[cold]
    pub(super) fn over(&self, inner: &mut Inner) {
        inner.quiet.since = None;
        let Some(watcher) = self.watcher.get() else { return };
        if inner.quiet.reported.is_some() && watcher(None) {
            inner.quiet.reported = None;
        }
    }

    /// Calls find nothing and return, thousands of them since this was called last. Whoever does that instead of
    /// waiting asks others, too. It may as well be computing, so nobody is told that it waits.
    #[cold]
    pub(super) fn tests_in_vain(&self, inner: &mut Inner) {
        let (now, events) = (Instant::now(), inner.engine.core.state.events());
        match inner.quiet.tests {
            Some((since, then)) if then == events && now.saturating_duration_since(since) < NAP => {}
            Some((_, then)) if then == events => {
                inner.quiet.tests = None;
                inner.engine.ask_others();
            }
            _ => inner.quiet.tests = Some((now, events)),
        }
    }

    /// Nothing has come for so long.
    #[cold]
    fn tell(&self, inner: &mut Inner, quiet: Duration) {
        inner.engine.ask_others();
        let Some(watcher) = self.watcher.get() else { return };
        if let Some(teller) = self.teller.get() {
            teller();
        }
        let (items, more) = pending(&inner.engine);
        if inner.quiet.reported.as_ref() != Some(&items) && watcher(Some((quiet, &items, more))) {
            inner.quiet.reported = Some(items);
        }
    }
}
