// SPDX-License-Identifier: Apache-2.0
//! What processes ask, and what they are answered.

use super::answering::{answer, answer_all};
use super::open::{Process, Worth};
use super::{Coordinator, connecting, spawning};
use crate::meeting::{MeetingHost, Spot, concerns, spot};
use crate::proving::prove;
use crate::site::broken;
use isthmus_job::coallocation::set_apart;
use isthmus_wire::grid::ToAgent;
use isthmus_wire::question::{Answer, Ask, Kind, MAX_OPEN, Question, Refusal, Said, Scope};

/// A process asks.
pub(super) fn hear(job: &mut Coordinator, connection: usize, site: usize, index: u32, question: Question) {
    let Question { number, ask } = question;
    match job.answering.ask((site, index), number) {
        Worth::New => {
            let said = match job.machine.subjobs().is_inside(site, index) {
                true => consider(job, (site, index), number, ask),
                false => Some(Err(not_inside())),
            };
            if let Some(said) = said {
                answer(job, (site, index), Answer { number, said });
            }
        }
        Worth::Open => {}
        Worth::Answered(answer) => job.connections.send(site, &ToAgent::Answer { index, answer }),
        Worth::TooMany => {
            job.connections.give_up(connection);
            let what = format!("it asked more than {MAX_OPEN} questions of a process at a time");
            job.lose(site, &broken(&what), "", false);
        }
    }
}

/// The answer, if it is there at once.
fn consider(job: &mut Coordinator, by: Process, number: u64, ask: Ask) -> Option<Result<Said, Refusal>> {
    Some(match ask {
        // It was told again.
        Ask::Publish { scope, name, port } if job.names.has(by, scope, &name, &port) => Ok(Said::Done),
        Ask::Publish { scope, name, port } => {
            let published = job.names.publish(by, scope, name.clone(), port.clone());
            if published.is_ok() && scope == Scope::User {
                if let Some(meeting) = &job.meeting {
                    meeting.ask(by, number, Ask::Publish { scope, name, port }, Spot::default());
                    return None;
                }
            }
            published.map(|()| Said::Done)
        }
        Ask::Unpublish { scope, name, port } => {
            let taken = job.names.unpublish(by, scope, &name, &port).map(|()| Said::Done);
            if let Some(meeting) = job.meeting.as_ref().filter(|_| taken.is_ok() && concerns(scope)) {
                meeting.ask(by, number, Ask::Unpublish { scope, name, port }, Spot::default());
                return None;
            }
            taken
        }
        ask @ (Ask::Agree(_) | Ask::Carry { .. } | Ask::Brought(_)) => {
            agree(job, by, number, ask);
            return None;
        }
        Ask::Apart(apart) => {
            set_apart(&mut job.machine, by.0, by.1, apart);
            Ok(Said::Done)
        }
        Ask::Spawn { port, parts } => return spawning::begin(job, by, number, &port, &parts),
        Ask::Lookup { scope, name } => {
            let found = job.names.look_up(scope, &name).map(Said::Port);
            if let Some(meeting) = job.meeting.as_ref().filter(|_| found.is_err() && concerns(scope)) {
                meeting.ask(by, number, Ask::Lookup { scope, name }, Spot::default());
                return None;
            }
            found
        }
        Ask::Tell { world, what } => {
            let told = job.leaders.tell(by, number, world, what);
            answer_all(job, told);
            return None;
        }
        Ask::Hear { world } => {
            let told = job.leaders.ask(by, number, world);
            answer_all(job, told);
            return None;
        }
        Ask::Met { meeting, with } => connecting::meet(job, by, meeting, with),
        Ask::Parted { meeting } => {
            connecting::part(job, by, meeting);
            Ok(Said::Done)
        }
        ask @ Ask::Prove { .. } if job.meeting.is_some() => {
            if let Some(meeting) = &job.meeting {
                meeting.ask(by, number, ask, Spot::default());
            }
            return None;
        }
        Ask::Prove {
            secret,
            fingerprint,
            keys,
        } => prove(&secret, &fingerprint, &keys, None),
        ask @ (Ask::Enter { .. } | Ask::Cross { .. } | Ask::Leave { .. }) => return cross(job, by, number, ask),
    })
}

/// About ways through the host at which jobs meet, or by this launcher: the answer comes later, or why there are none.
fn cross(job: &mut Coordinator, by: Process, number: u64, ask: Ask) -> Option<Result<Said, Refusal>> {
    let spot = place(job, by.0);
    if job.meeting.is_none() && job.carrying.is_none() {
        match MeetingHost::own(&job.events) {
            Ok(own) => job.carrying = Some(own),
            Err(why) => return Some(Err(Refusal::new(Kind::Unable, why))),
        }
    }
    let ways = job.meeting.as_ref().or(job.carrying.as_ref())?;
    let (why, notice) = ways.ask_way(by, number, ask, spot, &mut job.beyond_meeting).err()?;
    // Without a host nobody counts on these ways.
    if let Some(notice) = notice.filter(|_| job.meeting.is_some()) {
        job.printer.notice(notice);
    }
    Some(Err(why))
}

/// About an agreement: who is told what.
fn agree(job: &mut Coordinator, by: Process, number: u64, ask: Ask) {
    let (subjobs, inherited) = (job.machine.subjobs(), job.shared.is_taken_up());
    let told = match ask {
        Ask::Agree(agree) => job.agreements.hear(subjobs, by, number, *agree, inherited),
        Ask::Carry { which, back } => job.agreements.carry(subjobs, by, number, which, back),
        Ask::Brought(letter) => job.agreements.bring(subjobs, by, number, *letter, inherited),
        _ => return,
    };
    answer_all(job, told);
}

/// Where the ways of a subjob's processes through the host are to lead.
fn place(job: &Coordinator, site: usize) -> Result<Spot, Refusal> {
    let gateway = job.crossings.gateway_of(site);
    let gateway = gateway.map(|(there, port)| (&job.subjobs[there].contact, port));
    spot(&job.shared.access, &job.subjobs[site], gateway)
}

fn not_inside() -> Refusal {
    Refusal::new(
        Kind::Unable,
        "a process asks its launcher between MPI_Init and MPI_Finalize, and this one is not there",
    )
}
