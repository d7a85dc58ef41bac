// SPDX-License-Identifier: Apache-2.0
//! Standard input on its way to the processes: read in threads of its own, only as fast as those who get it take it.

use crate::happening::Event;
use crate::output::Redirection;
use isthmus_job::{Job, JobError};
use isthmus_wire::grid::INPUT_WINDOW;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Access, FileType, access};
use rustix::io::Errno;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc as blocking;
use std::time::Duration;
use tokio::sync::mpsc;

/// Bytes read at once.
const PIECE: usize = 32 << 10;
/// A job in the background looks so often whether it is in the foreground again.
const LOOK: Duration = Duration::from_millis(200);

/// Who gets our standard input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputTo {
    /// Nobody: it is not read.
    Nobody,
    /// The process with this rank.
    Rank(u32),
    /// All processes, each all of it.
    All,
    /// Rank 0.
    #[default]
    First,
}

/// One stream of input and the subjobs that get it.
#[derive(Debug)]
pub(crate) struct Source {
    /// File to read; without one it is our own standard input.
    file: Option<PathBuf>,
    /// Subjobs, and how many bytes each may be sent.
    readers: Vec<(usize, usize)>,
    permits: Option<blocking::Sender<()>>,
    /// A piece has been asked for and has not come.
    reading: bool,
    ended: bool,
}

impl Source {
    pub(crate) fn new(file: Option<PathBuf>, readers: impl IntoIterator<Item = usize>) -> Self {
        let readers = readers.into_iter().map(|site| (site, INPUT_WINDOW as usize));
        Self {
            file,
            readers: readers.collect(),
            permits: None,
            reading: false,
            ended: false,
        }
    }

    pub(crate) fn readers(&self) -> impl Iterator<Item = usize> + '_ {
        self.readers.iter().map(|(site, _)| *site)
    }

    pub(crate) fn is_for(&self, site: usize) -> bool {
        self.readers().any(|reader| reader == site)
    }

    /// Starts to read, once.
    pub(crate) fn start(&mut self, number: usize, events: &mpsc::UnboundedSender<Event>) {
        if self.permits.is_none() && !self.readers.is_empty() {
            let (permits, wanted) = blocking::channel();
            self.permits = Some(permits);
            let (file, events) = (self.file.clone(), events.clone());
            let tell = move |event: Result<Vec<u8>, String>| {
                let event = match event {
                    Ok(bytes) => Event::Input { source: number, bytes },
                    Err(why) => Event::InputFailed(why),
                };
                events.send(event).is_ok()
            };
            // Without a thread there is no input, as if it were empty.
            let _ = std::thread::Builder::new()
                .name("input".to_owned())
                .spawn(move || read(file.as_deref(), &wanted, tell));
        }
        self.ask();
    }

    /// A piece has been read; an empty one is the end.
    pub(crate) fn take(&mut self, bytes: usize) {
        self.reading = false;
        self.ended |= bytes == 0;
        self.charge(bytes);
        self.ask();
    }

    /// A piece has been read, and was meant for somebody else.
    pub(crate) fn pass_over(&mut self) {
        self.reading = false;
        self.ask();
    }

    /// Somebody else has read what is meant for the subjobs.
    pub(crate) fn charge(&mut self, bytes: usize) {
        for (_, credit) in &mut self.readers {
            *credit = credit.saturating_sub(bytes);
        }
    }

    /// Whether it reads what is typed at our terminal.
    pub(crate) fn is_typed(&self) -> bool {
        self.file.is_none() && self.permits.is_some() && io::stdin().is_terminal()
    }

    /// A subjob has taken so many bytes.
    pub(crate) fn add_credit(&mut self, site: usize, bytes: usize) {
        for (_, credit) in self.readers.iter_mut().filter(|(reader, _)| *reader == site) {
            *credit = (*credit + bytes).min(INPUT_WINDOW as usize);
        }
        self.ask();
    }

    /// Whether a subjob has not taken all that was sent to it.
    pub(crate) fn owes(&self, site: usize) -> bool {
        let mut readers = self.readers.iter();
        readers.any(|(reader, credit)| *reader == site && *credit < INPUT_WINDOW as usize)
    }

    /// A subjob is no longer there.
    pub(crate) fn remove(&mut self, site: usize) {
        self.readers.retain(|(reader, _)| *reader != site);
        self.ask();
    }

    /// Lets the next piece be read when everybody has room for it.
    fn ask(&mut self) {
        let room = !self.readers.is_empty() && self.readers.iter().all(|(_, credit)| *credit >= PIECE);
        if let (Some(permits), true, false, false) = (&self.permits, room, self.reading, self.ended) {
            self.reading = permits.send(()).is_ok();
        }
    }
}

/// Reads until the end. What cannot be read is told, and then it ends there.
fn read(file: Option<&Path>, wanted: &blocking::Receiver<()>, tell: impl Fn(Result<Vec<u8>, String>) -> bool) {
    let failed = |error: io::Error| tell(Err(unreadable(file, &error)));
    let mut input = open(file).unwrap_or_else(|error| {
        failed(error);
        Box::new(io::empty())
    });
    let mut buffer = vec![0; PIECE];
    while wanted.recv().is_ok() {
        let n = loop {
            match input.read(&mut buffer) {
                Ok(n) => break n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    failed(error);
                    break 0;
                }
            }
        };
        if !tell(Ok(buffer[..n].to_vec())) || n == 0 {
            return;
        }
    }
}

fn open(file: Option<&Path>) -> io::Result<Box<dyn Read>> {
    Ok(match file {
        Some(path) => Box::new(std::fs::File::open(path)?),
        // Reading would stop us: a job in the background gets no input, as if it were empty.
        None if is_in_background() => Box::new(io::empty()),
        None if io::stdin().is_terminal() => Box::new(Typed),
        None => Box::new(io::stdin().lock()),
    })
}

fn unreadable(file: Option<&Path>, error: &io::Error) -> String {
    match file {
        Some(path) => format!("cannot read the input file '{}': {error}", path.display()),
        None => format!("cannot read standard input: {error}"),
    }
}

/// What is said of input that cannot be read any further.
pub(crate) fn cut_short(why: &str) -> String {
    format!("{why}: the processes that get it are told that it has ended")
}

/// Whether a file, or our standard input, can be read: a directory can be opened, and no more.
fn check_readable(file: Option<&Path>) -> io::Result<()> {
    let is_directory = match file {
        // Whoever opens a pipe with a name waits until somebody writes into it.
        Some(path) => {
            access(path, Access::READ_OK)?;
            std::fs::metadata(path)?.is_dir()
        }
        // What is closed counts as empty.
        None => rustix::fs::fstat(io::stdin()).is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_dir()),
    };
    match is_directory {
        true => Err(Errno::ISDIR.into()),
        false => Ok(()),
    }
}

/// Whether the standard input of a job can be read: the launcher's own, where processes get it, and files here.
///
/// # Errors
/// What cannot be read.
pub fn check_input(job: &Job, to: InputTo) -> Result<(), JobError> {
    let (mut ours, mut files) = (false, Vec::new());
    for subjob in job.subjobs() {
        match Redirection::of(subjob, "stdin") {
            Redirection::Here => ours |= to != InputTo::Nobody,
            Redirection::File(path) => files.push(path),
            Redirection::There(_) => {}
        }
    }
    let own = ours.then_some(None);
    for file in own.into_iter().chain(files.iter().map(|path| Some(path.as_path()))) {
        check_readable(file).map_err(|error| {
            let hint = match file {
                Some(_) => "the path is one at this machine: name a file that you may read",
                None => "name a file behind <, or give the processes no input: --stdin none",
            };
            JobError::new(unreadable(file, &error)).hint(hint)
        })?;
    }
    Ok(())
}

/// What is typed at our terminal. Whoever reads there in the background is stopped: a job that the user sends there
/// (`^Z`, `bg`) waits with its input until it is in the foreground again.
struct Typed;

impl Read for Typed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let stdin = io::stdin();
        loop {
            // Looking stops nobody.
            poll(&mut [PollFd::new(&stdin, PollFlags::IN)], None)?;
            if !is_in_background() {
                return stdin.lock().read(buffer);
            }
            std::thread::sleep(LOOK);
        }
    }
}

fn is_in_background() -> bool {
    let stdin = io::stdin();
    rustix::termios::isatty(&stdin)
        && rustix::termios::tcgetpgrp(&stdin).is_ok_and(|group| group != rustix::process::getpgrp())
}
