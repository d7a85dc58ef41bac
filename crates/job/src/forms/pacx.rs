// SPDX-License-Identifier: Apache-2.0
//! Host files of PACX-MPI: name, protocol, processes, and how they are started.
//!
//! ```text
//! host1 tcp 100
//! host2 tcp 100 (ssh me@host2 mpirun -np 102 {exe})
//! host3 tcp 100 #
//! ```
//!
//! The processes of the first line are started here when it has no command; `#` stands for "started by hand" and means
//! an ssh destination to us. Of a command the destination is taken: we start processes ourselves, and without
//! PACX-MPI's two daemons for each machine.

use super::described::Described;
use super::hostfile;
use super::input::Input;
use crate::error::{JobError, JobErrors, MAX_ERRORS};
use crate::forms::sites::{name_apart, parse_count};
use crate::model::{Contact, Job, Subjob, check_count};

/// Processes of PACX-MPI itself on every machine.
const DAEMONS: u32 = 2;
/// Most lines.
const MAX_LINES: usize = 10_000;

/// The program on the machines of a file.
pub(super) fn read(input: &Input<'_>, program: &Subjob) -> Result<Described, JobErrors> {
    let (mut errors, mut notes, mut subjobs) = (JobErrors::default(), Vec::new(), Vec::new());
    let mut at = 0;
    for (number, line) in hostfile::split(input.text).enumerate() {
        if number >= MAX_LINES {
            let problem = format!("host file '{}' has more than {MAX_LINES} lines", input.file);
            errors.push(JobError::new(problem).hint("leave out comments, and machines without processes"));
            break;
        }
        let start = at + (line.len() - line.trim_start().len());
        at += line.len() + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = |e: JobError| e.at(input.file, input.text, start..start + line.len());
        match machine(line, subjobs.is_empty(), program) {
            Ok((subjob, note)) => {
                subjobs.push(subjob);
                notes.extend(note.map(|note| place(JobError::new(note))));
            }
            Err(error) => errors.push(place(error)),
        }
        if errors.count() >= MAX_ERRORS {
            break;
        }
    }
    if subjobs.is_empty() && errors.is_empty() {
        errors.push(JobError::new(format!("'{}' names no machine", input.file)).hint("write NAME tcp N"));
    }
    let mut subjobs = errors.or(Some(subjobs))?;
    name_apart(&mut subjobs);
    for subjob in &mut subjobs {
        subjob.lan = input.lan.unwrap_or(&subjob.site).to_owned();
    }
    let job = Job::new(subjobs)?;
    if let Some(total) = input.total.filter(|total| *total != job.processes()) {
        let problem = format!(
            "-n asks for {total} processes but '{}' for {}",
            input.file,
            job.processes()
        );
        return Err(JobError::new(problem).hint("leave out -n").into());
    }
    notes.truncate(MAX_ERRORS);
    Ok(Described {
        notes,
        ..Described::of(job)
    })
}

fn machine(line: &str, first: bool, program: &Subjob) -> Result<(Subjob, Option<String>), JobError> {
    let wrong = |problem: String| JobError::new(problem).hint("write NAME tcp N, and (COMMAND) or # behind it");
    let (name, rest) = word(line);
    let (protocol, rest) = word(rest);
    let (number, start) = word(rest);
    if protocol != "tcp" {
        return Err(wrong(format!(
            "'{}' is not a known protocol",
            crate::quoted::shown(protocol)
        )));
    }
    let count = parse_count(number).map_err(|_| {
        wrong(format!(
            "'{}' is not a number of processes",
            crate::quoted::shown(number)
        ))
    })?;
    check_count(name, count)?;
    let mut note = None;
    let contact = if start.is_empty() && first {
        Contact::Home
    } else if start.is_empty() || start.starts_with('#') {
        note = start
            .starts_with('#')
            .then(|| format!("'{}' is started with ssh, not by hand", crate::quoted::shown(name)));
        contact_of(name)?
    } else {
        let command = start.strip_prefix('(').and_then(|c| c.strip_suffix(')'));
        let command = command.ok_or_else(|| wrong("the command that starts it is not in parentheses".to_owned()))?;
        note = daemons(command, count);
        destination(command).map_or(Ok(Contact::Home), contact_of)?
    };
    let subjob = Subjob {
        site: name.to_owned(),
        contact,
        count,
        ..program.clone()
    };
    Ok((subjob, note))
}

/// The first machine of a file without a command is the one on which PACX-MPI is started. Its name may be another's.
/// What to tell of that.
pub(super) fn is_elsewhere(job: &Job, is_own: &mut dyn FnMut(&str) -> bool) -> Option<JobError> {
    let first = job.subjobs().first()?;
    let name = &first.site;
    let astray = first.contact == Contact::Home && name != "home" && !is_own(name);
    astray.then(|| {
        let problem = format!(
            "'{name}' is the first machine and has no command: its processes run on this one, which has another name"
        );
        JobError::new(problem).hint(format!("if ssh is to reach it, write {name} tcp {} #", first.count))
    })
}

fn contact_of(text: &str) -> Result<Contact, JobError> {
    Contact::parse(if text == "localhost" { "home" } else { text })
}

fn word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

/// The destination of a remote shell, if the command begins with one.
fn destination(command: &str) -> Option<&str> {
    let mut words = command.split_whitespace();
    let shell = words.next()?.rsplit('/').next()?;
    if !matches!(shell, "ssh" | "rsh" | "slogin" | "remsh") {
        return None;
    }
    while let Some(word) = words.next() {
        match word {
            "-l" | "-p" | "-i" | "-o" | "-F" | "-J" => drop(words.next()),
            _ if word.starts_with('-') => {}
            _ => return Some(word),
        }
    }
    None
}

/// A command starts two processes more than the application has; says so when it does not.
fn daemons(command: &str, count: u32) -> Option<String> {
    let mut words = command.split_whitespace();
    words.find(|w| matches!(*w, "-np" | "-n"))?;
    let started: u32 = words.next()?.parse().ok()?;
    (started != count + DAEMONS)
        .then(|| format!("the command starts {started} processes, the application has {count} and PACX-MPI {DAEMONS}"))
}

/// A line for every subjob.
pub(super) fn write(job: &Job) -> String {
    let mut text = String::new();
    for (number, subjob) in job.subjobs().iter().enumerate() {
        text.push_str(&format!("{} tcp {}", subjob.site, subjob.count));
        let started = subjob.count + DAEMONS;
        match &subjob.contact {
            Contact::Home if number == 0 => {}
            // Its own launcher starts it, as a part of PACX-MPI that is started by hand.
            Contact::Part(_) => {}
            Contact::Home => text.push_str(&format!(" (mpirun -np {started} {{exe}})")),
            Contact::Ssh(to) => text.push_str(&format!(" (ssh {to} mpirun -np {started} {{exe}})")),
        }
        text.push('\n');
    }
    text
}
