// SPDX-License-Identifier: Apache-2.0
//! The coordinator's loop: events in, co-allocation decides, commands out.

use crate::connection::Failure;
use crate::console::{Console, Print, Printer};
use crate::credentials::{self, Credentials};
use crate::files::Directories;
use crate::links::{JobLinks, LinkOptions};
use crate::sharing::Access;
use crate::site::{Shared, Site, SiteEvent};
use crate::{Options, Outcome, Statistics, input};
use isthmus_job::Job;
use isthmus_job::coallocation::{Action, Coallocation, State};
use isthmus_job::numbering::{self, Machine};
use isthmus_wire::grid::{Arrival, Commit, Exit, FromAgent, INPUT_WINDOW, Reach, Scheduler, ToAgent};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// How often agents are asked whether they are there, and the progress display is looked after.
const TICK: Duration = Duration::from_millis(500);
/// Every how many ticks a `Ping` goes out.
const PING_TICKS: u64 = 10;
/// A site from which nothing was heard for so long is lost.
const SILENCE: Duration = Duration::from_secs(60);
/// The same in ticks. Silence is counted in ticks that this process has lived through, not by the clock: when the whole machine
/// stood still (suspended, overloaded), what arrived meanwhile is looked at before anybody is given up.
const SILENT_TICKS: u32 = (SILENCE.as_millis() / TICK.as_millis()) as u32;
/// Exit status when the reader of our output is gone, as a shell tells it of SIGPIPE.
const SIGPIPE: u32 = 13;

/// What happens to a coordinator.
#[derive(Debug)]
pub(crate) enum Event {
    /// At a site.
    Site(usize, SiteEvent),
    /// Output has been printed.
    Printed { site: usize, bytes: usize },
    /// Output can no longer be printed.
    PrintFailed,
    /// The user (or the system) asks for the end.
    Interrupt(u32),
}

/// Runs a job.
pub(crate) async fn run(job: Job, options: Options, console: Box<dyn Console>) -> Outcome {
    let (sender, mut events) = mpsc::unbounded_channel();
    let prepared = prepare(&job, &sender, console);
    let (printer, credentials, name) = match prepared {
        Ok(parts) => parts,
        Err(error) => return Outcome::failure(format!("cannot start the coordinator: {error}")),
    };
    let (leaving, leaving_seen) = watch::channel(false);
    let shared = Arc::new(Shared {
        reach: reach(&job),
        job: name,
        access: Access::new(&options.binary, &options.ssh, options.interactive),
        directories: Directories::default(),
        options,
    });
    let links = start_sites(&job, &shared, &sender, &leaving_seen);
    let link_options = shared.options.links.clone();
    let mut coordinator = Coordinator {
        link_options,
        hosts: vec![String::new(); job.subjobs().len()],
        details: vec![String::new(); job.subjobs().len()],
        known_links: None,
        machine: Coallocation::new(&job, shared.options.patience),
        first_ranks: job.first_ranks(),
        arrivals: job.subjobs().iter().map(|_| Machine::unknown()).collect(),
        job,
        links,
        leaving,
        printer,
        credentials,
        began: Instant::now(),
        input: None,
        input_wanted: shared.options.input,
        input_credit: INPUT_WINDOW as usize,
        statistics: Statistics::default(),
        unread: false,
        ticks: 0,
    };
    coordinator.work(&mut events).await;
    coordinator.stage_out(&shared, &mut events).await;
    coordinator.finish(&mut events).await
}

type Parts = (Printer, Credentials, String);

fn prepare(job: &Job, events: &mpsc::UnboundedSender<Event>, console: Box<dyn Console>) -> std::io::Result<Parts> {
    for (kind, number) in [
        (SignalKind::interrupt(), 2),
        (SignalKind::terminate(), 15),
        (SignalKind::hangup(), 1),
    ] {
        let mut signals = signal(kind)?;
        let events = events.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                let _ = events.send(Event::Interrupt(number));
            }
        });
    }
    let name = format!("isthmus-{}", isthmus_stage::content::hex(&credentials::random::<6>()?));
    let credentials = Credentials::new(&name, job.spans_wide_area())?;
    Ok((Printer::start(console, events.clone())?, credentials, name))
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

fn start_sites(
    job: &Job,
    shared: &Arc<Shared>,
    events: &mpsc::UnboundedSender<Event>,
    leaving: &watch::Receiver<bool>,
) -> Vec<Link> {
    let sites = job.subjobs().iter().enumerate().map(|(number, subjob)| {
        let (commands, queue) = mpsc::unbounded_channel();
        let site = Site {
            number,
            subjob: subjob.clone(),
            shared: Arc::clone(shared),
            events: events.clone(),
            leaving: leaving.clone(),
        };
        tokio::spawn(site.run(queue));
        Link {
            commands,
            open: true,
            silent: None,
        }
    });
    sites.collect()
}

/// The coordinator's end of a site's task.
struct Link {
    commands: mpsc::UnboundedSender<Vec<u8>>,
    open: bool,
    /// Ticks since the agent was last heard, once it runs.
    silent: Option<u32>,
}

struct Coordinator {
    job: Job,
    link_options: LinkOptions,
    /// Where the agents are, by subjob.
    hosts: Vec<String>,
    /// How far files of the subjobs are on their way.
    details: Vec<String>,
    /// Once the processes begin.
    known_links: Option<JobLinks>,
    machine: Coallocation,
    first_ranks: Vec<u32>,
    arrivals: Vec<Machine>,
    links: Vec<Link>,
    leaving: watch::Sender<bool>,
    printer: Printer,
    credentials: Credentials,
    began: Instant,
    input: Option<mpsc::Receiver<Vec<u8>>>,
    input_wanted: bool,
    input_credit: usize,
    statistics: Statistics,
    /// Output can no longer be printed.
    unread: bool,
    ticks: u64,
}

impl Coordinator {
    async fn work(&mut self, events: &mut mpsc::UnboundedReceiver<Event>) {
        let mut ticker = tokio::time::interval(TICK);
        ticker.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        self.show_progress();
        while !self.machine.is_over() {
            let deadline = self.machine.deadline().map(|d| self.began + d);
            let may_read = self.input_credit >= input::PIECE;
            tokio::select! {
                Some(event) = events.recv() => self.handle(event),
                Some(bytes) = next_input(&mut self.input, may_read) => self.pass_input(bytes),
                () = until(deadline) => self.machine.handle_time(self.began.elapsed()),
                _ = ticker.tick() => self.tick(),
            }
            while let Some(action) = self.machine.poll_action() {
                self.act(action);
            }
        }
    }

    /// Fetches what the subjobs give back. An interrupt ends it; the directories end with their connections.
    async fn stage_out(&self, shared: &Shared, events: &mut mpsc::UnboundedReceiver<Event>) {
        let emptying = shared
            .directories
            .empty(&shared.access, &shared.options.directory, &|_| {});
        tokio::pin!(emptying);
        loop {
            tokio::select! {
                problems = &mut emptying => {
                    problems.into_iter().for_each(|problem| self.printer.print(Print::Notice(problem)));
                    return;
                }
                Some(event) = events.recv() => if let Event::Interrupt(_) | Event::PrintFailed = event { return },
            }
        }
    }

    /// Prints what is left and says how it went. Only a further interrupt stops the printing.
    async fn finish(mut self, events: &mut mpsc::UnboundedReceiver<Event>) -> Outcome {
        self.printer.close();
        loop {
            tokio::select! {
                () = self.printer.finished() => break,
                Some(event) = events.recv() => if let Event::Interrupt(_) | Event::PrintFailed = event { break },
            }
        }
        let verdict = self.machine.verdict();
        let links = self.known_links.as_ref();
        Outcome {
            notice: links.and_then(JobLinks::keep),
            links: links.map(JobLinks::report).unwrap_or_default(),
            status: verdict.status,
            problem: verdict.problem,
            hint: verdict.hint,
            statistics: self.statistics,
        }
    }

    fn handle(&mut self, event: Event) {
        let now = self.began.elapsed();
        match event {
            Event::Site(site, event) => self.handle_site(site, event, now),
            Event::Printed { site, bytes } => {
                self.send(site, &ToAgent::OutputCredit(u32::try_from(bytes).unwrap_or(u32::MAX)));
            }
            Event::PrintFailed => {
                // Each further piece of output fails too; only the first is news.
                if !std::mem::replace(&mut self.unread, true) {
                    self.machine.handle_interrupt(SIGPIPE, now);
                }
            }
            Event::Interrupt(signal) => self.machine.handle_interrupt(signal, now),
        }
    }

    fn handle_site(&mut self, site: usize, event: SiteEvent, now: Duration) {
        match event {
            SiteEvent::Progress => self.machine.handle_staging(site, now),
            SiteEvent::Staging(how) => {
                self.details[site] = how;
                self.machine.handle_staging(site, now);
            }
            SiteEvent::Hello(host) => {
                self.links[site].silent = Some(0);
                self.hosts[site] = host;
                self.details[site].clear();
                self.machine.handle_staging(site, now);
            }
            SiteEvent::Message(message) => {
                self.links[site].silent = Some(0);
                self.handle_message(site, message, now);
            }
            SiteEvent::Notice(text) => {
                let name = &self.job.subjobs()[site].site;
                self.printer.print(Print::Notice(format!("site '{name}': {text}")));
            }
            SiteEvent::Closed(Failure { problem, hint, .. }) => {
                self.links[site].open = false;
                self.machine.handle_closed(site, &problem, &hint, now);
            }
        }
        self.show_progress();
    }

    fn handle_message(&mut self, site: usize, message: FromAgent, now: Duration) {
        match message {
            FromAgent::Queued { scheduler, id, why } => self.take_queued(site, scheduler, &id, &why, now),
            FromAgent::Started(parts) => {
                self.arrivals[site].parts = parts;
                self.machine.handle_started(site, now);
                if site == 0 && self.input_wanted {
                    self.input = Some(input::start());
                }
            }
            FromAgent::Refused { reason, hint } => self.machine.handle_site_failed(site, &reason, &hint, now),
            FromAgent::Arrived(arrivals) => self.take_arrivals(site, arrivals, now),
            FromAgent::Output { index, stream, bytes } => {
                let rank = self.first_ranks[site].saturating_add(index);
                self.printer.print(Print::Output {
                    site,
                    rank,
                    stream,
                    bytes,
                });
            }
            FromAgent::InputCredit(bytes) => self.input_credit += bytes as usize,
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
                if index < self.job.subjobs()[site].count {
                    self.machine.handle_aborted(site, index, code, &reason, now);
                }
            }
            // Answers to what the site task asked; a late one changes nothing.
            FromAgent::Pong(_) | FromAgent::Hello(_) | FromAgent::File { .. } | FromAgent::Gone => {}
        }
    }

    fn take_arrivals(&mut self, site: usize, arrivals: Vec<Arrival>, now: Duration) {
        for arrival in arrivals {
            // First into the list: the last arrival commits.
            let index = arrival.index;
            self.arrivals[site].arrivals.push(arrival);
            if !self.machine.handle_arrived(site, index, now) {
                self.arrivals[site].arrivals.pop();
            }
        }
    }

    fn take_queued(&mut self, site: usize, scheduler: Scheduler, id: &str, why: &str, now: Duration) {
        self.machine.handle_queued(site, now);
        if !why.is_empty() {
            let name = &self.job.subjobs()[site].site;
            let text = format!("site '{name}': {scheduler} job {id} waits in the queue ({why})");
            self.printer.print(Print::Notice(text));
        }
    }

    fn take_exit(&mut self, site: usize, index: u32, exit: Exit, now: Duration) {
        self.machine.handle_exited(site, index, exit, now);
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Commit => self.commit(),
            Action::Dismiss => self.send_all(&ToAgent::Dismiss),
            Action::Abort { code, reason } => self.send_all(&ToAgent::Abort { code, reason }),
            Action::Signal(signal) => self.send_all(&ToAgent::Signal(signal)),
            Action::Leave => {
                self.send_all(&ToAgent::End);
                // Sites that are not there yet are given up.
                self.leaving.send_replace(true);
            }
        }
    }

    fn commit(&mut self) {
        match self.commitments() {
            Ok(commits) => {
                for (site, commit) in commits.into_iter().enumerate() {
                    self.send(site, &ToAgent::Commit(Box::new(commit)));
                }
            }
            Err(problem) => {
                self.machine
                    .handle_site_failed(0, &problem, "please report this", self.began.elapsed());
            }
        }
    }

    fn commitments(&mut self) -> Result<Vec<Commit>, String> {
        let places = numbering::place_table(&self.job, &self.arrivals).ok_or("the place table is incomplete")?;
        let authority = self.credentials.authority();
        let (links, problem) = JobLinks::new(&self.job, &self.hosts, &self.link_options);
        if let Some(problem) = problem {
            self.printer.print(Print::Notice(problem));
        }
        let table = links.table();
        self.known_links = Some(links);
        let mut commits = Vec::with_capacity(self.arrivals.len());
        for (machine, first_rank) in self.arrivals.iter_mut().zip(&self.first_ranks) {
            machine.arrivals.sort_by_key(|a| a.index);
            let certificates = machine
                .arrivals
                .iter()
                .map(|a| self.credentials.certificate(first_rank + a.index, a));
            commits.push(Commit {
                secret: self.credentials.secret,
                authority: authority.clone(),
                certificates: certificates.collect::<Result<_, _>>()?,
                places: places.clone(),
                links: table.clone(),
            });
        }
        Ok(commits)
    }

    fn pass_input(&mut self, bytes: Vec<u8>) {
        self.input_credit = self.input_credit.saturating_sub(bytes.len());
        if bytes.is_empty() {
            self.input = None;
        }
        self.send(0, &ToAgent::Input(bytes));
    }

    fn tick(&mut self) {
        self.ticks += 1;
        if self.ticks % PING_TICKS == 0 {
            self.send_all(&ToAgent::Ping(self.ticks));
        }
        let now = self.began.elapsed();
        for site in 0..self.links.len() {
            let link = &mut self.links[site];
            if let Some(ticks) = &mut link.silent {
                *ticks += 1;
            }
            if link.open && link.silent.is_some_and(|ticks| ticks > SILENT_TICKS) {
                let problem = format!("nothing was heard from its agent for {} s", SILENCE.as_secs());
                self.links[site].open = false;
                self.machine
                    .handle_closed(site, &problem, "check the network to the site", now);
            }
        }
        self.show_progress();
    }

    /// Progress is of interest as long as some site is not there.
    fn show_progress(&mut self) {
        let states = self.machine.states().zip(&self.details);
        let states: Vec<(String, State)> = states
            .map(|((name, s), how)| (format!("{name} {how}").trim_end().to_owned(), s))
            .collect();
        let starting = states
            .iter()
            .any(|(_, s)| matches!(s, State::Unsubmitted | State::StageIn));
        let shown = if starting && !*self.leaving.borrow() {
            states
        } else {
            Vec::new()
        };
        self.printer.print_progress(shown);
    }

    fn send(&self, site: usize, message: &ToAgent) {
        // A closed link has been or will be told by its task.
        let _ = self.links[site].commands.send(message.encode());
    }

    fn send_all(&self, message: &ToAgent) {
        (0..self.links.len()).for_each(|site| self.send(site, message));
    }
}

async fn next_input(input: &mut Option<mpsc::Receiver<Vec<u8>>>, may_read: bool) -> Option<Vec<u8>> {
    match input {
        Some(input) if may_read => input.recv().await,
        _ => std::future::pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
