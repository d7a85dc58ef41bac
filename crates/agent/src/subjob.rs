// SPDX-License-Identifier: Apache-2.0
//! A started subjob: its processes and what they and the coordinator say to each other.

use crate::asked::Questions;
use crate::condition::Conditions;
use crate::directories::Directories;
use crate::event::{Event, ToProcess, World};
use crate::figures::{Figures, overreach};
use crate::link::Outbox;
use crate::other_mpi;
use crate::processes::{self, Piece, Process, Redeemed, Seats, Source, Surroundings};
use crate::processors;
use crate::program::{self, Refusal};
use crate::reached;
use crate::rendezvous;
use crate::sink::{self, Sink, Sinks};
use crate::template::{Templates, check_count, check_descriptors, means_alone, place_of_memory, variable};
use crate::threads;
use crate::vendor::{self, Launcher, Underneath};
use isthmus_sched::fork::Template;
use isthmus_stage::words;
use isthmus_wire::boot::{self, Gone, Hello, Message};
use isthmus_wire::grid::{Arrival, Commit, Exit, FromAgent, Input, LauncherEnd, Reach, Start, Stream, ToAgent};
use isthmus_wire::question::{Answer, Question};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How long the connection of an exited process may stay open before its exit is told anyway.
const CLOSING: Duration = Duration::from_millis(300);
/// How long processes have to end by themselves after an abort before they get SIGTERM.
const ABORTING: Duration = Duration::from_millis(300);

/// A started subjob.
#[derive(Debug)]
pub(crate) struct Subjob {
    /// Index within the subjob of our first process, and how many processes that has on all its nodes.
    first: u32,
    of: u32,
    /// Whether processes listen.
    listens: bool,
    _door: rendezvous::Door,
    directories: Directories,
    /// By index.
    pub(crate) processes: Vec<Process>,
    /// The vendor MPI, if that starts the processes; its `mpiexec`, if we run that; input for those who take it, and
    /// where output goes.
    underneath: Option<Underneath>,
    launcher: Option<Launcher>,
    waiting_input: HashMap<u32, mpsc::UnboundedReceiver<Arc<Piece>>>,
    sinks: Sinks,
    /// Those who get the coordinator's input.
    input: Vec<mpsc::UnboundedSender<Arc<Piece>>>,
    arrivals: Vec<Arrival>,
    exits: Vec<(u32, Exit)>,
    /// What was started, with the indices of its processes, until it has been looked at whether it called another MPI.
    started: Vec<(Range<u32>, other_mpi::Ended)>,
    /// What the processes tell while they run.
    told: Figures,
    /// What they have asked the coordinator.
    asked: Questions,
    /// Name of their site, and the rank of our first one in their world, once they have begun.
    site: OnceLock<(String, u32)>,
    /// How the system treats the processes.
    conditions: Conditions,
    /// What processes of other sites reach here.
    shared: Vec<String>,
}

impl Subjob {
    /// Checks what is to be started and starts it. Must run on the agent's main thread.
    pub(crate) fn start(
        start: &Start,
        binary: &Path,
        outbox: &Outbox,
        events: &mpsc::Sender<Event>,
    ) -> Result<Self, Refusal> {
        check_count(start.count)?;
        check_descriptors(start.count)?;
        let templates = Templates::new(start, binary)?;
        let cannot = |error| {
            Refusal::new(
                format!("cannot make the directories of the job: {error}"),
                "one of $XDG_RUNTIME_DIR, /tmp, $TMPDIR and /dev/shm must let it write; a container may need --tmpfs /tmp",
            )
        };
        let directories = Directories::create(place_of_memory(start), binary).map_err(cannot)?;
        let door = rendezvous::listen(&directories.rendezvous(), events.clone(), outbox).map_err(cannot)?;
        let stdin = input_file(start, &templates.directory)?;
        let sinks = sink::open(start, &templates.directory, outbox)?;
        let mut subjob = Self {
            first: start.first,
            of: start.of,
            listens: start.reach != Reach::Node,
            _door: door,
            directories,
            processes: Vec::with_capacity(start.count as usize),
            underneath: None,
            launcher: None,
            waiting_input: HashMap::new(),
            sinks: sinks.clone(),
            input: Vec::new(),
            arrivals: Vec::new(),
            exits: Vec::new(),
            started: match start.first == 0 && !means_alone(start) {
                true => templates.iter().map(|(indices, one)| (indices, ended(one))).collect(),
                false => Vec::new(),
            },
            told: Figures::new(Instant::now()),
            asked: Questions::default(),
            site: OnceLock::new(),
            conditions: Conditions::default(),
            shared: reached::of(start, &templates.directories()),
        };
        if !start.vendor.is_empty() {
            if stdin.is_some() {
                let reason = "processes on the machine's own MPI cannot have a file as standard input";
                return Err(Refusal::new(reason, "give it to isthmus run as its standard input"));
            }
            subjob.prepare_input(start);
            subjob.go_underneath(start, templates, events)?;
            if start.count == start.of {
                subjob.launch(&[], events)?;
            }
            return Ok(subjob);
        }
        let rendezvous = subjob.directories.rendezvous();
        let processors = processors::of(start)?;
        let with = Surroundings {
            threads: shared_threads(start, processors.is_some(), &templates, &sinks.error),
            processors,
            seats: Seats {
                local: start.count,
                world: (start.reach == Reach::Node && start.count == start.of).then_some(start.of),
            },
            templates: &templates,
            rendezvous: &rendezvous,
            output: sinks.output,
            error: sinks.error,
            events,
        };
        subjob.fork(start, &with, stdin.as_deref())?;
        Ok(subjob)
    }

    /// Starts the processes. `stdin`: the file that they read.
    fn fork(&mut self, start: &Start, with: &Surroundings<'_>, stdin: Option<&Path>) -> Result<(), Refusal> {
        for index in 0..start.count {
            let gets_input = start.input == Input::All || start.input == Input::One(index);
            let source = match stdin {
                Some(path) => Source::File(path.to_owned()),
                None if gets_input => {
                    let (sender, receiver) = mpsc::unbounded_channel();
                    self.input.push(sender);
                    Source::Coordinator(receiver)
                }
                None => Source::Nowhere,
            };
            match processes::start(with, index, source) {
                Ok(process) => self.processes.push(process),
                Err(error) => {
                    self.signal(9);
                    let what = format!("process {} of {}", index + 1, start.count);
                    let template = with.templates.of(index);
                    let (arguments, environment) = (&template.arguments, &template.environment);
                    let hint = match error.kind() {
                        std::io::ErrorKind::WouldBlock => "ask for fewer processes or raise the limit (ulimit -u)",
                        _ => "",
                    };
                    return Err(program::not_started(&what, &error, arguments, environment, hint));
                }
            }
        }
        Ok(())
    }

    /// Keeps the coordinator's input for processes that somebody else starts.
    fn prepare_input(&mut self, start: &Start) {
        for index in 0..start.count {
            if start.input == Input::All || start.input == Input::One(index) {
                let (sender, receiver) = mpsc::unbounded_channel();
                self.input.push(sender);
                self.waiting_input.insert(index, receiver);
            }
        }
    }

    /// The vendor MPI will start the processes.
    fn go_underneath(
        &mut self,
        start: &Start,
        templates: Templates,
        events: &mpsc::Sender<Event>,
    ) -> Result<(), Refusal> {
        let cache = crate::place_for_files().map_err(|reason| Refusal::new(reason, ""))?;
        let cannot = |error| Refusal::new(format!("cannot prepare what the machine's own MPI starts: {error}"), "");
        let tokens = (0..start.count).map(|_| isthmus_stage::guarded::random::<16>());
        let tokens: Vec<_> = tokens.collect::<std::io::Result<_>>().map_err(cannot)?;
        self.processes = tokens.iter().map(|token| Process::expected(*token)).collect();
        let path = variable(start, "PATH").unwrap_or_default();
        let rendezvous = self.directories.rendezvous();
        let underneath = Underneath::prepare(start, &path, &cache, templates, &rendezvous, tokens, events)?;
        self.underneath = Some(underneath);
        Ok(())
    }

    /// The vendor MPI starts the processes of the subjob now, so many on each of these hosts; none: on this one.
    pub(crate) fn launch(&mut self, hosts: &[(String, u32)], events: &mpsc::Sender<Event>) -> Result<(), Refusal> {
        let Some(underneath) = self.underneath.as_ref().filter(|_| self.launcher.is_none()) else {
            return Ok(());
        };
        self.launcher = Some(underneath.launch(self.of, hosts, events)?);
        Ok(())
    }

    /// Ends all processes, and leaves what has started them to see that.
    pub(crate) fn kill_processes(&self) {
        self.processes.iter().for_each(|p| p.signal(9));
    }

    /// Sends a signal to all processes.
    pub(crate) fn signal(&self, signal: u32) {
        self.processes.iter().for_each(|p| p.signal(signal));
        // What the user sends is for the program; what ends a job ends its launcher.
        if let Some(launcher) = self.launcher.as_ref().filter(|_| matches!(signal, 9 | 15)) {
            launcher.signal(signal);
        }
    }

    /// Whether every process has ended.
    pub(crate) fn all_ended(&self) -> bool {
        // What was never started ends with whoever was to start it.
        let mut begun = self
            .processes
            .iter()
            .filter(|p| p.pid != 0 || self.underneath.is_none());
        begun.all(|p| p.exit.is_some()) && self.launcher.as_ref().is_none_or(|l| l.ended)
    }

    /// Sends what has been collected.
    pub(crate) fn flush(&mut self, outbox: &Outbox) {
        if !self.arrivals.is_empty() {
            outbox.send(&FromAgent::Arrived(std::mem::take(&mut self.arrivals)));
        }
        if !self.exits.is_empty() {
            if self.processes.iter().all(|p| p.exit.is_some()) {
                self.tell_who_was_called(outbox);
            }
            outbox.send(&FromAgent::Exited(std::mem::take(&mut self.exits)));
        }
    }

    /// All have ended: if what they ran calls another MPI, the user is told.
    fn tell_who_was_called(&mut self, outbox: &Outbox) {
        let started = std::mem::take(&mut self.started);
        let several = started.len() > 1;
        for (indices, started) in started {
            let index = indices.start;
            let count = if several { indices.end - index } else { self.of };
            let all = self.processes.iter().skip(index as usize).take(count as usize);
            let note = if all.clone().any(Process::has_called) {
                let ended_well = all.clone().all(|p| p.exit == Some(Exit::Status(0)));
                ended_well.then(|| started.called()).flatten()
            } else {
                started.none_called(count)
            };
            let Some(note) = note else { continue };
            let text = format!("isthmus: note: {note}\n");
            let (stream, bytes) = (Stream::Error, text.into_bytes());
            outbox.send(&FromAgent::Output { index, stream, bytes });
        }
    }

    /// Tells what the processes have exchanged with other sites and where their time went, if that has changed.
    pub(crate) fn tell_what_passed(&mut self, outbox: &Outbox) {
        if let Some(traffic) = self.told.traffic(Instant::now()) {
            outbox.send(&FromAgent::Traffic { first: 0, traffic });
        }
        if let Some(time) = self.told.time() {
            outbox.send(&FromAgent::Time(0, time));
        }
    }

    /// Tells which processes have been stopped or swapped out since the last time.
    pub(crate) fn tell_conditions(&mut self, outbox: &Outbox) {
        let changed = self.conditions.look(&self.processes);
        if !changed.is_empty() {
            outbox.send(&FromAgent::Conditions(changed));
        }
    }

    /// Handles what a process did.
    pub(crate) fn handle(&mut self, event: Event, outbox: &Outbox, events: &mpsc::Sender<Event>) {
        let site = self.site.get().map_or("", |(name, _)| name.as_str());
        let event = match overreach(&event, site) {
            Some((index, what)) => {
                let (code, reason) = (1, broken(&what));
                Event::Aborted { index, code, reason }
            }
            None => event,
        };
        match event {
            Event::Hello { hello, process } => self.handle_hello(hello, process, outbox),
            Event::Finished { index, counters } => {
                self.flush(outbox);
                outbox.send(&FromAgent::Finished { index, counters });
            }
            Event::Traffic { index, traffic } => {
                self.told.take_traffic(index, traffic, Instant::now());
            }
            Event::Time { index, time } => self.told.take_time(index, time),
            Event::Waiting { index, waiting } => outbox.send(&FromAgent::Waiting { index, waiting }),
            Event::Asked { index, question } => self.ask(index, question, outbox),
            Event::Aborted { index, code, reason } => self.abort(index, code, reason, outbox),
            Event::Closed { index } => {
                self.asked.forget(index);
                self.process(index).connection = None;
                self.report(index);
            }
            Event::Exited { index, exit } => {
                let process = self.process(index);
                process.exit = Some(exit);
                if process.connection.is_some() {
                    // What it said last is still on its way: first that, then its end.
                    later(CLOSING, Event::ExitOverdue { index }, events);
                } else {
                    self.report(index);
                }
            }
            Event::Guarded {
                index,
                pid,
                pipes,
                exit,
                noted,
            } => {
                let input = self.waiting_input.remove(&index);
                match processes::attend(pid, index, pipes, (exit, noted), input, &self.sinks, events) {
                    Ok(readers) => self.process(index).adopt(pid, readers),
                    Err(error) => outbox.send(&FromAgent::Refused {
                        reason: format!("cannot read the output of process {index}: {error}"),
                        hint: String::new(),
                    }),
                }
            }
            Event::LauncherEnded(end) => {
                if let Some(launcher) = &mut self.launcher {
                    launcher.ended = true;
                }
                if self.of as usize > self.processes.len() {
                    outbox.send(&FromAgent::LauncherEnded(end.clone()));
                }
                self.handle_launcher_end(&end, outbox);
            }
            Event::Misplaced(refusal) => outbox.send(&refusal.into()),
            Event::ExitOverdue { index } => self.report(index),
            Event::AbortOverdue => self.signal(15),
            // The agent's own.
            Event::FromCoordinator(_)
            | Event::CoordinatorLost
            | Event::LinkLost(_)
            | Event::Resumed(_)
            | Event::InputTaken(_)
            | Event::Beside(_)
            | Event::Gateway(_)
            | Event::GatewayEnded
            | Event::GatewayDue
            | Event::Batch(_) => {}
        }
    }

    /// Handles what the coordinator said.
    pub(crate) fn handle_coordinator(&self, message: ToAgent, events: &mpsc::Sender<Event>) {
        match message {
            ToAgent::Commit(commit) => self.commit(*commit),
            ToAgent::Dismiss => self.tell_all(&Message::Dismissed),
            ToAgent::Gone(gone) => {
                self.end_decided(&gone);
                self.tell_all(&Message::Gone(gone));
            }
            ToAgent::Abort { code, reason } => {
                self.tell_all(&Message::Abort { code, reason });
                self.processes
                    .iter()
                    .filter(|p| p.connection.is_none())
                    .for_each(|p| p.signal(15));
                later(ABORTING, Event::AbortOverdue, events);
            }
            ToAgent::Signal(signal) => self.signal(signal),
            ToAgent::Input(bytes) => {
                let piece = Piece::new(bytes, self.input.len());
                for reader in &self.input {
                    let _ = reader.send(Arc::clone(&piece));
                }
            }
            // The rest is handled by the agent itself.
            _ => {}
        }
    }

    fn ask(&mut self, index: u32, question: Question, outbox: &Outbox) {
        match self.asked.ask(index, question.clone()) {
            Ok(()) => outbox.send(&FromAgent::Asked { index, question }),
            Err(what) => self.abort(index, 1, broken(&what), outbox),
        }
    }

    /// A process ends the job.
    fn abort(&mut self, index: u32, code: i32, reason: String, outbox: &Outbox) {
        self.flush(outbox);
        outbox.send(&FromAgent::Aborted { index, code, reason });
    }

    /// The coordinator answers a process. One that does not wait for that hears nothing.
    pub(crate) fn answer(&mut self, index: u32, answer: Answer) {
        if self.asked.answered(index, &answer) {
            self.process(index).tell(ToProcess::Message(Message::Answer(answer)));
        }
    }

    /// What has not been answered, or lasts.
    pub(crate) fn asked(&self) -> &Questions {
        &self.asked
    }

    fn handle_hello(&mut self, hello: Hello, process: mpsc::UnboundedSender<ToProcess>, outbox: &Outbox) {
        let index = hello.index;
        let Some(own) = self.processes.get_mut(index as usize) else {
            return;
        };
        match own.redeem(&hello.token) {
            Redeemed::First => {}
            Redeemed::Never => return,
            Redeemed::Again => {
                let reason = "this process of the job has called MPI_Init before, in a program that ran before this one or has started it: \
                    a process of a job runs one MPI program; start programs that follow each other with an `isthmus run` each";
                let _ = process.send(ToProcess::Message(Message::Abort {
                    code: boot::NOT_LET_IN,
                    reason: reason.to_owned(),
                }));
                return;
            }
        }
        if hello.version != boot::VERSION {
            let reason = format!(
                "its MPI library speaks version {} of the start-up protocol, this launcher {}",
                hello.version,
                boot::VERSION
            );
            return outbox.send(&FromAgent::Aborted { index, code: 1, reason });
        }
        let _ = process.send(ToProcess::Accepted { index });
        own.connection = Some(process);
        // One that cannot listen says next why the job must end: it is no member that others wait for.
        if hello.port == 0 && self.listens {
            return;
        }
        self.arrivals.push(Arrival {
            index,
            pid: hello.pid,
            port: hello.port,
            representation: hello.representation,
            vendor: hello.vendor,
            signing_request: hello.signing_request,
        });
    }

    /// Processes that have begun are told by their guards; those that have not will not.
    pub(crate) fn handle_launcher_end(&mut self, end: &LauncherEnd, outbox: &Outbox) {
        let all = (0..).zip(&self.processes);
        let missing = all.filter(|(_, p)| p.pid == 0 && p.exit.is_none());
        let missing: Vec<u32> = missing.map(|(index, _)| index).collect();
        if missing.is_empty() {
            return;
        }
        outbox.send(&vendor::failure(end.exit, &end.said).into());
        for index in missing {
            self.process(index).exit = Some(end.exit);
        }
    }

    fn commit(&self, commit: Commit) {
        let Some(own) = commit.places.subjobs.get(commit.subjob as usize) else {
            return;
        };
        let first_rank = own.first_rank.saturating_add(self.first);
        let _ = self.site.set((own.name.clone(), first_rank));
        let world = Arc::new(World {
            job: commit.name.clone(),
            first_rank,
            shared_memory: self.directories.shared_memory(),
            node_directory: self.directories.node().to_owned(),
            shared: self.shared.clone(),
            commit,
        });
        for process in &self.processes {
            process.tell(ToProcess::World(Arc::clone(&world)));
        }
    }

    /// Whoever was decided to be dead does not live on.
    fn end_decided(&self, gone: &Gone) {
        let Some((_, first)) = self.site.get().filter(|_| gone.is_own_world()) else {
            return;
        };
        let ranks = gone.ranks(u32::MAX);
        let all = (*first..).zip(&self.processes);
        let decided = all.filter(|(rank, p)| ranks.contains(rank) && p.exit.is_none());
        decided.for_each(|(_, process)| process.signal(9));
    }

    fn tell_all(&self, message: &Message) {
        for process in &self.processes {
            process.tell(ToProcess::Message(message.clone()));
        }
    }

    fn report(&mut self, index: u32) {
        let process = self.process(index);
        if let (Some(exit), false) = (process.exit, process.reported) {
            process.reported = true;
            self.exits.push((index, exit));
        }
    }

    /// Indices of events come from tasks that were made with valid ones.
    fn process(&mut self, index: u32) -> &mut Process {
        &mut self.processes[index as usize]
    }
}

/// The file that is the standard input of the processes, if one is.
fn input_file(start: &Start, directory: &Path) -> Result<Option<PathBuf>, Refusal> {
    let stdin = (!start.stdin.is_empty()).then(|| directory.join(words::path(&start.stdin)));
    if let Some(path) = &stdin {
        // Whoever opens a pipe with a name waits until somebody writes into it.
        let readable = || {
            rustix::fs::access(path, rustix::fs::Access::READ_OK)?;
            match std::fs::metadata(path)?.is_dir() {
                true => Err(rustix::io::Errno::ISDIR.into()),
                false => Ok(()),
            }
        };
        readable().map_err(|error: std::io::Error| {
            let reason = format!("cannot read the input file '{}': {error}", path.display());
            Refusal::new(reason, "the path is one at that machine")
        })?;
    }
    Ok(stdin)
}

/// What is looked at when the processes of a program have ended.
fn ended(template: &Template) -> other_mpi::Ended {
    other_mpi::Ended {
        program: template.program.clone(),
        arguments: template.arguments.clone(),
        directory: template.directory.clone(),
        environment: template.environment.clone(),
    }
}

/// How many threads each process is told to start, which is said beside what the first one prints.
fn shared_threads(start: &Start, bound: bool, templates: &Templates, error: &Sink) -> Option<usize> {
    let threads = threads::share(start, bound)?;
    let mut programs = templates.iter().map(|(_, template)| &template.program);
    let note = programs.find_map(|program| threads::note(program, start.count, threads));
    let note = note.filter(|_| start.first == 0);
    if let Some(note) = note {
        let error = error.clone();
        tokio::spawn(async move { error.write(0, Stream::Error, note.into_bytes()).await });
    }
    Some(threads)
}

/// That a process has said what it may not.
fn broken(what: &str) -> String {
    format!("it broke the protocol: {what}")
}

fn later(after: Duration, event: Event, events: &mpsc::Sender<Event>) {
    let events = events.clone();
    tokio::spawn(async move {
        tokio::time::sleep(after).await;
        let _ = events.send(event).await;
    });
}
