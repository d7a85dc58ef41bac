// SPDX-License-Identifier: Apache-2.0
//! A launcher that another launcher has started several times (`srun -n 4 isthmus run …`): each would run the whole
//! job.

use crate::diagnostic::warn;
use isthmus_job::JobError;
use isthmus_settings::Others;

/// Whether this is the only launcher of its job.
///
/// # Errors
/// Another launcher has started this process itself, with others beside it. What such a process has started in its turn
/// is told of only: it may be the only one that comes here, or be meant to have a job of its own.
pub(super) fn check() -> Result<(), JobError> {
    let own = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let Some(others) = Others::of(&own) else { return Ok(()) };
    let parent = environment_of_parent();
    let is_inherited = Others::of(&|name| value(&parent, name)).is_some();
    let told = told(&others, is_inherited);
    match is_inherited {
        false => Err(told),
        // Whoever types in a shell of a parallel step sees how many answer.
        true if rustix::termios::isatty(rustix::stdio::stdin()) => Ok(()),
        true => {
            warn(&told);
            Ok(())
        }
    }
}

fn told(others: &Others, is_inherited: bool) -> JobError {
    let Others { launcher, count } = others;
    let many = count.map_or_else(|| "perhaps several".to_owned(), |count| count.to_string());
    let alone = "if each of them is to run a job of its own, set ISTHMUS_ALONE=1";
    match is_inherited {
        false => JobError::new(format!(
            "{launcher} has started isthmus {many} times: each would run the whole job"
        ))
        .hint(format!("start isthmus once, without {launcher}; {alone}")),
        true => JobError::new(format!(
            "this runs in one of {many} processes that {launcher} has started: each that comes here runs the whole job"
        ))
        .hint(format!("start isthmus in one of them; {alone}")),
    }
}

/// The environment with which the parent of this process began. One that cannot be read is of somebody else: a daemon
/// of the system.
fn environment_of_parent() -> String {
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_pid());
    let read = parent.and_then(|pid| std::fs::read(format!("/proc/{pid}/environ")).ok());
    String::from_utf8_lossy(&read.unwrap_or_default()).into_owned()
}

fn value(environment: &str, name: &str) -> Option<String> {
    let values = environment.split('\0').filter_map(|line| line.split_once('='));
    let found = values.into_iter().find(|(n, _)| *n == name);
    found
        .map(|(_, value)| value.to_owned())
        .filter(|value| !value.is_empty())
}
