// SPDX-License-Identifier: Apache-2.0
//! Subjobs that fail or are late before the job begins, and what is told of it.

use crate::bench::{Bench, finish};
use crate::schedulers;

fn events(bench: &Bench) -> String {
    std::fs::read_to_string(bench.root.join("work/events")).unwrap_or_default()
}

/// The states of a site in the order in which they were told.
fn states(bench: &Bench, site: &str) -> Vec<String> {
    let text = events(bench);
    let lines = text
        .lines()
        .map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap());
    let of_site = lines.filter(|e| e["event"] == "state" && e["site"] == site);
    let mut states: Vec<String> = of_site.map(|e| e["state"].as_str().unwrap().to_owned()).collect();
    states.dedup();
    states
}

#[test]
fn states_pass_in_their_order() {
    let bench = Bench::new("states");
    let done = bench.run(&format!(
        "run --events events --site home:1 --site lab:1 {}",
        Bench::fake()
    ));
    assert_eq!(done.code(), Some(0), "{done:?}");
    for site in ["home", "lab"] {
        let mut passed = states(&bench, site);
        // Whoever is there first waits for the other one.
        passed.retain(|state| state != "ready");
        assert_eq!(passed, ["connecting", "staging", "starting", "running", "done"]);
    }
    let text = events(&bench);
    assert!(text.lines().next().unwrap().contains("\"begin\"") && text.lines().last().unwrap().contains("\"end\""));
}

#[test]
fn states_as_lines() {
    let bench = Bench::new("state-lines");
    let done = bench.run(&format!("run --progress lines -n 1 {}", Bench::fake()));
    for state in ["staging", "starting", "running", "done"] {
        assert!(
            done.errors.contains(&format!("site 'home': {state}\n")),
            "{}",
            done.errors
        );
    }
}

#[test]
fn an_optional_site_that_cannot_be_reached_is_passed_over() {
    let bench = Bench::new("optional");
    let done = bench.run(&format!(
        "run --site home:1 --site refused:2,need=optional --site lab:1 {}",
        Bench::fake()
    ));
    assert_eq!(done.code(), Some(0), "{done:?}");
    assert_eq!(done.lines().len(), 2);
    assert!(done.lines()[1].starts_with("rank 1 of 2"), "{:?}", done.lines());
    assert!(
        done.errors.contains("site 'refused'") && done.errors.contains("the job goes on without it"),
        "{}",
        done.errors
    );
}

#[test]
fn a_required_site_that_cannot_be_reached_ends_the_job() {
    let bench = Bench::new("required");
    let done = bench.run(&format!(
        "run --site home:1 --site refused:2,need=required {}",
        Bench::fake()
    ));
    assert_eq!((done.code(), done.output.len()), (Some(1), 0), "{done:?}");
    assert_eq!(done.errors.matches("error:").count(), 1, "{}", done.errors);
}

#[test]
fn a_substitute_takes_the_place_of_a_site() {
    let bench = Bench::new("substitute");
    let done = bench.run(&format!(
        "run --events events --site home:1 --site refused:2,substitute=unknown,substitute=lab {}",
        Bench::fake()
    ));
    assert_eq!(done.code(), Some(0), "{done:?}");
    assert_eq!(done.lines().len(), 3);
    assert!(
        done.errors.contains("trying 'unknown'") && done.errors.contains("trying 'lab'"),
        "{}",
        done.errors
    );
    assert!(bench.root.join("sites/lab").exists() && events(&bench).matches("\"substitute\"").count() == 2);
}

#[test]
fn a_site_that_is_silent_is_late() {
    let bench = Bench::new("late");
    let done = bench.run(&format!(
        "run --site home:1 --site silent:2,need=optional,start_timeout=1s {}",
        Bench::fake()
    ));
    assert_eq!(done.code(), Some(0), "{done:?}");
    assert!(
        done.errors.contains("after its start time-out of 1 s"),
        "{}",
        done.errors
    );
    let done = bench.run(&format!(
        "run --site home:1 --site silent:2,start_timeout=1s {}",
        Bench::fake()
    ));
    assert_eq!((done.code(), done.output.len()), (Some(1), 0), "{done:?}");
    assert!(
        done.errors.contains("error: site 'silent'") && done.errors.contains("1 s"),
        "{}",
        done.errors
    );
}

#[test]
fn a_subjob_in_a_queue_is_cancelled_when_the_job_goes_on_without_it() {
    let bench = schedulers::bench("queued");
    bench.write("hold", "", 0o644);
    let line = format!(
        "run --events events --site home:2 --site lab=home:2,scheduler=slurm,need=optional,start_timeout=2s {}",
        Bench::fake()
    );
    let done = finish(schedulers::command(&bench, &line).spawn().unwrap());
    schedulers::assert_over(&bench);
    assert_eq!(done.code(), Some(0), "{done:?}");
    assert!(
        done.errors.contains("it waits in its scheduler's queue"),
        "{}",
        done.errors
    );
    assert_eq!(states(&bench, "lab"), ["connecting", "staging", "queued", "failed"]);
    assert_eq!(done.lines().len(), 2);
}

#[test]
fn a_subjob_without_barrier_is_a_world_of_its_own() {
    let bench = Bench::new("worlds");
    let done = bench.run(&format!(
        "run --site home:2 --site own=home:1,start=none --site lab:1 --site alone=home:1,world=own {}",
        Bench::fake()
    ));
    assert_eq!(done.code(), Some(0), "{done:?}");
    let of: Vec<String> = done
        .lines()
        .iter()
        .map(|l| l.split(" certificate").next().unwrap().to_owned())
        .collect();
    assert_eq!(
        of,
        [
            "rank 0 of 1",
            "rank 0 of 1",
            "rank 0 of 3",
            "rank 1 of 3",
            "rank 2 of 3"
        ]
    );
}

#[test]
fn a_job_file_says_the_same_as_rsl() {
    let bench = Bench::new("terms");
    let fake = Bench::fake();
    bench.write(
        "work/job.toml",
        format!(
            "program = \"{fake}\"\n[[subjob]]\nsite = \"home\"\n[[subjob]]\nsite = \"refused\"\nneed = \"optional\"\nstart_timeout = \"20s\"\n"
        ),
        0o644,
    );
    bench.write(
        "work/job.rsl",
        format!(
            "+ ( & (resourceManagerContact=home) (count=1) (executable={fake}) )\n  \
             ( & (resourceManagerContact=refused) (count=1) (subjobNeed=optional) (subjob_start_timeout=20) (executable={fake}) )"
        ),
        0o644,
    );
    for file in ["job.toml", "job.rsl"] {
        let done = bench.run(&format!("run {file}"));
        assert_eq!((done.code(), done.lines().len()), (Some(0), 1), "{file}: {done:?}");
    }
    bench.write(
        "work/job.toml",
        "program = \"x\"\n[[subjob]]\nsite = \"home\"\nneed = \"perhaps\"\nstart = \"late\"\n",
        0o644,
    );
    let done = bench.run("run job.toml");
    assert!(
        done.errors.contains("job.toml:4:8") && done.errors.contains("job.toml:5:9"),
        "{}",
        done.errors
    );
}

#[test]
fn a_job_ends_at_its_time_limit() {
    let bench = Bench::new("limit");
    let done = bench.run(&format!(
        "run --time 1s --site home:1 --site lab:1 {} hang",
        Bench::fake()
    ));
    assert_eq!(done.code(), Some(124), "{done:?}");
    assert!(done.errors.contains("reached its time limit of 1 s"), "{}", done.errors);
}
