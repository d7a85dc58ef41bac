// SPDX-License-Identifier: Apache-2.0
//! The numbers that have arrived.

use std::collections::BTreeMap;

use isthmus_wire::segment::{Hello, MAX_RANGES};

use super::Violation;

/// Most stretches of numbers with gaps between them. Connections of different speed make as many gaps as there are
/// segments under way on the slowest: a thousand of them would be 64 MiB.
pub const MAX_GAPS: usize = 1 << 16;

/// A set of numbers from 1 that fills up from below.
#[derive(Debug, Clone)]
pub struct Seen {
    below: u64,
    /// First and, not included, last.
    above: BTreeMap<u64, u64>,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            below: 1,
            above: BTreeMap::new(),
        }
    }
}

impl Seen {
    /// Whether this number is in the set.
    pub fn contains(&self, number: u64) -> bool {
        number < self.below
            || self
                .above
                .range(..=number)
                .next_back()
                .is_some_and(|(_, end)| number < *end)
    }

    /// Adds a number; true when it is new.
    pub fn insert(&mut self, number: u64) -> Result<bool, Violation> {
        if number == 0 || number == u64::MAX {
            return Err(Violation::Number(number));
        }
        if self.contains(number) {
            return Ok(false);
        }
        let mut end = number + 1;
        if let Some(next) = self.above.remove(&end) {
            end = next;
        }
        if number == self.below {
            self.below = end;
            return Ok(true);
        }
        match self
            .above
            .range_mut(..number)
            .next_back()
            .filter(|(_, e)| **e == number)
        {
            Some((_, before)) => *before = end,
            None => {
                self.above.insert(number, end);
            }
        }
        if self.above.len() > MAX_GAPS {
            return Err(Violation::Disorder);
        }
        Ok(true)
    }

    /// As much as a peer is told.
    pub fn hello(&self) -> Hello {
        Hello {
            below: self.below,
            ranges: self.above.iter().take(MAX_RANGES).map(|(a, b)| (*a, *b)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_any_order_make_one_stretch() {
        for order in [
            [1, 2, 3, 4, 5, 6],
            [6, 5, 4, 3, 2, 1],
            [2, 4, 6, 5, 3, 1],
            [3, 1, 6, 4, 2, 5],
        ] {
            let mut seen = Seen::default();
            for n in order {
                assert!(!seen.contains(n));
                assert_eq!(seen.insert(n), Ok(true));
                assert_eq!(seen.insert(n), Ok(false));
                let hello = seen.hello();
                assert!((1..10).all(|n| hello.has(n) == seen.contains(n)));
            }
            assert_eq!(
                seen.hello(),
                Hello {
                    below: 7,
                    ranges: vec![]
                }
            );
        }
        assert!(Seen::default().insert(0).is_err() && Seen::default().insert(u64::MAX).is_err());
    }

    #[test]
    fn gaps_are_bounded() {
        let mut seen = Seen::default();
        let last = (0..=MAX_GAPS as u64).map(|i| seen.insert(3 + 2 * i)).last();
        assert_eq!(last, Some(Err(Violation::Disorder)));
    }
}
