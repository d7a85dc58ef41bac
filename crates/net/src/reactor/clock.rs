// SPDX-License-Identifier: Apache-2.0
//! What time it is for the reactor, and when there is something to do next.

use std::time::{Duration, Instant};

use isthmus_link::lived::Lived;

/// Missing so much, the process had been stopped.
const STOPPED: Duration = Duration::from_secs(2);

/// A clock with one alarm. Deadlines go by the time that the process has lived through.
pub(super) struct Clock {
    began: Instant,
    lived: Lived,
    /// When the present turn began, by the wall.
    turned: Duration,
    /// When to look at deadlines next.
    alarm: Option<Duration>,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            lived: Lived::default(),
            turned: Duration::ZERO,
            alarm: None,
        }
    }

    /// Time since the beginning that the process has lived through.
    pub(super) fn now(&self) -> Duration {
        self.lived.at(self.wall())
    }

    /// Time since the beginning.
    pub(super) fn wall(&self) -> Duration {
        self.began.elapsed()
    }

    /// As [`Clock::now`], at the begin of this turn.
    pub(super) fn turned(&self) -> Duration {
        self.lived.at(self.turned)
    }

    /// A turn begins. True: the process should have been here much earlier, and nobody can be blamed for silence.
    pub(super) fn turns(&mut self) -> bool {
        self.turned = self.wall();
        let Some(due) = self.alarm else { return false };
        self.lived.woke(due, self.turned) > STOPPED
    }

    /// It ends; `in_vain`: nothing was noted in it that is later than its beginning.
    pub(super) fn rests(&mut self, in_vain: bool) {
        let until = if in_vain { self.turned } else { self.wall() };
        self.lived.rests(until);
    }

    /// Makes sure that deadlines are looked at at this time.
    pub(super) fn alarm(&mut self, at: Duration) {
        self.alarm = Some(self.alarm.map_or(at, |alarm| alarm.min(at)));
    }

    /// Whether it is that time; then all alarms are forgotten.
    pub(super) fn rings(&mut self, now: Duration) -> bool {
        self.alarm.take_if(|due| *due <= now).is_some()
    }

    /// How long it is to the next alarm.
    pub(super) fn left(&self) -> Option<Duration> {
        self.alarm.map(|at| at.saturating_sub(self.now()))
    }
}
