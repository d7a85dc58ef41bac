// SPDX-License-Identifier: Apache-2.0
//! What the user says about the ways between sites, for all of them or one.

use isthmus_job::{Job, JobError, Subjob};
use isthmus_wire::gateway::MAX_THREADS;

use super::Policy;
use crate::Options;

/// What is set for the processes of a site.
pub(super) fn setting<'a>(subjob: &'a Subjob, options: &'a Options, name: &str) -> Option<&'a str> {
    let all = subjob.environment.iter().rev().chain(options.environment.iter().rev());
    let found = all.filter(|(n, _)| n == name).map(|(_, value)| value.as_str());
    { found }.next()
}

pub(super) fn policy(subjob: &Subjob, options: &Options) -> Policy {
    setting(subjob, options, "ISTHMUS_PATH")
        .and_then(Policy::parse)
        .unwrap_or_default()
}

/// Connections of a trunk and threads of a gateway; 0: as many as are found to be needed.
const COUNTS: [(&str, u8); 2] = [("ISTHMUS_TRUNK_STREAMS", 64), ("ISTHMUS_GATEWAY_THREADS", MAX_THREADS)];

/// A number of those in [`COUNTS`].
pub(super) fn counted(name: &str, text: &str) -> Result<u8, JobError> {
    let most = COUNTS.iter().find(|(n, _)| *n == name).map_or(1, |(_, most)| *most);
    let or_auto = if name == "ISTHMUS_GATEWAY_THREADS" {
        "auto, or "
    } else {
        ""
    };
    match text.parse() {
        _ if text == "auto" && !or_auto.is_empty() => Ok(0),
        Ok(n) if (1..=most).contains(&n) => Ok(n),
        _ => Err(JobError::new(format!("{name} is '{text}'")).hint(format!("give {or_auto}a number from 1 to {most}"))),
    }
}

/// What is wrong with what the user says about gateways.
///
/// # Errors
/// The setting and what it may be.
pub fn check_gateways(job: &Job, options: &Options) -> Result<(), JobError> {
    for (subjob, (name, _)) in job.subjobs().iter().flat_map(|s| COUNTS.map(|c| (s, c))) {
        setting(subjob, options, name).map_or(Ok(0), |text| counted(name, text))?;
    }
    Ok(())
}

pub(super) fn range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
}

/// Addresses that the user gave in place of those of the machine.
pub(super) fn addresses(subjob: &Subjob, options: &Options) -> Vec<String> {
    let text = setting(subjob, options, "ISTHMUS_ADDRESS").unwrap_or_default();
    text.split(',')
        .map(str::trim)
        .filter(|t| !t.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_gateways_are_bounded() {
        assert_eq!(counted("ISTHMUS_GATEWAY_THREADS", "auto").unwrap(), 0);
        assert_eq!(counted("ISTHMUS_GATEWAY_THREADS", "8").unwrap(), 8);
        assert_eq!(counted("ISTHMUS_TRUNK_STREAMS", "64").unwrap(), 64);
        for (name, text) in [
            ("ISTHMUS_GATEWAY_THREADS", "9"),
            ("ISTHMUS_GATEWAY_THREADS", "0"),
            ("ISTHMUS_TRUNK_STREAMS", "auto"),
            ("ISTHMUS_TRUNK_STREAMS", "65"),
            ("ISTHMUS_TRUNK_STREAMS", "-1"),
        ] {
            let error = counted(name, text).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(text), "{error}");
        }
    }
}
