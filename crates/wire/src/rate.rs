// SPDX-License-Identifier: Apache-2.0
//! The rate of a link, as it was measured, with what it stands on.
//!
//! ```text
//!  Rate, 27 bytes
//!  | bytes per second u64, 0: none | bytes u64 | busy u64 (ns) | spread u16 (thousandths) | at least u8 |
//! ```

use crate::codec::{DecodeError, Reader, Writer};

/// Bytes of a [`Rate`].
pub const RATE_BYTES: usize = 27;

/// Evidence of so long is as good as it gets, nanoseconds: links change.
const BEST: u64 = 1_000_000_000;
/// Every so many seconds evidence is worth half.
const HALF_LIFE: u64 = 3600;

/// A rate and what it stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Rate {
    /// Of the data of one connection.
    pub bytes_per_second: u64,
    /// That were seen to arrive at this rate.
    pub bytes: u64,
    /// For how long they kept the link busy, nanoseconds.
    pub busy: u64,
    /// How far off it may be, thousandths of it: about one standard error.
    pub spread: u16,
    /// The link was not kept busy for long enough to say that it does no more.
    pub at_least: bool,
}

impl Rate {
    /// One of which nothing else is known.
    pub const fn bare(bytes_per_second: u64) -> Self {
        Self {
            bytes_per_second,
            bytes: 0,
            busy: 0,
            spread: 0,
            at_least: false,
        }
    }

    /// What it is worth after so many seconds.
    fn worth(&self, age: u64) -> u64 {
        // A tenth off: worth half.
        let busy = self.busy.min(BEST) * 100 / (100 + u64::from(self.spread));
        busy >> (age / HALF_LIFE).min(63)
    }

    /// The same as evidence that is so many seconds old.
    #[must_use]
    pub fn aged(self, seconds: u64) -> Self {
        Self {
            busy: self.busy.min(BEST) >> (seconds / HALF_LIFE).min(63),
            ..self
        }
    }

    /// The one of two to believe. `age`: by how many seconds the other one is older.
    ///
    /// Two that say "at least" are right both, so the larger one counts. One that says "at least" says nothing about a
    /// link that was measured, unless it is clearly faster. Otherwise the better evidence wins.
    #[must_use]
    pub fn or_older(self, older: Self, age: u64) -> Self {
        let beyond = |bound: &Self, known: &Self| bound.bytes_per_second > known.bytes_per_second / 4 * 5;
        let newer_wins = match (self.at_least, older.at_least) {
            (true, true) => self.bytes_per_second >= older.bytes_per_second,
            (true, false) => beyond(&self, &older),
            (false, true) => !beyond(&older, &self) || self.worth(0) >= older.worth(age),
            (false, false) => self.worth(0) >= older.worth(age),
        };
        if newer_wins { self } else { older }
    }

    /// One that others of the same link at about the same time become: the middle one by time, or the largest if all
    /// say "at least".
    pub fn middle(mut all: Vec<Self>) -> Option<Self> {
        if all.iter().any(|r| !r.at_least) {
            all.retain(|r| !r.at_least);
        } else {
            return all.into_iter().max();
        }
        all.sort_unstable();
        let weight = |rate: &Self| u128::from(rate.busy.max(1));
        let whole: u128 = all.iter().map(weight).sum();
        let mut below = 0;
        let middle = all.iter().position(|rate| {
            below += weight(rate);
            below * 2 >= whole
        })?;
        let mut one = all[middle];
        // As much on either side: neither is the middle.
        if let Some(next) = all.get(middle + 1).filter(|_| below * 2 == whole) {
            one.bytes_per_second += (next.bytes_per_second - one.bytes_per_second) / 2;
        }
        one.bytes = all.iter().fold(0, |sum: u64, r| sum.saturating_add(r.bytes));
        one.busy = u64::try_from(all.iter().map(|r| u128::from(r.busy)).sum::<u128>()).unwrap_or(u64::MAX);
        one.spread = all.iter().map(|r| r.spread).max().unwrap_or_default();
        Some(one)
    }

    /// Appends it to a message.
    pub fn write(rate: Option<Self>, w: &mut Writer) {
        let rate = rate.unwrap_or_default();
        w.u64(rate.bytes_per_second).u64(rate.bytes).u64(rate.busy);
        w.u16(rate.spread).u8(rate.at_least.into());
    }

    /// Reads it.
    pub fn read(r: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        let rate = Self {
            bytes_per_second: r.u64("rate")?,
            bytes: r.u64("bytes measured")?,
            busy: r.u64("time measured")?,
            spread: r.u16("spread")?,
            at_least: match r.u8("at least")? {
                0 => false,
                1 => true,
                value => {
                    return Err(DecodeError::Invalid {
                        field: "at least",
                        value: u64::from(value),
                    });
                }
            },
        };
        match (rate.bytes_per_second, rate == Self::default()) {
            (0, true) => Ok(None),
            (0, false) => Err(DecodeError::Invalid {
                field: "rate",
                value: 0,
            }),
            _ => Ok(Some(rate)),
        }
    }

    /// As a message of its own.
    pub fn encode(rate: Option<Self>) -> Vec<u8> {
        let mut w = Writer::default();
        Self::write(rate, &mut w);
        w.into_body()
    }

    /// Reads a message of its own.
    pub fn decode(body: &[u8]) -> Result<Option<Self>, DecodeError> {
        let mut r = Reader::new(body);
        let rate = Self::read(&mut r)?;
        r.end()?;
        Ok(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bytes_per_second: u64, milliseconds: u64, at_least: bool) -> Rate {
        Rate {
            busy: milliseconds * 1_000_000,
            at_least,
            ..Rate::bare(bytes_per_second)
        }
    }

    #[test]
    fn the_better_evidence_wins_until_it_is_old() {
        let (short, long) = (rate(40, 20, false), rate(200, 400, false));
        assert_eq!(short.or_older(long, 60), long);
        assert_eq!(long.or_older(short, 60), long);
        assert_eq!(short.or_older(long, 5 * HALF_LIFE), short);
        assert_eq!(short.or_older(long.aged(5 * HALF_LIFE), 0), short);
        assert_eq!(short.or_older(long.aged(60), 0), long);
        let vague = Rate { spread: 150, ..long };
        assert_eq!(vague.or_older(long, 60), long);
        let (bound, higher) = (rate(90, 5, true), rate(300, 5, true));
        assert_eq!(bound.or_older(higher, 60), higher);
        assert_eq!(bound.or_older(long, 60), long, "that is known already");
        assert_eq!(higher.or_older(long, 60), higher, "it does more");
        assert_eq!(short.or_older(bound, 60), short);
        assert_eq!(long.or_older(bound, 60), long);
    }

    #[test]
    fn one_of_several() {
        let of = |all: &[Rate]| Rate::middle(all.to_vec());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[rate(3, 1, true), rate(9, 1, true)]), Some(rate(9, 1, true)));
        assert_eq!(of(&[rate(90, 1, true), rate(7, 1, false)]), Some(rate(7, 1, false)));
        let long = of(&[rate(1, 1, false), rate(2, 1, false), rate(8, 9, false)]);
        assert_eq!(long.map(|r| (r.bytes_per_second, r.busy)), Some((8, 11_000_000)));
        assert_eq!(of(&[Rate::bare(9), Rate::bare(1)]), Some(Rate::bare(5)));
    }

    #[test]
    fn rates_survive_the_wire() {
        for one in [None, Some(Rate::bare(5)), Some(rate(7, 3, true))] {
            let bytes = Rate::encode(one);
            assert_eq!(bytes.len(), RATE_BYTES);
            assert_eq!(Rate::decode(&bytes), Ok(one));
            assert!(Rate::decode(&bytes[1..]).is_err());
        }
        let mut wrong = Rate::encode(Some(rate(7, 3, true)));
        wrong[26] = 2;
        assert!(Rate::decode(&wrong).is_err());
        wrong[..8].fill(0);
        wrong[26] = 1;
        assert!(Rate::decode(&wrong).is_err(), "evidence of nothing");
    }
}
