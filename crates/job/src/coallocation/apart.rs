// SPDX-License-Identifier: Apache-2.0
//! Who ends with whom: a world that was added, and whose processes have disconnected from all others, is lost alone.
//!
//! The job ends with its own world, whatever others do, and with each world that is connected with another one.

use super::site::{Process, State};
use super::subjobs::go_on_without;
use super::{Action, Coallocation, Verdict};
use std::time::Duration;

/// A process says whether it is connected with nobody beside its own world.
pub fn set_apart(job: &mut Coallocation, site: usize, index: u32, apart: bool) {
    if !job.subjobs.is_inside(site, index) {
        return;
    }
    let connected = &mut job.subjobs.site_mut(site).connected;
    match apart {
        true => connected.remove(&index),
        false => connected.insert(index),
    };
}

/// These are lost, with all that still runs of them, and the job goes on. `first`: who has just ended, and how it was
/// before.
pub(super) fn lose_world(
    job: &mut Coallocation,
    sites: &[usize],
    first: Option<(usize, u32, Process)>,
    verdict: &Verdict,
    now: Duration,
) {
    job.last_progress = now;
    job.first_loss.get_or_insert_with(|| verdict.clone());
    let problem = verdict.problem.clone().unwrap_or_default();
    for &site in sites {
        let subject = job.subjobs.site_mut(site);
        if let Some((_, index, was)) = first.filter(|(of, ..)| *of == site) {
            subject.processes[index as usize] = was;
        }
        let all = (0u32..).zip(subject.processes.iter().copied());
        let lost: Vec<(u32, Process)> = all.filter(|(_, was)| *was != Process::Ended).collect();
        subject.advance(State::Failed);
        subject.cast_off = true;
        if subject.lost == 0 {
            subject.first_loss.clone_from(&problem);
        }
        subject.lost += lost.len();
        subject.end();
        // Nobody of it finishes any more.
        for (_, was) in &lost {
            let _ = go_on_without(&mut job.subjobs, site, *was);
        }
        let indices: Vec<u32> = lost.iter().map(|(index, _)| *index).collect();
        job.losses.add(site, &indices);
        if !indices.is_empty() {
            job.actions.push_back(Action::Lost {
                site,
                indices,
                whole: true,
                problem: problem.clone(),
            });
        }
    }
    job.leave_when_ended(now);
}

#[cfg(test)]
mod tests {
    use super::super::add;
    use super::super::tests::{WATCH, all_come, next};
    use super::*;
    use crate::model::Job;
    use crate::model::tests::subjob;
    use isthmus_wire::grid::Exit;

    const NOW: Duration = Duration::ZERO;

    /// A job of one process that has added a world of two subjobs with two processes each.
    fn running() -> Coallocation {
        let mut job = Coallocation::new(&Job::new(vec![subjob("a", 1)]).unwrap(), WATCH);
        all_come(&mut job, 0, 1);
        assert_eq!(add(&mut job, &[subjob("b", 2), subjob("c", 2)], NOW), Some(vec![1, 2]));
        all_come(&mut job, 1, 2);
        all_come(&mut job, 2, 2);
        assert_eq!(next(&mut job).len(), 2, "both worlds begin");
        job
    }

    fn part(job: &mut Coallocation) {
        for site in [1, 2] {
            (0..2).for_each(|index| set_apart(job, site, index, true));
        }
    }

    /// The subjobs that are lost, and how many processes of each.
    fn lost(actions: &[Action]) -> Vec<(usize, usize)> {
        let lost = |action: &Action| match action {
            Action::Lost {
                site,
                indices,
                whole: true,
                ..
            } => Some((*site, indices.len())),
            _ => None,
        };
        actions.iter().filter_map(lost).collect()
    }

    #[test]
    fn a_world_that_is_connected_with_nobody_is_lost_alone() {
        for fails in [
            (|job: &mut Coallocation| job.handle_exited(1, 1, Exit::Signal(9), NOW)) as fn(&mut Coallocation),
            |job| job.handle_exited(2, 0, Exit::Status(0), NOW),
            |job| job.handle_aborted(1, 0, 3, "", NOW),
            |job| job.handle_closed(2, "its agent is gone", "", NOW),
        ] {
            let mut job = running();
            part(&mut job);
            fails(&mut job);
            assert_eq!(lost(&next(&mut job)), [(1, 2), (2, 2)]);
            for site in [1, 2] {
                job.handle_closed(site, "closed", "", NOW);
                (0..2).for_each(|index| job.handle_exited(site, index, Exit::Signal(15), NOW));
            }
            job.handle_aborted(1, 1, 3, "", NOW);
            assert!(next(&mut job).is_empty(), "what is lost is lost once");
            assert!(job.handle_finished(0, 0));
            job.handle_exited(0, 0, Exit::Status(0), NOW);
            assert_eq!(next(&mut job), [Action::Dismiss(vec![0]), Action::Leave]);
            let verdict = job.verdict();
            assert!(verdict.status != 0, "{verdict:?}");
            assert!(
                verdict
                    .problem
                    .unwrap()
                    .starts_with("4 of 5 processes were lost; the first loss: "),
                "a loss is told"
            );
        }
    }

    #[test]
    fn one_that_is_still_connected_or_again_ends_with_the_others() {
        let mut job = running();
        part(&mut job);
        set_apart(&mut job, 2, 1, false);
        job.handle_exited(1, 0, Exit::Signal(9), NOW);
        assert_eq!(job.verdict().status, 128 + 9);
        assert!(matches!(
            next(&mut job)[..],
            [Action::Gone { .. }, Action::Abort { .. }]
        ));
        // The job ends with its own world.
        let mut job = running();
        part(&mut job);
        set_apart(&mut job, 0, 0, true);
        job.handle_exited(0, 0, Exit::Status(3), NOW);
        assert_eq!(job.verdict().status, 3);
        assert!(
            next(&mut job)
                .iter()
                .any(|action| matches!(action, Action::Abort { .. }))
        );
    }

    #[test]
    fn who_has_finished_is_connected_with_nobody() {
        let mut job = running();
        set_apart(&mut job, 1, 0, true);
        assert!(job.handle_finished(1, 1) && job.handle_finished(2, 0) && job.handle_finished(2, 1));
        job.handle_exited(1, 0, Exit::Signal(11), NOW);
        assert_eq!(lost(&next(&mut job)), [(1, 2), (2, 2)]);
    }
}
