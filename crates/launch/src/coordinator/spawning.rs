// SPDX-License-Identifier: Apache-2.0
//! Processes, or the user, ask for more processes: these become subjobs, and a world of their own, of the job.

use super::Coordinator;
use super::answering;
use super::connecting;
use super::open::Process;
use super::pending::{Asker, Pending};
use crate::hold;
use crate::spawned::{Spawn, SpawnHost, awaited_at, further, is_awaited};
use isthmus_job::coallocation::{add, set_apart};
use isthmus_job::model::{MAX_PROCESSES, goes_on};
use isthmus_job::{Contact, Subjob};
use isthmus_wire::control::Reply;
use isthmus_wire::grid::Input;
use isthmus_wire::question::{
    Answer, CARRIED_BY_LAUNCHER, Kind, Refusal, Said, SpawnProgram, Started, THROUGH_LAUNCHER,
};

/// A process spawns. The answer, if it is there at once.
pub(super) fn begin(
    job: &mut Coordinator,
    by: Process,
    question: u64,
    port: &str,
    parts: &[SpawnProgram],
) -> Option<Result<Said, Refusal>> {
    let (mut subjobs, counts) = match subjobs(job, by.0, parts) {
        Ok(found) => found,
        Err(refusal) => return Some(Err(refusal)),
    };
    let carried = port.is_empty() && !are_direct(job, &subjobs);
    let port = match port {
        "" if carried => CARRIED_BY_LAUNCHER,
        "" => THROUGH_LAUNCHER,
        port => port,
    };
    awaited_at(&mut subjobs, port);
    let begun = match isthmus_settings::SPAWN.read(std::env::var_os) {
        true => start(job, subjobs, counts, carried, Asker::Process(by, question)),
        false => {
            let why = "the job was started with ISTHMUS_SPAWN=0, which lets no process start others";
            Err(Refusal::new(Kind::NotStarted, why))
        }
    };
    begun.err().map(Err)
}

/// More processes are started, as a world of their own.
/// `carried`: this launcher carries what they and their parents cannot send directly.
pub(super) fn start(
    job: &mut Coordinator,
    subjobs: Vec<Subjob>,
    counts: Vec<u32>,
    carried: bool,
    by: Asker,
) -> Result<(), Refusal> {
    allowed(job, &counts)?;
    let now = job.began.elapsed();
    let sites = add(&mut job.machine, &subjobs, now).ok_or_else(|| Refusal::new(Kind::NotStarted, why_not(job)))?;
    job.spawned += 1;
    job.board.add(subjobs.len());
    for (&site, subjob) in sites.iter().zip(subjobs) {
        job.subjobs.push(subjob.clone());
        job.connections.start(site, subjob, Input::Nobody, None);
    }
    job.spawning.push(Pending {
        sites,
        counts,
        carried,
        by,
    });
    Ok(())
}

/// Whether these are known to reach all others of the job, and each other, directly.
fn are_direct(job: &Coordinator, new: &[Subjob]) -> bool {
    let live = |(site, _): &(usize, &Subjob)| !job.machine.subjobs().is_retired(*site);
    let others = job.subjobs.iter().enumerate().filter(live).map(|(_, subjob)| subjob);
    let mut pairs = others
        .chain(new)
        .flat_map(|other| new.iter().map(move |one| (one, other)));
    pairs.all(|(one, other)| job.crossings.are_direct(&one.lan, &other.lan))
}

/// Why no more can be started.
fn why_not(job: &Coordinator) -> &'static str {
    if job.shared.is_taken_up() {
        "the job was taken up by another launcher: no process can be added any more"
    } else if job.machine.is_committed() || job.leaving {
        "the job ends: no process can be added any more"
    } else {
        "the processes of the job have not all called MPI_Init (isthmus ps --long): add others when they have"
    }
}

/// Whether so many more may be started.
fn allowed(job: &Coordinator, counts: &[u32]) -> Result<(), Refusal> {
    let all = job.subjobs.iter().enumerate();
    let live = all.filter(|(site, _)| !job.machine.subjobs().is_retired(*site));
    let live: u64 = live.map(|(_, subjob)| u64::from(subjob.count)).sum();
    let total = live + counts.iter().map(|count| u64::from(*count)).sum::<u64>();
    match total <= u64::from(MAX_PROCESSES) {
        true => Ok(()),
        false => {
            let why = format!("the job would have {total} processes, at most {MAX_PROCESSES} are possible");
            Err(Refusal::new(Kind::NotStarted, why))
        }
    }
}

fn subjobs(job: &Coordinator, own: usize, parts: &[SpawnProgram]) -> Result<(Vec<Subjob>, Vec<u32>), Refusal> {
    // Machines are those of the job as it began; what was spawned is at one of them.
    let planned = job.job.subjobs().len();
    let place = |site: usize| SpawnHost {
        subjob: &job.subjobs[site],
        host: job.connections.host(site),
    };
    let words = isthmus_settings::SPAWN_SITES.read(std::env::var_os).unwrap_or_default();
    let further = further(&words, &job.shared.options.catalogue)
        .map_err(|error| Refusal::new(Kind::NotStarted, format!("ISTHMUS_SPAWN_SITES: {error}")))?;
    let own_sites = (0..planned).map(place);
    let others = further.iter().map(|subjob| SpawnHost { subjob, host: "" });
    let places: Vec<SpawnHost<'_>> = own_sites.chain(others).collect();
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
        directory: &job.shared.options.directory,
    };
    let (subjobs, counts) = spawn.subjobs(parts)?;
    // What is wrong with them the job says as it does of others.
    let checked = job.job.with_subjobs(subjobs);
    let checked = checked.map_err(|error| Refusal::new(Kind::NotStarted, error.to_string()))?;
    Ok((checked.subjobs().to_vec(), counts))
}

/// The user adds processes: subjobs with all that those of a job can have. `to`: a published name of the port that they
/// connect to, which may be empty.
pub(super) fn add_for_user(job: &mut Coordinator, text: &str, to: &str) -> Reply {
    let subjobs = match users_subjobs(job, text, to) {
        Ok(subjobs) => subjobs,
        Err(why) => return Reply::Refused(why),
    };
    let names: Vec<String> = subjobs.iter().map(|subjob| format!("'{}'", subjob.site)).collect();
    let counts = subjobs.iter().map(|subjob| subjob.count).collect();
    let number = job.added.begin();
    match start(job, subjobs, counts, false, Asker::User(number)) {
        Ok(()) => {
            job.printer.notice(format!("processes are added: {}", names.join(", ")));
            Reply::Adding(number)
        }
        Err(refusal) => Reply::Refused(refusal.why),
    }
}

fn users_subjobs(job: &Coordinator, text: &str, to: &str) -> Result<Vec<Subjob>, String> {
    let added = hold::read(text).ok_or("the description of the processes makes no sense")?;
    let added = added.with_staging().map_err(|errors| errors.to_string())?;
    let port = match to {
        "" => None,
        name => Some(job.names.look_up(None, name).map_err(|refusal| refusal.why)?),
    };
    let mut subjobs = added.subjobs().to_vec();
    for subjob in &mut subjobs {
        if let Contact::Part(_) = subjob.contact {
            return Err("only the launcher of another part starts processes there".to_owned());
        }
        subjob.site = format!("{}+{}", subjob.site, job.spawned + 1);
    }
    if let Some(port) = port {
        awaited_at(&mut subjobs, &port);
    }
    let checked = job.job.with_subjobs(subjobs).map_err(|error| error.to_string())?;
    Ok(checked.subjobs().to_vec())
}

/// These subjobs have begun: whoever has asked for them hears it.
pub(super) fn begun(job: &mut Coordinator, sites: &[usize]) {
    if let Some(pending) = take(job, sites) {
        let name = sites
            .first()
            .and_then(|&site| job.agreements.name_of(job.machine.subjobs(), site));
        let name = name.unwrap_or_default();
        if let (Asker::Process(parent, _), Some(&first)) = (pending.by, sites.first()) {
            job.leaders.begin(name, parent, (first, 0));
            connecting::spawned(job, parent, sites);
        }
        if let Asker::User(_) = pending.by {
            wait_apart(job, sites);
        }
        let subjobs = sites.iter().filter_map(|&site| job.subjobs.get(site));
        let goes_on = goes_on(subjobs);
        let said = Ok(Said::Started(Started {
            world: name,
            goes_on,
            carried: pending.carried,
            processes: pending.counts.clone(),
        }));
        answer(job, &pending, said);
    }
}

/// Those of them that the job is to accept at a port are connected with nobody until it does, and say so then. The job
/// has not asked for them: it goes on when they end meanwhile.
fn wait_apart(job: &mut Coordinator, sites: &[usize]) {
    for &site in sites {
        let Some(subjob) = job.subjobs.get(site) else { continue };
        if is_awaited(subjob) {
            (0..subjob.count).for_each(|index| set_apart(&mut job.machine, site, index, true));
        }
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
    match pending.by {
        Asker::Process(by, number) => answering::answer(job, by, Answer { number, said }),
        Asker::Nobody => {}
        Asker::User(number) => job.added.settle(number, said.map(drop).map_err(|refusal| refusal.why)),
    }
}
