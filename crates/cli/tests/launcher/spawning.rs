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
fn the_agent_of_a_site_starts_those_of_children_over_its_own_connection() {
    let bench = Bench::new("spawnbeside");
    let done = bench.run(&format!("{SITES} {} finish", Bench::fake()));
    assert_eq!(done.code(), Some(0), "{done:?}");
    let without = bench.clients("lab");
    // Children that come, that cannot start, and that end too early.
    for what in ["finish", "missing", "skip"] {
        let done = bench.run(&line(what, 3));
        assert_eq!(done.code(), Some(0), "{done:?}");
        assert_eq!(bench.clients("lab"), without, "{what}: {done:?}");
    }
}

#[test]
fn children_end_with_the_agent_that_has_started_theirs() {
    let bench = Bench::new("spawnkilled");
    let child = bench.command(&line("hang", 1)).spawn().unwrap();
    bench.await_processes("fake_process hang", 3);
    // Of the two agents at the site the one that has started the other.
    let agents = bench.await_processes(" agent ", 4);
    let parent = |agent: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{agent}/stat")).unwrap();
        stat.split_whitespace().nth(3).unwrap().parse::<i32>().unwrap()
    };
    let first = agents.iter().map(parent).find(|parent| agents.contains(parent));
    signal(u32::try_from(first.unwrap()).unwrap(), "KILL");
    let done = finish(child);
    assert_ne!(done.code(), Some(0), "{done:?}");
    assert!(done.errors.contains("lab"), "{}", done.errors);
    bench.assert_clean();
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

#[test]
fn children_run_at_sites_that_the_user_has_named_and_at_no_others() {
    let bench = Bench::new("spawnfurther");
    let line = format!("run --site home:1 {} spawn-finish 1 0", Bench::fake());
    let refused = bench.run(&line);
    let why =
        "'lab' is not a machine of this job, whose sites are 'home'; ISTHMUS_SPAWN_SITES of its launcher names others";
    assert_eq!(refused.code(), Some(0), "{refused:?}");
    assert!(refused.lines().iter().any(|line| line.contains(why)), "{refused:?}");
    let mut command = bench.command(&line);
    command.env("ISTHMUS_SPAWN_SITES", "x=far lab");
    let done = finish(command.spawn().unwrap());
    assert_eq!(done.code(), Some(0), "{done:?}");
    for line in ["Started([2, 1])", "child 2 of 3 in world 1 of port 1"] {
        assert!(done.lines().iter().any(|said| said == line), "{done:?}");
    }
    assert!(
        bench.root.join("sites/lab/.cache/isthmus/files").exists(),
        "it was staged"
    );
    bench.assert_clean();
}

/// A job of one process that only waits.
fn waiting(bench: &Bench) -> std::process::Child {
    let line = format!("run --name tank --site home:1 {} hang", Bench::fake());
    let child = bench.command(&line).spawn().unwrap();
    bench.await_processes("fake_process hang", 2);
    child
}

fn add(bench: &Bench, words: &str) -> crate::bench::Done {
    finish(bench.command(&format!("add {words}")).spawn().unwrap())
}

#[test]
fn the_user_adds_processes_to_a_job_that_runs() {
    let bench = Bench::new("add");
    let child = waiting(&bench);
    // The job's processes may not have begun when the first ones are wanted.
    let words = format!("tank --site home:2 --site lab:1 {} finish", Bench::fake());
    let began = std::time::Instant::now();
    let added = loop {
        let added = add(&bench, &words);
        if added.code() == Some(0) || began.elapsed().as_secs() > 30 {
            break added;
        }
    };
    assert_eq!(added.code(), Some(0), "{added:?}");
    assert!(added.errors.contains("3 processes have been added"), "{added:?}");
    for (words, why) in [
        ("tank -n 1 /nowhere/program", "'/nowhere/program'"),
        ("tank -n 1 true", "ended without calling MPI_Init"),
        ("tank --to pool -n 1 true", "nobody has published"),
        ("tank --detach -n 1 true", "--detach concerns the launcher"),
        ("nobody -n 1 true", "nobody"),
    ] {
        let refused = add(&bench, words);
        assert_ne!(refused.code(), Some(0), "{words}: {refused:?}");
        assert!(refused.errors.contains(why), "{words}: {refused:?}");
    }
    signal(child.id(), "INT");
    let done = finish(child);
    assert_eq!(done.code(), Some(130), "{done:?}");
    let said: Vec<String> = done.lines().into_iter().filter(|line| line.contains("of 3")).collect();
    assert_eq!(said.len(), 3, "output of what was added is the job's: {done:?}");
    bench.assert_clean();
}
