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
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use isthmus_transport::wait as sleep_on;

use crate::Shared;
use crate::base::callbacks::Caller;
use crate::engine::{expects, needs_progress};
use crate::waiting::Inner;
use crate::waiting::NAP;
use crate::waiting::bell::Bell;

/// Shortest time between two looks at a program that might compute: short against anything worth computing meanwhile,
/// and a look costs some microseconds.
pub(crate) const LOOK: Duration = Duration::from_millis(1);

/// Longest time between two looks at a program that keeps calling MPI, and so needs no keeper.
const LONGEST_LOOK: Duration = Duration::from_millis(8);

/// Looks in a row that find nothing pending before the keeper becomes idle. Programs start operations again and again,
/// and waking it costs them a system call.
const VAIN_LOOKS: u32 = 16;

/// There is none.
const ABSENT: u8 = 0;
const IDLE: u8 = 1;
const AWAKE: u8 = 2;

/// What threads know of the keeper: a thread that makes progress while the program computes.
#[derive(Default)]
pub struct Keeper {
    state: AtomicU8,
    stop: AtomicBool,
    /// Transports were added since it last asked for their descriptors.
    stale: AtomicBool,
    bell: Bell,
    /// How often it has made progress for a program that computes.
    kept: AtomicU64,
}

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
        if self.keeper.state.load(Ordering::Acquire) == IDLE {
            wake_keeper(self);
        }
    }

    /// The work of the keeper; ends after [`Keeper::stop`]. To be called by one thread of the library, in a
    /// process with [`Policy::guests`](crate::Policy::guests), or that has [invited](Shared::invite) it. An error is a
    /// lack of descriptors.
    pub fn keep(&self) -> io::Result<()> {
        let mut descriptors = descriptors_of(self)?;
        self.keeper.state.store(AWAKE, Ordering::Release);
        let mut last = Last::default();
        let (mut pause, mut vain) = (LOOK, 0);
        while !self.keeper.stop.load(Ordering::Acquire) {
            if self.keeper.stale.swap(false, Ordering::AcqRel) {
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
                    doze(self, &descriptors, NAP);
                }
                Found::Nothing if vain > VAIN_LOOKS => {
                    if is_quiet(self) {
                        doze(self, &descriptors[..1], Duration::MAX);
                    }
                    (pause, vain) = (LOOK, 0);
                }
                Found::Nothing | Found::Busy => {
                    doze(self, &descriptors[..1], pause);
                    pause = if last.expects {
                        LOOK
                    } else {
                        (2 * pause).min(LONGEST_LOOK)
                    };
                }
            }
        }
        self.keeper.state.store(ABSENT, Ordering::Release);
        Ok(())
    }
}

impl Keeper {
    /// There are transports that it does not know.
    pub(super) fn refresh(&self) {
        self.stale.store(true, Ordering::Release);
        self.bell.ring();
    }

    /// Wakes it.
    pub(super) fn ring(&self) {
        self.bell.ring();
    }

    /// Ends [`Shared::keep`], soon.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.bell.ring();
    }

    /// How often progress was made for a program that computed.
    pub fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    /// Somebody else looks after the transports.
    #[cold]
    pub(super) fn relieve(&self, inner: &mut Inner) {
        inner.kept = false;
        inner.engine.disarm();
        self.bell.ring();
    }
}

fn descriptors_of(shared: &Shared) -> io::Result<Vec<OwnedFd>> {
    loop {
        match shared.inner.visit() {
            Some(inner) => return inner.descriptors_with(&shared.keeper.bell),
            None => std::thread::sleep(LOOK),
        }
    }
}

#[cold]
fn wake_keeper(shared: &Shared) {
    if shared.keeper.state.swap(AWAKE, Ordering::AcqRel) == IDLE {
        shared.keeper.bell.ring();
    }
}

fn doze(shared: &Shared, descriptors: &[OwnedFd], time: Duration) {
    let all: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
    sleep_on(&all, (time != Duration::MAX).then_some(time));
    shared.keeper.bell.silence();
}

/// Becomes idle, unless something was started meanwhile.
fn is_quiet(shared: &Shared) -> bool {
    shared.keeper.state.store(IDLE, Ordering::SeqCst);
    // Whoever starts something after this look sees that the keeper is idle.
    let quiet = shared.inner.visit().is_some_and(|inner| !needs_progress(&inner.engine));
    // Otherwise it is woken: then the bell rings, or it stays awake by itself.
    quiet || shared.keeper.state.swap(AWAKE, Ordering::AcqRel) != IDLE
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
        inner.engine.disarm();
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
    shared.keeper.kept.fetch_add(1, Ordering::Relaxed);
    if !needs_progress(&inner.engine) {
        return Found::Nothing;
    }
    if !inner.engine.rings() {
        // Nobody will wake the keeper: it looks again.
        return Found::Busy;
    }
    inner.kept = inner.engine.arm_transports();
    if inner.kept {
        return Found::Armed;
    }
    inner.engine.disarm();
    Found::More
}
