// SPDX-License-Identifier: Apache-2.0
//! A part that joins others: it runs the tasks of its own subjobs and passes on what they and the coordinator, which is
//! in another part, say to each other. What its processes print and read stays here.

use super::brings::Brings;
use super::entering::{Beginning, Early, all_begin, enter, gone, nonsense, over, turned_away};
use super::waiting::{self, standing};
use super::ways::{Becomes, Ways};
use crate::claims::MOST_OUTPUT;
use crate::console::{Print, Printer, Written};
use crate::directories::Directories;
use crate::emptying::{self, Tell};
use crate::happening::{Event, SiteEvent};
use crate::input;
use crate::inputs::Inputs;
use crate::neighbours::Neighbours;
use crate::output::Files;
use crate::parts::door::{believe, dial};
use crate::parts::place;
use crate::parts::stream::{LONGEST, receive, send};
use crate::paths::Opening;
use crate::shared::Shared;
use crate::site::Site;
use crate::staged::SiteContents;
use crate::trace::Clocks;
use crate::{Outcome, coordinator};
use isthmus_job::Subjob;
use isthmus_job::gathering::{WorldPart, renamed};
use isthmus_reach::Access;
use isthmus_wire::control::{Reply, Request};
use isthmus_wire::gathering::{Begin, FromPart, Said, ToPart};
use isthmus_wire::grid::{FromAgent, NodeProcesses, Reach, Stream, ToAgent};
use isthmus_wire::port::PortName;
use isthmus_wire::question::Question;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncWriteExt, DuplexStream, ReadHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// How long what was started here has to end once the job is over.
const ENDING: Duration = Duration::from_secs(8);
/// After so many interrupts this part does not wait for the others.
const INSISTING: u32 = 3;

/// A part that was let in, and whose others are all there.
pub(super) struct Entered {
    beginning: Beginning,
    stream: DuplexStream,
    events: mpsc::UnboundedSender<Event>,
    happening: mpsc::UnboundedReceiver<Event>,
}

/// Joins those that wait where the ticket says, directly or `through` a place that ssh reaches, and waits until all
/// parts are there.
pub(super) async fn join(
    brings: &mut Brings,
    ticket: &PortName,
    part: Option<WorldPart>,
    through: Option<&str>,
) -> Result<Entered, Outcome> {
    let Brings {
        job, options, console, ..
    } = brings;
    let connected = match through {
        None => dial(ticket).await,
        Some(place) => {
            let through = place::through(options, place, ticket).await;
            through.and_then(|stream| believe(stream, ticket))
        }
    };
    let (mut stream, number, of) = enter(job, ticket, part.as_ref(), connected).await?;
    console.notice(&format!(
        "part {number} of {of} has joined the others; they begin when all are there"
    ));
    waiting::leave_terminal(options, console.as_mut());
    let (events, mut happening) = mpsc::unbounded_channel();
    coordinator::listen_to_signals(&events)
        .and_then(|()| waiting::serve(options, &events))
        .map_err(|error| Outcome::unstarted(&error))?;
    let beginning = tokio::select! {
        beginning = all_begin(&mut stream, job.subjobs().len()) => beginning?,
        signal = waiting::interrupted(job, &mut happening) => return Err(Outcome::interrupted(signal)),
    };
    Ok(Entered {
        beginning,
        stream,
        events,
        happening,
    })
}

/// Takes part until the job is over.
pub(super) async fn run(mut brings: Brings, entered: Entered) -> Outcome {
    let Entered {
        beginning: Beginning { begins, early },
        stream,
        events,
        mut happening,
    } = entered;
    let session = brings.options.session.take();
    let outcome = match Joined::new(brings, begins, stream, events) {
        Ok((mut joined, reader)) => {
            early
                .iter()
                .for_each(|Early { subjob, message }| joined.tell(*subjob, message));
            joined.run(reader, &mut happening).await
        }
        Err(outcome) => *outcome,
    };
    outcome.closing(session)
}

/// One of our subjobs.
struct Own {
    first: u32,
    commands: mpsc::UnboundedSender<Vec<u8>>,
    leaving: watch::Sender<bool>,
    lost: watch::Sender<bool>,
    started: bool,
    open: bool,
    unprinted: usize,
    /// How far its clock is from ours, for a trace.
    clocks: Clocks,
}

impl Own {
    fn send(&self, message: &ToAgent) {
        // Its task may have ended.
        let _ = self.commands.send(message.encode());
    }

    fn end(&self) {
        self.send(&ToAgent::End);
        self.leaving.send_replace(true);
    }
}

/// This part while it takes part.
struct Joined {
    shared: Arc<Shared>,
    subjobs: Vec<Subjob>,
    own: Vec<Own>,
    printer: Printer,
    inputs: Inputs,
    out: mpsc::UnboundedSender<Vec<u8>>,
    events: mpsc::UnboundedSender<Event>,
    /// Through the host at which jobs meet.
    ways: Ways,
    interrupts: u32,
    /// How the job has ended.
    verdict: Option<Outcome>,
    /// Since when everything ends.
    ending: Option<Instant>,
}

impl Joined {
    fn new(
        brings: Brings,
        begins: Vec<Begin>,
        stream: DuplexStream,
        events: mpsc::UnboundedSender<Event>,
    ) -> Result<(Self, ReadHalf<DuplexStream>), Box<Outcome>> {
        let cannot = |error: std::io::Error| Box::new(Outcome::unstarted(&error));
        let Brings {
            job,
            mut options,
            console,
            trace,
        } = brings;
        let subjobs: Option<Vec<Subjob>> = begins.iter().map(|begin| renamed(&job, begin)).collect();
        let (Some(subjobs), Some(one)) = (subjobs, begins.first()) else {
            return Err(Box::new(nonsense()));
        };
        if let Err(error) = job.with_subjobs(subjobs.clone()) {
            return Err(Box::new(Outcome::refused(error)));
        }
        let name = one.job.strip_prefix("isthmus-").unwrap_or(&one.job);
        let files = Files::new(name, &options.directory, options.output.clone(), &subjobs);
        let written = Written {
            files,
            trace,
            record: None,
        };
        let printer = Printer::start(console, written, events.clone()).map_err(cannot)?;
        options.silence = Duration::from_secs(u64::from(one.silence));
        let mut inputs = Inputs::new(options.input);
        let firsts: Vec<u32> = begins.iter().map(|begin| begin.first).collect();
        let dealt = inputs.deal(&subjobs, &firsts);
        let (out, queue) = mpsc::unbounded_channel();
        let (reader, writer) = tokio::io::split(stream);
        tokio::spawn(write(writer, queue));
        let shared = Arc::new(Shared {
            reach: Reach::Wide,
            job: one.job.clone(),
            // Nobody is asked anything here: who is asked is who coordinates.
            access: Arc::new(Access::new(&options.binary, &options.ssh, false).patient(options.silence)),
            staged: SiteContents::default(),
            directories: Directories::default(),
            examine: false,
            planned: one.planned as usize,
            // Who coordinates decides what a loss means.
            goes_on: false,
            gathered: Default::default(),
            options,
        });
        let ways = Ways::new(&shared, &events).map_err(cannot)?;
        let mut joined = Self {
            shared,
            subjobs,
            own: Vec::new(),
            printer,
            inputs,
            out,
            events,
            ways,
            interrupts: 0,
            verdict: None,
            ending: None,
        };
        begins
            .iter()
            .zip(dealt)
            .for_each(|(begin, input)| joined.start(begin, input));
        Ok((joined, reader))
    }

    fn start(&mut self, begin: &Begin, input: isthmus_wire::grid::Input) {
        let (commands, queue) = mpsc::unbounded_channel();
        let (leaving, seen) = watch::channel(false);
        let (lost, lost_seen) = watch::channel(false);
        let connection = self.own.len();
        let gateway = (!begin.gateway.is_empty()).then(|| Opening {
            first: begin.gateway.clone(),
            is_only_way: begin.only_way,
        });
        let site = Site {
            number: begin.number as usize,
            connection,
            subjob: self.subjobs[connection].clone(),
            input,
            shared: Arc::clone(&self.shared),
            events: self.events.clone(),
            leaving: seen,
            gateway,
            last: mpsc::unbounded_channel().1,
            lost: lost_seen,
            again: None,
            beside: None,
            neighbours: Neighbours::default(),
        };
        self.own.push(Own {
            first: begin.first,
            commands,
            leaving,
            lost,
            started: false,
            open: true,
            unprinted: 0,
            clocks: Clocks::default(),
        });
        tokio::spawn(site.run(queue));
    }

    async fn run(mut self, mut reader: ReadHalf<DuplexStream>, events: &mut mpsc::UnboundedReceiver<Event>) -> Outcome {
        let (tell, mut told) = mpsc::channel(16);
        tokio::spawn(async move {
            while let Ok(body) = receive(&mut reader, LONGEST).await {
                if tell.send(body).await.is_err() {
                    return;
                }
            }
        });
        while self.own.iter().any(|own| own.open) || self.verdict.is_none() {
            let until = self.ending.map(|since| since + ENDING);
            tokio::select! {
                Some(event) = events.recv() => self.handle(event),
                body = told.recv(), if self.verdict.is_none() => self.hear(body.as_deref()),
                () = coordinator::until(until) => break,
            }
        }
        self.finish(events).await
    }

    /// Whoever coordinates says; nothing: it is gone.
    fn hear(&mut self, body: Option<&[u8]>) {
        match body.map(ToPart::decode) {
            Some(Ok(ToPart::Tell { subjob, message })) => self.tell(subjob, &message),
            Some(Ok(ToPart::Over { status, problem, hint })) => self.end(over(status, &problem, &hint)),
            Some(Ok(ToPart::Refused(why))) => self.end(turned_away(&why)),
            Some(_) => self.end(nonsense()),
            None => self.end(gone()),
        }
    }

    fn tell(&mut self, subjob: u32, message: &[u8]) {
        match self.own.get_mut(subjob as usize) {
            Some(own) => own.pass(message),
            None => self.end(nonsense()),
        }
    }

    fn end(&mut self, how: Outcome) {
        self.verdict.get_or_insert(how);
        self.ending.get_or_insert_with(Instant::now);
        self.own.iter().for_each(Own::end);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Site(site, event) => self.handle_site(site, event),
            Event::Printed { connection, bytes } => {
                let own = &mut self.own[connection];
                own.unprinted = own.unprinted.saturating_sub(bytes);
                own.send(&ToAgent::OutputCredit(u32::try_from(bytes).unwrap_or(u32::MAX)));
            }
            Event::Input { source, bytes } => {
                for reader in self.inputs.take(source, bytes.len()) {
                    self.own[reader].send(&ToAgent::Input(bytes.clone()));
                }
            }
            Event::InputFailed(why) => self.printer.notice(input::cut_short(&why)),
            Event::Interrupt(signal) => self.interrupt(signal),
            Event::PrintFailed => self.interrupt(coordinator::SIGPIPE),
            Event::FileFailed { why, .. } => {
                self.printer.notice(format!("output cannot be written: {why}"));
                self.interrupt(coordinator::SIGPIPE);
            }
            Event::Forward(signal) => self.own.iter().for_each(|own| own.send(&ToAgent::Signal(signal))),
            Event::HangUp => self.printer.print(Print::HangUp),
            Event::Control { request, reply } => {
                // Who asked may be gone.
                let _ = reply.send(self.answer(&request));
            }
            Event::Met(met) => match self.ways.met(met) {
                Ok(Some(((site, index), answer))) => self.own[site].send(&ToAgent::Answer { index, answer }),
                Ok(None) => {}
                Err(notice) => self.printer.notice(notice),
            },
            Event::Marked
            | Event::Fetching { .. }
            | Event::Asking(_)
            | Event::Typed(_)
            | Event::PartInterrupt { .. } => {}
        }
    }

    /// The user wants the end, for which all parts are asked; who insists does not wait for them.
    fn interrupt(&mut self, signal: u32) {
        self.interrupts += 1;
        let _ = self.out.send(FromPart::Interrupt(signal).encode());
        if self.interrupts >= INSISTING {
            self.end(Outcome::interrupted(signal));
        }
    }

    fn handle_site(&mut self, site: usize, event: SiteEvent) {
        let said = match event {
            SiteEvent::Progress => Said::Progress,
            SiteEvent::Staging(how) => Said::Staging(how),
            SiteEvent::Serving => Said::Serving,
            SiteEvent::Hello(hello) => message(&FromAgent::Hello(*hello)),
            SiteEvent::Notice(text) => {
                self.printer.notice_of(&self.subjobs[site].site, &text);
                return;
            }
            SiteEvent::Closed(failure) => {
                self.own[site].open = false;
                Said::Closed(failure.problem, failure.hint)
            }
            SiteEvent::Message(FromAgent::Output { index, stream, bytes }) => {
                return self.print(site, index, stream, bytes);
            }
            SiteEvent::Message(FromAgent::InputCredit(bytes)) => {
                return self.inputs.add_credit(site, bytes as usize);
            }
            SiteEvent::Message(FromAgent::Asked { index, question }) => match self.ask(site, index, question) {
                Some(question) => message(&FromAgent::Asked { index, question }),
                None => return,
            },
            SiteEvent::Message(told) => {
                match &told {
                    FromAgent::Pong(number, clock) => self.own[site].clocks.answered(site, *number, *clock),
                    FromAgent::Gateway(said) => self.ways.overhear(site, said),
                    FromAgent::Exited(exits) => exits.iter().for_each(|(index, _)| self.ways.forget((site, *index))),
                    _ => {}
                }
                if let FromAgent::Started(parts) = &told {
                    self.own[site].started = true;
                    self.name_traced(site, parts);
                    let runs = |site: usize| self.own[site].started;
                    self.inputs.start(site, runs, &self.events);
                }
                message(&told)
            }
        };
        let subjob = u32::try_from(site).unwrap_or(u32::MAX);
        let _ = self.out.send(FromPart::Said { subjob, said }.encode());
    }

    /// What whoever coordinates is to answer.
    fn ask(&mut self, site: usize, index: u32, question: Question) -> Option<Question> {
        let own = &self.own[site];
        match self.ways.hear(&self.shared, &self.subjobs, (site, index), question) {
            Becomes::Passed(question) => return Some(question),
            Becomes::Taken(None) => {}
            Becomes::Taken(Some(answer)) => own.send(&ToAgent::Answer { index, answer }),
            Becomes::Refused(answer, notice) => {
                own.send(&ToAgent::Answer { index, answer });
                self.printer.notice(notice);
            }
            Becomes::TooMany(what) => {
                self.printer.notice_of(&self.subjobs[site].site, &what);
                own.lost.send_replace(true);
            }
        }
        None
    }

    fn print(&mut self, site: usize, index: u32, stream: Stream, bytes: Vec<u8>) {
        let own = &mut self.own[site];
        own.unprinted = own.unprinted.saturating_add(bytes.len());
        if own.unprinted > MOST_OUTPUT + bytes.len() {
            // Its task ends, and says so.
            own.lost.send_replace(true);
            return;
        }
        let rank = own.first.saturating_add(index);
        self.printer.print(match stream {
            Stream::Trace => Print::Records {
                connection: site,
                rank,
                site: self.subjobs[site].site.clone(),
                offset: own.clocks.offset(site),
                bytes,
            },
            _ => Print::Output {
                connection: site,
                site,
                rank,
                stream,
                bytes,
            },
        });
    }

    /// The processes of a subjob have begun, for a trace.
    fn name_traced(&self, site: usize, parts: &[NodeProcesses]) {
        if self.shared.options.trace.is_some() {
            let (own, subjob) = (&self.own[site], &self.subjobs[site]);
            let ranks = own.first..own.first.saturating_add(subjob.count);
            self.printer.print(Print::Traced(traced(ranks, &subjob.site, parts)));
        }
    }

    /// Another command on this machine asks.
    fn answer(&mut self, request: &Request) -> Reply {
        match request {
            Request::Status => Reply::Status {
                committed: self.own.iter().all(|own| own.started),
                subjobs: self.subjobs.iter().map(|subjob| standing(subjob, "part")).collect(),
                joined: Vec::new(),
            },
            Request::Names => Reply::Names(Vec::new()),
            Request::Signal { number, site } if site.is_empty() => {
                self.own.iter().for_each(|own| own.send(&ToAgent::Signal(*number)));
                Reply::Done
            }
            Request::End => {
                self.interrupt(15);
                Reply::Done
            }
            Request::Signal { .. }
            | Request::Traffic
            | Request::Where
            | Request::Edit { .. }
            | Request::Add { .. }
            | Request::Adding(_) => Reply::Refused(
                "this is one part of a world that was started by hand: use the command where its first part was started"
                    .to_owned(),
            ),
        }
    }

    /// Outputs come back, and what is left is printed.
    async fn finish(mut self, events: &mut mpsc::UnboundedReceiver<Event>) -> Outcome {
        let mut outcome = self.verdict.take().unwrap_or_else(gone);
        let tell: Tell = Arc::new(|_, _| {});
        let mut emptying = emptying::empty(&self.shared, &[], &tell);
        while let Some(Ok(emptied)) = emptying.join_next().await {
            let problem = emptied.problem.clone();
            emptied
                .left
                .into_iter()
                .chain(problem.clone())
                .for_each(|news| self.printer.notice(news));
            if let (0, Some(problem)) = (outcome.status, problem) {
                (outcome.status, outcome.problem) = (1, Some(problem));
            }
        }
        self.printer.close();
        loop {
            tokio::select! {
                () = self.printer.finished() => break,
                Some(event) = events.recv() => if let Event::Interrupt(_) | Event::PrintFailed = event { break },
            }
        }
        self.ways.end().await;
        self.shared.access.close();
        outcome
    }
}

impl Own {
    /// What whoever coordinates says to the agent. Input comes from here, and so does what is started.
    fn pass(&mut self, body: &[u8]) {
        match ToAgent::decode(body) {
            Ok(ToAgent::End) => self.end(),
            Ok(ToAgent::Ping(number)) => {
                self.clocks.ask(number);
                self.send(&ToAgent::Ping(number));
            }
            Ok(
                message @ (ToAgent::Commit(_)
                | ToAgent::Dismiss
                | ToAgent::Abort { .. }
                | ToAgent::Signal(_)
                | ToAgent::Gone(_)
                | ToAgent::Answer { .. }
                | ToAgent::OutputCredit(_)
                | ToAgent::Gateway(_)),
            ) => self.send(&message),
            _ => {}
        }
    }
}

/// Rank, site and host of processes that have begun in these parts.
fn traced(ranks: Range<u32>, site: &str, parts: &[NodeProcesses]) -> Vec<(u32, String, String)> {
    let hosts = parts
        .iter()
        .flat_map(|part| std::iter::repeat_n(&part.host, part.processes as usize));
    let all = ranks.zip(hosts);
    all.map(|(rank, host)| (rank, site.to_owned(), host.clone())).collect()
}

fn message(message: &FromAgent) -> Said {
    // Without the length that it has on a stream of its own.
    Said::Message(message.encode().split_off(4))
}

async fn write(mut writer: tokio::io::WriteHalf<DuplexStream>, mut queue: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(message) = queue.recv().await {
        if send(&mut writer, &message).await.is_err() {
            return;
        }
    }
    let _ = writer.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traced_process_has_the_name_of_its_node() {
        let part = |host: &str, processes| NodeProcesses {
            host: host.to_owned(),
            addresses: Vec::new(),
            processors: 0,
            processes,
        };
        let named = traced(4..7, "lab", &[part("n1", 2), part("n2", 1)]);
        let hosts: Vec<(u32, &str)> = named.iter().map(|(rank, _, host)| (*rank, host.as_str())).collect();
        assert_eq!(hosts, [(4, "n1"), (5, "n1"), (6, "n2")]);
    }
}
