// SPDX-License-Identifier: Apache-2.0
//! Jobs through a scheduler that is four shell scripts: what goes over the wire between agents and nodes, and the ends.
//! Real schedulers: tests/schedulers.

use crate::bench::{Bench, Done, finish};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

/// Runs the script as two nodes with room for 2 processes each, at the top of all (`--chdir=/`); waits as long as there
/// is a file `hold`.
const SBATCH: &str = r#"#!/bin/sh
q=$BENCH_ROOT/queue; mkdir -p "$q"
echo "$@" >"$q/arguments"
cat >"$q/script"
case " $* " in *" --partition=nowhere "*) echo "sbatch: error: invalid partition specified: nowhere" >&2; exit 1;; esac
(
    while test -e "$BENCH_ROOT/hold" && ! test -e "$q/cancelled"; do sleep 0.05; done
    test -e "$q/cancelled" && exit
    cd /
    export SLURM_JOB_NUM_NODES=2 SLURM_TASKS_PER_NODE='2(x2)'
    setsid sh -c 'echo $$ >"$0"; . "$1"' "$q/pid" "$q/script"
    test -e "$q/state" || echo 'COMPLETED|None' >"$q/state"
) </dev/null >/dev/null 2>&1 &
echo 17
"#;
const SQUEUE: &str = r#"#!/bin/sh
q=$BENCH_ROOT/queue
if test -e "$q/state"; then cat "$q/state"; elif test -e "$q/pid"; then echo 'RUNNING|None'; else echo 'PENDING|Priority|4102444800'; fi
"#;
/// When the queue is expected to end: the first second of the year 2100.
const FAR: u64 = 4_102_444_800;
const SCANCEL: &str = r#"#!/bin/sh
q=$BENCH_ROOT/queue
echo "$@" >>"$q/cancelled"
test -e "$q/pid" && kill -TERM -- "-$(cat "$q/pid")" 2>/dev/null
exit 0
"#;
const SRUN: &str = r#"#!/bin/sh
while test "${1#--}" != "$1"; do shift; done
SLURM_NODEID=0 "$@" & SLURM_NODEID=1 "$@" &
wait
"#;

pub(crate) fn bench(name: &str) -> Bench {
    let bench = Bench::new(name);
    std::fs::create_dir_all(bench.root.join("bin")).unwrap();
    for (name, script) in [
        ("sbatch", SBATCH),
        ("squeue", SQUEUE),
        ("scancel", SCANCEL),
        ("srun", SRUN),
    ] {
        bench.write(&format!("bin/{name}"), script, 0o755);
    }
    bench
}

pub(crate) fn command(bench: &Bench, line: &str) -> Command {
    let mut command = bench.command(line);
    let path = format!(
        "{}:{}",
        bench.root.join("bin").display(),
        std::env::var("PATH").unwrap()
    );
    command
        .env("PATH", path)
        .env("XDG_CACHE_HOME", bench.root.join("cache"));
    command
}

/// Nothing runs, the submission's directory is gone and the scheduler was told that the job is over.
pub(crate) fn assert_over(bench: &Bench) {
    bench.assert_clean();
    let jobs = bench.root.join("cache/isthmus/jobs");
    assert_eq!(std::fs::read_dir(jobs).map_or(0, Iterator::count), 0);
    assert!(bench.root.join("queue/cancelled").exists());
}

fn run(bench: &Bench, line: &str) -> Done {
    let done = finish(command(bench, line).spawn().unwrap());
    assert_over(bench);
    done
}

/// Waits for a file that a script writes, and reads it.
fn await_file(bench: &Bench, name: &str) -> String {
    let began = Instant::now();
    loop {
        let text = std::fs::read_to_string(bench.root.join(name)).unwrap_or_default();
        if !text.is_empty() {
            return text;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "no {name}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn signal(kind: &str, whom: &str) {
    let sent = Command::new("kill").args([kind, "--", whom]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn several_programs_are_one_submission() {
    let bench = bench("sections");
    let run_here = |count, word: &str| {
        format!(
            "[[subjob.section]]\nprogram = \"sh\"\ncount = {count}\narguments = [\"-c\", \"echo $WORD $0 $MPI_LOCALRANKID\", \"{word}\"]\n"
        )
    };
    let sections = format!(
        "{}environment = {{ WORD = \"the\" }}\n{}",
        run_here(1, "first"),
        run_here(3, "second")
    );
    bench.write(
        "work/job.toml",
        format!("environment = {{ WORD = \"a\" }}\n[[subjob]]\nsite = \"home\"\nscheduler = \"slurm\"\n{sections}"),
        0o644,
    );
    let done = run(&bench, "run --label job.toml");
    assert_eq!(done.code(), Some(0), "{done:?}");
    let wanted = ["[0] the first 0", "[1] a second 1", "[2] a second 0", "[3] a second 1"];
    assert_eq!(done.lines(), wanted);
    let arguments = await_file(&bench, "queue/arguments");
    assert!(arguments.contains("--ntasks=4"), "{arguments}");
}

#[test]
fn what_is_submitted_at_home_works_where_the_user_stands() {
    let bench = bench("stands");
    bench.write("work/app", "#!/bin/sh\npwd; cat \"$@\"\n", 0o755);
    bench.write("work/data", "read\n", 0o644);
    std::fs::create_dir(bench.root.join("work/below")).unwrap();
    let (work, here) = (bench.root.join("work"), "run --site home:1,scheduler=slurm");
    for (words, wanted) in [
        ("./app data", work.clone()),
        ("app data", work.clone()),
        ("--input data ./app data", work.clone()),
        ("--directory below ./app ../data", work.join("below")),
    ] {
        let done = run(&bench, &format!("{here} {words}"));
        assert_eq!(done.code(), Some(0), "{words}: {done:?}");
        assert_eq!(done.lines(), [wanted.to_str().unwrap(), "read"], "{words}");
        std::fs::remove_dir_all(bench.root.join("queue")).unwrap();
    }
}

#[test]
fn ranks_over_the_nodes_of_an_allocation() {
    let bench = bench("allocation");
    let site = "lab=home:4,scheduler=slurm,queue=debug,directive=--gres=none";
    let done = run(&bench, &format!("run --site home:1 --site {site} {}", Bench::fake()));
    assert_eq!(done.code(), Some(0), "{done:?}");
    let wanted: Vec<_> = (0..5).map(|r| format!("rank {r} of 5 certificate 0")).collect();
    assert_eq!(
        done.lines()
            .iter()
            .map(|l| l.split(" certificate").next().unwrap_or_default())
            .collect::<Vec<_>>(),
        wanted
            .iter()
            .map(|l| l.split(" certificate").next().unwrap_or_default())
            .collect::<Vec<_>>()
    );
    let arguments = await_file(&bench, "queue/arguments");
    assert!(
        arguments.contains("--ntasks=4 --partition=debug --gres=none"),
        "{arguments}"
    );
    // The script says where to connect and what to believe, and nothing that would let anybody in.
    let script = await_file(&bench, "queue/script");
    assert!(!script.contains("SECRET") && !arguments.contains("SECRET"), "{script}");
}

#[test]
fn output_and_input_pass_through_the_nodes() {
    let bench = bench("passing");
    let line = "run --label --site home:3,scheduler=slurm printf %s\\n a";
    assert_eq!(run(&bench, line).lines(), ["[0] a", "[1] a", "[2] a"]);
    std::fs::remove_dir_all(bench.root.join("queue")).unwrap();
    let bytes: Vec<u8> = (0..2_000_000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let mut child = command(&bench, "run --site home:3,scheduler=slurm cat")
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let feeding = crate::bench::feed(&mut child, bytes.clone());
    let done = finish(child);
    feeding.join().unwrap();
    assert!(done.output == bytes, "{} bytes came back", done.output.len());
    assert_over(&bench);
}

#[test]
fn a_failure_of_a_rank_is_that_of_the_job() {
    let bench = bench("failing");
    let done = run(
        &bench,
        &format!("run --site home:4,scheduler=slurm {} exit 9 3", Bench::fake()),
    );
    assert_eq!(done.code(), Some(9), "{done:?}");
    assert!(
        done.errors.contains("rank 3 (site 'home') exited with status 9"),
        "{}",
        done.errors
    );
}

#[test]
fn the_scheduler_says_why_it_ended_the_job() {
    let bench = bench("limit");
    let child = command(
        &bench,
        &format!("run --site home:4,scheduler=slurm {} hang", Bench::fake()),
    )
    .spawn()
    .unwrap();
    bench.await_processes("fake_process hang", 4);
    bench.write("queue/state", "TIMEOUT|TimeLimit\n", 0o644);
    let pid = await_file(&bench, "queue/pid");
    signal("-TERM", &format!("-{}", pid.trim()));
    let done = finish(child);
    assert_eq!(done.code(), Some(1), "{done:?}");
    let errors = done.errors;
    assert!(
        errors.contains("site 'home': Slurm job 17 ended: it reached its time limit"),
        "{errors}"
    );
    assert_eq!(errors.matches("error:").count(), 1, "{errors}");
    assert_over(&bench);
}

#[test]
fn a_refused_submission_is_one_clear_error() {
    let bench = bench("refused");
    let done = finish(
        command(&bench, "run --site home:2,scheduler=slurm,queue=nowhere true")
            .spawn()
            .unwrap(),
    );
    assert_eq!(done.code(), Some(1));
    assert!(
        done.errors
            .contains("Slurm refused the job: invalid partition specified: nowhere"),
        "{}",
        done.errors
    );
    assert!(done.errors.contains("hint: sinfo"), "{}", done.errors);
    let lacking = finish(command(&bench, "run --site home:2,scheduler=lsf true").spawn().unwrap());
    assert!(
        lacking.errors.contains("there is no command 'bsub' in PATH"),
        "{}",
        lacking.errors
    );
    bench.assert_clean();
}

#[test]
fn strangers_at_the_door_get_nothing_and_a_held_job_runs_when_it_may() {
    let bench = bench("held");
    bench.write("hold", "", 0o644);
    let child = command(
        &bench,
        &format!("run --site home:1 --site lab=home:4,scheduler=slurm {}", Bench::fake()),
    )
    .spawn()
    .unwrap();
    let script = await_file(&bench, "queue/script");
    let words: Vec<&str> = script.split_whitespace().collect();
    let port: u16 = words
        .windows(2)
        .find_map(|w| w[0].starts_with("10.").then(|| w[1].parse().ok()).flatten())
        .or_else(|| words.iter().skip_while(|w| **w != "node").nth(3)?.parse().ok())
        .unwrap();
    let ask = |request: &[u8]| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(request).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    };
    assert_eq!(ask(b"GET / HTTP/1.0\r\n\r\n"), b"");
    let binary = std::fs::read(env!("CARGO_BIN_EXE_isthmus")).unwrap();
    assert!(
        ask(b"ISTHMUS binary\n") == binary,
        "whoever asks for the binary gets it"
    );
    std::fs::remove_file(bench.root.join("hold")).unwrap();
    let done = finish(child);
    assert_eq!(done.code(), Some(0), "{done:?}");
    assert_over(&bench);
}

#[test]
fn a_job_that_vanishes_from_the_queue_may_have_been_deleted() {
    let bench = bench("deleted");
    bench.write("hold", "", 0o644);
    let child = command(&bench, "run --site home:2,scheduler=slurm true")
        .spawn()
        .unwrap();
    await_file(&bench, "queue/script");
    bench.write("queue/state", "\n", 0o644);
    let done = finish(child);
    assert_eq!(done.code(), Some(1), "{done:?}");
    let hint = "hint: Slurm does not say why: somebody may have deleted it (scancel)";
    assert!(
        done.errors.contains("Slurm job 17 ended") && done.errors.contains(hint),
        "{done:?}"
    );
    assert_over(&bench);
}

#[test]
fn what_waits_in_a_queue_has_not_started() {
    let bench = bench("unstarted");
    bench.write("hold", "", 0o644);
    let child = command(&bench, "run --site home:1 --site lab=home:2,scheduler=slurm sleep 60");
    let child = { child }.spawn().unwrap();
    await_file(&bench, "queue/script");
    let said = |line: &str| {
        let done = finish(command(&bench, line).spawn().unwrap());
        String::from_utf8_lossy(&done.output).into_owned() + &done.errors
    };
    let began = Instant::now();
    while !said("ps --long").contains("queued") {
        assert!(began.elapsed() < Duration::from_secs(60), "it is not in the queue");
    }
    let listed = said("ps");
    assert!(listed.lines().nth(1).unwrap().contains(" queued "), "{listed}");
    let shown = said("where");
    assert!(
        shown.contains("ranks 1-2: not started: queued: Slurm job 17"),
        "{shown}"
    );
    let json: serde_json::Value = serde_json::from_str(&said("where --json")).unwrap();
    let unstarted = |rank: usize| json["ranks"][rank]["unstarted"].clone();
    assert!(
        unstarted(1).as_str().unwrap().starts_with("queued") && unstarted(0).is_null(),
        "{json}"
    );
    let shown = said("top --once");
    assert!(shown.contains("whose processes have not begun yet"), "{shown}");
    bench.await_processes("sleep 60", 1);
    let job = said("ps").lines().nth(1).unwrap()[..8].to_owned();
    let refused = said(&format!("signal {job} USR1 --site lab"));
    assert!(
        refused.contains("no process has started yet that could get it: 'lab' is queued"),
        "{refused}"
    );
    // The one at home gets it.
    assert_eq!(said(&format!("signal {job} TERM")), "");
    finish(child);
    assert_over(&bench);
}

#[test]
fn an_interrupt_takes_a_waiting_job_out_of_the_queue() {
    let bench = bench("waiting");
    bench.write("hold", "", 0o644);
    let child = command(&bench, "run --site home:2,scheduler=slurm true")
        .spawn()
        .unwrap();
    await_file(&bench, "queue/script");
    // When the scheduler expects to start it stands in ps, for people and for programs.
    let began = Instant::now();
    let mut listed = serde_json::Value::Null;
    while listed["expected_start_unix_seconds"].is_null() && began.elapsed() < Duration::from_secs(60) {
        let json = finish(command(&bench, "ps --json").spawn().unwrap()).output;
        let all: serde_json::Value = serde_json::from_slice(&json).unwrap();
        listed = all["jobs"][0]["subjobs"][0].clone();
    }
    assert_eq!(listed["expected_start_unix_seconds"].as_u64(), Some(FAR), "{listed}");
    assert!(
        listed["since_unix_seconds"].as_u64().is_some_and(|since| since < FAR),
        "{listed}"
    );
    let listed = String::from_utf8(finish(command(&bench, "ps --long").spawn().unwrap()).output).unwrap();
    assert!(
        listed.contains("Slurm job 17, Priority, for ") && listed.contains(", expected to start in "),
        "{listed}"
    );
    signal("-INT", &child.id().to_string());
    let done = finish(child);
    assert_eq!(done.code(), Some(130), "{done:?}");
    assert!(
        done.errors
            .contains("waits in the queue (Priority), expected to start in "),
        "{}",
        done.errors
    );
    assert_eq!(await_file(&bench, "queue/cancelled").trim(), "--quiet 17");
    assert_over(&bench);
}
