// SPDX-License-Identifier: Apache-2.0
//! Sums of what the processes counted.

use crate::times::{self, LEVELS};
use crate::used;
use isthmus_job::quantity::show_amount;
use isthmus_wire::boot::{Counters, LevelCounters, LinkTraffic};
use isthmus_wire::chosen::{Candidate, Chosen, MOST_CHOICES};
use isthmus_wire::time::{SiteTime, Time};
use isthmus_wire::usage::Usage;
use isthmus_wire::word::counted;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// What all processes of a job counted together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Per operation: messages and bytes at each level.
    rows: BTreeMap<String, [LevelCounters; 5]>,
    /// Per operation: calls on all processes.
    calls: BTreeMap<String, u64>,
    processes: u32,
    /// By name of the two subjobs, sorted.
    traffic: BTreeMap<(String, String), LinkTraffic>,
    /// By name of the subjob.
    times: BTreeMap<String, Time>,
    /// By operation, magnitude of the size, and members.
    choices: BTreeMap<(String, u32, u32), Chosen>,
    /// By name and site, as far as there is room.
    files: Vec<Usage>,
}

impl Statistics {
    /// Adds what one process of this site counted. Levels that do not exist are ignored.
    pub fn add(&mut self, site: &str, counters: &Counters) {
        self.processes += 1;
        self.times.entry(site.to_owned()).or_default().add(&counters.time);
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
        for one in &counters.choices {
            self.add_choice(one);
        }
        for one in &counters.traffic {
            self.add_traffic(one);
        }
        for one in &counters.files {
            one.clone().note(&mut self.files);
        }
    }

    /// Several communicators may choose alike.
    fn add_choice(&mut self, one: &Chosen) {
        let magnitude = one.bytes.checked_ilog2().map_or(0, |log| log + 1);
        let key = (one.operation.clone(), magnitude, one.members);
        let room = self.choices.len() < MOST_CHOICES;
        match self.choices.get_mut(&key) {
            Some(known) => known.calls = known.calls.saturating_add(one.calls),
            None if room => drop(self.choices.insert(key, one.clone())),
            None => {}
        }
    }

    /// What was chosen for collective operations between sites, and what else there was.
    pub(crate) fn choices(&self) -> Value {
        let way = |way: &Candidate| {
            json!({
                "name": way.name, "seconds": way.cost as f64 / 1e9, "opening_seconds": way.opening as f64 / 1e9,
                "chosen": way.chosen,
            })
        };
        let choice = |one: &Chosen| {
            let ways: Vec<Value> = one.ways.iter().map(way).collect();
            json!({
                "operation": one.operation, "block_bytes": one.bytes, "members": one.members, "calls": one.calls, "ways": ways,
            })
        };
        self.choices.values().map(choice).collect()
    }

    /// What was done with files.
    pub(crate) fn files(&self) -> Value {
        self.files.iter().map(used::json).collect()
    }

    fn add_traffic(&mut self, one: &LinkTraffic) {
        let key = (one.from.clone(), one.to.clone());
        let sum = self.traffic.entry(key).or_default();
        sum.add(one);
    }

    /// A line for every direction between two subjobs over the wide area; `always`: also where all went well.
    pub fn links(&self, always: bool) -> Vec<String> {
        let all = self
            .traffic
            .iter()
            .filter(|(_, t)| always || t.cuts + t.moved + t.renewed > 0);
        all.map(|((from, to), traffic)| line(from, to, traffic)).collect()
    }

    /// Sums of each direction between two subjobs, if processes told any at their ends: those are whole.
    pub(crate) fn traffic(&self) -> Option<Vec<LinkTraffic>> {
        let named = |((from, to), sums): (&(String, String), &LinkTraffic)| LinkTraffic {
            from: from.clone(),
            to: to.clone(),
            ..sums.clone()
        };
        let all: Vec<LinkTraffic> = self.traffic.iter().map(named).collect();
        (!all.is_empty()).then_some(all)
    }

    /// Where the time of the processes went, per site.
    pub fn times(&self) -> Vec<SiteTime> {
        let named = |(site, time): (&String, &Time)| SiteTime {
            site: site.clone(),
            time: time.clone(),
        };
        self.times.iter().map(named).collect()
    }

    /// Whether any process has counted.
    pub fn is_empty(&self) -> bool {
        self.processes == 0
    }

    /// Per operation: its name, calls on all processes, and messages and bytes at each level that had any.
    pub(crate) fn json(&self) -> Value {
        let operations = self.operations().map(|name| {
            let row = self.rows.get(name).copied().unwrap_or_default();
            let levels: Vec<Value> = LEVELS
                .iter()
                .zip(row)
                .filter(|(_, counted)| counted.messages > 0)
                .map(|(level, counted)| json!({"level": level, "messages": counted.messages, "bytes": counted.bytes}))
                .collect();
            json!({"operation": name, "calls": self.calls.get(name).copied().unwrap_or(0), "levels": levels})
        });
        Value::Array(operations.collect())
    }

    fn operations(&self) -> impl Iterator<Item = &String> {
        let mut names: Vec<_> = self.rows.keys().chain(self.calls.keys()).collect();
        names.sort();
        names.dedup();
        names.into_iter()
    }
}

fn line(from: &str, to: &str, traffic: &LinkTraffic) -> String {
    let mut line = format!("{from} to {to}: {} sent", show_amount(traffic.sent));
    let mut add = |text: String| {
        line.push_str(", ");
        line.push_str(&text);
    };
    if traffic.retransmitted > 0 {
        let share = traffic.retransmitted as f64 / traffic.sent.max(1) as f64 * 100.0;
        add(format!("{share:.2} % of it again because of lost packets"));
    }
    add(format!(
        "up to {} per pair of processes",
        counted(traffic.streams, "connection")
    ));
    if traffic.plain > 0 {
        let (plain, compressed) = (show_amount(traffic.plain), show_amount(traffic.compressed));
        add(format!("{plain} compressed to {compressed}"));
    }
    if traffic.moved > 0 {
        add(format!(
            "{} channels moved from gateways to connections of their own",
            traffic.moved
        ));
    }
    if traffic.renewed > 0 {
        add(format!(
            "{} channels went on over other connections of gateways, which had ended those before",
            traffic.renewed
        ));
    }
    if traffic.cuts > 0 {
        let away = traffic.away_ms as f64 / 1000.0;
        let resent = traffic.resent;
        add(format!(
            "{} channels went on after their connections broke (away for {away:.1} s at most, {resent} segments sent again)",
            traffic.cuts
        ));
    }
    line
}

/// A table: a row per operation, messages and bytes per level.
impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<usize> = (0..LEVELS.len())
            .filter(|l| *l != 3 || self.rows.values().any(|r| r[*l].messages > 0))
            .collect();
        writeln!(
            f,
            "isthmus: what {} sent, messages and bytes by level",
            counted(self.processes, "process")
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
        let times = self.times();
        writeln!(
            f,
            "\n\nwhere the time of the processes went: computing, waiting for messages and in collective operations"
        )?;
        write!(f, "{}\n\n{}", times::by_site(&times, false), times::by_call(&times))?;
        match self.files.is_empty() {
            true => Ok(()),
            false => write!(f, "\n\n{}", used::table(&self.files)),
        }
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
            traffic: vec![LinkTraffic {
                from: "home".into(),
                to: "lab".into(),
                sent: 2_500_000,
                streams: 4,
                plain: 6_000_000,
                compressed: 2_000_000,
                ..LinkTraffic::default()
            }],
            time: Time::default(),
            choices: vec![],
            files: vec![],
        };
        sums.add("home", &one);
        sums.add("home", &one);
        assert_eq!(
            sums.rows["bcast"][0],
            LevelCounters {
                messages: 2,
                bytes: 2048
            }
        );
        assert!(sums.links(false).is_empty());
        assert_eq!(
            sums.links(true),
            ["home to lab: 5.0 MB sent, up to 4 connections per pair of processes, 12.0 MB compressed to 4.0 MB"]
        );
        let text = sums.to_string();
        assert!(
            text.lines().any(|l| l.starts_with("barrier") && l.contains(" 4 |")),
            "{text}"
        );
        assert!(text.contains("wide area") && !text.contains("vendor"), "{text}");
    }
}
