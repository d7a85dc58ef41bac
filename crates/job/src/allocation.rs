// SPDX-License-Identifier: Apache-2.0
//! What a subjob may ask of a scheduler: names, limits, and the checks that no scheduler's command line is left to.

use crate::error::JobError;
use isthmus_settings::nearest;
use isthmus_wire::grid::{Allocation, Scheduler};
use isthmus_wire::word::counted;

/// Word for "no scheduler: children of the agent".
pub const FORK: &str = "fork";
/// Most further options for a scheduler.
pub const MAX_DIRECTIVES: usize = 64;
/// Longest name of a queue or account and longest further option, bytes.
pub const MAX_TEXT: usize = 1024;
/// Longest wall-clock limit, seconds: a year.
pub const MAX_LIMIT: u32 = 366 * 86_400;

/// Every word that names a scheduler, [`FORK`] among them.
pub fn schedulers() -> Vec<&'static str> {
    let mut words = vec![FORK];
    words.extend(Scheduler::ALL.map(Scheduler::keyword));
    words
}

/// A scheduler by its word; `None` is [`FORK`].
pub fn scheduler(word: &str) -> Result<Option<Scheduler>, JobError> {
    if word == FORK {
        return Ok(None);
    }
    // Most of them write their names with capitals.
    let low = word.to_ascii_lowercase();
    let found = Scheduler::ALL.into_iter().find(|s| s.keyword() == low);
    found.or_else(|| also_called(&low)).map(Some).ok_or_else(|| {
        let words = schedulers();
        let hint = match nearest(word, &words) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("known schedulers: {}", words.join(", ")),
        };
        JobError::new(format!("'{word}' is not a scheduler")).hint(hint)
    })
}

/// By the other names that schedulers go by.
fn also_called(word: &str) -> Option<Scheduler> {
    match word {
        "sge" | "uge" | "gridengine" => Some(Scheduler::GridEngine),
        "torque" | "openpbs" | "pbspro" => Some(Scheduler::Pbs),
        _ => None,
    }
}

/// A wall-clock limit in seconds: `90s`, `30min`, `2h`, `1h30min`, `7d`, `HH:MM:SS`.
pub fn limit(text: &str) -> Result<u32, JobError> {
    let seconds = if text.contains(':') { clock(text) } else { units(text) };
    match seconds {
        Some(seconds) if (1..=u64::from(MAX_LIMIT)).contains(&seconds) => Ok(seconds as u32),
        Some(_) => Err(JobError::new(format!(
            "the limit '{text}' is not between 1 s and 366 days"
        ))),
        None => {
            Err(JobError::new(format!("'{text}' is not a time limit"))
                .hint("write 90s, 30min, 2h, 1h30min or HH:MM:SS"))
        }
    }
}

fn clock(text: &str) -> Option<u64> {
    let parts: Vec<u64> = text.split(':').map(number).collect::<Option<_>>()?;
    match parts[..] {
        [hours, minutes @ 0..60, seconds @ 0..60] => Some(hours.checked_mul(3600)? + minutes * 60 + seconds),
        _ => None,
    }
}

fn units(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut sum = 0_u64;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let letters = rest[digits..].bytes().take_while(u8::is_ascii_alphabetic).count();
        let factor = match &rest[digits..digits + letters] {
            "s" => 1,
            "min" | "m" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => return None,
        };
        sum = sum.checked_add(number(&rest[..digits])?.checked_mul(factor)?)?;
        rest = &rest[digits + letters..];
    }
    (!text.is_empty()).then_some(sum)
}

/// Digits only, so few that nothing overflows.
fn number(text: &str) -> Option<u64> {
    let fits = !text.is_empty() && text.len() <= 12 && text.bytes().all(|b| b.is_ascii_digit());
    fits.then(|| text.parse().ok()).flatten()
}

/// Says what is wrong with an allocation for so many processes.
pub(crate) fn check(site: &str, count: u32, allocation: &Allocation) -> Result<(), JobError> {
    for (what, text) in [("a queue", &allocation.queue), ("an account", &allocation.account)] {
        if text.starts_with('-') || text.len() > MAX_TEXT || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(JobError::new(format!(
                "site '{site}': {text:?} cannot be the name of {what}"
            )));
        }
    }
    if allocation.nodes > count {
        let problem = format!(
            "site '{site}': {} for {}",
            counted(allocation.nodes, "node"),
            counted(count, "process")
        );
        return Err(JobError::new(problem).hint("ask for at most one node per process"));
    }
    if allocation.limit > MAX_LIMIT {
        return Err(JobError::new(format!(
            "site '{site}': the limit is longer than 366 days"
        )));
    }
    if allocation.directives.len() > MAX_DIRECTIVES {
        let problem = format!("site '{site}': more than {MAX_DIRECTIVES} directives");
        return Err(JobError::new(problem));
    }
    let wrong = |d: &&String| d.is_empty() || d.len() > MAX_TEXT || d.chars().any(char::is_control);
    if let Some(directive) = allocation.directives.iter().find(wrong) {
        let problem =
            format!("site '{site}': the directive {directive:?} is empty, too long or has control characters");
        return Err(JobError::new(problem)
            .hint("one word of the scheduler's submit command each, such as \"--constraint=fast\""));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_have_the_names_that_people_use() {
        for (word, meant) in [
            ("fork", None),
            ("slurm", Some(Scheduler::Slurm)),
            ("grid-engine", Some(Scheduler::GridEngine)),
            ("sge", Some(Scheduler::GridEngine)),
            ("torque", Some(Scheduler::Pbs)),
            ("openpbs", Some(Scheduler::Pbs)),
        ] {
            assert_eq!(scheduler(word).ok(), Some(meant), "{word}");
        }
        assert_eq!(scheduler("SLURM").ok(), Some(Some(Scheduler::Slurm)));
        assert!(scheduler("").is_err() && scheduler("condor").is_err());
    }

    #[test]
    fn limits_as_people_write_them() {
        for (text, seconds) in [
            ("90s", 90),
            ("30min", 1800),
            ("1h30min", 5400),
            ("2d", 172_800),
            ("01:02:03", 3723),
            ("100:00:00", 360_000),
        ] {
            assert_eq!(limit(text).ok(), Some(seconds), "{text}");
        }
        for text in [
            "",
            "h",
            "10",
            "1x",
            "0s",
            "1:2",
            "1:60:00",
            "-1s",
            "99999999999999999999h",
            "367d",
            "1 h",
            "ä",
        ] {
            assert!(limit(text).is_err(), "{text}");
        }
    }

    #[test]
    fn schedulers_have_words() {
        assert_eq!(scheduler("fork"), Ok(None));
        assert_eq!(scheduler("slurm"), Ok(Some(Scheduler::Slurm)));
        assert!(
            scheduler("slrum")
                .unwrap_err()
                .to_string()
                .contains("did you mean 'slurm'")
        );
    }

    #[test]
    fn what_no_command_line_should_see_is_refused() {
        let mut asked = Allocation::new(Scheduler::Slurm);
        assert!(check("a", 2, &asked).is_ok());
        asked.nodes = 3;
        assert!(
            check("a", 2, &asked)
                .unwrap_err()
                .to_string()
                .contains("3 nodes for 2 processes")
        );
        asked.nodes = 2;
        asked.queue = "-x".into();
        assert!(
            check("a", 2, &asked)
                .unwrap_err()
                .to_string()
                .contains("name of a queue")
        );
        asked.queue = "a\nb".into();
        assert!(check("a", 2, &asked).is_err());
        asked.queue.clear();
        asked.directives = vec!["--x\n#".into()];
        assert!(check("a", 2, &asked).is_err());
    }
}
