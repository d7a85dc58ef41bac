// SPDX-License-Identifier: Apache-2.0
//! Variables: those that a user gives to processes, and the settings that processes get from this launcher.

use isthmus_job::JobError;
use isthmus_stage::words;

/// `NAME=VALUE`, or the name of a variable that is set here.
pub(crate) fn variable(text: &str) -> Result<(String, String), JobError> {
    match text.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => match std::env::var_os(text) {
            Some(value) => Ok((text.to_owned(), words::text(value))),
            None => Err(JobError::new(format!("variable '{text}' is not set here"))
                .hint("write --env NAME=VALUE, or --env NAME for a variable that is set")),
        },
    }
}

/// The user's settings, for all processes at all sites, but for those of the launcher itself.
pub(crate) fn settings(traced: bool, internal: &[&str]) -> Vec<(String, String)> {
    let all = std::env::vars_os().filter_map(|(n, v)| Some((n.into_string().ok()?, words::text(v))));
    all.filter(|(name, _)| name.starts_with(isthmus_settings::PREFIX) && !internal.contains(&name.as_str()))
        .chain(traced.then(|| (isthmus_settings::TRACE.name.to_owned(), "1".to_owned())))
        .collect()
}
