// SPDX-License-Identifier: Apache-2.0
//! The simulator's picture of an emulated grid.

use std::fmt::Write as _;
use std::sync::Arc;

use isthmus_job::links;
use isthmus_schedule::{Blocks, Call, Network, Operation, Steps, plan};
use isthmus_simulate::{Limits, run};
use isthmus_topology::{LinkEstimates, Topology};

use super::super::grid::Grid;
use super::super::times::Test;
use crate::error::Error;

/// Bytes of a record of TLS, and around it.
const RECORD: (f64, f64) = (16384.0, 22.0);
/// Bytes of a packet that are TCP's payload, and in all on the line.
const PACKET: (f64, f64) = (1448.0, 1538.0);
/// Bytes in front of a message.
const HEADER: f64 = 32.0;
/// Packets that a connection that was idle carries before the first acknowledgement (RFC 5681, RFC 6928).
const INITIAL_WINDOW: f64 = 10.0;
/// Bytes of an element of a reduction.
const DOUBLE: u64 = 8;

/// Half of a round trip by size: (bytes, seconds), sizes ascending.
pub(super) type Trips = Vec<(u64, f64)>;

/// What was measured of messages.
#[derive(Clone, Debug)]
pub(super) struct Probes {
    /// Half round trips inside a host.
    pub(super) inside: Trips,
    /// And between two hosts of a site.
    pub(super) between: Trips,
    /// One way between these, seconds.
    pub(super) latency: f64,
}

/// What messages cost, and where processes are.
#[derive(Clone, Debug)]
pub(super) struct Model {
    topology: Topology,
    /// What the plans are chosen by, and what messages cost.
    network: Arc<Network>,
    limits: Limits,
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
        let estimates = said
            .pinned(LinkEstimates::new(said.levels(), []), site)
            .with_processors(processors());
        let network = Network::of_world(&topology, Arc::clone(estimates.links()), Arc::default());
        Ok(Self {
            topology,
            network,
            limits: Limits::default(),
        })
    }

    /// Connections between sites were idle, then have carried so many bytes.
    pub(super) fn with_windows_after(mut self, bytes: usize) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few kilobytes")]
        let window = (INITIAL_WINDOW * PACKET.0) as u64;
        self.limits.window = Some(window + bytes as u64);
        self
    }

    /// The simulated time of a test, seconds.
    pub(super) fn predict(&self, test: &Test) -> Result<f64, Error> {
        let call = call(test, self.topology.size())?;
        let plans = (0..self.topology.size()).map(|me| plan(&call, &self.network, me));
        let outcome = run(
            plans,
            call.unit_bytes,
            &self.topology,
            self.network.links(),
            Steps::Nodes,
            self.limits,
        );
        let outcome = outcome.map_err(|stopped| Error::Run {
            what: format!("simulation of {}", test.label()),
            said: stopped.to_string(),
        })?;
        #[expect(clippy::cast_precision_loss, reason = "a time")]
        let seconds = outcome.time() as f64 / 1e9;
        Ok(seconds)
    }
}

/// As processes find them: hosts of a testbed have all of the machine's.
fn processors() -> u32 {
    let all = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(all).unwrap_or(u32::MAX)
}

/// What the library and the simulator are told of the links: latencies and rates of the grid, and what messages cost
/// besides according to half round trips inside a host and between hosts of a site.
pub(super) fn pins(grid: &Grid, probes: &Probes) -> String {
    let Probes {
        inside,
        between,
        latency,
    } = probes;
    let mut text = String::new();
    // Both ends are busy with a copy through shared memory.
    let half = curve(inside.iter().map(|&(bytes, seconds)| (bytes, seconds / 2.0)));
    let _ = writeln!(
        text,
        "[level.node]\nlatency = \"0 ns\"\ngap = \"0 ns\"\nsend = {half}\nreceive = {half}\n"
    );
    let least = between.first().map_or(0.0, |trip| trip.1);
    let busy = time((least - latency) / 2.0);
    let gap = curve(between.iter().map(|&(bytes, seconds)| (bytes, seconds - least)));
    let _ = writeln!(
        text,
        "[level.local]\nlatency = {}\ngap = {gap}\nsend = {busy}\nreceive = {busy}\n",
        time(grid.local_latency())
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
                let rate = rate as f64 / 8.0;
                let sizes = LINE_SIZES.into_iter();
                let gap = curve(sizes.map(|bytes| (bytes, on_the_line(bytes) / rate)));
                let _ = writeln!(text, "gap = {gap}");
            }
        }
    }
    text
}

/// Sizes for which it is said what a message takes of the line: one packet's worth, one record's, and where only shares
/// count.
const LINE_SIZES: [u64; 4] = [1, 1024, 16 << 10, 16 << 20];

/// Bytes on the line for a message of so many: with its header, the records of TLS, the packets of TCP.
fn on_the_line(bytes: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "bytes of a message")]
    let plain = bytes as f64 + HEADER;
    let sealed = plain + (plain / RECORD.0).ceil() * RECORD.1;
    sealed + (sealed / PACKET.0).ceil() * (PACKET.1 - PACKET.0)
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
        // As the library does in blocking operations.
        nodes: true,
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
    fn a_kibibyte_takes_what_table_2_says() {
        assert!((on_the_line(1024) - 1168.0).abs() < 0.5, "{}", on_the_line(1024));
    }

    #[test]
    fn the_model_knows_the_grids_latencies_and_rates() {
        let trips = vec![(8, 0.000_51), (65536, 0.000_9)];
        let inside = vec![(8, 1e-6), (65536, 2e-5)];
        let probes = Probes {
            inside,
            between: trips,
            latency: 0.0005,
        };
        let model = Model::new(&three_sites(4), &pins(&three_sites(4), &probes)).unwrap();
        let seconds = |name, root, bytes| model.predict(&Test::new(name, root, bytes)).unwrap();
        // From b's first rank 20 ms to c and half a millisecond to its second machine.
        let bcast = seconds("bcast", 8, 8);
        assert!((0.0205..0.0207).contains(&bcast), "{bcast}");
        // 16 MiB over a link of 100 Mbit/s: 1.43 s, or somewhat more than half of it over two ways.
        let long = seconds("bcast", 8, 16 << 20);
        assert!((0.7..1.6).contains(&long), "{long}");
        // Connections that were idle let ten packets pass before the first acknowledgement.
        let cold = model.clone().with_windows_after(0);
        let cold = |bytes| cold.predict(&Test::new("bcast", 8, bytes)).unwrap();
        assert!((cold(8) - bcast).abs() < 1e-9);
        assert!(cold(64 << 10) > seconds("bcast", 8, 64 << 10) + 0.02);
        assert!(model.predict(&Test::new("gatherv", 0, 8)).is_err());
    }
}
