// SPDX-License-Identifier: Apache-2.0
//! `isthmus attach`, `logs`, `signal`, `kill` and `edit`: jobs that run, and those that ran in the background.

use crate::diagnostic::{STATUS_UNREAD, STATUS_USAGE};
use crate::successor::with_launcher;
use crate::{inherited, reader};
use clap::Args;
use isthmus_launch::session::{Entry, LogReader};
use isthmus_wire::control::{Edit, Reply, Request};
use serde_json::json;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

/// How often logs are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Most bytes that are read of a log at once.
const PIECE: usize = 64 << 10;
/// How long the end of a job is awaited.
const ENDING: Duration = Duration::from_secs(10);
/// How long one that did not hear that it is to end may take to be gone all the same.
const UNHEARD: Duration = Duration::from_secs(3);

/// Show the output of a job until it ends
///
/// The exit status is that of the job. Ctrl-C leaves the job running. If the job has lost its launcher, this command
/// starts a new one.
#[derive(Args, Debug)]
pub(crate) struct Attach {
    /// The job: its name, its identifier or the beginning of one, or SITE/JOB where its launcher is at SITE;
    /// not needed where only one runs
    job: Option<String>,
}

/// Print the output of a background job
#[derive(Args, Debug)]
pub(crate) struct Logs {
    /// The job; not needed where only one runs
    job: Option<String>,
    /// Continue until the job ends
    #[arg(short, long)]
    follow: bool,
    /// Print its events, as lines of JSON
    #[arg(long)]
    events: bool,
}

/// Send a signal to the processes of a job
#[derive(Args, Debug)]
pub(crate) struct Signal {
    /// The job
    job: String,
    /// Name or number: USR1, SIGUSR1, 10
    #[arg(allow_hyphen_values = true)]
    signal: String,
    /// Only to those of one site, as `isthmus ps --long` names it
    #[arg(long, value_name = "SITE", default_value = "", hide_default_value = true)]
    site: String,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// End a job
///
/// Its processes get SIGTERM first, so that they can clean up. With --now they are killed at once.
#[derive(Args, Debug)]
pub(crate) struct Kill {
    /// The job
    job: String,
    /// End its processes at once, without a chance to clean up
    #[arg(short = '9', long)]
    now: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Drop, retry or move a subjob that has not begun
///
/// A subjob is the part of a job at one site. `abort` ends the whole job.
#[derive(Args, Debug)]
#[command(override_usage = "isthmus edit JOB SITE drop|retry|abort\n       isthmus edit JOB SITE use CONTACT")]
pub(crate) struct EditCommand {
    /// The job
    job: String,
    /// The subjob
    site: String,
    /// drop, retry, use CONTACT or abort
    #[arg(required = true, num_args = 1..=2)]
    what: Vec<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// The job that is meant: by name, or the only one that runs. Commands that change something in a job want its name.
pub(crate) fn find(job: Option<&str>) -> Result<Entry, String> {
    if let Some(job) = job {
        return Entry::find(job);
    }
    let mut running: Vec<Entry> = Entry::all().into_iter().filter(|e| e.lives).collect();
    match running.len() {
        1 => Ok(running.remove(0)),
        0 => Err("no job is running on this machine".to_owned()),
        _ => Err("several jobs are running: name one of those that `isthmus ps` lists".to_owned()),
    }
}

impl Attach {
    /// The job that is meant.
    pub(crate) fn job(&self) -> Option<&str> {
        self.job.as_deref()
    }
}

impl Logs {
    /// The job that is meant.
    pub(crate) fn job(&self) -> Option<&str> {
        self.job.as_deref()
    }
}

impl Signal {
    /// The job that is meant.
    pub(crate) fn job(&self) -> &str {
        &self.job
    }
}

impl Kill {
    /// The job that is meant.
    pub(crate) fn job(&self) -> &str {
        &self.job
    }
}

impl EditCommand {
    /// The job that is meant.
    pub(crate) fn job(&self) -> &str {
        &self.job
    }
}

/// `isthmus attach`.
pub(crate) fn attach(arguments: &Attach) -> ExitCode {
    with(arguments.job.as_deref(), |entry| {
        let entry = in_background(with_launcher(entry)?)?;
        // Its status is not known where nobody reads on.
        let Some(entry) = follow(entry, &["output", "errors"])? else {
            return Ok(ExitCode::from(STATUS_UNREAD));
        };
        let Some((status, _, _)) = entry.outcome() else {
            return Err(without_launcher(&entry));
        };
        let shown = (status & 0xff) as u8;
        Ok(ExitCode::from(if shown == 0 && status != 0 { 1 } else { shown }))
    })
}

/// `isthmus logs`.
pub(crate) fn logs(arguments: &Logs) -> ExitCode {
    with(arguments.job.as_deref(), |entry| {
        let entry = in_background(entry)?;
        let names: &[&str] = if arguments.events {
            &["events"]
        } else {
            &["output", "errors"]
        };
        if arguments.follow {
            follow(entry, names)?;
        } else {
            let mut logs = open(&entry, names);
            while pass_on(&mut logs)? == Passed::More {}
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// A job whose launcher was killed while somebody followed it.
fn without_launcher(entry: &Entry) -> String {
    let name = &entry.name;
    match entry.seconds_left() {
        Some(left) => format!(
            "job {name} has lost its launcher; its processes wait {left} s for another one: isthmus attach {name}, or isthmus kill {name}"
        ),
        None => format!("the launcher of job {name} was killed"),
    }
}

fn in_background(entry: Entry) -> Result<Entry, String> {
    match entry.is_background() {
        true => Ok(entry),
        false => Err(format!(
            "job {} prints to its own terminal and keeps no logs",
            entry.name
        )),
    }
}

/// A log, and whether it is of errors.
type Following = Vec<(LogReader, bool)>;

fn open(entry: &Entry, names: &[&str]) -> Following {
    let log = |name: &&str| (LogReader::open(&entry.path, name), *name == "errors");
    names.iter().map(log).collect()
}

/// Prints until the job has ended; nothing: nobody reads what is printed.
fn follow(mut entry: Entry, names: &[&str]) -> Result<Option<Entry>, String> {
    let mut logs = open(&entry, names);
    loop {
        // First whether it lives, then what it said: so nothing of its last words is missed.
        entry = entry.again();
        loop {
            match pass_on(&mut logs)? {
                Passed::More => {}
                Passed::All => break,
                Passed::Unread => return Ok(None),
            }
        }
        if !entry.lives {
            return Ok(Some(entry));
        }
        // A job that is silent for hours does not keep a command whose output went into `head`.
        if !reader::waits(LOOK) {
            return Ok(None);
        }
    }
}

/// What was new.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passed {
    All,
    /// There may be more.
    More,
    /// Nobody reads what is printed any more, or it has no place.
    Unread,
}

/// Prints what is new.
fn pass_on(logs: &mut Following) -> Result<Passed, String> {
    let mut passed = Passed::All;
    for (log, errors) in logs {
        let bytes = log
            .read(PIECE)
            .map_err(|error| format!("cannot read the log: {error}"))?;
        if bytes.is_empty() {
            continue;
        }
        if bytes.len() == PIECE {
            passed = Passed::More;
        }
        if *errors {
            let written = inherited::errors().and_then(|()| io::stderr().write_all(&bytes));
            written.map_err(|error| format!("cannot print: {error}"))?;
        } else if !crate::put(&bytes) {
            return Ok(Passed::Unread);
        }
    }
    Ok(passed)
}

/// `isthmus signal`.
pub(crate) fn signal(arguments: &Signal) -> ExitCode {
    with(Some(&arguments.job), |entry| {
        let number = signal_number(&arguments.signal)?;
        let site = arguments.site.clone();
        ask(&entry, &Request::Signal { number, site })?;
        if arguments.json {
            crate::json::print("signal", json!({ "job": entry.name, "signal": number }));
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn signal_number(text: &str) -> Result<u32, String> {
    const NAMES: [(&str, u32); 16] = [
        ("HUP", 1),
        ("INT", 2),
        ("QUIT", 3),
        ("ABRT", 6),
        ("KILL", 9),
        ("USR1", 10),
        ("SEGV", 11),
        ("USR2", 12),
        ("PIPE", 13),
        ("ALRM", 14),
        ("TERM", 15),
        ("CONT", 18),
        ("STOP", 19),
        ("TSTP", 20),
        ("URG", 23),
        ("XCPU", 24),
    ];
    let said = text.strip_prefix('-').unwrap_or(text);
    let upper = said.to_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let named = NAMES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, number)| *number);
    named
        .or_else(|| said.parse().ok().filter(|n| (1..=64).contains(n)))
        .ok_or_else(|| format!("'{text}' is not a signal: write USR1, TERM or a number from 1 to 64"))
}

/// `isthmus kill`.
pub(crate) fn kill(arguments: &Kill) -> ExitCode {
    with(Some(&arguments.job), |entry| {
        let mut entry = with_launcher(entry)?;
        let already = !entry.lives;
        // A job that is about to end may not answer any more.
        let end = |_| ask(&entry, &Request::End).err();
        let unheard = (0..=u32::from(arguments.now)).filter(|_| !already).find_map(end);
        let began = std::time::Instant::now();
        while entry.lives {
            match &unheard {
                Some(why) if began.elapsed() > UNHEARD => return Err(why.clone()),
                _ if began.elapsed() > ENDING => return Err(format!("job {} has not ended yet", entry.name)),
                _ => {}
            }
            std::thread::sleep(LOOK);
            entry = entry.again();
        }
        if arguments.json {
            let status = entry.outcome().map(|(status, _, _)| status);
            let fields = json!({ "job": entry.name, "ended": true, "already": already, "status": status });
            crate::json::print("kill", fields);
        }
        if already {
            return Err(ended_already(&entry));
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// What to say to whoever wants to end a job that has ended.
fn ended_already(entry: &Entry) -> String {
    let name = &entry.name;
    match entry.outcome() {
        Some((status, ..)) => format!("job {name} has ended already, with status {status}"),
        None => format!("job {name} has ended already: its launcher was killed"),
    }
}

/// `isthmus edit`.
pub(crate) fn edit(arguments: &EditCommand) -> ExitCode {
    with(Some(&arguments.job), |entry| {
        let words: Vec<&str> = arguments.what.iter().map(String::as_str).collect();
        let edit = match words[..] {
            ["drop"] => Edit::Drop,
            ["retry"] => Edit::Retry,
            ["abort"] => Edit::Abort,
            ["use", contact] => Edit::Substitute(contact.to_owned()),
            _ => return Err("say drop, retry, use CONTACT or abort".to_owned()),
        };
        let site = arguments.site.clone();
        ask(&entry, &Request::Edit { site, edit })?;
        if arguments.json {
            crate::json::print(
                "edit",
                json!({ "job": entry.name, "site": arguments.site, "change": words[0], "contact": words.get(1) }),
            );
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn ask(entry: &Entry, request: &Request) -> Result<(), String> {
    match isthmus_launch::request(entry, request)? {
        Reply::Refused(why) => Err(why),
        Reply::Done
        | Reply::Status { .. }
        | Reply::Traffic(_)
        | Reply::Where(_)
        | Reply::Names(_)
        | Reply::Adding(_) => Ok(()),
    }
}

/// Does something with a job; a job that there is not is a mistake of the command line.
pub(crate) fn with(job: Option<&str>, action: impl FnOnce(Entry) -> Result<ExitCode, String>) -> ExitCode {
    let entry = match find(job) {
        Ok(entry) => entry,
        Err(why) => {
            crate::complain(&format!("isthmus: error: {why}\n  hint: isthmus ps lists them"));
            return ExitCode::from(STATUS_USAGE);
        }
    };
    action(entry).unwrap_or_else(|why| {
        crate::complain(&format!("isthmus: error: {why}"));
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        for text in ["USR1", "sigusr1", "10", "-USR1", "-10"] {
            assert_eq!(signal_number(text), Ok(10));
        }
        assert!(signal_number("0").is_err() && signal_number("SIGNOTHING").is_err());
    }
}
