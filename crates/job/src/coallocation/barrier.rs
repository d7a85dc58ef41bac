// SPDX-License-Identifier: Apache-2.0
//! Who waits for whom, and who has waited long enough.

use super::{Action, Coallocation, Phase, Process, Site, State, Verdict, World, list_of_ranks};
use crate::terms::StartType;
use std::time::Duration;

impl Coallocation {
    /// Releases whoever has all that they wait for.
    pub(super) fn open_barriers(&mut self, now: Duration) {
        if !matches!(self.phase, Phase::Gathering | Phase::Running) {
            return;
        }
        let strict = self.sites.iter().any(Site::holds_barrier);
        let ready = self.sites.iter().all(|s| !s.holds_barrier() || s.is_complete());
        if self.phase == Phase::Gathering && strict && ready {
            self.phase = Phase::Running;
            self.running_since.get_or_insert(now);
            let joins = |s: &Site| s.terms.joins() && s.is_complete() && s.world.is_none();
            let world: Vec<usize> = self.sites_where(joins);
            if !world.is_empty() {
                self.main = Some(self.worlds.len());
                self.release(world);
                self.number();
            }
            for site in self.sites_where(|s| s.holds_barrier() && s.world.is_none()) {
                self.release(vec![site]);
            }
        }
        let open = self.phase == Phase::Running || !strict;
        let alone = |s: &Site| match s.terms.start {
            StartType::NoBarrier => true,
            StartType::Loose => open,
            StartType::Strict => false,
        };
        for site in self.sites_where(|s| s.is_complete() && s.world.is_none() && alone(s)) {
            self.release(vec![site]);
            if !strict {
                self.phase = Phase::Running;
            }
        }
    }

    fn sites_where(&self, wanted: impl Fn(&Site) -> bool) -> Vec<usize> {
        let all = self.sites.iter().enumerate();
        all.filter(|(_, s)| wanted(s)).map(|(number, _)| number).collect()
    }

    fn release(&mut self, sites: Vec<usize>) {
        let number = self.worlds.len();
        let mut unfinished = 0;
        for &site in &sites {
            let released = &mut self.sites[site];
            released.world = Some(number);
            released.advance(State::Active);
            unfinished += released.processes.len();
        }
        self.worlds.push(World {
            sites: sites.clone(),
            unfinished,
        });
        self.actions.push_back(Action::Commit(sites));
    }

    /// All that the barrier waits for have been started.
    pub(super) fn look_for_start(&mut self, now: Duration) {
        if self.sites.iter().all(|s| s.started || !s.holds_barrier()) {
            self.running_since.get_or_insert(now);
        }
    }

    /// Until when a subjob with a time-out has to be there.
    pub(super) fn due(&self, site: &Site) -> Option<Duration> {
        let awaited = site.is_live() && site.world.is_none() && site.asked.is_none() && !site.has_ended();
        let late = !site.started || (site.arrived < site.processes.len() && self.somebody_waits());
        let timeout = site.terms.timeout.filter(|_| awaited && late)?;
        Some(site.since + timeout)
    }

    /// Subjobs that are not there in time.
    pub(super) fn look_for_late(&mut self, now: Duration) {
        for number in self.sites_where(|s| self.due(s).is_some_and(|due| due <= now)) {
            let site = &self.sites[number];
            let Some(timeout) = site.terms.timeout else { continue };
            let stands = match (site.state, site.queued) {
                (State::Unsubmitted, _) => "it has not been reached",
                (State::StageIn, _) => "files are being staged",
                (_, true) => "it waits in its scheduler's queue",
                _ => "not all of its processes are in MPI_Init",
            };
            let problem = format!(
                "site '{}': it was not there after its start time-out of {} s: {stands}",
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

    /// Whether processes wait in MPI_Init.
    pub(super) fn somebody_waits(&self) -> bool {
        self.sites
            .iter()
            .any(|s| s.is_live() && s.world.is_none() && s.arrived > 0)
    }

    /// Some wait in MPI_Init for others that have ended without it: they would wait for ever.
    pub(super) fn look_for_hopeless_barrier(&mut self, now: Duration) {
        if !matches!(self.phase, Phase::Gathering | Phase::Running) {
            return;
        }
        let gathering = self.phase == Phase::Gathering;
        let together = self.sites_where(|s| gathering && s.holds_barrier() && s.world.is_none());
        let mut groups = vec![together];
        let alone = |s: &Site| s.is_live() && s.world.is_none() && s.terms.start != StartType::Strict;
        groups.extend(self.sites_where(alone).into_iter().map(|site| vec![site]));
        for group in groups {
            let any = |state: fn(&Site) -> usize| group.iter().any(|&site| state(&self.sites[site]) > 0);
            if !any(|s| s.arrived) || !any(|s| s.ended) {
                continue;
            }
            let ended = self.ranks_in(Process::Ended, &group);
            let waiting = self.ranks_in(Process::Arrived, &group);
            let problem =
                format!("{ended} ended without calling MPI_Init, in which {waiting} of the job would wait for ever");
            let hint = "run one program that calls MPI_Init on all processes, or none";
            let verdict = Verdict::launch(problem, hint);
            match group[..] {
                [site] => self.fail_site(site, verdict, now),
                _ => self.fail(verdict, now),
            }
            return;
        }
    }

    /// Whether a time limit applies: a site is not there yet, or some wait in MPI_Init for others.
    pub(super) fn waits_for_someone(&self) -> bool {
        let awaited = |s: &&Site| s.is_live() && !s.gone && s.world.is_none() && s.asked.is_none();
        let mut all = self.sites.iter().filter(awaited);
        let arriving = |s: &Site| matches!(s.state, State::Unsubmitted | State::StageIn);
        let asked = self.sites.iter().any(|s| s.asked.is_some());
        let queued = all.clone().any(|s| s.queued);
        !queued && !asked && (self.somebody_waits() || all.any(arriving))
    }

    /// Nothing has happened for too long.
    pub(super) fn give_up_waiting(&mut self, now: Duration) {
        let awaited = |s: &Site| s.is_live() && !s.gone && s.world.is_none();
        let reaching = |s: &Site| awaited(s) && matches!(s.state, State::Unsubmitted | State::StageIn);
        let mut late = self.sites_where(reaching);
        if late.is_empty() {
            late = self.sites_where(|s| awaited(s) && s.arrived < s.processes.len());
        }
        let mut missing: Vec<String> = Vec::new();
        for &number in &late {
            let site = &self.sites[number];
            match site.state {
                State::Unsubmitted => missing.push(format!("site '{}' (not reached)", site.name)),
                State::StageIn => missing.push(format!("site '{}' (staging)", site.name)),
                _ => {}
            }
        }
        if missing.is_empty() {
            missing.push(format!("{} (not in MPI_Init)", self.ranks_in(Process::Expected, &late)));
        }
        missing.truncate(8);
        let problem = format!(
            "nothing happened for {} s while waiting for {}",
            self.watch.patience.as_secs(),
            missing.join(", ")
        );
        self.last_progress = now;
        let hint = "ISTHMUS_START_TIMEOUT sets the number of seconds";
        for site in late {
            self.fail_site(site, Verdict::launch(problem.clone(), hint), now);
        }
    }

    fn ranks_in(&self, state: Process, sites: &[usize]) -> String {
        let sites = sites.iter().map(|&site| &self.sites[site]);
        let ranks: Vec<u32> = sites
            .flat_map(|s| s.indices(state).map(|index| s.first + index))
            .collect();
        list_of_ranks(&ranks)
    }
}
