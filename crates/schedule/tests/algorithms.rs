// SPDX-License-Identifier: Apache-2.0
//! The list of algorithms is complete, and every algorithm has its cost card.

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn spec_lists_every_algorithm_and_each_has_a_cost_card() {
    let room = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = std::fs::read_to_string(room.join("../../spec/algorithms.tsv")).unwrap();
    let rows = table
        .lines()
        .filter(|l| !l.starts_with('#'))
        .map(|l| l.split('\t').collect::<Vec<_>>());
    let listed: BTreeSet<String> = rows
        .map(|row| {
            assert_eq!(row.len(), 6, "{row:?}");
            format!("{}/{}", row[0], row[1])
        })
        .collect();
    let mut found = BTreeSet::new();
    // What is no algorithm: what those of a folder share.
    let shared = ["mod.rs", "sides.rs", "edges.rs"];
    for folder in std::fs::read_dir(room.join("src")).unwrap().map(|e| e.unwrap().path()) {
        let other = ["check", "cost", "simulate"];
        if !folder.is_dir() || other.iter().any(|name| folder.ends_with(name)) {
            continue;
        }
        for file in std::fs::read_dir(&folder)
            .unwrap()
            .map(|e| e.unwrap().path())
            .filter(|f| !shared.iter().any(|name| f.ends_with(name)))
        {
            let text = std::fs::read_to_string(&file).unwrap();
            for line in [
                "| messages |",
                "| trips |",
                "| bytes |",
                "| restrictions |",
                "| paper |",
            ] {
                assert!(text.contains(line), "{} has no cost card with {line}", file.display());
            }
            let name = |p: &Path| p.file_stem().unwrap().to_string_lossy().into_owned();
            found.insert(format!("{}/{}", name(&folder), name(&file)));
        }
    }
    assert_eq!(listed, found);
}
