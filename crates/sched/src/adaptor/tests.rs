// SPDX-License-Identifier: Apache-2.0
//! Command lines and answers of all adaptors. Those of Slurm and Grid Engine were taken from the real ones; those of
//! PBS and LSF follow their manuals.

use super::*;
use crate::NodeAgent;
use crate::schedulers::adaptor;

fn agent() -> NodeAgent {
    NodeAgent {
        binary: "/b".into(),
        hash: "00".into(),
        size: 1,
        spool: "/s".into(),
        addresses: vec!["10.0.0.1".into()],
        port: 9,
        fingerprint: "ff".into(),
    }
}

fn asked(scheduler: Scheduler) -> Allocation {
    Allocation {
        queue: "debug".into(),
        account: "p1".into(),
        limit: 5400,
        nodes: 2,
        exclusive: true,
        directives: vec!["--x".into(), "a b; $(c)".into()],
        ..Allocation::new(scheduler)
    }
}

fn submit(allocation: &Allocation, count: u32) -> Result<Command, Refusal> {
    let agent = agent();
    adaptor(allocation.scheduler).submit(&Request {
        name: "isthmus-1",
        count,
        allocation,
        agent: &agent,
    })
}

fn line(allocation: &Allocation, count: u32) -> String {
    let command = submit(allocation, count).unwrap();
    assert!(command.input.starts_with("#!/bin/sh\n") && !command.input.contains('\0'));
    format!("{} {}", command.program, command.arguments.join("|"))
}

fn said(status: i32, output: &str, errors: &str) -> Output {
    Output {
        status: Some(status),
        output: output.into(),
        errors: errors.into(),
    }
}

fn state(scheduler: Scheduler, output: &Output) -> State {
    let id = JobId::new("12").unwrap();
    adaptor(scheduler).polled(&id, output).unwrap()
}

#[test]
fn everything_asked_for_reaches_the_command_line() {
    let slurm = line(&asked(Scheduler::Slurm), 5);
    assert!(slurm.starts_with("sbatch --parsable|"), "{slurm}");
    assert!(
        slurm.ends_with(
            "--job-name=isthmus-1|--ntasks=5|--nodes=2|--ntasks-per-node=3|--time=01:30:00|--partition=debug|--account=p1|\
             --exclusive|--x|a b; $(c)"
        ),
        "{slurm}"
    );
    let mut grid_engine = asked(Scheduler::GridEngine);
    assert!(submit(&grid_engine, 5).unwrap_err().reason.contains("number of nodes"));
    grid_engine.nodes = 0;
    let grid_engine = line(&grid_engine, 5);
    assert!(
        grid_engine.ends_with("-N|isthmus-1|-q|debug|-P|p1|-l|h_rt=5400|-l|exclusive=true|-pe|*|5|-w|e|--x|a b; $(c)"),
        "{grid_engine}"
    );
    let pbs = line(&asked(Scheduler::Pbs), 5);
    assert!(
        pbs.ends_with(
            "-N|isthmus-1|-l|select=1:ncpus=3:mpiprocs=3+1:ncpus=2:mpiprocs=2|-l|place=scatter:excl|-l|walltime=01:30:00|-q|debug|\
             -A|p1|--x|a b; $(c)"
        ),
        "{pbs}"
    );
    let lsf = line(&asked(Scheduler::Lsf), 5);
    assert!(
        lsf.contains("-J|isthmus-1|-n|5|") && lsf.ends_with("-R|span[ptile=3]|-W|1:30|-q|debug|-P|p1|-x|--x|a b; $(c)"),
        "{lsf}"
    );
}

#[test]
fn nothing_asked_for_leaves_it_to_the_scheduler() {
    for (scheduler, never) in [
        (
            Scheduler::Slurm,
            ["--time", "--partition", "--account", "--nodes", "--exclusive"],
        ),
        (Scheduler::GridEngine, ["-q", "-P", "h_rt", "-pe", "exclusive"]),
        (Scheduler::Pbs, ["walltime", "-q", "-A", "excl", "scatter"]),
        (Scheduler::Lsf, ["-W", "-q", "-P", "ptile", "-x"]),
    ] {
        let line = line(&Allocation::new(scheduler), 1);
        let words: Vec<_> = line.split(['|', '=']).collect();
        assert!(never.iter().all(|n| !words.contains(n)), "{line}");
    }
    let pinned = Allocation {
        directives: vec!["-pe".into(), "mpi".into(), "4".into()],
        ..Allocation::new(Scheduler::GridEngine)
    };
    assert_eq!(line(&pinned, 4).matches("-pe").count(), 1);
    // What hosts measure is not known when a job is only looked at.
    let measured = Allocation {
        directives: vec!["-l".into(), "mem_free=2G".into()],
        ..Allocation::new(Scheduler::GridEngine)
    };
    assert!(!line(&measured, 1).contains("-w|e"));
}

#[test]
fn schedulers_that_can_be_seen_through_get_no_secret() {
    let private: Vec<_> = Scheduler::ALL
        .into_iter()
        .filter(|s| adaptor(*s).carries_environment())
        .collect();
    assert_eq!(private, [Scheduler::Slurm]);
}

#[test]
fn scripts_are_scripts() {
    for scheduler in Scheduler::ALL {
        let script = agent().script(adaptor(scheduler).nodes());
        let checked = std::process::Command::new("sh")
            .args(["-n", "-c", &script])
            .output()
            .unwrap();
        assert!(
            checked.status.success() && checked.stderr.is_empty(),
            "{scheduler}: {checked:?}"
        );
    }
}

#[test]
fn identifiers() {
    for (scheduler, answer, id) in [
        (Scheduler::Slurm, "17\n", "17"),
        (Scheduler::Slurm, "Welcome\n17;cluster\n", "17"),
        (Scheduler::GridEngine, "3\n", "3"),
        (Scheduler::Pbs, "12.server.example.org\n", "12.server.example.org"),
        (
            Scheduler::Lsf,
            "Job <17> is submitted to default queue <normal>.\n",
            "17",
        ),
    ] {
        let found = adaptor(scheduler).submitted(&said(0, answer, "")).unwrap();
        assert_eq!(found.as_str(), id);
    }
    for text in ["", "-1", "1 2", "x", "1;rm", "1\n2", &"1".repeat(65)] {
        assert_eq!(JobId::new(text), None, "{text}");
    }
    let odd = adaptor(Scheduler::Slurm)
        .submitted(&said(0, "--help\n", ""))
        .unwrap_err();
    assert!(odd.reason.contains("'--help' holds no job identifier"), "{odd:?}");
}

#[test]
fn refusals_are_one_clear_sentence() {
    for (scheduler, errors, reason, hint) in [
        (
            Scheduler::Slurm,
            "sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job submission failed: Invalid partition name specified\n",
            "Slurm refused the job: invalid partition specified: nope; Batch job submission failed: Invalid partition name specified",
            "sinfo",
        ),
        (
            Scheduler::Slurm,
            "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified\n",
            "Slurm refused the job: Batch job submission failed: Invalid account or account/partition combination specified",
            "sacctmgr",
        ),
        (
            Scheduler::Slurm,
            "sbatch: error: Batch job submission failed: Invalid qos specification\n",
            "Slurm refused the job: Batch job submission failed: Invalid qos specification",
            "sacctmgr show associations user=$USER format=Account,QOS",
        ),
        (
            Scheduler::GridEngine,
            "Unable to run job: Job was rejected because job requests unknown queue \"nope\".\nExiting.\n",
            "Grid Engine refused the job: Job was rejected because job requests unknown queue \"nope\".",
            "qconf -sql",
        ),
        (
            Scheduler::GridEngine,
            "Unable to run job: unknown resource \"exclusive\".\nExiting.\n",
            "Grid Engine refused the job: unknown resource \"exclusive\".",
            "qconf -sc",
        ),
        (
            Scheduler::Pbs,
            "qsub: Unknown queue\n",
            "PBS refused the job: Unknown queue",
            "qstat -Q",
        ),
        (
            Scheduler::Lsf,
            "nope: No such queue. Job not submitted.\n",
            "LSF refused the job: nope: No such queue",
            "bqueues",
        ),
    ] {
        let refusal = adaptor(scheduler).submitted(&said(1, "", errors)).unwrap_err();
        assert_eq!(refusal.reason, reason);
        assert!(refusal.hint.starts_with(hint), "{refusal:?}");
    }
}

#[test]
fn slurm_states() {
    let of = |line: &str| state(Scheduler::Slurm, &said(0, line, ""));
    assert_eq!(of("PENDING|Resources\n"), State::Queued(Wait::because("Resources")));
    assert_eq!(of("PENDING|None\n"), State::Queued(Wait::default()));
    let at = |start| {
        State::Queued(Wait {
            start,
            ..Wait::because("Priority")
        })
    };
    assert_eq!(of("PENDING|Priority|1795788300\n"), at(Some(1_795_788_300)));
    for unsaid in ["N/A", "", "2026-11-27T14:05:00"] {
        assert_eq!(of(&format!("PENDING|Priority|{unsaid}\n")), at(None));
    }
    assert_eq!(of("RUNNING|None|1795788300\n"), State::Running);
    for never in ["PartitionTimeLimit", "QOSMaxCpuPerJobLimit"] {
        assert_eq!(of(&format!("PENDING|{never}\n")), State::Never(never.into()));
    }
    assert_eq!(of("RUNNING|None\n"), State::Running);
    assert_eq!(of("COMPLETING|TimeLimit\n"), State::Ending(Cause::TimeLimit));
    assert_eq!(of("TIMEOUT|TimeLimit\n"), State::Ended(Cause::TimeLimit));
    assert_eq!(of("CANCELLED|None\n"), State::Ended(Cause::said("it was cancelled")));
    assert_eq!(of("NODE_FAIL|NodeDown\n"), State::Ended(Cause::said("a node failed")));
    assert_eq!(of("COMPLETED|None\n"), State::Ended(Cause::Unsaid));
    assert_eq!(
        of("BOOT_FAIL|Whatever\n"),
        State::Ended(Cause::said("BOOT_FAIL, Whatever"))
    );
    assert_eq!(of(""), State::Unknown);
    let forgotten = said(1, "", "slurm_load_jobs error: Invalid job id specified\n");
    assert_eq!(state(Scheduler::Slurm, &forgotten), State::Unknown);
    let down = said(
        1,
        "",
        "squeue: error: Unable to contact slurm controller (connect failure)\n",
    );
    let id = JobId::new("12").unwrap();
    let refusal = adaptor(Scheduler::Slurm).polled(&id, &down).unwrap_err();
    assert!(
        refusal.reason.starts_with("Slurm does not answer: Unable to contact"),
        "{refusal:?}"
    );
}

#[test]
fn grid_engine_states() {
    let table = |code: &str| {
        format!(
            "job-ID  prior   name       user         state submit/start at     queue                          slots ja-task-ID \n\
             -----------------------------------------------------------------------------------------------------------------\n\
             \u{20}    2 0.55500 other      root         r     11/21/2026 17:30:00 all.q@a2                           1        \n\
             \u{20}    12 0.55500 isthmus-1  root         {code:<5} 11/21/2026 17:30:00 all.q@a2                           2        \n"
        )
    };
    let of = |code: &str| state(Scheduler::GridEngine, &said(0, &table(code), ""));
    assert_eq!(of("qw"), State::Queued(Wait::because("qw")));
    assert_eq!(of("hqw"), State::Queued(Wait::because("hqw")));
    assert_eq!(of("t"), State::Running);
    assert_eq!(of("r"), State::Running);
    assert_eq!(of("dr"), State::Ending(Cause::Unsaid));
    assert!(matches!(of("Eqw"), State::Ended(Cause::Other(why)) if why.contains("Eqw")));
    assert_eq!(state(Scheduler::GridEngine, &said(0, "", "")), State::Unknown);
    let account = |failed: &str, status: &str| {
        let text = format!(
            "======\nqname        all.q\nfailed       {failed}\nexit_status  {status}                  (Killed)\n"
        );
        adaptor(Scheduler::GridEngine).cause(&said(0, &text, "")).unwrap()
    };
    assert_eq!(account("0", "0"), Cause::Unsaid);
    assert_eq!(account("0", "3").to_string(), "its script ended with status 3");
    assert_eq!(account("100 : assumedly after job", "137"), Cause::Killed);
    assert_eq!(
        account("37  : qmaster enforced h_rt, h_cpu, or h_vmem limit", "137"),
        Cause::TimeLimit
    );
    assert_eq!(
        adaptor(Scheduler::GridEngine).cause(&said(1, "", "error: job id 12 not found\n")),
        None
    );
}

#[test]
fn pbs_states() {
    let of = |text: &str| {
        state(
            Scheduler::Pbs,
            &said(0, &format!("Job Id: 12.server\n    Job_Name = isthmus-1\n{text}"), ""),
        )
    };
    let waits = "    job_state = Q\n    comment = Not Running: Not enough free nodes available\n";
    assert_eq!(
        of(waits),
        State::Queued(Wait::because("Not Running: Not enough free nodes available"))
    );
    // Two days whose seconds `date -u -d` tells, one of them behind a day that is not always there.
    for (text, start) in [
        ("Fri Nov 27 14:05:00 2026", Some(1_795_788_300)),
        ("Wed Mar  1 00:00:00 2028", Some(1_835_481_600)),
        ("Thu Jan  1 00:00:01 1970", Some(1)),
        ("soon", None),
        ("Fri Nov 27 14:99:00 2026", None),
    ] {
        let estimated = format!("    job_state = Q\n    estimated.start_time = {text}\n");
        assert!(
            matches!(of(&estimated), State::Queued(wait) if wait.start == start),
            "{text}"
        );
    }
    let never = "Can Never Run: Insufficient amount of resource: ncpus (R: 9 A: 4 T: 4)";
    assert_eq!(
        of(&format!("    job_state = Q\n    comment = {never}\n")),
        State::Never(never.into())
    );
    assert_eq!(of("    job_state = R\n"), State::Running);
    assert_eq!(
        of("    job_state = F\n    Exit_status = 0\n"),
        State::Ended(Cause::Unsaid)
    );
    assert_eq!(
        of("    job_state = F\n    Exit_status = -29\n"),
        State::Ended(Cause::TimeLimit)
    );
    assert_eq!(
        of("    job_state = F\n    Exit_status = 271\n"),
        State::Ended(Cause::said("it was ended by signal 15"))
    );
    assert_eq!(
        state(Scheduler::Pbs, &said(153, "", "qstat: Unknown Job Id 12.server\n")),
        State::Unknown
    );
}

#[test]
fn lsf_states() {
    let of = |line: &str| state(Scheduler::Lsf, &said(0, line, ""));
    assert_eq!(
        of("PEND|-|-|New job is waiting for scheduling;\n"),
        State::Queued(Wait::because("New job is waiting for scheduling;"))
    );
    assert_eq!(of("RUN|-|-|-\n"), State::Running);
    assert_eq!(of("DONE|0|-|-\n"), State::Ended(Cause::Unsaid));
    assert_eq!(
        of("EXIT|140|TERM_RUNLIMIT: job killed after reaching LSF run time limit|-\n"),
        State::Ended(Cause::TimeLimit)
    );
    assert_eq!(
        of("EXIT|3|-|-\n"),
        State::Ended(Cause::said("its script ended with status 3"))
    );
    assert_eq!(
        state(Scheduler::Lsf, &said(255, "", "Job <12> is not found\n")),
        State::Unknown
    );
}

#[test]
fn a_job_that_is_gone_counts_as_cancelled() {
    let id = JobId::new("12").unwrap();
    for (scheduler, errors) in [
        (
            Scheduler::Slurm,
            "scancel: error: Kill job error on job id 12: Invalid job id specified\n",
        ),
        (Scheduler::GridEngine, "denied: job \"12\" does not exist\n"),
        (Scheduler::Pbs, "qdel: Unknown Job Id 12.server\n"),
        (Scheduler::Lsf, "Job <12>: Job has already finished\n"),
    ] {
        let adaptor = adaptor(scheduler);
        assert_eq!(adaptor.cancelled(&id, &said(1, "", errors)), Ok(()));
        assert_eq!(adaptor.cancelled(&id, &said(0, "", "")), Ok(()));
        assert!(
            adaptor
                .cancelled(&id, &said(1, "", "no permission\n"))
                .unwrap_err()
                .reason
                .contains("no permission")
        );
        assert_eq!(adaptor.cancel(&id).arguments.last().map(String::as_str), Some("12"));
    }
}

#[test]
fn nonsense_is_read_without_harm() {
    for bytes in [
        &b""[..],
        b"|",
        b"12 a b c d\0x",
        b"\xff\xfe|<>",
        b"failed\nexit_status\n",
        b"Job <",
    ] {
        crate::fuzz(bytes);
    }
}

/// Runs a scheduler's lines with stand-ins for its commands: what the agents on the nodes are told, sorted.
fn nodes_told(scheduler: Scheduler, name: &str, environment: &[(&str, &str)]) -> Vec<String> {
    use std::os::unix::fs::PermissionsExt;
    let directory = std::env::temp_dir().join(format!("isthmus-nodes-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    // All of them take options, a host (srun: none), and a command.
    let remote = "#!/bin/sh\nwhile test \"${1#-}\" != \"$1\"; do shift; done\nshift 3\necho remote \"$@\"\n";
    let srun = "#!/bin/sh\nwhile test \"${1#-}\" != \"$1\"; do shift; done\n\
                SLURM_NODEID=0 \"$@\"; SLURM_NODEID=1 \"$@\"\n";
    for (command, script) in [
        ("qrsh", remote),
        ("pbs_tmrsh", remote),
        ("blaunch", remote),
        ("srun", srun),
    ] {
        let path = directory.join(command);
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let hosts = directory.join("hosts");
    let list = match scheduler {
        Scheduler::GridEngine => {
            "far 1 all.q@far UNDEFINED\n$HERE 2 all.q@here UNDEFINED\nfar 1 other.q@far UNDEFINED\n"
        }
        _ => "one\none\ntwo\n",
    };
    let here = rustix::system::uname().nodename().to_string_lossy().into_owned();
    std::fs::write(&hosts, list.replace("$HERE", &here)).unwrap();
    let said = std::process::Command::new("sh")
        .args(["-c", adaptor(scheduler).nodes()])
        .env(
            "PATH",
            format!("{}:{}", directory.display(), std::env::var("PATH").unwrap()),
        )
        .env("ISTHMUS_NODE", "echo local \"$@\"")
        .env("ISTHMUS_SPOOL", &directory)
        .env("HOSTS", &hosts)
        .envs(
            environment
                .iter()
                .map(|(n, v)| (*n, v.replace("HOSTS", &hosts.to_string_lossy()))),
        )
        .output()
        .unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(said.status.success() && said.stderr.is_empty(), "{said:?}");
    let mut lines: Vec<_> = String::from_utf8(said.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    lines
}

#[test]
fn every_node_of_an_allocation_is_reached() {
    let slurm = [("SLURM_JOB_NUM_NODES", "2"), ("SLURM_TASKS_PER_NODE", "2,1")];
    assert_eq!(
        nodes_told(Scheduler::Slurm, "slurm", &slurm),
        ["local 0 2 2,1", "local 1 2 2,1"]
    );
    let one = [("SLURM_JOB_NUM_NODES", "1"), ("SLURM_TASKS_PER_NODE", "3")];
    assert_eq!(nodes_told(Scheduler::Slurm, "slurm-1", &one), ["local 0 1 3"]);
    let environment = [("PE_HOSTFILE", "HOSTS")];
    assert_eq!(
        nodes_told(Scheduler::GridEngine, "ge", &environment),
        ["local 1 2 2", "remote 0 2 2"]
    );
    let serial = [("NSLOTS", "1"), ("PE_HOSTFILE", "")];
    assert_eq!(nodes_told(Scheduler::GridEngine, "ge-1", &serial), ["local 0 1 1"]);
    let environment = [("PBS_NODEFILE", "HOSTS")];
    assert_eq!(
        nodes_told(Scheduler::Pbs, "pbs", &environment),
        ["local 0 2 2", "remote 1 2 1"]
    );
    let environment = [("LSB_MCPU_HOSTS", "one 2 two 1")];
    assert_eq!(
        nodes_told(Scheduler::Lsf, "lsf", &environment),
        ["local 0 2 2", "remote 1 2 1"]
    );
}
