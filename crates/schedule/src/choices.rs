// SPDX-License-Identifier: Apache-2.0
//! Choices that were made for one network, each once.

use crate::Operation;
use crate::strategy::Strategy;
use std::sync::{Arc, OnceLock};

/// The choices for all classes of sizes.
type SizeClasses = Box<[OnceLock<Arc<Strategy>>]>;

/// Choices made for one network.
pub(crate) struct Choices {
    made: [OnceLock<SizeClasses>; ROWS],
}

/// For each operation, order, and whether nodes take steps together.
const ROWS: usize = Operation::ALL.len() * 3 * 2;

impl Default for Choices {
    fn default() -> Self {
        Self {
            made: [const { OnceLock::new() }; ROWS],
        }
    }
}

impl std::fmt::Debug for Choices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Choices")
    }
}

impl Choices {
    /// The choice at a place of a row, which has so many places; it is made if it has not been.
    pub(crate) fn made(
        &self,
        row: usize,
        place: usize,
        places: usize,
        make: impl FnOnce() -> Strategy,
    ) -> Arc<Strategy> {
        let row = self.made[row].get_or_init(|| (0..places).map(|_| OnceLock::new()).collect());
        Arc::clone(row[place].get_or_init(|| Arc::new(make())))
    }
}
