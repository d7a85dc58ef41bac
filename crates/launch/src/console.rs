// SPDX-License-Identifier: Apache-2.0
//! The way to the user: a thread of its own, because a terminal may block.

use crate::events::JobEvent;
use crate::happening::Event;
use crate::output::Files;
use crate::progress::Progress;
use crate::record::{Record, Sums};
use crate::trace::{Offset, TraceFile};
use isthmus_wire::boot::LinkTraffic;
use isthmus_wire::grid::Stream;
use isthmus_wire::time::SiteTime;
use std::io;
use std::sync::mpsc as blocking;
use tokio::sync::{mpsc, oneshot};

/// Where output, notices and the progress of the job go. Called from one thread, may block.
pub trait Console: Send + 'static {
    /// Whole lines of a process, or its last partial line. `rank` is its rank in the world of the job; processes of
    /// other worlds have numbers behind those.
    fn output(&mut self, rank: u32, stream: Stream, bytes: &[u8]) -> io::Result<()>;
    /// Something the user should know.
    fn notice(&mut self, text: &str);
    /// Where the subjobs stand. Called on each change and twice a second while one is not yet there;
    /// an empty list means that there is nothing to show any more.
    fn progress(&mut self, subjobs: &[Progress]);
    /// Where the subjobs stand now that this has changed.
    fn states(&mut self, subjobs: &[Progress]);
    /// Something happened, as a line of JSON.
    fn event(&mut self, line: &str);
    /// An ssh client asks something at the terminal: until that is over nothing else may be printed there.
    fn asking(&mut self, now: bool);
    /// The terminal is gone: everything goes elsewhere from here.
    fn hang_up(&mut self);
    /// The processes have begun, or their schedulers have accepted them, or a part of a world waits for others or has
    /// joined them: a job in the background leaves the terminal.
    fn begun(&mut self);
}

/// What goes to the console.
#[derive(Debug)]
pub(crate) enum Print {
    Output {
        connection: usize,
        site: usize,
        rank: u32,
        stream: Stream,
        bytes: Vec<u8>,
    },
    /// Of a traced process.
    Records {
        connection: usize,
        rank: u32,
        site: String,
        offset: Offset,
        bytes: Vec<u8>,
    },
    /// Processes that are traced: rank, site and host.
    Traced(Vec<(u32, String, String)>),
    /// What became of a process, for a trace: its rank, a word of what kind it is, and a sentence.
    Became(u32, &'static str, String),
    /// What has passed between sites, and where the time went.
    Passed {
        links: Vec<LinkTraffic>,
        times: Vec<SiteTime>,
    },
    /// The job has ended: the last line of its record.
    Sums(Box<Sums>),
    Notice(String),
    Progress(Vec<Progress>),
    States(Vec<Progress>),
    Event(String),
    HangUp,
    Begun,
    /// An ssh client asks as soon as this is dropped; nothing: it has its answer.
    Asking(Option<oneshot::Sender<()>>),
    /// Say when everything before this is printed.
    Mark,
}

/// What is written of a job beside what the console shows.
pub(crate) struct Written {
    pub(crate) files: Files,
    pub(crate) trace: Option<TraceFile>,
    pub(crate) record: Option<Record>,
}

/// The console's thread. Output is bounded by the credit of the agents, so the queue needs no bound.
pub(crate) struct Printer {
    queue: Option<blocking::Sender<Print>>,
    shown: Vec<Progress>,
    done: oneshot::Receiver<()>,
}

impl Printer {
    pub(crate) fn start(
        mut console: Box<dyn Console>,
        mut written: Written,
        events: mpsc::UnboundedSender<Event>,
    ) -> io::Result<Self> {
        let (queue, prints) = blocking::channel();
        let (finished, done) = oneshot::channel();
        std::thread::Builder::new().name("console".to_owned()).spawn(move || {
            while let Ok(print) = prints.recv() {
                keep(&mut written.record, &print);
                perform(console.as_mut(), &mut written, print, &events);
            }
            if let Some(Err(error)) = written.trace.map(TraceFile::close) {
                console.notice(&format!("the trace is not whole: {error}"));
            }
            console.progress(&[]);
            let _ = finished.send(());
        })?;
        Ok(Self {
            queue: Some(queue),
            shown: Vec::new(),
            done,
        })
    }

    pub(crate) fn print(&self, print: Print) {
        if let Some(queue) = &self.queue {
            // The thread lives until the queue is closed.
            let _ = queue.send(print);
        }
    }

    /// Something the user should know.
    pub(crate) fn notice(&self, text: String) {
        self.tell(&JobEvent::notice(&text));
        self.print(Print::Notice(text));
    }

    /// Something the user should know about a site.
    pub(crate) fn notice_of(&self, site: &str, text: &str) {
        self.notice(format!("site '{site}': {text}"));
    }

    /// Something happened.
    pub(crate) fn tell(&self, event: &JobEvent) {
        self.print(Print::Event(event.line()));
    }

    /// Shows where the subjobs stand; nothing once there is nothing to show.
    pub(crate) fn print_progress(&mut self, subjobs: Vec<Progress>) {
        if !(subjobs.is_empty() && self.shown.is_empty()) {
            self.shown.clone_from(&subjobs);
            self.print(Print::Progress(subjobs));
        }
    }

    /// Closes the queue; [`Self::finished`] then waits until everything has been printed.
    pub(crate) fn close(&mut self) {
        self.queue = None;
    }

    pub(crate) async fn finished(&mut self) {
        let _ = (&mut self.done).await;
    }
}

/// What belongs into the record of the job.
fn keep(record: &mut Option<Record>, print: &Print) {
    match (record.as_mut(), print) {
        (Some(open), Print::Event(line)) => open.event(line),
        (Some(open), Print::Passed { links, times }) => open.sample(links, times),
        (Some(_), Print::Sums(sums)) => {
            if let Some(whole) = record.take() {
                whole.end(sums);
            }
        }
        _ => {}
    }
}

/// Output could not be written to a file, or to this of the launcher's own streams.
fn unwritten(error: &io::Error, to: Option<Stream>) -> Event {
    Event::FileFailed {
        why: match to {
            None => error.to_string(),
            Some(Stream::Error) => format!("standard error: {error}"),
            Some(Stream::Output | Stream::Trace) => format!("standard output: {error}"),
        },
        hint: match error.kind() {
            // It was closed from the beginning.
            io::ErrorKind::NotConnected => "",
            _ => "check the free space and your rights there, and ulimit -f",
        },
    }
}

fn perform(console: &mut dyn Console, written: &mut Written, print: Print, events: &mpsc::UnboundedSender<Event>) {
    let Written { files, trace, .. } = written;
    match print {
        Print::Records {
            connection,
            rank,
            site,
            offset,
            bytes,
        } => {
            if let Some(trace) = trace {
                trace.records(rank, &site, offset, &bytes);
            }
            let bytes = bytes.len();
            let _ = events.send(Event::Printed { connection, bytes });
        }
        Print::Traced(processes) => {
            if let Some(trace) = trace {
                processes
                    .iter()
                    .for_each(|(rank, site, host)| trace.process(*rank, site, host));
            }
        }
        Print::Became(rank, kind, text) => {
            if let Some(trace) = trace {
                trace.became(rank, kind, &text);
            }
        }
        Print::Passed { links, .. } => {
            if let Some(trace) = trace {
                trace.traffic(&links);
            }
        }
        Print::Sums(_) => {}
        Print::Output {
            connection,
            site,
            rank,
            stream,
            bytes,
        } => {
            let (to_file, result) = match files.write(site, rank, stream, &bytes) {
                Some(result) => (true, result),
                None => (false, console.output(rank, stream, &bytes)),
            };
            let event = match result {
                Ok(()) => Event::Printed {
                    connection,
                    bytes: bytes.len(),
                },
                Err(error) if !to_file && error.kind() == io::ErrorKind::BrokenPipe => Event::PrintFailed,
                Err(error) => unwritten(&error, (!to_file).then_some(stream)),
            };
            let _ = events.send(event);
        }
        Print::Notice(text) => {
            if let Some(trace) = trace {
                trace.notice(&text);
            }
            console.notice(&text);
        }
        Print::Progress(subjobs) => console.progress(&subjobs),
        Print::States(subjobs) => console.states(&subjobs),
        Print::Event(line) => console.event(&line),
        Print::HangUp => console.hang_up(),
        Print::Begun => console.begun(),
        Print::Asking(free) => console.asking(free.is_some()),
        Print::Mark => {
            let _ = events.send(Event::Marked);
        }
    }
}
