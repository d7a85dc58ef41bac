// SPDX-License-Identifier: Apache-2.0
//! Circles of imports inside a room: files that need each other, so that none can be read first.
//!
//! An arrow goes from a file to each file of its room whose module it names, by `crate::…` or `super::…`. Declaring a
//! module is no arrow.

use std::collections::{BTreeMap, BTreeSet};

use super::source::Source;

/// A module: the names from the root of its crate.
type Path = Vec<String>;

/// Number of files in circles, by room.
pub(super) fn by_room(sources: &[Source]) -> BTreeMap<String, usize> {
    let mut rooms: BTreeMap<&str, BTreeMap<Path, &Source>> = BTreeMap::new();
    let ours = sources.iter().filter(|s| !s.is_test() && !s.is_generated());
    for source in ours {
        if let Some(path) = module(&source.path) {
            rooms.entry(source.room()).or_default().insert(path, source);
        }
    }
    let counted = rooms
        .into_iter()
        .map(|(room, files)| (room.to_owned(), in_circles(&arrows(&files))));
    counted.filter(|(_, number)| *number > 0).collect()
}

/// The module that a file below `src` is.
fn module(path: &str) -> Option<Path> {
    let (_, inside) = path.split_once("/src/")?;
    let mut names: Path = inside.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    if matches!(names.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        names.pop();
    }
    Some(names)
}

/// For every file the files that it names, all by their number.
fn arrows(files: &BTreeMap<Path, &Source>) -> Vec<BTreeSet<usize>> {
    let numbers: BTreeMap<&Path, usize> = files.keys().zip(0..).collect();
    let of_file = |(from, source): (&Path, &&Source)| {
        let named = names(&source.code, from);
        let to = named.iter().filter_map(|path| file_of(path, &numbers));
        to.filter(|to| Some(to) != numbers.get(from).as_ref().copied())
            .collect()
    };
    files.iter().map(of_file).collect()
}

/// The file with the longest part of this path; the root itself does not count, whose items are re-exports.
fn file_of(path: &Path, numbers: &BTreeMap<&Path, usize>) -> Option<usize> {
    let mut path = path.clone();
    while !path.is_empty() {
        if let Some(number) = numbers.get(&path) {
            return Some(*number);
        }
        path.pop();
    }
    None
}

/// Paths from the root of the crate that the code of module `own` names.
fn names(code: &str, own: &Path) -> Vec<Path> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let mut base = if start == "crate::" { Vec::new() } else { own.clone() };
            base.pop();
            let mut rest = &code[at + start.len()..];
            while let Some(up) = rest.strip_prefix("super::") {
                base.pop();
                rest = up;
            }
            leaves(rest, &base, &mut found);
        }
    }
    found
}

/// The paths of a use tree, without what follows it.
fn leaves(text: &str, base: &Path, found: &mut Vec<Path>) {
    let mut path = base.clone();
    let mut rest = text.trim_start();
    loop {
        if let Some(group) = rest.strip_prefix('{') {
            for part in parts(group) {
                leaves(part, &path, found);
            }
            return;
        }
        let length = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        if length > 0 {
            path.push(rest[..length].to_owned());
        }
        match rest[length..].strip_prefix("::") {
            Some(more) => rest = more,
            None => break,
        }
    }
    found.push(path);
}

/// The parts of a group, up to the brace that ends it.
fn parts(group: &str) -> Vec<&str> {
    let (mut depth, mut from, mut found) = (0_i32, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                found.push(&group[from..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&group[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    found.retain(|part| !part.trim().is_empty());
    found
}

/// How many of these reach themselves.
fn in_circles(arrows: &[BTreeSet<usize>]) -> usize {
    let reaches_itself = |start: usize| {
        let mut seen = BTreeSet::new();
        let mut open: Vec<usize> = arrows[start].iter().copied().collect();
        while let Some(at) = open.pop() {
            if at == start {
                return true;
            }
            if seen.insert(at) {
                open.extend(&arrows[at]);
            }
        }
        false
    };
    (0..arrows.len()).filter(|&at| reaches_itself(at)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(files: &[(&str, &str)]) -> usize {
        let sources: Vec<Source> = files.iter().map(|(path, text)| Source::of(path, text)).collect();
        by_room(&sources).into_values().sum()
    }

    #[test]
    fn a_planted_circle_is_found() {
        let a = ("crates/x/src/a.rs", "use crate::{b::{B, C}, c};");
        let b = ("crates/x/src/b.rs", "fn f() { super::a::g() }");
        let c = ("crates/x/src/c.rs", "use std::fmt;");
        assert_eq!(count(&[a, b, c]), 2);
        assert_eq!(count(&[a, c]), 0);
    }

    #[test]
    fn a_module_and_its_child_that_name_each_other_are_one() {
        let parent = ("crates/x/src/m/mod.rs", "mod child;\nuse crate::m::child::C;");
        let child = ("crates/x/src/m/child.rs", "use super::P;");
        assert_eq!(count(&[parent, child]), 2);
        assert_eq!(count(&[("crates/x/src/m/mod.rs", "mod child;"), child]), 0);
    }

    #[test]
    fn tests_close_no_circle() {
        let a = ("crates/x/src/a.rs", "use crate::b::B;");
        let b = ("crates/x/src/b.rs", "#[cfg(test)]\nmod tests { use crate::a::A; }");
        assert_eq!(count(&[a, b]), 0);
    }
}
