// SPDX-License-Identifier: Apache-2.0
//! The end of a job.

use super::words::interruption;
use super::{Action, Coallocation, GRACE, LEAVE, LEAVE_AT_ONCE, Phase, STATUS_LIMIT, Site, Verdict};
use std::time::Duration;

const SIGPIPE: u32 = 13;
const SIGTERM: u32 = 15;

impl Coallocation {
    /// The user asked for the end: the first time orderly, then at once. `by`: which of several who have started it;
    /// empty: there is one.
    pub fn handle_interrupt(&mut self, by: &str, signal: u32, now: Duration) {
        self.interrupts += 1;
        let status = 128 + signal as i32;
        if self.interrupts > 1 {
            self.verdict = Some(Verdict {
                status,
                ..self.verdict()
            });
            return self.leave(now + LEAVE_AT_ONCE);
        }
        self.verdict = Some(Verdict {
            status,
            problem: Some(interruption(by, signal)),
            hint: String::new(),
            late: false,
        });
        // What the user sends is what the processes get; a pipe that nobody reads is not theirs.
        self.end_orderly(if signal == SIGPIPE { SIGTERM } else { signal }, now);
    }

    /// Time has passed.
    pub fn handle_time(&mut self, now: Duration) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        match self.phase {
            Phase::Gathering | Phase::Running => self.look_at_clock(now),
            Phase::Ending {
                asked: Some(signal), ..
            } if signal != SIGTERM => self.end_orderly(SIGTERM, now),
            Phase::Ending { .. } => self.leave(now + LEAVE),
            Phase::Leaving { .. } => self.phase = Phase::Over,
            Phase::Over => {}
        }
    }

    fn look_at_clock(&mut self, now: Duration) {
        if let (Some(since), Some(limit)) = (self.running_since, self.watch.limit) {
            if now >= since + limit {
                return self.reach_limit(limit, now);
            }
        }
        self.look_for_late(now);
        let waits = self.phase.is_open() && self.subjobs.waits_for_someone();
        if waits && now >= self.last_progress + self.watch.patience {
            self.give_up_waiting(now);
        }
    }

    fn reach_limit(&mut self, limit: Duration, now: Duration) {
        self.verdict = Some(Verdict {
            status: STATUS_LIMIT,
            problem: Some(format!("the job reached its time limit of {} s", limit.as_secs())),
            hint: "raise --time, or -timeout of mpiexec".to_owned(),
            late: false,
        });
        self.end_orderly(SIGTERM, now);
    }

    /// Processes may still do something about it. Those that do not mind another signal get SIGTERM after that.
    fn end_orderly(&mut self, signal: u32, now: Duration) {
        if !matches!(self.phase, Phase::Leaving { .. } | Phase::Over) {
            self.phase = Phase::Ending {
                until: now + GRACE,
                asked: Some(signal),
            };
            self.actions.push_back(Action::Signal(signal));
        }
    }

    /// Ends the job with this verdict unless it already has one.
    pub(super) fn fail(&mut self, verdict: Verdict, now: Duration) {
        if self.verdict.is_some() || matches!(self.phase, Phase::Leaving { .. } | Phase::Over) {
            return;
        }
        let reason = verdict.problem.clone().unwrap_or_default();
        let code = verdict.status;
        self.verdict = Some(verdict);
        // After MPI_Finalize the others need nothing from the one that failed: they may end by themselves first.
        if !self.subjobs.have_finished() {
            self.actions.push_back(Action::Abort { code, reason });
        }
        self.phase = Phase::Ending {
            until: now + GRACE,
            asked: None,
        };
        if !self.subjobs.iter().any(Site::has_processes) {
            self.leave(now + LEAVE);
        }
    }

    pub(super) fn leave(&mut self, until: Duration) {
        if self.phase == Phase::Over {
            return;
        }
        self.phase = Phase::Leaving { until };
        self.actions.push_back(Action::Leave);
        if self.subjobs.iter().all(|s| s.gone) {
            self.phase = Phase::Over;
        }
    }
}
