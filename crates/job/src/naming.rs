// SPDX-License-Identifier: Apache-2.0
//! Names that people give to their jobs (`--name`, `name` in a job file), to sites and to local networks.

use crate::error::JobError;
use crate::quoted::shown;

/// Longest name of a job, characters. All of them are ASCII.
const MAX_LENGTH: usize = 64;
/// Characters beside letters and digits.
const SIGNS: &str = "-_.+";

/// The name of a job as its owner chose it.
///
/// It begins with a letter and never looks like the identifier that the launcher gives (eight digits and letters from a
/// to f), so that one word means one of both. It has no `/`: `SITE/JOB` is a job whose coordinator is elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobName(String);

impl JobName {
    /// Checks a name.
    ///
    /// # Errors
    /// What is wrong with it, and what names look like.
    pub fn parse(text: &str) -> Result<Self, JobError> {
        let wrong = |why: &str| {
            let shown = shown(&text.chars().take(MAX_LENGTH).collect::<String>());
            JobError::new(format!("'{shown}' cannot be the name of a job: {why}")).hint(format!(
                "a name has 1 to {MAX_LENGTH} letters, digits and {SIGNS}, and begins with a letter: --name climate-7"
            ))
        };
        let allowed = |c: char| c.is_ascii_alphanumeric() || SIGNS.contains(c);
        if text.is_empty() {
            return Err(wrong("it is empty"));
        }
        if text.len() > MAX_LENGTH {
            return Err(wrong(&format!("it is longer than {MAX_LENGTH} characters")));
        }
        if let Some(other) = text.chars().find(|c| !allowed(*c)) {
            return Err(wrong(&format!("it contains '{}'", shown(&other.to_string()))));
        }
        if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(wrong("it does not begin with a letter"));
        }
        if text.len() == 8 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
            return Err(wrong("it looks like the identifier of another job"));
        }
        Ok(Self(text.to_owned()))
    }

    /// As its owner wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for JobName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Longest name of a site, bytes.
pub const MAX_NAME: usize = 255;

/// Whether this can be the name of a site or of a local network.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), JobError> {
    if name.is_empty() {
        return Err(JobError::new(format!("the name of a {what} is empty")));
    }
    if name.len() > MAX_NAME {
        return Err(JobError::new(format!(
            "the name of a {what} is longer than {MAX_NAME} bytes"
        )));
    }
    if name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(JobError::new(format!(
            "{what} name {name:?} contains white space or control characters"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_words_that_no_identifier_looks_like() {
        for good in [
            "a",
            "climate-7",
            "Run_3.b+c",
            "deadbee",
            "deadbeefs",
            "DEADBEEF",
            &"x".repeat(64),
        ] {
            assert_eq!(JobName::parse(good).map(|n| n.to_string()).as_deref(), Ok(good));
        }
        for (bad, why) in [
            ("", "empty"),
            (&*"x".repeat(65), "longer than 64"),
            ("7up", "begin with a letter"),
            ("-x", "begin with a letter"),
            ("deadbeef", "identifier"),
            ("lab/run", "contains '/'"),
            ("a b", "contains ' '"),
            ("caf\u{e9}", "contains '\u{e9}'"),
            ("a\u{1b}[31m", "contains '\\u{1b}'"),
        ] {
            let error = JobName::parse(bad).unwrap_err();
            assert!(error.problem.contains(why), "{bad:?}: {}", error.problem);
            assert!(!error.problem.contains('\u{1b}'));
        }
    }
}
