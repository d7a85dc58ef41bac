// SPDX-License-Identifier: Apache-2.0
//! What has passed between this process and other sites: while the job runs, and for the summary at its end.

use std::collections::BTreeMap;

use isthmus_core::world::World;
use isthmus_net::Traffic;
use isthmus_transport::Peer;
use isthmus_wire::boot::LinkTraffic;

/// One entry per subjob with which this process had a channel.
pub(crate) fn summary(passed: Vec<(Peer, Traffic)>, world: &World) -> Vec<LinkTraffic> {
    let places = world.places();
    let subjob = |rank: u32| places.places.get(rank as usize).map(|place| place.subjob);
    let name = |subjob: u32| {
        let found = places.subjobs.get(subjob as usize);
        found.map_or_else(String::new, |s| s.name.clone())
    };
    let mut all: BTreeMap<u32, LinkTraffic> = BTreeMap::new();
    for (peer, traffic) in passed {
        let to = world.rank_of(peer).and_then(subjob);
        let (Some(from), Some(to)) = (subjob(world.rank()), to) else {
            continue;
        };
        let sum = all.entry(to).or_insert_with(|| LinkTraffic {
            from: name(from),
            to: name(to),
            ..LinkTraffic::default()
        });
        let looked = traffic.looked.as_micros().try_into().unwrap_or(u64::MAX);
        let observed_us = sum.observed_us.max(looked);
        sum.add(&LinkTraffic {
            from: String::new(),
            to: String::new(),
            sent: traffic.sent,
            received: traffic.received,
            classes: traffic.classes,
            duplicates: traffic.duplicates,
            round_trip_us: traffic.round_trip.as_micros().try_into().unwrap_or(u64::MAX),
            connections: traffic.connections,
            away: traffic.is_away.into(),
            retransmitted: traffic.retransmitted,
            resent: traffic.resent,
            cuts: traffic.cuts,
            moved: traffic.moved,
            renewed: traffic.renewed,
            away_ms: traffic.away.as_millis().try_into().unwrap_or(u64::MAX),
            streams: traffic.streams,
            compressed: traffic.compressed.0,
            plain: traffic.compressed.1,
            observed_us: 0,
            observers: 0,
        });
        // One process, however many channels it has.
        (sum.observed_us, sum.observers) = (observed_us, 1);
    }
    all.into_values().collect()
}
