// SPDX-License-Identifier: Apache-2.0
//! The simulator's picture of an emulated grid.

use std::fmt::Write as _;
use std::sync::Arc;

use isthmus_job::links;
use isthmus_schedule::simulate::{Limits, Outcome, run};
use isthmus_schedule::{Blocks, Call, Network, Operation, plan};
use isthmus_topology::{Known, Topology};

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
    /// What the plans are chosen by, and what messages cost.
    network: Arc<Network>,
}

impl Model {
    /// As the library sees the same pins.
    pub(super) fn new(grid: &Grid, pins: &str) -> Result<Self, Error> {
        let spots = grid.spots();
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let places = spots
            .iter()
            .map(|spot| [number(spot.site), number(spot.machine), number(spot.machine)]);
        let topology = Topology::from_clusters(places);
        let wrong = |error: isthmus_job::JobError| Error::Run {
            what: "pins of the links".to_owned(),
            said: error.to_string(),
        };
        let said = links::parse(pins, "links.toml").map_err(wrong)?;
        let site = |name: &str| {
            (0..grid.sites())
                .position(|site| grid.site_name(site) == name)
                .map(number)
        };
        let known = said
            .pinned(Known::new(said.levels(), []), site)
            .with_processors(processors());
        let network = Network::of_world(&topology, Arc::clone(known.links()), Arc::default());
        Ok(Self { topology, network })
    }

    /// The simulated time of a test, seconds.
    pub(super) fn predict(&self, test: &Test) -> Result<Outcome, Error> {
        let call = call(test, self.topology.size())?;
        let plans = (0..self.topology.size()).map(|me| plan(&call, &self.network, me));
        let outcome = run(
            plans,
            call.unit_bytes,
            &self.topology,
            self.network.links(),
            Limits::default(),
        );
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

/// What the library and the simulator are told of the links: latencies and rates of the grid, and what messages cost besides according
/// to half round trips inside a host and between hosts of a site.
pub(super) fn pins(grid: &Grid, inside: &Trips, between: &Trips) -> String {
    let mut text = String::new();
    // Both ends are busy with a copy through shared memory.
    let half = curve(inside.iter().map(|&(bytes, seconds)| (bytes, seconds / 2.0)));
    let _ = writeln!(
        text,
        "[level.node]\nlatency = \"0 ns\"\ngap = \"0 ns\"\nsend = {half}\nreceive = {half}\n"
    );
    let (least, latency) = (between.first().map_or(0.0, |trip| trip.1), grid.local_latency());
    let busy = time((least - latency) / 2.0);
    let gap = curve(between.iter().map(|&(bytes, seconds)| (bytes, seconds - least)));
    let _ = writeln!(
        text,
        "[level.local]\nlatency = {}\ngap = {gap}\nsend = {busy}\nreceive = {busy}\n",
        time(latency)
    );
    for a in 0..grid.sites() {
        for b in a + 1..grid.sites() {
            let (from, to) = (grid.site_name(a), grid.site_name(b));
            let _ = writeln!(
                text,
                "[[link]]\nbetween = [\"{from}\", \"{to}\"]\nlatency = {}\nsend = {busy}\nreceive = {busy}",
                time(grid.wide_latency(a, b))
            );
            if let Some(rate) = grid.rate(a, b) {
                #[expect(clippy::cast_precision_loss, reason = "a rate")]
                let payload = rate as f64 / 8.0 * PAYLOAD_SHARE * TLS_SHARE;
                let _ = writeln!(text, "rate = \"{payload:.0} B/s\"");
            }
        }
    }
    text
}

/// A time as these files have it.
fn time(seconds: f64) -> String {
    format!("\"{:.0} ns\"", seconds.max(0.0) * 1e9)
}

/// Through these points; times that descend (a disturbed probe) count as constant.
fn curve(points: impl Iterator<Item = (u64, f64)>) -> String {
    let mut most = 0.0f64;
    let points = points.map(|(bytes, seconds)| {
        most = most.max(seconds);
        format!("[\"{bytes} B\", {}]", time(most))
    });
    format!("[{}]", points.collect::<Vec<_>>().join(", "))
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
        let model = Model::new(&three_sites(4), &pins(&three_sites(4), &inside, &trips)).unwrap();
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
