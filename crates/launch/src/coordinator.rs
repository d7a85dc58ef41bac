// SPDX-License-Identifier: Apache-2.0
//! The coordinator's loop: events in, co-allocation decides, commands out.

mod actions;
mod added;
mod agreeing;
mod answering;
mod asked;
mod away;
mod board;
mod connecting;
mod early;
mod ending;
mod holding;
mod joined;
mod leaders;
mod losing;
pub(crate) mod open;
mod pending;
mod people;
mod sites;
mod spawning;
mod state;
mod stop;
mod view;

use crate::console::{Console, Printer, Written};
use crate::control;
use crate::credentials::Credentials;
use crate::events::JobEvent;
use crate::happening::Event;
use crate::input;
use crate::meeting::{MeetingHost, When};
use crate::output::Files;
use crate::parts::Gathered;
use crate::paths::Crossings;
use crate::record::Record;
use crate::session::Session;
use crate::trace::TraceFile;
use crate::{Options, Outcome};
use isthmus_job::Job;
use isthmus_wire::control::Request;
use isthmus_wire::grid::ToAgent;
use state::{Coordinator, Prepared, TICK};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How long connections that were replaced may take to close once the job is over.
const DEPARTING: Duration = Duration::from_secs(3);
/// Exit status when the reader of our output is gone, as a shell tells it of SIGPIPE.
pub(crate) const SIGPIPE: u32 = 13;

/// Runs a job.
pub(crate) async fn run(
    job: Job,
    mut options: Options,
    console: Box<dyn Console>,
    trace: Option<TraceFile>,
    gathered: Gathered,
) -> Outcome {
    let (sender, mut events) = mpsc::unbounded_channel();
    let mut session = options.session.take();
    let when = if gathered.is_empty() { When::Now } else { When::Wanted };
    let prepared = prepare(&job, &options, session.as_mut(), &sender, console, trace, when);
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            let outcome = Outcome::unstarted(&error);
            gathered.over(outcome.status, outcome.problem.as_deref(), "").await;
            options.session = session;
            return outcome.closing(options.unbegun());
        }
    };
    let interrupts = sender.clone();
    gathered.hear_interrupts(move |part, signal| drop(interrupts.send(Event::PartInterrupt { part, signal })));
    let mut coordinator = Coordinator::new(job, options, session, gathered, prepared, sender);
    match coordinator.shared.options.held.clone() {
        Some(held) => coordinator.take_up(&held),
        None => coordinator.start(),
    }
    coordinator.work(&mut events).await;
    coordinator.stage_out(&mut events).await;
    coordinator.finish(&mut events).await
}

fn prepare(
    job: &Job,
    options: &Options,
    mut session: Option<&mut Session>,
    events: &mpsc::UnboundedSender<Event>,
    console: Box<dyn Console>,
    trace: Option<TraceFile>,
    when: When,
) -> std::io::Result<Prepared> {
    listen_to_signals(events)?;
    let number = match &mut session {
        Some(session) => {
            if let Some(listener) = session.take_listener() {
                control::serve(listener, events.clone())?;
            }
            session.name().to_owned()
        }
        None => isthmus_stage::content::hex(&isthmus_stage::guarded::random::<4>()?),
    };
    let name = format!("isthmus-{number}");
    let credentials = Credentials::new(&name, job.spans_nodes())?;
    let files = Files::new(&number, &options.directory, options.output.clone(), job.subjobs());
    let files = if options.held.is_some() {
        files.going_on()
    } else {
        files
    };
    // Jobs over several sites are worth a picture. Without a place for a record there is none: `isthmus report` says
    // so.
    let subjobs: Vec<(&str, u32)> = job.subjobs().iter().map(|s| (s.site.as_str(), s.count)).collect();
    let record = session.filter(|_| subjobs.len() > 1).and_then(|s| match options.held {
        Some(_) => Record::go_on(s).ok(),
        None => Record::begin(s, &subjobs).ok(),
    });
    let printer = Printer::start(console, Written { files, trace, record }, events.clone())?;
    let crossings = Crossings::new(&name, job, options)?;
    let meeting = options.meet.as_deref();
    let meeting = meeting.map(|host| MeetingHost::begin(host, &options.ssh, options.terminal, events, when));
    Ok(Prepared {
        name,
        printer,
        credentials,
        crossings,
        meeting: meeting.transpose()?,
    })
}

/// Makes events of the signals that this process gets.
pub(crate) fn listen_to_signals(events: &mpsc::UnboundedSender<Event>) -> std::io::Result<()> {
    for (kind, number) in [
        (SignalKind::interrupt(), 2),
        (SignalKind::quit(), 3),
        (SignalKind::terminate(), 15),
        (SignalKind::hangup(), 1),
    ] {
        if number == 1 && away::is_ignored(1) {
            continue;
        }
        let mut signals = signal(kind)?;
        let events = events.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                if number == 1 {
                    let _ = events.send(Event::HangUp);
                }
                let _ = events.send(Event::Interrupt(number));
            }
        });
    }
    away::forward(events)
}

impl Coordinator {
    /// Decides who gets which input and begins to reach all sites.
    fn start(&mut self) {
        let names: Vec<&str> = self.subjobs.iter().map(|s| s.site.as_str()).collect();
        self.printer
            .tell(&JobEvent::begin(&self.name, self.job.processes(), &names));
        let firsts: Vec<u32> = self.machine.subjobs().first_numbers().collect();
        let inputs = self.inputs.deal(&self.subjobs, &firsts);
        for (number, input) in inputs.into_iter().enumerate() {
            let gateway = self.crossings.open(number);
            self.connections
                .start(number, self.subjobs[number].clone(), input, gateway);
        }
        self.tell_states();
        self.show_progress();
    }

    async fn work(&mut self, events: &mut mpsc::UnboundedReceiver<Event>) {
        let mut ticker = tokio::time::interval(TICK);
        ticker.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut over: Option<Instant> = None;
        loop {
            if self.machine.is_over() {
                let since = *over.get_or_insert_with(Instant::now);
                if !self.connections.some_depart() || since.elapsed() > DEPARTING {
                    return;
                }
            }
            let deadline = self.machine.deadline().map(|d| self.began + d);
            let waiting = !self.committing.is_empty();
            let settling = self.crossings.unsettled_until().filter(|_| waiting);
            tokio::select! {
                Some(event) = events.recv() => self.handle(event),
                () = until(deadline) => self.machine.handle_time(self.began.elapsed()),
                () = until(settling.map(Instant::from_std)) => {}
                _ = ticker.tick() => self.tick(),
            }
            self.hear_early();
            while let Some(action) = self.machine.poll_action() {
                self.act(action);
            }
            let told = self.agreements.settled(self.machine.subjobs());
            answering::answer_all(self, told);
            if !self.committing.is_empty() && self.crossings.unsettled_until().is_none() {
                for sites in std::mem::take(&mut self.committing) {
                    self.commit(&sites);
                }
            }
            self.tell_states();
            people::detach(self);
            self.stop.stop_when_told();
        }
    }

    fn handle(&mut self, event: Event) {
        let now = self.began.elapsed();
        match event {
            Event::Site(connection, event) => self.handle_site(connection, event, now),
            Event::Printed { connection, bytes } => {
                self.connections.printed(connection, bytes);
                let credit = ToAgent::OutputCredit(u32::try_from(bytes).unwrap_or(u32::MAX));
                self.connections.send_on(connection, &credit);
            }
            Event::PrintFailed => {
                // Each further piece of output fails too; only the first is news.
                if !std::mem::replace(&mut self.unread, true) {
                    people::interrupt(self, SIGPIPE, now);
                }
            }
            Event::FileFailed { why, hint } => {
                let problem = format!("output cannot be written: {why}");
                self.machine.handle_failed(&problem, hint, now);
                self.unwritten.get_or_insert(problem);
            }
            Event::Marked | Event::Fetching { .. } => {}
            Event::Input { source, bytes } => self.pass_input(source, bytes),
            Event::InputFailed(why) => self.printer.notice(input::cut_short(&why)),
            Event::Interrupt(signal) => people::interrupt(self, signal, now),
            Event::PartInterrupt { part, signal } => self.machine.handle_interrupt(&part, signal, now),
            Event::Forward(signal) => self.forward(signal),
            Event::HangUp => self.hang_up(),
            Event::Asking(turn) => self.let_ask(turn),
            Event::Met(met) => answering::met(self, met),
            Event::Typed(line) => self.take_answer(&line, now),
            Event::Control {
                request: Request::Adding(number),
                reply,
            } => self.added.ask(number, reply),
            Event::Control { request, reply } => {
                // Who asked may be gone.
                let _ = reply.send(self.answer(request, now));
            }
        }
    }

    fn pass_input(&mut self, source: usize, bytes: Vec<u8>) {
        // Who answers a question types into the same terminal as who feeds the program.
        if !bytes.is_empty() && self.inputs.is_typed(source) {
            if self.shared.access.asking.give(&bytes) {
                return self.inputs.pass_over(source);
            }
            if self.questions.now().is_some() {
                self.inputs.pass_over(source);
                return self.take_answer(&String::from_utf8_lossy(&bytes), self.began.elapsed());
            }
        }
        let readers = self.inputs.take(source, bytes.len());
        self.connections.send_some(&readers, &ToAgent::Input(bytes));
    }
}

pub(crate) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
