// SPDX-License-Identifier: Apache-2.0
//! What this process waits for, as people ask when a program hangs. Looked up only when nothing has come for a second.

use std::sync::OnceLock;
use std::time::Duration;

use isthmus_wire::time::Time;
use isthmus_wire::waiting::Item;

use crate::Engine;
use crate::base::machine::Machine;
use crate::base::requests::Owner;
use crate::base::waits::waits;
use crate::tools::waited::Waited;
use crate::waiting::NAP;
use crate::waiting::inner::Inner;

/// What is pending, as much of it as is told, and how much more there is.
fn pending(engine: &Engine) -> (Vec<Item>, u32) {
    let state = &engine.core.state;
    waits(state, |owner, index| match owner {
        Owner::Plans => engine.plans.pending(state, index),
        Owner::Groups => engine.groups.pending(state, index),
        Owner::Vendor => engine.vendor.pending(state, index),
        Owner::Partitioned => engine.partitioned.pending(state, index),
        Owner::Registered(number) => state.machines.get(number)?.pending(state, index),
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

    /// Whoever hears what this process waits for; the first one counts. Costs nothing while messages come: only a sleep
    /// that ended without any is told of, and the end of such a wait.
    pub fn tell_waits(&self, watcher: Watcher) {
        // A second one has nothing to hear.
        let _ = self.watcher.set(watcher);
    }

    /// After a sleep of this length.
    #[cold]
    pub(super) fn report(&self, inner: &mut Inner, slept: Duration) {
        if slept >= NAP {
            inner.engine.ask_others();
        }
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
        let (items, more) = pending(&inner.engine);
        if inner.told.as_ref() != Some(&items) && watcher(Some((inner.idle, &items, more))) {
            inner.told = Some(items);
        }
    }
}
