// SPDX-License-Identifier: Apache-2.0
//! Texts: every room has a README.md, every file that a text names exists, every source says its licence.

use super::source::{Finding, Source};
use crate::tree::{self, Result};

/// Directories whose contents texts name from the top.
const TOP_DIRECTORIES: [&str; 14] = [
    "adaptors/",
    "bench/",
    "bindings/",
    "conformance/",
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

pub(super) fn check(sources: &[Source]) -> Result<Vec<Finding>> {
    let mut findings = sham_tests(sources);
    for manifest in tree::files("crates", "Cargo.toml")? {
        let readme = manifest.replace("Cargo.toml", "README.md");
        if !exists(&readme) {
            findings.push(format!("{readme}: missing: every room has one"));
        }
    }
    for document in tree::files(".", ".md")? {
        let document = document.trim_start_matches("./");
        named_files(document, &tree::read(document)?, &mut findings);
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

/// Files called tests.rs that are no tests: rules that leave tests alone would leave them alone.
fn sham_tests(sources: &[Source]) -> Vec<Finding> {
    let named = sources
        .iter()
        .filter(|s| s.path.ends_with("/tests.rs") && s.path.contains("/src/"));
    let sham = named.filter(|tests| {
        let directory = tests.path.trim_end_matches("/tests.rs");
        let parents = ["/mod.rs", "/lib.rs", "/main.rs", ".rs"].map(|end| format!("{directory}{end}"));
        let parent = sources.iter().find(|s| parents.contains(&s.path));
        !parent.is_some_and(|parent| parent.text.contains("#[cfg(test)]\nmod tests;"))
    });
    sham.map(|s| format!("{}: only `#[cfg(test)] mod tests;` may have this name", s.path))
        .collect()
}

fn named_files(document: &str, text: &str, findings: &mut Vec<Finding>) {
    let directory = document.rsplit_once('/').map_or("", |(directory, _)| directory);
    for (number, line) in text.lines().enumerate() {
        for name in line.split('`').skip(1).step_by(2).filter(|name| is_file_name(name)) {
            let here = |inside: &str| exists(&format!("{directory}/{inside}{name}"));
            if !(exists(name) || here("") || here("src/")) {
                findings.push(format!("{document}:{}: there is no `{name}`", number + 1));
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_does_not_exist_is_found() {
        let found = |text: &str| {
            let mut findings = Vec::new();
            named_files("crates/wire/README.md", text, &mut findings);
            findings.len()
        };
        for planted in [
            "`adaptors/none.c`",
            "`bench/none.sh`",
            "`conformance/none/run.sh`",
            "`crates/none`",
            "`none.rs`",
        ] {
            assert_eq!(found(planted), 1, "{planted}");
        }
        assert_eq!(found("`adaptors/vendor.c`, `grid.rs`, `src/grid.rs`, none.rs"), 0);
    }

    #[test]
    fn a_module_that_only_looks_like_tests_is_found() {
        let found = |parent: &str| {
            let tests = Source::of("crates/x/src/a/tests.rs", "fn f() {}");
            sham_tests(&[tests, Source::of("crates/x/src/a.rs", parent)]).len()
        };
        assert_eq!(found("mod tests;"), 1);
        assert_eq!(found("#[cfg(test)]\nmod tests;"), 0);
    }
}
