// SPDX-License-Identifier: Apache-2.0
//! Jobs that run to their end.

use crate::bench::{Bench, feed, finish};
use std::path::Path;
use std::process::Stdio;

#[test]
fn a_binary_that_is_replaced_during_the_start_is_still_the_one_that_runs() {
    let bench = Bench::new("replaced");
    let installed = bench.root.join("bin/isthmus");
    std::fs::create_dir(bench.root.join("bin")).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_isthmus"), &installed).unwrap();
    // The first thing that the ssh client is asked for is its configuration, before anything is sent.
    let replacing = "#!/bin/sh\n\
         cd \"$BENCH_ROOT\" && echo another >bin/new && mv bin/new bin/isthmus\n\
         exec ./ssh \"$@\"\n";
    bench.write("replacing", replacing, 0o755);
    let mut command = bench.command_of(&installed, "run --site lab:1 echo here");
    let done = finish(
        command
            .env("ISTHMUS_SSH", bench.root.join("replacing"))
            .spawn()
            .unwrap(),
    );
    assert_eq!(
        (done.code(), done.lines()),
        (Some(0), vec!["here".to_owned()]),
        "{done:?}"
    );
    bench.assert_clean();
}

#[test]
fn programs_that_know_nothing_of_mpi() {
    let bench = Bench::new("plain");
    let done = bench.run("run -n 3 --label echo hello");
    assert_eq!(done.code(), Some(0), "{done:?}");
    assert_eq!(done.lines(), ["[0] hello", "[1] hello", "[2] hello"]);
}

#[test]
fn ranks_are_numbered_over_sites_and_the_program_is_staged() {
    let bench = Bench::new("sites");
    let line = format!("run --site home:2 --site lab:3 --site b=home:1 {}", Bench::fake());
    for _ in 0..2 {
        let done = bench.run(&line);
        assert_eq!(done.code(), Some(0), "{done:?}");
        let wanted: Vec<_> = (0..6).map(|r| format!("rank {r} of 6 certificate 0")).collect();
        assert_eq!(done.lines(), wanted);
    }
    let cache = bench.root.join("sites/lab/.cache/isthmus");
    let staged = std::fs::read_dir(cache.join("files")).unwrap().count();
    assert_eq!(
        staged, 1,
        "one program (no library in a build tree), found again the second time"
    );
}

#[test]
fn a_job_file() {
    let bench = Bench::new("file");
    let text = format!(
        "program = \"sh\"\narguments = [\"-c\", \"echo $WHO $PWD\"]\nenvironment.WHO = \"all\"\n\
         [[subjob]]\nsite = \"home\"\ndirectory = \"/\"\n[[subjob]]\nsite = \"lab\"\nenvironment.WHO = \"lab\"\n\
         directory = \"{}/sites/lab\"\nprogram = \"sh\"\n",
        bench.root.display()
    );
    bench.write("work/job.toml", text, 0o644);
    let done = bench.run("run job.toml");
    assert_eq!(
        done.lines(),
        ["all /".to_owned(), format!("lab {}/sites/lab", bench.root.display())],
        "{done:?}"
    );
}

#[test]
fn processes_have_the_umask_of_a_login_or_that_of_the_job() {
    let bench = Bench::new("umask");
    for (site, mask) in [
        ("group:1", "0002"),
        ("lab:1", "0022"),
        ("lab:1,umask=027", "0027"),
        ("home:1,umask=007", "0007"),
    ] {
        // The second time the binary is there.
        for _ in 0..2 {
            let done = bench.run(&format!("run --site {site} sh -c umask"));
            assert_eq!(done.lines(), [mask], "{site}: {done:?}");
        }
    }
    let done = bench.run("run --site lab:1 --env ISTHMUS_UMASK=0777 sh -c umask");
    assert!(done.errors.contains("ISTHMUS_UMASK is '0777'"), "{done:?}");
}

/// The launcher's directory is below the one that the site `apart` does not see.
#[test]
fn files_in_a_directory_that_nobody_named_are_told() {
    let bench = Bench::new("made");
    let place = bench.root.join("work/deep");
    std::fs::create_dir_all(&place).unwrap();
    bench.write("work/deep/make", "#!/bin/sh\npwd\necho result >result\n", 0o755);
    let run = |line: &str| {
        let mut command = bench.command(line);
        finish(command.current_dir(&place).spawn().unwrap())
    };
    // A directory that both see: nothing is somewhere else.
    let done = run("run --site lab:1 ./make");
    assert_eq!(
        (done.lines(), done.code()),
        (vec![place.display().to_string()], Some(0)),
        "{done:?}"
    );
    assert!(
        place.join("result").is_file() && !done.errors.contains("isthmus cp"),
        "{done:?}"
    );
    if !std::process::Command::new("unshare")
        .args(["-rm", "true"])
        .status()
        .is_ok_and(|s| s.success())
    {
        println!("skipped: no user namespaces");
        return;
    }
    let jobs = bench.root.join("sites/apart/.cache/isthmus/jobs");
    let left = || std::fs::read_dir(&jobs).unwrap().count();
    let done = run("run --site apart:1 pwd");
    assert!(done.lines()[0].starts_with(&jobs.display().to_string()), "{done:?}");
    assert!(!done.errors.contains("isthmus cp"), "{done:?}");
    assert_eq!(left(), 0, "an empty directory goes with its job");
    for number in 1..3 {
        let done = run("run --site apart:2 ./make");
        let files = done.lines()[0].clone();
        let told = format!(
            "site 'apart': 1 file that nothing fetches was made there: 'result' (7 bytes); they stay for 60 min: isthmus cp isthmus://apart{files} TARGET"
        );
        assert!(done.errors.contains(&told), "{done:?}");
        assert_eq!(
            std::fs::read_to_string(Path::new(&files).join("result")).unwrap(),
            "result\n"
        );
        assert_eq!(left(), number, "each job has its own");
    }
    assert!(!bench.root.join("sites/apart/result").exists());
    // So are files of a request for the output.
    let request = "&(resourceManagerContact=apart)(executable=/bin/sh)(arguments=-c \"pwd; pwd >&2; pwd >result\")\
        (count=1)(stdout=out.txt)(stderr=err.txt)";
    bench.write("work/deep/job.rsl", request, 0o644);
    let done = run("run job.rsl");
    assert!(
        done.errors
            .contains("3 files that nothing fetches were made there: 'err.txt', 'out.txt', 'result'"),
        "{done:?}"
    );
    assert!(!bench.root.join("sites/apart/out.txt").exists());
}

#[test]
fn standard_input_goes_to_rank_0_and_comes_back_unchanged() {
    let bench = Bench::new("input");
    let bytes: Vec<u8> = (0..3_000_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let mut command = bench.command("run -n 3 cat");
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let feeding = feed(&mut child, bytes.clone());
    let done = finish(child);
    feeding.join().unwrap();
    assert_eq!(done.code(), Some(0), "{}", done.errors);
    assert!(
        done.output == bytes,
        "{} bytes came back of {}",
        done.output.len(),
        bytes.len()
    );
}

#[test]
fn lines_of_different_ranks_never_mix() {
    let bench = Bench::new("lines");
    bench.write(
        "work/talk",
        "#!/bin/sh\nfor i in 1 2 3 4 5 6 7 8 9; do printf a; printf b; printf 'c%s\\n' $i; done\nprintf end",
        0o755,
    );
    let done = bench.run("run -n 8 ./talk");
    let text = String::from_utf8(done.output).unwrap();
    assert_eq!(text.matches("abc").count(), 72);
    for line in text.lines() {
        assert!(
            line.trim_start_matches("end").starts_with("abc") || line.replace("end", "").is_empty(),
            "{line:?}"
        );
    }
    assert_eq!(text.matches("end").count(), 8);
}

#[test]
fn output_larger_than_every_window_arrives_whole() {
    let bench = Bench::new("flood");
    let done = bench.run("run -n 2 head -c 20000000 /dev/zero");
    assert_eq!((done.code(), done.output.len()), (Some(0), 40_000_000));
}

#[test]
fn statistics_are_summed() {
    let bench = Bench::new("statistics");
    let mut command = bench.command(&format!("run -n 4 {}", Bench::fake()));
    let done = finish(command.env("ISTHMUS_STATS", "1").spawn().unwrap());
    let row = done
        .errors
        .lines()
        .find(|l| l.starts_with("bcast"))
        .unwrap_or_else(|| panic!("{done:?}"));
    let numbers: Vec<&str> = row.split_whitespace().filter(|w| *w != "|").collect();
    assert_eq!(numbers[..4], ["bcast", "4", "4", "400"]);
}

#[test]
fn sixty_four_processes() {
    let bench = Bench::new("many");
    let done = bench.run(&format!("run -n 64 {}", Bench::fake()));
    assert_eq!((done.code(), done.lines().len()), (Some(0), 64), "{}", done.errors);
}

#[test]
fn settings_reach_every_process_and_secrets_of_the_start_do_not() {
    let bench = Bench::new("settings");
    let script = "#!/bin/sh\necho $ISTHMUS_SHM_DIRECTORY; env | grep -c ISTHMUS_SSH\nexit 0\n";
    bench.write("work/show", script, 0o755);
    let done = bench.run("run --site home:1 --site lab:1 ./show");
    let mark = done.lines().into_iter().filter(|l| l.ends_with("/shm")).count();
    assert_eq!(
        (mark, done.lines().iter().filter(|l| *l == "0").count()),
        (2, 2),
        "{done:?}"
    );
}

#[test]
fn a_wrong_token_opens_nothing() {
    let bench = Bench::new("token");
    let mut command = bench.command(&format!("run -n 2 {}", Bench::fake()));
    let done = finish(command.env("FAKE_WRONG_TOKEN", "1").spawn().unwrap());
    assert_eq!(done.code(), Some(0), "{}", done.errors);
    bench.assert_clean();
}
