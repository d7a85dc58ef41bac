// SPDX-License-Identifier: Apache-2.0
//! What threads know of the keeper, which makes progress while the program computes: see
//! [`keeping`](crate::waiting::keeping).

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use isthmus_transport::wait as sleep_on;

use crate::waiting::Inner;
use crate::waiting::bell::Bell;

/// Shortest time between two looks at a program that might compute: short against anything worth computing meanwhile,
/// and a look costs some microseconds.
pub(crate) const LOOK: Duration = Duration::from_millis(1);

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

/// For the threads of the program.
impl Keeper {
    /// An operation was started which the program does not wait for yet.
    #[inline]
    pub(super) fn watch(&self) {
        if self.state.load(Ordering::Acquire) == IDLE {
            self.awaken();
        }
    }

    #[cold]
    fn awaken(&self) {
        if self.state.swap(AWAKE, Ordering::AcqRel) == IDLE {
            self.bell.ring();
        }
    }

    /// There are transports that it does not know.
    pub(super) fn refresh(&self) {
        self.stale.store(true, Ordering::Release);
        self.bell.ring();
    }

    /// Wakes it.
    pub(super) fn ring(&self) {
        self.bell.ring();
    }

    /// Ends [`Shared::keep`](crate::Shared::keep), soon.
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
        inner.engine.core.disarm();
        self.bell.ring();
    }
}

/// For the thread that is the keeper.
impl Keeper {
    pub(super) fn begins(&self) {
        self.state.store(AWAKE, Ordering::Release);
    }

    pub(super) fn ends(&self) {
        self.state.store(ABSENT, Ordering::Release);
    }

    /// Whether it is to end.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Whether it is to ask anew for what it sleeps on, which counts as done from now on.
    pub(super) fn take_stale(&self) -> bool {
        self.stale.swap(false, Ordering::AcqRel)
    }

    /// Becomes idle, unless something was started meanwhile. `quiet`: looks whether nothing is pending.
    pub(super) fn rests(&self, quiet: impl FnOnce() -> bool) -> bool {
        self.state.store(IDLE, Ordering::SeqCst);
        // Whoever starts something after this look sees that the keeper is idle. Otherwise it is woken: then the bell
        // rings, or it stays awake by itself.
        quiet() || self.state.swap(AWAKE, Ordering::AcqRel) != IDLE
    }

    /// It has made progress.
    pub(super) fn has_kept(&self) {
        self.kept.fetch_add(1, Ordering::Relaxed);
    }

    /// What it sleeps on: its own bell, and what the transports have.
    pub(super) fn descriptors(&self, inner: &Inner) -> io::Result<Vec<OwnedFd>> {
        inner.descriptors_with(&self.bell)
    }

    /// Sleeps on these so long at most, or until they ring.
    pub(super) fn doze(&self, descriptors: &[OwnedFd], time: Duration) {
        let all: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        sleep_on(&all, (time != Duration::MAX).then_some(time));
        self.bell.silence();
    }
}
