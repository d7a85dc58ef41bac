// SPDX-License-Identifier: Apache-2.0
//! The simulator's picture of an emulated grid.

use std::sync::Arc;

use isthmus_schedule::simulate::{Limits, Outcome, run};
use isthmus_schedule::{Blocks, Call, Network, Operation, plan};
use isthmus_topology::{Curve, Level, Link, Links, Topology};

use super::super::bound::PAYLOAD_SHARE;
use super::super::grid::Grid;
use super::super::times::Test;
use crate::error::Error;

/// Share of what TCP carries that is payload of TLS: records of 16 KiB with 22 bytes around them.
const TLS_SHARE: f64 = 16384.0 / (16384.0 + 22.0);
/// Bytes of an element of a reduction.
const DOUBLE: u64 = 8;

/// Half of a round trip by size: (bytes, seconds), sizes ascending.
pub(super) type Trips = Vec<(u64, f64)>;

/// What messages cost, and where processes are.
#[derive(Debug)]
pub(super) struct Model {
    topology: Topology,
    /// What the plans are chosen by.
    network: Arc<Network>,
    /// What the messages cost.
    links: Links,
}

impl Model {
    /// Latencies and rates between hosts are those of the grid; what messages cost besides is taken from probes inside a host and
    /// between hosts of a site.
    pub(super) fn new(grid: &Grid, inside: &Trips, between: &Trips) -> Self {
        let spots = grid.spots();
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let places = spots
            .iter()
            .map(|spot| [number(spot.site), number(spot.machine), number(spot.machine)]);
        let topology = Topology::from_clusters(places);
        let links = links(grid, inside, between);
        let mut known = Links::default();
        known.processors = processors();
        Self {
            network: Network::of_world(&topology, Arc::new(known), Arc::default()),
            topology,
            links,
        }
    }

    /// The simulated time of a test, seconds.
    pub(super) fn predict(&self, test: &Test) -> Result<Outcome, Error> {
        let call = call(test, self.topology.size())?;
        let plans = (0..self.topology.size()).map(|me| plan(&call, &self.network, me));
        let outcome = run(plans, call.unit_bytes, &self.topology, &self.links, Limits::default());
        outcome.map_err(|stopped| Error::Run {
            what: format!("simulation of {}", test.label()),
            said: stopped.to_string(),
        })
    }
}

/// As processes find them: hosts of a testbed have all of the machine's.
fn processors() -> u32 {
    let all = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(all).unwrap_or(u32::MAX)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "conversions of floats saturate"
)]
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

fn links(grid: &Grid, inside: &Trips, between: &Trips) -> Links {
    let mut links = Links::default();
    // Both ends are busy with a copy through shared memory.
    let half = curve(inside.iter().map(|&(bytes, seconds)| (bytes, seconds / 2.0)));
    let node = Link {
        latency: 0,
        gap: Curve::ZERO,
        send: half.clone(),
        receive: half,
    };
    for level in [Level::Machine, Level::Vendor, Level::Node] {
        links.set_level(level, node.clone());
    }
    let least = between.first().map_or(0.0, |trip| trip.1);
    let latency = grid.local_latency();
    let busy = Curve::constant(nanoseconds((least - latency).max(0.0) / 2.0));
    links.set_level(
        Level::LocalArea,
        Link {
            latency: nanoseconds(latency),
            gap: curve(between.iter().map(|&(bytes, seconds)| (bytes, seconds - least))),
            send: busy.clone(),
            receive: busy.clone(),
        },
    );
    for a in 0..grid.sites() {
        for b in a + 1..grid.sites() {
            let gap = grid.rate(a, b).map_or(Curve::ZERO, |rate| {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    clippy::cast_precision_loss,
                    reason = "a rate"
                )]
                Curve::rate((rate as f64 / 8.0 * PAYLOAD_SHARE * TLS_SHARE) as u64)
            });
            let link = Link {
                latency: nanoseconds(grid.wide_latency(a, b)),
                gap,
                send: busy.clone(),
                receive: busy.clone(),
            };
            links.set_pair(a as u32, b as u32, link);
        }
    }
    links
}

/// Through these points; times that descend (a disturbed probe) count as constant.
fn curve(points: impl Iterator<Item = (u64, f64)>) -> Curve {
    let mut most = 0;
    let points = points.map(|(bytes, seconds)| {
        most = nanoseconds(seconds.max(0.0)).max(most);
        (bytes, most)
    });
    Curve::new(points.collect()).unwrap_or_default()
}

fn call(test: &Test, ranks: u32) -> Result<Call, Error> {
    use Operation as O;
    let operation = match test.name.as_str() {
        "barrier" => O::Barrier,
        "bcast" => O::Bcast,
        "reduce" => O::Reduce,
        "allreduce" => O::Allreduce,
        "gather" => O::Gather,
        "scatter" => O::Scatter,
        "allgather" => O::Allgather,
        "alltoall" => O::Alltoall,
        "scan" => O::Scan,
        "exscan" => O::Exscan,
        "reduce_scatter" => O::ReduceScatter,
        "reduce_scatter_block" => O::ReduceScatterBlock,
        _ => {
            return Err(Error::Unknown {
                kind: "operation",
                name: test.name.clone(),
                known: "those without v".to_owned(),
            });
        }
    };
    let reduces = matches!(
        operation,
        O::Reduce | O::Allreduce | O::Scan | O::Exscan | O::ReduceScatter | O::ReduceScatterBlock
    );
    let unit_bytes = if reduces { DOUBLE } else { 1 };
    let units = if operation == O::Barrier {
        0
    } else {
        test.bytes as u64 / unit_bytes
    };
    let mut call = Call {
        root: u32::try_from(test.root).unwrap_or(u32::MAX),
        unit_bytes,
        ..Call::new(operation, units)
    };
    if operation == O::ReduceScatter {
        call.blocks = Blocks::known((0..ranks).map(|_| units));
    }
    Ok(call)
}

#[cfg(test)]
mod tests {
    use super::super::super::latency::three_sites;
    use super::*;

    #[test]
    fn the_model_knows_the_grids_latencies_and_rates() {
        let trips = vec![(8, 0.000_51), (65536, 0.000_9)];
        let inside = vec![(8, 1e-6), (65536, 2e-5)];
        let model = Model::new(&three_sites(4), &inside, &trips);
        let seconds = |name, root, bytes| model.predict(&Test::new(name, root, bytes)).unwrap().time() as f64 / 1e9;
        // From b's first rank 20 ms to c and half a millisecond to its second machine.
        let bcast = seconds("bcast", 8, 8);
        assert!((0.0205..0.0207).contains(&bcast), "{bcast}");
        // 16 MiB over a link of 100 Mbit/s: 1.43 s, or somewhat more than half of it over two ways.
        let long = seconds("bcast", 8, 16 << 20);
        assert!((0.7..1.6).contains(&long), "{long}");
        assert!(model.predict(&Test::new("gatherv", 0, 8)).is_err());
    }
}
