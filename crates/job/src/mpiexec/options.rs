// SPDX-License-Identifier: Apache-2.0
//! The options' names, and what is said of those that have no effect here.

use super::spellings;
use crate::error::JobError;
use isthmus_settings::nearest;

/// Name and spellings of every option.
const OPTIONS: [(&str, &[&str]); 35] = [
    ("n", &["n", "np", "c", "ntasks"]),
    ("configfile", &["configfile"]),
    ("host", &["host", "hosts", "H"]),
    (
        "hostfile",
        &["f", "hostfile", "machinefile", "machine", "default-hostfile"],
    ),
    ("wdir", &["wdir", "wd", "cwd", "chdir"]),
    ("env", &["env"]),
    ("genv", &["genv"]),
    ("envlist", &["envlist", "genvlist"]),
    ("x", &["x"]),
    ("ppn", &["ppn", "perhost", "npernode", "N", "grr", "ntasks-per-node"]),
    ("bind-to", &["bind-to"]),
    ("map-by", &["map-by"]),
    ("report-bindings", &["report-bindings"]),
    ("lan", &["lan"]),
    ("label", &["l", "label", "prepend-rank", "tag-output"]),
    ("timeout", &["timeout"]),
    ("stdin", &["stdin", "s"]),
    ("outfile-pattern", &["outfile-pattern"]),
    ("errfile-pattern", &["errfile-pattern"]),
    ("output-dir", &["output-filename", "output-dir"]),
    ("soft", &["soft"]),
    ("arch", &["arch"]),
    ("path", &["path"]),
    ("file", &["file"]),
    ("initial-errhandler", &["initial-errhandler"]),
    ("mca", &["mca", "gmca", "prtemca", "pmixmca", "omca"]),
    (
        "ignored-value",
        &[
            "launcher",
            "launcher-exec",
            "rmk",
            "iface",
            "bootstrap",
            "tune",
            "prefix",
            "rank-by",
        ],
    ),
    (
        "noted",
        &[
            "v",
            "verbose",
            "d",
            "debug-daemons",
            "q",
            "quiet",
            "show-progress",
            "display-map",
            "display-allocation",
            "genvnone",
        ],
    ),
    ("ignored", &["genvall", "envall", "oversubscribe", "allow-run-as-root"]),
    ("dumprsl", &["dumprsl", "dump-rsl", "globusdumprsl", "globus-dump-rsl"]),
    ("globusrsl", &["globusrsl", "globus-rsl"]),
    ("nostage", &["nostage"]),
    ("ignored", &["stage", "leave_pg"]),
    ("help", &["h", "help"]),
    ("version", &["V", "version"]),
];

/// What to do in place of an option that is accepted.
pub(super) fn instead(name: &str) -> &'static str {
    match name {
        "soft" => "the number of processes is that of -n",
        "arch" => "a job file may name a program for each architecture (program.x86_64)",
        "path" => "name the program with its directory, or set PATH with -env",
        "errfile-pattern" => "-outfile-pattern with %t names files for both streams",
        _ => "write the description into a job file: isthmus run JOB.toml",
    }
}

/// `-initial-errhandler` (MPI 5.0 section 9.3.4): fatal errors are how every program begins here.
pub(super) fn check_errhandler(name: &str, notes: &mut Vec<JobError>) -> Result<(), JobError> {
    match name {
        "mpi_errors_are_fatal" => {}
        "mpi_errors_abort" | "mpi_errors_return" => {
            let note = JobError::new(format!("-initial-errhandler {name} has no effect"));
            notes.push(note.hint("the program begins with MPI_ERRORS_ARE_FATAL; MPI_Comm_set_errhandler changes that"));
        }
        other => {
            let error = JobError::new(format!("'{other}' is no error handler"));
            return Err(error.hint("mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return"));
        }
    }
    Ok(())
}

/// Options that need a value.
pub(super) fn takes_value(name: &str) -> bool {
    !matches!(
        name,
        "dumprsl"
            | "nostage"
            | "report-bindings"
            | "label"
            | "ignored"
            | "noted"
            | "help"
            | "version"
            | "env"
            | "genv"
            | "mca"
    )
}

/// Said of options about the inner life of another launcher.
pub(super) const OTHERS: &str = "it is about another launcher; `isthmus info --settings` lists what can be set here";

/// The one name of an option with several spellings.
pub(super) fn option(word: &str) -> Option<&'static str> {
    let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
    OPTIONS
        .iter()
        .find(|(_, spellings)| spellings.contains(&name))
        .map(|(name, _)| *name)
}

pub(super) fn unknown(word: &str) -> JobError {
    let known: Vec<&str> = OPTIONS
        .iter()
        .flat_map(|(_, spellings)| spellings.iter().copied())
        .collect();
    let error = JobError::new(format!("option '{word}' is unknown"));
    if let Some(hint) = spellings::hint(word) {
        return error.hint(hint);
    }
    match nearest(word.trim_start_matches('-'), &known) {
        Some(near) => error.hint(format!("did you mean '-{near}'?")),
        None => error.hint("see mpiexec -help"),
    }
}
