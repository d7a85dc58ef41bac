// SPDX-License-Identifier: Apache-2.0
//! Standard streams: to whom input goes, where output goes.

use crate::bench::{Bench, feed, finish};
use rustix::fs::{FileType, Mode};
use std::io::Read;
use std::process::Stdio;

fn with_input(bench: &Bench, line: &str, input: &[u8]) -> crate::bench::Done {
    let mut child = bench.command(line).stdin(Stdio::piped()).spawn().unwrap();
    let feeding = feed(&mut child, input.to_vec());
    let done = finish(child);
    feeding.join().unwrap();
    bench.assert_clean();
    done
}

#[test]
fn input_goes_to_one_to_all_or_to_nobody() {
    let bench = Bench::new("stdin");
    let bytes: Vec<u8> = (0..700_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8)
        .collect();
    let sites = "--site home:2 --site lab:2 --outfile-pattern out/%r.%t --no-stage cat";
    let of = |rank: u32| std::fs::read(bench.root.join(format!("work/out/{rank}.out"))).unwrap_or_default();
    for (whom, who) in [("3", vec![3]), ("all", vec![0, 1, 2, 3]), ("none", vec![])] {
        let _ = std::fs::remove_dir_all(bench.root.join("work/out"));
        let done = with_input(&bench, &format!("run --stdin {whom} {sites}"), &bytes);
        assert_eq!(done.code(), Some(0), "{whom}: {}", done.errors);
        for rank in 0..4 {
            let wanted: &[u8] = if who.contains(&rank) { &bytes } else { b"" };
            assert!(
                of(rank) == wanted,
                "--stdin {whom}: rank {rank} has {} bytes",
                of(rank).len()
            );
        }
    }
    assert_eq!(bench.run("run --stdin x -n 1 cat").code(), Some(2));
}

#[test]
fn input_that_cannot_be_read_is_told_of() {
    let bench = Bench::new("unreadable");
    let read_directory = |line: &str| {
        let directory = std::fs::File::open(bench.root.join("work")).unwrap();
        let done = finish(bench.command(line).stdin(directory).spawn().unwrap());
        bench.assert_clean();
        done
    };
    for line in [
        "run -n 1 cat",
        "run --stdin all -n 2 cat",
        "run --detach --site lab:1 cat",
    ] {
        let done = read_directory(line);
        assert_eq!((done.code(), done.output.len()), (Some(2), 0), "{line}: {done:?}");
        let said = "cannot read standard input: Is a directory";
        assert!(done.errors.contains(said), "{line}: {}", done.errors);
    }
    assert_eq!(read_directory("run --stdin none -n 1 cat").code(), Some(0));
    let root = bench.root.display();
    bench.write("fits", "from here\n", 0o644);
    for (file, status, said) in [
        (format!("file://{root}/work"), 2, "Is a directory"),
        (format!("file://{root}/nosuch"), 2, "No such file or directory"),
        (format!("{root}/work"), 1, "Is a directory"),
        (format!("file://{root}/fits"), 0, ""),
    ] {
        let job = format!("&(resourceManagerContact=home)(count=1)(executable=/bin/cat)(stdin=\"{file}\")");
        bench.write("work/job.rsl", &job, 0o644);
        let done = bench.run("run job.rsl");
        assert_eq!(done.code(), Some(status), "{file}: {done:?}");
        assert!(done.errors.contains(said), "{file}: {}", done.errors);
    }
}

#[test]
fn a_file_for_each_process() {
    let bench = Bench::new("files");
    bench.write("work/both", "#!/bin/sh\necho out $1; echo err >&2\n", 0o755);
    let done = bench.run("run --output-dir logs --site home:1 --site lab:2 ./both there");
    assert_eq!((done.code(), done.output.len(), done.errors.as_str()), (Some(0), 0, ""));
    for rank in 0..3 {
        let read =
            |kind: &str| std::fs::read_to_string(bench.root.join(format!("work/logs/rank-{rank}.{kind}"))).unwrap();
        assert_eq!((read("out").as_str(), read("err").as_str()), ("out there\n", "err\n"));
    }
    let done = bench.run("run --outfile-pattern %x -n 1 true");
    assert!(
        done.code() == Some(2) && done.errors.contains("%r is the rank"),
        "{}",
        done.errors
    );
    bench.write("work/full", "", 0o644);
    let done = bench.run("run --output-dir full -n 1 ./both x");
    assert!(
        done.code() == Some(2) && done.errors.contains("--output-dir: cannot create"),
        "{done:?}"
    );
    let done = bench.run("run --stdin 1 -n 1 ./both x");
    assert!(
        done.code() == Some(2) && done.errors.contains("no such rank"),
        "{done:?}"
    );
    let done = bench.run("run --outfile-pattern full/%r -n 1 ./both x");
    assert!(
        done.code() == Some(1) && done.errors.contains("output cannot be written"),
        "{done:?}"
    );
}

#[test]
fn files_that_a_subjob_names() {
    let bench = Bench::new("named");
    let root = bench.root.display();
    bench.write("site-input", "from the site\n", 0o644);
    bench.write("here-input", "from here\n", 0o644);
    bench.write(
        "work/job.rsl",
        format!(
            "+ ( & (resourceManagerContact=home) (count=2) (executable=/bin/cat)\n\
                   (stdin={root}/site-input) (stdout={root}/site-output) (stderr={root}/site-output) )\n\
               ( & (resourceManagerContact=lab) (count=1) (executable=/bin/cat)\n\
                   (stdin=$(GLOBUSRUN_GASS_URL) # {root}/here-input) (stdout=$(GLOBUSRUN_GASS_URL) # {root}/here-output) )"
        ),
        0o644,
    );
    let done = bench.run("run job.rsl");
    assert_eq!((done.code(), done.output.len()), (Some(0), 0), "{done:?}");
    let read = |name: &str| std::fs::read_to_string(bench.root.join(name)).unwrap();
    assert_eq!(read("site-output"), "from the site\nfrom the site\n");
    assert_eq!(read("here-output"), "from here\n");
}

#[test]
fn a_pipe_with_a_name_is_read_when_somebody_writes_into_it() {
    let bench = Bench::new("fifo");
    let pipe = bench.root.join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    // At the site, read by the agent; and here, read by the launcher.
    for place in ["", "file://"] {
        let job = format!(
            "&(resourceManagerContact=home)(count=1)(executable=/bin/sh)(arguments=-c 'echo begun; cat')(stdin=\"{place}{}\")",
            pipe.display()
        );
        bench.write("work/job.rsl", job, 0o644);
        let mut child = bench.command("run job.rsl").spawn().unwrap();
        let mut output = child.stdout.take().unwrap();
        let mut begun = [0; 6];
        output.read_exact(&mut begun).unwrap();
        assert_eq!(&begun, b"begun\n", "'{place}': it begins before there is a writer");
        std::fs::write(&pipe, "data\n").unwrap();
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        assert_eq!((rest.as_str(), finish(child).code()), ("data\n", Some(0)), "'{place}'");
        // Nobody writes, and the job ends all the same.
        let child = bench.command("run --time 1s job.rsl").spawn().unwrap();
        assert_eq!(finish(child).code(), Some(124), "'{place}'");
        bench.assert_clean();
    }
}

#[test]
fn a_reader_that_is_slow_holds_the_writers_back() {
    let bench = Bench::new("pressure");
    bench.write(
        "work/flood",
        "#!/bin/sh\nexec yes 'a line that is a little longer than others'\n",
        0o755,
    );
    let mut child = bench.command("run --site home:2 --site lab:2 ./flood").spawn().unwrap();
    bench.await_processes("yes a line", 4);
    std::thread::sleep(std::time::Duration::from_secs(2));
    // Nobody reads: what is under way is bounded by the windows of the agents, not by time.
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak: u64 = status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok())
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(finish(child).code(), Some(141));
    assert!(peak < 64 << 10, "the coordinator took {peak} kB");
    bench.assert_clean();
}

#[test]
fn a_home_that_is_not_there_is_told_of_once_and_not_made() {
    let bench = Bench::new("no-home");
    let home = bench.root.join("no-home");
    for line in ["run -n 2 echo here", "run --site a=home:1 --site b=home:1 echo here"] {
        let mut command = bench.command(line);
        command.env_remove("XDG_CACHE_HOME").env("HOME", &home);
        let done = finish(command.spawn().unwrap());
        bench.assert_clean();
        assert_eq!(
            (done.code(), done.output.as_slice()),
            (Some(0), &b"here\nhere\n"[..]),
            "{}",
            done.errors
        );
        assert_eq!(
            done.errors.matches("which is not a directory").count(),
            1,
            "{}",
            done.errors
        );
        assert!(!home.exists(), "{line} made it");
    }
}

#[test]
fn output_that_has_no_place_comes_with_what_helps() {
    let bench = Bench::new("noplace");
    for (place, said, is_space) in [("&-", "it is closed", false), ("/dev/full", "No space left", true)] {
        let command = bench.command("");
        let own = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let mut shell = std::process::Command::new("sh");
        let line = format!("\"$0\" run -n 1 echo said >{place}; exit $?");
        shell.args(["-c", &line, env!("CARGO_BIN_EXE_isthmus")]).envs(own);
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let done = shell.output().unwrap();
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(1) && errors.contains(said), "{errors}");
        assert_eq!(errors.contains("check the free space"), is_space, "{errors}");
        bench.assert_clean();
    }
}
