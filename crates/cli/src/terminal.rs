// SPDX-License-Identifier: Apache-2.0
//! The user's terminal: output of the ranks, notices, progress of the start.

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use isthmus_launch::{Console, State, Stream};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// A start that is faster than this shows no progress.
const PATIENCE: Duration = Duration::from_secs(1);

/// Prints to standard output and standard error.
pub(crate) struct Terminal {
    label: bool,
    began: Instant,
    display: Option<Display>,
    /// Rank whose line stands unfinished on a stream.
    unfinished: [Option<u32>; 2],
}

struct Display {
    all: MultiProgress,
    lines: Vec<ProgressBar>,
}

impl Terminal {
    /// With `label`, every line begins with its rank.
    pub(crate) fn new(label: bool) -> Self {
        Self {
            label,
            began: Instant::now(),
            display: None,
            unfinished: [None; 2],
        }
    }

    fn text(&mut self, rank: u32, stream: Stream, bytes: &[u8]) -> Vec<u8> {
        if !self.label {
            return bytes.to_vec();
        }
        let unfinished = &mut self.unfinished[usize::from(stream == Stream::Error)];
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
        *unfinished = (bytes.last() != Some(&b'\n')).then_some(rank);
        text
    }
}

impl Console for Terminal {
    fn output(&mut self, rank: u32, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        if let Some(display) = self.display.take() {
            display.clear();
        }
        let text = self.text(rank, stream, bytes);
        match stream {
            Stream::Output => write(&mut io::stdout().lock(), &text),
            Stream::Error => write(&mut io::stderr().lock(), &text),
        }
    }

    fn notice(&mut self, text: &str) {
        let lines: String = text.lines().map(|line| format!("isthmus: {line}\n")).collect();
        let print = || write(&mut io::stderr().lock(), lines.as_bytes());
        // Nobody is left to be told when standard error is gone.
        let _ = match &self.display {
            Some(display) => display.all.suspend(print),
            None => print(),
        };
    }

    fn progress(&mut self, sites: &[(String, State)]) {
        if sites.is_empty() {
            if let Some(display) = self.display.take() {
                display.clear();
            }
        } else if self.began.elapsed() > PATIENCE && io::stderr().is_terminal() {
            self.display
                .get_or_insert_with(|| Display::new(sites.len()))
                .show(sites);
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

    fn show(&self, sites: &[(String, State)]) {
        let width = sites.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (line, (name, state)) in self.lines.iter().zip(sites) {
            line.set_prefix(format!("{name:width$}"));
            line.set_message(state.to_string());
            line.tick();
        }
    }

    fn clear(&self) {
        self.lines.iter().for_each(ProgressBar::finish_and_clear);
        let _ = self.all.clear();
    }
}

/// Writes everything, also to a standard stream that was made non-blocking by somebody else.
fn write(stream: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = &bytes[n..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(error),
        }
    }
    stream.flush()
}

/// Most sites that are shown.
const MOST_LINES: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stand_at_line_starts_only() {
        let mut terminal = Terminal::new(true);
        assert_eq!(terminal.text(3, Stream::Output, b"a\nb\n"), b"[3] a\n[3] b\n");
        assert_eq!(terminal.text(3, Stream::Output, b"long"), b"[3] long");
        assert_eq!(terminal.text(3, Stream::Output, b"er\n"), b"er\n");
        assert_eq!(terminal.text(1, Stream::Output, b"x"), b"[1] x");
        assert_eq!(terminal.text(2, Stream::Output, b"y\n"), b"\n[2] y\n");
        assert_eq!(Terminal::new(false).text(2, Stream::Output, b"\xff\0"), b"\xff\0");
    }
}
