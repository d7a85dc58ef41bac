// SPDX-License-Identifier: Apache-2.0
//! The first word behind `isthmus`, where it is none of its commands: what people type by habit.

use isthmus_job::JobError;
use isthmus_settings::nearest;
use std::ffi::OsString;
use std::path::Path;

/// Words of other launchers and schedulers, and what to type here.
const HABITS: [(&str, &[&str]); 11] = [
    (
        "isthmus run",
        &[
            "start", "launch", "exec", "mpirun", "mpiexec", "srun", "prun", "prterun", "flux",
        ],
    ),
    ("isthmus run --detach", &["submit", "sbatch", "qsub", "bsub", "batch"]),
    (
        "isthmus ps",
        &[
            "list", "ls", "jobs", "squeue", "qstat", "bjobs", "status", "stat", "queue",
        ],
    ),
    (
        "isthmus kill JOB",
        &[
            "stop",
            "cancel",
            "scancel",
            "qdel",
            "bkill",
            "delete",
            "rm",
            "abort",
            "end",
            "terminate",
        ],
    ),
    ("isthmus top", &["monitor", "stats", "statistics", "watch", "traffic"]),
    ("isthmus where", &["stack", "stacks", "hang", "hangs", "debug", "padb"]),
    ("isthmus discover", &["hosts", "nodes", "sinfo", "resources", "probe"]),
    ("isthmus cp", &["copy", "scp", "rsync", "put", "get", "stage"]),
    ("isthmus run --trace FILE", &["profile"]),
    ("isthmus info --settings", &["settings", "config", "env", "options"]),
    ("isthmus --version", &["version"]),
];

/// The words of a command line whose first one is a command, or what to type in place of it.
pub(crate) fn check(words: &[OsString], command: &clap::Command) -> Result<(), JobError> {
    let Some(word) = words.get(1).and_then(|word| word.to_str()) else {
        return Ok(());
    };
    let asks = matches!(word, "-h" | "--help" | "-V" | "--version" | "help");
    if asks || word.is_empty() || command.find_subcommand(word).is_some() {
        return Ok(());
    }
    let error = JobError::new(format!("isthmus has no command '{word}'"));
    Err(error.hint(meant(word, words, command)))
}

fn meant(word: &str, words: &[OsString], command: &clap::Command) -> String {
    if let Some((ours, _)) = HABITS.iter().find(|(_, theirs)| theirs.contains(&word)) {
        return format!("use {ours}");
    }
    let known: Vec<&str> = command
        .get_subcommands()
        .filter(|c| !c.is_hide_set())
        .map(clap::Command::get_name)
        .collect();
    if word.starts_with('-') {
        let later = words.iter().skip(2).filter_map(|w| w.to_str());
        return match later.into_iter().find(|w| known.contains(w)) {
            Some(verb) => format!("options follow the command: isthmus {verb} {word}"),
            None => format!("to start a program: isthmus run {word} …"),
        };
    }
    if word.contains('/') || Path::new(word).is_file() {
        return format!("to start a program: isthmus run {word}");
    }
    match nearest(word, &known) {
        Some(near) => format!("did you mean 'isthmus {near}'?"),
        None => "isthmus help lists the commands".to_owned(),
    }
}

/// The command as it takes negative numbers as values: what is wrong with them is said where they are read.
pub(crate) fn with_numbers(command: clap::Command) -> clap::Command {
    command.mut_subcommands(with_numbers).mut_args(|argument| {
        let sized = !argument.is_positional() || argument.get_id() == "size";
        let takes = argument.get_action().takes_values();
        match sized && takes {
            true => argument.allow_negative_numbers(true),
            false => argument,
        }
    })
}
