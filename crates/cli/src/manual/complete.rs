// SPDX-License-Identifier: Apache-2.0
//! What a shell may add to a command line: words of the command line's own tables, and what there is now: jobs, sites,
//! hosts, operations.
//!
//! The scripts of the shells ask `isthmus complete -- WORDS...`. The last word is the one that is being typed, the
//! first is the command. Each line of the answer is a word; a line [`FILES`] says that file names fit too.

use crate::reach;
use crate::simulate::operations;
use clap::{Arg, Args, Command};
use isthmus_job::mpiexec;
use isthmus_launch::session::Entry;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// File names fit too.
const FILES: &str = ":files";
/// Most bytes that are read of the configuration of ssh.
const MAX_CONFIGURATION: u64 = 1 << 20;

/// Print what a shell may add to a command line
#[derive(Args, Debug)]
pub(crate) struct Complete {
    /// The command and the words after it; the last is the one that is being typed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// `isthmus complete`.
pub(crate) fn complete(arguments: &Complete, mut command: Command) -> ExitCode {
    command.build();
    for word in candidates(&arguments.words, &command) {
        crate::print(&word);
    }
    ExitCode::SUCCESS
}

/// What fits in place of the last word.
fn candidates(words: &[String], command: &Command) -> Vec<String> {
    let [called, before @ .., current] = words else {
        return Vec::new();
    };
    let called = Path::new(called)
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or_default();
    match called {
        "isthmus" => of_command(before, current, command),
        _ => of_mpiexec(before, current),
    }
}

/// Those that begin as the current word does, each once, behind what stands in front of it.
fn fitting(front: &str, current: &str, all: impl IntoIterator<Item = String>) -> Vec<String> {
    let all: BTreeSet<String> = all.into_iter().collect();
    let fits = |word: &String| word == FILES || word.starts_with(current);
    let fronted = |word: String| if word == FILES { word } else { format!("{front}{word}") };
    all.into_iter().filter(fits).map(fronted).collect()
}

fn of_command(before: &[String], current: &str, top: &Command) -> Vec<String> {
    let mut at = top;
    let mut positional = 0;
    let mut awaiting: Option<&Arg> = None;
    for word in before {
        if awaiting.take().is_some() {
            continue;
        }
        if word.len() > 1 && word.starts_with('-') {
            awaiting = option(at, word).filter(|a| a.get_action().takes_values() && !word.contains('='));
        } else if let Some(verb) = at.find_subcommand(word) {
            at = verb;
        } else {
            positional += 1;
        }
    }
    if let Some(argument) = awaiting {
        return fitting("", current, values(at, argument));
    }
    if let Some((name, value)) = current.split_once('=').filter(|(name, _)| name.starts_with("--")) {
        let found = option(at, name).map(|argument| values(at, argument));
        return fitting(&format!("{name}="), value, found.unwrap_or_default());
    }
    let taken = at
        .get_positionals()
        .nth(positional)
        .or_else(|| at.get_positionals().last());
    // Behind a program all words are its own.
    let program = positional > 0 && at.get_positionals().any(Arg::is_trailing_var_arg_set);
    if program {
        return vec![FILES.to_owned()];
    }
    let mut all: Vec<String> = at
        .get_subcommands()
        .filter(|c| !c.is_hide_set())
        .map(|c| c.get_name().to_owned())
        .collect();
    if current.starts_with('-') {
        let shown = at.get_arguments().filter(|a| !a.is_hide_set());
        all.extend(shown.filter_map(|a| a.get_long().map(|long| format!("--{long}"))));
    } else if let Some(argument) = taken {
        all.extend(values(at, argument));
    }
    fitting("", current, all)
}

/// The option that a word names.
fn option<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let name = word.split('=').next().unwrap_or_default();
    match name.strip_prefix("--") {
        Some(long) => command.get_arguments().find(|a| a.get_long() == Some(long)),
        None => {
            let letter = name.chars().nth(1)?;
            command.get_arguments().find(|a| a.get_short() == Some(letter))
        }
    }
}

/// What an argument may be.
fn values(command: &Command, argument: &Arg) -> Vec<String> {
    let possible: Vec<String> = argument
        .get_possible_values()
        .iter()
        .map(|v| v.get_name().to_owned())
        .collect();
    if !possible.is_empty() {
        return possible;
    }
    let verb = command.get_name();
    match argument.get_id().as_str() {
        // Of `run`, the description of a job.
        "file" if matches!(verb, "run" | "convert") => vec![FILES.to_owned()],
        "job" => jobs(!matches!(verb, "signal" | "kill" | "edit" | "top" | "where")),
        "hosts" => hosts(),
        "site" if verb == "edit" => sites(),
        "sites" | "site" | "at" | "only" => sites().into_iter().chain(hosts()).collect(),
        "operation" => operations().map(str::to_owned).collect(),
        "bind_to" | "map_by" | "rank_by" => parts(),
        "sizes" | "condition" | "select" | "processes" | "time" | "hang" | "interval" => Vec::new(),
        _ => vec![FILES.to_owned()],
    }
}

/// Jobs by their names, or else their identifiers; `ended`: also those that have ended.
fn jobs(ended: bool) -> Vec<String> {
    let all = Entry::all().into_iter().filter(|entry| ended || entry.lives);
    all.map(|entry| entry.chosen_name().unwrap_or(&entry.name).to_owned())
        .collect()
}

/// This machine and the sites of the sites file.
fn sites() -> Vec<String> {
    let catalogue = reach::catalogue_in_silence();
    let named = catalogue.sites().map(|(name, _)| name.to_owned());
    std::iter::once("home".to_owned()).chain(named).collect()
}

/// Hosts that the configuration of ssh names.
fn hosts() -> Vec<String> {
    let file = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".ssh/config"));
    let mut text = String::new();
    if let Some(Ok(file)) = file.map(std::fs::File::open) {
        // What is no text names no host that could be typed.
        let _ = file.take(MAX_CONFIGURATION).read_to_string(&mut text);
    }
    hosts_in(&text)
}

fn hosts_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut words = line
            .split(|c: char| c.is_whitespace() || c == '=')
            .filter(|w| !w.is_empty());
        if words.next().is_some_and(|word| word.eq_ignore_ascii_case("host")) {
            let plain = |word: &&str| !word.contains(['*', '?', '!', '"']) && !word.chars().any(char::is_control);
            found.extend(
                words
                    .take_while(|w| !w.starts_with('#'))
                    .filter(plain)
                    .map(str::to_owned),
            );
        }
    }
    found
}

fn parts() -> Vec<String> {
    ["none", "hwthread", "core", "l3cache", "numa", "socket"]
        .map(str::to_owned)
        .to_vec()
}

/// The standard command line: programs stand between colons, each after its options.
fn of_mpiexec(before: &[String], current: &str) -> Vec<String> {
    let section = before.rsplit(|word| word == ":").next().unwrap_or_default();
    let mut awaiting = None;
    for word in section {
        match awaiting.take() {
            Some(_) => {}
            None if word.starts_with('-') && word != "--" => awaiting = mpiexec::option_with_value(word),
            // The program: its words are its own.
            None => return vec![FILES.to_owned()],
        }
    }
    match awaiting {
        Some("host") => {
            // Of a list the last entry is typed.
            let (front, last) = current
                .rsplit_once(',')
                .map_or(("", current), |(front, last)| (front, last));
            let front = if front.is_empty() {
                String::new()
            } else {
                format!("{front},")
            };
            fitting(&front, last, sites().into_iter().chain(hosts()))
        }
        Some("bind-to" | "map-by") => fitting("", current, parts()),
        Some("hostfile" | "wdir" | "globusrsl" | "configfile" | "output-dir" | "path") => vec![FILES.to_owned()],
        Some(_) => Vec::new(),
        None if current.starts_with('-') => {
            let hyphens = if current.starts_with("--") { "--" } else { "-" };
            let all = mpiexec::option_names().map(|name| format!("{hyphens}{name}"));
            fitting("", current, all)
        }
        None => vec![FILES.to_owned()],
    }
}

/// The script for a shell that asks us, where we have one of our own.
pub(super) fn script(shell: clap_complete::Shell) -> Option<&'static str> {
    match shell {
        clap_complete::Shell::Bash => Some(include_str!("complete/bash.sh")),
        clap_complete::Shell::Zsh => Some(include_str!("complete/zsh.zsh")),
        clap_complete::Shell::Fish => Some(include_str!("complete/fish.fish")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn of(line: &str) -> Vec<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let mut command = crate::Command::command();
        command.build();
        candidates(&words, &command)
    }

    #[test]
    fn words_of_the_tables_complete() {
        assert_eq!(of("isthmus disc"), ["discover"]);
        assert!(!of("isthmus ").contains(&"agent".to_owned()), "hidden");
        assert_eq!(of("isthmus run --det"), ["--detach"]);
        assert_eq!(of("isthmus run --progress l"), ["lines"]);
        assert_eq!(of("isthmus run --progress=l"), ["--progress=lines"]);
        assert_eq!(of("isthmus run --bind-to c"), ["core"]);
        assert_eq!(of("isthmus sites l"), ["list"]);
        assert_eq!(of("isthmus explain allr"), ["allreduce"]);
        assert!(of("isthmus run --site h").contains(&"home".to_owned()));
        assert_eq!(of("isthmus run ./app -"), [FILES]);
        assert_eq!(of("/usr/bin/mpiexec -bind-to nu"), ["numa"]);
        assert_eq!(of("mpirun --hostf"), ["--hostfile"]);
        assert_eq!(of("mpiexec -n 2 -host far,h"), ["far,home"]);
        assert_eq!(of("mpiexec -n 2 ./app : -bind-to nu"), ["numa"]);
        assert_eq!(of("mpiexec -n 2 ./a"), [FILES]);
        assert!(of("mpiexec").is_empty());
    }

    #[test]
    fn hosts_of_ssh_without_patterns() {
        let text = "Host lab lab2 # here\n  HostName x\nhost=far\nHost *.example.org !bad\nMatch host y\n";
        assert_eq!(hosts_in(text), ["lab", "lab2", "far"]);
    }
}
