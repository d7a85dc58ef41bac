// SPDX-License-Identifier: Apache-2.0
//! What commands say and take: copies as other tools spell them, ended jobs, job files and what lies beside them.

use crate::bench::{Bench, Done, finish};
use std::os::unix::fs::PermissionsExt;

fn ask(bench: &Bench, line: &str) -> Done {
    finish(bench.command(line).spawn().unwrap())
}

fn value(done: &Done) -> serde_json::Value {
    serde_json::from_slice(&done.output).unwrap()
}

#[test]
fn sites_that_are_added_at_once_are_all_kept() {
    let bench = Bench::new("sites-at-once");
    let add = |n| bench.command(&format!("sites add s{n} lab")).spawn().unwrap();
    let adding: Vec<_> = (0..4).map(add).collect();
    for child in adding {
        let done = finish(child);
        assert_eq!(done.code(), Some(0), "{done:?}");
    }
    let listed = value(&ask(&bench, "sites --json"));
    assert_eq!(listed["sites"].as_array().unwrap().len(), 4, "{listed}");
}

#[test]
fn several_sources_go_into_one_directory() {
    let bench = Bench::new("cp-several");
    bench.write("work/a", "one", 0o644);
    bench.write("work/b", "two", 0o644);
    std::fs::create_dir(bench.root.join("work/back")).unwrap();
    let there = ask(&bench, "cp -r --json a b isthmus://lab/~/data");
    assert_eq!(
        (there.code(), value(&there)["files"].as_u64()),
        (Some(0), Some(2)),
        "{there:?}"
    );
    let read = |name: &str| std::fs::read_to_string(bench.root.join(name)).unwrap();
    assert_eq!(
        (read("sites/lab/data/a"), read("sites/lab/data/b")),
        ("one".to_owned(), "two".to_owned())
    );
    let back = ask(&bench, "cp isthmus://lab/~/data/a isthmus://lab/~/data/b back");
    assert_eq!(
        (back.code(), read("work/back/b")),
        (Some(0), "two".to_owned()),
        "{back:?}"
    );
    let wrong = ask(&bench, "cp a b none");
    assert_eq!(wrong.code(), Some(2), "{wrong:?}");
    assert!(
        wrong
            .errors
            .contains("there is no directory 'none' here for several sources"),
        "{wrong:?}"
    );
}

#[test]
fn names_of_scp_are_told_in_our_words() {
    let bench = Bench::new("cp-scp");
    bench.write("work/a", "one", 0o644);
    for (line, hint) in [
        ("cp lab:x .", "isthmus://lab/~/x"),
        ("cp me@lab:/data/x .", "isthmus://me@lab//data/x"),
        ("cp a lab:x", "isthmus://lab/~/x"),
        ("cp a lab:", "isthmus://lab/~/"),
    ] {
        let done = ask(&bench, line);
        let hint = hint.replace("//data", "/data");
        assert_eq!(done.code(), Some(2), "{line}: {done:?}");
        assert!(done.errors.contains(&hint), "{line}: {}", done.errors);
    }
    bench.write("work/x:y", "one", 0o644);
    assert_eq!(ask(&bench, "cp x:y copy").code(), Some(0));
    assert_eq!(ask(&bench, "cp a ./lab:x").code(), Some(0));
}

#[test]
fn lists_are_json_without_their_verb() {
    let bench = Bench::new("json-verbs");
    for (line, command) in [
        ("cache --json", "cache"),
        ("cache list --json", "cache"),
        ("sites --json", "sites list"),
    ] {
        let done = bench
            .command(line)
            .env("XDG_CONFIG_HOME", bench.root.join("config"))
            .spawn()
            .unwrap();
        let done = finish(done);
        assert_eq!(
            (done.code(), value(&done)["command"].as_str()),
            (Some(0), Some(command)),
            "{done:?}"
        );
    }
}

#[test]
fn what_was_found_at_a_site_keeps_its_type() {
    let bench = Bench::new("json-found");
    let file = "[site.lab]\n[site.lab.found]\ncores = 8\nshared_home = true\nqueues = [\"a\", \"b\"]\nhost = \"b1\"\n";
    std::fs::create_dir_all(bench.root.join("config/isthmus")).unwrap();
    bench.write("config/isthmus/sites.toml", file, 0o600);
    let list = |line: &str| {
        let command = bench
            .command(line)
            .env("XDG_CONFIG_HOME", bench.root.join("config"))
            .spawn();
        finish(command.unwrap())
    };
    let found = value(&list("sites list --json"))["sites"][0]["found"].clone();
    let wanted = serde_json::json!({ "cores": 8, "shared_home": true, "queues": ["a", "b"], "host": "b1" });
    assert_eq!(found, wanted);
    let shown = String::from_utf8(list("sites show lab").output).unwrap();
    assert!(shown.contains("queues        a, b\n"), "{shown}");
}

#[test]
fn a_job_that_has_ended_is_told_of_and_grows_no_older() {
    let bench = Bench::new("ended");
    let done = ask(&bench, "run --detach --name short -n 1 true");
    assert_eq!(done.code(), Some(0), "{done:?}");
    bench.assert_clean();
    let job = value(&ask(&bench, "ps --json"))["jobs"][0].clone();
    let time = |key: &str| job[key].as_u64().unwrap();
    assert!(
        (0..10).contains(&(time("ended_unix_seconds") - time("started_unix_seconds"))),
        "{job}"
    );
    let killed = ask(&bench, "kill short");
    assert_eq!(killed.code(), Some(1), "{killed:?}");
    assert!(killed.errors.contains("has ended already, with status 0"), "{killed:?}");
    let killed = value(&ask(&bench, "kill --json short"));
    assert_eq!(
        (killed["already"].as_bool(), killed["status"].as_i64()),
        (Some(true), Some(0))
    );
}

#[test]
fn a_program_is_looked_for_beside_its_job_file() {
    let bench = Bench::new("beside");
    std::fs::create_dir(bench.root.join("work/jobs")).unwrap();
    bench.write("work/jobs/app", "#!/bin/sh\necho beside\n", 0o755);
    bench.write("work/app", "#!/bin/sh\necho here\n", 0o755);
    bench.write("work/other", "#!/bin/sh\necho here\n", 0o755);
    let file =
        |program: &str| format!("program = \"{program}\"\n[[subjob]]\nsite = \"home\"\n[[subjob]]\nsite = \"lab\"\n");
    for (program, wanted, note) in [
        ("./app", ["beside"; 2], ""),
        ("app", ["beside"; 2], ""),
        (
            "./other",
            ["here"; 2],
            "note: program './other' is not beside 'jobs/job.toml'",
        ),
        ("../app", ["here"; 2], ""),
    ] {
        bench.write("work/jobs/job.toml", file(program), 0o644);
        let done = bench.run("run jobs/job.toml");
        assert_eq!(
            (done.code(), done.lines().as_slice()),
            (Some(0), &wanted.map(str::to_owned)[..]),
            "{program}: {done:?}"
        );
        assert!(
            done.errors.contains(note) && (!note.is_empty() || done.errors.is_empty()),
            "{program}: {}",
            done.errors
        );
    }
    bench.write(
        "work/jobs/job.rsl",
        "&(resourceManagerContact=home)(executable=./app)(count=1)",
        0o644,
    );
    assert_eq!(bench.run("run jobs/job.rsl").lines(), ["beside"]);
    bench.write("work/jobs/job.toml", file("./none"), 0o644);
    let done = bench.run("run jobs/job.toml");
    assert!(done.errors.contains("jobs/none"), "{}", done.errors);
}

#[test]
fn a_job_that_lives_elsewhere_has_one_identifier_and_the_words_that_were_typed() {
    let bench = Bench::new("carried");
    bench.write("work/wait", "#!/bin/sh\nexec sleep 1000\n", 0o755);
    let done = ask(&bench, "run --detach --at lab --name tides --site lab:1 ./wait");
    assert_eq!(done.code(), Some(0), "{done:?}");
    let name = String::from_utf8(done.output).unwrap().trim().to_owned();
    let identifier = name.strip_prefix("lab/").unwrap();
    assert!(
        done.errors.contains(&format!("~/isthmus-jobs/{identifier} ")),
        "{name}: {}",
        done.errors
    );
    let listed = value(&ask(&bench, "ps --site lab --json"))["jobs"][0].clone();
    let words: Vec<_> = listed["words"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|w| w.as_str())
        .collect();
    assert_eq!(
        words.join(" "),
        "run --detach --at lab --name tides --site lab:1 ./wait"
    );
    assert_eq!(ask(&bench, "kill lab/tides").code(), Some(0));
    let refused = ask(&bench, "run --detach --at lab --site lab:1 --site unknown:1 ./wait");
    assert_ne!((refused.code(), refused.output.len()), (Some(0), 0), "{refused:?}");
}

#[test]
fn what_is_fetched_has_the_longest_names_and_is_as_private_as_the_user_wants() {
    let bench = Bench::new("longest");
    let name = "x".repeat(255);
    bench.write(&format!("work/{name}"), "content", 0o755);
    let mode = |place: &str| {
        let found = std::fs::metadata(bench.root.join("work").join(place)).unwrap();
        found.permissions().mode() & 0o777
    };
    let ask = |umask: &str, line: &str| {
        let shell = format!("umask {umask}; exec \"$0\" {line}");
        let isthmus = env!("CARGO_BIN_EXE_isthmus");
        let mut command = bench.command_of(std::path::Path::new("sh"), "-c");
        let done = finish(command.arg(shell).arg(isthmus).spawn().unwrap());
        assert_eq!(done.code(), Some(0), "{line}: {}", done.errors);
    };
    ask("022", &format!("cp {name} isthmus://lab/~/{name}"));
    for (umask, executable, plain) in [("022", 0o755, 0o644), ("077", 0o700, 0o600), ("002", 0o775, 0o664)] {
        let copy = format!("{}.{umask}", "y".repeat(251));
        ask(umask, &format!("cp isthmus://lab/~/{name} {copy}"));
        assert_eq!(mode(&copy), executable, "{umask}");
        let results = format!("results-{umask}");
        let touch = format!("run --site lab:1 --output '*' --results {results} touch {name}");
        ask(umask, &touch);
        assert_eq!(mode(&format!("{results}/lab/{name}")), plain, "{umask}");
    }
    bench.assert_clean();
}
