// SPDX-License-Identifier: Apache-2.0
//! A launcher that is stopped (^Z) stops the processes first, so that nobody takes it for lost.

use rustix::process::{Signal, getpid, kill_process};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// How long agents may take to say that they know; who is out of reach does not keep the user waiting.
const KNOWING: Duration = Duration::from_secs(1);

/// Whether the launcher is about to stop.
#[derive(Debug, Default)]
pub(super) struct Stop(Option<Stopping>);

#[derive(Debug)]
struct Stopping {
    /// Number of the ping behind the news.
    ping: u64,
    /// Connections that have not answered it.
    waiting: BTreeSet<usize>,
    until: Instant,
}

impl Stop {
    pub(super) fn is_near(&self) -> bool {
        self.0.is_some()
    }

    /// The agents on these connections were told, before the ping with this number.
    pub(super) fn begin(&mut self, ping: u64, waiting: BTreeSet<usize>) {
        self.0 = Some(Stopping {
            ping,
            waiting,
            until: Instant::now() + KNOWING,
        });
    }

    /// An agent has answered a ping.
    pub(super) fn take_pong(&mut self, connection: usize, number: u64) {
        if let Some(stopping) = self.0.as_mut().filter(|s| s.ping <= number) {
            stopping.waiting.remove(&connection);
        }
    }

    /// Whether the agents know, or have had the time to.
    fn is_known(&self) -> bool {
        let told = |s: &Stopping| s.waiting.is_empty() || Instant::now() >= s.until;
        self.0.as_ref().is_some_and(told)
    }

    /// Stops this process once the agents know. Whoever continues it sends SIGCONT, which goes to the processes too.
    pub(super) fn stop_when_told(&mut self) {
        if self.is_known() {
            // It returns when the process goes on.
            let _ = kill_process(getpid(), Signal::STOP);
            self.0 = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_known_when_all_have_answered_what_came_behind_it() {
        let mut stop = Stop::default();
        assert!(!stop.is_near() && !stop.is_known());
        stop.begin(7, [1, 4].into());
        stop.take_pong(1, 7);
        stop.take_pong(4, 6);
        let waiting = |stop: &Stop| stop.0.as_ref().map(|s| s.waiting.len());
        assert_eq!(waiting(&stop), Some(1), "an earlier ping says nothing");
        stop.take_pong(4, 8);
        assert!(stop.is_near() && stop.is_known());
    }
}
