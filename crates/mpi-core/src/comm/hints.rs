// SPDX-License-Identifier: Apache-2.0
//! Info hints of communicators (MPI 5.0 section 7.4.4).

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::traffic;
use crate::info::Info;

/// Hints that are kept, with their defaults; others are ignored, as the standard asks.
const KNOWN: [(&str, Option<&str>); 12] = [
    ("mpi_assert_no_any_tag", Some("false")),
    ("mpi_assert_no_any_source", Some("false")),
    ("mpi_assert_exact_length", Some("false")),
    ("mpi_assert_allow_overtaking", Some("false")),
    // Order of reductions: `fixed` gives the same bits whatever the number of sites.
    (ORDER_HINT, None),
    // Reordering of a distributed graph by the real topology: every process must then know all edges, which such graphs
    // are meant to spare, and which programs that ask for reordering in passing do not expect.
    (PLACEMENT_HINT, Some("false")),
    // Set by MPI_Comm_split_type: what the processes share.
    (RESOURCE_HINT, None),
    // How messages are treated between sites.
    (traffic::KEYS[0], Some("normal")),
    (traffic::KEYS[1], None),
    (traffic::KEYS[2], None),
    (traffic::KEYS[3], Some("true")),
    (traffic::KEYS[4], Some("auto")),
];

/// Key that tells what kind of resource the processes of a communicator share.
pub(crate) const RESOURCE_HINT: &str = "mpi_hw_resource_type";

/// Key of the order in which reductions associate: `fixed` makes it depend on ranks only.
const ORDER_HINT: &str = "isthmus_reduction";

/// Key with which a program asks for placing a distributed graph.
const PLACEMENT_HINT: &str = "isthmus_placement";

/// Do the hints ask for placing a distributed graph by the real topology?
pub(crate) fn asks_for_placement(given: &Info) -> bool {
    matches!(given.get(PLACEMENT_HINT), Ok(Some("true")))
}

/// What is kept of the hints that a program gives. An assertion is `true` or `false`, anything else is ignored.
pub fn kept(given: &Info) -> Info {
    let mut kept = Info::default();
    for (key, default) in KNOWN {
        let Ok(Some(value)) = given.get(key) else { continue };
        let sensible = match key {
            key if traffic::KEYS.contains(&key) => traffic::makes_sense(key, value),
            _ => default.is_none() || value == "true" || value == "false",
        };
        if sensible {
            // The same key and value were accepted before.
            let _ = kept.set(key, value);
        }
    }
    kept
}

/// The hints that a communicator was given.
#[derive(Default)]
pub struct Hints {
    /// Nearly no communicator has any, and every reduction asks.
    given: OnceLock<Box<Mutex<Info>>>,
}

impl Hints {
    /// These, of which [`kept`] has seen to it that they are known.
    pub(super) fn of(given: Info) -> Self {
        let hints = Self::default();
        if !given.is_empty() {
            hints.add_all(&given);
        }
        hints
    }

    fn given(&self) -> Option<MutexGuard<'_, Info>> {
        let given = self.given.get()?;
        Some(given.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add_all(&self, more: &Info) {
        let given = self.given.get_or_init(Box::default);
        given.lock().unwrap_or_else(PoisonError::into_inner).extend(more);
    }

    /// Whether there are any.
    #[inline]
    pub(super) fn are_given(&self) -> bool {
        self.given.get().is_some()
    }

    /// The value of a hint.
    #[inline]
    pub fn get(&self, key: &str) -> Option<String> {
        self.given()?.get(key).ok().flatten().map(str::to_owned)
    }

    /// Whether the order in which reductions associate depends on ranks only.
    #[inline]
    pub(crate) fn is_fixed(&self) -> bool {
        self.get(ORDER_HINT).is_some_and(|order| order == "fixed")
    }

    pub(super) fn add(&self, given: &Info) {
        self.add_all(&kept(given));
    }

    /// MPI_Comm_get_info: what is in use, defaults included.
    pub fn all(&self) -> Info {
        let mut all = Info::default();
        for (key, default) in KNOWN {
            if let Some(default) = default {
                // Keys and values of the table are short.
                let _ = all.set(key, default);
            }
        }
        if let Some(given) = self.given() {
            all.extend(&given);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_hints_with_sensible_values_are_kept() {
        let mut given = Info::default();
        for (key, value) in [
            ("mpi_assert_no_any_tag", "true"),
            ("mpi_assert_exact_length", "perhaps"),
            ("isthmus_reduction", "fixed"),
            ("colour", "blue"),
        ] {
            given.set(key, value).unwrap();
        }
        let kept = kept(&given);
        assert_eq!(kept.len(), 2);
        assert_eq!(kept.get("mpi_assert_no_any_tag").unwrap(), Some("true"));
        assert_eq!(kept.get("isthmus_reduction").unwrap(), Some("fixed"));
    }
}
