// SPDX-License-Identifier: Apache-2.0
//! Faults that are there already and may only become fewer: `ci/shrinking.txt` says how many each room has.
//!
//! | rule | what is counted in a room |
//! | --- | --- |
//! | `circles` | files whose imports close a circle inside the room |
//! | `folders` | folders inside a room whose arrows lead back to them |
//! | `fields` | fields that other files see, in rooms that count them ([`FIELDS`]) |
//! | `columns` | comment lines wider than 120 columns, but for rows of tables |
//! | `methods` | methods of objects above 40 each |
//! | `tuples` | parameters of functions whose type is a tuple |
//! | `paragraphs` | paragraphs of documents with more than 80 words |
//!
//! A room that is not listed has none. More than listed is a finding; fewer is said, so that the number can be lowered.

use std::collections::BTreeMap;

use super::source::{Finding, Source};
use super::{circles, folders, methods, prose};
use crate::tree::{self, Result};

const LIST: &str = "ci/shrinking.txt";
const COLUMNS: usize = 120;
/// Rooms of which each part keeps its own state: fields that other files see are counted there.
const FIELDS: [&str; 1] = ["engine"];

/// Rule and room.
type Key = (&'static str, String);

pub(super) struct Report {
    pub(super) summary: String,
    pub(super) findings: Vec<Finding>,
}

pub(super) fn check(sources: &[Source]) -> Result<Report> {
    let listed = parse(&tree::read(LIST)?)?;
    let mut found = count(sources);
    let paragraphs = prose::by_room()?.into_iter();
    found.extend(paragraphs.map(|(room, number)| (("paragraphs", room), number)));
    Ok(compare(&found, &listed))
}

/// `RULE ROOM NUMBER` on each line.
fn parse(text: &str) -> Result<BTreeMap<(String, String), usize>> {
    let lines = text.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
    let rows = lines.map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [rule, room, number] => match number.parse() {
                Ok(number) => Ok((((*rule).to_owned(), (*room).to_owned()), number)),
                Err(_) => Err(format!("{LIST}: `{line}`: expected RULE ROOM NUMBER")),
            },
            _ => Err(format!("{LIST}: `{line}`: expected RULE ROOM NUMBER")),
        }
    });
    rows.collect()
}

fn compare(found: &BTreeMap<Key, usize>, listed: &BTreeMap<(String, String), usize>) -> Report {
    let allowed = |rule: &str, room: &str| listed.get(&(rule.to_owned(), room.to_owned())).copied().unwrap_or(0);
    let (mut findings, mut fewer) = (Vec::new(), Vec::new());
    for ((rule, room), number) in found {
        let most = allowed(rule, room);
        if *number > most {
            findings.push(format!("{room}: {rule}: {number}, of at most {most} ({LIST})"));
        } else if *number < most {
            fewer.push(format!("{rule} {room} {number}"));
        }
    }
    for (rule, room) in listed.keys() {
        if !found.keys().any(|(r, n)| r == rule && n == room) {
            findings.push(format!(
                "{LIST}: {rule} {room}: there is none any more: delete the line"
            ));
        }
    }
    let total = |rule: &str| -> usize { found.iter().filter(|((r, _), _)| *r == rule).map(|(_, n)| n).sum() };
    let mut summary = format!(
        "to shrink: {} files and {} folders in circles, {} fields seen by other files of the engine, {} wide comments, {} methods above 40 \
         of an object, {} tuples as parameters, {} long paragraphs",
        total("circles"),
        total("folders"),
        total("fields"),
        total("columns"),
        total("methods"),
        total("tuples"),
        total("paragraphs")
    );
    if !fewer.is_empty() {
        summary.push_str(&format!("\nfewer than {LIST} says: {}", fewer.join(", ")));
    }
    Report { summary, findings }
}

fn count(sources: &[Source]) -> BTreeMap<Key, usize> {
    let mut found = BTreeMap::new();
    let mut add = |rule: &'static str, room: &str, number: usize| {
        if number > 0 {
            *found.entry((rule, room.to_owned())).or_default() += number;
        }
    };
    for source in sources.iter().filter(|s| !s.is_generated()) {
        add("columns", source.room(), wide_comments(&source.text));
        if !source.is_test() {
            add("tuples", source.room(), tuple_parameters(&source.code));
            if FIELDS.contains(&source.room()) {
                add("fields", source.room(), seen_fields(&source.code));
            }
        }
    }
    for (room, files) in circles::by_room(sources) {
        add("circles", &room, files);
    }
    for (room, folders) in folders::by_room(sources) {
        add("folders", &room, folders);
    }
    for (room, number) in methods::by_room(sources) {
        add("methods", &room, number);
    }
    found
}

/// Lines that are comments, or have one after code, and are too wide. A row of a table cannot be broken.
fn wide_comments(text: &str) -> usize {
    let wide = text.lines().filter(|line| line.chars().count() > COLUMNS);
    let row = |line: &str| line.trim_start_matches(['/', '!', ' ']).starts_with('|');
    wide.filter(|line| line.trim_start().starts_with("//") && !row(line.trim_start()) || line.contains(" // "))
        .count()
}

/// Fields that are visible outside of the module that declares them.
fn seen_fields(code: &str) -> usize {
    let is_seen = |line: &&str| {
        let Some(rest) = line.trim_start().strip_prefix("pub") else {
            return false;
        };
        let rest = match rest.strip_prefix('(') {
            Some(inside) => inside.split_once(')').map_or("", |(_, rest)| rest),
            None => rest,
        };
        let name = rest.trim_start().split(':').next().unwrap_or_default();
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        line.starts_with(' ') && is_name && rest.contains(": ")
    };
    code.lines().filter(is_seen).count()
}

/// Parameters of functions whose type begins with a parenthesis: a tuple, with names or without.
fn tuple_parameters(code: &str) -> usize {
    let heads = code.match_indices("fn ").filter_map(|(at, _)| parameters(&code[at..]));
    heads.map(|head| tuples_in(&head)).sum()
}

/// Between the parentheses of the function that `code` begins with, white space left out.
fn parameters(code: &str) -> Option<String> {
    let name = code[3..].find('(')?;
    let generic = &code[3..3 + name];
    if generic.contains(['{', ';', ')']) || generic.trim().is_empty() {
        return None;
    }
    let mut depth = 0_i32;
    let mut out = String::new();
    for c in code[3 + name..].chars() {
        depth += match c {
            '(' | '[' => 1,
            ')' | ']' => -1,
            _ => 0,
        };
        if !c.is_whitespace() {
            out.push(c);
        }
        if depth == 0 {
            return Some(out);
        }
    }
    None
}

fn tuples_in(head: &str) -> usize {
    let mut found = 0;
    for (at, _) in head.match_indices(":(").chain(head.match_indices(":&(")) {
        let open = head[at..].find('(').unwrap_or_default() + at;
        let mut depth = 0_i32;
        let mut commas = 0;
        for c in head[open..].chars() {
            match c {
                '(' | '<' | '[' => depth += 1,
                ')' | '>' | ']' => depth -= 1,
                ',' if depth == 1 => commas += 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        found += usize::from(commas > 0);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_comment_is_found() {
        let planted = format!("/// {}\nfn f() {{}}\n", "x".repeat(117));
        assert_eq!(wide_comments(&planted), 1);
        assert_eq!(wide_comments(&format!("/// {}\n", "x".repeat(116))), 0);
        assert_eq!(wide_comments(&format!("//! | {} |\n", "x".repeat(116))), 0);
        assert_eq!(wide_comments(&format!("f(); // {}\n", "x".repeat(113))), 1);
    }

    #[test]
    fn a_field_that_other_files_see_is_found() {
        let planted =
            "pub struct A {\n    pub(crate) a: u8,\n    pub b: Vec<u8>,\n    c: u8,\n    pub(super) d: u8,\n}\n";
        assert_eq!(seen_fields(planted), 3);
        let none = "impl A {\n    pub fn f(a: u8) -> u8 {}\n    pub(crate) const N: u8 = 1;\n}\npub mod a;\n";
        assert_eq!(seen_fields(none), 0);
    }

    #[test]
    fn a_tuple_as_a_parameter_is_found() {
        assert_eq!(tuple_parameters("fn f(&mut self, (a, b): (A, Option<B>), c: u8) {}"), 1);
        assert_eq!(tuple_parameters("fn f(\n    a: &(u8, u8),\n) -> (u8, u8) {}"), 1);
        assert_eq!(
            tuple_parameters("fn f(a: impl Fn(u8, u8), b: Vec<(u8, u8)>, c: ()) {}"),
            0
        );
    }

    #[test]
    fn more_than_listed_is_a_finding_and_fewer_is_said() {
        let listed = parse("# rule room number\ntuples net 2\ncolumns shm 1\n").unwrap();
        let found = |n| BTreeMap::from([(("tuples", "net".to_owned()), n), (("columns", "shm".to_owned()), 1)]);
        assert!(compare(&found(2), &listed).findings.is_empty());
        assert_eq!(
            compare(&found(3), &listed).findings,
            ["net: tuples: 3, of at most 2 (ci/shrinking.txt)"]
        );
        assert!(compare(&found(1), &listed).summary.ends_with("tuples net 1"));
        let gone = BTreeMap::from([(("tuples", "net".to_owned()), 2)]);
        assert_eq!(compare(&gone, &listed).findings.len(), 1);
    }
}
