// SPDX-License-Identifier: Apache-2.0
//! Failures of a submission: before one is told, the scheduler is asked whether it is the cause.

use super::stage::{Query, Stage};
use super::{Batch, watch};
use crate::program::Refusal;
use isthmus_sched::{Cause, State};
use isthmus_wire::grid::{Exit, FromAgent};
use std::time::Duration;

impl Batch {
    /// The scheduler has ended the job and that was not expected.
    pub(super) fn end_of_job(&mut self, why: &Cause) {
        if let Stage::Over = self.stage {
            return;
        }
        let distributed = matches!(self.stage, Stage::Running { .. });
        let mut reason = format!("{} ended", self.scheduler_job());
        let limit = Duration::from_secs(self.start.allocation.as_ref().map_or(0, |a| u64::from(a.limit)));
        let reached = !limit.is_zero()
            && self
                .stage
                .since()
                .is_some_and(|since| since.elapsed() + watch::SLOWEST > limit);
        if *why != Cause::Unsaid {
            reason.push_str(&format!(": {why}"));
        }
        let reached = reached && matches!(why, Cause::Unsaid | Cause::Killed);
        if reached {
            reason.push_str(&format!(
                "; it seems to have reached its time limit of {} s",
                limit.as_secs()
            ));
        } else if *why == Cause::Unsaid && !distributed {
            reason.push_str(" before its nodes were ready");
        }
        if !distributed {
            reason.push_str(&self.last_words());
        }
        let hint = match why {
            why if reached || *why == Cause::TimeLimit => "raise the limit of the subjob".to_owned(),
            Cause::Unsaid => self.perhaps_deleted(),
            _ => String::new(),
        };
        self.refuse(Refusal::new(reason, hint));
    }

    /// Why a job may be gone of which its scheduler says no more.
    fn perhaps_deleted(&self) -> String {
        let deletes = self.id().map(|id| self.adaptor.cancel(id).program);
        let by = deletes.map_or_else(String::new, |program| format!(" ({program})"));
        format!(
            "{} does not say why: somebody may have deleted it{by}",
            self.adaptor.scheduler()
        )
    }

    /// What the script left in the directory that it may share with us.
    pub(super) fn last_words(&self) -> String {
        let text = std::fs::read(self.spool.path().join("output")).unwrap_or_default();
        let tail = String::from_utf8_lossy(&text[text.len().saturating_sub(600)..]).into_owned();
        let tail: Vec<&str> = tail
            .lines()
            .rev()
            .take(3)
            .map(str::trim)
            .filter(|l| !l.is_empty())
            .collect();
        match tail.is_empty() {
            true => String::new(),
            false => format!("; it said: {}", tail.into_iter().rev().collect::<Vec<_>>().join("; ")),
        }
    }

    /// A failure: before it is told, the scheduler is asked whether it is the cause.
    pub(super) fn hold(&mut self, failure: FromAgent) {
        self.inquiry.held.push(failure);
        self.ask(false);
    }

    /// A node says nothing: one that the scheduler has stopped cannot.
    pub(super) fn miss(&mut self, node: u32, lost: bool) {
        if !self.suspended {
            self.inquiry.silent = lost.then_some(node);
            self.ask(true);
        }
    }

    /// The connection to the agent on a node is gone.
    pub(super) fn lose(&mut self, node: u32) {
        let Some(part) = self.parts.iter_mut().find(|p| p.node == node) else {
            return;
        };
        let expected = std::mem::replace(&mut part.gone, true) || part.is_done();
        if !expected {
            self.inquiry.lost.get_or_insert_with(|| part.hello.host.clone());
            self.ask(true);
        }
    }

    /// The scheduler is asked what has become of the job, if it is not being asked. `lost`: a node is.
    pub(super) fn ask(&mut self, lost: bool) {
        let (Some(id), None) = (self.id().cloned(), self.inquiry.asked) else {
            return;
        };
        let killed = |m: &FromAgent| matches!(m, FromAgent::Exited(list) if list.iter().any(|(_, e)| by_scheduler(*e)));
        let suspected = lost || self.inquiry.held.iter().any(killed);
        self.inquiry.asked = Some(Query { suspected });
        tokio::spawn(watch::judge(self.adaptor, id, suspected, self.events.clone()));
    }

    /// It has answered; `None`: nothing that can be understood. What was held is told, with or without it as the cause.
    pub(super) fn judge(&mut self, state: Option<State>) {
        let suspected = self.inquiry.asked.take().is_some_and(|asked| asked.suspected);
        if let Some(state) = &state {
            self.tell_suspended(*state == State::Suspended);
        }
        if let (Some(node), false) = (self.inquiry.silent.take(), self.suspended) {
            if let Some(part) = self.parts.iter_mut().find(|p| p.node == node && !p.gone) {
                part.gone = true;
                self.inquiry.lost.get_or_insert_with(|| part.hello.host.clone());
            }
        }
        match state {
            Some(State::Ending(why) | State::Ended(why)) if why != Cause::Unsaid || suspected => {
                self.end_of_job(&why);
            }
            Some(State::Unknown) => self.end_of_job(&Cause::Unsaid),
            _ => {
                if let Some(host) = self.inquiry.lost.take() {
                    let reason = format!("the connection to node {host} was lost");
                    self.refuse(Refusal::new(reason, "the node, its network or its agent went down"));
                }
            }
        }
        let mut held = std::mem::take(&mut self.inquiry.held);
        // Who was killed first: others end because of it, on another node perhaps sooner than that is told.
        held.sort_by_key(|message| !was_killed(message));
        for message in held {
            self.outbox.send(&message);
        }
    }
}

fn was_killed(message: &FromAgent) -> bool {
    matches!(message, FromAgent::Exited(list) if list.iter().any(|(_, exit)| matches!(exit, Exit::Signal(_))))
}

/// Whether it is a signal with which schedulers end jobs, or tell them that they will: SIGKILL, SIGUSR1, SIGUSR2,
/// SIGTERM and SIGXCPU, by their numbers on Linux.
fn by_scheduler(exit: Exit) -> bool {
    matches!(exit, Exit::Signal(9 | 10 | 12 | 15 | 24))
}
