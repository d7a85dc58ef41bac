// SPDX-License-Identifier: Apache-2.0
//! What has passed between sites while the job runs: sums of what processes and gateways count.

use isthmus_wire::boot::LinkTraffic;
use isthmus_wire::time::Time;
use std::collections::BTreeMap;
use std::time::Instant;

/// The sums.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// By connection to an agent and first process of those it speaks for.
    told: BTreeMap<(usize, u32), Vec<LinkTraffic>>,
    /// By site and first process.
    times: BTreeMap<(usize, u32), Time>,
    /// When the first processes began.
    began: Option<Instant>,
}

impl Tally {
    /// Processes begin.
    pub(crate) fn begin(&mut self) {
        self.began.get_or_insert_with(Instant::now);
    }

    /// An agent tells what its processes have counted since they began.
    pub(crate) fn take(&mut self, connection: usize, first: u32, traffic: Vec<LinkTraffic>) {
        self.told.insert((connection, first), traffic);
    }

    /// And where their time has gone.
    pub(crate) fn take_time(&mut self, site: usize, first: u32, time: Time) {
        self.times.insert((site, first), time);
    }

    /// Per site.
    pub(crate) fn times(&self) -> BTreeMap<usize, Time> {
        let mut sums: BTreeMap<usize, Time> = BTreeMap::new();
        for ((site, _), time) in &self.times {
            sums.entry(*site).or_default().add(time);
        }
        sums
    }

    /// Per direction of a link, sorted by names.
    pub(crate) fn links(&self) -> Vec<LinkTraffic> {
        let mut sums: BTreeMap<(&str, &str), LinkTraffic> = BTreeMap::new();
        for one in self.told.values().flatten() {
            let empty = || LinkTraffic {
                from: one.from.clone(),
                to: one.to.clone(),
                ..LinkTraffic::default()
            };
            sums.entry((&one.from, &one.to)).or_insert_with(empty).add(one);
        }
        sums.into_values().collect()
    }

    /// How long ago the processes began, milliseconds.
    pub(crate) fn age(&self) -> u64 {
        let age = self.began.map_or(0, |at| at.elapsed().as_millis());
        age.try_into().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_tell_is_summed_by_direction() {
        let of = |from: &str, sent| LinkTraffic {
            from: from.into(),
            to: "far".into(),
            sent,
            ..LinkTraffic::default()
        };
        let mut tally = Tally::default();
        tally.take(0, 0, vec![of("home", 1)]);
        tally.take(0, 0, vec![of("home", 5)]);
        tally.take(0, 4, vec![of("home", 7), of("lab", 1)]);
        let sums: Vec<_> = tally.links().into_iter().map(|l| (l.from, l.sent)).collect();
        assert_eq!(sums, [("home".to_owned(), 12), ("lab".to_owned(), 1)]);
    }
}
