// SPDX-License-Identifier: Apache-2.0
//! What sites say.

use super::{Coordinator, TICK, answering, asked};
use crate::console::Print;
use crate::events::JobEvent;
use crate::happening::SiteEvent;
use crate::site::broken;
use isthmus_job::{Contact, Subjob};
use isthmus_wire::grid::{Arrival, Exit, FromAgent, Scheduler, Stream, ToAgent};
use std::time::Duration;

impl Coordinator {
    pub(super) fn handle_site(&mut self, connection: usize, event: SiteEvent, now: Duration) {
        let silent = event.is_heard().then(|| self.connections.hear(connection)).flatten();
        if let SiteEvent::Message(message) = &event {
            self.connections.note(connection, message);
        }
        let Some(site) = self.connections.subjob(connection) else {
            return self.handle_former(connection, event);
        };
        if let Some(silent) = silent {
            let seconds = (TICK * silent).as_secs();
            let heard = format!("its agent is heard again after {seconds} s");
            self.printer.notice_of(&self.subjobs[site].site, &heard);
        }
        match event {
            SiteEvent::Progress => self.machine.handle_staging(site, now),
            SiteEvent::Staging(how) => {
                self.board.say(site, how);
                self.machine.handle_staging(site, now);
            }
            SiteEvent::Hello(host) => {
                if self.connections.is_again(connection) {
                    self.printer
                        .notice_of(&self.subjobs[site].site, "its agent is reached again");
                }
                self.connections.set_hello(connection, *host);
                self.board.say(site, String::new());
                self.machine.handle_staging(site, now);
            }
            SiteEvent::Serving => self.connections.set_serving(connection),
            SiteEvent::Message(message) => self.hear(connection, site, message, now),
            SiteEvent::Notice(text) => self.printer.notice_of(&self.subjobs[site].site, &text),
            SiteEvent::Closed(failure) => self.handle_closed(connection, site, failure),
        }
        self.show_progress();
    }

    /// On a connection that was replaced.
    fn handle_former(&mut self, connection: usize, event: SiteEvent) {
        match event {
            SiteEvent::Closed(_) => self.connections.close(connection),
            SiteEvent::Notice(text) => {
                let site = self.connections.former_subjob(connection);
                self.printer.notice_of(&self.subjobs[site].site, &text);
            }
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
                if let Some(news) = self.board.queue(site, &format!("{scheduler} job {id}"), &why, start) {
                    self.printer.notice_of(&self.subjobs[site].site, &news);
                }
            }
            FromAgent::Beside(_) | FromAgent::Made(_) => {
                let subjob = &self.subjobs[site];
                let news = news(subjob, &message).into_iter();
                news.for_each(|text| self.printer.notice_of(&subjob.site, &text));
            }
            FromAgent::Suspended(stopped) => self.machine.handle_suspended(site, stopped),
            FromAgent::Started(parts) => {
                self.board.start(site, parts);
                self.machine.handle_started(site, now);
                let runs = |site| self.board.has_started(site);
                self.inputs.start(site, runs, &self.events);
                // The standard input of the processes has ended with the coordinator that had it.
                if self.shared.is_taken_up() {
                    self.connections.send(site, &ToAgent::Input(Vec::new()));
                }
            }
            FromAgent::Refused { reason, hint } => self.machine.handle_site_failed(site, &reason, &hint, now),
            FromAgent::Arrived(arrivals) => self.take_arrivals(site, arrivals, now),
            FromAgent::Output { bytes, .. } if !self.connections.takes_output(connection, bytes.len()) => {
                self.connections.give_up(connection);
                self.lose(site, &broken("it sent more output than it was asked for"), "", false);
            }
            FromAgent::Output { index, stream, bytes } => self.print(connection, site, index, stream, bytes),
            FromAgent::Time(first, time) => self.tally.take_time(site, first, time),
            FromAgent::Traffic { first, traffic } => self.tally.take(connection, first, traffic),
            FromAgent::Pong(number, clock) => {
                self.stop.take_pong(connection, number);
                self.clocks.answered(connection, number, clock);
            }
            FromAgent::Waiting { index, waiting } => {
                self.waits.take(self.machine.subjobs().number_of(site, index), waiting);
            }
            FromAgent::Conditions(all) => {
                for one in all {
                    self.waits.treat(self.machine.subjobs().number_of(site, one.index), one);
                }
            }
            FromAgent::InputCredit(bytes) => self.inputs.add_credit(site, bytes as usize),
            FromAgent::Exited(list) => {
                for (index, exit) in list {
                    self.take_exit(site, index, exit, now);
                }
            }
            // Who says so twice, or before it has begun, is not counted.
            FromAgent::Finished { index, counters } if self.machine.handle_finished(site, index) => {
                self.agreements.doubt();
                self.statistics.add(&self.subjobs[site].site, &counters);
                self.worlds.hear(&counters.links);
                self.waits.finish(self.machine.subjobs().number_of(site, index));
            }
            FromAgent::Aborted { index, code, reason } => {
                self.machine.handle_aborted(site, index, code, &reason, now);
            }
            FromAgent::Asked { index, question } => asked::hear(self, connection, site, index, question),
            FromAgent::Gateway(message) => hear_gateway(self, site, &message),
            // Late answers to what the site task asked, and what nodes tell the agent that submitted them.
            FromAgent::Hello(_)
            | FromAgent::File { .. }
            | FromAgent::Gone
            | FromAgent::LauncherEnded(_)
            // Its task has heard these.
            | FromAgent::Neighbour { .. }
            | FromAgent::NeighbourTook { .. }
            | FromAgent::Finished { .. } => {}
        }
    }

    fn print(&self, connection: usize, site: usize, index: u32, stream: Stream, bytes: Vec<u8>) {
        if stream == Stream::Trace {
            return self.printer.print(Print::Records {
                connection,
                rank: self.machine.subjobs().number_of(site, index),
                site: self.subjobs[site].site.clone(),
                offset: self.clocks.offset(connection),
                bytes,
            });
        }
        self.printer.print(Print::Output {
            connection,
            site,
            rank: self.machine.subjobs().number_of(site, index),
            stream,
            bytes,
        });
    }

    fn take_arrivals(&mut self, site: usize, arrivals: Vec<Arrival>, now: Duration) {
        for arrival in arrivals {
            // First into the list: the last arrival commits.
            let index = arrival.index;
            self.board.arrive(site, arrival);
            if !self.machine.handle_arrived(site, index, now) {
                self.board.take_back_arrival(site);
            }
        }
    }

    fn take_exit(&mut self, site: usize, index: u32, exit: Exit, now: Duration) {
        if self.machine.subjobs().has_ended(site, index) {
            return;
        }
        let name = &self.subjobs[site].site;
        self.printer.tell(&JobEvent::exit(
            self.machine.subjobs().number_of(site, index),
            name,
            exit,
        ));
        self.waits.end(self.machine.subjobs().number_of(site, index));
        answering::forget(self, (site, index));
        self.machine.handle_exited(site, index, exit, now);
        self.agreements.doubt();
    }
}

/// The gateway of a site says.
fn hear_gateway(job: &mut Coordinator, site: usize, message: &[u8]) {
    let (messages, problem) = job.crossings.said(site, message);
    let deaf = job.connections.send_gateways(&messages);
    let deaf: Vec<String> = deaf.into_iter().filter_map(|site| job.crossings.deaf(site)).collect();
    let told = problem.into_iter().chain(deaf);
    told.for_each(|text| job.printer.notice(text));
}

/// What the user should know of what an agent has seen.
fn news(subjob: &Subjob, message: &FromAgent) -> Option<String> {
    match message {
        FromAgent::Beside(scheduler) => beside(subjob, *scheduler),
        FromAgent::Made(made) if subjob.contact != Contact::Home || subjob.allocation.is_some() => {
            crate::left::made(made, &subjob.contact.to_string())
        }
        _ => None,
    }
}

/// What to say of processes that run on the machine itself, though it has a scheduler. Who is in an allocation or says
/// `fork` means it.
fn beside(subjob: &Subjob, scheduler: Scheduler) -> Option<String> {
    let inside = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PE_HOSTFILE"];
    if subjob.forks || inside.iter().any(|name| std::env::var_os(name).is_some()) {
        return None;
    }
    let (name, count, key) = (&subjob.site, subjob.count, scheduler.keyword());
    Some(format!(
        "its processes run on this machine itself and not under its {scheduler}: --site {name}:{count},scheduler={key} uses that, \
         scheduler=fork silences this note"
    ))
}
