// SPDX-License-Identifier: Apache-2.0
//! What has passed between sites while the job runs: sums of what processes and gateways count.

use isthmus_job::Subjob;
use isthmus_wire::boot::LinkTraffic;
use isthmus_wire::time::{SiteTime, Time};
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

    /// Where the time of the processes has gone, per site.
    pub(crate) fn site_times(&self, subjobs: &[Subjob]) -> Vec<SiteTime> {
        let mut sums: BTreeMap<usize, Time> = BTreeMap::new();
        for ((site, _), time) in &self.times {
            sums.entry(*site).or_default().add(time);
        }
        let named = sums.into_iter().filter_map(|(site, time)| {
            let site = subjobs.get(site)?.site.clone();
            Some(SiteTime { site, time })
        });
        named.collect()
    }

    /// Links that are cut now: from where to where.
    pub(crate) fn cuts(&self) -> Vec<(String, String)> {
        let away = self.links().into_iter().filter(|link| link.away > 0);
        away.map(|link| (link.from, link.to)).collect()
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
        assert!(tally.cuts().is_empty());
        let cut = LinkTraffic {
            away: 1,
            ..of("lab", 0)
        };
        tally.take(1, 0, vec![cut]);
        assert_eq!(tally.cuts(), [("lab".to_owned(), "far".to_owned())]);
    }
}
