// SPDX-License-Identifier: Apache-2.0
//! Lengths of files and functions: a report, and findings where a limit without a reason is broken.
//! `ci/sizes.txt` holds the reasons: `PATH[:FUNCTION] reason`.

use super::source::{Finding, Source};
use crate::tree::{self, Result};

/// Above this a file must be explained, above the next it must be split.
const EXPLAIN_FILE: usize = 600;
const SPLIT_FILE: usize = 900;
/// Longest function outside tests, lines.
const LONGEST_FUNCTION: usize = 80;

const REASONS: &str = "ci/sizes.txt";

/// What was measured.
pub(super) struct Report {
    pub(super) summary: String,
    pub(super) findings: Vec<Finding>,
}

pub(super) fn measure(sources: &[Source]) -> Result<Report> {
    Ok(with_reasons(sources, &tree::read(REASONS)?))
}

fn with_reasons(sources: &[Source], reasons: &str) -> Report {
    let explained = |key: &str| {
        reasons.lines().any(|line| {
            line.split_once(' ')
                .is_some_and(|(k, why)| k == key && !why.trim().is_empty())
        })
    };
    let (mut findings, mut functions, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    let mut needed = Vec::new();
    for source in sources.iter().filter(|s| !s.is_generated() && !s.is_test()) {
        let length = source.text.lines().count();
        lines.push(length);
        if length > EXPLAIN_FILE {
            needed.push(source.path.clone());
        }
        if length > SPLIT_FILE {
            findings.push(format!("{}: {length} lines: split it", source.path));
        } else if length > EXPLAIN_FILE && !explained(&source.path) {
            findings.push(format!(
                "{}: {length} lines: split it, or explain it in {REASONS}",
                source.path
            ));
        }
        for (name, length) in function_lengths(&source.code) {
            functions.push(length);
            let key = format!("{}:{name}", source.path);
            let long = length > LONGEST_FUNCTION;
            if long && !explained(&key) {
                findings.push(format!(
                    "{}: function {name} has {length} lines: split it, or explain it in {REASONS}",
                    source.path
                ));
            }
            needed.extend(long.then_some(key));
        }
    }
    let keys = reasons.lines().filter_map(|line| line.split(' ').next());
    let stale = keys.filter(|key| !needed.iter().any(|needed| needed == key));
    findings.extend(stale.map(|key| format!("{REASONS}: {key}: is short or gone: delete the line")));
    let summary = format!(
        "files: {}\nfunctions: {}",
        distribution(&mut lines),
        distribution(&mut functions)
    );
    Report { summary, findings }
}

fn distribution(values: &mut [usize]) -> String {
    values.sort_unstable();
    let at = |share: usize| {
        values
            .get((values.len().max(1) - 1) * share / 100)
            .copied()
            .unwrap_or(0)
    };
    format!(
        "{} of them, median {} lines, 90th percentile {}, longest {}",
        values.len(),
        at(50),
        at(90),
        at(100)
    )
}

/// Name and number of lines of each function with a body.
fn function_lengths(code: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at..];
        let name: String = rest[3..]
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        if let Some(end) = body_end(rest).filter(|_| !name.is_empty()) {
            found.push((name, rest[..end].lines().count()));
        }
    }
    found
}

/// End of the body of the function that `code` begins with; `None` for a declaration.
fn body_end(code: &str) -> Option<usize> {
    let (mut nesting, mut braces) = (0_i32, 0_i32);
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => nesting += 1,
            ')' | ']' => nesting -= 1,
            ';' if braces == 0 && nesting == 0 => return None,
            '{' => braces += 1,
            '}' => {
                braces -= 1;
                if braces <= 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured_by_their_braces() {
        let code = "trait T { fn a(x: [u8; 2]); }\nfn b() {\n  if x { y }\n}\nfn c() {}\n";
        assert_eq!(function_lengths(code), [("b".to_owned(), 3), ("c".to_owned(), 1)]);
    }

    fn found(text: &str, reasons: &str) -> Vec<Finding> {
        with_reasons(&[Source::of("crates/x/src/a.rs", text)], reasons).findings
    }

    #[test]
    fn what_is_too_long_needs_a_reason_and_a_reason_something_too_long() {
        let file = "x\n".repeat(601);
        assert_eq!(found(&file, "").len(), 1);
        assert!(found(&file, "crates/x/src/a.rs a reason\n").is_empty());
        assert_eq!(found(&"x\n".repeat(901), "crates/x/src/a.rs a reason\n").len(), 1);
        assert_eq!(
            found("x\n", "crates/x/src/a.rs a reason\n"),
            ["ci/sizes.txt: crates/x/src/a.rs: is short or gone: delete the line"]
        );
        let function = format!("fn f() {{\n{}}}\n", "x;\n".repeat(79));
        assert_eq!(found(&function, "").len(), 1);
        assert!(found(&function, "crates/x/src/a.rs:f a reason\n").is_empty());
    }

    #[test]
    fn percentiles_of_nothing_are_zero() {
        assert!(distribution(&mut []).starts_with("0 of them, median 0"));
    }
}
