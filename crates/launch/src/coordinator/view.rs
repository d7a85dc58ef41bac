// SPDX-License-Identifier: Apache-2.0
//! Time passes; where everything stands, for people and as events.

use super::{Coordinator, TICK};
use crate::connections::{Limits, Silence, ticks};
use crate::console::Print;
use crate::events::JobEvent;
use crate::progress::Progress;
use crate::session::Session;
use isthmus_job::coallocation::State;
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
        self.added.tick();
        if !self.stop.is_near() {
            self.ping();
            self.look_at_waits();
        }
        // Other commands see that this process lives.
        if self.hold.is_some() && self.ticks % BEAT == 0 {
            self.session.iter().for_each(Session::beat);
        }
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
                Silence::Long => self.printer.notice_of(&self.subjobs[site].site, &silent_for_long(away)),
                Silence::Busy => self.printer.notice_of(&self.subjobs[site].site, &silent_here()),
                Silence::Lost => {
                    let problem = format!("nothing was heard from its agent for {} s", away.as_secs());
                    let hint = "check the network to the site, or let sites be away for longer: ISTHMUS_AWAY=SECONDS";
                    self.lose(site, &problem, hint, true);
                }
            }
        }
        let (links, times) = (self.tally.links(), self.tally.site_times(&self.subjobs));
        self.printer.print(Print::Passed { links, times });
        self.show_progress();
    }

    /// The connection to a site has ended; `unreached`: because it was not reached or was lost, which may be why the
    /// job ends.
    pub(super) fn lose(&mut self, site: usize, problem: &str, hint: &str, unreached: bool) {
        let well = self.machine.verdict().problem.is_none();
        self.machine.handle_closed(site, problem, hint, self.began.elapsed());
        self.unreached |= unreached && well && self.machine.verdict().problem.is_some();
    }

    /// Progress is of interest as long as some site is not there.
    pub(super) fn show_progress(&mut self) {
        let all = self.board.progress(self.machine.subjobs());
        let waits = |p: &Progress| match p.state {
            State::Connecting | State::Staging | State::Fetching | State::Suspended => true,
            State::Starting => !p.detail.is_empty() && self.machine.deadline().is_none(),
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

/// What to say of an agent that has been silent for long; `away`: it may be for so long.
fn silent_for_long(away: Duration) -> String {
    let (silent, away) = (TOLD_AFTER.as_secs(), away.as_secs());
    format!(
        "nothing has been heard from its agent for {silent} s; it is waited for until it is silent for {away} s (ISTHMUS_AWAY)"
    )
}

/// The same of one on this machine.
fn silent_here() -> String {
    let silent = TOLD_AFTER.as_secs();
    format!(
        "nothing has been heard from the agent on this machine for {silent} s: the machine is busy, or the agent was stopped; it is waited for"
    )
}
