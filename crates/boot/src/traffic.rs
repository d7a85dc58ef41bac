// SPDX-License-Identifier: Apache-2.0
//! What has passed between this process and other sites, for the summary at the end of a job.

use std::collections::BTreeMap;

use isthmus_net::Prober;
use isthmus_wire::boot::LinkTraffic;
use isthmus_wire::place::PlaceTable;

/// One entry per subjob with which this process had a channel.
pub(crate) fn summary(prober: &Prober, places: &PlaceTable, me: u32) -> Vec<LinkTraffic> {
    let subjob = |rank: u32| places.places.get(rank as usize).map(|place| place.subjob);
    let name = |subjob: u32| {
        let found = places.subjobs.get(subjob as usize);
        found.map_or_else(String::new, |s| s.name.clone())
    };
    let mut all: BTreeMap<u32, LinkTraffic> = BTreeMap::new();
    for (peer, traffic) in prober.traffic() {
        let (Some(from), Some(to)) = (subjob(me), subjob(peer)) else {
            continue;
        };
        let sum = all.entry(to).or_insert_with(|| LinkTraffic {
            from: name(from),
            to: name(to),
            ..LinkTraffic::default()
        });
        sum.sent += traffic.sent;
        sum.retransmitted += traffic.retransmitted;
        sum.resent += traffic.resent;
        sum.cuts += traffic.cuts;
        sum.away_ms = sum.away_ms.max(traffic.away.as_millis().try_into().unwrap_or(u64::MAX));
        sum.streams = sum.streams.max(traffic.streams);
        sum.compressed += traffic.compressed.0;
        sum.plain += traffic.compressed.1;
    }
    all.into_values().collect()
}
