// SPDX-License-Identifier: Apache-2.0
//! What must not be somewhere: operating-system things on the floors of words and thinking, unsafe code outside its
//! rooms, print macros outside the commands.

use super::layers::Layers;
use super::source::{Finding, Source};
use crate::tree::Result;

/// Time, chance, files, sockets: arguments on floors 0 and 1, never taken from the system.
const OPERATING_SYSTEM: [&str; 10] = [
    "std::net",
    "std::fs",
    "std::env",
    "std::thread",
    "std::process",
    "std::os",
    "Instant::now",
    "SystemTime",
    "thread_rng",
    "RandomState",
];

/// Where unsafe code may stand: paths begin with one of these.
const UNSAFE_ROOMS: [&str; 9] = [
    "crates/datatype/src/raw",
    "crates/lock/",
    "crates/shm/",
    "crates/net/",
    "crates/vendor/",
    "crates/mpi/",
    "crates/testbed/src/sys.rs",
    "crates/cli/src/inherited.rs",
    "crates/io/src/released.rs",
];

const PRINT: [&str; 4] = ["println!", "eprintln!", "print!", "eprint!"];
/// Handles with which one prints without a macro.
const WRITERS: [&str; 2] = ["stdout()", "stderr()"];
/// Files that may have them: what is said where there is no launcher, and pipes that happen to be standard streams.
const WRITING_FILES: [&str; 6] = [
    "crates/agent/src/lib.rs",
    "crates/boot/src/saying.rs",
    "crates/discovery/src/serve.rs",
    "crates/gateway/src/lib.rs",
    "crates/mpi/src/process.rs",
    "crates/sched/src/fork.rs",
];
/// Rooms whose business is to talk to people.
const PRINTING_ROOMS: [&str; 5] = ["cli", "bench", "testbed", "xtask", "fuzz"];

/// Where C meets collective operations, and the words with which it would decide how they go: mpi-core does.
const WITHOUT_POLICY: &str = "crates/mpi/src/collective/";
const POLICY: [&str; 14] = [
    "is_native",
    "blocks_natively",
    "run_natively",
    "start_natively",
    "NativeOperation",
    "Collective::",
    "overrides",
    "common_form",
    "steps_together",
    "Together",
    "Network",
    "frame",
    "engine()",
    "isthmus_transport",
];

/// The same for messages.
const MESSAGES_WITHOUT_POLICY: &str = "crates/mpi/src/p2p/";
const MESSAGE_POLICY: [&str; 9] = [
    "is_native",
    "unlike",
    "common_form",
    "send_natively",
    "receive_natively",
    "send_at_once",
    "isend_at_once",
    "receive_directly",
    "irecv_plainly",
];

pub(super) fn check(sources: &[Source]) -> Result<Vec<Finding>> {
    let layers = Layers::load()?;
    let mut findings = Vec::new();
    for source in sources.iter().filter(|s| !s.is_test()) {
        if layers.floor(source.room()).is_some_and(|floor| floor <= 1) {
            system(source, &mut findings);
        }
        policy(source, &mut findings);
        printing(source, &mut findings);
    }
    for source in sources
        .iter()
        .filter(|s| !s.is_test() && !UNSAFE_ROOMS.iter().any(|room| s.path.starts_with(room)))
    {
        unsafe_code(source, &mut findings);
    }
    Ok(findings)
}

/// How an operation goes is decided in one place.
fn policy(source: &Source, findings: &mut Vec<Finding>) {
    if source.path.starts_with(MESSAGES_WITHOUT_POLICY) {
        let why = "how a message goes is decided in mpi-core (p2p/way.rs)";
        find(source, &MESSAGE_POLICY, why, findings);
    }
    if source.path.starts_with(WITHOUT_POLICY) {
        let why = "how a collective operation goes is decided in mpi-core (collective/way.rs)";
        find(source, &POLICY, why, findings);
    }
}

fn printing(source: &Source, findings: &mut Vec<Finding>) {
    let why = "only the commands print";
    if PRINTING_ROOMS.contains(&source.room()) {
        return;
    }
    find(source, &PRINT, why, findings);
    if !WRITING_FILES.contains(&source.path.as_str()) {
        find(source, &WRITERS, why, findings);
    }
}

/// Modules of the standard library that are the system, however they are imported, and calls that ask it.
fn system(source: &Source, findings: &mut Vec<Finding>) {
    let why = "has no place on floors 0 and 1: make it an argument";
    find(source, &OPERATING_SYSTEM, why, findings);
    // `use std::{fs, time::Instant as Clock};` is the same as three lines.
    let code: String = source.code.split_whitespace().collect::<Vec<_>>().join(" ");
    for tree in code.split("use ").skip(1).filter_map(|rest| rest.split(';').next()) {
        let Some(group) = tree.strip_prefix("std::") else {
            continue;
        };
        let renamed = group.contains("Instant as ") || group.contains("SystemTime as ");
        let first = |part: &str| part.split("::").next().unwrap_or_default().trim().to_owned();
        let grouped = group
            .strip_prefix('{')
            .map_or_else(Vec::new, |g| top_parts(g.trim_end_matches('}')));
        let inside = grouped.iter().map(|part| first(part)).find(|name| {
            let name = format!("std::{}", name.split(' ').next().unwrap_or_default());
            OPERATING_SYSTEM.contains(&name.as_str())
        });
        let renamed = renamed.then(|| "a clock under another name".to_owned());
        if let Some(what) = inside.or(renamed) {
            findings.push(format!("{}: use std::…{what}: {why}", source.path));
        }
    }
}

/// The parts of a use group that stand at its top.
fn top_parts(group: &str) -> Vec<String> {
    let (mut depth, mut parts) = (0_i32, vec![String::new()]);
    for c in group.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match (c, parts.last_mut()) {
            (',', _) if depth == 0 => parts.push(String::new()),
            (c, Some(part)) => part.push(c),
            (_, None) => {}
        }
    }
    parts
}

fn unsafe_code(source: &Source, findings: &mut Vec<Finding>) {
    for (number, line) in source.code.lines().enumerate() {
        let after = words(line).skip_while(|w| *w != "unsafe").nth(1);
        // `unsafe extern "C" fn(…)` and `unsafe fn(…)` are types here: naming one needs no unsafe block.
        let is_type = after == Some("extern") || line.contains("unsafe fn(");
        if words(line).any(|w| w == "unsafe") && !is_type {
            findings.push(format!("{}:{}: unsafe code outside its rooms", source.path, number + 1));
        }
    }
    // The root of a room that has one unsafe file denies, which that file lifts; every other root forbids.
    let root = source.path.ends_with("src/lib.rs") || source.path.ends_with("src/main.rs");
    let has_unsafe_file = UNSAFE_ROOMS
        .iter()
        .any(|allowed| allowed.starts_with(&format!("crates/{}/src/", source.room())));
    let denies = has_unsafe_file && source.text.contains("#![deny(unsafe_code)]");
    if root && !denies && !source.text.contains("#![forbid(unsafe_code)]") {
        findings.push(format!("{}: the crate root lacks #![forbid(unsafe_code)]", source.path));
    }
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|w| !w.is_empty())
}

fn find(source: &Source, needles: &[&str], why: &str, findings: &mut Vec<Finding>) {
    for (number, line) in source.code.lines().enumerate() {
        for needle in needles {
            let found = line.match_indices(needle).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
            });
            if found {
                findings.push(format!("{}:{}: {needle}: {why}", source.path, number + 1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        let mut findings = Vec::new();
        system(&Source::of("crates/schedule/src/a.rs", text), &mut findings);
        findings.len()
    }

    #[test]
    fn a_decision_about_collectives_is_found_where_c_is_met() {
        let found = |path: &str, text: &str| {
            let mut findings = Vec::new();
            policy(&Source::of(path, text), &mut findings);
            findings.len()
        };
        let body = "pub(super) fn bcast(member: &Membership) { if member.comm.is_native() { there() } }";
        assert_eq!(found("crates/mpi/src/collective/data.rs", body), 1);
        assert_eq!(found("crates/mpi-core/src/collective/way.rs", body), 0);
        let body = "fn f(c: &Comm) { if c.channel().frame.is_some() { g(schedule::steps_together(c)) } }";
        assert_eq!(found("crates/mpi/src/collective/plain.rs", body), 2);
    }

    #[test]
    fn printing_is_found_without_a_macro_too() {
        let printed = |path, text| {
            let mut findings = Vec::new();
            printing(&Source::of(path, text), &mut findings);
            findings.len()
        };
        assert_eq!(printed("crates/net/src/a.rs", "println!()"), 1);
        assert_eq!(
            printed("crates/net/src/a.rs", "let _ = writeln!(std::io::stderr(), \"x\");"),
            1
        );
        assert_eq!(
            printed("crates/net/src/a.rs", "use std::io::stderr;\nwriteln!(stderr())"),
            1
        );
        assert_eq!(printed("crates/cli/src/a.rs", "println!()"), 0);
        assert_eq!(printed("crates/sched/src/fork.rs", "writeln!(io::stderr())"), 0);
    }

    #[test]
    fn unsafe_code_is_found() {
        let count = |path, text| {
            let mut findings = Vec::new();
            unsafe_code(&Source::of(path, text), &mut findings);
            findings.len()
        };
        assert_eq!(count("crates/wire/src/a.rs", "fn f() { unsafe { g() } }"), 1);
        assert_eq!(count("crates/wire/src/lib.rs", "mod a;"), 1);
        assert_eq!(count("crates/wire/src/lib.rs", "#![forbid(unsafe_code)]\nmod a;"), 0);
    }

    #[test]
    fn the_system_is_found_however_it_is_imported() {
        assert_eq!(found("use std::fs;"), 1);
        assert_eq!(found("use std::{fs, fmt};"), 1);
        assert_eq!(
            found("use std::{\n    collections::BTreeMap,\n    env as surroundings,\n};"),
            1
        );
        assert_eq!(found("use std::time::Instant as Clock;\nfn f() { Clock::now(); }"), 1);
        assert_eq!(
            found("use std::{collections::{BTreeMap, BTreeSet}, fmt, time::Duration};"),
            0
        );
    }
}
