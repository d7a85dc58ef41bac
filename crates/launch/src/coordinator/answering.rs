// SPDX-License-Identifier: Apache-2.0
//! Processes are answered.

use super::Coordinator;
use super::open::Process;
use super::pending;
use crate::happening::Met;
use isthmus_wire::grid::ToAgent;
use isthmus_wire::question::{Answer, Refusal, Said, Scope};

/// A process hears what it has asked for.
pub(super) fn answer(job: &mut Coordinator, process: Process, answer: Answer) {
    if job.answering.answer(process, &answer) {
        let (site, index) = process;
        job.connections.send(site, &ToAgent::Answer { index, answer });
    }
}

/// Several hear it: each with the number of its question.
pub(super) fn answer_all(job: &mut Coordinator, told: Vec<(Process, u64, Result<Said, Refusal>)>) {
    for (process, number, said) in told {
        answer(job, process, Answer { number, said });
    }
}

/// What became of a question to the host at which the job meets others.
pub(super) fn met(job: &mut Coordinator, met: Met) {
    match met {
        Met::Notice(text) => job.printer.notice(text),
        Met::Unpublished(by, name, port) => drop(job.names.unpublish(by, Some(Scope::User), &name, &port)),
        Met::Answer(by, number, said) => answer(job, by, Answer { number, said }),
    }
}

/// A process has ended.
pub(super) fn forget(job: &mut Coordinator, process: Process) {
    job.answering.forget(process);
    job.names.forget(process);
    job.joined.forget(process);
    pending::forget(&mut job.spawning, process);
    let told = job.leaders.forget(process);
    answer_all(job, told);
    for ways in job.meeting.iter().chain(&job.carrying) {
        ways.forget(process);
    }
}
