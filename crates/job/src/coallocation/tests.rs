// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::model::tests::subjob;

const T0: Duration = Duration::ZERO;
const PATIENCE: Duration = Duration::from_secs(60);

fn machine(counts: &[u32]) -> Coallocation {
    let subjobs = counts
        .iter()
        .enumerate()
        .map(|(i, n)| subjob(&format!("s{i}"), *n))
        .collect();
    let mut machine = Coallocation::new(&Job::new(subjobs).unwrap(), PATIENCE);
    for site in 0..counts.len() {
        machine.handle_staging(site, T0);
        machine.handle_started(site, T0);
    }
    machine
}

fn all_arrive(m: &mut Coallocation, counts: &[u32]) {
    for (site, count) in counts.iter().enumerate() {
        (0..*count).for_each(|i| assert!(m.handle_arrived(site, i, T0)));
    }
}

#[test]
fn an_mpi_job_runs_to_its_end() {
    let mut m = machine(&[2, 1]);
    all_arrive(&mut m, &[2, 1]);
    assert_eq!(m.poll_action(), Some(Action::Commit));
    for (site, index) in [(0, 0), (0, 1), (1, 0)] {
        assert_eq!(m.poll_action(), None);
        m.handle_finished(site, index);
    }
    assert_eq!(m.poll_action(), Some(Action::Dismiss));
    for (site, index) in [(0, 0), (1, 0), (0, 1)] {
        m.handle_exited(site, index, Exit::Status(0), T0);
    }
    assert_eq!(m.poll_action(), Some(Action::Leave));
    m.handle_closed(0, "", "", T0);
    assert!(!m.is_over());
    m.handle_closed(1, "", "", T0);
    assert!(m.is_over());
    assert_eq!(m.verdict(), Verdict::default());
    assert!(m.states().all(|(_, s)| s == State::Done));
}

#[test]
fn programs_without_mpi_run_to_their_end_without_time_limit() {
    let mut m = machine(&[2]);
    assert_eq!(m.deadline(), None);
    m.handle_exited(0, 0, Exit::Status(0), T0);
    m.handle_exited(0, 1, Exit::Status(0), T0);
    assert_eq!(m.poll_action(), Some(Action::Leave));
    assert_eq!(m.verdict().status, 0);
}

#[test]
fn the_first_failure_is_the_verdict_and_ends_the_job() {
    let mut m = machine(&[2, 2]);
    all_arrive(&mut m, &[2, 2]);
    m.poll_action();
    m.handle_exited(1, 0, Exit::Signal(9), T0);
    m.handle_exited(0, 0, Exit::Status(3), T0);
    let verdict = m.verdict();
    assert_eq!(verdict.status, 137);
    assert_eq!(
        verdict.problem.as_deref(),
        Some("rank 2 (site 's1') was killed by signal 9 (SIGKILL)")
    );
    assert!(matches!(m.poll_action(), Some(Action::Abort { code: 137, .. })));
    m.handle_time(GRACE);
    assert_eq!(m.poll_action(), Some(Action::Leave));
    m.handle_time(GRACE + LEAVE);
    assert!(m.is_over());
}

#[test]
fn an_exit_without_finalize_is_an_error() {
    let mut m = machine(&[1]);
    all_arrive(&mut m, &[1]);
    m.handle_exited(0, 0, Exit::Status(0), T0);
    assert_eq!(m.verdict().status, 1);
    assert!(m.verdict().problem.unwrap().contains("without calling MPI_Finalize"));
}

#[test]
fn a_barrier_that_can_never_open_is_an_error() {
    let mut m = machine(&[3]);
    m.handle_exited(0, 1, Exit::Status(0), T0);
    m.handle_arrived(0, 0, T0);
    assert!(
        m.verdict()
            .problem
            .unwrap()
            .starts_with("rank 1 ended without calling MPI_Init while rank 0")
    );
}

#[test]
fn who_is_missing_is_named() {
    let mut m = machine(&[2, 4]);
    m.handle_arrived(0, 0, T0);
    m.handle_arrived(1, 1, T0);
    assert_eq!(m.deadline(), Some(PATIENCE));
    m.handle_time(PATIENCE);
    assert!(
        m.verdict()
            .problem
            .unwrap()
            .contains("ranks 1-2, 4-5 (not in MPI_Init)")
    );
}

#[test]
fn abort_keeps_its_code_and_never_looks_like_success() {
    let mut m = machine(&[1]);
    all_arrive(&mut m, &[1]);
    m.handle_aborted(0, 0, 256, "", T0);
    assert_eq!(m.verdict().status, 1);
    let mut m = machine(&[1]);
    m.handle_aborted(0, 0, 42, "boom", T0);
    assert_eq!(
        (m.verdict().status, m.verdict().problem.as_deref()),
        (42, Some("rank 0 (site 's0'): boom"))
    );
}

#[test]
fn one_interrupt_is_orderly_and_two_are_not() {
    let mut m = machine(&[1]);
    m.handle_interrupt(2, T0);
    assert_eq!(m.poll_action(), Some(Action::Signal(15)));
    assert_eq!(m.poll_action(), None);
    m.handle_interrupt(2, T0);
    assert_eq!(m.poll_action(), Some(Action::Leave));
    assert_eq!((m.verdict().status, m.deadline()), (130, Some(LEAVE_AT_ONCE)));
}

#[test]
fn a_failed_site_ends_the_job_and_is_named() {
    let mut m = machine(&[1, 1]);
    m.handle_closed(1, "connection lost", "look at it", T0);
    assert!(matches!(m.poll_action(), Some(Action::Abort { .. })));
    m.handle_exited(0, 0, Exit::Signal(15), T0);
    assert_eq!(m.poll_action(), Some(Action::Leave));
    m.handle_closed(0, "", "", T0);
    assert!(m.is_over());
    assert_eq!(m.verdict().problem.as_deref(), Some("site 's1': connection lost"));
}

#[test]
fn a_late_failure_lets_the_others_end_by_themselves() {
    let mut m = machine(&[2]);
    all_arrive(&mut m, &[2]);
    m.handle_finished(0, 0);
    m.handle_finished(0, 1);
    m.handle_exited(0, 1, Exit::Status(5), T0);
    let actions: Vec<_> = std::iter::from_fn(|| m.poll_action()).collect();
    assert_eq!(actions, [Action::Commit, Action::Dismiss]);
    m.handle_exited(0, 0, Exit::Status(0), T0);
    assert_eq!((m.poll_action(), m.verdict().status), (Some(Action::Leave), 5));
}

#[test]
fn ranks_are_listed_in_ranges() {
    assert_eq!(list_of_ranks(&[0, 1, 2, 5]), "ranks 0-2, 5");
    assert_eq!(list_of_ranks(&[7]), "rank 7");
    assert_eq!(
        list_of_ranks(&(0..40).map(|i| 2 * i).collect::<Vec<_>>())
            .matches(',')
            .count(),
        8
    );
}

#[test]
fn a_queue_may_take_hours() {
    let mut m = Coallocation::new(&Job::new(vec![subjob("a", 1), subjob("b", 1)]).unwrap(), PATIENCE);
    let hours = Duration::from_secs(7200);
    m.handle_staging(0, T0);
    m.handle_started(0, T0);
    m.handle_arrived(0, 0, T0);
    m.handle_staging(1, T0);
    assert_eq!(m.deadline(), Some(PATIENCE));
    m.handle_queued(1, T0);
    assert_eq!(m.deadline(), None);
    assert_eq!(m.states().map(|(_, s)| s).collect::<Vec<_>>(), [State::Pending; 2]);
    m.handle_started(1, hours);
    assert_eq!(m.deadline(), Some(hours + PATIENCE));
    m.handle_arrived(1, 0, hours);
    assert_eq!(m.poll_action(), Some(Action::Commit));
}

#[test]
fn what_a_scheduler_refuses_ends_the_job() {
    let mut m = Coallocation::new(&Job::new(vec![subjob("a", 1), subjob("b", 1)]).unwrap(), PATIENCE);
    m.handle_staging(0, T0);
    m.handle_queued(0, T0);
    m.handle_site_failed(0, "Slurm ended job 7", "", T0);
    assert_eq!(m.verdict().problem.as_deref(), Some("site 'a': Slurm ended job 7"));
    let actions: Vec<_> = std::iter::from_fn(|| m.poll_action()).collect();
    assert_eq!(actions.last(), Some(&Action::Leave));
}
