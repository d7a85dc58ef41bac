// SPDX-License-Identifier: Apache-2.0
//! A cost as the sum of its parts.

/// A named part of a cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factor {
    /// What takes the time, with the numbers it was made from.
    pub name: String,
    /// Nanoseconds.
    pub time: u64,
}

/// What a call is expected to take.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Cost {
    factors: Vec<Factor>,
}

impl Cost {
    /// Nanoseconds in all.
    pub fn total(&self) -> u64 {
        self.factors.iter().fold(0, |sum, f| sum.saturating_add(f.time))
    }

    /// The parts.
    pub fn factors(&self) -> &[Factor] {
        &self.factors
    }

    /// One after the other.
    pub(crate) fn then(mut self, next: &Self) -> Self {
        self.factors.extend_from_slice(&next.factors);
        self
    }

    /// The same with one more part.
    pub(crate) fn and(mut self, name: impl Into<String>, time: u64) -> Self {
        self.factors.push(Factor {
            name: name.into(),
            time,
        });
        self
    }
}
