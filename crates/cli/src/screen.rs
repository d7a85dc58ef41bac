// SPDX-License-Identifier: Apache-2.0
//! A screen that is drawn again and again: `isthmus top`, `isthmus where --watch`.
//!
//! The terminal's other screen is used, so what stood there comes back. Keys are not echoed: q, Esc and Ctrl-C end it,
//! Ctrl-Z stops it, any other looks at once. The terminal is as it was before however this ends: by a key, an error, a
//! panic, SIGINT, SIGTERM, SIGHUP or SIGQUIT, and while it is stopped.

use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, IsTerminal, Read, Write};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// The other screen, without cursor and without wrapping of long lines; and back.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &[u8] = b"\x1b[?7h\x1b[?25h\x1b[?1049l";
/// Cursor to the first place; the rest of the line, and of the screen, is removed.
const HOME: &str = "\x1b[H";
const REST_OF_LINE: &str = "\x1b[K\r\n";
const REST: &str = "\x1b[J";

const SIGTSTP: i32 = 20;
const SIGWINCH: i32 = 28;
const SIGCONT: i32 = 18;

/// Text for a screen so many columns wide.
pub(crate) type Picture = Box<dyn Fn(usize) -> String + Send>;

enum Event {
    Key(u8),
    Signal(i32),
    Drawn(Result<Option<Picture>, String>),
    /// Nothing can be read from the terminal any more.
    Gone,
}

/// Whether standard output and input are a terminal, so that there can be a screen.
pub(crate) fn there_is_one() -> bool {
    io::stdout().is_terminal() && io::stdin().is_terminal()
}

/// Shows what `look` gives, every `interval`, until it gives nothing or the user has seen enough.
pub(crate) fn show(
    interval: Duration,
    look: impl FnMut() -> Result<Option<Picture>, String> + Send + 'static,
) -> Result<ExitCode, String> {
    let (tell, events) = channel();
    listen(tell.clone())?;
    let keys = tell.clone();
    std::thread::spawn(move || read_keys(&keys));
    let (ask, asked) = channel();
    std::thread::spawn(move || looks(look, &asked, interval, &tell));
    let screen = Screen::enter()?;
    run(screen, &events, &ask)
}

fn run(mut screen: Screen, events: &Receiver<Event>, ask: &Sender<()>) -> Result<ExitCode, String> {
    let mut picture: Option<Picture> = None;
    loop {
        screen
            .draw(picture.as_ref())
            .map_err(|error| format!("cannot draw: {error}"))?;
        match events.recv() {
            Ok(Event::Drawn(Ok(Some(new)))) => picture = Some(new),
            // The job has ended: what was seen last stays for the user.
            Ok(Event::Drawn(Ok(None))) => {
                drop(screen);
                if let Some(picture) = picture {
                    crate::print(&picture(usize::MAX));
                }
                return Ok(ExitCode::SUCCESS);
            }
            Ok(Event::Drawn(Err(why))) => return Err(why),
            // q, Q, Esc, Ctrl-C, Ctrl-D
            Ok(Event::Key(b'q' | b'Q' | 27 | 3 | 4) | Event::Gone) | Err(_) => return Ok(ExitCode::SUCCESS),
            // Ctrl-\ as the signal that it would be.
            Ok(Event::Key(28)) => return Ok(ended_by(3)),
            Ok(Event::Key(26) | Event::Signal(SIGTSTP)) => {
                screen.leave();
                // Everything stops here until SIGCONT.
                let _ = kill_process(getpid(), Signal::STOP);
                screen = Screen::enter()?;
            }
            Ok(Event::Key(_)) => {
                let _ = ask.send(());
            }
            Ok(Event::Signal(SIGWINCH | SIGCONT)) => {}
            Ok(Event::Signal(number)) => return Ok(ended_by(number)),
        }
    }
}

/// As shells tell of a process that a signal has ended.
fn ended_by(number: i32) -> ExitCode {
    ExitCode::from(128u8.saturating_add(u8::try_from(number).unwrap_or(0)))
}

/// Looks at once and then whenever a time is over, or when asked.
fn looks(
    mut look: impl FnMut() -> Result<Option<Picture>, String>,
    asked: &Receiver<()>,
    interval: Duration,
    tell: &Sender<Event>,
) {
    loop {
        let seen = look();
        let last = !matches!(seen, Ok(Some(_)));
        if tell.send(Event::Drawn(seen)).is_err() || last {
            return;
        }
        if asked.recv_timeout(interval) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
        // Keys that were held down count once.
        while asked.try_recv().is_ok() {}
    }
}

fn read_keys(tell: &Sender<Event>) {
    let mut key = [0];
    loop {
        let event = match io::stdin().read(&mut key) {
            Ok(1) => Event::Key(key[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            _ => Event::Gone,
        };
        let last = matches!(event, Event::Gone);
        if tell.send(event).is_err() || last {
            return;
        }
    }
}

/// Signals become events.
fn listen(tell: Sender<Event>) -> Result<(), String> {
    let failed = |error: io::Error| format!("cannot listen to signals: {error}");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let kinds = [1, 2, 3, 15, SIGTSTP, SIGWINCH, SIGCONT];
    let guard = runtime.enter();
    let all = kinds.map(|kind| signal(SignalKind::from_raw(kind)).map(|s| (kind, s)));
    drop(guard);
    let all = all.into_iter().collect::<io::Result<Vec<_>>>().map_err(failed)?;
    std::thread::spawn(move || {
        runtime.block_on(async move {
            let mut tasks = tokio::task::JoinSet::new();
            for (kind, mut signals) in all {
                let tell = tell.clone();
                tasks.spawn(async move {
                    while signals.recv().await.is_some() && tell.send(Event::Signal(kind)).is_ok() {}
                });
            }
            while tasks.join_next().await.is_some() {}
        });
    });
    Ok(())
}

/// The terminal's other screen; leaves it when dropped.
struct Screen {
    before: Option<Termios>,
}

impl Screen {
    fn enter() -> Result<Self, String> {
        let failed = |error| format!("cannot set the terminal: {error}");
        let before = tcgetattr(io::stdin()).map_err(failed)?;
        let mut raw = before.clone();
        // Nothing is echoed, keys come one by one, Ctrl-C and Ctrl-Z as keys, so the terminal is restored first.
        raw.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG | LocalModes::IEXTEN;
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Flush, &raw).map_err(failed)?;
        let screen = Self { before: Some(before) };
        let mut out = io::stdout();
        let written = out.write_all(ENTER).and_then(|()| out.flush());
        written.map_err(|error| format!("cannot write to the terminal: {error}"))?;
        Ok(screen)
    }

    fn draw(&self, picture: Option<&Picture>) -> io::Result<()> {
        let size = tcgetwinsize(io::stdout()).ok();
        let (columns, rows) = size.map_or((80, 24), |s| (usize::from(s.ws_col), usize::from(s.ws_row)));
        // Terminals that do not know their size say 0.
        let (columns, rows) = (
            if columns == 0 { 80 } else { columns },
            if rows == 0 { 24 } else { rows },
        );
        let text = picture.map_or_else(|| "looking; q ends".to_owned(), |picture| picture(columns));
        let mut out = io::stdout().lock();
        out.write_all(framed(&text, columns, rows).as_bytes())?;
        out.flush()
    }

    fn leave(&mut self) {
        let Some(before) = self.before.take() else { return };
        let mut out = io::stdout();
        // A terminal that is gone needs nothing.
        let _ = out.write_all(LEAVE).and_then(|()| out.flush());
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &before);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.leave();
    }
}

/// As much of a text as has room, with what draws it over what was there.
fn framed(text: &str, columns: usize, rows: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let shown = if lines.len() > rows {
        rows.saturating_sub(1)
    } else {
        lines.len()
    };
    let mut out = HOME.to_owned();
    let more = (lines.len() > shown).then(|| format!("{} lines more: the window is too low", lines.len() - shown));
    let all = lines[..shown].iter().copied().chain(more.as_deref());
    for (n, line) in all.enumerate() {
        if n > 0 {
            out.push_str(REST_OF_LINE);
        }
        // What is not printed has no width; names of sites are checked, but other sides' words pass here too.
        out.extend(line.chars().filter(|c| !c.is_control()).take(columns));
    }
    out.push_str("\x1b[K");
    out.push_str(REST);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_window_gets_what_has_room() {
        let drawn = framed("first line\nsecond\nthird\x1b[2J\nfourth", 8, 3);
        assert_eq!(drawn, "\x1b[Hfirst li\x1b[K\r\nsecond\x1b[K\r\n2 lines \x1b[K\x1b[J");
        assert!(framed("a\x1bb", 10, 3).contains("ab"), "no sequences of others");
        assert_eq!(framed("", 1, 1), "\x1b[H\x1b[K\x1b[J");
    }
}
