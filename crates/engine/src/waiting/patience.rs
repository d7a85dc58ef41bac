// SPDX-License-Identifier: Apache-2.0
//! The clocks and the memory of what the waits of a process have been like; the thinking is in
//! [`isthmus_protocol::patience`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use isthmus_protocol::patience::{Limits, Patience, Processor, Step, Times};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::{Knob, Tuning};

/// What threads have found out about the processor of their process. What one notes while another one does may be
/// lost: it is about as true.
#[derive(Debug)]
pub(crate) struct Experience(AtomicU64);

impl Experience {
    /// `neighbours`: as for [`Processor::new`].
    pub(crate) fn new(neighbours: u8) -> Self {
        let processor = Processor::new(neighbours);
        Self(AtomicU64::new(processor.to_bits()))
    }

    #[inline]
    pub(crate) fn processor(&self) -> Processor {
        Processor::from_bits(self.0.load(Ordering::Relaxed))
    }

    /// Begins to wait.
    #[inline]
    pub(crate) fn patience(&self) -> Patience {
        Patience::new(self.processor())
    }

    /// After a look in vain.
    #[inline]
    pub(crate) fn step(&self, patience: &mut Patience, tuning: &Tuning) -> Step {
        match patience.decided() {
            Some(step) => step,
            None => self.decide(patience, tuning),
        }
    }

    fn decide(&self, patience: &mut Patience, tuning: &Tuning) -> Step {
        let limits = Limits {
            polls: tuning.get(Knob::Polls),
            spin: tuning.get(Knob::Spin).saturating_mul(1000),
            yields: tuning.get(Knob::Yields),
        };
        let now = nanoseconds(clock_gettime(ClockId::Monotonic));
        self.note(|processor| patience.decide(processor, &limits, now))
    }

    /// Lets others run; true if that was timed, so that decisions are due.
    pub(crate) fn give_way(&self) -> bool {
        if !self.note(Processor::is_due) {
            std::thread::yield_now();
            return false;
        }
        let before = times();
        std::thread::yield_now();
        let after = times();
        self.note(|processor| processor.yielded(before, after));
        true
    }

    /// A thread has slept for so long.
    pub(crate) fn slept(&self, time: Duration) {
        let time = time.as_nanos().try_into().unwrap_or(u64::MAX);
        self.note(|processor| processor.slept(time));
    }

    fn note<T>(&self, change: impl FnOnce(&mut Processor) -> T) -> T {
        let mut processor = self.processor();
        let result = change(&mut processor);
        self.0.store(processor.to_bits(), Ordering::Relaxed);
        result
    }
}

fn times() -> Times {
    // Miri has no clock of processor time.
    let own = if cfg!(miri) {
        ClockId::Monotonic
    } else {
        ClockId::ThreadCPUTime
    };
    Times {
        wall: nanoseconds(clock_gettime(ClockId::Monotonic)),
        own: nanoseconds(clock_gettime(own)),
    }
}

fn nanoseconds(time: Timespec) -> u64 {
    // Neither clock is ever before its beginning.
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}
