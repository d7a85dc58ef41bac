// SPDX-License-Identifier: Apache-2.0
//! Machines files of MPICH-G2: a contact string, in quotes or not, and a number of processes that is 1 when it is
//! missing.
//!
//! ```text
//! "sp.example.org/jobmanager-slurm" 10
//! o2k.example.org 5
//! ```
//!
//! Every line that is taken is one subjob, also when a host comes again.

use super::described::Described;
use super::input::Input;
use crate::allocation;
use crate::contact;
use crate::error::{JobError, JobErrors, MAX_ERRORS};
use crate::forms::hostfile::{self, lines};
use crate::forms::sites::name_apart;
use crate::model::{Job, MAX_SUBJOBS, Subjob, check_count, to_count};
use isthmus_wire::grid::Allocation;

/// The program on the machines of a file.
pub(super) fn read(input: &Input<'_>, program: &Subjob) -> Result<Described, JobErrors> {
    let mut errors = JobErrors::default();
    let mut machines = Vec::new();
    for (line, span) in lines(input.text, input.file)? {
        let machine = machine(line, program).map_err(|e| e.at(input.file, input.text, span));
        machines.extend(errors.take(machine));
        if errors.count() >= MAX_ERRORS {
            break;
        }
    }
    if machines.is_empty() && errors.is_empty() {
        errors.push(hostfile::none(input.file));
    }
    let machines = errors.or(Some(machines))?;
    let mut subjobs = deal(&machines, input.total);
    name_apart(&mut subjobs);
    for subjob in &mut subjobs {
        subjob.lan = input.lan.unwrap_or(&subjob.site).to_owned();
    }
    Ok(Described::of(Job::new(subjobs)?))
}

fn machine(line: &str, program: &Subjob) -> Result<Subjob, JobError> {
    let hint = "write \"CONTACT\" N or HOST N";
    let (text, rest) = match line.strip_prefix('"') {
        Some(quoted) => quoted
            .split_once('"')
            .ok_or_else(|| JobError::new("the quote of this contact is not closed").hint(hint))?,
        None => line.split_once(char::is_whitespace).unwrap_or((line, "")),
    };
    let gram = contact::parse(text)?;
    let scheduler = gram.scheduler.as_deref().map(allocation::scheduler).transpose()?;
    Ok(Subjob {
        site: gram.contact.to_string(),
        contact: gram.contact,
        count: count(text, rest.trim())?,
        forks: scheduler == Some(None),
        allocation: scheduler.flatten().map(Allocation::new),
        ..program.clone()
    })
}

/// Like mpirun of MPICH-G2: numbers below 1 count as 1.
fn count(site: &str, text: &str) -> Result<u32, JobError> {
    if text.is_empty() {
        return Ok(1);
    }
    let number: i64 = text
        .parse()
        .map_err(|_| JobError::new(format!("'{}' is not a number of processes", crate::quoted::shown(text))))?;
    let count = to_count(number.max(1))?;
    check_count(site, count)?;
    Ok(count)
}

/// Takes machine after machine, and begins again at the top until there are enough processes. More than a job may have
/// are left to the check of the job.
fn deal(machines: &[Subjob], total: Option<u32>) -> Vec<Subjob> {
    let Some(mut left) = total else {
        return machines.to_vec();
    };
    let mut taken = Vec::new();
    for machine in machines.iter().cycle() {
        if left == 0 || taken.len() > MAX_SUBJOBS {
            break;
        }
        let count = machine.count.min(left);
        left -= count;
        taken.push(Subjob {
            count,
            ..machine.clone()
        });
    }
    taken
}

/// A line for every subjob.
pub(super) fn write(job: &Job) -> String {
    let line = |s: &Subjob| format!("\"{}\" {}\n", contact::write(&s.contact, s.scheduler()), s.count);
    job.subjobs().iter().map(line).collect()
}
