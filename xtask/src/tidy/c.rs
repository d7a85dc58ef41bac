// SPDX-License-Identifier: Apache-2.0
//! Sources in C: functions and files are as short as those in Rust.

use super::source::Finding;
use crate::tree::{self, Result};

/// Longest function, lines.
const LONGEST_FUNCTION: usize = 80;
/// Longest file, lines.
const LONGEST_FILE: usize = 600;

pub(super) fn check() -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for suffix in [".c", ".h", ".cpp"] {
        for path in tree::files(".", suffix)? {
            // The header of the standard is generated, too.
            if !path.contains("generated/") && path != "include/mpi.h" {
                findings.extend(of_file(&path, &tree::read(&path)?));
            }
        }
    }
    Ok(findings)
}

fn of_file(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if lines > LONGEST_FILE {
        findings.push(format!("{path}: {lines} lines: split it"));
    }
    for function in functions(text) {
        let Function { line, length } = function;
        if length > LONGEST_FUNCTION {
            findings.push(format!("{path}:{line}: a function of {length} lines: split it"));
        }
    }
    findings
}

struct Function {
    /// Where it begins, from 1.
    line: usize,
    length: usize,
}

/// From a line that begins with a word and has a parenthesis to the next brace at the beginning of a line.
fn functions(text: &str) -> Vec<Function> {
    let mut begun = None;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let head = line.split('(').next().unwrap_or_default();
        let begins = line.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && line.contains('(')
            && !head.contains('=')
            && !line.trim_end().ends_with(';');
        if line.starts_with('}') {
            found.extend(begun.take().map(|line| Function {
                line,
                length: number - line + 1,
            }));
        } else if begins {
            begun = Some(number);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        of_file("a.c", text).len()
    }

    #[test]
    fn a_long_function_is_found() {
        let function = |lines: usize| format!("static int f(void)\n{{\n{}}}\n", "    x();\n".repeat(lines - 3));
        assert_eq!(found(&function(300)), 1);
        assert_eq!(found(&function(81)), 1);
        assert_eq!(found(&function(80)), 0);
        assert_eq!(found(&function(60).repeat(10)), 0);
        assert_eq!(found(&function(61).repeat(10)), 1);
    }
}
