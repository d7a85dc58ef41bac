// SPDX-License-Identifier: Apache-2.0
//! How the threads of a process wait: with which patience, and how long they have slept.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use isthmus_protocol::patience::{Patience, Step};

use crate::Tuning;
use crate::waiting::patience::Experience;

/// How a process waits.
pub struct Pace {
    tuning: Arc<Tuning>,
    experience: Experience,
    /// Nanoseconds that threads have slept, and how often.
    slept: AtomicU64,
    sleeps: AtomicU64,
}

impl Pace {
    /// `neighbours`: other processes of the job that may be on a processor of this machine; 0: there can be one for
    /// each.
    pub(super) fn new(tuning: Arc<Tuning>, neighbours: u8) -> Self {
        Self {
            tuning,
            experience: Experience::new(neighbours),
            slept: AtomicU64::new(0),
            sleeps: AtomicU64::new(0),
        }
    }

    /// What may be changed while the process runs.
    pub fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// How long threads have slept for want of anything to do, all together, and how often.
    pub fn slept(&self) -> (Duration, u64) {
        let time = Duration::from_nanos(self.slept.load(Ordering::Relaxed));
        (time, self.sleeps.load(Ordering::Relaxed))
    }

    /// A thread has slept for so long.
    pub(super) fn has_slept(&self, time: Duration) {
        self.experience.slept(time);
        let nanoseconds = time.as_nanos().try_into().unwrap_or(u64::MAX);
        self.slept.fetch_add(nanoseconds, Ordering::Relaxed);
        self.sleeps.fetch_add(1, Ordering::Relaxed);
    }

    /// Begins to wait.
    #[inline]
    pub(super) fn patience(&self) -> Patience {
        self.experience.patience()
    }

    /// After a look in vain.
    #[inline]
    pub(super) fn step(&self, patience: &mut Patience) -> Step {
        self.experience.step(patience, &self.tuning)
    }

    /// Whether others want this processor, too.
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        self.experience.processor().is_shared()
    }

    /// Lets others run; true if decisions are due.
    #[inline]
    pub(super) fn give_way(&self) -> bool {
        self.experience.give_way()
    }

    /// The look in vain from which on a wait counts as one: sooner where yields part the looks.
    #[inline]
    pub(super) fn counts_from(&self, prompt: u64) -> u64 {
        if self.is_shared() { 1 } else { prompt }
    }

    /// After a look in vain of a thread that keeps the engine; false: it must not do so any longer.
    #[inline]
    pub(super) fn pause_with(&self, patience: &mut Patience, gives_way: bool) -> bool {
        match self.step(patience) {
            Step::Poll => true,
            Step::Yield if gives_way => {
                if self.give_way() {
                    patience.reconsider();
                }
                true
            }
            Step::Yield | Step::Sleep => false,
        }
    }
}
