// SPDX-License-Identifier: Apache-2.0
//! What processes have told of themselves while they run, summed for the coordinator when there is something new.

use crate::event::Event;
use isthmus_wire::boot::LinkTraffic;
use isthmus_wire::time::Time;
use std::collections::{BTreeMap, HashMap};

/// What a process tells of others than itself, and which process does; `site`: where it is.
pub(crate) fn overreach(event: &Event, site: &str) -> Option<(u32, String)> {
    let (index, traffic, time) = match event {
        Event::Traffic { index, traffic } => (*index, traffic.as_slice(), None),
        Event::Time { index, time } => (*index, &[][..], Some(time)),
        Event::Finished { index, counters } => (*index, counters.traffic.as_slice(), Some(&counters.time)),
        _ => return None,
    };
    let elsewhere = traffic.iter().find(|link| link.from != site);
    let elsewhere = elsewhere.map(|link| format!("it told of traffic of site '{}'", link.from));
    let others = time.filter(|time| time.processes > 1);
    let what = elsewhere.or_else(|| others.map(|time| format!("it told the time of {} processes", time.processes)))?;
    Some((index, what))
}

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
    use isthmus_wire::boot::Counters;

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

    #[test]
    fn a_process_tells_of_itself_and_of_its_own_site() {
        let link = |from: &str| LinkTraffic {
            from: from.into(),
            ..LinkTraffic::default()
        };
        let time = |processes| Time {
            processes,
            ..Time::default()
        };
        let finished = |from, processes| Event::Finished {
            index: 2,
            counters: Counters {
                traffic: vec![link(from)],
                time: time(processes),
                ..Counters::default()
            },
        };
        let traffic = |from| Event::Traffic {
            index: 2,
            traffic: vec![link("lab"), link(from)],
        };
        let told = |processes| Event::Time {
            index: 2,
            time: time(processes),
        };
        for own in [finished("lab", 1), traffic("lab"), told(1)] {
            assert_eq!(overreach(&own, "lab"), None);
        }
        for wrong in [finished("home", 1), finished("lab", 2), traffic("home"), told(2)] {
            assert_eq!(overreach(&wrong, "lab").map(|(index, _)| index), Some(2));
        }
    }
}
