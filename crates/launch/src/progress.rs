// SPDX-License-Identifier: Apache-2.0
//! Where a subjob stands, for people.

use crate::hang;
use isthmus_job::coallocation::State;

/// Where a subjob stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Its name.
    pub site: String,
    /// Its state.
    pub state: State,
    /// The same in one word for all who are told: in a queue, ready for the others, and starting are told apart.
    pub word: String,
    /// What else there is to say; may be empty.
    pub detail: String,
    /// When a scheduler expects to start it, seconds since 1970.
    pub starts: Option<u64>,
}

impl Progress {
    /// What else there is to say, for people: with how long the queue is expected to take yet.
    pub fn told(&self) -> String {
        expected(&self.detail, self.starts, crate::now())
    }
}

/// A detail with since when a queue is waited in, seen from `now`.
pub fn queued(detail: &str, since: Option<u64>, now: u64) -> String {
    let waited = since.map(|since| hang::time(now.saturating_sub(since).saturating_mul(1000)));
    match (detail, waited) {
        (detail, None) => detail.to_owned(),
        ("", Some(waited)) => format!("for {waited}"),
        (detail, Some(waited)) => format!("{detail}, for {waited}"),
    }
}

/// A detail with when the start is expected, seen from `now`.
pub fn expected(detail: &str, starts: Option<u64>, now: u64) -> String {
    let Some(starts) = starts else {
        return detail.to_owned();
    };
    let left = hang::time(starts.saturating_sub(now).saturating_mul(1000));
    let when = match starts > now {
        true => format!("expected to start in {left}"),
        false => "expected to start now".to_owned(),
    };
    match detail {
        "" => when,
        detail => format!("{detail}, {when}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{expected, queued};

    #[test]
    fn estimates_are_told_from_now_on() {
        let told = |detail, starts| expected(detail, starts, 1000);
        assert_eq!(told("Slurm job 7", None), "Slurm job 7");
        assert_eq!(
            told("Slurm job 7", Some(1090)),
            "Slurm job 7, expected to start in 90 s"
        );
        assert_eq!(told("", Some(8300)), "expected to start in 2 h");
        assert_eq!(told("", Some(900)), "expected to start now");
        let waits = |detail, since| queued(detail, since, 1000);
        assert_eq!(
            waits("Slurm job 7, Priority", Some(400)),
            "Slurm job 7, Priority, for 10 min"
        );
        assert_eq!(waits("Slurm job 7", None), "Slurm job 7");
        // Clocks may be set back.
        assert_eq!(waits("", Some(1200)), "for 0 s");
    }
}
