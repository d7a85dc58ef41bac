// SPDX-License-Identifier: Apache-2.0
//! Progress while the program computes: the keeper, a thread that a process has if messages of its job cross sockets,
//! or from when on a machine needs it.
//!
//! What arrives from other sites is reported by the transport's own thread ([`Shared::progress_from_thread`]). But an
//! operation may have parts inside the site, where whoever waits does the work, and nobody waits. So while something is
//! pending the keeper looks now and then whether the program has been inside MPI since the last time. If it has not, it
//! computes: the keeper makes progress, arms the transports as a waiting thread would, and sleeps until something
//! arrives. The first call of the program relieves it.
//!
//! ```text
//!            something was started                  not inside MPI since the last look
//!   [idle] -------------------------> [looking] ------------------------------------> [keeping]
//!      <------- nothing is pending ----- | <------- the program calls MPI -------------- |
//! ```
//! Nothing of this is paid for by calls: starting an operation reads one variable, and wakes the keeper if it was idle.
//! A machine that [expects](crate::Machine::expects) frames counts as pending: its peers wait for what this process
//! does not know of yet, so it looks as often as it may.
//!
//! It never waits for the engine, never works while a thread of the program is inside MPI, and leaves everything that
//! would call the program (its reduction operators) to the program's threads, but for functions that the program has
//! declared fit for it ([`Callbacks`](crate::Callbacks)).

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::Shared;
use crate::base::callbacks::Caller;
use crate::engine::{expects, needs_progress};
use crate::waiting::NAP;
use crate::waiting::keeper::LOOK;

/// Longest time between two looks at a program that keeps calling MPI, and so needs no keeper.
const LONGEST_LOOK: Duration = Duration::from_millis(8);

/// Looks in a row that find nothing pending before the keeper becomes idle. Programs start operations again and again,
/// and waking it costs them a system call.
const VAIN_LOOKS: u32 = 16;

/// What the keeper has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// Nothing is pending.
    Nothing,
    /// The program is, or has just been, inside MPI.
    Busy,
    /// The program computes, and the transports ring when something arrives.
    Armed,
    /// The program computes, and something has arrived.
    More,
}

impl Shared {
    /// Tells the keeper, if there is one, that an operation was started which the program does not wait for yet.
    #[inline]
    pub fn watch(&self) {
        self.keeper.watch();
    }

    /// The work of the keeper; ends after [`Keeper::stop`](crate::Keeper::stop). To be called by one thread of the
    /// library, in a process with [`Policy::guests`](crate::Policy::guests), or that has [invited](Shared::invite) it.
    /// An error is a lack of descriptors.
    pub fn keep(&self) -> io::Result<()> {
        let mut descriptors = descriptors_of(self)?;
        self.keeper.begins();
        let mut last = Last::default();
        let (mut pause, mut vain) = (LOOK, 0);
        while !self.keeper.is_stopped() {
            if self.keeper.take_stale() {
                descriptors = descriptors_of(self)?;
            }
            let found = look(self, &mut last);
            if self.callbacks.are_due() && self.callbacks.call(Caller::Keeper) {
                // What the functions have said leaves with the next look.
                continue;
            }
            vain = if found == Found::Nothing { vain + 1 } else { 0 };
            match found {
                Found::More => {}
                Found::Armed => {
                    pause = LOOK;
                    self.keeper.doze(&descriptors, NAP);
                }
                Found::Nothing if vain > VAIN_LOOKS => {
                    if is_quiet(self) {
                        self.keeper.doze(&descriptors[..1], Duration::MAX);
                    }
                    (pause, vain) = (LOOK, 0);
                }
                Found::Nothing | Found::Busy => {
                    self.keeper.doze(&descriptors[..1], pause);
                    pause = if last.expects {
                        LOOK
                    } else {
                        (2 * pause).min(LONGEST_LOOK)
                    };
                }
            }
        }
        self.keeper.ends();
        Ok(())
    }
}

fn descriptors_of(shared: &Shared) -> io::Result<Vec<OwnedFd>> {
    loop {
        match shared.inner.visit() {
            Some(inner) => return shared.keeper.descriptors(&inner),
            None => std::thread::sleep(LOOK),
        }
    }
}

/// Becomes idle, unless something was started meanwhile.
fn is_quiet(shared: &Shared) -> bool {
    let quiet = || shared.inner.visit().is_some_and(|inner| !needs_progress(&inner.engine));
    shared.keeper.rests(quiet)
}

/// What the last look has seen.
#[derive(Default)]
struct Last {
    /// How often the program had entered MPI.
    entries: u64,
    /// A machine expects frames.
    expects: bool,
}

fn look(shared: &Shared, last: &mut Last) -> Found {
    let Some(mut inner) = shared.inner.visit() else {
        return Found::Busy;
    };
    if inner.sleepers > 0 {
        return Found::Busy;
    }
    if std::mem::take(&mut inner.kept) {
        inner.engine.core.disarm();
    }
    let entered = std::mem::replace(&mut last.entries, inner.entries) != inner.entries;
    last.expects = expects(&inner.engine);
    if !needs_progress(&inner.engine) {
        return Found::Nothing;
    }
    if entered {
        return Found::Busy;
    }
    inner.advance(&shared.bell);
    shared.keeper.has_kept();
    if !needs_progress(&inner.engine) {
        return Found::Nothing;
    }
    if !inner.engine.core.rings() {
        // Nobody will wake the keeper: it looks again.
        return Found::Busy;
    }
    inner.kept = inner.engine.arm_transports();
    if inner.kept {
        return Found::Armed;
    }
    inner.engine.core.disarm();
    Found::More
}
