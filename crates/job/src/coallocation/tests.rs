// SPDX-License-Identifier: Apache-2.0
use super::words::list_of_ranks;
use super::*;
use crate::model::tests::subjob;
use isthmus_wire::grid::Exit;

const T0: Duration = Duration::ZERO;
const PATIENCE: Duration = Duration::from_secs(60);
pub(super) const WATCH: Watch = Watch {
    patience: PATIENCE,
    limit: None,
    answers: false,
};

/// What is to be done now.
pub(super) fn next(job: &mut Coallocation) -> Vec<Action> {
    std::iter::from_fn(|| job.poll_action()).collect()
}

/// A subjob starts, and so many processes of it come.
pub(super) fn all_come(job: &mut Coallocation, site: usize, count: u32) {
    job.handle_started(site, T0);
    (0..count).for_each(|index| assert!(job.handle_arrived(site, index, T0)));
}

fn machine(counts: &[u32]) -> Coallocation {
    let subjobs = counts
        .iter()
        .enumerate()
        .map(|(i, n)| subjob(&format!("s{i}"), *n))
        .collect();
    let mut machine = Coallocation::new(&Job::new(subjobs).unwrap(), WATCH);
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
    assert_eq!(m.poll_action(), Some(Action::Commit(vec![0, 1])));
    for (site, index) in [(0, 0), (0, 1), (1, 0)] {
        assert_eq!(m.poll_action(), None);
        m.handle_finished(site, index);
    }
    assert_eq!(m.poll_action(), Some(Action::Dismiss(vec![0, 1])));
    for (site, index) in [(0, 0), (1, 0), (0, 1)] {
        m.handle_exited(site, index, Exit::Status(0), T0);
    }
    assert_eq!(m.poll_action(), Some(Action::Leave));
    m.handle_closed(0, "", "", T0);
    assert!(!m.is_over());
    m.handle_closed(1, "", "", T0);
    assert!(m.is_over());
    assert_eq!(m.verdict(), Verdict::default());
    assert!(m.subjobs().states().all(|(_, s)| s == State::Done));
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
    let gone = Action::Gone {
        sites: vec![0, 1],
        of: 1,
        goes_on: false,
        number: 0,
        first: 2,
        count: 1,
        reason: "rank 2 (site 's1') was killed by signal 9 (SIGKILL)".to_owned(),
    };
    assert_eq!(
        m.poll_action(),
        Some(gone),
        "those who are left hear of it, once, and first"
    );
    assert!(matches!(m.poll_action(), Some(Action::Abort { code: 137, .. })));
    assert!(
        matches!(
            m.poll_action(),
            Some(Action::Gone {
                first: 0,
                count: 1,
                number: 1,
                ..
            })
        ),
        "who died together with it is told of, too"
    );
    m.handle_time(GRACE);
    assert_eq!(m.poll_action(), Some(Action::Leave));
    m.handle_time(GRACE + LEAVE);
    assert!(m.is_over());
}

#[test]
fn of_the_deaths_in_a_job_that_ends_a_bounded_number_is_told() {
    let mut m = machine(&[200]);
    all_arrive(&mut m, &[200]);
    (0..200).for_each(|index| m.handle_exited(0, index, Exit::Signal(9), T0));
    let told = actions(&mut m);
    let told = told.iter().filter(|action| matches!(action, Action::Gone { .. }));
    assert_eq!(told.count() as u32, 1 + TOLD_AT_THE_END);
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
            .starts_with("rank 1 ended without calling MPI_Init, in which rank 0 ")
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
    let called = "rank 0 (site 's0'): called MPI_Abort with code 256";
    assert_eq!((m.verdict().status, m.verdict().problem.as_deref()), (1, Some(called)));
    let mut m = machine(&[1]);
    let own = "rank 0 (s0 on n): boom";
    m.handle_aborted(0, 0, 42, own, T0);
    assert_eq!((m.verdict().status, m.verdict().problem.as_deref()), (42, Some(own)));
}

#[test]
fn who_aborts_in_the_name_of_another_process_is_named() {
    for (reason, told) in [
        ("rank 1 (s1 on n): boom", "rank 1 (s1 on n): boom"),
        ("rank 0 (s0 on n): boom", "rank 1 (site 's1'): rank 0 (s0 on n): boom"),
        ("rank 1 (s0 on n): boom", "rank 1 (site 's1'): rank 1 (s0 on n): boom"),
        ("boom", "rank 1 (site 's1'): boom"),
    ] {
        let mut m = machine(&[1, 1]);
        all_arrive(&mut m, &[1, 1]);
        m.handle_aborted(1, 0, 42, reason, T0);
        assert_eq!(m.verdict().problem.as_deref(), Some(told));
    }
}

#[test]
fn what_a_process_has_done_it_does_not_do_again() {
    let mut m = machine(&[1, 1]);
    assert!(!m.handle_finished(0, 0), "it has not begun");
    all_arrive(&mut m, &[1, 1]);
    assert!(!m.handle_arrived(0, 0, T0));
    assert!(m.handle_finished(0, 0) && !m.handle_finished(0, 0));
    assert!(!m.handle_finished(0, 1), "there is no such process");
    assert!(!m.subjobs().has_ended(0, 0) && m.subjobs().has_ended(0, 1));
    m.handle_exited(0, 0, Exit::Status(0), T0);
    assert!(m.subjobs().has_ended(0, 0) && !m.subjobs().has_ended(1, 0));
}

#[test]
fn one_interrupt_is_orderly_and_two_are_not() {
    let mut m = machine(&[1]);
    m.handle_interrupt("", 2, T0);
    assert_eq!(m.poll_action(), Some(Action::Signal(2)));
    assert_eq!(m.poll_action(), None);
    // Who does not mind it gets SIGTERM, and is killed then.
    m.handle_time(GRACE);
    assert_eq!(m.poll_action(), Some(Action::Signal(15)));
    m.handle_time(2 * GRACE);
    assert_eq!(
        (m.poll_action(), m.deadline()),
        (Some(Action::Leave), Some(2 * GRACE + LEAVE))
    );
    let mut m = machine(&[1]);
    m.handle_interrupt("", 13, T0);
    assert_eq!(m.poll_action(), Some(Action::Signal(15)));
    m.handle_interrupt("", 2, T0);
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
    assert_eq!(actions, [Action::Commit(vec![0]), Action::Dismiss(vec![0])]);
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
    let mut m = Coallocation::new(&Job::new(vec![subjob("a", 1), subjob("b", 1)]).unwrap(), WATCH);
    let hours = Duration::from_secs(7200);
    m.handle_staging(0, T0);
    m.handle_started(0, T0);
    m.handle_arrived(0, 0, T0);
    m.handle_staging(1, T0);
    assert_eq!(m.deadline(), Some(PATIENCE));
    m.handle_queued(1, T0);
    assert_eq!(m.deadline(), None);
    assert_eq!(
        m.subjobs().states().map(|(_, s)| s).collect::<Vec<_>>(),
        [State::Starting; 2]
    );
    m.handle_started(1, hours);
    assert_eq!(m.deadline(), Some(hours + PATIENCE));
    m.handle_arrived(1, 0, hours);
    assert_eq!(m.poll_action(), Some(Action::Commit(vec![0, 1])));
}

#[test]
fn what_a_scheduler_refuses_ends_the_job() {
    let mut m = Coallocation::new(&Job::new(vec![subjob("a", 1), subjob("b", 1)]).unwrap(), WATCH);
    m.handle_staging(0, T0);
    m.handle_queued(0, T0);
    m.handle_site_failed(0, "Slurm ended job 7", "", T0);
    assert_eq!(m.verdict().problem.as_deref(), Some("site 'a': Slurm ended job 7"));
    let actions: Vec<_> = std::iter::from_fn(|| m.poll_action()).collect();
    assert_eq!(actions.last(), Some(&Action::Leave));
}

/// A job of subjobs with two processes each, on these terms (options of `--site`).
fn on_terms(terms: &[&str], watch: Watch) -> Coallocation {
    let subjobs = terms.iter().enumerate().map(|(number, terms)| {
        let name = format!("s{number}");
        let mut subjob = subjob(&name, 2);
        if !terms.is_empty() {
            subjob.requests = crate::forms::sites::SiteSpec::parse(&format!("{name},{terms}"))
                .unwrap()
                .requests;
        }
        subjob
    });
    Coallocation::new(&Job::new(subjobs.collect()).unwrap(), watch)
}

fn arrive(m: &mut Coallocation, site: usize, now: Duration) {
    m.handle_started(site, now);
    (0..2).for_each(|index| assert!(m.handle_arrived(site, index, now)));
}

fn actions(m: &mut Coallocation) -> Vec<Action> {
    std::iter::from_fn(|| m.poll_action()).collect()
}

const S: fn(u64) -> Duration = Duration::from_secs;

#[test]
fn without_its_last_subjob_a_job_does_not_go_on() {
    let mut m = on_terms(&["", ""], WATCH);
    assert_eq!(m.answer(0, Answer::Drop, S(1)), Ok(()));
    let dropped = |m: &mut Coallocation| {
        actions(m).into_iter().find_map(|action| match action {
            Action::Drop { site, goes_on, .. } => Some((site, goes_on)),
            _ => None,
        })
    };
    assert_eq!(dropped(&mut m), Some((0, true)));
    assert_eq!(m.answer(1, Answer::Drop, S(2)), Ok(()));
    assert_eq!(dropped(&mut m), Some((1, false)));
}

#[test]
fn an_optional_subjob_that_is_late_is_dropped_and_the_ranks_move_up() {
    let mut m = on_terms(&["", "need=optional,start_timeout=20s", ""], WATCH);
    m.handle_queued(1, T0);
    arrive(&mut m, 0, S(1));
    arrive(&mut m, 2, S(2));
    assert_eq!((m.poll_action(), m.deadline()), (None, Some(S(20))));
    m.handle_time(S(19));
    assert_eq!(m.poll_action(), None);
    m.handle_time(S(20));
    let done = actions(&mut m);
    assert!(
        matches!(&done[0], Action::Drop { site: 1, problem, goes_on: true } if problem.contains("20 s") && problem.contains("queue"))
    );
    assert_eq!(done[1..], [Action::Commit(vec![0, 2])]);
    assert_eq!(m.subjobs().who(2, 1), "rank 3 (site 's2')");
    assert!(!m.handle_arrived(1, 0, S(21)), "it comes too late");
}

#[test]
fn a_required_subjob_that_is_late_ends_the_job() {
    let mut m = on_terms(&["", "start_timeout=20s"], WATCH);
    m.handle_queued(1, T0);
    arrive(&mut m, 0, T0);
    m.handle_time(S(20));
    assert!(matches!(&actions(&mut m)[..], [Action::Abort { code: 1, reason }] if reason.starts_with("site 's1'")));
}

#[test]
fn substitutes_are_tried_in_turn() {
    let mut m = on_terms(&["", "substitute=x,substitute=home,need=optional"], WATCH);
    arrive(&mut m, 0, T0);
    for place in ["x", "home"] {
        m.handle_closed(1, "no way", "", S(1));
        let done = actions(&mut m);
        assert!(
            matches!(&done[..], [Action::Substitute { site: 1, place: Some(p), problem }]
                if p.to_string() == place && problem == "site 's1': no way"),
            "{done:?}"
        );
    }
    arrive(&mut m, 1, S(2));
    assert_eq!(actions(&mut m), [Action::Commit(vec![0, 1])]);
    m.handle_closed(1, "gone", "", S(3));
    assert!(
        matches!(
            &actions(&mut m)[..],
            [Action::Gone { sites, first: 2, count: 2, .. }, Action::Abort { .. }] if *sites == [0]
        ),
        "after the start no substitute helps, and the others hear of all that are gone"
    );
}

#[test]
fn the_user_is_asked_about_an_interactive_subjob() {
    let asking = Watch { answers: true, ..WATCH };
    let failed = || {
        let mut m = on_terms(&["", "need=interactive"], asking);
        arrive(&mut m, 0, T0);
        m.handle_site_failed(1, "no way", "", T0);
        assert!(matches!(&actions(&mut m)[..], [Action::Ask { site: 1, .. }]));
        assert_eq!(m.deadline(), None, "people take their time");
        m
    };
    let mut m = failed();
    assert_eq!(m.answer(1, Answer::Drop, S(9)), Ok(()));
    assert!(matches!(&actions(&mut m)[..], [Action::Drop { site: 1, .. }, Action::Commit(world)] if *world == [0]));
    assert!(m.answer(1, Answer::Retry, S(9)).is_err() && m.answer(0, Answer::Drop, S(9)).is_err());
    let mut m = failed();
    assert_eq!(m.answer(1, Answer::Retry, S(9)), Ok(()));
    assert!(matches!(
        &actions(&mut m)[..],
        [Action::Substitute {
            site: 1,
            place: None,
            ..
        }]
    ));
    let mut m = failed();
    assert_eq!(m.answer(1, Answer::Abort, S(9)), Ok(()));
    assert!(matches!(&actions(&mut m)[..], [Action::Abort { .. }]));
    let mut unasked = on_terms(&["", "need=interactive"], WATCH);
    unasked.handle_site_failed(1, "no way", "", T0);
    assert!(matches!(
        actions(&mut unasked)[..],
        [Action::Abort { .. }, Action::Leave]
    ));
}

#[test]
fn a_question_about_a_late_subjob_is_settled_when_it_comes() {
    let watch = Watch { answers: true, ..WATCH };
    let mut m = on_terms(&["", "need=interactive,start_timeout=5s"], watch);
    arrive(&mut m, 0, T0);
    m.handle_time(S(5));
    assert!(matches!(&actions(&mut m)[..], [Action::Ask { site: 1, .. }]));
    arrive(&mut m, 1, S(7));
    assert_eq!(
        actions(&mut m),
        [Action::Settled { site: 1 }, Action::Commit(vec![0, 1])]
    );
}

#[test]
fn start_types() {
    let mut m = on_terms(&["", "start=loose", "start=none", "world=own", "start=loose"], WATCH);
    arrive(&mut m, 2, T0);
    assert_eq!(actions(&mut m), [Action::Commit(vec![2])], "it waits for nobody");
    arrive(&mut m, 1, T0);
    arrive(&mut m, 3, T0);
    assert_eq!(actions(&mut m), []);
    arrive(&mut m, 0, T0);
    assert_eq!(actions(&mut m), [Action::Commit(vec![0, 1]), Action::Commit(vec![3])]);
    assert_eq!(m.subjobs().first_numbers().collect::<Vec<_>>(), [0, 2, 6, 8, 4]);
    arrive(&mut m, 4, S(100));
    assert_eq!(
        actions(&mut m),
        [Action::Commit(vec![4])],
        "late, in a world of its own"
    );
    assert_eq!(
        (m.subjobs().who(1, 0), m.subjobs().who(4, 1)),
        ("rank 2 (site 's1')".to_owned(), "rank 1 of site 's4'".to_owned())
    );
    m.handle_closed(4, "lost", "", S(101));
    assert!(
        matches!(
            &actions(&mut m)[..],
            [Action::Gone { of: 4, .. }, Action::Drop { site: 4, .. }]
        ),
        "it is optional"
    );
    for index in 0..2 {
        m.handle_finished(2, index);
    }
    assert_eq!(actions(&mut m), [Action::Dismiss(vec![2])]);
}

#[test]
fn a_job_ends_at_its_limit() {
    let limited = Watch {
        limit: Some(S(10)),
        ..WATCH
    };
    let mut m = on_terms(&["", ""], limited);
    m.handle_queued(1, T0);
    arrive(&mut m, 0, S(1));
    assert_eq!(m.deadline(), None, "a queue takes nothing off the limit");
    arrive(&mut m, 1, S(4000));
    actions(&mut m);
    assert_eq!(m.deadline(), Some(S(4010)));
    m.handle_time(S(4010));
    assert_eq!(actions(&mut m), [Action::Signal(15)]);
    assert_eq!(m.verdict().status, STATUS_LIMIT);
}

#[test]
fn a_scheduler_may_stop_a_subjob_for_a_while() {
    let mut m = on_terms(&["", ""], WATCH);
    arrive(&mut m, 0, T0);
    arrive(&mut m, 1, T0);
    m.handle_suspended(1, true);
    assert_eq!(
        m.subjobs().states().map(|(_, s)| s).collect::<Vec<_>>(),
        [State::Running, State::Suspended]
    );
    m.handle_suspended(1, false);
    assert_eq!(
        m.subjobs().states().map(|(_, s)| s).collect::<Vec<_>>(),
        [State::Running; 2]
    );
}

#[test]
fn what_a_subjob_gives_back_is_fetched_before_it_is_done() {
    let mut one = subjob("a", 1);
    one.files.outputs = vec![crate::transfer::Pattern::parse("*.out").unwrap()];
    let mut m = Coallocation::new(&Job::new(vec![one]).unwrap(), WATCH);
    m.handle_started(0, T0);
    m.handle_exited(0, 0, Exit::Status(0), T0);
    assert!(m.subjobs().states().eq([("a", State::Fetching)]));
    m.handle_staged_out();
    assert!(m.subjobs().states().eq([("a", State::Done)]));
}
