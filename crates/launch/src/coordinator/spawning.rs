// SPDX-License-Identifier: Apache-2.0
//! Processes ask for more processes: these become subjobs, and a world of their own, of the running job.

use super::Coordinator;
use super::answering::{self, Process};
use crate::spawned::{Place, Spawn};
use isthmus_job::coallocation::add;
use isthmus_job::model::MAX_PROCESSES;
use isthmus_wire::grid::Input;
use isthmus_wire::question::{Answer, Kind, Part, Refusal, Said};

/// What was asked for and has not begun.
#[derive(Debug)]
pub(super) struct Pending {
    /// Its subjobs.
    sites: Vec<usize>,
    /// How many processes each part has.
    counts: Vec<u32>,
    /// Who has asked: subjob, index and number of the question.
    by: Process,
    question: u64,
}

/// A process spawns. The answer, if it is there at once.
pub(super) fn begin(
    job: &mut Coordinator,
    by: Process,
    question: u64,
    port: &str,
    parts: &[Part],
) -> Option<Result<Said, Refusal>> {
    let (subjobs, counts) = match subjobs(job, by.0, port, parts) {
        Ok(found) => found,
        Err(refusal) => return Some(Err(refusal)),
    };
    if let Err(refusal) = allowed(job, &counts) {
        return Some(Err(refusal));
    }
    let Some(sites) = add(&mut job.machine, &subjobs, job.began.elapsed()) else {
        let why = "the job ends, or was taken up by another launcher: no process can be added any more";
        return Some(Err(Refusal::new(Kind::NotStarted, why)));
    };
    job.spawned += 1;
    job.board.add(subjobs.len());
    for (&site, subjob) in sites.iter().zip(&subjobs) {
        job.subjobs.push(subjob.clone());
        job.connections.start(site, subjob.clone(), Input::Nobody, None);
    }
    job.spawning.push(Pending {
        sites,
        counts,
        by,
        question,
    });
    None
}

/// Whether so many more may be started.
fn allowed(job: &Coordinator, counts: &[u32]) -> Result<(), Refusal> {
    let refused = |why: String| Err(Refusal::new(Kind::NotStarted, why));
    if !isthmus_settings::SPAWN.read(std::env::var_os) {
        return refused("the job was started with ISTHMUS_SPAWN=0, which lets no process start others".to_owned());
    }
    let all = job.subjobs.iter().enumerate();
    let live = all.filter(|(site, _)| !job.machine.subjobs().is_retired(*site));
    let live: u64 = live.map(|(_, subjob)| u64::from(subjob.count)).sum();
    let total = live + counts.iter().map(|count| u64::from(*count)).sum::<u64>();
    match total <= u64::from(MAX_PROCESSES) {
        true => Ok(()),
        false => refused(format!(
            "the job would have {total} processes, at most {MAX_PROCESSES} are possible"
        )),
    }
}

fn subjobs(
    job: &Coordinator,
    own: usize,
    port: &str,
    parts: &[Part],
) -> Result<(Vec<isthmus_job::Subjob>, Vec<u32>), Refusal> {
    // Machines are those of the job as it began; what was spawned is at one of them.
    let planned = job.job.subjobs().len();
    let place = |site: usize| Place {
        subjob: &job.subjobs[site],
        host: job.connections.host(site),
    };
    let places: Vec<Place<'_>> = (0..planned).map(place).collect();
    let own = match own < planned {
        true => own,
        // A child is where some part of the job is.
        false => {
            let contact = &job.subjobs[own].contact;
            places.iter().position(|p| p.subjob.contact == *contact).unwrap_or(0)
        }
    };
    let spawn = Spawn {
        places: &places,
        own,
        number: job.spawned,
        port,
    };
    let (subjobs, counts) = spawn.subjobs(parts)?;
    // What is wrong with them the job says as it does of others.
    let checked = job.job.with_subjobs(subjobs);
    let checked = checked.map_err(|error| Refusal::new(Kind::NotStarted, error.to_string()))?;
    Ok((checked.subjobs().to_vec(), counts))
}

/// These subjobs have begun: whoever has asked for them hears it.
pub(super) fn begun(job: &mut Coordinator, sites: &[usize]) {
    if let Some(pending) = take(job, sites) {
        let said = Ok(Said::Started(pending.counts.clone()));
        answer(job, &pending, said);
    }
}

/// These will not.
pub(super) fn not_started(job: &mut Coordinator, sites: &[usize], problem: &str, hint: &str) {
    sites.iter().for_each(|&site| job.connections.end_subjob(site));
    if let Some(pending) = take(job, sites) {
        let why = match hint {
            "" => problem.to_owned(),
            hint => format!("{problem} ({hint})"),
        };
        answer(job, &pending, Err(Refusal::new(Kind::NotStarted, why)));
    }
}

/// All processes of these have ended: their agents are not needed any more.
pub(super) fn retire(job: &Coordinator, sites: &[usize]) {
    sites.iter().for_each(|&site| job.connections.end_subjob(site));
}

fn take(job: &mut Coordinator, sites: &[usize]) -> Option<Pending> {
    let at = job.spawning.iter().position(|pending| pending.sites == sites)?;
    Some(job.spawning.swap_remove(at))
}

fn answer(job: &mut Coordinator, pending: &Pending, said: Result<Said, Refusal>) {
    let number = pending.question;
    answering::answer(job, pending.by, Answer { number, said });
}
