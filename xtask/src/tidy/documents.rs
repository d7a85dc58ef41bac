// SPDX-License-Identifier: Apache-2.0
//! Texts: every room has a README.md, every file that a text names exists, every source says its licence.

use super::Finding;
use crate::tree::{self, Result};

/// Directories whose contents texts name from the top.
const TOP_DIRECTORIES: [&str; 10] = [
    "crates/",
    "spec/",
    "ci/",
    "scripts/",
    "include/",
    "xtask/",
    "examples/",
    "tests/",
    "docs/",
    "fuzz/",
];

const LICENCE: &str = "SPDX-License-Identifier: Apache-2.0";

pub(super) fn check() -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for manifest in tree::files("crates", "Cargo.toml")? {
        let readme = manifest.replace("Cargo.toml", "README.md");
        if !exists(&readme) {
            findings.push(format!("{readme}: missing: every room has one"));
        }
    }
    for document in tree::files(".", ".md")? {
        named_files(document.trim_start_matches("./"), &mut findings)?;
    }
    for suffix in [".rs", ".c", ".h", ".cpp", ".sh", ".py", "CMakeLists.txt"] {
        licences(suffix, &mut findings)?;
    }
    Ok(findings)
}

fn licences(suffix: &str, findings: &mut Vec<Finding>) -> Result<()> {
    for path in tree::files(".", suffix)? {
        if !tree::read(&path)?.lines().take(2).any(|line| line.contains(LICENCE)) {
            findings.push(format!("{path}: the first line does not say {LICENCE}"));
        }
    }
    Ok(())
}

fn named_files(document: &str, findings: &mut Vec<Finding>) -> Result<()> {
    let text = tree::read(document)?;
    let directory = document.rsplit_once('/').map_or("", |(directory, _)| directory);
    for (number, line) in text.lines().enumerate() {
        for name in line.split('`').skip(1).step_by(2).filter(|name| is_file_name(name)) {
            let here = |inside: &str| exists(&format!("{directory}/{inside}{name}"));
            if !(exists(name) || here("") || here("src/")) {
                findings.push(format!("{document}:{}: there is no `{name}`", number + 1));
            }
        }
    }
    Ok(())
}

/// Whether a quoted word names a file of ours: a path from the top, or a Rust source.
fn is_file_name(word: &str) -> bool {
    let plain = word
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'/'));
    let ours = TOP_DIRECTORIES.iter().any(|top| word.starts_with(top)) || word.ends_with(".rs");
    plain && ours && !word.contains("..")
}

fn exists(relative: &str) -> bool {
    tree::root().join(relative.trim_start_matches('/')).exists()
}
