// SPDX-License-Identifier: Apache-2.0
//! Processes that the job goes on without: people are told, and what is left of a lost site is ended.

use super::{Coordinator, answering};
use crate::console::Print;
use crate::events::JobEvent;
use isthmus_job::coallocation::others;
use isthmus_wire::boot::Gone;
use isthmus_wire::grid::ToAgent;
use isthmus_wire::waiting::LONGEST_REASON;

/// Processes of the world of subjob `of` are gone: these subjobs of that world hear it, and all other worlds, which may
/// be connected with it.
pub(super) fn tell(job: &mut Coordinator, sites: &[usize], of: usize, gone: Gone) {
    let others = others(job.machine.subjobs(), of);
    if let Some(world) = job
        .agreements
        .name_of(job.machine.subjobs(), of)
        .filter(|_| !others.is_empty())
    {
        let abroad = ToAgent::Gone(Gone { world, ..gone.clone() });
        others
            .iter()
            .for_each(|&site| job.connections.send_lasting(site, &abroad));
    }
    let gone = ToAgent::Gone(gone);
    sites.iter().for_each(|&site| job.connections.send_lasting(site, &gone));
}

/// These processes of a subjob are lost; `whole`: nothing is left of it.
pub(super) fn lose(job: &mut Coordinator, site: usize, indices: &[u32], whole: bool, problem: &str) {
    let all = job.machine.subjobs();
    let numbers: Vec<u32> = indices.iter().map(|&index| all.number_of(site, index)).collect();
    job.printer
        .tell(&JobEvent::lost(&job.subjobs[site].site, &numbers, problem));
    let them = match indices.len() {
        1 => "it".to_owned(),
        more => format!("its {more} processes"),
    };
    job.printer.notice(format!("{problem}; the job goes on without {them}"));
    let why = shortened(problem, LONGEST_REASON).into();
    for (&index, &number) in indices.iter().zip(&numbers) {
        job.waits.lose(number, &why);
        job.printer
            .print(Print::Became(number, "loss", format!("lost: {problem}")));
        answering::forget(job, (site, index));
    }
    job.agreements.doubt();
    if whole {
        // Whatever still runs there was decided to be dead.
        job.connections.end_subjob(site);
        job.crossings.leave(site);
        job.questions_settled(site);
        if job.inputs.remove(site) {
            let name = job.subjobs[site].site.clone();
            job.printer.notice_of(&name, "nobody reads its standard input any more");
        }
    }
}

/// As much of a text as fits into so many bytes.
pub(super) fn shortened(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(shortened("lost", 9), "lost");
        assert_eq!(shortened("lost", 3), "los");
        assert_eq!(shortened("l\u{f6}st", 2), "l");
    }
}
