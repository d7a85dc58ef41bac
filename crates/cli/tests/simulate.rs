// SPDX-License-Identifier: Apache-2.0
//! `isthmus simulate` and `isthmus explain` as their users meet them, with the example's grid.
#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::Value;
use std::process::{Command, Output};

const GRID: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/grid.toml");

fn isthmus(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_isthmus"))
        .args(words)
        .output()
        .unwrap()
}

fn good(words: &[&str]) -> String {
    let output = isthmus(words);
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{words:?}: {complaint}");
    String::from_utf8(output.stdout).unwrap()
}

/// What is complained about, with exit status 2.
fn refused(words: &[&str]) -> String {
    let output = isthmus(words);
    assert_eq!(output.status.code(), Some(2), "{words:?}");
    assert!(output.stdout.is_empty(), "{words:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn json_of_a_broadcast() {
    let text = good(&["simulate", "bcast", "8", "--topology", GRID, "--root", "5", "--json"]);
    let all: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&all["processes"], &all["root"], &all["block_bytes"]),
        (&24.into(), &5.into(), &8.into())
    );
    // Inside nodes processes take steps together.
    let messages = |i: usize| all["levels"][i]["messages"].as_u64().unwrap();
    assert_eq!([0, 1, 2, 3, 4].map(messages), [2, 3, 0, 0, 0]);
    let finished: Vec<f64> = all["finished_seconds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t.as_f64().unwrap())
        .collect();
    assert_eq!(finished.len(), 24);
    assert_eq!(finished.iter().copied().reduce(f64::max), all["seconds"].as_f64());
    // From paris: 20 ms to boston, then half a millisecond between its machines.
    assert!(all["seconds"].as_f64().unwrap() > 0.0205);
    let path = all["critical_path"].as_array().unwrap();
    assert_eq!(path.last().unwrap()["end_seconds"], all["seconds"]);
    let links = all["links"].as_array().unwrap();
    assert_eq!(
        (&links[0]["from"], &links[0]["to"]),
        (&"paris".into(), &"boston".into())
    );
}

#[test]
fn text_names_ranks_links_and_the_path() {
    let text = good(&["simulate", "allreduce", "64KiB", "--topology", GRID]);
    for part in [
        "24 processes on 3 sites",
        "wide area",
        "paris -> tokyo",
        "rank 23 after",
        "critical path:",
    ] {
        assert!(text.contains(part), "no '{part}' in: {text}");
    }
}

#[test]
fn explanations_name_candidates_and_what_they_cost() {
    let json: Value =
        serde_json::from_str(&good(&["explain", "allreduce", "8MiB", "--topology", GRID, "--json"])).unwrap();
    let chosen = |c: &&Value| c["chosen"] == true;
    assert_eq!(json["candidates"].as_array().unwrap().iter().filter(chosen).count(), 1);
    let text = good(&["explain", "allreduce", "8MiB", "--topology", GRID]);
    for part in [
        "candidate ",
        "  flat ",
        "  tree ",
        "wide area: exchange among 3",
        "further pieces",
        "critical path:",
    ] {
        assert!(text.contains(part), "no '{part}' in: {text}");
    }
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("* ") && !line.starts_with("* chosen: "))
            .count(),
        1,
        "one is chosen: {text}"
    );
    // It does not cost least, and that is explained; what repeats in the critical path is one line.
    assert!(
        text.contains("* chosen: the first in the list of those that cost at most 6.2 % more"),
        "{text}"
    );
    assert!(text.contains("349528 bytes, 16 times"), "{text}");
    let barrier = good(&["explain", "barrier", "--topology", GRID]);
    assert!(barrier.contains("\n* "), "{barrier}");
}

#[test]
fn a_drawing_is_well_formed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("bcast.svg");
    let file = file.to_str().unwrap();
    _ = good(&["explain", "bcast", "64KiB", "--topology", GRID, "--svg", file]);
    let drawing = std::fs::read_to_string(file).unwrap();
    assert!(drawing.starts_with("<svg xmlns=") && drawing.trim_end().ends_with("</svg>"));
    let open = |name: &str| drawing.matches(&format!("<{name}")).count();
    let closed = |name: &str| drawing.matches(&format!("</{name}>")).count();
    assert_eq!(open("text"), closed("text"));
    assert_eq!(open("title"), closed("title"));
    // Every quoted value ends, and nothing but elements begins with '<'.
    assert_eq!(drawing.matches('"').count() % 2, 0);
    assert_eq!(drawing.matches('<').count(), drawing.matches('>').count());
    assert!(drawing.contains("23 tokyo"));
}

#[test]
fn jobs_of_a_machines_own_mpi_take_steps_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("g.toml");
    let jobs = "[[site]]\nname = \"a\"\nnodes = 4\nprocesses = 2\nmpi = true\n";
    std::fs::write(&file, format!("{jobs}[[site]]\nname = \"b\"\nprocesses = 2\n")).unwrap();
    let name = file.to_str().unwrap();
    let json: Value = serde_json::from_str(&good(&["explain", "barrier", "--topology", name, "--json"])).unwrap();
    let candidates = json["candidates"].as_array().unwrap();
    let taken: Vec<&Value> = candidates.iter().filter(|c| c["chosen"] == true).collect();
    assert_eq!((taken.len(), &taken[0]["natively"]), (1, &Value::Bool(true)));
    assert!(candidates.iter().any(|c| c["natively"] == false));
    assert_eq!(json["levels"][3]["messages"], 0);
    let text = good(&["explain", "barrier", "--topology", name]);
    for part in [
        "* flat, vendor",
        "vendor MPI: up among 8 on 4 nodes",
        "vendor MPI    2 of at most 8 members: together",
    ] {
        assert!(text.contains(part), "no '{part}' in: {text}");
    }
    std::fs::write(&file, jobs).unwrap();
    // What has plans of ours there has them here.
    let neighbours = good(&[
        "simulate",
        "neighbor_alltoall",
        "1KiB",
        "--dims",
        "4x2",
        "--topology",
        name,
    ]);
    assert!(neighbours.contains("vendor MPI"), "{neighbours}");
    _ = good(&["simulate", "allreduce", "1KiB", "--groups", "4", "--topology", name]);
    let text = refused(&["explain", "barrier", "--topology", name]);
    assert!(
        text.contains("in one job of a machine's own MPI") && text.contains("leave out 'mpi = true'"),
        "{text}"
    );
}

#[test]
fn mistakes_are_pointed_out() {
    assert!(refused(&["simulate", "bcst", "8", "--topology", GRID]).contains("'bcst' is not an operation"));
    assert!(refused(&["simulate", "bcast", "8 parsecs", "--topology", GRID]).contains("is not a size"));
    assert!(refused(&["simulate", "bcast", "--topology", GRID]).contains("no size is given"));
    assert!(refused(&["explain", "bcast", "8", "--topology", GRID, "--root", "24"]).contains("24 processes"));
    assert!(refused(&["explain", "barrier", "--topology", GRID, "--root", "2"]).contains("has none"));
    assert!(refused(&["simulate", "bcast", "8", "--topology", "none.toml"]).contains("cannot read topology file"));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("g.toml");
    std::fs::write(&file, "[[site]]\nname = \"a\"\nproceses = 3\n").unwrap();
    let text = refused(&["simulate", "bcast", "8", "--topology", file.to_str().unwrap()]);
    assert!(text.contains("g.toml:3:1: unknown key 'proceses' in a site"), "{text}");
    assert!(text.contains("did you mean 'processes'?"), "{text}");
}

#[test]
fn a_large_grid() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("g.toml");
    std::fs::write(
        &file,
        "[[site]]\nname = \"s\"\ncount = 100\nmachines = 2\nprocesses = 5\n",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let text = good(&["simulate", "bcast", "8", "--topology", file]);
    assert!(
        text.contains("1000 processes on 100 sites") && text.contains("links more"),
        "{text}"
    );
    // Too many for a line each: by site.
    let (drawing, tree) = (directory.path().join("d.svg"), directory.path().join("t.svg"));
    let names = [drawing.to_str().unwrap(), tree.to_str().unwrap()];
    _ = good(&[
        "simulate",
        "bcast",
        "8",
        "--topology",
        file,
        "--svg",
        names[0],
        "--tree",
        names[1],
    ]);
    let drawing = std::fs::read_to_string(&drawing).unwrap();
    assert!(drawing.contains("50 % done") && drawing.contains("class=\"path\""));
    let tree = std::fs::read_to_string(&tree).unwrap();
    // Every site, and a way to each but the root's.
    assert_eq!(tree.matches("<circle").count(), 100);
    assert_eq!(tree.matches("<polygon").count(), 99);
    // Of few processes: boxes of sites and machines, and a way to everybody, if only through shared memory.
    let file = directory.path().join("few.svg");
    _ = good(&[
        "explain",
        "bcast",
        "64KiB",
        "--topology",
        GRID,
        "--tree",
        file.to_str().unwrap(),
    ]);
    let tree = std::fs::read_to_string(&file).unwrap();
    let count = |what: &str| tree.matches(what).count();
    assert_eq!(
        (count("class=\"site\""), count("class=\"machine\""), count("<circle")),
        (3, 6, 24)
    );
    assert!(
        count("<polygon") + count("class=\"met\"") >= 23 && count("class=\"met\"") == 18,
        "{tree}"
    );
    assert!(tree.contains(">paris</text>"));
}

#[test]
fn unequal_blocks_neighbours_and_groups() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("sizes");
    let sizes = |count: u32| (0..count).map(|i| format!("{i} KiB # rank {i}\n")).collect::<String>();
    let name = format!("@{}", file.to_str().unwrap());
    std::fs::write(&file, sizes(24)).unwrap();
    let json = |words: &[&str]| -> Value {
        let text = good(&[words, &["--topology", GRID, "--json"]].concat());
        serde_json::from_str(&text).unwrap()
    };
    let bytes = |all: &Value| all["levels"][0]["bytes"].as_u64().unwrap();
    let gathered = json(&["simulate", "gatherv", &name]);
    // The blocks of ranks 8 to 23 come to paris, and some counts.
    let blocks = (8..24).sum::<u64>() * 1024;
    assert!(
        (blocks..blocks + 4096).contains(&bytes(&gathered)),
        "{}",
        bytes(&gathered)
    );
    for operation in ["scatterv", "allgatherv", "alltoallv", "reduce_scatter"] {
        assert!(bytes(&json(&["simulate", operation, "0..64KiB"])) > 0, "{operation}");
    }
    let neighbours = json(&["simulate", "neighbor_alltoall", "1KiB", "--dims", "6x4"]);
    let messages = |i: usize| neighbours["levels"][i]["messages"].as_u64().unwrap();
    assert_eq!((0..5).map(messages).sum::<u64>(), 24 * 4);
    assert!(bytes(&json(&["simulate", "allreduce", "1KiB", "--groups", "8"])) > 0);
    std::fs::write(&file, "1\n\n 5 parsecs\n").unwrap();
    let with = |words: &[&str]| refused(&[&["simulate"], words, &["--topology", GRID]].concat());
    assert!(with(&["gatherv", &name]).contains("sizes:3:2: '5 parsecs' is not a size"));
    std::fs::write(&file, sizes(23)).unwrap();
    assert!(with(&["gatherv", &name]).contains("23 sizes for 24 processes"));
    assert!(with(&["bcast", "0..8"]).contains("has equal blocks"));
    assert!(with(&["gatherv", "9..8"]).contains("above the second"));
    assert!(with(&["neighbor_alltoall", "8"]).contains("needs --dims"));
    assert!(with(&["neighbor_alltoall", "8", "--dims", "5x5"]).contains("not a grid of 24 processes"));
    assert!(with(&["bcast", "8", "--dims", "24"]).contains("no neighbours"));
    assert!(with(&["scan", "8", "--groups", "8"]).contains("no scan between two groups"));
    assert!(with(&["bcast", "8", "--groups", "24"]).contains("would be empty"));
    assert!(with(&["alltoallw", "8"]).contains("simulate alltoallv"));
}
