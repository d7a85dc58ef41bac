// SPDX-License-Identifier: Apache-2.0
//! What processes have told of themselves while they run, summed for the coordinator when there is something new.

use isthmus_wire::boot::LinkTraffic;
use isthmus_wire::time::Time;
use std::collections::{BTreeMap, HashMap};

/// By index of the process.
#[derive(Debug, Default)]
pub(crate) struct Told {
    traffic: HashMap<u32, Vec<LinkTraffic>>,
    times: HashMap<u32, Time>,
    new_traffic: bool,
    new_times: bool,
}

impl Told {
    /// What a process has exchanged with other sites since it began.
    pub(crate) fn take_traffic(&mut self, index: u32, traffic: Vec<LinkTraffic>) {
        self.traffic.insert(index, traffic);
        self.new_traffic = true;
    }

    /// Where the time of a process has gone.
    pub(crate) fn take_time(&mut self, index: u32, time: Time) {
        self.times.insert(index, time);
        self.new_times = true;
    }

    /// Sums per link, if there is something new.
    pub(crate) fn traffic(&mut self) -> Option<Vec<LinkTraffic>> {
        if !std::mem::take(&mut self.new_traffic) {
            return None;
        }
        let mut sums: BTreeMap<(&str, &str), LinkTraffic> = BTreeMap::new();
        for one in self.traffic.values().flatten() {
            let empty = || LinkTraffic {
                from: one.from.clone(),
                to: one.to.clone(),
                ..LinkTraffic::default()
            };
            sums.entry((&one.from, &one.to)).or_insert_with(empty).add(one);
        }
        Some(sums.into_values().collect())
    }

    /// The time of all together, if there is something new.
    pub(crate) fn time(&mut self) -> Option<Time> {
        if !std::mem::take(&mut self.new_times) {
            return None;
        }
        let mut sum = Time::default();
        self.times.values().for_each(|time| sum.add(time));
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_is_told_and_the_last_word_of_each_process_counts() {
        let time = |elapsed| Time {
            processes: 1,
            elapsed,
            ..Time::default()
        };
        let mut told = Told::default();
        assert!(told.time().is_none() && told.traffic().is_none());
        told.take_time(0, time(5));
        told.take_time(0, time(7));
        told.take_time(3, time(1));
        assert_eq!(told.time().map(|t| (t.processes, t.elapsed)), Some((2, 8)));
        assert!(told.time().is_none());
    }
}
