// SPDX-License-Identifier: Apache-2.0
//! The agent: one per subjob. It stages files, starts the processes, serves their rendezvous, passes their
//! output on, and makes sure that nothing of the job outlives the connection to the coordinator. Agents of subjobs that
//! are added later at its machine it starts beside itself, and its connection carries theirs ([`neighbours`]).
//!
//! Everything that happens becomes an [`event::Event`] in one queue; one loop handles them in order.
#![forbid(unsafe_code)]

mod asked;
mod batch;
mod condition;
mod directories;
mod event;
mod figures;
mod gateway;
mod guard;
mod happening;
mod leave;
mod link;
mod machine;
mod neighbours;
mod node;
mod other_mpi;
mod pipes;
mod processes;
mod processors;
mod program;
mod reached;
mod rendezvous;
mod secure;
mod sink;
mod subjob;
mod succession;
mod sweeper;
mod template;
mod threads;
mod too_new;
mod vendor;
mod vigil;
mod working_directory;

pub use guard::{GUARD, run as run_guard};
pub use isthmus_sched::fork::{TRAMPOLINE, trampoline};
pub use node::run as run_node;
pub use processors::count as count_parts;
pub use secure::secure;
pub use succession::carry as run_successor;
pub use sweeper::{SWEEPER, sweep};

use asked::Questions;
use batch::{Batch, StagedFile};
use event::{Event, Resumed};
use gateway::Gateway;
use isthmus_stage::cache;
use isthmus_stage::store::{Incoming, Store};
use isthmus_stage::workspace::Workspace;
use isthmus_wire::codec::Deframer;
use isthmus_wire::gateway::FromGateway;
use isthmus_wire::grid::{FileState, FromAgent, Hash, Hold, Start, ToAgent};
use link::{Outbox, Successor};
use neighbours::Neighbours;
use program::Refusal;
use rustix::process::Signal;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use subjob::Subjob;
use succession::Succession;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use vigil::{Finding, STEP, Vigil};

/// Events that may wait; whoever makes more of them waits too.
const QUEUE: usize = 256;

/// Serves a coordinator over standard input and output until the job has ended. `binary` is the path of the `isthmus`
/// binary. Processes are tied to the life of the calling thread. `home`: the launcher itself has started this.
pub fn run(binary: PathBuf, home: bool) -> io::Result<()> {
    // Neither a Ctrl-C at the coordinator's terminal nor its end may reach us other than through the connection.
    let _ = rustix::process::setsid();
    prepare();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let input = tokio::net::unix::pipe::Receiver::from_file_unchecked(owned(io::stdin())?)?;
        let output = tokio::net::unix::pipe::Sender::from_file_unchecked(owned(io::stdout())?)?;
        serve(input, output, binary, if home { Role::Home } else { Role::Site }).await
    });
    runtime.shutdown_background();
    result
}

/// What every process that starts others does first.
fn prepare() {
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    raise_descriptor_limit();
}

/// A descriptor of our own for a standard stream, so that it can be made non-blocking.
fn owned(stream: impl std::os::fd::AsFd) -> io::Result<std::fs::File> {
    let file = std::fs::File::from(stream.as_fd().try_clone_to_owned()?);
    rustix::io::ioctl_fionbio(&file, true)?;
    Ok(file)
}

fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(65_536, |m| m.min(65_536));
    if limit.current.is_some_and(|current| current < most) {
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(most),
                maximum: limit.maximum,
            },
        );
    }
}

async fn serve<R, W>(reader: R, writer: W, binary: PathBuf, role: Role) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (sender, events) = mpsc::channel(QUEUE);
    let (outbox, writing) = Outbox::new(Box::new(writer), sender.clone());
    tokio::spawn(link::read(reader, Deframer::default(), sender.clone(), 0));
    for kind in [SignalKind::hangup(), SignalKind::terminate(), SignalKind::interrupt()] {
        end_on_signal(kind, sender.clone())?;
    }
    outbox.send(&FromAgent::Hello(machine::hello()));
    let mut agent = Agent {
        neighbours: Neighbours::new(&binary),
        binary,
        outbox,
        events,
        sender,
        store: None,
        incoming: None,
        files: Vec::new(),
        subjob: None,
        batch: None,
        vigil: Vigil::new(role == Role::Home),
        role,
        gateway: None,
        workspace: None,
        works: None,
        place: None,
        succession: None,
        link: 0,
    };
    let end = agent.work().await;
    leave::leave(agent, end, writing).await;
    Ok(())
}

fn end_on_signal(kind: SignalKind, events: mpsc::Sender<Event>) -> io::Result<()> {
    let mut signals = signal(kind)?;
    tokio::spawn(async move {
        while signals.recv().await.is_some() {
            let _ = events.send(Event::CoordinatorLost).await;
        }
    });
    Ok(())
}

/// Where the agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// On the launcher's machine.
    Home,
    /// On the machine that ssh reaches.
    Site,
    /// On a node of an allocation.
    Node,
}

/// Why the agent leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The coordinator said so and awaits `Gone`.
    Told,
    /// The coordinator is lost.
    Lost,
}

struct Agent {
    binary: PathBuf,
    outbox: Outbox,
    neighbours: Neighbours,
    events: mpsc::Receiver<Event>,
    sender: mpsc::Sender<Event>,
    store: Option<Store>,
    incoming: Option<(StagedFile, Incoming)>,
    /// What has been staged.
    files: Vec<StagedFile>,
    subjob: Option<Subjob>,
    /// In place of it, when the machine's scheduler starts the processes.
    batch: Option<Batch>,
    vigil: Vigil,
    role: Role,
    gateway: Option<Gateway>,
    /// The directory of the subjob's files, which stays as long as we do.
    workspace: Option<Workspace>,
    /// Where the processes work, when nobody named it.
    works: Option<working_directory::WorkingDirectory>,
    /// What the place for a successor is called.
    place: Option<String>,
    /// Another connection may follow this one.
    succession: Option<Succession>,
    /// Number of the connection.
    link: u32,
}

impl Agent {
    async fn work(&mut self) -> End {
        loop {
            match self.vigil.look() {
                Finding::Fine => {}
                Finding::Stopped => self.signal(Signal::STOP),
                Finding::GoesOn => self.signal(Signal::CONT),
                Finding::Lost => return End::Lost,
            }
            let event = match self.events.try_recv() {
                Ok(event) => event,
                Err(_) => {
                    // Nothing more for the moment: what has been collected goes out as one message.
                    self.flush();
                    match tokio::time::timeout(STEP, self.events.recv()).await {
                        Ok(Some(event)) => event,
                        Ok(None) => return End::Lost,
                        Err(_) => continue,
                    }
                }
            };
            if let Event::FromCoordinator(message) = &event {
                self.vigil.heard(message);
            }
            if let Some(end) = self.handle(event) {
                return end;
            }
        }
    }

    /// Sends a signal to all processes.
    fn signal(&self, signal: Signal) {
        let signal = signal.as_raw() as u32;
        if let Some(batch) = &self.batch {
            batch.handle_coordinator(ToAgent::Signal(signal));
        } else if let Some(subjob) = &self.subjob {
            subjob.signal(signal);
        }
    }

    fn flush(&mut self) {
        if let Some(subjob) = &mut self.subjob {
            subjob.flush(&self.outbox);
        }
    }

    fn handle(&mut self, event: Event) -> Option<End> {
        match event {
            Event::CoordinatorLost => return Some(End::Lost),
            Event::LinkLost(link) => return self.lose_link(link),
            Event::Resumed(resumed) => self.resume(*resumed),
            Event::FromCoordinator(ToAgent::End) => return Some(End::Told),
            Event::FromCoordinator(message) => self.handle_coordinator(message),
            Event::Batch(event) => {
                if let Some(batch) = &mut self.batch {
                    batch.handle(event);
                }
            }
            Event::Gateway(message) => {
                if let Some(gateway) = &mut self.gateway {
                    gateway.said(&message);
                }
                self.outbox.send_last(&FromAgent::Gateway(message));
            }
            Event::GatewayEnded => {
                if let Some(gateway) = &mut self.gateway {
                    gateway.ended();
                }
            }
            Event::GatewayDue => {
                if let Some(Err(why)) = self.gateway.as_mut().map(Gateway::again) {
                    self.gateway_failed(why);
                }
            }
            Event::Beside(scheduler) => self.outbox.send(&FromAgent::Beside(scheduler)),
            Event::InputTaken(bytes) => self.outbox.send(&FromAgent::InputCredit(bytes)),
            event => {
                if let Some(subjob) = &mut self.subjob {
                    subjob.handle(event, &self.outbox, &self.sender);
                }
            }
        }
        None
    }

    /// A connection has ended: whoever may follow is waited for.
    fn lose_link(&mut self, link: u32) -> Option<End> {
        let Some(succession) = &self.succession else {
            return Some(End::Lost);
        };
        if link == self.link {
            self.neighbours.part();
            self.outbox.away();
            self.vigil.wait(succession.patience);
        }
        None
    }

    /// The connection may end without the job.
    fn hold(&mut self, hold: &Hold) {
        let opened = match &self.place {
            Some(name) if self.succession.is_none() => Succession::open(name, hold, &self.sender),
            _ => return,
        };
        // Where nobody can come the end of the connection is the end of the job, as before.
        self.succession = opened.ok();
        if self.succession.is_some() {
            self.outbox.hold();
        }
    }

    /// Another connection follows.
    fn resume(&mut self, resumed: Resumed) {
        let Resumed {
            stream,
            deframer,
            resume,
        } = resumed;
        self.flush();
        self.link += 1;
        self.vigil.welcome(resume.launcher);
        let (reader, writer) = stream.into_split();
        tokio::spawn(link::read(reader, deframer, self.sender.clone(), self.link));
        self.outbox.go_over(Successor {
            link: self.link,
            writer: Box::new(writer),
            hello: FromAgent::Hello(machine::hello()),
            resume,
        });
        // What was not answered before may not have been heard, and what holds is not known to another coordinator.
        let asked = self.batch.as_ref().map(Batch::asked);
        let asked = asked.or_else(|| self.subjob.as_ref().map(Subjob::asked)).into_iter();
        for (index, question) in asked.flat_map(Questions::all) {
            self.outbox.send(&FromAgent::Asked { index, question });
        }
        if let Some(listening) = self.gateway.as_ref().and_then(Gateway::listening) {
            self.outbox.send(&FromAgent::Gateway(listening));
        }
    }

    fn handle_coordinator(&mut self, message: ToAgent) {
        match message {
            ToAgent::Hold(hold) => self.hold(&hold),
            ToAgent::Offer { hash, size, name } => {
                let state = self.offer(hash, size, &name).unwrap_or_else(FileState::Failed);
                self.outbox.send(&FromAgent::File { hash, state });
            }
            ToAgent::Chunk(bytes) => self.take_chunk(&bytes),
            ToAgent::Start(start) => {
                if let Err(refusal) = self.start(*start) {
                    self.outbox.send(&refusal.into());
                }
            }
            ToAgent::Gateway(message) => self.tell_gateway(message),
            ToAgent::Neighbour { number, bytes } => self.neighbours.pass(number, bytes, &self.outbox),
            ToAgent::OutputCredit(bytes) => self.outbox.add_credit(bytes),
            ToAgent::Launch(hosts) => {
                let launched = self.subjob.as_mut().map(|subjob| subjob.launch(&hosts, &self.sender));
                if let Some(Err(refusal)) = launched {
                    self.outbox.send(&refusal.into());
                }
            }
            ToAgent::LauncherEnded(end) => {
                if let Some(subjob) = &mut self.subjob {
                    subjob.handle_launcher_end(&end, &self.outbox);
                }
            }
            ToAgent::Answer { index, answer } => {
                if let Some(batch) = &mut self.batch {
                    batch.answer(index, answer);
                } else if let Some(subjob) = &mut self.subjob {
                    subjob.answer(index, answer);
                }
            }
            ToAgent::Ping(number) => {
                self.outbox.send(&FromAgent::Pong(number, machine::clock()));
                if let Some(subjob) = &mut self.subjob {
                    subjob.tell_what_passed(&self.outbox);
                    subjob.tell_conditions(&self.outbox);
                }
            }
            message => {
                if let Some(batch) = &self.batch {
                    batch.handle_coordinator(message);
                } else if let Some(subjob) = &self.subjob {
                    subjob.handle_coordinator(message, &self.sender);
                }
            }
        }
    }

    fn tell_gateway(&mut self, message: Vec<u8>) {
        if let Some(gateway) = &self.gateway {
            return gateway.send(message);
        }
        match Gateway::start(&self.binary, &message, &self.sender) {
            Ok(gateway) => self.gateway = Some(gateway),
            Err(why) => self.gateway_failed(why),
        }
    }

    fn gateway_failed(&self, why: String) {
        self.outbox.send(&FromAgent::Gateway(FromGateway::Failed(why).encode()));
    }

    fn start(&mut self, mut start: Start) -> Result<(), Refusal> {
        self.neighbours.umask = working_directory::set_umask(&start)?;
        if start.silence > 0 {
            self.vigil.allow(Duration::from_secs(u64::from(start.silence)));
        }
        if !start.files.is_empty() {
            self.workspace = Workspace::of(std::path::Path::new(&start.files));
        }
        if self.role != Role::Home {
            if let Some((works, workspace)) = working_directory::choose(&mut start, self.role == Role::Node)? {
                self.works = Some(works);
                self.workspace = workspace.or_else(|| self.workspace.take());
            }
        }
        let start = &start;
        self.place = succession::name(&start.job, start.subjob).filter(|_| self.role != Role::Node);
        if start.allocation.is_some() {
            let files = self.files.clone();
            self.batch = Some(Batch::start(start, &self.binary, files, &self.outbox, &self.sender)?);
        } else {
            self.subjob = Some(Subjob::start(start, &self.binary, &self.outbox, &self.sender)?);
            if self.role == Role::Site {
                let events = self.sender.clone();
                // Nobody waits for what a scheduler has to say.
                tokio::task::spawn_blocking(move || {
                    if let Some(scheduler) = isthmus_discovery::usable() {
                        let _ = events.blocking_send(Event::Beside(scheduler));
                    }
                });
            }
            let part = machine::part(start.count, &start.environment);
            self.outbox.send(&FromAgent::Started(vec![part]));
        }
        Ok(())
    }

    fn offer(&mut self, hash: Hash, size: u64, name: &str) -> Result<FileState, String> {
        self.incoming = None;
        let store = match &self.store {
            Some(store) => store,
            None => self
                .store
                .insert(Store::open(&place_for_files()?).map_err(|e| e.to_string())?),
        };
        let found = store.find(&hash, name, size).map_err(|e| e.to_string())?;
        let file = |path| StagedFile {
            hash,
            size,
            name: name.to_owned(),
            path,
        };
        if let Some(path) = found {
            return Ok(self.keep(file(path)));
        }
        let incoming = store.receive(hash, name, size).map_err(|e| e.to_string())?;
        if incoming.is_complete() {
            let path = incoming.finish().map_err(|e| e.to_string())?;
            return Ok(self.keep(file(path)));
        }
        self.incoming = Some((file(PathBuf::new()), incoming));
        Ok(FileState::Wanted)
    }

    /// A file is here: nodes may want it too.
    fn keep(&mut self, file: StagedFile) -> FileState {
        let path = isthmus_stage::words::text(&file.path);
        self.files.push(file);
        FileState::Here(path)
    }

    fn take_chunk(&mut self, bytes: &[u8]) {
        let Some((file, mut incoming)) = self.incoming.take() else {
            return;
        };
        let hash = file.hash;
        let state = match incoming.write(bytes) {
            Ok(()) if !incoming.is_complete() => {
                self.incoming = Some((file, incoming));
                return;
            }
            Ok(()) => match incoming.finish() {
                Ok(path) => self.keep(StagedFile { path, ..file }),
                Err(error) => FileState::Failed(error.to_string()),
            },
            Err(error) => FileState::Failed(error.to_string()),
        };
        self.outbox.send(&FromAgent::File { hash, state });
    }
}

/// Where staged files are kept.
pub(crate) fn place_for_files() -> Result<PathBuf, String> {
    cache::directory().map_err(|why| format!("{why}: there is no place for staged files; XDG_CACHE_HOME can name one"))
}
