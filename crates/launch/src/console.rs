// SPDX-License-Identifier: Apache-2.0
//! The way to the user: a thread of its own, because a terminal may block.

use crate::coordinator::Event;
use isthmus_job::coallocation::State;
use isthmus_wire::grid::Stream;
use std::io;
use std::sync::mpsc as blocking;
use tokio::sync::mpsc;

/// Where output, notices and the progress of the start go. Called from one thread, may block.
pub trait Console: Send + 'static {
    /// Whole lines of a rank, or its last partial line.
    fn output(&mut self, rank: u32, stream: Stream, bytes: &[u8]) -> io::Result<()>;
    /// Something the user should know.
    fn notice(&mut self, text: &str);
    /// Where the sites stand. Called on each change and twice a second while a site is not yet there;
    /// an empty list means that there is nothing to show any more.
    fn progress(&mut self, sites: &[(String, State)]);
}

/// What goes to the console.
pub(crate) enum Print {
    Output {
        site: usize,
        rank: u32,
        stream: Stream,
        bytes: Vec<u8>,
    },
    Notice(String),
    Progress(Vec<(String, State)>),
}

/// The console's thread. Output is bounded by the credit of the agents, so the queue needs no bound.
pub(crate) struct Printer {
    queue: Option<blocking::Sender<Print>>,
    shown: Vec<(String, State)>,
    done: tokio::sync::oneshot::Receiver<()>,
}

impl Printer {
    pub(crate) fn start(mut console: Box<dyn Console>, events: mpsc::UnboundedSender<Event>) -> io::Result<Self> {
        let (queue, prints) = blocking::channel();
        let (finished, done) = tokio::sync::oneshot::channel();
        std::thread::Builder::new().name("console".to_owned()).spawn(move || {
            while let Ok(print) = prints.recv() {
                perform(console.as_mut(), print, &events);
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

    /// Shows where the sites stand; nothing once there is nothing to show.
    pub(crate) fn print_progress(&mut self, sites: Vec<(String, State)>) {
        if !(sites.is_empty() && self.shown.is_empty()) {
            self.shown.clone_from(&sites);
            self.print(Print::Progress(sites));
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

fn perform(console: &mut dyn Console, print: Print, events: &mpsc::UnboundedSender<Event>) {
    match print {
        Print::Output {
            site,
            rank,
            stream,
            bytes,
        } => {
            let event = match console.output(rank, stream, &bytes) {
                Ok(()) => Event::Printed {
                    site,
                    bytes: bytes.len(),
                },
                Err(_) => Event::PrintFailed,
            };
            let _ = events.send(event);
        }
        Print::Notice(text) => console.notice(&text),
        Print::Progress(sites) => console.progress(&sites),
    }
}
