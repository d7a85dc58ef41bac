// SPDX-License-Identifier: Apache-2.0
//! The options' names, and what is said of those that have no effect here.

use crate::error::JobError;
use isthmus_settings::nearest;

/// Name and spellings of every option.
const OPTIONS: [(&str, &[&str]); 48] = [
    ("n", &["n", "np", "c", "ntasks"]),
    ("configfile", &["configfile", "app"]),
    ("host", &["host", "hosts", "H"]),
    (
        "hostfile",
        &["f", "hostfile", "machinefile", "machine", "default-hostfile"],
    ),
    ("wdir", &["wdir", "wd", "cwd", "chdir"]),
    ("env", &["env"]),
    ("genv", &["genv"]),
    ("envlist", &["envlist"]),
    ("genvlist", &["genvlist"]),
    ("x", &["x"]),
    ("ppn", &["ppn", "perhost", "npernode", "N", "grr", "ntasks-per-node"]),
    ("pernode", &["pernode"]),
    ("bind-to", &["bind-to", "bind_to"]),
    ("map-by", &["map-by", "map_by"]),
    ("rank-by", &["rank-by", "rank_by"]),
    (
        "bind-each",
        &["bind-each", "cpus-per-rank", "cpus-per-proc", "cpus-per-task"],
    ),
    ("map-each", &["map-each"]),
    ("npersocket", &["npersocket"]),
    // As Open MPI had them before --bind-to and --map-by.
    (
        "old-bind-to",
        &["bind-to-core", "bind-to-socket", "bind-to-none", "bind-to-hwthread"],
    ),
    ("old-map-by", &["bycore", "bysocket", "byslot", "bynode"]),
    ("report-bindings", &["report-bindings"]),
    ("environment", &["genvnone", "envnone"]),
    ("rankfile", &["rankfile", "rf", "machinemap"]),
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
    ("tune", &["tune"]),
    (
        "ignored-value",
        &[
            "launcher",
            "launcher-exec",
            "rmk",
            "iface",
            "bootstrap",
            "prefix",
            "display",
            "output",
            "usize",
            "demux",
            "topolib",
            "localhost",
            "membind",
            "order-nodes",
        ],
    ),
    (
        "noted",
        &[
            "v",
            "verbose",
            // Hydra prints of which build it is.
            "info",
            "d",
            "debug-daemons",
            "show-progress",
            "display-map",
            "display-allocation",
            "display-topo",
            "print-rank-map",
            "print-all-exitcodes",
            "use-hwthread-cpus",
            "nooversubscribe",
            "nolocal",
            "skip-launch-node",
            "timestamp-output",
            "merge-stderr-to-stdout",
            "disable-hostname-propagation",
            "enable-x",
            "disable-x",
            "disable-auto-cleanup",
        ],
    ),
    (
        "ignored",
        &[
            "genvall",
            "envall",
            "oversubscribe",
            "allow-run-as-root",
            "q",
            "quiet",
            "noprefix",
            // Lines of ranks are whole in any case.
            "ordered-output",
        ],
    ),
    ("dumprsl", &["dumprsl", "dump-rsl", "globusdumprsl", "globus-dump-rsl"]),
    ("globusrsl", &["globusrsl", "globus-rsl"]),
    ("nostage", &["nostage"]),
    ("separate", &["separate"]),
    ("share", &["share"]),
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
        "environment" => {
            "processes on this machine have the whole environment, those of other sites that of a login there; env -i PROGRAM starts with none"
        }
        _ => "write the description into a job file: isthmus run JOB.toml",
    }
}

/// `-initial-errhandler` (MPI 5.0 section 9.3.4), in any case: the variable that says it to the processes.
pub fn initial_errhandler(name: &str) -> Result<(String, String), JobError> {
    let setting = isthmus_settings::INITIAL_ERRHANDLER;
    let name = name.trim().to_ascii_lowercase();
    match setting.words.contains(&name.as_str()) {
        true => Ok((setting.name.to_owned(), name)),
        false => {
            let error = JobError::new(format!("'{name}' is not an error handler"));
            Err(error.hint("mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return"))
        }
    }
}

/// Processes are dealt out by hosts and their numbers; a rank has no host of its own.
pub(super) fn no_rankfile(word: &str) -> JobError {
    JobError::new(format!("{word}: a file that gives each rank its place is not read"))
        .hint("ranks follow the order of the hosts: -host A:2,B:1 gives A ranks 0 and 1; --bind-to and --map-by choose parts of a machine")
}

/// `NAME=VALUE` in one word, as Hydra takes it behind `-env` and `-genv`, or the name with the value in the next word.
pub(super) fn assignment<'a>(
    value: &mut impl FnMut(&str) -> Result<&'a str, JobError>,
) -> Result<(&'a str, &'a str), JobError> {
    let name = value("name")?;
    match name.split_once('=') {
        Some(both) => Ok(both),
        None => Ok((name, value("value")?)),
    }
}

/// A number that stands right behind its option, as in `-n4` and `-np4`.
pub(super) fn attached(word: &str) -> Option<(&str, &str)> {
    let letters = word.strip_prefix("-np").or_else(|| word.strip_prefix("-n"))?;
    let is_number = !letters.is_empty() && letters.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| word.split_at(word.len() - letters.len()))
}

/// What an old option says that has its value in its name: `-bind-to-core`, `-bycore`.
pub(super) fn old_word(option: &str) -> &str {
    let name = option.trim_start_matches('-');
    let value = name.strip_prefix("bind-to-").or_else(|| name.strip_prefix("by"));
    value.unwrap_or(name)
}

/// Options that need a value.
pub(super) fn takes_value(name: &str) -> bool {
    !matches!(
        name,
        "dumprsl"
            | "nostage"
            | "separate"
            | "report-bindings"
            | "old-bind-to"
            | "old-map-by"
            | "environment"
            | "pernode"
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

/// The option that is meant before this word: Intel's `-tune` may stand alone, with others behind it.
pub(super) fn before(name: &'static str, next: Option<&str>) -> &'static str {
    match (name, next) {
        ("tune", Some(value)) if !value.starts_with('-') => "ignored-value",
        ("tune", _) => "noted",
        (name, _) => name,
    }
}

/// All spellings of all options, without hyphens.
pub fn option_names() -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().flat_map(|(_, spellings)| spellings.iter().copied())
}

/// The one name of an option that takes the next word as its value.
pub fn option_with_value(word: &str) -> Option<&'static str> {
    option(word).filter(|name| takes_value(name))
}

/// Said of options about the inner life of another launcher.
pub(super) const OTHERS: &str =
    "it belongs to another launcher; `isthmus info --settings` lists the settings of Isthmus";

/// The one name of an option with several spellings.
pub(super) fn option(word: &str) -> Option<&'static str> {
    let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
    OPTIONS
        .iter()
        .find(|(_, spellings)| spellings.contains(&name))
        .map(|(name, _)| *name)
}

/// `help`: what lists them all.
pub(super) fn unknown(word: &str, help: &str) -> JobError {
    let known: Vec<&str> = OPTIONS
        .iter()
        .flat_map(|(_, spellings)| spellings.iter().copied())
        .collect();
    let error = JobError::new(format!("option '{word}' is unknown"));
    if let Some(hint) = hint(word) {
        return error.hint(hint);
    }
    match nearest(word.trim_start_matches('-'), &known) {
        Some(near) => error.hint(format!("did you mean '-{near}'?")),
        None => error.hint(format!("see {help}")),
    }
}

/// What to write in place of an option of a launcher that is a scheduler's, or of one that has no counterpart.
pub(super) fn hint(word: &str) -> Option<&'static str> {
    let name = word.trim_start_matches('-');
    Some(match name.split_once('=').map_or(name, |(name, _)| name) {
        "p" | "partition" | "q" | "queue" => "give the queue with its site: --site NAME:N,scheduler=slurm,queue=Q",
        "A" | "account" => "give the account with its site: --site NAME:N,scheduler=slurm,account=A",
        "nodes" | "nnodes" => {
            "give the nodes with their site: --site NAME:N,scheduler=slurm,nodes=2; or -ppn N with hosts"
        }
        "exclusive" => "give it with its site: --site NAME:N,scheduler=slurm,exclusive",
        "constraint" | "gres" | "gpus" | "qos" | "reservation" | "mem" => {
            "give options of a scheduler with their site: --site NAME:N,scheduler=slurm,directive=--OPTION=VALUE"
        }
        "t" => {
            "the time of a job is limited with --time, that of an allocation with --site NAME:N,scheduler=slurm,limit=1h"
        }
        "cpu-bind" | "cpu-list" | "cpu-set" | "binding" | "rr" => {
            "places of processes are given with --bind-to and --map-by"
        }
        "tv" | "debug" | "gdb" | "gdba" | "xterm" | "debugger" => {
            "a debugger is started as the program, with the program behind it: mpiexec -n 2 xterm -e gdb --args ./app; \
             `isthmus where` shows what each rank waits for"
        }
        "trace" | "t3" | "profile" | "check_mpi" | "aps" | "itac" => {
            "isthmus run --trace FILE writes what each rank did; ISTHMUS_STATS=1 sums it up"
        }
        "preload-binary" | "preload-files" => {
            "programs are copied to sites by themselves, files with isthmus run --input FILE"
        }
        "dvm" | "ompi-server" | "server" | "report-uri" | "report-pid" | "ckpoint" | "ckpointlib" => {
            "jobs in the background: isthmus run --detach, then isthmus ps, attach and kill"
        }
        "with-ft" | "enable-recovery" | "enable-ft" => {
            "isthmus run --on-loss go-on lets the other processes go on when one is lost (ULFM)"
        }
        "mpi" => "leave it out: processes find each other without a plugin",
        "kill-on-bad-exit" => "leave it out: a job ends with the first process that fails",
        "do-not-launch" | "do-not-run" => "isthmus run --dry-run shows what would be started where",
        "multi-prog" => "write several programs into a job file: isthmus run JOB.toml",
        "o" | "e" | "error" => "--outfile-pattern NAME writes a file for each process: %r is its rank, %t out or err",
        _ => return None,
    })
}
