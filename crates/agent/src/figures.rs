// SPDX-License-Identifier: Apache-2.0
//! What processes have told of themselves while they run, summed for the coordinator when there is something new.

use crate::event::Event;
use isthmus_wire::boot::LinkTraffic;
use isthmus_wire::time::Time;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// A process that has not told anything for so long has nothing new to tell: it tells within a second of what passes.
const SILENT: Duration = Duration::from_secs(2);

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
    let observers = traffic.iter().map(|link| link.observers).max().unwrap_or(0);
    let processes = observers.max(time.map_or(0, |time| time.processes));
    let others = (processes > 1).then(|| format!("it told the time of {processes} processes"));
    let what = elsewhere.or(others)?;
    Some((index, what))
}

/// By index of the process.
#[derive(Debug)]
pub(crate) struct Figures {
    /// No process is older.
    began: Instant,
    /// And when it was told.
    traffic: HashMap<u32, (Vec<LinkTraffic>, Instant)>,
    times: HashMap<u32, Time>,
    new_times: bool,
}

impl Figures {
    pub(crate) fn new(began: Instant) -> Self {
        Self {
            began,
            traffic: HashMap::new(),
            times: HashMap::new(),
            new_times: false,
        }
    }

    /// What a process has exchanged with other sites since it began. It cannot have observed that for longer
    /// than it can have run.
    pub(crate) fn take_traffic(&mut self, index: u32, mut traffic: Vec<LinkTraffic>, now: Instant) {
        let most = microseconds(now.saturating_duration_since(self.began));
        for link in &mut traffic {
            link.observed_us = link.observed_us.min(most);
        }
        self.traffic.insert(index, (traffic, now));
    }

    /// Where the time of a process has gone.
    pub(crate) fn take_time(&mut self, index: u32, time: Time) {
        self.times.insert(index, time);
        self.new_times = true;
    }

    /// Sums per link, if anything has passed. The time goes on for processes that have nothing to tell, too.
    pub(crate) fn traffic(&self, now: Instant) -> Option<Vec<LinkTraffic>> {
        let mut sums: BTreeMap<(&str, &str), LinkTraffic> = BTreeMap::new();
        for (links, told) in self.traffic.values() {
            let silent = now.saturating_duration_since(*told).saturating_sub(SILENT);
            for one in links {
                let empty = || LinkTraffic {
                    from: one.from.clone(),
                    to: one.to.clone(),
                    ..LinkTraffic::default()
                };
                let sum = sums.entry((&one.from, &one.to)).or_insert_with(empty);
                sum.add(one);
                sum.observed_us = sum.observed_us.saturating_add(microseconds(silent));
            }
        }
        (!sums.is_empty()).then(|| sums.into_values().collect())
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

fn microseconds(time: Duration) -> u64 {
    time.as_micros().try_into().unwrap_or(u64::MAX)
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
        let began = Instant::now();
        let mut told = Figures::new(began);
        assert!(told.time().is_none() && told.traffic(began).is_none());
        told.take_time(0, time(5));
        told.take_time(0, time(7));
        told.take_time(3, time(1));
        assert_eq!(told.time().map(|t| (t.processes, t.elapsed)), Some((2, 8)));
        assert!(told.time().is_none());
    }

    #[test]
    fn sums_carry_the_time_at_which_processes_have_counted() {
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        let passed = |sent, seconds: u64| {
            vec![LinkTraffic {
                from: "lab".into(),
                sent,
                observed_us: seconds * 1_000_000,
                observers: 1,
                ..LinkTraffic::default()
            }]
        };
        let mut told = Figures::new(began);
        told.take_traffic(0, passed(10, 3), after(4));
        told.take_traffic(1, passed(30, 4), after(4));
        let sum = |now| told.traffic(after(now)).map(|all| (all[0].sent, all[0].counted_at()));
        assert_eq!(sum(5), Some((40, Some(3.5))));
        // Both have nothing to tell, and the time goes on.
        assert_eq!(sum(16), Some((40, Some(13.5))));
        // The one goes on; nobody has run for longer than the agent.
        let mut told = Figures::new(began);
        told.take_traffic(0, passed(10, u64::MAX / 1_000_000), after(4));
        assert_eq!(told.traffic(after(4)).map(|all| all[0].counted_at()), Some(Some(4.0)));
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
        let two = Event::Traffic {
            index: 2,
            traffic: vec![LinkTraffic {
                observers: 2,
                ..link("lab")
            }],
        };
        for wrong in [finished("home", 1), finished("lab", 2), traffic("home"), two, told(2)] {
            assert_eq!(overreach(&wrong, "lab").map(|(index, _)| index), Some(2));
        }
    }
}
