// SPDX-License-Identifier: Apache-2.0
//! Measured values, by test and by library.

use std::collections::BTreeMap;

use serde::Serialize;

/// What a job reports instead of a value where its processors were not as far apart as those of the others.
const ELSEWHERE: &str = "elsewhere";

/// One value that a job reported.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) test: String,
    pub(crate) bytes: u64,
    pub(crate) value: f64,
    pub(crate) unit: String,
}

impl Sample {
    /// Reads `RESULT TEST BYTES VALUE UNIT`; launchers may put a label in front. What a job could not measure as it was
    /// to has the value [`ELSEWHERE`] and is not a number here.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (_, rest) = line.split_once("RESULT ")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let [test, bytes, value, unit] = fields[..] else {
            return None;
        };
        let value = if value == ELSEWHERE {
            f64::NAN
        } else {
            value.parse().ok().filter(|v: &f64| v.is_finite())?
        };
        Some(Self {
            test: test.to_owned(),
            bytes: bytes.parse().ok()?,
            value,
            unit: unit.to_owned(),
        })
    }
}

/// What was measured: a line of the table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Key {
    pub(crate) set: String,
    pub(crate) ranks: usize,
    /// Order of first appearance within the set.
    #[serde(skip)]
    order: usize,
    pub(crate) test: String,
    pub(crate) bytes: u64,
    pub(crate) unit: String,
}

impl Key {
    /// Whether more is better.
    pub(crate) fn is_rate(&self) -> bool {
        self.unit.ends_with("/s")
    }
}

/// Everything measured so far: for each line and library one value a round, not a number where the round gave none.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    pub(crate) lines: BTreeMap<Key, BTreeMap<String, Vec<f64>>>,
    /// Why runs gave nothing, once for each text.
    pub(crate) failures: BTreeMap<String, usize>,
    /// Sets that should be measured again, and why.
    pub(crate) distrusted: BTreeMap<String, String>,
}

impl Samples {
    /// What a library's job gave in a round, counted from 0. Rounds before it in which it gave nothing stay empty, so
    /// that all libraries' values of a round have the same place.
    pub(crate) fn add(&mut self, set: &str, ranks: usize, peer: &str, round: usize, samples: Vec<Sample>) {
        for sample in samples {
            let order = self.order(set, ranks, &sample);
            if sample.value.is_nan() {
                let reason = format!(
                    "{} of {} bytes left out: its processors were elsewhere",
                    sample.test, sample.bytes
                );
                self.failed(set, ranks, peer, &reason);
            }
            let key = Key {
                set: set.to_owned(),
                ranks,
                order,
                test: sample.test,
                bytes: sample.bytes,
                unit: sample.unit,
            };
            let line = self.lines.entry(key).or_default();
            let values = line.entry(peer.to_owned()).or_default();
            if values.len() < round {
                values.resize(round, f64::NAN);
            }
            values.push(sample.value);
        }
    }

    /// The place of a test among those of its set and number of ranks.
    fn order(&self, set: &str, ranks: usize, sample: &Sample) -> usize {
        let mut group = self.lines.keys().filter(|key| key.set == set && key.ranks == ranks);
        let found = group
            .find(|key| key.test == sample.test && key.bytes == sample.bytes)
            .map(|key| key.order);
        found.unwrap_or_else(|| {
            self.lines
                .keys()
                .filter(|key| key.set == set && key.ranks == ranks)
                .count()
        })
    }

    pub(crate) fn failed(&mut self, set: &str, ranks: usize, peer: &str, reason: &str) {
        *self
            .failures
            .entry(format!("{set}, {ranks} ranks, {peer}: {reason}"))
            .or_default() += 1;
    }

    pub(crate) fn distrust(&mut self, set: &str, reason: &str) {
        self.distrusted.insert(set.to_owned(), reason.to_owned());
    }

    /// The values of all libraries for a test.
    pub(crate) fn line(&self, set: &str, ranks: usize, test: &str, bytes: u64) -> Option<&BTreeMap<String, Vec<f64>>> {
        let is_it = |k: &Key| k.set == set && k.ranks == ranks && k.test == test && k.bytes == bytes;
        self.lines.iter().find(|(k, _)| is_it(k)).map(|(_, values)| values)
    }

    /// The values of `peer` for a test, all rounds; empty when there are none.
    pub(crate) fn of(&self, set: &str, ranks: usize, test: &str, bytes: u64, peer: &str) -> &[f64] {
        let values = self.line(set, ranks, test, bytes);
        values.and_then(|values| values.get(peer)).map_or(&[], Vec::as_slice)
    }
}

/// Median, least and greatest of some values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` when there are no values. What is not a number does not count.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Self { median, min, max })
    }

    /// Of the quotients round by round: what is measured side by side is compared side by side.
    pub(crate) fn of_ratios(ours: &[f64], theirs: &[f64]) -> Option<Self> {
        let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a / b).collect();
        Self::of(&ratios)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_and_rubbish_is_not() {
        let sample = Sample::parse("[0] RESULT latency 8 0.371 us").unwrap();
        assert_eq!(
            (sample.test.as_str(), sample.bytes, sample.value),
            ("latency", 8, 0.371)
        );
        assert!(Sample::parse("RESULT latency 8 elsewhere us").unwrap().value.is_nan());
        for line in [
            "",
            "RESULT latency",
            "RESULT latency 8 nan us",
            "RESULT latency x 1 us",
            "result latency 8 1 us",
        ] {
            assert_eq!(Sample::parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_round_that_gave_nothing_is_left_out() {
        let sample = |value| Sample {
            test: "latency".to_owned(),
            bytes: 8,
            value,
            unit: "us".to_owned(),
        };
        let mut samples = Samples::default();
        for round in 0..3 {
            samples.add("node", 2, "ours", round, vec![sample(2.0)]);
            if round != 1 {
                samples.add(
                    "node",
                    2,
                    "theirs",
                    round,
                    vec![sample(if round == 0 { 1.0 } else { 4.0 })],
                );
            }
        }
        let of = |peer| samples.of("node", 2, "latency", 8, peer);
        assert_eq!(Spread::of_ratios(of("ours"), of("theirs")), Spread::of(&[2.0, 0.5]));
        assert_eq!(of("theirs").len(), 3);
    }

    #[test]
    fn spread_and_ratios() {
        assert_eq!(
            Spread::of(&[3.0, 1.0, 2.0]),
            Some(Spread {
                median: 2.0,
                min: 1.0,
                max: 3.0
            })
        );
        assert_eq!(
            Spread::of_ratios(&[1.0, 4.0], &[2.0, 4.0]),
            Some(Spread {
                median: 0.75,
                min: 0.5,
                max: 1.0
            })
        );
        assert_eq!(
            Spread::of_ratios(&[1.0, f64::NAN, 4.0], &[2.0, 1.0, f64::NAN]),
            Spread::of(&[0.5])
        );
        assert_eq!(Spread::of(&[f64::NAN]), None);
    }
}
