// SPDX-License-Identifier: Apache-2.0
//! What is wrong with what the user wrote, and what they should know, on standard error: in colours on a terminal.

use crate::run::STATUS_USAGE;
use isthmus_job::{JobError, JobErrors, Paint};
use isthmus_wire::word;
use std::io::IsTerminal;
use std::process::ExitCode;

/// Tells the user everything that is wrong with what they wrote.
pub(crate) fn refuse(errors: &(impl Clone + Into<JobErrors>)) -> ExitCode {
    let errors: JobErrors = errors.clone().into();
    let paint = paint();
    for error in errors.iter() {
        crate::complain(&format!("isthmus: {} {}", paint.severe("error:"), error.render(paint)));
    }
    let told = errors.iter().count();
    if errors.count() > told {
        crate::complain(&format!("isthmus: and {} more", errors.count() - told));
    }
    if errors.count() > 1 {
        crate::complain(&format!("isthmus: nothing was done: {} mistakes", errors.count()));
    }
    ExitCode::from(STATUS_USAGE)
}

/// Text for people: without what a terminal would obey, and without the numbers of the system's errors.
pub(crate) fn plain(text: &str) -> String {
    word::without_numbers(&isthmus_launch::plain(text))
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

/// What follows an escape sign to make letters coloured or bold.
fn is_colour(rest: &str) -> bool {
    let numbers = rest.strip_prefix('[').and_then(|rest| rest.split_once('m'));
    numbers.is_some_and(|(numbers, _)| numbers.bytes().all(|b| b.is_ascii_digit() || b == b';'))
}

/// Tells the user something about what they wrote that is no mistake.
pub(crate) fn note(note: &JobError) {
    let paint = paint();
    crate::complain(&format!("isthmus: {} {}", paint.mild("note:"), note.render(paint)));
}

/// Tells the user about something that they wrote and that is not used.
pub(crate) fn warn(warning: &JobError) {
    let paint = paint();
    crate::complain(&format!(
        "isthmus: {} {}",
        paint.mild("warning:"),
        warning.render(paint)
    ));
}

/// Colours on terminals only, and never when NO_COLOR says so.
fn paint() -> Paint {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|v| v == "dumb");
    if std::io::stderr().is_terminal() && !refused && !dumb {
        Paint::Colours
    } else {
        Paint::Plain
    }
}

#[cfg(test)]
mod tests {
    use super::{harmless, plain};

    #[test]
    fn nothing_reaches_a_terminal_raw() {
        assert_eq!(plain("a\x1b[2J\tb\n"), "a\\u{1b}[2J\tb\n");
        assert_eq!(
            harmless("\x1b[1;31merror:\x1b[0m '\x1b[2J\x07\u{9b}2J'\n"),
            "\x1b[1;31merror:\x1b[0m '\\u{1b}[2J\\u{7}\\u{9b}2J'\n"
        );
        assert_eq!(plain("no such file (os error 2): x (os error 13)"), "no such file: x");
    }
}
