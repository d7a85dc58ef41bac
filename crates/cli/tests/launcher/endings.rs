// SPDX-License-Identifier: Apache-2.0
//! Jobs that end badly: the first failure is named and is the status, and everything is gone soon after.

use crate::bench::{Bench, finish, signal};

const SITES: &str = "run --site home:2 --site lab:2";

fn ends(bench: &Bench, what: &str, status: i32, part: &str) {
    let done = bench.run(&format!("{SITES} {} {what}", Bench::fake()));
    assert_eq!(done.code(), Some(status), "{what}: {done:?}");
    assert_eq!(done.errors.matches("error:").count(), 1, "{}", done.errors);
    assert!(done.errors.contains(part), "{what}: {}", done.errors);
}

#[test]
fn by_a_rank() {
    let bench = Bench::new("rank");
    ends(&bench, "exit 3 2", 3, "rank 2 (site 'lab') exited with status 3");
    ends(
        &bench,
        "exit 0 1",
        1,
        "rank 1 (site 'home') exited with status 0 without calling MPI_Finalize",
    );
    ends(
        &bench,
        "crash 0 3",
        134,
        "rank 3 (site 'lab') was killed by signal 6 (SIGABRT)",
    );
    ends(&bench, "abort 42 1", 42, "the program wants to");
    let done = bench.run(&format!("run -n 1 {} after 5", Bench::fake()));
    assert_eq!(done.code(), Some(5), "{done:?}");
}

#[test]
fn by_the_last_words_of_a_rank() {
    let bench = Bench::new("words");
    bench.write(
        "work/die",
        "#!/bin/sh\necho 'why I die' >&2\nprintf 'unfinished'\nexit 9\n",
        0o755,
    );
    let done = bench.run("run -n 1 ./die");
    assert_eq!(
        (done.code(), done.output.as_slice()),
        (Some(9), b"unfinished".as_slice())
    );
    assert!(done.errors.starts_with("why I die\n"), "{}", done.errors);
}

#[test]
fn by_a_killed_rank() {
    let bench = Bench::new("killed");
    let child = bench
        .command(&format!("{SITES} {} hang", Bench::fake()))
        .spawn()
        .unwrap();
    let ranks = bench.await_processes("fake_process hang", 5);
    let rank = ranks.into_iter().find(|pid| *pid != child.id() as i32).unwrap();
    signal(rank as u32, "KILL");
    let done = finish(child);
    assert_eq!(done.code(), Some(137), "{done:?}");
    assert!(
        done.errors.contains("was killed by signal 9 (SIGKILL)"),
        "{}",
        done.errors
    );
    bench.assert_clean();
}

#[test]
fn by_one_interrupt() {
    let bench = Bench::new("interrupt");
    let child = bench
        .command(&format!("{SITES} {} hang", Bench::fake()))
        .spawn()
        .unwrap();
    bench.await_processes("fake_process hang", 5);
    signal(child.id(), "INT");
    let done = finish(child);
    assert_eq!(done.code(), Some(130), "{done:?}");
    bench.assert_clean();
}

#[test]
fn by_an_interrupt_that_the_program_may_answer() {
    let bench = Bench::new("orderly");
    bench.write(
        "work/nice",
        "#!/bin/sh\ntrap 'echo tidy; exit 0' INT\necho ready\nwhile :; do sleep 0.05; done\n",
        0o755,
    );
    let child = bench.command("run -n 2 ./nice").spawn().unwrap();
    bench.await_processes("sleep 0.05", 2);
    signal(child.id(), "INT");
    let done = finish(child);
    assert_eq!(done.code(), Some(130), "{done:?}");
    assert_eq!(done.lines(), ["ready", "ready", "tidy", "tidy"]);
    bench.assert_clean();
}

#[test]
fn by_two_interrupts_whatever_the_program_does() {
    let bench = Bench::new("twice");
    bench.write(
        "work/deaf",
        "#!/bin/sh\ntrap '' TERM INT HUP\nwhile :; do sleep 1000; done\n",
        0o755,
    );
    let child = bench.command("run --site home:2 --site lab:2 ./deaf").spawn().unwrap();
    bench.await_processes("sleep 1000", 4);
    signal(child.id(), "INT");
    std::thread::sleep(std::time::Duration::from_millis(50));
    signal(child.id(), "INT");
    let done = finish(child);
    assert_eq!(done.code(), Some(130), "{done:?}");
    bench.assert_clean();
}

#[test]
fn by_an_interrupt_while_a_site_is_being_reached() {
    let bench = Bench::new("reaching");
    let child = bench
        .command("run --site home:1 --site silent:1 sleep 1000")
        .spawn()
        .unwrap();
    bench.await_processes("sleep 1000", 2);
    signal(child.id(), "TERM");
    let done = finish(child);
    assert_eq!(done.code(), Some(143), "{done:?}");
    bench.assert_clean();
}

#[test]
fn by_a_killed_coordinator() {
    let bench = Bench::new("coordinator");
    bench.write(
        "work/deaf",
        "#!/bin/sh\ntrap '' TERM INT HUP\nwhile :; do sleep 1000; done\n",
        0o755,
    );
    for program in ["./deaf".to_owned(), format!("{} hang", Bench::fake())] {
        let mut command = bench.command(&format!("{SITES} {program}"));
        // Processes that have begun wait for another launcher for so long.
        let child = command.env("ISTHMUS_AWAY", "1").spawn().unwrap();
        bench.await_processes(
            if program == "./deaf" {
                "sleep 1000"
            } else {
                "fake_process hang"
            },
            4,
        );
        signal(child.id(), "KILL");
        finish(child);
        bench.assert_clean();
    }
}

#[test]
fn by_a_killed_agent() {
    let bench = Bench::new("agent");
    let child = bench
        .command(&format!("run -n 2 {} hang", Bench::fake()))
        .spawn()
        .unwrap();
    bench.await_processes("fake_process hang", 3);
    let agent = bench.await_processes("isthmus agent", 1);
    signal(agent[0] as u32, "KILL");
    let done = finish(child);
    assert_eq!(done.code(), Some(1), "{done:?}");
    assert!(done.errors.contains("site 'home': its agent ended"), "{}", done.errors);
}

#[test]
fn by_a_reader_that_has_read_enough() {
    let bench = Bench::new("reader");
    let mut child = bench.command("run -n 2 yes").spawn().unwrap();
    let mut first = [0; 2];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    drop(child.stdout.take());
    let done = finish(child);
    assert_eq!(done.code(), Some(141), "{done:?}");
    bench.assert_clean();
}

#[test]
fn with_everything_that_the_program_started() {
    let bench = Bench::new("strays");
    bench.write(
        "work/stray",
        "#!/bin/sh\nsleep 1000 &\nsetsid sleep 1000 &\nsleep 0.2\nexit 0\n",
        0o755,
    );
    let done = bench.run("run -n 2 ./stray");
    assert_eq!(done.code(), Some(0), "{done:?}");
}
