// SPDX-License-Identifier: Apache-2.0
//! What processes ask, and what they are answered.

use super::answering::{Process, Worth, answer, answer_all};
use super::{Coordinator, spawning};
use crate::site::broken;
use isthmus_wire::grid::ToAgent;
use isthmus_wire::question::{Answer, Ask, Kind, MAX_OPEN, Question, Refusal, Said};

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
        Ask::Publish { scope, name, port } => job.names.publish(by, scope, name, port).map(|()| Said::Done),
        Ask::Unpublish { scope, name, port } => job.names.unpublish(by, scope, &name, &port).map(|()| Said::Done),
        Ask::Agree(agree) => {
            let inherited = job.shared.is_taken_up();
            let told = job
                .agreements
                .hear(job.machine.subjobs(), by, number, *agree, inherited);
            answer_all(job, told);
            return None;
        }
        Ask::Spawn { port, parts } => return spawning::begin(job, by, number, &port, &parts),
        Ask::Lookup { scope, name } => job.names.look_up(scope, &name).map(Said::Port),
    })
}

fn not_inside() -> Refusal {
    Refusal::new(
        Kind::Unable,
        "a process asks its launcher between MPI_Init and MPI_Finalize, and this one is not there",
    )
}
