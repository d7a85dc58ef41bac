// SPDX-License-Identifier: Apache-2.0
//! Sums of what the processes counted.

use isthmus_wire::boot::{Counters, LevelCounters};
use std::collections::BTreeMap;
use std::fmt;

/// Names of the levels, by number.
const LEVELS: [&str; 5] = ["wide area", "local area", "machine", "vendor", "node"];

/// What all processes of a job counted together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Per operation: messages and bytes at each level.
    rows: BTreeMap<String, [LevelCounters; 5]>,
    /// Per operation: calls on all processes.
    calls: BTreeMap<String, u64>,
    processes: u32,
}

impl Statistics {
    /// Adds what one process counted. Levels that do not exist are ignored.
    pub fn add(&mut self, counters: &Counters) {
        self.processes += 1;
        for (operation, level, counted) in &counters.rows {
            let row = self.rows.entry(operation.clone()).or_default();
            if let Some(sum) = row.get_mut(usize::from(*level)) {
                sum.messages = sum.messages.saturating_add(counted.messages);
                sum.bytes = sum.bytes.saturating_add(counted.bytes);
            }
        }
        for (operation, calls) in &counters.calls {
            let sum = self.calls.entry(operation.clone()).or_default();
            *sum = sum.saturating_add(*calls);
        }
    }

    /// Whether any process has counted.
    pub fn is_empty(&self) -> bool {
        self.processes == 0
    }

    fn operations(&self) -> impl Iterator<Item = &String> {
        let mut names: Vec<_> = self.rows.keys().chain(self.calls.keys()).collect();
        names.sort();
        names.dedup();
        names.into_iter()
    }
}

/// A table: a row per operation, messages and bytes per level.
impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<usize> = (0..LEVELS.len())
            .filter(|l| *l != 3 || self.rows.values().any(|r| r[*l].messages > 0))
            .collect();
        writeln!(
            f,
            "isthmus: what {} processes sent, messages and bytes by level",
            self.processes
        )?;
        write!(f, "{:<22} {:>10}", "operation", "calls")?;
        for level in &shown {
            write!(f, " | {:^25}", LEVELS[*level])?;
        }
        for operation in self.operations() {
            let calls = self.calls.get(operation).copied().unwrap_or(0);
            write!(f, "\n{operation:<22} {calls:>10}")?;
            let row = self.rows.get(operation).copied().unwrap_or_default();
            for level in &shown {
                write!(f, " | {:>10} {:>14}", row[*level].messages, row[*level].bytes)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_summed_by_operation_and_level() {
        let mut sums = Statistics::default();
        let one = Counters {
            rows: vec![
                (
                    "bcast".into(),
                    0,
                    LevelCounters {
                        messages: 1,
                        bytes: 1024,
                    },
                ),
                (
                    "bcast".into(),
                    4,
                    LevelCounters {
                        messages: 3,
                        bytes: 3072,
                    },
                ),
                ("bcast".into(), 9, LevelCounters { messages: 7, bytes: 7 }),
            ],
            calls: vec![("bcast".into(), 1), ("barrier".into(), 2)],
            links: vec![],
        };
        sums.add(&one);
        sums.add(&one);
        assert_eq!(
            sums.rows["bcast"][0],
            LevelCounters {
                messages: 2,
                bytes: 2048
            }
        );
        let text = sums.to_string();
        assert!(
            text.lines().any(|l| l.starts_with("barrier") && l.contains(" 4 |")),
            "{text}"
        );
        assert!(text.contains("wide area") && !text.contains("vendor"), "{text}");
    }
}
