// SPDX-License-Identifier: Apache-2.0
//! Processes that are lost after they have begun, where the job goes on without them.
//!
//! Whoever is lost is so for good: nothing that is heard of it later counts. Deaths have numbers in the order in which
//! they were decided here, and all hear of them in that order.

use std::collections::BTreeSet;
use std::ops::Range;

/// What the job goes on without.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// Deaths that were decided.
    decided: u32,
    /// Processes by subjob and index.
    lost: BTreeSet<(usize, u32)>,
}

impl Losses {
    /// So many more die. How many have before.
    pub(super) fn decide(&mut self, count: u32) -> u32 {
        let before = self.decided;
        self.decided = before.saturating_add(count);
        before
    }

    /// The job goes on without these processes of a subjob.
    pub(super) fn add(&mut self, site: usize, indices: &[u32]) {
        self.lost.extend(indices.iter().map(|index| (site, *index)));
    }

    /// Whether the job goes on without this one.
    pub(super) fn has(&self, site: usize, index: u32) -> bool {
        self.lost.contains(&(site, index))
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.lost.len()
    }
}

/// Numbers in order, those that follow each other together.
pub(super) fn ranges(numbers: &[u32]) -> Vec<Range<u32>> {
    let mut ranges: Vec<Range<u32>> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some(last) if last.end == number => last.end += 1,
            _ => ranges.push(number..number + 1),
        }
    }
    ranges
}
