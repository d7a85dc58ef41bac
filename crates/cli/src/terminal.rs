// SPDX-License-Identifier: Apache-2.0
//! The user's terminal, or the logs of a job without one: output of the processes, notices, states, events.

use crate::diagnostic;
use crate::inherited;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use isthmus_launch::session::Log;
use isthmus_launch::{Console, Progress, State, Stream};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A start that is faster than this shows no progress.
const PATIENCE: Duration = Duration::from_secs(1);
/// What writing to a terminal that is gone gives.
const EIO: i32 = 5;

/// How the states of subjobs are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Show {
    /// A table on a terminal, otherwise nothing.
    #[default]
    Auto,
    /// A line for each change.
    Lines,
    /// Nothing.
    None,
}

/// Leaves the terminal behind.
type Leave = Box<dyn FnOnce() + Send>;

/// Prints to standard output and standard error, or into the logs of a session.
#[derive(Default)]
pub(crate) struct Terminal {
    label: bool,
    show: Show,
    began: Option<Instant>,
    display: Option<Display>,
    /// Rank whose line stands unfinished on a stream.
    unfinished: [Option<u32>; 2],
    /// Where events go.
    events: Option<Events>,
    /// Place for logs when the terminal is gone.
    session: Option<PathBuf>,
    logs: Option<Logs>,
    /// What a job that starts in the background does when its processes have begun. Until then the terminal hears of
    /// it.
    starting: Option<Leave>,
    shown: Vec<(String, String)>,
    /// Somebody is asked something at the terminal: what comes meanwhile waits.
    asking: bool,
    held: Vec<u8>,
    /// Events have no place any more, and that was told.
    lost_events: bool,
}

enum Events {
    Output,
    File(File),
}

/// Output, errors, events.
struct Logs([Option<Log>; 3]);

struct Display {
    all: MultiProgress,
    lines: Vec<ProgressBar>,
}

impl Terminal {
    /// With `label`, every line begins with its rank.
    pub(crate) fn new(label: bool, show: Show, session: Option<PathBuf>) -> Self {
        Self {
            label,
            show,
            session,
            began: Some(Instant::now()),
            ..Self::default()
        }
    }

    /// Events go into a file, or to standard output when that is `-`.
    pub(crate) fn with_events(mut self, file: Option<&str>) -> io::Result<Self> {
        self.events = match file {
            None => None,
            Some("-") => Some(Events::Output),
            Some(path) => Some(Events::File(File::create(path)?)),
        };
        Ok(self)
    }

    /// What the processes of a job in the background print goes into its logs, and what there is to say as well: to the
    /// terminal, too, until they have begun.
    pub(crate) fn in_background(&mut self, leave: Leave) {
        self.hang_up();
        self.starting = Some(leave);
    }

    /// Prints lines of ours.
    fn say(&mut self, lines: &[u8]) {
        // Nobody is left to be told when standard error is gone.
        if self.logs.is_some() {
            let _ = self.print(Stream::Error, lines);
        }
        let _ = match &self.display {
            Some(display) => display.all.suspend(|| write(rustix::stdio::stderr(), lines)),
            None if self.starting.is_some() => write(rustix::stdio::stderr(), lines),
            None if self.logs.is_none() => self.print(Stream::Error, lines),
            None => Ok(()),
        };
    }

    fn text(&mut self, rank: u32, stream: Stream, bytes: &[u8]) -> Vec<u8> {
        let unfinished = &mut self.unfinished[usize::from(stream == Stream::Error)];
        if !self.label {
            *unfinished = leaves_unfinished(stream, bytes).then_some(rank);
            return bytes.to_vec();
        }
        let mut text = Vec::with_capacity(bytes.len() + 16);
        let mut continues = *unfinished == Some(rank);
        if unfinished.is_some() && !continues {
            text.push(b'\n');
        }
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            if !continues {
                text.extend_from_slice(format!("[{rank}] ").as_bytes());
            }
            continues = false;
            text.extend_from_slice(line);
        }
        *unfinished = leaves_unfinished(stream, bytes).then_some(rank);
        text
    }

    /// Lines of ours for standard error. They begin on a line of their own: not behind what a process has not ended
    /// there, or on standard output where that is the same terminal or file.
    fn own_lines(&mut self, lines: &str) -> Vec<u8> {
        let behind = begins_behind();
        for (rank, stands) in self.unfinished.iter_mut().zip(&UNFINISHED) {
            *rank = rank.filter(|_| stands.load(Ordering::Relaxed));
        }
        let mut text = Vec::with_capacity(lines.len() + 1);
        text.extend(behind.then_some(b'\n'));
        text.extend_from_slice(lines.as_bytes());
        text
    }

    fn take_down(&mut self) {
        if let Some(display) = self.display.take() {
            display.clear();
        }
    }

    fn print(&mut self, stream: Stream, text: &[u8]) -> io::Result<()> {
        if let Some(logs) = &mut self.logs {
            return logs.write(usize::from(stream == Stream::Error), text);
        }
        let written = match stream {
            Stream::Output => inherited::output().and_then(|()| write(rustix::stdio::stdout(), text)),
            Stream::Error => inherited::errors().and_then(|()| write(rustix::stdio::stderr(), text)),
            // No text.
            Stream::Trace => Ok(()),
        };
        match written {
            Err(error) if error.raw_os_error() == Some(EIO) && self.session.is_some() => {
                self.hang_up();
                self.print(stream, text)
            }
            other => other,
        }
    }

    fn show_lines(&mut self, subjobs: &[Progress]) {
        let nothing = (State::Connecting.to_string(), String::new());
        self.shown.resize(subjobs.len(), nothing);
        let mut text = String::new();
        for (shown, now) in self.shown.iter_mut().zip(subjobs) {
            if *shown != (now.word.clone(), now.detail.clone()) {
                *shown = (now.word.clone(), now.detail.clone());
                let detail = if now.detail.is_empty() {
                    String::new()
                } else {
                    format!(" ({})", now.told())
                };
                text.push_str(&format!("isthmus: site '{}': {}{detail}\n", now.site, now.word));
            }
        }
        let text = diagnostic::plain(&text);
        if self.asking || text.is_empty() {
            return self.held.extend_from_slice(text.as_bytes());
        }
        let text = self.own_lines(&text);
        self.say(&text);
    }
}

impl Logs {
    fn write(&mut self, which: usize, bytes: &[u8]) -> io::Result<()> {
        match &mut self.0[which] {
            Some(log) => log.write(bytes),
            None => Ok(()),
        }
    }
}

impl Console for Terminal {
    fn output(&mut self, rank: u32, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        self.take_down();
        let text = self.text(rank, stream, bytes);
        // What a program complains of at once is why it does not begin.
        if stream == Stream::Error && self.starting.is_some() {
            let _ = write(rustix::stdio::stderr(), &text);
        }
        self.print(stream, &text)
    }

    fn notice(&mut self, text: &str) {
        let text = diagnostic::plain(text);
        let lines: String = text.lines().map(|line| format!("isthmus: {line}\n")).collect();
        if self.asking {
            return self.held.extend_from_slice(lines.as_bytes());
        }
        let lines = self.own_lines(&lines);
        self.say(&lines);
    }

    fn progress(&mut self, subjobs: &[Progress]) {
        let slow = self.began.is_some_and(|began| began.elapsed() > PATIENCE);
        if subjobs.is_empty() {
            self.take_down();
        } else if self.show == Show::Auto
            && (self.logs.is_none() || self.starting.is_some())
            && slow
            && io::stderr().is_terminal()
        {
            self.display
                .get_or_insert_with(|| Display::new(subjobs.len()))
                .show(subjobs);
        }
    }

    fn states(&mut self, subjobs: &[Progress]) {
        if self.show == Show::Lines {
            self.show_lines(subjobs);
        }
    }

    fn event(&mut self, line: &str) {
        let line = format!("{line}\n");
        // Nobody is left to be told when they have no place.
        if let Some(logs) = &mut self.logs {
            let _ = logs.write(2, line.as_bytes());
        }
        let written = match &mut self.events {
            Some(Events::File(file)) => file.write_all(line.as_bytes()),
            Some(Events::Output) => self.print(Stream::Output, line.as_bytes()),
            None => Ok(()),
        };
        if let (Err(error), false) = (written, self.lost_events) {
            self.lost_events = true;
            self.notice(&format!("events cannot be written any more: {error}"));
        }
    }

    fn asking(&mut self, now: bool) {
        self.take_down();
        self.asking = now;
        if !now {
            let held = std::mem::take(&mut self.held);
            self.say(&held);
        }
    }

    fn begun(&mut self) {
        self.take_down();
        if let Some(leave) = self.starting.take() {
            leave();
        }
    }

    fn hang_up(&mut self) {
        self.take_down();
        if let (Some(session), None) = (&self.session, &self.logs) {
            self.logs = Some(Logs(
                ["output", "errors", "events"].map(|log| Log::open(session, log).ok()),
            ));
        }
    }
}

impl Display {
    fn new(sites: usize) -> Self {
        let all = MultiProgress::new();
        let style = ProgressStyle::with_template("{spinner} {prefix} {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        let lines = (0..sites.min(MOST_LINES)).map(|_| {
            let line = all.add(ProgressBar::new_spinner());
            line.set_style(style.clone());
            line
        });
        Self {
            lines: lines.collect(),
            all,
        }
    }

    fn show(&self, subjobs: &[Progress]) {
        let width = subjobs.iter().map(|p| p.site.chars().count()).max().unwrap_or(0);
        for (line, now) in self.lines.iter().zip(subjobs) {
            line.set_prefix(format!("{:width$}", now.site));
            line.set_message(format!("{:<12}{}", now.word, now.told()));
            line.tick();
        }
    }

    fn clear(&self) {
        self.lines.iter().for_each(ProgressBar::finish_and_clear);
        let _ = self.all.clear();
    }
}

/// Writes everything, in one call of the system where that takes it all, also to a standard stream that was made
/// non-blocking by somebody else.
fn write(stream: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(stream, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = &bytes[n..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whether a line of a process stands unfinished on standard output, on standard error.
static UNFINISHED: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

/// Notes whether what was printed last leaves a line unfinished.
fn leaves_unfinished(stream: Stream, bytes: &[u8]) -> bool {
    let is_unfinished = bytes.last() != Some(&b'\n');
    UNFINISHED[usize::from(stream == Stream::Error)].store(is_unfinished, Ordering::Relaxed);
    is_unfinished
}

/// Whether a line on standard error would begin behind an unfinished one, which whoever asks ends.
pub(crate) fn begins_behind() -> bool {
    let [output, errors] = &UNFINISHED;
    let behind_output = output.load(Ordering::Relaxed) && are_one() && output.swap(false, Ordering::Relaxed);
    errors.swap(false, Ordering::Relaxed) || behind_output
}

/// Whether standard output and standard error are one terminal or file.
fn are_one() -> bool {
    let of = |stream: BorrowedFd<'_>| rustix::fs::fstat(stream).map(|s| (s.st_dev, s.st_ino, s.st_rdev));
    match (of(rustix::stdio::stdout()), of(rustix::stdio::stderr())) {
        (Ok(output), Ok(errors)) => output == errors,
        _ => false,
    }
}

/// Most sites that are shown.
const MOST_LINES: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    // One test, because all of them print on one pair of streams.
    #[test]
    fn our_own_line_begins_on_a_new_one_and_labels_stand_at_line_starts_only() {
        let mut terminal = Terminal::new(false, Show::None, None);
        assert_eq!(terminal.own_lines("isthmus: a\n"), b"isthmus: a\n");
        terminal.text(0, Stream::Error, b"number? ");
        assert_eq!(terminal.own_lines("isthmus: a\n"), b"\nisthmus: a\n");
        assert_eq!(terminal.own_lines("isthmus: b\n"), b"isthmus: b\n");
        terminal.text(0, Stream::Error, b"number? ");
        terminal.text(0, Stream::Error, b"12\n");
        assert_eq!(terminal.own_lines("isthmus: a\n"), b"isthmus: a\n");

        let mut terminal = Terminal::new(true, Show::None, None);
        assert_eq!(terminal.text(3, Stream::Output, b"a\nb\n"), b"[3] a\n[3] b\n");
        assert_eq!(terminal.text(3, Stream::Output, b"long"), b"[3] long");
        assert_eq!(terminal.text(3, Stream::Output, b"er\n"), b"er\n");
        assert_eq!(terminal.text(1, Stream::Output, b"x"), b"[1] x");
        assert_eq!(terminal.text(2, Stream::Output, b"y\n"), b"\n[2] y\n");
        assert_eq!(
            Terminal::new(false, Show::None, None).text(2, Stream::Output, b"\xff\0"),
            b"\xff\0"
        );
    }
}
