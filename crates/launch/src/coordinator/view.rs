// SPDX-License-Identifier: Apache-2.0
//! Time passes; where everything stands, for people and as events.

use super::{Coordinator, TICK};
use crate::connections::{Limits, Silence, ticks};
use crate::console::Print;
use crate::events::JobEvent;
use crate::progress::Progress;
use isthmus_job::coallocation::State;
use isthmus_wire::time::SiteTime;
use std::time::Duration;

/// A site that has been silent for so long is told of.
const TOLD_AFTER: Duration = Duration::from_secs(9);
/// Ticks between two signs of life for other commands.
const BEAT: u64 = 4;
/// A site that is being made ready and from which nothing was heard for so long is lost, unless sites may be away for
/// longer.
const STAGING_SILENCE: Duration = Duration::from_secs(60);

impl Coordinator {
    pub(super) fn tick(&mut self) {
        if !self.stop.is_near() {
            self.ping();
            self.tell_hang();
            self.end_stranded();
        }
        self.beat();
        let away = self.silence;
        let limits = Limits {
            told: ticks(TOLD_AFTER, TICK),
            serving: ticks(away, TICK),
            staging: ticks(away.max(STAGING_SILENCE), TICK),
        };
        for (connection, silence) in self.connections.tick(limits) {
            let Some(site) = self.connections.subjob(connection) else {
                continue;
            };
            match silence {
                Silence::Long => self.notice_of(
                    site,
                    &format!(
                        "nothing has been heard from its agent for {} s; it is waited for until it is silent for {} s (ISTHMUS_AWAY)",
                        TOLD_AFTER.as_secs(),
                        away.as_secs()
                    ),
                ),
                Silence::Busy => self.notice_of(
                    site,
                    &format!(
                        "nothing has been heard from the agent on this machine for {} s: the machine is busy, or the agent was stopped; it is waited for",
                        TOLD_AFTER.as_secs()
                    ),
                ),
                Silence::Lost => {
                    let problem = format!("nothing was heard from its agent for {} s", away.as_secs());
                    let hint = "check the network to the site, or let sites be away for longer: ISTHMUS_AWAY=SECONDS";
                    self.lose(site, &problem, hint, true);
                }
            }
        }
        let (links, times) = (self.tally.links(), self.site_times());
        self.printer.print(Print::Passed { links, times });
        self.show_progress();
    }

    /// Tells other commands that this process lives.
    fn beat(&self) {
        if let Some(session) = self
            .session
            .as_ref()
            .filter(|_| self.hold.is_some() && self.ticks % BEAT == 0)
        {
            session.beat();
        }
    }

    /// Where the time of the processes has gone, as they have told while they run.
    pub(super) fn site_times(&self) -> Vec<SiteTime> {
        let times = self.tally.times().into_iter().filter_map(|(site, time)| {
            let site = self.subjobs.get(site)?.site.clone();
            Some(SiteTime { site, time })
        });
        times.collect()
    }

    /// The connection to a site has ended; `unreached`: because it was not reached or was lost, which may be why the
    /// job ends.
    pub(super) fn lose(&mut self, site: usize, problem: &str, hint: &str, unreached: bool) {
        let well = self.machine.verdict().problem.is_none();
        self.machine.handle_closed(site, problem, hint, self.began.elapsed());
        self.unreached |= unreached && well && self.machine.verdict().problem.is_some();
    }

    /// Somebody who was told of as silent is heard again.
    pub(super) fn tell_heard(&self, connection: usize, silent: u32) {
        if let Some(site) = self.connections.subjob(connection) {
            let seconds = (TICK * silent).as_secs();
            self.notice_of(site, &format!("its agent is heard again after {seconds} s"));
        }
    }

    /// Progress is of interest as long as some site is not there.
    pub(super) fn show_progress(&mut self) {
        let all = self.board.progress(self.machine.subjobs());
        let waits = |p: &Progress| match p.state {
            State::Unsubmitted | State::StageIn | State::StageOut | State::Suspended => true,
            State::Pending => !p.detail.is_empty() && self.machine.deadline().is_none(),
            _ => false,
        };
        let shown = !self.asked && (!self.leaving || self.machine.is_over()) && all.iter().any(waits);
        self.printer.print_progress(if shown { all } else { Vec::new() });
    }

    /// Changes of states, as events.
    pub(super) fn tell_states(&mut self) {
        let progress = self.board.progress(self.machine.subjobs());
        let changes = self.board.changes(&progress);
        if changes.is_empty() {
            return;
        }
        changes
            .into_iter()
            .for_each(|now| self.printer.tell(&JobEvent::state(now)));
        self.printer.print(Print::States(progress));
    }
}
