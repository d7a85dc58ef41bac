// SPDX-License-Identifier: Apache-2.0
//! Who waits for whom, and who has waited long enough.

use super::subjobs::Finding;
use super::{Action, Coallocation, Phase, Site, State, Verdict, later};
use crate::terms::StartType;
use std::time::Duration;

impl Coallocation {
    /// Releases whoever has all that they wait for.
    pub(super) fn open_barriers(&mut self, now: Duration) {
        if !self.phase.is_open() {
            return;
        }
        let strict = self.subjobs.iter().any(Site::holds_barrier);
        let ready = self.subjobs.iter().all(|s| !s.holds_barrier() || s.is_complete());
        if self.phase == Phase::Gathering && strict && ready {
            self.phase = Phase::Running;
            self.running_since.get_or_insert(now);
            let joins = |s: &Site| s.terms.joins() && s.is_complete() && s.world.is_none();
            let world = self.subjobs.those(joins);
            if !world.is_empty() {
                self.subjobs.begin_main(&world);
                self.actions.push_back(Action::Commit(world));
            }
            for site in self.subjobs.those(|s| s.holds_barrier() && s.world.is_none()) {
                self.release(site);
            }
        }
        later::open(self);
        let open = self.phase == Phase::Running || !strict;
        let alone = |s: &Site| match s.terms.start {
            StartType::NoBarrier => true,
            StartType::Loose => open,
            StartType::Strict => false,
        };
        for site in self
            .subjobs
            .those(|s| s.is_complete() && s.added.is_none() && s.world.is_none() && alone(s))
        {
            self.release(site);
            if !strict {
                self.phase = Phase::Running;
            }
        }
    }

    /// Lets a subjob begin as a world of its own.
    fn release(&mut self, site: usize) {
        self.subjobs.begin(&[site]);
        self.actions.push_back(Action::Commit(vec![site]));
    }

    /// All that the barrier waits for have been started.
    pub(super) fn look_for_start(&mut self, now: Duration) {
        if self.subjobs.iter().all(|s| s.has_begun() || !s.holds_barrier()) {
            self.running_since.get_or_insert(now);
        }
    }

    /// Subjobs that are not there in time.
    pub(super) fn look_for_late(&mut self, now: Duration) {
        for number in self.subjobs.overdue(now) {
            let site = self.subjobs.site(number);
            let Some(timeout) = site.terms.timeout else { continue };
            let stands = match (site.state, site.is_queued()) {
                (State::Connecting, _) => "it has not been reached",
                (State::Staging, _) => "files are being staged",
                (_, true) => "it waits in its scheduler's queue",
                _ => "not all of its processes are in MPI_Init",
            };
            let problem = format!(
                "site '{}': it was not ready after its start time-out of {} s: {stands}",
                site.name,
                timeout.as_secs()
            );
            self.fail_site(
                number,
                Verdict::late(problem, "raise start_timeout, or make the subjob optional"),
                now,
            );
        }
    }

    /// Some wait in MPI_Init for others that have ended without it: they would wait for ever.
    pub(super) fn look_for_hopeless_barrier(&mut self, now: Duration) {
        if !self.phase.is_open() {
            return;
        }
        let Some(Finding { sites, problem }) = self.subjobs.hopeless(self.phase == Phase::Gathering) else {
            return;
        };
        let hint = "run one program that calls MPI_Init on all processes, or none";
        let verdict = Verdict::launch(problem, hint);
        match sites[..] {
            [site] => self.fail_site(site, verdict, now),
            _ => self.fail(verdict, now),
        }
    }

    /// Nothing has happened for too long.
    pub(super) fn give_up_waiting(&mut self, now: Duration) {
        let Finding { sites, problem } = self.subjobs.missing();
        let problem = format!(
            "nothing happened for {} s while waiting for {problem}",
            self.watch.patience.as_secs()
        );
        self.last_progress = now;
        let hint = "ISTHMUS_START_TIMEOUT sets the number of seconds";
        for site in sites {
            self.fail_site(site, Verdict::launch(problem.clone(), hint), now);
        }
    }
}
