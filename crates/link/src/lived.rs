// SPDX-License-Identifier: Apache-2.0
//! Time that a process has lived through: deadlines go by it.
//!
//! A process that had no processor for a while (a busy machine, one that was suspended, a debugger) could neither hear
//! nor answer. When it goes on, all deadlines of the time that it missed seem to be over at once, and it would blame
//! others for a silence that was its own. So this clock stands still while the process was late for something:
//!
//! ```text
//!   wall   ----|---------|=============== late ===============|--->
//!   lived  ----|---------|==|                                 |--->
//!             now       due  GRACE                           woke
//! ```
//! Whoever has deadlines wakes for the next one, and says when it does. Before it acts on them, it looks at what has
//! arrived meanwhile.

use std::time::Duration;

/// So much of a delay still counts: whoever is asked to hurry on a busy machine is somewhat late.
pub const GRACE: Duration = Duration::from_millis(250);

/// A clock that stands still while its process could not act. All times since any beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lived {
    missed: Duration,
    /// When it was at work last.
    rested: Duration,
}

impl Lived {
    /// What time it is, by the wall's clock and this one.
    #[inline]
    pub fn at(&self, wall: Duration) -> Duration {
        wall.saturating_sub(self.missed)
    }

    /// The process has done what there was to do.
    #[inline]
    pub fn rests(&mut self, wall: Duration) {
        self.rested = self.at(wall);
    }

    /// The process goes on at `wall`, and was to do so at `due` by this clock at the latest. How much it missed.
    /// Whatever was noted before it rested is not later than what this clock says from now on.
    pub fn woke(&mut self, due: Duration, wall: Duration) -> Duration {
        let late = self.at(wall).saturating_sub(due.max(self.rested));
        let missed = late.saturating_sub(GRACE);
        self.missed += missed;
        missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn who_wakes_in_time_lives_by_the_wall() {
        let mut lived = Lived::default();
        for second in 1..100 {
            let wall = ms(1000 * second) + GRACE;
            assert_eq!(lived.woke(ms(1000 * second), wall), Duration::ZERO);
            assert_eq!(lived.at(wall), wall);
        }
    }

    #[test]
    fn time_without_a_processor_does_not_pass() {
        let mut lived = Lived::default();
        assert_eq!(lived.woke(ms(1_000), ms(240_000)), ms(239_000) - GRACE);
        assert_eq!(lived.at(ms(240_000)), ms(1_000) + GRACE);
        assert_eq!(lived.at(ms(241_000)), ms(2_000) + GRACE);
        // What is due is said by this clock.
        assert_eq!(lived.woke(ms(2_000), ms(241_000)), Duration::ZERO);
        assert_eq!(lived.woke(ms(3_000), ms(244_000)), ms(2_000));
        assert_eq!(lived.at(ms(244_000)), ms(3_000) + GRACE);
    }

    #[test]
    fn it_never_goes_back_behind_what_was_noted() {
        let mut lived = Lived::default();
        // At work for 5 s without a break: a deadline in the midst of that was missed, but time was noted.
        lived.rests(ms(6_000));
        assert_eq!(lived.woke(ms(1_000), ms(10_000)), ms(4_000) - GRACE);
        assert_eq!(lived.at(ms(10_000)), ms(6_000) + GRACE);
    }

    #[test]
    fn a_time_that_is_not_due_yet_changes_nothing() {
        let mut lived = Lived::default();
        assert_eq!(lived.woke(ms(5_000), ms(1_000)), Duration::ZERO);
        assert_eq!(lived, Lived::default());
    }
}
