// SPDX-License-Identifier: Apache-2.0
//! How long a thread waits in vain before it sleeps.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::{Knob, Tuning};

/// Fewest times that a thread gives its core away before it sleeps.
const LEAST: u64 = 2;
/// A sleep this short would have been saved by waiting a little longer: a round through many processes of a core.
const SHORT: Duration = Duration::from_micros(300);

/// What the waits of a process have been like. Without spare cores, a message from a process that shares the core is there after some rounds of
/// giving it away; one from another site, or the next piece of a long one, is not, and each round takes time from those who have work.
/// So after every sleep that was long a thread yields half as often before the next one, and after one that was short twice as often.
#[derive(Debug, Default)]
pub(crate) struct Experience {
    /// Halvings.
    long: AtomicU64,
}

impl Experience {
    /// Most halvings.
    const MOST: u64 = 4;

    /// How often a thread should yield now before it sleeps.
    #[inline]
    pub(crate) fn yields(&self, tuning: &Tuning) -> u64 {
        let most = tuning.get(Knob::Yields);
        (most >> self.long.load(Ordering::Relaxed)).max(LEAST.min(most))
    }

    /// A thread has slept for so long. What another one notes at the same time may be lost: it is about as true.
    pub(crate) fn slept(&self, time: Duration) {
        let long = self.long.load(Ordering::Relaxed);
        let long = match time <= SHORT {
            true => long.saturating_sub(1),
            false => (long + 1).min(Self::MOST),
        };
        self.long.store(long, Ordering::Relaxed);
    }
}

/// How long a thread has waited in vain.
#[derive(Default)]
pub(crate) struct Patience {
    rounds: u64,
    since: Option<Instant>,
}

impl Patience {
    /// Counts a round; true when it is time to sleep.
    #[inline]
    pub(crate) fn over(&mut self, spare_cores: bool, tuning: &Tuning, experience: &Experience) -> bool {
        self.rounds += 1;
        if !spare_cores {
            return self.rounds > experience.yields(tuning);
        }
        if self.polls(tuning) {
            return false;
        }
        let now = Instant::now();
        let spin = Duration::from_micros(tuning.get(Knob::Spin));
        now.duration_since(*self.since.get_or_insert(now)) > spin
    }

    /// Whether it still polls without pause, where cores are spare.
    #[inline]
    pub(crate) fn polls(&self, tuning: &Tuning) -> bool {
        self.rounds <= tuning.get(Knob::Polls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_millis(2);

    /// Rounds until it is time to sleep.
    fn rounds(tuning: &Tuning, experience: &Experience) -> u64 {
        let mut patience = Patience::default();
        (0..).take_while(|_| !patience.over(false, tuning, experience)).count() as u64
    }

    #[test]
    fn long_sleeps_make_it_sleep_sooner_and_short_ones_later() {
        let (tuning, experience) = (Tuning::default(), Experience::default());
        let mut seen = vec![rounds(&tuning, &experience)];
        for sleep in [LONG, LONG, LONG, LONG, LONG, LONG, LONG, SHORT, SHORT, LONG, SHORT] {
            experience.slept(sleep);
            seen.push(rounds(&tuning, &experience));
        }
        assert_eq!(seen, [30, 15, 7, 3, 2, 2, 2, 2, 3, 7, 3, 7]);
        for _ in 0..5 {
            experience.slept(SHORT);
        }
        assert_eq!(rounds(&tuning, &experience), 30, "as at the beginning");
    }

    #[test]
    fn a_smaller_number_than_the_fewest_is_kept() {
        let (tuning, experience) = (Tuning::default(), Experience::default());
        tuning.set(Knob::Yields, 0);
        experience.slept(LONG);
        assert_eq!(rounds(&tuning, &experience), 0);
    }
}
