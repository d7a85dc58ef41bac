// SPDX-License-Identifier: Apache-2.0
//! Questions about subjobs that failed before the start, and the answers typed at the terminal.

use crate::happening::Event;
use isthmus_job::Substitute;
use isthmus_job::coallocation::Answer;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;

/// What can be answered.
pub(crate) const CHOICES: &str =
    "drop: go on without it; retry: try again or wait on; use CONTACT: run it there; abort: end the job";

/// Reads what is typed at the terminal from now on.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    /// Subjobs that are asked about, the first one now.
    open: Vec<usize>,
    listening: bool,
    /// The terminal is somebody else's from here on.
    left: Arc<AtomicBool>,
}

impl Questions {
    /// Asks about a subjob; true when it is its turn at once.
    pub(crate) fn ask(&mut self, site: usize, terminal: bool, events: &mpsc::UnboundedSender<Event>) -> bool {
        self.open.retain(|other| *other != site);
        self.open.push(site);
        if terminal && !std::mem::replace(&mut self.listening, true) {
            let (events, left) = (events.clone(), Arc::clone(&self.left));
            // Without a thread nobody answers here; `isthmus edit` can.
            let _ = std::thread::Builder::new()
                .name("answers".to_owned())
                .spawn(move || listen(&events, &left));
        }
        self.open.len() == 1
    }

    /// Nothing that is typed from here on is for us.
    pub(crate) fn leave_terminal(&self) {
        self.left.store(true, Ordering::Relaxed);
    }

    /// What is asked about now.
    pub(crate) fn now(&self) -> Option<usize> {
        self.open.first().copied()
    }

    /// A question has its answer. The next one, when it is its turn.
    pub(crate) fn close(&mut self, site: usize) -> Option<usize> {
        let first = self.now();
        self.open.retain(|other| *other != site);
        if self.now() == first { None } else { self.now() }
    }
}

/// How often a reader of the terminal looks whether it still is one.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

fn listen(events: &mpsc::UnboundedSender<Event>, left: &AtomicBool) {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else {
        return;
    };
    let mut terminal = BufReader::new(terminal);
    let mut line = String::new();
    loop {
        // A terminal gives whole lines: whoever has something to read does not wait for more.
        let mut ready = [PollFd::new(terminal.get_ref(), PollFlags::IN)];
        let waits = terminal.buffer().is_empty() && matches!(poll(&mut ready, Some(&LOOK)), Ok(0) | Err(Errno::INTR));
        if left.load(Ordering::Relaxed) || events.is_closed() {
            return;
        }
        if waits {
            continue;
        }
        line.clear();
        if !matches!(terminal.read_line(&mut line), Ok(1..)) {
            return;
        }
        let typed = line.trim_end_matches(['\r', '\n']).to_owned();
        if events.send(Event::Typed(typed)).is_err() {
            return;
        }
    }
}

/// Asks about a subjob of this name: at the terminal, or to be answered by another command that knows the job's name.
pub(crate) fn prompt(site: &str, terminal: bool, job: Option<&str>) -> String {
    let how = match (terminal, job) {
        (true, _) => CHOICES.to_owned(),
        (false, Some(job)) => format!("isthmus edit {job} {site} drop|retry|use CONTACT|abort"),
        (false, None) => String::new(),
    };
    format!("what should happen to '{site}'? {how}")
}

/// What was typed, as an answer.
pub(crate) fn parse(line: &str) -> Result<Answer, String> {
    let mut words = line.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some("drop" | "d"), None, _) => Ok(Answer::Drop),
        (Some("retry" | "wait" | "r"), None, _) => Ok(Answer::Retry),
        (Some("abort" | "a"), None, _) => Ok(Answer::Abort),
        (Some("use" | "u"), Some(contact), None) => Substitute::parse(contact)
            .map(Answer::Substitute)
            .map_err(|error| error.to_string()),
        _ => Err(format!("answer {CHOICES}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        assert_eq!(parse(" drop "), Ok(Answer::Drop));
        assert!(matches!(parse("use me@lab"), Ok(Answer::Substitute(_))));
        for wrong in ["", "drop it", "use", "use -x", "yes"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn one_question_at_a_time() {
        let (events, _queue) = mpsc::unbounded_channel();
        let mut questions = Questions::default();
        assert!(questions.ask(1, false, &events) && !questions.ask(2, false, &events));
        assert_eq!((questions.close(1), questions.now()), (Some(2), Some(2)));
        assert_eq!(questions.close(2), None);
    }
}
