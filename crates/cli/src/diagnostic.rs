// SPDX-License-Identifier: Apache-2.0
//! What is wrong with what the user wrote, and what they should know, on standard error: in colours on a terminal.

use isthmus_job::{JobError, JobErrors, Paint};
use isthmus_wire::word;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit status for what the user wrote wrong.
pub(crate) const STATUS_USAGE: u8 = 2;
/// Exit status of whoever follows a job when nobody reads its output any more: 128 + SIGPIPE, as of the job itself.
pub(crate) const STATUS_UNREAD: u8 = 141;

/// Tells the user everything that is wrong with what they wrote, or has failed.
pub(crate) fn refuse(errors: &(impl Clone + Into<JobErrors>)) -> ExitCode {
    let errors: JobErrors = errors.clone().into();
    let paint = to_people();
    for error in errors.iter() {
        crate::complain(&format!("isthmus: {} {}", paint.severe("error:"), error.render(paint)));
    }
    let told = errors.iter().count();
    if errors.count() > told {
        crate::complain(&format!("isthmus: and {} more", errors.count() - told));
    }
    if errors.count() > 1 {
        crate::complain(&format!(
            "isthmus: nothing was done: there are {} mistakes",
            errors.count()
        ));
    }
    match errors.are_accidents() {
        true => ExitCode::FAILURE,
        false => ExitCode::from(STATUS_USAGE),
    }
}

/// Text for people: without what a terminal would obey, and without the numbers of the system's errors.
pub(crate) fn plain(text: &str) -> String {
    word::without_numbers(&isthmus_reach::plain(text))
}

/// Text without what a terminal would obey, our colours apart. Whoever builds a message from words of others has made
/// them plain; this is for those who have forgotten it.
pub(crate) fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, sign) in text.char_indices() {
        match sign {
            '\n' | '\t' => out.push(sign),
            '\x1b' if is_colour(&text[at + 1..]) => out.push(sign),
            sign if sign.is_control() => out.extend(sign.escape_default()),
            sign => out.push(sign),
        }
    }
    out
}

/// Longest line of a message, characters: a word that somebody wrote may be as long as the system allows.
const LONGEST: usize = 2000;
/// Characters of its end that are shown then.
const END: usize = 200;

/// Text in which the middle of a line that is too long is left out.
pub(crate) fn cut(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(cut_line).collect();
    lines.join("\n")
}

fn cut_line(line: &str) -> String {
    let length = line.chars().count();
    if length <= LONGEST {
        return line.to_owned();
    }
    let begin: String = line.chars().take(LONGEST - END).collect();
    let end: String = line.chars().skip(length - END).collect();
    format!("{begin} … ({} characters left out) … {end}", length - LONGEST)
}

/// What follows an escape sign to make letters coloured or bold.
fn is_colour(rest: &str) -> bool {
    let numbers = rest.strip_prefix('[').and_then(|rest| rest.split_once('m'));
    numbers.is_some_and(|(numbers, _)| numbers.bytes().all(|b| b.is_ascii_digit() || b == b';'))
}

/// What there is to note has been told by another command.
static IS_MUTE: AtomicBool = AtomicBool::new(false);

/// Whether notes are told.
pub(crate) fn mute(now: bool) {
    IS_MUTE.store(now, Ordering::Relaxed);
}

/// Tells the user something about what they wrote that is no mistake.
pub(crate) fn note(note: &JobError) {
    if IS_MUTE.load(Ordering::Relaxed) {
        return;
    }
    let paint = to_people();
    crate::complain(&format!("isthmus: {} {}", paint.mild("note:"), note.render(paint)));
}

/// Tells the user about something that they wrote and that is not used.
pub(crate) fn warn(warning: &JobError) {
    let paint = to_people();
    crate::complain(&format!(
        "isthmus: {} {}",
        paint.mild("warning:"),
        warning.render(paint)
    ));
}

/// For standard error.
fn to_people() -> Paint {
    paint(&std::io::stderr())
}

/// Colours on terminals only, and never when NO_COLOR says so.
pub(crate) fn paint(stream: &impl IsTerminal) -> Paint {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|v| v == "dumb");
    if stream.is_terminal() && !refused && !dumb {
        Paint::Colours
    } else {
        Paint::Plain
    }
}

/// Why a site cannot be used, as a message.
pub(crate) fn at(site: &str, failure: &isthmus_reach::Failure) -> JobError {
    let error = JobError::new(format!("site '{site}': {}", failure.problem)).accident();
    if failure.hint.is_empty() {
        error
    } else {
        error.hint(&failure.hint)
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, cut, harmless, plain};

    #[test]
    fn nothing_reaches_a_terminal_raw() {
        assert_eq!(plain("a\x1b[2J\tb\n"), "a\\u{1b}[2J\tb\n");
        assert_eq!(
            harmless("\x1b[1;31merror:\x1b[0m '\x1b[2J\x07\u{9b}2J'\n"),
            "\x1b[1;31merror:\x1b[0m '\\u{1b}[2J\\u{7}\\u{9b}2J'\n"
        );
        assert_eq!(plain("no such file (os error 2): x (os error 13)"), "no such file: x");
    }

    #[test]
    fn a_long_word_leaves_the_sentence_around_it() {
        let told = cut(&format!("there is no job '{}' here\n  hint: é", "é".repeat(100_000)));
        assert!(
            told.starts_with("there is no job 'é") && told.ends_with("é' here\n  hint: é"),
            "{told}"
        );
        assert!(told.chars().count() < LONGEST + 100 && told.contains("characters left out"));
        assert_eq!(cut("short"), "short");
    }
}
