// SPDX-License-Identifier: Apache-2.0
//! Settings are read through `crates/settings`: no other code spells the name of one, and every one is read.

use super::source::{Finding, Source};
use crate::spec::Spec;
use crate::tree::Result;

const PREFIX: &str = concat!("ISTHMUS", "_");
/// Variables of our own tests.
const TEST_PREFIX: &str = concat!("ISTHMUS", "_TEST_");
/// Rooms that make or hold the table.
const OWN: [&str; 2] = ["settings", "xtask"];

pub(super) fn check(sources: &[Source]) -> Result<Vec<Finding>> {
    let mut findings: Vec<Finding> = sources.iter().flat_map(spelt).collect();
    for setting in Spec::load()?.settings {
        let constant = setting.name.trim_start_matches(PREFIX);
        let read = |s: &Source| !OWN.contains(&s.room()) && !s.is_test() && uses(&s.code, constant);
        if !sources.iter().any(read) {
            findings.push(format!("spec/settings.tsv: nothing reads {}", setting.name));
        }
    }
    Ok(findings)
}

/// Names of settings, or pieces of names, as literals.
fn spelt(source: &Source) -> Vec<Finding> {
    if OWN.contains(&source.room()) || source.is_test() {
        return Vec::new();
    }
    let part_of_a_name = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || matches!(b, b'_' | b'=');
    let strings = source.strings().into_iter();
    let names =
        strings.filter(|s| s.starts_with(PREFIX) && !s.starts_with(TEST_PREFIX) && s.bytes().all(part_of_a_name));
    names
        .map(|name| {
            format!(
                "{}: \"{name}\": settings are read through isthmus_settings",
                source.path
            )
        })
        .collect()
}

fn uses(code: &str, constant: &str) -> bool {
    let path = format!("isthmus_settings::{constant}");
    code.match_indices(&path).any(|(at, _)| {
        let after = code[at + path.len()..].chars().next();
        !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        spelt(&Source::of("crates/boot/src/a.rs", text)).len()
    }

    #[test]
    fn a_name_is_found_however_it_is_written() {
        assert_eq!(found("env::var(\"ISTHMUS_AWAY\")"), 1);
        assert_eq!(found("env::var(r\"ISTHMUS_AWAY\")"), 1);
        assert_eq!(found("env::var(r#\"ISTHMUS_AWAY\"#)"), 1);
        assert_eq!(found("env::var(concat!(\"ISTHMUS_\", \"AWAY\"))"), 1);
        assert_eq!(found("// größer\nenv::var(\"ISTHMUS_AWAY\")"), 1);
    }

    #[test]
    fn sentences_comments_and_tests_may_name_settings() {
        assert_eq!(
            found("// \"ISTHMUS_AWAY\"\nsay(\"ISTHMUS_ALONE=1 lets each run alone\")"),
            0
        );
        assert_eq!(
            found("#[cfg(test)]\nmod tests { const X: &str = \"ISTHMUS_AWAY\"; }"),
            0
        );
        assert_eq!(found("env::var(\"ISTHMUS_TEST_LONG\")"), 0);
    }
}
