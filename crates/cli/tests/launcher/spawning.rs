// SPDX-License-Identifier: Apache-2.0
//! Processes have more processes started: at sites of their job, as a world of their own.

use crate::bench::{Bench, finish, signal};

const SITES: &str = "run --site home:1 --site lab:1";

/// A job whose first process spawns `times` times; children do this.
fn line(what: &str, times: u32) -> String {
    format!("{SITES} {} spawn-{what} {times} 0", Bench::fake())
}

#[test]
fn children_are_a_world_of_their_own_and_come_as_often_as_they_are_asked_for() {
    let bench = Bench::new("spawn");
    let done = bench.run(&line("finish", 3));
    assert_eq!(done.code(), Some(0), "{done:?}");
    let mut wanted = vec!["Started([2, 1])".to_owned(); 3];
    for world in 1..=3 {
        wanted.extend((0..3).map(|rank| format!("child {rank} of 3 in world {world} of port {world}")));
    }
    wanted.extend((0..2).map(|rank| format!("rank {rank} of 2 certificate 0")));
    wanted.sort();
    assert_eq!(done.lines(), wanted, "{done:?}");
}

#[test]
fn a_job_goes_on_when_children_cannot_start() {
    let bench = Bench::new("spawnfail");
    for (what, why) in [
        ("missing", "'/nowhere/program'"),
        ("skip", "ended without calling MPI_Init"),
    ] {
        let done = bench.run(&line(what, 2));
        assert_eq!(done.code(), Some(0), "{done:?}");
        let refused = done
            .lines()
            .into_iter()
            .filter(|l| l.starts_with("NotStarted: ") && l.contains(why));
        assert_eq!(refused.count(), 2, "{done:?}");
    }
}

#[test]
fn the_end_of_a_child_is_the_end_of_the_job_when_it_is_bad() {
    let bench = Bench::new("spawnends");
    let done = bench.run(&line("exit", 1));
    assert_eq!(done.code(), Some(3), "{done:?}");
    assert!(
        done.errors.contains("rank 0 of site 'home+1' exited with status 3"),
        "{}",
        done.errors
    );
}

#[test]
fn an_interrupt_ends_children_too() {
    let bench = Bench::new("spawnint");
    let child = bench.command(&line("hang", 1)).spawn().unwrap();
    // One per child beside those that carry the same words as agents and parents.
    bench.await_processes("fake_process hang", 3);
    let listed = bench.run_beside("ps --long");
    assert!(listed.contains("home+1") && listed.contains("lab+1"), "{listed}");
    signal(child.id(), "INT");
    let done = finish(child);
    assert_eq!(done.code(), Some(130), "{done:?}");
    bench.assert_clean();
}
