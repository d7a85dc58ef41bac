// SPDX-License-Identifier: Apache-2.0
//! Jobs that cannot start: one message that names the thing, a hint, a status, and nothing left.

use crate::bench::{Bench, finish};
use std::process::Stdio;

/// Runs a line that must be refused with these parts in its message and with one `error:`.
fn refused(bench: &Bench, line: &str, parts: &[&str]) {
    let done = bench.run(line);
    assert!(done.code().is_some_and(|c| c != 0), "{line}: {done:?}");
    assert_eq!(done.errors.matches("error:").count(), 1, "{line}: {}", done.errors);
    for part in parts {
        assert!(
            done.errors.contains(part),
            "{line}: '{part}' is not in\n{}",
            done.errors
        );
    }
}

#[test]
fn sites_that_cannot_be_reached() {
    let bench = Bench::new("reach");
    for (site, words, hint) in [
        ("unknown", "Could not resolve hostname", "~/.ssh/config"),
        ("refused", "Connection refused", "no ssh server answers"),
        ("denied", "Permission denied", "ssh-add"),
        ("stranger", "Host key verification failed", "compare the fingerprint"),
        ("crowded", "Connection closed by", "perhaps too many clients connect"),
    ] {
        refused(
            &bench,
            &format!("run --site home:2 --site {site}:2 true"),
            &[&format!("site '{site}'"), words, "hint:", hint],
        );
    }
    refused(
        &bench,
        "run --ssh /no/such/client --site lab true",
        &["'/no/such/client' cannot be run", "hint:"],
    );
    refused(
        &bench,
        "run --site full true",
        &["site 'full'", "cannot write to", "hint:"],
    );
}

#[test]
fn long_words() {
    let bench = Bench::new("long");
    let word = "x".repeat(100_000);
    for line in [format!("report {word}"), format!("run --{word}"), format!("{word} x")] {
        let done = bench.run(&line);
        assert!(
            done.code() == Some(2) && done.errors.len() < 10_000,
            "{}",
            done.errors.len()
        );
    }
}

#[test]
fn words_that_are_no_commands() {
    let bench = Bench::new("verbs");
    for (line, part) in [
        ("rnu -n 2 ./app", "did you mean 'isthmus run'?"),
        ("-n 2 ./app", "isthmus run -n"),
        ("./app", "isthmus run ./app"),
        ("--json ps", "isthmus ps --json"),
        ("mpirun -n 2 ./app", "use isthmus run"),
        ("scancel 7", "use isthmus kill JOB"),
        ("status", "use isthmus ps"),
        ("sbatch job.sh", "isthmus run --detach"),
        ("xyzzy", "isthmus help lists"),
    ] {
        refused(&bench, line, &["isthmus has no command", "hint:", part]);
        assert_eq!(bench.run(line).code(), Some(2), "{line}");
    }
}

#[test]
fn values_that_begin_with_a_hyphen() {
    let bench = Bench::new("hyphens");
    for (line, part) in [
        ("run --time -5s true", "write --time=-5s"),
        ("run -n 1 --input -mesh.nc true", "write --input=-mesh.nc"),
        ("ps --json -x", "isthmus ps has no option '-x'"),
    ] {
        let done = bench.run(line);
        assert!(done.errors.contains(part), "{done:?}");
        assert_eq!(
            done.errors.contains("as the value of"),
            part.starts_with("write"),
            "{done:?}"
        );
    }
    refused(&bench, "run --time=-5s true", &["'-5s' is not a time limit"]);
}

#[test]
fn files_that_would_be_overwritten() {
    let bench = Bench::new("overwritten");
    let app = bench.write("work/app", "#!/bin/sh\n", 0o755);
    for option in ["--trace", "--events", "--outfile-pattern"] {
        refused(
            &bench,
            &format!("run {option} ./app ./app"),
            &["is a program, and would be overwritten", "hint:"],
        );
    }
    assert_eq!(std::fs::read_to_string(&app).unwrap(), "#!/bin/sh\n");
    for place in ["/dev/null", "./app/results", "/dev/null/results"] {
        refused(
            &bench,
            &format!("run --output *.out --results {place} ./app"),
            &["outputs cannot be put into", place, "Not a directory", "--results"],
        );
    }
    for option in ["--trace", "--events"] {
        refused(
            &bench,
            &format!("run {option} /nowhere/x ./app"),
            &["cannot write '/nowhere/x'", "hint:"],
        );
    }
}

#[test]
fn words_that_are_no_numbers() {
    let bench = Bench::new("numbers");
    for (line, part) in [
        ("run --time -5 true", "'-5' is not a time limit"),
        ("run -n -5 true", "'-5' is not a number of processes"),
        ("run --site home:1,nodes=-1 true", "'-1' is not a number of nodes"),
        (
            "run --site home:1,scheduler=slurm,nodes=99999999999 true",
            "is not a number of nodes",
        ),
        ("cache limit -5", "'-5' is not a size"),
        ("explain bcast -1 --site home:2", "'-1' is not a size"),
        (
            "explain bcast 1KiB --site home:2 --site home:3",
            "--site: 'home' is named twice",
        ),
        (
            "explain bcast 1KiB --site home:2 --svg -",
            "--svg: this cannot go to standard output",
        ),
        (
            "run -n 1 --trace - /bin/true",
            "--trace: this cannot go to standard output",
        ),
        ("explain MPI_Bcsat 1 --site home:2", "did you mean 'bcast'?"),
        ("explain MPI_Bcast 1MiB --site home:0", "NAME:PROCESSES"),
    ] {
        refused(&bench, line, &[part, "hint:"]);
        assert_eq!(bench.run(line).code(), Some(2), "{line}");
    }
}

#[test]
fn words_that_are_no_sites() {
    let bench = Bench::new("words");
    for command in ["discover", "cache list", "cache clear", "sites test", "ps --site"] {
        for (word, part) in [(":2", "names no host"), ("lab,queue=x", "cannot be the name of a site")] {
            let line = format!("{command} {word}");
            refused(&bench, &line, &[part, "hint:"]);
            assert_eq!(bench.run(&line).code(), Some(2), "{line}");
        }
    }
}

#[test]
fn a_server_that_turns_us_away_for_a_moment_is_asked_again() {
    let bench = Bench::new("crowded");
    let done = bench.run("run --site crowded-login:1 true");
    assert!(done.code() == Some(0) && !done.errors.contains("error:"), "{done:?}");
}

#[test]
fn programs_that_cannot_run() {
    let bench = Bench::new("program");
    bench.write("work/plain", "#!/bin/sh\n", 0o644);
    for source in ["ring.c", "ring.f90", "ring.cc", "ring.py"] {
        bench.write(&format!("work/{source}"), "int main(void) { return 0; }\n", 0o644);
    }
    // As on a file system of Windows.
    bench.write("work/marked.c", "int main(void) { return 0; }\n", 0o755);
    bench.write("work/text", "#!/no/such/interpreter\n", 0o755);
    let mut foreign = b"\x7fELF\x02\x02\x01\0\0\0\0\0\0\0\0\0\0\x02\0\x15".to_vec();
    foreign.resize(200, 0);
    bench.write("work/foreign", foreign, 0o755);
    for site in ["home", "lab"] {
        let run = |program: &str| format!("run --site {site}:2 {program}");
        refused(&bench, &run("./none"), &["'./none' cannot be found", "hint:"]);
        refused(&bench, &run("none-such"), &["'none-such' is neither in PATH", "hint:"]);
        for plain in ["./plain", "plain"] {
            refused(&bench, &run(plain), &["not executable", "chmod +x"]);
        }
        for (source, hint) in [
            ("./ring.c", "ring.c -o "),
            ("./ring.f90", "mpifort "),
            ("./ring.cc", "mpicxx "),
            ("./marked.c", "mpicc "),
            ("./ring.py", "python3 "),
        ] {
            refused(&bench, &run(source), &["hint: ", hint]);
        }
        refused(&bench, &run("."), &["is a directory, not a program"]);
        refused(&bench, &run("./foreign"), &["is built for ppc64", "hint:"]);
    }
    let site = "run --site lab:2 --no-stage";
    refused(
        &bench,
        &format!("{site} /no/such/program"),
        &["site 'lab'", "'/no/such/program' cannot be found", "hint:"],
    );
    refused(
        &bench,
        "run -n 2 -C /no/such/directory true",
        &["'/no/such/directory'", "hint:"],
    );
    let done = bench.run("run -n 1 ./text");
    assert_eq!(done.code(), Some(127), "{done:?}");
    assert!(
        done.errors
            .contains("its interpreter '/no/such/interpreter' does not exist"),
        "{}",
        done.errors
    );
    bench.write("work/windows", "#!/bin/sh\r\necho x\r\n", 0o755);
    let done = bench.run("run -n 1 .//windows");
    assert_eq!(done.code(), Some(127), "{done:?}");
    assert!(done.errors.contains("the line ends of Windows"), "{}", done.errors);
}

#[test]
fn sites_of_another_architecture() {
    let bench = Bench::new("foreign");
    std::fs::create_dir(bench.root.join("foreign")).unwrap();
    bench.write(
        "foreign/uname",
        "#!/bin/sh\n[ $1 = -s ] && echo Linux || echo sparc64\n",
        0o755,
    );
    refused(
        &bench,
        "run --site foreign:1 true",
        &["site 'foreign'", "Linux on sparc64", "hint:"],
    );
}

#[test]
fn numbers_of_processes() {
    let bench = Bench::new("numbers");
    refused(&bench, "run -n 0 true", &["-n 0", "65536", "hint:"]);
    refused(&bench, "run -n 100000 true", &["-n 100000", "65536", "hint:"]);
    refused(&bench, "run -n 99999999999999999999 true", &["65536"]);
    refused(&bench, "run -n many true", &["'many' is not a number"]);
    refused(&bench, "run -n 5000 true", &["4096 per machine"]);
    refused(&bench, "run --site home:0 true", &["0 processes"]);
}

#[test]
fn job_files() {
    let bench = Bench::new("job-files");
    bench.write("work/a.toml", "program = \"true\"\n[[subjob]\nsite = \"home\"\n", 0o644);
    refused(&bench, "run a.toml", &["a.toml:2:9:", "[[subjob]", "^"]);
    bench.write(
        "work/b.toml",
        "program = \"true\"\n[[subjob]]\nsite = \"home\"\ncuont = 3\n",
        0o644,
    );
    refused(
        &bench,
        "run b.toml",
        &["b.toml:4:1:", "unknown key 'cuont'", "did you mean 'count'?"],
    );
    refused(&bench, "run none.toml", &["cannot read job file 'none.toml'"]);
    refused(&bench, "run -n 3 b.toml", &["describes the whole job"]);
}

#[test]
fn processes_that_never_come() {
    let bench = Bench::new("late");
    let mut command = bench.command(&format!("run -n 3 {} late 0 1", Bench::fake()));
    let done = finish(command.env("ISTHMUS_START_TIMEOUT", "1").spawn().unwrap());
    assert_eq!(done.code(), Some(1));
    assert!(done.errors.contains("rank 1 (not in MPI_Init)"), "{}", done.errors);
    bench.assert_clean();
    let mut command = bench.command("run --site home:1 --site silent:1 true");
    let done = finish(command.env("ISTHMUS_START_TIMEOUT", "1").spawn().unwrap());
    assert!(done.errors.contains("site 'silent' (not reached)"), "{}", done.errors);
    bench.assert_clean();
    refused(
        &bench,
        &format!("run -n 3 {} skip 0 2", Bench::fake()),
        &["rank 2 ended without calling MPI_Init", "hint:"],
    );
    refused(&bench, &format!("run -n 1 {} old", Bench::fake()), &["version 999"]);
}

#[test]
fn what_fails_is_no_mistake_of_the_command_line() {
    let bench = Bench::new("accidents");
    bench.write("work/file", "", 0o644);
    for (line, status) in [
        ("cp file isthmus://refused/~/", 1),
        ("cp nosuch isthmus://lab/~/", 1),
        ("cp nosuch here", 1),
        ("cp file", 2),
        ("cp file lab:x:y", 2),
        ("sites add refused", 1),
        ("sites add home", 2),
        ("discover refused", 1),
        ("run --detach --at refused --site refused true", 1),
        ("run --detach --at home true", 2),
    ] {
        let done = bench.run(line);
        assert_eq!(done.code(), Some(status), "{line}: {done:?}");
        assert!(done.errors.starts_with("isthmus: error: "), "{line}: {}", done.errors);
    }
}

#[test]
fn launchers_that_another_launcher_has_started() {
    let bench = Bench::new("several");
    let started = |line: &str, variables: &[(&str, &str)]| {
        let mut command = bench.command(line);
        finish(command.envs(variables.iter().copied()).spawn().unwrap())
    };
    let slurm = [
        ("SLURM_STEP_ID", "0"),
        ("SLURM_STEP_NUM_TASKS", "4"),
        ("SLURM_PROCID", "1"),
    ];
    for (launcher, variables) in [
        ("srun", &slurm[..]),
        ("Open MPI's mpiexec", &[("OMPI_COMM_WORLD_SIZE", "4")]),
        ("MPICH's mpiexec", &[("PMI_SIZE", "4")]),
    ] {
        let done = started("run -n 1 true", variables);
        let said = format!("{launcher} has started isthmus 4 times");
        assert!(done.code() == Some(2) && done.errors.contains(&said), "{done:?}");
        assert!(done.errors.contains("hint: start isthmus once") && done.errors.contains("ISTHMUS_ALONE=1"));
        // What is shown starts nothing; whoever says that it is meant is heard.
        assert_eq!(started("run --dry-run -n 1 true", variables).code(), Some(0));
        let alone = [variables, &[("ISTHMUS_ALONE", "1")]].concat();
        let done = started("run -n 1 true", &alone);
        assert!(done.code() == Some(0) && !done.errors.contains("several"), "{done:?}");
    }
    // One process of a step, and what a job of ours starts.
    for variables in [
        &[slurm[0], ("SLURM_STEP_NUM_TASKS", "1")][..],
        &[slurm[0], slurm[1], ("ISTHMUS_REACH", "node")],
    ] {
        let done = started("run -n 1 true", variables);
        assert!(done.code() == Some(0) && !done.errors.contains("srun"), "{done:?}");
    }
    // A program or a script that has been started so starts what it likes, and is told.
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "\"$0\" run -n 1 true; exit $?", env!("CARGO_BIN_EXE_isthmus")]);
    let command = bench.command("");
    let own = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let done = shell
        .envs(own)
        .envs(slurm)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let done = finish(done.spawn().unwrap());
    let warned = done
        .errors
        .matches("warning: this runs in one of 4 processes that srun has started")
        .count();
    assert!(done.code() == Some(0) && warned == 1, "{done:?}");
    bench.assert_clean();
}
