// SPDX-License-Identifier: Apache-2.0
//! Jobs described in RSL, PACX-MPI and MPICH-G2 files, run, shown and converted.

use crate::bench::{Bench, Done, finish};

/// Two sites and home, each with a file of its own; the ranks go by index.
fn request(bench: &Bench) -> String {
    let root = bench.root.display();
    for site in ["lab", "far"] {
        std::fs::create_dir_all(bench.root.join("sites").join(site)).unwrap();
        bench.write(
            &format!("sites/{site}/say"),
            format!("#!/bin/sh\necho {site} $WHO $GLOBUS_DUROC_SUBJOB_INDEX $GLOBUS_LAN_ID \"$*\" $PWD\n"),
            0o755,
        );
    }
    format!(
        "(* far comes first in the file and last among the ranks *)\n\
         + ( & (resourceManagerContact = far) (count = 1) (label = \"subjob 2\")\n    \
               (environment = (GLOBUS_DUROC_SUBJOB_INDEX 2) (GLOBUS_LAN_ID woods) (WHO f))\n    \
               (directory = {root}/sites/far) (executable = $(ROOT)/sites/far/say) (arguments = 'a  b' \"--x=y\") )\n  \
           ( & (resourceManagerContact = \"lab:2119/jobmanager-fork\") (count = 2) (label = oaks) (jobtype = mpi)\n    \
               (rslSubstitution = (DIR {root}/sites/lab))\n    \
               (environment = (GLOBUS_DUROC_SUBJOB_INDEX 1) (GLOBUS_LAN_ID woods) (WHO l))\n    \
               (directory = $(DIR)) (executable = $(DIR)/say) )\n  \
           ( & (resourceManagerContact = home) (environment = (GLOBUS_DUROC_SUBJOB_INDEX 0) (WHO h))\n    \
               (executable = /bin/sh) (arguments = -c \"echo home $WHO $GLOBUS_LAN_ID\") )\n"
    )
}

fn good(done: &Done) -> String {
    assert_eq!(done.code(), Some(0), "{done:?}");
    String::from_utf8_lossy(&done.output).into_owned()
}

#[test]
fn a_request_in_rsl_runs_what_the_sites_have() {
    let bench = Bench::new("rsl");
    let text = request(&bench);
    bench.write("work/job.rsl", &text, 0o644);
    let root = bench.root.display();
    let define = format!("--define ROOT={root}");
    let done = bench.run(&format!("run --label {define} job.rsl"));
    let wanted = [
        "[0] home h home".to_owned(),
        format!("[1] lab l 1 woods  {root}/sites/lab"),
        format!("[2] lab l 1 woods  {root}/sites/lab"),
        format!("[3] far f 2 woods a  b --x=y {root}/sites/far"),
    ];
    assert_eq!(done.lines(), wanted, "{done:?}");
    assert!(
        done.errors.contains("the port of this contact has no effect"),
        "{}",
        done.errors
    );

    let shown = good(&bench.run(&format!("run --dry-run {define} --job job.rsl")));
    assert!(
        shown.starts_with("4 processes, 3 subjobs, 2 local networks\n"),
        "{shown}"
    );
    assert!(shown.contains("ranks 1 to 2 on site 'oaks'\n  contact        ssh lab\n  local network  woods"));

    // In another form it is the same job.
    let toml = good(&bench.run(&format!("job convert --to toml {define} job.rsl")));
    bench.write("work/again.toml", &toml, 0o644);
    assert_eq!(bench.run("run --label again.toml").lines(), wanted, "{toml}");
    let rsl = good(&bench.run("run --dump-rsl again.toml"));
    bench.write("work/again", &rsl, 0o644);
    assert_eq!(bench.run("run --label --job again").lines(), wanted, "{rsl}");
    assert_eq!(good(&bench.run("job convert again --to rsl")), rsl);
}

#[test]
fn machines_without_a_program() {
    let bench = Bench::new("machines");
    bench.write(
        "work/pacx",
        "desk tcp 1\nlab tcp 2 (ssh lab mpirun -np 4 {exe})\n",
        0o644,
    );
    bench.write("work/machines", "localhost 1\n\"lab/jobmanager-fork\" 2\n", 0o644);
    let wanted = ["[0] hi", "[1] hi", "[2] hi"];
    for line in [
        "run --label --job pacx echo hi",
        "run --label -n 3 --job machines echo hi",
        "run --label --from machines --job machines echo hi",
    ] {
        assert_eq!(bench.run(line).lines(), wanted, "{line}");
    }
    let shown = good(&bench.run("run --dry-run -n 5 --env A=1 --job machines echo hi"));
    assert!(
        shown.contains("rank 3 on site 'home#2'") && shown.contains("A=1"),
        "{shown}"
    );
    let done = bench.run("job convert pacx --to openmpi");
    assert_eq!(good(&done), "localhost slots=1\nlab slots=2\n");
    assert!(
        done.errors
            .contains("openmpi cannot say: site 'desk': its name ('home' instead)"),
        "{}",
        done.errors
    );
    let mut command = bench.command("run --dry-run --from slurm echo hi");
    let done = finish(
        command
            .env("SLURM_JOB_NODELIST", "n[1-2]")
            .env("SLURM_TASKS_PER_NODE", "2(x2)")
            .spawn()
            .unwrap(),
    );
    assert!(good(&done).contains("ranks 2 to 3 on site 'n2'"), "{done:?}");
}

#[test]
fn mpirun_as_in_mpich_g2() {
    let bench = Bench::new("mpirun");
    let mpirun = bench.root.join("mpirun");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_isthmus"), &mpirun).unwrap();
    bench.write("work/machines", "\"m1.example\" 10\n\"m2.example\" 5\n", 0o644);
    let run = |line: &str| finish(bench.command_of(&mpirun, line).spawn().unwrap());
    let rsl = good(&run("-dumprsl -np 12 -machinefile machines -nostage /p/app 1 2"));
    for part in [
        "+\n( &(resourceManagerContact=\"m1.example\")\n   (count=10)\n   (label=\"subjob 0\")",
        "(label=\"subjob 10\")",
        "(environment=(GLOBUS_DUROC_SUBJOB_INDEX 1))\n   (arguments=1 2)\n   (executable=\"/p/app\")",
    ] {
        assert!(rsl.contains(part), "{part} is not in\n{rsl}");
    }
    bench.write(
        "work/job.rsl",
        "& (executable = /bin/echo) (arguments = $(LOGNAME none)) (count = 2)",
        0o644,
    );
    let done = run("-np 7 -globusrsl job.rsl /other");
    assert_eq!(done.lines().len(), 2, "{done:?}");
    assert!(
        done.errors.contains("'job.rsl' describes the whole job"),
        "{}",
        done.errors
    );
}

#[test]
fn all_mistakes_of_a_file_at_once() {
    let bench = Bench::new("mistakes");
    bench.write(
        "work/a.rsl",
        "+ (& (exectuable = /p) (count = 0) (resourceManagerContact = home))\n  (& (executable = /p) (count 3))\n",
        0o644,
    );
    bench.write(
        "work/b.toml",
        "progam = \"x\"\n[[subjob]]\nsite = \"a\"\ncount = 0\n[[subjob]]\ncuont = 1\nrequests = [\"queue\"]\n",
        0o644,
    );
    bench.write("work/c.hosts", "a:0\nb slots=x\nc speed=1\n", 0o644);
    for (line, places) in [
        (
            "run a.rsl",
            vec!["a.rsl:1:7:", "a.rsl:1:33:", "a.rsl:2:31:", "3 mistakes"],
        ),
        (
            "job convert a.rsl --to toml",
            vec!["a.rsl:1:7:", "a.rsl:2:31:", "did you mean 'executable'?"],
        ),
        (
            "run b.toml",
            vec![
                "b.toml:1:1:",
                "b.toml:4:9:",
                "b.toml:6:1:",
                "b.toml:7:13:",
                "b.toml:5:1:",
            ],
        ),
        (
            "run --job c.hosts true",
            vec!["c.hosts:1:1:", "c.hosts:2:1:", "c.hosts:3:1:"],
        ),
    ] {
        let done = bench.run(line);
        assert_eq!(done.code(), Some(2), "{line}: {done:?}");
        assert!(done.output.is_empty() && !done.errors.contains('\x1b'), "{line}");
        for place in places {
            assert!(
                done.errors.contains(place),
                "{line}: '{place}' is not in\n{}",
                done.errors
            );
        }
    }
}

#[test]
fn what_does_not_go_together() {
    let bench = Bench::new("together");
    bench.write("work/one.rsl", "executable = /bin/true", 0o644);
    bench.write("work/two.rsl", "& (executable = gsiftp://x/y) (stdout = z)", 0o644);
    bench.write("work/machines", "a 1\n", 0o644);
    for (line, part) in [
        ("run -n 2 one.rsl", "describes the whole job"),
        ("run one.rsl more", "describes the whole job"),
        ("run --job machines", "says where to run, but not what"),
        ("run --site a --job machines true", "--site say where the processes run"),
        ("run --from rls --job one.rsl", "'rls' is not a form"),
        ("run --job none.rsl", "cannot read job file 'none.rsl'"),
        (
            "run two.rsl",
            "program 'gsiftp://x/y': 'gsiftp' is not a known kind of URL",
        ),
        ("run -D x one.rsl", "'x' defines nothing"),
        ("run -D x /bin/true", "'x' defines nothing"),
        (
            "run -D A=1 /bin/true",
            "--define A=1 gives a variable of RSL its value, and no RSL is given",
        ),
        (
            "run -D A=1 --job machines /bin/true",
            "its value, and 'machines' is not RSL",
        ),
        ("job convert one.rsl --to xml", "'xml' is not a form"),
    ] {
        let done = bench.run(line);
        assert_eq!(done.code(), Some(2), "{line}: {done:?}");
        assert!(done.errors.contains(part), "{line}: {}", done.errors);
    }
    let done = bench.run("run --site home --dry-run one.rsl");
    assert!(good(&done).contains("this machine"));
    let done = bench.run("job attributes");
    assert!(good(&done).contains("maxWallTime") && good(&done).contains("Refused:"));
}
