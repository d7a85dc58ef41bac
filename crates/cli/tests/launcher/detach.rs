// SPDX-License-Identifier: Apache-2.0
//! `isthmus run --detach` answers when all processes have begun, or with what went wrong.

use crate::bench::{Bench, Done, finish, signal};
use crate::schedulers;
use std::io::Read;
use std::process::Child;
use std::time::{Duration, Instant};

fn await_true(what: &str, mut is_true: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what} does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn ask(bench: &Bench, line: &str) -> Done {
    finish(bench.command(line).spawn().unwrap())
}

/// The only job of a bench, once it is there.
fn job(bench: &Bench) -> String {
    let sessions = bench.root.join("cache/isthmus/sessions");
    let mut name = None;
    await_true("a job", || {
        let mut entries = std::fs::read_dir(&sessions).into_iter().flatten().flatten();
        name = entries.next().map(|entry| entry.file_name().into_string().unwrap());
        name.is_some()
    });
    name.unwrap()
}

/// Starts a job that waits for a site, and gives its command when the site is asked.
fn starting(bench: &Bench) -> Child {
    let child = bench
        .command("run --detach --site home:1 --site silent:1 sleep 1000")
        .spawn()
        .unwrap();
    // Both commands, the process and the client of the silent site: the launcher hears signals by then.
    bench.await_processes("sleep 1000", 4);
    child
}

#[test]
fn what_cannot_begin_is_an_error_of_the_command() {
    let bench = Bench::new("detach-refused");
    bench.write("work/broken", "#!/no/such/interpreter\n", 0o755);
    bench.write(
        "work/fails",
        "#!/bin/sh\necho result; echo trouble >&2; exit 5\n",
        0o755,
    );
    for (line, status, why) in [
        ("--site unknown:1 true", 1, "check the name 'unknown'"),
        ("--site denied:1 true", 1, "Permission denied"),
        ("--site stranger:1 true", 1, "the key of the host is not known here"),
        ("-n 1 ./nothing", 1, "nothing"),
        ("--site home:1 --site refused:1 sleep 1000", 1, "site 'refused': "),
        ("--site lab:1 --no-stage /no/such/program", 1, "/no/such/program"),
        ("-n 1 ./broken", 127, "exited with status 127"),
        (
            "-n 1 ./fails",
            5,
            "trouble\nisthmus: error: rank 0 (site 'home') exited with status 5",
        ),
        ("-n 1 ./fails", 5, "what its processes have printed: isthmus logs "),
    ] {
        let done = bench.run(&format!("run --detach {line}"));
        assert_eq!((done.code(), done.output.len()), (Some(status), 0), "{line}: {done:?}");
        assert!(done.errors.contains(why), "{line}: {}", done.errors);
        let told = done.errors.matches("isthmus: error: rank 0 ").count()
            + done.errors.matches("isthmus: error: site").count();
        assert!(told <= 1, "{line}: {}", done.errors);
    }
}

#[test]
fn a_job_whose_start_failed_says_why_afterwards_as_well() {
    let bench = Bench::new("detach-after");
    let done = bench.run("run --detach --site home:1 --site refused:1 sleep 1000");
    assert_eq!(done.code(), Some(1), "{done:?}");
    let name = job(&bench);
    let attached = ask(&bench, &format!("attach {name}"));
    assert_eq!(attached.code(), Some(1), "{attached:?}");
    assert!(attached.errors.contains("site 'refused': "), "{attached:?}");
}

#[test]
fn a_job_that_ends_at_once_has_begun() {
    let bench = Bench::new("detach-short");
    for program in ["true".to_owned(), format!("{} finish", Bench::fake())] {
        let done = bench.run(&format!("run --detach -n 1 {program}"));
        assert_eq!((done.code(), done.output.len()), (Some(0), 9), "{done:?}");
        assert_eq!(done.errors, "", "{program}");
    }
}

#[test]
fn a_site_that_the_job_goes_on_without_is_told_of() {
    let bench = Bench::new("detach-dropped");
    let done = ask(
        &bench,
        "run --detach --site home:1 --site refused:1,need=optional sleep 1000",
    );
    assert_eq!((done.code(), done.output.len()), (Some(0), 9), "{done:?}");
    assert!(done.errors.contains("the job goes on without it"), "{}", done.errors);
    let name = String::from_utf8(done.output).unwrap();
    assert_eq!(ask(&bench, &format!("kill {}", name.trim())).code(), Some(0));
    bench.assert_clean();
}

#[test]
fn a_command_that_is_ended_while_it_starts_leaves_no_job() {
    for (name, status) in [("INT", Some(130)), ("TERM", None), ("KILL", None)] {
        let bench = Bench::new(&format!("detach-{name}"));
        let child = starting(&bench);
        let launcher = job(&bench);
        match name {
            // A terminal sends it to both.
            "INT" => {
                let about =
                    std::fs::read_to_string(bench.root.join(format!("cache/isthmus/sessions/{launcher}/about")));
                let about: serde_json::Value = serde_json::from_str(&about.unwrap()).unwrap();
                signal(child.id(), name);
                signal(u32::try_from(about["pid"].as_u64().unwrap()).unwrap(), name);
            }
            _ => signal(child.id(), name),
        }
        let done = finish(child);
        assert_eq!((done.code(), done.output.len()), (status, 0), "{done:?}");
        bench.assert_clean();
        let ended = ask(&bench, &format!("attach {launcher}"));
        assert_ne!(ended.code(), Some(0), "{ended:?}");
        assert!(ended.errors.contains("interrupted"), "{ended:?}");
    }
}

#[test]
fn a_launcher_that_dies_before_it_answers_is_told_of() {
    let bench = Bench::new("detach-dies");
    let child = starting(&bench);
    let about = bench.root.join(format!("cache/isthmus/sessions/{}/about", job(&bench)));
    let about: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(about).unwrap()).unwrap();
    signal(u32::try_from(about["pid"].as_u64().unwrap()).unwrap(), "KILL");
    let done = finish(child);
    assert_eq!((done.code(), done.output.len()), (Some(1), 0), "{done:?}");
    assert!(
        done.errors
            .contains("its launcher ended before the processes had started (signal: 9 (SIGKILL))"),
        "{}",
        done.errors
    );
}

#[test]
fn it_returns_when_schedulers_have_accepted_the_job() {
    let bench = schedulers::bench("detach-queued");
    bench.write("hold", "", 0o644);
    let line = "run --detach --site home:1 --site lab=home:3,scheduler=slurm sleep 1000";
    let done = finish(schedulers::command(&bench, line).spawn().unwrap());
    assert_eq!((done.code(), done.output.len()), (Some(0), 9), "{done:?}");
    assert!(
        done.errors.contains("site 'lab': queued as Slurm job 17"),
        "{}",
        done.errors
    );
    let name = String::from_utf8(done.output).unwrap().trim().to_owned();
    std::fs::remove_file(bench.root.join("hold")).unwrap();
    bench.await_processes("sleep 1000", 4);
    assert_eq!(ask(&bench, &format!("kill {name}")).code(), Some(0));
    schedulers::assert_over(&bench);

    let line = "run --detach --site lab=home:3,scheduler=slurm,queue=nowhere sleep 1000";
    let done = finish(schedulers::command(&bench, line).spawn().unwrap());
    assert_eq!((done.code(), done.output.len()), (Some(1), 0), "{done:?}");
    assert!(done.errors.contains("invalid partition"), "{}", done.errors);
}

#[test]
fn nothing_of_the_job_holds_the_streams_of_the_command() {
    let bench = Bench::new("detach-streams");
    let mut child = bench
        .command("run --detach --site home:1 --site lab:1 sleep 1000")
        .spawn()
        .unwrap();
    let mut name = String::new();
    child.stdout.take().unwrap().read_to_string(&mut name).unwrap();
    let done = finish(child);
    assert_eq!((done.code(), done.errors.as_str()), (Some(0), ""));
    assert_eq!(ask(&bench, &format!("kill {}", name.trim())).code(), Some(0));
    bench.assert_clean();
}
