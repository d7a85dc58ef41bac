// SPDX-License-Identifier: Apache-2.0
//! Jobs that go on without processes that are lost.

use super::losses::ranges;
use super::tests::{WATCH, next};
use super::*;
use crate::model::Job;
use crate::model::tests::subjob;
use crate::terms::OnLoss;
use isthmus_wire::grid::Exit;

const NOW: Duration = Duration::ZERO;

/// A job of two subjobs with two processes each that runs.
fn running() -> Coallocation {
    let subjobs = ["a", "b"].map(|name| {
        let mut subjob = subjob(name, 2);
        OnLoss::GoOn.set(&mut subjob);
        subjob
    });
    let mut job = Coallocation::new(&Job::new(subjobs.to_vec()).unwrap(), WATCH);
    for site in 0..2 {
        job.handle_started(site, NOW);
        (0..2).for_each(|index| assert!(job.handle_arrived(site, index, NOW)));
    }
    assert_eq!(next(&mut job), [Action::Commit(vec![0, 1])]);
    job
}

/// Who hears of deaths: first rank, how many, and how many died before.
fn told(actions: &[Action]) -> Vec<(u32, u32, u32)> {
    let gone = |action: &Action| match action {
        Action::Gone {
            first, count, number, ..
        } => Some((*first, *count, *number)),
        _ => None,
    };
    actions.iter().filter_map(gone).collect()
}

#[test]
fn a_job_goes_on_without_processes_and_ends_with_the_status_of_the_first_loss() {
    let mut job = running();
    job.handle_exited(0, 1, Exit::Signal(9), NOW);
    job.handle_exited(1, 0, Exit::Status(0), NOW);
    assert_eq!(told(&next(&mut job)), [(1, 1, 0), (2, 1, 1)]);
    assert!(!job.is_over() && is_lost(&job, 0, 1) && !is_lost(&job, 0, 0));
    let stand = (
        "running".to_owned(),
        "1 of 2 processes lost: rank 1 (site 'a') was killed by signal 9 (SIGKILL)".to_owned(),
    );
    assert_eq!(job.subjobs().standings().next(), Some(stand));
    assert!(job.handle_finished(0, 0));
    assert!(next(&mut job).is_empty(), "one of those that live has not finished");
    assert!(job.handle_finished(1, 1));
    assert_eq!(next(&mut job), [Action::Dismiss(vec![0, 1])]);
    job.handle_exited(0, 0, Exit::Status(0), NOW);
    job.handle_exited(1, 1, Exit::Status(0), NOW);
    assert_eq!(next(&mut job), [Action::Leave]);
    let verdict = job.verdict();
    assert_eq!(verdict.status, 128 + 9);
    let problem = verdict.problem.unwrap();
    assert!(
        problem.starts_with("2 of 4 processes were lost; the first loss: rank 1 (site 'a') was killed by signal 9"),
        "{problem}"
    );
}

#[test]
fn those_that_wait_in_mpi_finalize_do_not_wait_for_the_dead() {
    let mut job = running();
    for (site, index) in [(0, 0), (0, 1), (1, 0)] {
        assert!(job.handle_finished(site, index));
    }
    job.handle_exited(1, 1, Exit::Status(3), NOW);
    assert!(next(&mut job).contains(&Action::Dismiss(vec![0, 1])));
}

#[test]
fn a_site_is_lost_at_once_and_nothing_that_it_says_later_counts() {
    let mut job = running();
    job.handle_exited(1, 0, Exit::Signal(11), NOW);
    next(&mut job);
    job.handle_closed(1, "its agent is gone", "", NOW);
    let actions = next(&mut job);
    assert_eq!(told(&actions), [(3, 1, 1)], "only of the one that was left");
    assert!(
        actions
            .iter()
            .any(|a| matches!(a, Action::Lost { site: 1, indices, whole: true, .. } if indices == &[1]))
    );
    job.handle_aborted(1, 1, 7, "", NOW);
    assert!(!job.handle_finished(1, 1) && !job.handle_arrived(1, 1, NOW));
    job.handle_exited(1, 1, Exit::Status(1), NOW);
    assert!(next(&mut job).is_empty());
    (0..2).for_each(|index| assert!(job.handle_finished(0, index)));
    (0..2).for_each(|index| job.handle_exited(0, index, Exit::Status(0), NOW));
    assert_eq!(next(&mut job), [Action::Dismiss(vec![0, 1]), Action::Leave]);
    assert_eq!(job.verdict().status, 128 + 11);
}

#[test]
fn mpi_abort_ends_all_and_so_does_a_loss_before_the_beginning() {
    let mut job = running();
    job.handle_aborted(0, 0, 3, "", NOW);
    assert_eq!(job.verdict().status, 3);
    let mut one = subjob("a", 2);
    OnLoss::GoOn.set(&mut one);
    let watch = job.watch;
    let mut job = Coallocation::new(&Job::new(vec![one]).unwrap(), watch);
    job.handle_started(0, NOW);
    assert!(job.handle_arrived(0, 0, NOW));
    job.handle_exited(0, 1, Exit::Signal(9), NOW);
    assert!(
        next(&mut job)
            .iter()
            .any(|action| matches!(action, Action::Abort { .. }))
    );
}

#[test]
fn numbers_that_follow_each_other_are_told_together() {
    assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), [0..3, 5..6, 7..9]);
    assert!(ranges(&[]).is_empty());
}

#[test]
fn other_worlds_hear_of_a_loss_too() {
    let mut job = running();
    let mut child = subjob("c", 1);
    OnLoss::GoOn.set(&mut child);
    assert_eq!(add(&mut job, &[child], NOW), Some(vec![2]));
    job.handle_started(2, NOW);
    assert!(job.handle_arrived(2, 0, NOW));
    assert_eq!(next(&mut job), [Action::Commit(vec![2])]);
    assert_eq!(
        (others(job.subjobs(), 2), others(job.subjobs(), 0)),
        (vec![0, 1], vec![2])
    );
    job.handle_exited(2, 0, Exit::Signal(9), NOW);
    let actions = next(&mut job);
    let heard = |a: &Action| matches!(a, Action::Gone { sites, of: 2, goes_on: true, first: 0, count: 1, .. } if sites.is_empty());
    assert!(
        actions.iter().any(heard),
        "nobody of its own world is left: {actions:?}"
    );
}
