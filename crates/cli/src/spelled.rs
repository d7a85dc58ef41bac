// SPDX-License-Identifier: Apache-2.0
//! The command line of `isthmus run` where options of other launchers are written.

use crate::diagnostic::note;
use isthmus_job::JobError;
use isthmus_job::mpiexec::spellings::{self, Own};
use isthmus_stage::words;
use std::ffi::OsString;

/// The command line with the options of `isthmus run` in its own spelling, where other launchers' are written.
pub(crate) fn spelled(all: Vec<OsString>, command: &clap::Command) -> Result<Vec<OsString>, JobError> {
    let Some(run) = command.find_subcommand("run") else {
        return Ok(all);
    };
    // Those whose words name programs, arguments and files of the user: they need not be UTF-8.
    let verb = all.get(1).and_then(|verb| verb.to_str()).unwrap_or_default();
    if !matches!(verb, "run" | "job" | "cp" | "node" | "explain" | "simulate") {
        return Ok(all);
    }
    let words: Vec<String> = all.iter().skip(2).map(words::text).collect();
    if verb != "run" {
        let first = all.into_iter().take(2);
        return Ok(first.chain(words.into_iter().map(OsString::from)).collect());
    }
    let spelled = spellings::translate(&words, &|word| own(run, word))?;
    spelled.notes.iter().for_each(note);
    let first = all.into_iter().take(2);
    Ok(first.chain(spelled.words.into_iter().map(OsString::from)).collect())
}

/// Whether a word is an option of this command, as its parser takes it.
fn own(command: &clap::Command, word: &str) -> Own {
    let takes = |argument: &clap::Arg| argument.get_action().takes_values();
    if let Some(long) = word.strip_prefix("--") {
        let name = long.split('=').next().unwrap_or_default();
        let found = command.get_arguments().find(|a| a.get_long() == Some(name));
        return match found {
            _ if name == "help" => Own::Complete,
            None => Own::No,
            Some(argument) if takes(argument) && name == long => Own::TakesNext,
            Some(_) => Own::Complete,
        };
    }
    let mut letters = word.chars().skip(1).peekable();
    while let Some(letter) = letters.next() {
        match command.get_arguments().find(|a| a.get_short() == Some(letter)) {
            _ if letter == 'h' => {}
            None => return Own::No,
            Some(argument) if takes(argument) && letters.peek().is_none() => return Own::TakesNext,
            Some(argument) if takes(argument) => return Own::Complete,
            Some(_) => {}
        }
    }
    Own::Complete
}
