// SPDX-License-Identifier: Apache-2.0
//! Subjobs that are added to a job that runs: each time some, which begin together as a world of their own. They leave
//! when their processes have ended.

use super::site::Site;
use super::{Action, Coallocation, Process, State, Verdict};
use crate::model::Subjob;
use std::time::Duration;

/// Adds subjobs, which will be a world of their own; gives their numbers. `None`: the job ends, or has not begun.
pub fn add(job: &mut Coallocation, subjobs: &[Subjob], now: Duration) -> Option<Vec<usize>> {
    if !job.phase.is_open() || !job.is_committed() {
        return None;
    }
    job.last_progress = now;
    Some(job.subjobs.add(subjobs))
}

/// Lets those begin that were added together and are all there.
pub(super) fn open(job: &mut Coallocation) {
    for sites in job.subjobs.added_and_complete() {
        job.subjobs.begin(&sites);
        job.actions.push_back(Action::Commit(sites));
    }
}

/// A subjob that was added has failed before it began, and with it those that were added with it. The job goes on.
pub(super) fn fail(job: &mut Coallocation, site: usize, verdict: Verdict, now: Duration) {
    let sites = job.subjobs.added_with(site);
    for &site in &sites {
        let failed = job.subjobs.site_mut(site);
        failed.advance(State::Failed);
        failed.dropped = true;
        failed.end();
    }
    job.actions.push_back(Action::NotStarted {
        sites,
        problem: verdict.problem.unwrap_or_default(),
        hint: verdict.hint,
    });
    job.last_progress = now;
    job.leave_when_ended(now);
}

/// What it means that a process of an added subjob has ended before that began: the others would wait for it.
pub(super) fn judge(
    job: &Coallocation,
    site: usize,
    index: u32,
    was: Process,
    verdict: Option<Verdict>,
) -> Option<Verdict> {
    if !job.subjobs.site(site).is_awaited_later() {
        return verdict;
    }
    let who = job.subjobs.who(site, index);
    let before = match was {
        Process::Arrived => "before the others were in MPI_Init",
        _ => "without calling MPI_Init",
    };
    let problem = match verdict.and_then(|verdict| verdict.problem) {
        Some(problem) => format!("{problem} {before}"),
        None => format!("{who} ended {before}"),
    };
    Some(Verdict::launch(problem, "programs that are spawned call MPI_Init"))
}

/// All processes of an added subjob's world have ended: nothing is left there.
pub(super) fn retire(job: &mut Coallocation, site: usize) {
    let sites = job.subjobs.added_with(site);
    let over = |&site: &usize| {
        let site = job.subjobs.site(site);
        site.is_live() && site.world.is_some() && site.has_ended() && !site.retired
    };
    if sites.is_empty() || !sites.iter().all(over) {
        return;
    }
    for &site in &sites {
        job.subjobs.site_mut(site).retired = true;
    }
    job.actions.push_back(Action::Retire(sites));
}

impl Site {
    /// Whether it was added to the job and has not begun.
    pub(super) fn is_awaited_later(&self) -> bool {
        self.added.is_some() && self.is_live() && self.world.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{WATCH, all_come, next};
    use super::*;
    use crate::model::Job;
    use crate::model::tests::subjob;
    use isthmus_wire::grid::Exit;

    const NOW: Duration = Duration::ZERO;

    /// A job of two processes that runs.
    fn running() -> Coallocation {
        let mut job = Coallocation::new(&Job::new(vec![subjob("a", 2)]).unwrap(), WATCH);
        assert!(add(&mut job, &[subjob("b", 1)], NOW).is_none(), "it has not begun");
        job.handle_started(0, NOW);
        for index in 0..2 {
            assert!(job.handle_arrived(0, index, NOW));
        }
        assert_eq!(next(&mut job), [Action::Commit(vec![0])]);
        job
    }

    fn end(job: &mut Coallocation, site: usize, count: u32) {
        (0..count).for_each(|index| assert!(job.handle_finished(site, index)));
        (0..count).for_each(|index| job.handle_exited(site, index, Exit::Status(0), NOW));
    }

    #[test]
    fn what_is_added_begins_together_and_leaves_again() {
        let mut job = running();
        assert_eq!(add(&mut job, &[subjob("b", 1), subjob("c", 2)], NOW), Some(vec![1, 2]));
        assert_eq!(job.subjobs().who(2, 1), "rank 1 of site 'c'");
        assert_eq!(job.subjobs().number_of(2, 1), 4, "numbers go on");
        all_come(&mut job, 2, 2);
        assert!(next(&mut job).is_empty(), "one of them is not there");
        all_come(&mut job, 1, 1);
        assert_eq!(next(&mut job), [Action::Commit(vec![1, 2])]);
        end(&mut job, 1, 1);
        end(&mut job, 2, 2);
        assert_eq!(
            next(&mut job),
            [Action::Dismiss(vec![1, 2]), Action::Retire(vec![1, 2])]
        );
        job.handle_closed(1, "closed", "", NOW);
        job.handle_closed(2, "closed", "", NOW);
        assert!(
            next(&mut job).is_empty() && job.verdict().problem.is_none(),
            "{:?}",
            job.verdict()
        );
        end(&mut job, 0, 2);
        assert_eq!(next(&mut job), [Action::Dismiss(vec![0]), Action::Leave]);
    }

    #[test]
    fn a_job_goes_on_when_what_was_added_cannot_start() {
        for fails in [
            (|job: &mut Coallocation| job.handle_site_failed(1, "there is no './x'", "", NOW)) as fn(&mut Coallocation),
            |job| job.handle_exited(1, 0, Exit::Status(0), NOW),
            |job| job.handle_exited(1, 0, Exit::Signal(9), NOW),
            |job| job.handle_closed(1, "its agent is gone", "", NOW),
        ] {
            let mut job = running();
            assert_eq!(add(&mut job, &[subjob("b", 1), subjob("c", 2)], NOW), Some(vec![1, 2]));
            all_come(&mut job, 2, 2);
            job.handle_started(1, NOW);
            fails(&mut job);
            let actions = next(&mut job);
            assert!(
                matches!(&actions[..], [Action::NotStarted { sites, problem, .. }] if sites == &[1, 2] && !problem.is_empty()),
                "{actions:?}"
            );
            assert_eq!(job.verdict().problem, None);
            end(&mut job, 0, 2);
            assert_eq!(next(&mut job), [Action::Dismiss(vec![0]), Action::Leave]);
        }
    }

    #[test]
    fn a_failure_of_what_was_added_ends_the_job_once_it_has_begun() {
        let mut job = running();
        add(&mut job, &[subjob("b", 1)], NOW);
        all_come(&mut job, 1, 1);
        assert_eq!(next(&mut job), [Action::Commit(vec![1])]);
        job.handle_exited(1, 0, Exit::Status(3), NOW);
        assert_eq!(job.verdict().status, 3);
        assert!(add(&mut job, &[subjob("c", 1)], NOW).is_none(), "the job ends");
    }
}
