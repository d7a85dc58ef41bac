// SPDX-License-Identifier: Apache-2.0
//! Worlds that are put together by hand.

use crate::bench::{Bench, Done, finish, signal};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

fn part(bench: &Bench, which: &str, sites: &str, what: &str) -> Child {
    let line = format!("run --world ocean={which} {sites} {} {what}", Bench::fake());
    bench.command(&line).spawn().unwrap()
}

/// The ticket of those that wait, once they do.
fn ticket(bench: &Bench) -> PathBuf {
    let path = bench.root.join("cache/isthmus/tickets/ocean");
    let began = Instant::now();
    while std::fs::read_to_string(&path).map_or(true, |text| !text.ends_with('\n')) {
        assert!(began.elapsed() < Duration::from_secs(30), "nobody waits");
        std::thread::sleep(Duration::from_millis(10));
    }
    path
}

/// Waits until a part has said this.
fn await_words(child: &mut Child, words: &str) -> String {
    let mut said = String::new();
    let errors = child.stderr.as_mut().unwrap();
    let mut byte = [0];
    while !said.contains(words) {
        assert_eq!(errors.read(&mut byte).unwrap(), 1, "it has only said: {said}");
        said.push(char::from(byte[0]));
    }
    said
}

fn check_all(parts: Vec<Child>, code: i32, words: &str) -> Vec<Done> {
    let all: Vec<Done> = parts.into_iter().map(finish).collect();
    for done in &all {
        assert_eq!(done.code(), Some(code), "{done:?}");
        assert!(done.errors.contains(words), "{done:?}");
    }
    all
}

#[test]
fn parts_that_start_in_any_order_are_one_world_and_each_prints_its_own() {
    let bench = Bench::new("gather");
    for order in [[2, 3, 1], [1, 2, 3], [3, 1, 2]] {
        let sites = |number: usize| ["", "-n 2", "--site home:1 --site lab:2", "-n 1"][number];
        let parts = order.map(|number| (number, part(&bench, &format!("{number}of3"), sites(number), "finish")));
        for (number, child) in parts {
            let done = finish(child);
            assert_eq!(done.code(), Some(0), "part {number} in {order:?}: {done:?}");
            let ranks = [0..0, 0..2, 2..5, 5..6][number].clone();
            let wanted: Vec<String> = ranks.map(|rank| format!("rank {rank} of 6 certificate ")).collect();
            let lines = done.lines();
            assert_eq!(lines.len(), wanted.len(), "{done:?}");
            let mut both = lines.iter().zip(&wanted);
            assert!(both.all(|(line, start)| line.starts_with(start)), "{done:?}");
        }
    }
    bench.assert_clean();
}

#[test]
fn a_ticket_leads_to_those_that_wait_and_says_nothing_in_arguments() {
    let bench = Bench::new("ticket");
    let mut first = part(&bench, "1of2", "-n 1", "finish");
    let ticket = ticket(&bench);
    await_words(&mut first, "waits for part 2");
    let listed = bench.run_beside("names");
    let secret = std::fs::read_to_string(&ticket).unwrap();
    assert!(listed.contains("ocean") && listed.contains("world"), "{listed}");
    assert!(!listed.contains(secret.trim()), "{listed}");
    // The copy that another machine would have; there is no directory of worlds in common.
    let copy = bench.write("work/ocean.ticket", &secret, 0o644);
    let join = |bench: &Bench| {
        let line = format!("join ocean.ticket -n 2 {}", Bench::fake());
        let mut command = bench.command(&line);
        command.env("XDG_CACHE_HOME", bench.root.join("elsewhere"));
        command.spawn().unwrap()
    };
    let refused = finish(join(&bench));
    assert_eq!(refused.code(), Some(2), "{refused:?}");
    assert!(refused.errors.contains("chmod 600"), "{refused:?}");
    bench.write("work/ocean.ticket", &secret, 0o600);
    let second = finish(join(&bench));
    assert_eq!(second.code(), Some(0), "{second:?}");
    assert_eq!(second.lines().len(), 2, "{second:?}");
    assert_eq!(finish(first).code(), Some(0));
    assert!(!ticket.exists());
    // It is worth nothing any more.
    bench.write(copy.to_str().unwrap(), &secret, 0o600);
    let late = finish(join(&bench));
    assert_eq!(late.code(), Some(1), "{late:?}");
    assert!(late.errors.contains("are not reached"), "{late:?}");
    bench.assert_clean();
}

#[test]
fn a_part_that_ends_wrongly_or_is_interrupted_ends_all() {
    let bench = Bench::new("gatherend");
    // The last rank, in part 2; whichever part coordinates.
    for order in [["1of2", "2of2"], ["2of2", "1of2"]] {
        let parts = order.map(|which| part(&bench, which, "-n 2", "exit 7 3")).into();
        check_all(parts, 7, "exited with status 7");
        for interrupted in 0..2 {
            let parts: Vec<Child> = order.map(|which| part(&bench, which, "-n 2", "hang")).into();
            bench.await_processes("fake_process hang", 6);
            signal(parts[interrupted].id(), "INT");
            // Everybody reads which part it was.
            let words = format!("part {} on ", &order[interrupted][..1]);
            for done in check_all(parts, 130, " was interrupted") {
                assert!(done.errors.contains(&words), "{done:?}");
            }
        }
    }
    bench.assert_clean();
}

#[test]
fn what_a_lost_launcher_has_started_ends_and_the_others_hear_why() {
    let bench = Bench::new("gatherlost");
    for lost in 0..2 {
        let mut parts: Vec<Child> = Vec::new();
        for which in ["1of2", "2of2"] {
            parts.push(part(&bench, which, "-n 2", "hang"));
            ticket(&bench);
            if parts.len() == 1 {
                await_words(&mut parts[0], "waits for");
            }
        }
        bench.await_processes("fake_process hang", 6);
        signal(parts[lost].id(), "KILL");
        finish(parts.remove(lost));
        check_all(parts, 1, "is gone");
        bench.assert_clean();
    }
}

#[test]
fn a_part_may_leave_before_the_world_is_complete() {
    let bench = Bench::new("gatherleave");
    let mut first = part(&bench, "1of3", "-n 1", "finish");
    await_words(&mut first, "waits for parts 2 and 3");
    let second = part(&bench, "2of3", "-n 1", "finish");
    await_words(&mut first, "part 2 is there");
    let again = finish(part(&bench, "2of3", "-n 1", "finish"));
    assert_eq!(again.code(), Some(1), "{again:?}");
    assert!(
        again.errors.contains("part 2 of the world 'ocean' is there already")
            && again.errors.contains("it waits for part 3"),
        "{again:?}"
    );
    let other = finish(part(&bench, "2of4", "-n 1", "finish"));
    assert!(
        other.errors.contains("has 3 parts, not 4: write --world ocean=PARTof3"),
        "{other:?}"
    );
    signal(second.id(), "INT");
    assert_eq!(finish(second).code(), Some(130));
    await_words(&mut first, "has left; waiting for parts 2 and 3");
    let second = part(&bench, "2of3", "-n 1", "finish");
    await_words(&mut first, "part 2 is there");
    signal(first.id(), "INT");
    assert_eq!(finish(first).code(), Some(130));
    let second = finish(second);
    assert_eq!(second.code(), Some(1), "{second:?}");
    assert!(second.errors.contains("was interrupted"), "{second:?}");
    bench.assert_clean();
}

/// What is at the door of a part that waits, and where.
fn door(path: &PathBuf) -> (isthmus_wire::port::PortName, Vec<std::net::SocketAddr>) {
    let text = std::fs::read_to_string(path).unwrap();
    let name = isthmus_wire::port::PortName::decode(text.trim()).unwrap();
    let addresses = name.addresses.iter().map(|a| (*a, name.port).into()).collect();
    (name, addresses)
}

#[test]
fn strangers_are_sent_away_and_hold_nobody_up() {
    let bench = Bench::new("gatherstrangers");
    let mut first = part(&bench, "1of2", "-n 1", "finish");
    let ticket = ticket(&bench);
    await_words(&mut first, "waits for part 2");
    let (mut name, addresses) = door(&ticket);
    // Silence and nonsense, more than there are places.
    let mut crowd: Vec<TcpStream> = Vec::new();
    for number in 0..300 {
        let mut stream = TcpStream::connect(addresses[0]).unwrap();
        if number % 2 == 0 {
            let _ = stream.write_all(&[b'x'; 600]);
        }
        crowd.push(stream);
    }
    // A ticket with another secret: the right certificate, and no admission.
    name.secret[0] ^= 1;
    bench.write("work/wrong.ticket", format!("{}\n", name.encode()), 0o600);
    let line = format!("join wrong.ticket -n 1 {}", Bench::fake());
    let wrong = finish(bench.command(&line).spawn().unwrap());
    assert_eq!(wrong.code(), Some(1), "{wrong:?}");
    assert!(wrong.errors.contains("the ticket is not for this world"), "{wrong:?}");
    // A ticket with another certificate: whoever answers is not believed.
    name.secret[0] ^= 1;
    name.fingerprint[0] ^= 1;
    bench.write("work/wrong.ticket", format!("{}\n", name.encode()), 0o600);
    let wrong = finish(bench.command(&line).spawn().unwrap());
    assert!(wrong.errors.contains("are not reached"), "{wrong:?}");
    let second = finish(part(&bench, "2of2", "-n 1", "finish"));
    assert_eq!(second.code(), Some(0), "{second:?}");
    drop(crowd);
    assert_eq!(finish(first).code(), Some(0));
    bench.assert_clean();
}

/// Starts a part in the background; the name of its job.
fn in_background(bench: &Bench, which: &str, what: &str) -> String {
    let line = format!("run --detach --world ocean={which} -n 1 {} {what}", Bench::fake());
    let done = finish(bench.command(&line).spawn().unwrap());
    assert_eq!(done.code(), Some(0), "{done:?}");
    String::from_utf8(done.output).unwrap().trim().to_owned()
}

#[test]
fn parts_in_the_background_answer_while_they_wait_and_keep_what_they_print() {
    let bench = Bench::new("gatherdetach");
    let ask = |line: &str| finish(bench.command(line).spawn().unwrap());
    // It is seen, and ended, before others have come.
    let first = in_background(&bench, "1of2", "finish");
    let listed = String::from_utf8(ask("ps --long").output).unwrap();
    assert!(listed.contains(&first) && listed.contains("waiting"), "{listed}");
    assert_eq!(ask(&format!("kill {first}")).code(), Some(0));
    let attached = ask(&format!("attach {first}"));
    assert_eq!(attached.code(), Some(143), "{attached:?}");
    assert!(attached.errors.contains("this part was interrupted"), "{attached:?}");
    bench.assert_clean();
    // So is one that has joined, and one whose first part leaves.
    let (first, left) = (
        in_background(&bench, "1of3", "finish"),
        in_background(&bench, "2of3", "finish"),
    );
    assert_eq!(ask(&format!("kill {left}")).code(), Some(0));
    let second = in_background(&bench, "3of3", "finish");
    assert_eq!(ask(&format!("kill {first}")).code(), Some(0));
    for (part, code, why) in [
        (left, 143, "this part was interrupted"),
        (first, 143, "this part was interrupted"),
        (second, 1, "was interrupted"),
    ] {
        let attached = ask(&format!("attach {part}"));
        assert_eq!(attached.code(), Some(code), "{attached:?}");
        assert!(attached.errors.contains(why), "{attached:?}");
    }
    bench.assert_clean();
    // One command after the other, and no terminal.
    let parts = ["2of2", "1of2"].map(|which| in_background(&bench, which, "finish"));
    for (part, rank) in parts.iter().zip([1, 0]) {
        let attached = ask(&format!("attach {part}"));
        assert_eq!(attached.code(), Some(0), "{attached:?}");
        let logs = ask(&format!("logs {part}"));
        let wanted = format!("rank {rank} of 2 ");
        assert!(logs.lines().iter().all(|line| line.starts_with(&wanted)), "{logs:?}");
        assert_eq!(logs.lines().len(), 1, "{logs:?}");
    }
    // Whichever part is ended, all end.
    for ended in [0, 1] {
        let parts = ["2of2", "1of2"].map(|which| in_background(&bench, which, "hang"));
        bench.await_processes("fake_process hang", 2);
        assert_eq!(ask(&format!("kill {}", parts[ended])).code(), Some(0));
        parts.iter().for_each(|part| drop(ask(&format!("attach {part}"))));
        bench.assert_clean();
    }
}

#[test]
fn what_parts_cannot_have_is_refused_by_name() {
    let bench = Bench::new("gatherrefusals");
    for (line, why) in [
        ("run --world ocean -n 1", "it does not say which part this is"),
        ("run --world ocean=3of2 -n 1", "there is no part 3 of 2"),
        (
            "run --world ocean=1of2 --detach --at lab -n 1",
            "cannot be used together",
        ),
        (
            "join - --detach -n 1",
            "a ticket that is typed cannot be read in the background",
        ),
        (
            "run --detach --world ocean=1of2 --trace nowhere/trace -n 1",
            "--trace: cannot write 'nowhere/trace'",
        ),
        (
            "run --world ocean=1of2 --meet a-name-that-is-far-too-long-for-what-processes-tell-each-other.example.org -n 1",
            "it has to be an ssh destination of at most 63 letters",
        ),
        (
            "run --world ocean=1of2 --site home:1,mpi",
            "cannot run on the machine's own MPI",
        ),
        ("join nowhere.ticket -n 1", "'nowhere.ticket' is not a ticket"),
    ] {
        let done = bench.run(&format!("{line} {}", Bench::fake()));
        assert_ne!(done.code(), Some(0), "{line}: {done:?}");
        assert!(done.errors.contains(why), "{line}: {done:?}");
    }
}
