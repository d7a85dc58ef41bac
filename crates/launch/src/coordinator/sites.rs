// SPDX-License-Identifier: Apache-2.0
//! What sites say.

use super::Coordinator;
use crate::console::Print;
use crate::events::JobEvent;
use crate::happening::SiteEvent;
use crate::paths::Messages;
use crate::progress::expected;
use isthmus_wire::grid::{Arrival, Exit, FromAgent, Scheduler, Stream};
use std::time::Duration;

impl Coordinator {
    pub(super) fn handle_site(&mut self, connection: usize, event: SiteEvent, now: Duration) {
        if let Some(silent) = self.connections.hear(connection) {
            self.tell_heard(connection, silent);
        }
        if let SiteEvent::Message(message) = &event {
            self.connections.note(connection, message);
        }
        let Some(site) = self.connections.subjob(connection) else {
            return self.handle_former(connection, event);
        };
        match event {
            SiteEvent::Progress => self.machine.handle_staging(site, now),
            SiteEvent::Staging(how) => {
                self.known[site].detail = how;
                self.machine.handle_staging(site, now);
            }
            SiteEvent::Hello(host) => {
                if self.connections.is_again(connection) {
                    self.notice_of(site, "its agent is reached again");
                }
                self.connections.set_host(connection, host.host);
                self.known[site].detail.clear();
                self.machine.handle_staging(site, now);
            }
            SiteEvent::Serving => self.connections.set_serving(connection),
            SiteEvent::Message(message) => self.hear(connection, site, message, now),
            SiteEvent::Notice(text) => self.notice_of(site, &text),
            SiteEvent::Closed(failure) => self.handle_closed(connection, site, failure),
        }
        self.show_progress();
    }

    /// On a connection that was replaced.
    fn handle_former(&mut self, connection: usize, event: SiteEvent) {
        match event {
            SiteEvent::Closed(_) => self.connections.close(connection),
            SiteEvent::Notice(text) => self.notice_of(self.connections.former_subjob(connection), &text),
            _ => {}
        }
    }

    pub(super) fn handle_message(&mut self, connection: usize, site: usize, message: FromAgent, now: Duration) {
        match message {
            FromAgent::Queued {
                scheduler,
                id,
                why,
                start,
            } => {
                self.machine.handle_queued(site, now);
                self.take_queued(site, &format!("{scheduler} job {id}"), &why, start);
            }
            FromAgent::Beside(scheduler) => self.tell_beside(site, scheduler),
            FromAgent::Suspended(stopped) => self.machine.handle_suspended(site, stopped),
            FromAgent::Started(parts) => {
                self.known[site].machine.parts = parts;
                self.machine.handle_started(site, now);
                self.start_input(site);
                self.end_input(site);
            }
            FromAgent::Refused { reason, hint } => self.machine.handle_site_failed(site, &reason, &hint, now),
            FromAgent::Arrived(arrivals) => self.take_arrivals(site, arrivals, now),
            FromAgent::Output { index, stream, bytes } => self.print(connection, site, index, stream, bytes),
            FromAgent::Time(first, time) => self.tally.take_time(site, first, time),
            FromAgent::Traffic { first, traffic } => self.tally.take(connection, first, traffic),
            FromAgent::Pong(number, clock) => {
                self.take_pong(connection, number);
                self.clocks.answered(connection, number, clock);
            }
            FromAgent::Waiting { index, waiting } if index < self.subjobs[site].count => {
                self.waits.take(self.number(site, index), waiting);
            }
            FromAgent::Conditions(all) => {
                for one in all.into_iter().filter(|c| c.index < self.subjobs[site].count) {
                    self.waits.treat(self.number(site, one.index), one);
                }
            }
            FromAgent::InputCredit(bytes) => {
                let sources = self.sources.iter_mut().filter(|s| s.is_for(site));
                sources.for_each(|s| s.add_credit(site, bytes as usize));
            }
            FromAgent::Exited(list) => {
                for (index, exit) in list {
                    self.take_exit(site, index, exit, now);
                }
            }
            FromAgent::Finished { index, counters } => {
                self.statistics.add(&self.subjobs[site].site, &counters);
                if let Some(links) = &mut self.known_links {
                    links.take(&counters.links);
                }
                if index < self.subjobs[site].count {
                    self.waits.finish(self.number(site, index));
                }
                self.machine.handle_finished(site, index);
            }
            FromAgent::Aborted { index, code, reason } => {
                if index < self.subjobs[site].count {
                    self.machine.handle_aborted(site, index, code, &reason, now);
                }
            }
            FromAgent::Gateway(message) => {
                let (messages, problem) = self.crossings.said(site, &message);
                self.tell_gateways(&messages);
                if let Some(problem) = problem {
                    self.notice(problem);
                }
            }
            // Answers to what the site task asked; a late one changes nothing. And what nodes tell the agent that
            // submitted them.
            FromAgent::Hello(_)
            | FromAgent::File { .. }
            | FromAgent::Gone
            | FromAgent::LauncherEnded(_)
            | FromAgent::Waiting { .. } => {}
        }
    }

    pub(super) fn tell_gateways(&self, messages: &Messages) {
        for (site, message) in messages {
            self.connections.send_gateway(*site, message);
        }
    }

    fn print(&self, connection: usize, site: usize, index: u32, stream: Stream, bytes: Vec<u8>) {
        if stream == Stream::Trace {
            return self.printer.print(Print::Records {
                connection,
                rank: self.number(site, index),
                site: self.subjobs[site].site.clone(),
                offset: self.clocks.offset(connection),
                bytes,
            });
        }
        self.printer.print(Print::Output {
            connection,
            site,
            rank: self.number(site, index),
            stream,
            bytes,
        });
    }

    fn take_arrivals(&mut self, site: usize, arrivals: Vec<Arrival>, now: Duration) {
        for arrival in arrivals {
            // First into the list: the last arrival commits.
            let index = arrival.index;
            self.known[site].machine.arrivals.push(arrival);
            if !self.machine.handle_arrived(site, index, now) {
                self.known[site].machine.arrivals.pop();
            }
        }
    }

    /// A job waits in its queue; `start`: when it is expected to begin, 0 where that is not known.
    fn take_queued(&mut self, site: usize, job: &str, why: &str, start: u64) {
        let detail = match why {
            "" => job.to_owned(),
            why => format!("{job}, {why}"),
        };
        let known = &mut self.known[site];
        known.starts = Some(start).filter(|start| *start > 0);
        let starts = known.starts;
        // An estimate that moves is no news of its own: it is shown where the subjob stands.
        if std::mem::replace(&mut known.detail, detail.clone()) != detail && !why.is_empty() {
            let waits = format!("{job} waits in the queue ({why})");
            self.notice_of(site, &expected(&waits, starts, crate::now()));
        }
    }

    /// Processes run on the machine itself, though it has a scheduler. Who is in an allocation or says `fork` means it.
    fn tell_beside(&self, site: usize, scheduler: Scheduler) {
        let inside = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PE_HOSTFILE"];
        let subjob = &self.subjobs[site];
        if subjob.forks || inside.iter().any(|name| std::env::var_os(name).is_some()) {
            return;
        }
        let (name, key) = (&subjob.site, scheduler.keyword());
        let count = subjob.count;
        self.notice_of(
            site,
            &format!(
                "its processes run on this machine itself and not under its {scheduler}: --site {name}:{count},scheduler={key} uses that, \
                scheduler=fork says that it is meant"
            ),
        );
    }

    fn take_exit(&mut self, site: usize, index: u32, exit: Exit, now: Duration) {
        let name = &self.subjobs[site].site;
        self.tell(&JobEvent::exit(self.number(site, index), name, exit));
        self.waits.end(self.number(site, index));
        self.machine.handle_exited(site, index, exit, now);
    }
}
