// SPDX-License-Identifier: Apache-2.0
//! The time of a job. Certificates are checked against it, never against the wall clock of a machine, which somebody
//! may set back or on while the job runs.
//!
//! It is the coordinator's wall clock when the job began, and goes on by itself: each process learns it from its own
//! certificate, which says when it was signed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

/// A clock that nobody can set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// What it showed then, since 1970.
    shown: Duration,
    /// Then: since the machine was started.
    then: Duration,
}

impl Clock {
    /// Shows the time of this machine now.
    pub(crate) fn of_machine() -> Self {
        // A clock before 1970 is wrong; what matters is that it goes on.
        Self::showing(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// Shows this now, since 1970.
    pub(crate) fn showing(shown: Duration) -> Self {
        Self { shown, then: running() }
    }

    /// Since 1970.
    pub(crate) fn now(&self) -> Duration {
        self.shown + running().saturating_sub(self.then)
    }

    pub(crate) fn unix(&self) -> UnixTime {
        UnixTime::since_unix_epoch(self.now())
    }
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(self.unix())
    }
}

/// Since the machine was started, times when it slept included: certificates that are signed meanwhile elsewhere are
/// not of the future.
fn running() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_from_what_it_is_set_to() {
        let years = Duration::from_secs(100 * 365 * 86_400);
        let clock = Clock::showing(years);
        let first = clock.now();
        assert!(first >= years && clock.now() >= first);
        assert!(
            Clock::of_machine().now() < years,
            "what other clocks show is nothing to it"
        );
    }
}
