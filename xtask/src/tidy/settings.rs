// SPDX-License-Identifier: Apache-2.0
//! Every `ISTHMUS_…` in the sources has a row in `spec/settings.tsv`, and every row is used.

use std::collections::BTreeMap;

use super::Finding;
use super::source::Source;
use crate::spec::Spec;
use crate::tree::Result;

pub(super) fn check(sources: &[Source]) -> Result<Vec<Finding>> {
    let settings = Spec::load()?.settings;
    let used = names_used(sources);
    let mut findings = Vec::new();
    for (name, path) in &used {
        if !settings.iter().any(|row| row[0] == *name) {
            findings.push(format!("{path}: {name} has no row in spec/settings.tsv"));
        }
    }
    for row in settings.iter().filter(|row| !used.contains_key(row[0].as_str())) {
        findings.push(format!("spec/settings.tsv: nothing reads {}", row[0]));
    }
    Ok(findings)
}

/// String literals that are names of settings, with a file that has them.
fn names_used(sources: &[Source]) -> BTreeMap<&str, &str> {
    let mut used = BTreeMap::new();
    for source in sources.iter().filter(|s| !s.is_generated() && !s.is_test()) {
        // The part after the tests' beginning is blank in `code`; what is before it is read as it stands.
        let end = source.code.trim_end().len();
        for (at, _) in source.text.match_indices("\"ISTHMUS_").take_while(|(at, _)| *at < end) {
            let name = source.text[at + 1..].split(['"', '=']).next().unwrap_or_default();
            if name.len() > "ISTHMUS_".len()
                && name
                    .bytes()
                    .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
            {
                used.insert(name, source.path.as_str());
            }
        }
    }
    used
}
