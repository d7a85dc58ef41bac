// SPDX-License-Identifier: Apache-2.0
//! The processes of a subjob: started, read, fed, watched.

use crate::event::{Event, ToProcess};
use crate::pipes::Pipes;
use crate::sink::{Sink, Sinks};
use crate::template::Templates;
use crate::threads;
use isthmus_sched::fork::{self, StandardInput};
use isthmus_stage::content::hex;
use isthmus_stage::lines::LineBuffer;
use isthmus_wire::grid::{Exit, Stream};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// How long output is awaited from a pipe that outlives its process (something else holds it).
pub(crate) const PIPE_LINGERS: Duration = Duration::from_millis(200);

/// How long the rest of a line is awaited before its beginning is passed on.
const UNFINISHED: Duration = Duration::from_millis(100);

/// How a process ended of which nothing is known but that it is gone.
pub(crate) const KILLED: Exit = Exit::Signal(rustix::process::Signal::KILL.as_raw() as u32);

/// What a hello is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redeemed {
    /// It is the process's first one.
    First,
    /// The process, or what it has started, has said hello before.
    Again,
    /// It is somebody else's.
    Never,
}

/// One process.
#[derive(Debug)]
pub(crate) struct Process {
    /// Its process id and group; 0 while the vendor MPI has not started it.
    pub(crate) pid: u32,
    /// Who shows it may come in, once.
    pub(crate) token: [u8; 16],
    /// Whether somebody has: MPI_Init was called.
    pub(crate) called: bool,
    /// Its rendezvous connection, while that is open.
    pub(crate) connection: Option<mpsc::UnboundedSender<ToProcess>>,
    /// How it ended.
    pub(crate) exit: Option<Exit>,
    /// Whether the coordinator knows.
    pub(crate) reported: bool,
    readers: Vec<JoinHandle<()>>,
}

impl Process {
    /// Whether this is the process that the token was made for. A token is good once; who comes later with it is told
    /// why.
    pub(crate) fn redeem(&mut self, token: &[u8; 16]) -> Redeemed {
        let difference = self.token.iter().zip(token).fold(0, |sum, (a, b)| sum | (a ^ b));
        match difference {
            0 if self.called => Redeemed::Again,
            0 => {
                self.called = true;
                Redeemed::First
            }
            _ => Redeemed::Never,
        }
    }

    /// Whether it has ever called MPI_Init.
    pub(crate) fn has_called(&self) -> bool {
        self.called
    }

    /// Sends something on its rendezvous connection, if it has one.
    pub(crate) fn tell(&self, message: ToProcess) -> bool {
        self.connection.as_ref().is_some_and(|c| c.send(message).is_ok())
    }

    /// Sends a signal to it and its group.
    pub(crate) fn signal(&self, signal: u32) {
        if self.exit.is_none() && self.pid != 0 {
            fork::signal_group(self.pid, signal);
        }
    }

    /// One that the vendor MPI will start.
    pub(crate) fn expected(token: [u8; 16]) -> Self {
        Self {
            pid: 0,
            token,
            called: false,
            connection: None,
            exit: None,
            reported: false,
            readers: Vec::new(),
        }
    }

    /// It has been started.
    pub(crate) fn adopt(&mut self, pid: u32, readers: Vec<JoinHandle<()>>) {
        self.pid = pid;
        self.readers = readers;
    }

    /// The tasks that read its output.
    pub(crate) fn take_readers(&mut self) -> Vec<JoinHandle<()>> {
        std::mem::take(&mut self.readers)
    }
}

/// What all processes of a subjob are started with.
pub(crate) struct Surroundings<'a> {
    pub(crate) templates: &'a Templates,
    pub(crate) rendezvous: &'a Path,
    pub(crate) output: Sink,
    pub(crate) error: Sink,
    pub(crate) events: &'a mpsc::Sender<Event>,
    /// By index, what they are bound to.
    pub(crate) processors: Option<Vec<Vec<u32>>>,
    /// How many threads each is told to start.
    pub(crate) threads: Option<usize>,
    pub(crate) seats: Seats,
}

/// Standard input on its way to those who get it.
#[derive(Debug)]
pub(crate) struct Piece {
    bytes: Vec<u8>,
    /// Who has yet to take it.
    readers: AtomicUsize,
}

impl Piece {
    pub(crate) fn new(bytes: Vec<u8>, readers: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes,
            readers: AtomicUsize::new(readers),
        })
    }
}

/// How many processes there are, as far as that is known before MPI_Init.
#[derive(Clone, Copy)]
pub(crate) struct Seats {
    /// On this node.
    pub(crate) local: u32,
    /// In the job, where no other subjob and no other node has processes of it.
    pub(crate) world: Option<u32>,
}

impl Seats {
    /// Ranks and numbers under the names of Open MPI, MPICH (which Intel MPI has too) and MVAPICH, for programs that
    /// choose a processor or a GPU before they call MPI_Init.
    fn variables(self, index: u32) -> Vec<(&'static str, String)> {
        let local = [
            ("OMPI_COMM_WORLD_LOCAL_RANK", index),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", self.local),
            ("MV2_COMM_WORLD_LOCAL_RANK", index),
            ("MV2_COMM_WORLD_LOCAL_SIZE", self.local),
            ("MPI_LOCALRANKID", index),
            ("MPI_LOCALNRANKS", self.local),
        ];
        let world = self.world.map(|size| {
            [
                ("OMPI_COMM_WORLD_RANK", index),
                ("OMPI_COMM_WORLD_SIZE", size),
                ("MV2_COMM_WORLD_RANK", index),
                ("MV2_COMM_WORLD_SIZE", size),
                ("PMI_RANK", index),
                ("PMI_SIZE", size),
            ]
        });
        let all = local.into_iter().chain(world.into_iter().flatten());
        all.map(|(name, number)| (name, number.to_string())).collect()
    }
}

/// Where the standard input of a process comes from.
pub(crate) enum Source {
    Nowhere,
    File(PathBuf),
    Coordinator(mpsc::UnboundedReceiver<Arc<Piece>>),
}

fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

/// Passes on what is written into a pipe with a name. Opening it waits for the first writer, for ever perhaps, which
/// neither the agent nor its end waits for: so it has a thread, and no task of the runtime.
fn carry(from: PathBuf, mut to: File) -> io::Result<()> {
    let pass_on = move || {
        // Whoever reads gets an end in any case.
        let _ = File::open(from).and_then(|mut from| io::copy(&mut from, &mut to));
    };
    std::thread::Builder::new()
        .name("input".to_owned())
        .spawn(pass_on)
        .map(drop)
}

/// Starts process `index`.
pub(crate) fn start(with: &Surroundings<'_>, index: u32, input: Source) -> io::Result<Process> {
    let Surroundings {
        templates,
        rendezvous,
        events,
        ..
    } = with;
    let template = templates.of(index);
    let token = isthmus_stage::guarded::random::<16>()?;
    let mut own = vec![
        (
            isthmus_settings::RENDEZVOUS.name,
            isthmus_stage::words::text(rendezvous),
        ),
        (isthmus_settings::TOKEN.name, hex(&token)),
        (isthmus_settings::INDEX.name, index.to_string()),
    ];
    own.extend(with.seats.variables(index));
    if let Some(set) = with.processors.as_ref().and_then(|sets| sets.get(index as usize)) {
        let numbers: Vec<String> = set.iter().map(u32::to_string).collect();
        own.push((isthmus_settings::PROCESSORS.name, numbers.join(",")));
    }
    // A program may have been told a number of its own.
    let is_told = template.environment.iter().any(|(name, _)| name == threads::VARIABLE);
    let threads = with.threads.filter(|_| !is_told);
    own.extend(threads.map(|n| (threads::VARIABLE, n.to_string())));
    let (from, queue, named_pipe) = match input {
        Source::Nowhere => (StandardInput::Empty, None, None),
        Source::File(path) if is_pipe(&path) => (StandardInput::Piped, None, Some(path)),
        Source::File(path) => (StandardInput::File(path), None, None),
        Source::Coordinator(queue) => (StandardInput::Piped, Some(queue), None),
    };
    let mut child = fork::spawn(template, &own, &from)?;
    let pid = child
        .id()
        .ok_or_else(|| io::Error::other("the process ended before it began"))?;
    match (child.stdin.take(), queue, named_pipe) {
        (Some(pipe), Some(queue), _) => drop(tokio::spawn(feed(pipe, queue, (*events).clone()))),
        (Some(pipe), None, Some(path)) => carry(path, pipe.into_owned_fd()?.into())?,
        _ => {}
    }
    let (ended, watch_end) = watch::channel(false);
    let mut readers = Vec::with_capacity(2);
    if let Some(pipe) = child.stdout.take() {
        readers.push(tokio::spawn(forward(
            pipe,
            index,
            Stream::Output,
            with.output.clone(),
            watch_end.clone(),
        )));
    }
    if let Some(pipe) = child.stderr.take() {
        readers.push(tokio::spawn(forward(
            pipe,
            index,
            Stream::Error,
            with.error.clone(),
            watch_end,
        )));
    }
    tokio::spawn(watch_child(child, pid, index, ended, (*events).clone()));
    Ok(Process {
        pid,
        token,
        called: false,
        connection: None,
        exit: None,
        reported: false,
        readers,
    })
}

/// Waits for the end of a process, ends its group and says so.
async fn watch_child(mut child: Child, pid: u32, index: u32, ended: watch::Sender<bool>, events: mpsc::Sender<Event>) {
    let exit = match child.wait().await {
        Ok(status) => exit_of(status),
        // Somebody else has reaped it: nothing is known but that it is gone.
        Err(_) => KILLED,
    };
    told(pid, index, exit, ended, events).await;
}

/// Ends the group of a process that has ended, and says so.
async fn told(pid: u32, index: u32, exit: Exit, ended: watch::Sender<bool>, events: mpsc::Sender<Event>) {
    fork::signal_group(pid, rustix::process::Signal::KILL.as_raw() as u32);
    let _ = ended.send(true);
    if exit == Exit::Status(0) {
        // An orderly end is told after the last line of output, which no end of the job then cuts off.
        ended.closed().await;
    }
    let _ = events.send(Event::Exited { index, exit }).await;
}

/// Reads the output of a process that the vendor MPI has started, feeds it, and awaits its end; gives the readers'
/// tasks.
pub(crate) fn attend(
    pid: u32,
    index: u32,
    pipes: Pipes,
    (exit, noted): (oneshot::Receiver<Exit>, oneshot::Sender<()>),
    input: Option<mpsc::UnboundedReceiver<Arc<Piece>>>,
    sinks: &Sinks,
    events: &mpsc::Sender<Event>,
) -> io::Result<Vec<JoinHandle<()>>> {
    let (ended, watch_end) = watch::channel(false);
    let mut readers = Vec::with_capacity(2);
    for (pipe, stream, sink) in [
        (pipes.output, Stream::Output, &sinks.output),
        (pipes.error, Stream::Error, &sinks.error),
    ] {
        let pipe = pipe::Receiver::from_owned_fd(pipe)?;
        readers.push(tokio::spawn(forward(
            pipe,
            index,
            stream,
            sink.clone(),
            watch_end.clone(),
        )));
    }
    drop(watch_end);
    if let (Some(pipe), Some(queue)) = (pipes.input, input) {
        tokio::spawn(feed(pipe::Sender::from_owned_fd(pipe)?, queue, events.clone()));
    }
    let events = events.clone();
    tokio::spawn(async move {
        let exit = exit.await.unwrap_or(KILLED);
        told(pid, index, exit, ended, events).await;
        drop(noted);
    });
    Ok(readers)
}

pub(crate) fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Status(code as u32),
        (None, signal) => Exit::Signal(signal.unwrap_or(0) as u32),
    }
}

/// Passes output on by whole lines, as fast as the coordinator prints it. A line that nothing follows for
/// [`UNFINISHED`] is passed on as far as it has come: it may be a question.
async fn forward<R: AsyncRead + Unpin>(
    mut pipe: R,
    index: u32,
    stream: Stream,
    sink: Sink,
    mut ended: watch::Receiver<bool>,
) {
    let mut lines = LineBuffer::default();
    let mut buffer = vec![0; 16 << 10];
    loop {
        let n = tokio::select! {
            biased;
            n = pipe.read(&mut buffer) => Some(n.unwrap_or(0)),
            () = lingers(&mut ended) => Some(0),
            () = tokio::time::sleep(UNFINISHED), if !lines.is_empty() => None,
        };
        let piece = match n {
            Some(0) | None => lines.finish(),
            Some(n) => lines.feed(&buffer[..n]),
        };
        if let Some(bytes) = piece {
            if !sink.write(index, stream, bytes).await {
                return;
            }
        }
        if n == Some(0) {
            return;
        }
    }
}

async fn lingers(ended: &mut watch::Receiver<bool>) {
    if ended.wait_for(|ended| *ended).await.is_ok() {
        tokio::time::sleep(PIPE_LINGERS).await;
    }
}

/// Feeds standard input; an empty piece is its end. A process that does not read it loses it.
async fn feed(
    pipe: impl AsyncWrite + Unpin,
    mut queue: mpsc::UnboundedReceiver<Arc<Piece>>,
    events: mpsc::Sender<Event>,
) {
    let mut pipe = Some(pipe);
    while let Some(piece) = queue.recv().await {
        let bytes = &piece.bytes;
        let failed = match &mut pipe {
            Some(open) if !bytes.is_empty() => open.write_all(bytes).await.is_err(),
            _ => true,
        };
        if failed {
            pipe = None;
        }
        if piece.readers.fetch_sub(1, Ordering::AcqRel) > 1 {
            // Others are slower: what the slowest has taken counts.
            continue;
        }
        let taken = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        if events.send(Event::InputTaken(taken)).await.is_err() {
            return;
        }
    }
}
