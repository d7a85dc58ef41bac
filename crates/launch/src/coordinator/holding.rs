// SPDX-License-Identifier: Apache-2.0
//! Connections that break while the processes run are made again, also by another coordinator.

use super::Coordinator;
use super::early::EarlyMessage;
use crate::hold::{Again, Held, Secret};
use crate::session::Session;
use crate::site::broken;
use isthmus_job::{Contact, Subjob};
use isthmus_reach::Failure;
use isthmus_stage::words;
use isthmus_wire::grid::{FromAgent, Hold};
use std::time::Duration;

impl Coordinator {
    /// The processes of all subjobs have begun: from here on their agents outlive a connection, and this process.
    pub(super) fn hold(&mut self, sites: &[usize]) {
        if sites.iter().all(|&site| site >= self.shared.planned) {
            return hold_spawned(self, sites);
        }
        // A job that begins in several worlds, or has lost a part, could not be told from its remains.
        let whole = self.hold.is_none() && sites.len() == self.subjobs.len();
        if !whole || !is_worth_holding(&self.subjobs, self.session.as_ref()) {
            return;
        }
        let Ok(secret) = isthmus_stage::guarded::random::<32>() else {
            return;
        };
        if self.keep_for_successor(secret, crate::now(), 1).is_none() {
            return;
        }
        self.hold = Some(secret);
        outlive(self, sites, secret);
    }

    /// What another coordinator needs; nothing: there is no place for it, or no words.
    fn keep_for_successor(&self, secret: [u8; 32], began: u64, launchers: u32) -> Option<()> {
        let session = self.session.as_ref()?;
        let job = self.job.with_subjobs(self.subjobs.clone()).ok()?;
        let (options, environment) = session.for_successor();
        let held = Held {
            secret: Secret(secret),
            launchers,
            began,
            away: self.silence.as_secs(),
            directory: words::text(&self.shared.options.directory),
            words: options,
            environment,
            job: Held::describe(&job)?,
            files: self.shared.directories.places(),
        };
        session.hold(&held).ok()
    }

    /// Reaches the agents of a job whose coordinator has died. They tell how it stands.
    pub(super) fn take_up(&mut self, held: &Held) {
        let secret = held.secret.0;
        self.hold = Some(secret);
        self.crossings.go_on_after(held.launchers);
        for (site, files) in &held.files {
            if let Some(subjob) = self.subjobs.get(*site) {
                self.shared.find_directory(*site, subjob, files);
            }
        }
        self.keep_for_successor(secret, held.began, held.launchers.saturating_add(1));
        for site in 0..self.subjobs.len() {
            self.start_again(site, secret, None);
        }
        self.printer
            .notice("the launcher of this job was lost; another one has taken the job up".to_owned());
        self.tell_states();
        self.show_progress();
    }

    /// A site says. What it tells of the processes after the beginning waits until all have told of that.
    pub(super) fn hear(&mut self, connection: usize, site: usize, message: FromAgent, now: Duration) {
        if self.shared.is_taken_up() && is_later(&message) && !self.machine.is_committed() {
            let processes = self.subjobs[site].count;
            let told = EarlyMessage {
                connection,
                site,
                message,
            };
            if let Err(lie) = self.early.keep(told, processes) {
                self.connections.give_up(connection);
                self.lose(site, &broken(lie), "", false);
            }
            return;
        }
        self.handle_message(connection, site, message, now);
    }

    /// All sites have told of the beginning: what came early is heard now.
    pub(super) fn hear_early(&mut self) {
        if !self.early.is_empty() && self.machine.is_committed() {
            for told in std::mem::take(&mut self.early).0 {
                self.handle_message(told.connection, told.site, told.message, self.began.elapsed());
            }
        }
    }

    fn start_again(&mut self, site: usize, secret: [u8; 32], why: Option<Failure>) {
        let again = Again {
            secret,
            received: Default::default(),
            patience: self.silence,
        };
        let subjob = self.subjobs[site].clone();
        self.connections.start_again(site, subjob, again, why);
    }

    /// A connection has ended. What ran there may still do so.
    pub(super) fn handle_closed(&mut self, connection: usize, site: usize, failure: Failure) {
        let was_lost = self.connections.is_lost(site);
        self.connections.close(connection);
        if self.connections.was_in_vain(connection) {
            let first = self.connections.why_before(connection).cloned().unwrap_or(failure);
            return self.lose(site, &first.problem, &first.hint, true);
        }
        let may_live = failure.is_unreached() && !was_lost && !self.leaving && self.connections.is_held(connection);
        let Some(secret) = self.hold.filter(|_| may_live) else {
            return self.lose(site, &failure.problem, &failure.hint, failure.is_unreached());
        };
        // Input that was on its way is lost with the connection, and a program must not read on as if nothing were
        // missing. The agent is reached again all the same, to hear of the end.
        let whole = !self.inputs.owes(site);
        if whole {
            self.printer.notice_of(
                &self.subjobs[site].site,
                &format!("{}; trying to reach it again", failure.problem),
            );
        }
        self.start_again(site, secret, Some(failure.clone()));
        if !whole {
            self.lose(site, &failure.problem, &failure.hint, true);
        }
    }
}

/// What was spawned at other machines outlives a connection, too, but is not taken up by another coordinator.
fn hold_spawned(job: &mut Coordinator, sites: &[usize]) {
    let is_elsewhere = |site: &&usize| matches!(job.subjobs[**site].contact, Contact::Ssh(_));
    let elsewhere: Vec<usize> = sites.iter().filter(is_elsewhere).copied().collect();
    if elsewhere.is_empty() {
        return;
    }
    let secret = job.hold.map_or_else(isthmus_stage::guarded::random::<32>, Ok);
    if let Ok(secret) = secret {
        job.hold = Some(secret);
        outlive(job, &elsewhere, secret);
    }
}

fn outlive(job: &mut Coordinator, sites: &[usize], secret: [u8; 32]) {
    let seconds = u32::try_from(job.silence.as_secs()).unwrap_or(u32::MAX);
    for &site in sites {
        job.connections.hold(site, &Hold { secret, seconds });
    }
}

/// Whether it tells of the processes after their beginning.
fn is_later(message: &FromAgent) -> bool {
    matches!(
        message,
        FromAgent::Exited(_) | FromAgent::Finished { .. } | FromAgent::Aborted { .. } | FromAgent::Asked { .. }
    )
}

/// Who starts processes on this machine alone, and in the foreground, sees them end with the launcher.
fn is_worth_holding(subjobs: &[Subjob], session: Option<&Session>) -> bool {
    let elsewhere = subjobs.iter().any(|subjob| subjob.contact != Contact::Home);
    // Launchers of other parts do not follow to a successor.
    let by_hand = subjobs.iter().any(|subjob| matches!(subjob.contact, Contact::Part(_)));
    !by_hand && (elsewhere || session.is_some_and(Session::is_kept))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::early::Early;

    fn told(connection: usize, rank: u32) -> EarlyMessage {
        EarlyMessage {
            connection,
            site: connection,
            message: FromAgent::Aborted {
                index: rank,
                code: 1,
                reason: String::new(),
            },
        }
    }

    #[test]
    fn each_site_has_room_for_what_its_processes_can_tell() {
        let mut early = Early::default();
        assert!(early.is_empty());
        for n in 0..6 {
            assert_eq!(early.keep(told(0, n % 2), 2), Ok(()), "message {n} of two processes");
        }
        assert!(early.keep(told(0, 0), 2).is_err(), "a seventh one");
        assert!(early.keep(told(2, 0), 0).is_err(), "of a site without processes");
        assert_eq!(early.keep(told(1, 0), 1), Ok(()), "another site has room of its own");
        let kept: Vec<usize> = early.0.iter().map(|told| told.site).collect();
        assert_eq!(kept, [0, 0, 0, 0, 0, 0, 1], "in the order in which it came");
    }

    #[test]
    fn what_belongs_to_the_beginning_does_not_wait() {
        assert!(is_later(&FromAgent::Exited(Vec::new())));
        assert!(is_later(&told(0, 0).message));
        assert!(!is_later(&FromAgent::Started(Vec::new())));
    }
}
