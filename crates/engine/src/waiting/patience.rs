// SPDX-License-Identifier: Apache-2.0
//! How long a thread waits in vain before it sleeps.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::{Knob, Tuning};

/// Fewest times that a thread gives its core away before it sleeps.
const LEAST: u64 = 2;
/// Polls from one yield to the next, with spare cores: what arrives while a thread is yielding waits for the end of the call, which takes as long as
/// many polls. (Half a ping-pong of 64 KiB in shared memory took 0.5 us longer with a yield after every poll.)
const BETWEEN: u64 = 32;
/// Polls without pause from one look at the clock to the next.
const LOOK: u64 = 32;
/// Longest time to poll without pause. Polls of sockets take as long as a message: whoever shares the core with the process that it waits for would get nothing for 0.2 ms.
const ENOUGH: Duration = Duration::from_micros(25);
/// A sleep this short would have been saved by waiting a little longer: a round through many processes of a core.
const SHORT: Duration = Duration::from_micros(300);

/// What the waits of a process have been like. Without spare cores, a message from a process that shares the core is there after some rounds of
/// giving it away; one from another site, or the next piece of a long one, is not, and each round takes time from those who have work.
/// So after every sleep that was long a thread yields half as often before the next one, and after one that was short twice as often.
///
/// With spare cores what came soon after the sleep had begun is waited for twice as long the next time: being woken costs more than the rest of
/// the wait would have, and longer still on a virtual machine. (Messages of 4 MiB to a process of the machine take 0.35 ms; with sleeps they took a tenth more.)
#[derive(Debug, Default)]
pub(crate) struct Experience {
    /// Halvings of yields.
    long: AtomicU64,
    /// Doublings of the time that is spun.
    short: AtomicU64,
}

impl Experience {
    /// Most halvings.
    const MOST: u64 = 4;
    /// Most doublings: to less than a millisecond, a small part of anything that crosses a wide area.
    const MOST_DOUBLINGS: u64 = 2;

    /// How often a thread should yield now before it sleeps.
    #[inline]
    pub(crate) fn yields(&self, tuning: &Tuning) -> u64 {
        let most = tuning.get(Knob::Yields);
        (most >> self.long.load(Ordering::Relaxed)).max(LEAST.min(most))
    }

    /// How long a thread should poll now before it sleeps, if there are spare cores.
    #[inline]
    fn spin(&self, tuning: &Tuning) -> Duration {
        Duration::from_micros(tuning.get(Knob::Spin)).saturating_mul(1 << self.short.load(Ordering::Relaxed))
    }

    /// A thread has slept for so long. What another one notes at the same time may be lost: it is about as true.
    pub(crate) fn slept(&self, time: Duration) {
        let long = self.long.load(Ordering::Relaxed);
        let long = match time <= SHORT {
            true => long.saturating_sub(1),
            false => (long + 1).min(Self::MOST),
        };
        self.long.store(long, Ordering::Relaxed);
        let short = match time <= SHORT {
            true => (self.short.load(Ordering::Relaxed) + 1).min(Self::MOST_DOUBLINGS),
            false => 0,
        };
        self.short.store(short, Ordering::Relaxed);
    }
}

/// How long a thread has waited in vain.
#[derive(Default)]
pub(crate) struct Patience {
    rounds: u64,
    since: Option<Instant>,
    /// It has polled without pause for [`ENOUGH`].
    is_tired: bool,
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
            if self.rounds % LOOK == 0 {
                self.is_tired |= self.since.get_or_insert_with(Instant::now).elapsed() > ENOUGH;
            }
            return false;
        }
        let now = Instant::now();
        now.duration_since(*self.since.get_or_insert(now)) > experience.spin(tuning)
    }

    /// Whether it polls again without pause, where cores are spare.
    #[inline]
    pub(crate) fn polls(&self, tuning: &Tuning) -> bool {
        (self.rounds <= tuning.get(Knob::Polls) && !self.is_tired) || self.rounds % BETWEEN != 0
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
    fn what_comes_soon_is_polled_for_longer_until_something_takes_long() {
        let (tuning, experience) = (Tuning::default(), Experience::default());
        let mut seen = vec![experience.spin(&tuning).as_micros()];
        for sleep in [SHORT, SHORT, SHORT, LONG, LONG, SHORT] {
            experience.slept(sleep);
            seen.push(experience.spin(&tuning).as_micros());
        }
        assert_eq!(seen, [200, 400, 800, 800, 200, 200, 400]);
        tuning.set(Knob::Spin, u64::MAX);
        assert!(experience.spin(&tuning) > LONG);
    }

    #[test]
    fn polls_that_take_long_are_soon_parted_by_yields() {
        let (tuning, experience) = (Tuning::default(), Experience::default());
        let rounds = |pause: Duration| {
            let mut patience = Patience::default();
            let mut in_a_row = 0;
            while !patience.over(true, &tuning, &experience) && patience.polls(&tuning) {
                in_a_row += 1;
                std::thread::sleep(pause);
            }
            in_a_row
        };
        assert!(rounds(Duration::from_micros(1)) <= 2 * LOOK + BETWEEN);
    }

    #[test]
    fn a_smaller_number_than_the_fewest_is_kept() {
        let (tuning, experience) = (Tuning::default(), Experience::default());
        tuning.set(Knob::Yields, 0);
        experience.slept(LONG);
        assert_eq!(rounds(&tuning, &experience), 0);
    }
}
