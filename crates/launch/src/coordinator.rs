// SPDX-License-Identifier: Apache-2.0
//! The coordinator's loop: events in, co-allocation decides, commands out.

mod people;

use crate::connection::Failure;
use crate::connections::{Connections, ticks};
use crate::console::{Console, Print, Printer, Progress};
use crate::control;
use crate::credentials::{self, Credentials};
use crate::events::JobEvent;
use crate::files::Directories;
use crate::input::{InputTo, Source};
use crate::links::{JobLinks, LinkOptions};
use crate::output::{Files, Place};
use crate::paths::{Crossings, Messages};
use crate::question::Questions;
use crate::session::Session;
use crate::sharing::Access;
use crate::site::{Shared, SiteEvent};
use crate::worlds::{self, World};
use crate::{Options, Outcome, Statistics};
use isthmus_job::Job;
use isthmus_job::coallocation::{Action, Coallocation, State, Watch};
use isthmus_job::numbering::Machine;
use isthmus_job::{Subjob, Substitute};
use isthmus_wire::control::{Reply, Request};
use isthmus_wire::grid::{Arrival, Exit, FromAgent, Input, Reach, Scheduler, Stream, ToAgent};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// How often agents are asked whether they are there, and the progress display is looked after. Silence is counted in ticks that this
/// process has lived through, not by the clock: when the whole machine stood still (suspended, overloaded), what arrived meanwhile is
/// looked at before anybody is given up.
const TICK: Duration = Duration::from_millis(500);
/// A site that is being made ready and from which nothing was heard for so long is lost.
const STAGING_SILENCE: Duration = Duration::from_secs(60);
/// How long connections that were replaced may take to close once the job is over.
const DEPARTING: Duration = Duration::from_secs(3);
/// Exit status when the reader of our output is gone, as a shell tells it of SIGPIPE.
const SIGPIPE: u32 = 13;

/// What happens to a coordinator.
#[derive(Debug)]
pub(crate) enum Event {
    /// On a connection.
    Site(usize, SiteEvent),
    /// Output has been printed.
    Printed { connection: usize, bytes: usize },
    /// Output can no longer be printed.
    PrintFailed,
    /// Output can no longer be written into its file, for this reason.
    FileFailed(String),
    /// Everything before a mark has been printed.
    Marked,
    /// Standard input has been read.
    Input { source: usize, bytes: Vec<u8> },
    /// The user (or the system) asks for the end.
    Interrupt(u32),
    /// The terminal is gone.
    HangUp,
    /// The user typed an answer.
    Typed(String),
    /// Another command asks.
    Control {
        request: Request,
        reply: oneshot::Sender<Reply>,
    },
}

/// Runs a job.
pub(crate) async fn run(job: Job, mut options: Options, console: Box<dyn Console>) -> Outcome {
    let (sender, mut events) = mpsc::unbounded_channel();
    let mut session = options.session.take();
    let (printer, credentials, name) = match prepare(&job, &options, session.as_mut(), &sender, console) {
        Ok(parts) => parts,
        Err(error) => return Outcome::failure(format!("cannot start the coordinator: {error}")),
    };
    let crossings = match Crossings::new(&name, &job, &options) {
        Ok(crossings) => crossings,
        Err(error) => return Outcome::failure(format!("cannot start the coordinator: {error}")),
    };
    let mut coordinator = Coordinator::new((job, crossings), options, session, name, printer, credentials, sender);
    coordinator.start();
    coordinator.work(&mut events).await;
    coordinator.stage_out(&mut events).await;
    coordinator.finish(&mut events).await
}

type Parts = (Printer, Credentials, String);

fn prepare(
    job: &Job,
    options: &Options,
    session: Option<&mut Session>,
    events: &mpsc::UnboundedSender<Event>,
    console: Box<dyn Console>,
) -> std::io::Result<Parts> {
    for (kind, number) in [
        (SignalKind::interrupt(), 2),
        (SignalKind::terminate(), 15),
        (SignalKind::hangup(), 1),
    ] {
        if number == 1 && ignores_hang_up() {
            continue;
        }
        let mut signals = signal(kind)?;
        let events = events.clone();
        // A job outlives its terminal where its output has another place to go.
        let hangs_up = number == 1 && session.is_some();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                let event = if hangs_up {
                    Event::HangUp
                } else {
                    Event::Interrupt(number)
                };
                let _ = events.send(event);
            }
        });
    }
    let number = match session {
        Some(session) => {
            if let Some(listener) = session.take_listener() {
                control::serve(listener, events.clone())?;
            }
            session.name().to_owned()
        }
        None => isthmus_stage::content::hex(&credentials::random::<4>()?),
    };
    let name = format!("isthmus-{number}");
    let credentials = Credentials::new(&name, job.spans_wide_area())?;
    let files = Files::new(&number, &options.directory, options.output.clone(), job.subjobs());
    Ok((Printer::start(console, files, events.clone())?, credentials, name))
}

/// Whether somebody (nohup) wants the job to take no notice of it.
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:")).map(str::trim);
    mask.and_then(|m| u64::from_str_radix(m, 16).ok())
        .is_some_and(|mask| mask & 1 != 0)
}

fn reach(job: &Job) -> Reach {
    if job.spans_wide_area() {
        Reach::Wide
    } else if job.spans_nodes() {
        Reach::Site
    } else {
        Reach::Node
    }
}

/// What is known of a subjob beside its state.
struct Known {
    machine: Machine,
    /// What there is to say of its state.
    detail: String,
    told: Option<(State, String)>,
}

struct Coordinator {
    name: String,
    job: Job,
    /// The subjobs as they are placed now.
    subjobs: Vec<Subjob>,
    link_options: LinkOptions,
    silence: Duration,
    terminal: bool,
    interactive_input: InputTo,
    /// Once the processes begin.
    known_links: Option<JobLinks>,
    /// Ways between local areas.
    crossings: Crossings,
    /// Subjobs that are to begin as soon as the ways are settled.
    committing: Vec<Vec<usize>>,
    machine: Coallocation,
    known: Vec<Known>,
    connections: Connections,
    printer: Printer,
    credentials: Credentials,
    session: Option<Session>,
    questions: Questions,
    events: mpsc::UnboundedSender<Event>,
    shared: Arc<Shared>,
    began: Instant,
    sources: Vec<Source>,
    statistics: Statistics,
    /// Output can no longer be printed.
    unread: bool,
    /// Why output could not be written into its file.
    unwritten: Option<String>,
    leaving: bool,
    ticks: u64,
}

impl Coordinator {
    fn new(
        (job, crossings): (Job, Crossings),
        options: Options,
        session: Option<Session>,
        name: String,
        printer: Printer,
        credentials: Credentials,
        events: mpsc::UnboundedSender<Event>,
    ) -> Self {
        let watch = Watch {
            patience: options.patience,
            limit: options.limit,
            answers: options.terminal || session.as_ref().is_some_and(Session::is_kept),
        };
        let known = job.subjobs().iter().map(|_| Known {
            machine: Machine::unknown(),
            detail: String::new(),
            told: None,
        });
        let shared = Arc::new(Shared {
            reach: reach(&job),
            job: name.clone(),
            access: Access::new(&options.binary, &options.ssh, options.terminal),
            directories: Directories::default(),
            examine: false,
            options,
        });
        let options = &shared.options;
        Self {
            name,
            link_options: options.links.clone(),
            silence: options.silence,
            terminal: options.terminal,
            interactive_input: options.input,
            known_links: None,
            crossings,
            committing: Vec::new(),
            machine: Coallocation::new(&job, watch),
            known: known.collect(),
            subjobs: job.subjobs().to_vec(),
            job,
            connections: Connections::new(Arc::clone(&shared), events.clone()),
            printer,
            credentials,
            session,
            questions: Questions::default(),
            events,
            shared,
            began: Instant::now(),
            sources: Vec::new(),
            statistics: Statistics::default(),
            unread: false,
            unwritten: None,
            leaving: false,
            ticks: 0,
        }
    }

    /// Decides who gets which input and begins to reach all sites.
    fn start(&mut self) {
        let names: Vec<&str> = self.subjobs.iter().map(|s| s.site.as_str()).collect();
        self.tell(&JobEvent::begin(&self.name, self.job.processes(), &names));
        let inputs = self.inputs();
        for (number, input) in inputs.into_iter().enumerate() {
            let gateway = self.crossings.open(number);
            self.connections
                .start(number, self.subjobs[number].clone(), input, gateway);
        }
        self.tell_states();
        self.show_progress();
    }

    /// The input of each subjob: its own file, or a share of ours.
    fn inputs(&mut self) -> Vec<Input> {
        let places: Vec<Place> = self.subjobs.iter().map(|s| Place::of(s, "stdin")).collect();
        let firsts: Vec<u32> = self.machine.first_numbers().collect();
        let wanted = self.interactive_input;
        let mut inputs = Vec::with_capacity(places.len());
        let mut ours = Vec::new();
        for (site, place) in places.into_iter().enumerate() {
            let count = self.subjobs[site].count;
            let index = |rank: u32| rank.checked_sub(firsts[site]).filter(|index| *index < count);
            let input = match (&place, wanted) {
                (Place::There(_), _) | (Place::Here, InputTo::Nobody) => Input::Nobody,
                (Place::File(_), _) | (Place::Here, InputTo::All) => Input::All,
                (Place::Here, InputTo::First) => index(0).map_or(Input::Nobody, Input::One),
                (Place::Here, InputTo::Rank(rank)) => index(rank).map_or(Input::Nobody, Input::One),
            };
            match place {
                Place::File(path) => self.sources.push(Source::new(Some(path), [site])),
                _ if input != Input::Nobody => ours.push(site),
                _ => {}
            }
            inputs.push(input);
        }
        self.sources.push(Source::new(None, ours));
        inputs
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
            while let Some(action) = self.machine.poll_action() {
                self.act(action);
            }
            if !self.committing.is_empty() && self.crossings.unsettled_until().is_none() {
                for sites in std::mem::take(&mut self.committing) {
                    self.commit(&sites);
                }
            }
            self.tell_states();
        }
    }

    /// Fetches what the subjobs give back. An interrupt ends it; the directories end with their connections.
    async fn stage_out(&mut self, events: &mut mpsc::UnboundedReceiver<Event>) {
        let shared = Arc::clone(&self.shared);
        let emptying = shared
            .directories
            .empty(&shared.access, &shared.options.directory, &|_| {});
        tokio::pin!(emptying);
        loop {
            tokio::select! {
                problems = &mut emptying => {
                    problems.into_iter().for_each(|problem| self.notice(problem));
                    break;
                }
                Some(event) = events.recv() => match event {
                    Event::Interrupt(_) | Event::PrintFailed => break,
                    event @ Event::FileFailed(_) => self.handle(event),
                    _ => {}
                },
            }
        }
        self.machine.handle_staged_out();
        self.tell_states();
    }

    /// Prints what is left and says how it went. Only a further interrupt stops the printing.
    async fn finish(mut self, events: &mut mpsc::UnboundedReceiver<Event>) -> Outcome {
        let mut verdict = self.machine.verdict();
        self.printer.print(Print::Mark);
        loop {
            match events.recv().await {
                Some(event @ Event::FileFailed(_)) => self.handle(event),
                Some(Event::Interrupt(_) | Event::PrintFailed | Event::Marked) | None => break,
                Some(_) => {}
            }
        }
        // A job that is leaving takes no further verdict; one that lost output has not ended well.
        if let (0, Some(problem)) = (verdict.status, self.unwritten.take()) {
            (verdict.status, verdict.problem) = (1, Some(problem));
        }
        self.tell(&JobEvent::end(
            verdict.status,
            verdict.problem.as_deref(),
            &verdict.hint,
        ));
        self.printer.close();
        loop {
            tokio::select! {
                () = self.printer.finished() => break,
                Some(event) = events.recv() => if let Event::Interrupt(_) | Event::PrintFailed = event { break },
            }
        }
        if let Some(session) = self.session {
            session.close(verdict.status, verdict.problem.as_deref(), &verdict.hint);
        }
        let links = self.known_links.as_ref();
        Outcome {
            notice: links.and_then(JobLinks::keep),
            links: links.map(JobLinks::report).unwrap_or_default(),
            paths: self.crossings.report(),
            began: self.known_links.is_some(),
            status: verdict.status,
            problem: verdict.problem,
            hint: verdict.hint,
            statistics: self.statistics,
        }
    }

    fn handle(&mut self, event: Event) {
        let now = self.began.elapsed();
        match event {
            Event::Site(connection, event) => self.handle_site(connection, event, now),
            Event::Printed { connection, bytes } => {
                let credit = ToAgent::OutputCredit(u32::try_from(bytes).unwrap_or(u32::MAX));
                self.connections.send_on(connection, &credit);
            }
            Event::PrintFailed => {
                // Each further piece of output fails too; only the first is news.
                if !std::mem::replace(&mut self.unread, true) {
                    self.machine.handle_interrupt(SIGPIPE, now);
                }
            }
            Event::FileFailed(why) => {
                let problem = format!("output cannot be written: {why}");
                self.machine.handle_failed(&problem, now);
                self.unwritten.get_or_insert(problem);
            }
            Event::Marked => {}
            Event::Input { source, bytes } => self.pass_input(source, bytes),
            Event::Interrupt(signal) => self.machine.handle_interrupt(signal, now),
            Event::HangUp => self.hang_up(),
            Event::Typed(line) => self.take_answer(&line, now),
            Event::Control { request, reply } => {
                // Who asked may be gone.
                let _ = reply.send(self.answer(request, now));
            }
        }
    }

    fn handle_site(&mut self, connection: usize, event: SiteEvent, now: Duration) {
        self.connections.hear(connection);
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
                self.connections.set_host(connection, host.host);
                self.known[site].detail.clear();
                self.machine.handle_staging(site, now);
            }
            SiteEvent::Serving => self.connections.set_serving(connection),
            SiteEvent::Message(message) => self.handle_message(connection, site, message, now),
            SiteEvent::Notice(text) => self.notice_of(site, &text),
            SiteEvent::Closed(Failure { problem, hint, .. }) => {
                self.connections.close(connection);
                self.machine.handle_closed(site, &problem, &hint, now);
            }
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

    fn notice_of(&self, site: usize, text: &str) {
        self.notice(format!("site '{}': {text}", self.subjobs[site].site));
    }

    fn notice(&self, text: String) {
        self.tell(&JobEvent::notice(&text));
        self.printer.print(Print::Notice(text));
    }

    fn tell(&self, event: &JobEvent) {
        self.printer.print(Print::Event(event.line()));
    }

    fn handle_message(&mut self, connection: usize, site: usize, message: FromAgent, now: Duration) {
        match message {
            FromAgent::Queued { scheduler, id, why } => self.take_queued(site, scheduler, &id, &why, now),
            FromAgent::Suspended(stopped) => self.machine.handle_suspended(site, stopped),
            FromAgent::Started(parts) => {
                self.known[site].machine.parts = parts;
                self.machine.handle_started(site, now);
                self.start_input(site);
            }
            FromAgent::Refused { reason, hint } => self.machine.handle_site_failed(site, &reason, &hint, now),
            FromAgent::Arrived(arrivals) => self.take_arrivals(site, arrivals, now),
            FromAgent::Output { index, stream, bytes } => self.print(connection, site, index, stream, bytes),
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
                self.statistics.add(&counters);
                if let Some(links) = &mut self.known_links {
                    links.take(&counters.links);
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
            // Answers to what the site task asked; a late one changes nothing.
            FromAgent::Pong(..) | FromAgent::Hello(_) | FromAgent::File { .. } | FromAgent::Gone => {}
        }
    }

    fn tell_gateways(&self, messages: &Messages) {
        for (site, message) in messages {
            self.connections.send_gateway(*site, message);
        }
    }

    /// Number of a process: its rank, in the world of the job.
    fn number(&self, site: usize, index: u32) -> u32 {
        self.machine
            .first_numbers()
            .nth(site)
            .unwrap_or(0)
            .saturating_add(index)
    }

    fn print(&self, connection: usize, site: usize, index: u32, stream: Stream, bytes: Vec<u8>) {
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

    fn take_queued(&mut self, site: usize, scheduler: Scheduler, id: &str, why: &str, now: Duration) {
        self.machine.handle_queued(site, now);
        self.known[site].detail = match why {
            "" => format!("{scheduler} job {id}"),
            why => format!("{scheduler} job {id}, {why}"),
        };
        if !why.is_empty() {
            self.notice_of(site, &format!("{scheduler} job {id} waits in the queue ({why})"));
        }
    }

    fn take_exit(&mut self, site: usize, index: u32, exit: Exit, now: Duration) {
        let name = &self.subjobs[site].site;
        self.tell(&JobEvent::exit(self.number(site, index), name, exit));
        self.machine.handle_exited(site, index, exit, now);
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Commit(sites) => self.committing.push(sites),
            Action::Dismiss(sites) => {
                for site in sites {
                    self.connections.send(site, &ToAgent::Dismiss);
                }
            }
            Action::Drop { site, problem } => self.drop_site(site, &problem),
            Action::Substitute { site, place, problem } => self.substitute(site, place.as_ref(), &problem),
            Action::Ask { site, problem, hint } => self.ask(site, &problem, &hint),
            Action::Settled { site } => self.settle(site, "is there now"),
            Action::Abort { code, reason } => {
                self.committing.clear();
                self.connections.send_all(&ToAgent::Abort { code, reason });
            }
            Action::Signal(signal) => self.connections.send_all(&ToAgent::Signal(signal)),
            Action::Leave => {
                self.committing.clear();
                self.leaving = true;
                self.connections.end_all();
            }
        }
    }

    fn commit(&mut self, sites: &[usize]) {
        match self.world(sites) {
            Ok(world) => {
                if self.known_links.is_none() {
                    let messages = self.crossings.place(sites, &world.places);
                    self.tell_gateways(&messages);
                }
                for (&site, commit) in sites.iter().zip(world.commits) {
                    self.connections.send(site, &ToAgent::Commit(Box::new(commit)));
                }
                if self.known_links.is_none() {
                    self.known_links = Some(world.links);
                }
                if let Some(notice) = world.notice {
                    self.notice(notice);
                }
                let names: Vec<&str> = sites.iter().map(|&s| self.subjobs[s].site.as_str()).collect();
                let processes = sites.iter().map(|&s| self.subjobs[s].count).sum();
                self.tell(&JobEvent::start(&names, processes));
            }
            Err(problem) => {
                let problem = format!("{problem}; please report this");
                self.machine.handle_failed(&problem, self.began.elapsed());
            }
        }
    }

    fn world(&mut self, sites: &[usize]) -> Result<World, String> {
        let part = sites.iter().map(|&site| self.subjobs[site].clone()).collect();
        let job = Job::new(part).map_err(|error| error.to_string())?;
        let job = job.with_links(self.job.links().clone());
        let machines = sites.iter().map(|&site| {
            let unknown = Machine::unknown();
            std::mem::replace(&mut self.known[site].machine, unknown)
        });
        let machines = machines.collect();
        let hosts: Vec<String> = sites.iter().map(|&s| self.connections.host(s).to_owned()).collect();
        // Worlds have nothing to say to each other: each has an authority of its own.
        let further;
        let credentials = if self.known_links.is_none() {
            &self.credentials
        } else {
            further = Credentials::new(&self.name, self.job.spans_wide_area()).map_err(|e| e.to_string())?;
            &further
        };
        // Gateways serve the first world; processes of others connect by themselves.
        let paths = if self.known_links.is_none() {
            self.crossings.paths(sites)
        } else {
            Vec::new()
        };
        worlds::world(&job, machines, &hosts, credentials, &self.link_options, &paths)
    }

    fn drop_site(&mut self, site: usize, problem: &str) {
        self.connections.end_subjob(site);
        self.crossings.leave(site);
        self.questions_settled(site);
        let name = &self.subjobs[site].site;
        self.tell(&JobEvent::drop(name, problem));
        let mut text = format!("{problem}; the job goes on without it");
        if self.sources.iter().any(|s| s.readers().eq([site])) {
            text.push_str(", and nobody reads the standard input that was for it");
        }
        self.notice(text);
        self.sources.iter_mut().for_each(|s| s.remove(site));
    }

    fn substitute(&mut self, site: usize, place: Option<&Substitute>, problem: &str) {
        if let Some(place) = place {
            self.subjobs[site] = place.apply(&self.subjobs[site]);
        }
        self.questions_settled(site);
        self.known[site].machine = Machine::unknown();
        self.known[site].detail = place.map(|p| format!("at {p}")).unwrap_or_default();
        let subjob = self.subjobs[site].clone();
        let now_at = place.map_or_else(|| subjob.contact.to_string(), Substitute::to_string);
        self.tell(&JobEvent::substitute(&subjob.site, &now_at, problem));
        self.notice(format!("{problem}; trying '{now_at}'"));
        let firsts: Vec<u32> = self.machine.first_numbers().collect();
        let reads = self.sources.iter().any(|s| s.is_for(site));
        let input = match self.interactive_input {
            _ if !reads => Input::Nobody,
            InputTo::Rank(rank) => Input::One(rank.saturating_sub(firsts[site])),
            InputTo::First => Input::One(0),
            InputTo::All | InputTo::Nobody => Input::All,
        };
        self.crossings.leave(site);
        let gateway = self.crossings.open(site);
        self.connections.start(site, subjob, input, gateway);
    }

    fn pass_input(&mut self, source: usize, bytes: Vec<u8>) {
        let source = &mut self.sources[source];
        let readers: Vec<usize> = source.readers().collect();
        source.take(bytes.len());
        let message = ToAgent::Input(bytes);
        for site in readers {
            self.connections.send(site, &message);
        }
    }

    /// A subjob runs: its input may begin once all who share it run.
    fn start_input(&mut self, site: usize) {
        for (number, source) in self.sources.iter_mut().enumerate() {
            let known = &self.known;
            if source.is_for(site) && source.readers().all(|s| !known[s].machine.parts.is_empty()) {
                source.start(number, &self.events);
            }
        }
    }

    fn tick(&mut self) {
        self.ticks += 1;
        self.connections.send_all(&ToAgent::Ping(self.ticks));
        let now = self.began.elapsed();
        let (serving, staging) = (ticks(self.silence, TICK), ticks(STAGING_SILENCE, TICK));
        for connection in self.connections.tick(serving, staging) {
            if let Some(site) = self.connections.subjob(connection) {
                let problem = format!("nothing was heard from its agent for {} s", self.silence.as_secs());
                self.machine
                    .handle_closed(site, &problem, "check the network to the site", now);
            }
        }
        self.show_progress();
    }

    fn progress(&self) -> Vec<Progress> {
        let states = self.machine.states().zip(&self.known);
        let shown = states.map(|((site, state), known)| Progress {
            site: site.to_owned(),
            state,
            detail: match state {
                State::Pending | State::Suspended | State::Unsubmitted | State::StageIn => known.detail.clone(),
                _ => String::new(),
            },
        });
        shown.collect()
    }

    /// Progress is of interest as long as some site is not there.
    fn show_progress(&mut self) {
        let all = self.progress();
        let waits = |p: &Progress| match p.state {
            State::Unsubmitted | State::StageIn | State::Suspended => true,
            State::Pending => !p.detail.is_empty() && self.machine.deadline().is_none(),
            _ => false,
        };
        let shown = !self.leaving && all.iter().any(waits);
        self.printer.print_progress(if shown { all } else { Vec::new() });
    }

    /// Changes of states, as events.
    fn tell_states(&mut self) {
        let progress = self.progress();
        let mut changed = false;
        for (known, now) in self.known.iter_mut().zip(&progress) {
            let stands = (now.state, now.detail.clone());
            if known.told.as_ref() != Some(&stands) {
                let event = JobEvent::state(&now.site, &stands.0.to_string(), &stands.1);
                self.printer.print(Print::Event(event.line()));
                known.told = Some(stands);
                changed = true;
            }
        }
        if changed {
            self.printer.print(Print::States(progress));
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
