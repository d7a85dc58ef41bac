// SPDX-License-Identifier: Apache-2.0
//! Processes connect with those of other jobs, and leave them: people see that, also those who look at a trace.

use super::Coordinator;
use super::open::Process;
use crate::console::Print;
use crate::hang::named;
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

/// It has spawned these subjobs.
pub(super) fn spawned(job: &Coordinator, (site, index): Process, sites: &[usize]) {
    let subjobs = job.machine.subjobs();
    let parent = subjobs.number_of(site, index);
    for (&at, subjob) in sites.iter().filter_map(|at| Some((at, job.subjobs.get(*at)?))) {
        let ranks: Vec<u32> = (0..subjob.count).map(|index| subjobs.number_of(at, index)).collect();
        let text = format!("has spawned {} at {}", named(&ranks), subjob.site);
        job.printer.print(Print::Became(parent, "spawn", text));
    }
}

/// Those of other jobs: own ones are in the trace themselves.
fn trace(job: &Coordinator, (site, index): Process, what: &str, with: &[Group]) {
    let rank = job.machine.subjobs().number_of(site, index);
    for group in with.iter().filter(|group| !job.agreements.knows(&group.world)) {
        let processes = if group.processes == 1 { "process" } else { "processes" };
        let Group {
            processes: count,
            job: other,
            site,
            host,
            ..
        } = group;
        let of = if other.is_empty() {
            String::new()
        } else {
            format!(" of job {other}")
        };
        let text = format!("{what} {count} {processes}{of} at {site} ({host})");
        job.printer.print(Print::Became(rank, "connection", text));
    }
}
