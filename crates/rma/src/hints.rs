// SPDX-License-Identifier: Apache-2.0
//! Info hints of windows (MPI 5.0 section 12.2.1 and others). Those that are known are always reported, with what is in
//! force.

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_core::info::Info;

/// Which values a hint has.
#[derive(Clone, Copy)]
enum Values {
    Truth,
    /// "none", or some of these.
    Some(&'static [&'static str]),
    /// One of these.
    One(&'static [&'static str]),
    Number,
}

/// Name, values, default; the last one says where the memory of a window lies.
const HINTS: [(&str, Values, &str); 8] = [
    ("no_locks", Values::Truth, "false"),
    (
        "accumulate_ordering",
        Values::Some(&["rar", "raw", "war", "waw"]),
        "rar,raw,war,waw",
    ),
    (
        "accumulate_ops",
        Values::One(&["same_op", "same_op_no_op"]),
        "same_op_no_op",
    ),
    ("mpi_accumulate_granularity", Values::Number, "0"),
    ("same_size", Values::Truth, "false"),
    ("same_disp_unit", Values::Truth, "false"),
    (NONCONTIG, Values::Truth, "false"),
    (ALIGNMENT, Values::Number, "64"),
];

const NONCONTIG: &str = "alloc_shared_noncontig";
const ALIGNMENT: &str = "mpi_minimum_memory_alignment";

/// Smallest alignment of memory that windows are given: a cache line.
const LEAST: usize = 64;
/// Largest alignment that anybody gets: where a mapping begins.
const MOST: usize = 4096;

impl Values {
    fn have(self, text: &str) -> bool {
        match self {
            Self::Truth => matches!(text, "true" | "false"),
            Self::One(of) => of.contains(&text),
            Self::Some(of) => text == "none" || text.split(',').all(|part| of.contains(&part.trim())),
            Self::Number => text.parse::<u64>().is_ok(),
        }
    }
}

/// What the program has said; all else has its default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints(Info);

impl Hints {
    /// With what the program says: unknown hints are left out, and so are values that a hint does not have.
    pub(crate) fn with(self, given: &Info) -> Result<Self> {
        self.with_all(given, &HINTS)
    }

    /// The same when the window is there: its memory does not move to be aligned in another way. The hint that it need
    /// not be in one piece changes nothing any more, and is told as it was given: MPICH's tests ask for that.
    pub(crate) fn later(self, given: &Info) -> Result<Self> {
        self.with_all(given, &HINTS[..HINTS.len() - 1])
    }

    fn with_all(mut self, given: &Info, hints: &[(&str, Values, &str)]) -> Result<Self> {
        for &(name, values, _) in hints {
            if let Some(text) = given.get(name)? {
                let text = text.trim();
                if values.have(text) {
                    self.0.set(name, text)?;
                }
            }
        }
        Ok(self)
    }

    /// Whether the program has said nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, with what is in force.
    pub(crate) fn all(&self) -> Result<Info> {
        let mut all = Info::default();
        for (name, _, default) in HINTS {
            all.set(name, self.0.get(name)?.unwrap_or(default))?;
        }
        Ok(all)
    }

    /// Whether the parts of shared memory need not follow each other.
    pub(crate) fn noncontiguous(&self) -> Result<bool> {
        Ok(self.0.get(NONCONTIG)? == Some("true"))
    }

    /// Alignment of memory that a window is given.
    pub(crate) fn alignment(&self) -> Result<usize> {
        let Some(text) = self.0.get(ALIGNMENT)? else {
            return Ok(LEAST);
        };
        match text.parse::<usize>() {
            Ok(0) => Ok(LEAST),
            Ok(wanted) if wanted.is_power_of_two() && wanted <= MOST => Ok(wanted.max(LEAST)),
            _ => fail!(
                abi::MPI_ERR_INFO_VALUE,
                argument("info"),
                "has \"{text}\" for the key {ALIGNMENT}, expected a power of two up to {MOST}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_hints_are_reported_and_wrong_values_left_out() {
        let mut given = Info::default();
        for (key, value) in [
            ("no_locks", "true"),
            ("accumulate_ops", "nonsense"),
            ("accumulate_ordering", "war,waw"),
            ("of_another", "1"),
        ] {
            given.set(key, value).unwrap();
        }
        let hints = Hints::default().with(&given).unwrap();
        let all = hints.all().unwrap();
        assert_eq!(all.len(), HINTS.len());
        assert_eq!(all.get("no_locks").unwrap(), Some("true"));
        assert_eq!(all.get("accumulate_ops").unwrap(), Some("same_op_no_op"));
        assert_eq!(all.get("accumulate_ordering").unwrap(), Some("war,waw"));
        assert_eq!(all.get("of_another").unwrap(), None);
    }

    #[test]
    fn an_alignment_counts_when_a_window_is_made_only() {
        let mut given = Info::default();
        for (key, value) in [(NONCONTIG, "true"), (ALIGNMENT, "100"), ("no_locks", "true")] {
            given.set(key, value).unwrap();
        }
        let all = Hints::default().later(&given).unwrap().all().unwrap();
        let told = [NONCONTIG, ALIGNMENT, "no_locks"].map(|key| all.get(key).unwrap().map(str::to_owned));
        assert_eq!(told, ["true", "64", "true"].map(|value| Some(value.to_owned())));
    }

    #[test]
    fn an_alignment_is_a_power_of_two() {
        for (text, aligned) in [
            ("0", Some(64)),
            ("8", Some(64)),
            ("4096", Some(4096)),
            ("8192", None),
            ("100", None),
        ] {
            let mut given = Info::default();
            given.set(ALIGNMENT, text).unwrap();
            let hints = Hints::default().with(&given).unwrap();
            assert_eq!(hints.alignment().ok(), aligned, "{text}");
        }
    }
}
