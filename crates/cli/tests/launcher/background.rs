// SPDX-License-Identifier: Apache-2.0
//! Jobs without a terminal: started so, or left by theirs; and the commands that look after them.

use crate::bench::{Bench, Done, finish, signal};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

/// Runs a command that concerns a job; unlike `Bench::run` the job may go on.
fn ask(bench: &Bench, line: &str) -> Done {
    finish(bench.command(line).spawn().unwrap())
}

fn detach(bench: &Bench, line: &str) -> String {
    let done = ask(bench, &format!("run --detach {line}"));
    assert_eq!(done.code(), Some(0), "{done:?}");
    let name = String::from_utf8(done.output).unwrap().trim().to_owned();
    assert!(name.len() == 8, "{name}");
    name
}

/// What it printed, which is one value.
fn value(done: &Done) -> serde_json::Value {
    serde_json::from_slice(&done.output).unwrap()
}

fn await_true(what: &str, mut is_true: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what} does not come");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn whoever_follows_a_silent_job_goes_with_its_reader() {
    let bench = Bench::new("unread");
    bench.write(
        "work/wait",
        "#!/bin/sh\necho begun; while ! test -e \"$1\"; do sleep 0.05; done\n",
        0o755,
    );
    let go = bench.root.join("go");
    let name = detach(&bench, &format!("-n 1 ./wait {}", go.display()));
    for line in [
        format!("logs --follow {name}"),
        format!("attach {name}"),
        // What is passed on from another site.
        format!("logs --follow home/{name}"),
        format!("attach home/{name}"),
        format!("where --watch --interval 3000 {name}"),
        format!("where --watch --interval 3000 home/{name}"),
    ] {
        let mut follower = bench.command(&line).spawn().unwrap();
        let mut output = follower.stdout.take().unwrap();
        let mut begun = [0; 6];
        output.read_exact(&mut begun).unwrap();
        let expected = if line.starts_with("where") { b"job " } else { b"begu" };
        assert_eq!(&begun[..4], expected, "{line}");
        assert!(follower.try_wait().unwrap().is_none(), "{line}: it follows");
        drop(output);
        await_true(&format!("the end of {line}"), || follower.try_wait().unwrap().is_some());
        // The status of the job, which attach would give, is not known.
        let status = if line.starts_with("attach") { 141 } else { 0 };
        assert_eq!(follower.wait().unwrap().code(), Some(status), "{line}");
    }
    // It prints nothing before the first interval is over.
    let mut top = bench
        .command(&format!("top --json --interval 3000 {name}"))
        .spawn()
        .unwrap();
    drop(top.stdout.take());
    await_true("the end of top", || top.try_wait().unwrap().is_some());
    std::fs::write(&go, "").unwrap();
    assert_eq!(ask(&bench, &format!("attach {name}")).code(), Some(0));
}

#[test]
fn a_job_in_the_background_is_followed_to_its_end() {
    let bench = Bench::new("attach");
    bench.write(
        "work/wait",
        "#!/bin/sh\necho begun; echo trouble >&2; while ! test -e \"$1\"; do sleep 0.05; done; echo going; exit 5\n",
        0o755,
    );
    let go = bench.root.join("go");
    let name = detach(&bench, &format!("-n 1 ./wait {}", go.display()));
    let session = bench.root.join("cache/isthmus/sessions").join(&name);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&session), mode(&session.join("socket"))), (0o700, 0o600));
    let listed = ask(&bench, "ps --long");
    let listed = String::from_utf8(listed.output).unwrap();
    assert!(
        listed.contains(&name) && listed.contains("./wait") && listed.contains("home"),
        "{listed}"
    );
    let json = ask(&bench, "ps --json");
    let json: serde_json::Value = serde_json::from_slice(&json.output).unwrap();
    assert_eq!(
        (json["jobs"][0]["job"].as_str(), json["jobs"][0]["processes"].as_u64()),
        (Some(name.as_str()), Some(1))
    );
    let attached = bench.command(&format!("attach {}", &name[..4])).spawn().unwrap();
    await_true("the first line", || {
        ask(&bench, &format!("logs {name}")).output == b"begun\n"
    });
    std::fs::write(go, "").unwrap();
    let done = finish(attached);
    assert_eq!(
        (done.code(), done.output.as_slice()),
        (Some(5), b"begun\ngoing\n".as_slice()),
        "{done:?}"
    );
    assert!(
        done.errors.starts_with("trouble\n") && done.errors.contains("error: rank 0"),
        "{}",
        done.errors
    );
    bench.assert_clean();
    let listed = ask(&bench, "ps");
    assert!(String::from_utf8(listed.output).unwrap().contains("ended (5)"));
    let events = ask(&bench, &format!("logs --events {name}"));
    assert!(String::from_utf8(events.output).unwrap().contains("\"status\":5"));
}

#[test]
fn a_job_in_the_background_gets_signals_and_is_ended() {
    let bench = Bench::new("kill");
    bench.write(
        "work/answer",
        "#!/bin/sh\ntrap 'echo answered' USR1\necho ready\nwhile :; do sleep 0.05; done\n",
        0o755,
    );
    let name = detach(&bench, "--site home:1 --site lab:1 ./answer");
    await_true("ready", || {
        ask(&bench, &format!("logs {name}")).lines() == ["ready", "ready"]
    });
    let signalled = ask(&bench, &format!("signal --json {name} USR1"));
    assert_eq!(
        (signalled.code(), value(&signalled)["signal"].as_u64()),
        (Some(0), Some(10))
    );
    assert_eq!(ask(&bench, &format!("signal {name} NONE")).code(), Some(1));
    await_true("answers", || {
        ask(&bench, &format!("logs {name}"))
            .lines()
            .iter()
            .filter(|l| *l == "answered")
            .count()
            == 2
    });
    let ended = ask(&bench, &format!("kill --json {name}"));
    assert_eq!((ended.code(), value(&ended)["status"].as_i64()), (Some(0), Some(143)));
    bench.assert_clean();
    let done = ask(&bench, &format!("attach {name}"));
    assert_eq!(done.code(), Some(143), "{done:?}");
    assert_eq!(ask(&bench, "attach nosuch").code(), Some(2));
}

#[test]
fn a_line_of_a_list_is_one_line() {
    let bench = Bench::new("lines");
    let mut command = bench.command("run --detach -n 1 sh -c");
    let started = finish(command.arg("sleep 60\n#JOB\tx").spawn().unwrap());
    assert_eq!(started.code(), Some(0), "{started:?}");
    let listed = bench.run_beside("ps");
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(listed.contains(r"sh -c sleep 60\n#JOB\tx"), "{listed}");
    let job = listed.lines().nth(1).unwrap()[..8].to_owned();
    assert_eq!(ask(&bench, &format!("kill {job}")).code(), Some(0));
    bench.assert_clean();
}

#[test]
fn a_job_has_the_name_that_its_owner_gives_it() {
    let bench = Bench::new("names");
    let wait = "#!/bin/sh\nwhile ! test -e go; do sleep 0.05; done\n";
    bench.write("work/wait", wait, 0o755);
    let identifier = detach(&bench, "--name climate-7 -n 1 ./wait");
    for (line, why) in [
        ("run --detach --name climate-7 -n 1 ./wait", "runs here already"),
        ("run --name climate-7 -n 1 ./wait", "runs here already"),
        ("run --name lab/x -n 1 ./wait", "contains '/'"),
        ("run --name deadbeef -n 1 ./wait", "identifier"),
    ] {
        let done = ask(&bench, line);
        assert_ne!(done.code(), Some(0), "{line}");
        assert!(done.errors.contains(why), "{line}: {}", done.errors);
    }
    let job = |done: &Done| value(done)["jobs"][0].clone();
    let listed = job(&ask(&bench, "ps --json"));
    assert_eq!(
        (listed["job"].as_str(), listed["name"].as_str()),
        (Some(&*identifier), Some("climate-7"))
    );
    let listed = String::from_utf8(ask(&bench, "ps").output).unwrap();
    assert!(listed.contains(&format!("{identifier}  climate-7")), "{listed}");
    let signalled = ask(&bench, "signal --json climate-7 URG");
    assert_eq!(value(&signalled)["job"].as_str(), Some(&*identifier), "{signalled:?}");
    std::fs::write(bench.root.join("work/go"), "").unwrap();
    assert_eq!(ask(&bench, "attach clim").code(), Some(0));
    // The name is free again, and means the job that runs now.
    let file = "name = \"climate-7\"\nprogram = \"./wait\"\n[[subjob]]\nsite = \"home\"\n[[subjob]]\nsite = \"b\"\ncontact = \"home\"\n";
    bench.write("work/job.toml", file, 0o644);
    std::fs::remove_file(bench.root.join("work/go")).unwrap();
    let second = detach(&bench, "job.toml");
    let signalled = ask(&bench, "signal --json climate-7 URG");
    assert_eq!(value(&signalled)["job"].as_str(), Some(&*second));
    std::fs::write(bench.root.join("work/go"), "").unwrap();
    assert_eq!(ask(&bench, "attach climate-7").code(), Some(0));
    let report = String::from_utf8(ask(&bench, "report climate-7").output).unwrap();
    assert!(
        report.starts_with(&format!("job {second} (climate-7): ended well")),
        "{report}"
    );
}

#[test]
fn mistakes_are_told_before_the_background() {
    let bench = Bench::new("refused-detach");
    let done = bench.run("run --detach --site home:0 true");
    assert_eq!((done.code(), done.output.len()), (Some(2), 0), "{done:?}");
    assert!(done.errors.contains("asked for 0 processes"), "{}", done.errors);
}

#[test]
fn all_commands_say_alike_that_there_is_no_such_job() {
    let bench = Bench::new("no-job");
    let commands = [
        "attach",
        "logs",
        "kill",
        "where",
        "where --json",
        "top",
        "top --once",
        "top --prometheus",
    ];
    for command in commands {
        let (name, options) = command.split_once(' ').unwrap_or((command, ""));
        let done = bench.run(format!("{name} nosuch {options}").trim_end());
        assert_eq!((done.code(), done.output.len()), (Some(2), 0), "{command}: {done:?}");
        let said = "isthmus: error: there is no job 'nosuch'\n  hint: isthmus ps lists them\n";
        assert_eq!(done.errors, said, "{command}");
    }
    // A record may be there when the job is not listed any more.
    let commands = [
        "report nosuch",
        "report --json nosuch",
        "top --serve 0 nosuch",
        "explain bcast 8KiB --job nosuch",
        "simulate bcast 8KiB --job nosuch",
    ];
    for command in commands {
        let done = bench.run(command);
        assert_eq!((done.code(), done.output.len()), (Some(2), 0), "{command}: {done:?}");
        let (first, hint) = done.errors.split_once('\n').unwrap();
        assert!(
            first.starts_with("isthmus: error: there is no record of job 'nosuch'"),
            "{first}"
        );
        assert_eq!(hint, "  hint: isthmus ps lists them\n", "{command}");
    }
}

#[test]
fn operations_are_simulated_for_the_sites_of_a_job() {
    let bench = Bench::new("for-job");
    let done = bench.run(&format!(
        "run --name pair --site home:2 --site lab:3 {} finish",
        Bench::fake()
    ));
    assert_eq!(done.code(), Some(0), "{done:?}");
    for command in ["explain", "simulate"] {
        let done = bench.run(&format!("{command} bcast 8KiB --job pair"));
        let text = String::from_utf8(done.output).unwrap();
        let first = text.lines().next().unwrap_or_default();
        assert!(
            first.starts_with("bcast of 8192 bytes, root 0, 5 processes on 2 sites"),
            "{command}: {text}"
        );
    }
}

#[test]
fn a_job_ends_with_its_terminal() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    if u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 == 1 {
        eprintln!(
            "skipped: whoever started this test (nohup?) has it ignore the signal that a terminal sends when it goes"
        );
        return;
    }
    let bench = Bench::new("hangup");
    bench.write("work/wait", "#!/bin/sh\necho begun; exec sleep 1000\n", 0o755);
    let mut child = bench.command("run -n 1 ./wait").spawn().unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
    signal(child.id(), "HUP");
    let sessions = bench.root.join("cache/isthmus/sessions");
    let name = std::fs::read_dir(&sessions)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .file_name();
    assert_eq!(finish(child).code(), Some(129));
    let logs = ask(&bench, &format!("logs {}", name.to_str().unwrap()));
    assert!(logs.errors.contains("the terminal was closed (SIGHUP)"), "{logs:?}");
    bench.assert_clean();
}

#[test]
fn a_coordinator_that_was_killed_leaves_nothing_listed() {
    let bench = Bench::new("stale");
    let child = bench.command("run -n 1 sleep 1000").spawn().unwrap();
    await_true("the job in the list", || ask(&bench, "ps").lines().len() == 2);
    signal(child.id(), "KILL");
    finish(child);
    bench.assert_clean();
    assert_eq!(ask(&bench, "ps").lines().len(), 0);
    assert_eq!(
        std::fs::read_dir(bench.root.join("cache/isthmus/sessions"))
            .unwrap()
            .count(),
        0
    );
}

#[test]
fn a_subjob_is_changed_before_it_begins() {
    let bench = Bench::new("edit");
    let fake = Bench::fake();
    let words = format!("run --detach --site home:1 --site silent:1 --site refused:1,need=interactive {fake}");
    let started = bench.command(&words).spawn().unwrap();
    let mut name = String::new();
    await_true("the job", || {
        let all = value(&ask(&bench, "ps --json"));
        name = all["jobs"][0]["job"].as_str().unwrap_or_default().to_owned();
        !name.is_empty()
    });
    await_true("a question", || {
        String::from_utf8(ask(&bench, &format!("logs --events {name}")).output)
            .unwrap()
            .contains("\"question\"")
    });
    assert_eq!(ask(&bench, &format!("edit {name} home dance")).code(), Some(1));
    let edited = ask(&bench, &format!("edit --json {name} refused use lab"));
    assert_eq!(
        (edited.code(), value(&edited)["contact"].as_str()),
        (Some(0), Some("lab"))
    );
    assert_eq!(ask(&bench, &format!("edit {name} silent drop")).code(), Some(0));
    let started = finish(started);
    assert_eq!((started.code(), started.output.len()), (Some(0), 9), "{started:?}");
    assert!(started.errors.contains("isthmus edit"), "{}", started.errors);
    let done = ask(&bench, &format!("attach {name}"));
    assert_eq!((done.code(), done.lines().len()), (Some(0), 2), "{done:?}");
    assert!(done.lines()[1].starts_with("rank 1 of 2"), "{done:?}");
    bench.assert_clean();
}
