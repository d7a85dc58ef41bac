// SPDX-License-Identifier: Apache-2.0
//! Processes connect with those of other jobs, and leave them: people see that, also those who look at a trace.

use super::Coordinator;
use super::open::Process;
use crate::console::Print;
use isthmus_wire::joined::Group;
use isthmus_wire::question::{Refusal, Said};

/// A process is connected with others from now on.
pub(super) fn meet(job: &mut Coordinator, by: Process, meeting: [u8; 16], with: Vec<Group>) -> Result<Said, Refusal> {
    trace(job, by, "connected with", &with);
    job.joined.meet(by, meeting, with)
}

/// It is not any more.
pub(super) fn part(job: &mut Coordinator, by: Process, meeting: [u8; 16]) {
    let with = job.joined.part(by, meeting);
    trace(job, by, "disconnected from", &with);
}

/// Those of other jobs: own ones are in the trace themselves.
fn trace(job: &Coordinator, (site, index): Process, what: &str, with: &[Group]) {
    let rank = job.machine.subjobs().number_of(site, index);
    for group in with.iter().filter(|group| !job.agreements.knows(&group.world)) {
        let processes = if group.processes == 1 { "process" } else { "processes" };
        let Group {
            processes: count,
            site,
            host,
            ..
        } = group;
        let text = format!("{what} {count} {processes} at {site} ({host})");
        job.printer.print(Print::Became(rank, "connection", text));
    }
}
