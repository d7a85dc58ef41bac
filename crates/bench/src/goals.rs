// SPDX-License-Identifier: Apache-2.0
//! What Isthmus promises against its peers and against the line, judged by the samples of one run.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::Error;
use crate::samples::{Key, Samples, Spread};

/// Our own name among the libraries.
const OURS: &str = "isthmus";

/// The wide-area link that was asked for.
#[derive(Debug)]
pub(crate) struct Link {
    one_way_us: f64,
    mbit: f64,
}

impl Link {
    /// From the texts that the testbed got.
    pub(crate) fn of(rtt: &str, rate: &str) -> Result<Self, Error> {
        let topology = isthmus_testbed::Topology::grid("2x1")?.round_trip(rtt)?.rate(rate)?;
        #[expect(clippy::cast_precision_loss, reason = "at most 100 Gbit/s")]
        let mbit = topology.link.rate.map_or(f64::INFINITY, |bits| bits as f64 / 1e6);
        Ok(Self {
            one_way_us: topology.link.round_trip.as_secs_f64() * 1e6 / 2.0,
            mbit,
        })
    }
}

/// A promise and what came of it.
#[derive(Debug, Serialize)]
pub(crate) struct Verdict {
    pub(crate) goal: String,
    pub(crate) measured: Spread,
    pub(crate) limit: f64,
    pub(crate) met: bool,
}

/// Judges every goal for which there are samples; the median decides.
pub(crate) fn judge(samples: &Samples, link: &Link) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    verdicts.extend(judge_local(samples));
    verdicts.extend(judge_node(samples));
    verdicts.extend(judge_datatypes(samples));
    verdicts.extend(judge_wide(samples, link));
    verdicts.extend(judge_tcp(samples));
    verdicts.extend(judge_busy(samples));
    verdicts.extend(judge_vendor(samples));
    verdicts.extend(judge_startup(samples));
    let cpu = Spread::of(samples.of("blocked", 2, "blocked", 10_000, OURS));
    verdicts.extend(cpu.map(|s| at_most("CPU seconds of 10 s blocked in MPI_Recv", s, 0.2)));
    verdicts
}

type Line = (&'static str, usize, &'static str, u64);

fn judge_local(samples: &Samples) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for bytes in [0, 8, 64] {
        let r = ratio(samples, ("local", 2, "latency", bytes), &["mpich", "openmpi"], false);
        verdicts.extend(r.map(|r| at_most(&format!("latency of {bytes} bytes / the better peer's"), r, 1.5)));
    }
    let r = ratio(samples, ("local", 2, "bandwidth", 1 << 20), &["mpich", "openmpi"], true);
    verdicts.extend(r.map(|r| at_least("bandwidth of 1 MiB / the better peer's", r, 0.8)));
    for (test, bytes) in [("barrier", 0), ("allreduce", 8)] {
        let r = ratio(samples, ("local", 8, test, bytes), &["openmpi"], false);
        verdicts.extend(r.map(|r| at_most(&format!("{test} of 8 ranks: time / openmpi's"), r, 1.0)));
        let r = ratio(samples, ("local", 8, test, bytes), &["mpich"], false);
        verdicts.extend(r.map(|r| at_most(&format!("{test} of 8 ranks: time / mpich's"), r, 0.02)));
    }
    verdicts
}

/// In shared memory: as good as the best of all peers everywhere.
fn judge_node(samples: &Samples) -> Vec<Verdict> {
    let lines = samples.lines.iter().filter(|(key, _)| key.set == "node");
    let judge = |(key, values): (&Key, &BTreeMap<String, Vec<f64>>)| {
        let peers: Vec<&str> = values.keys().map(String::as_str).filter(|peer| *peer != OURS).collect();
        let r = values_ratio(values, &peers, key.is_rate())?;
        let goal = format!(
            "{} of {} bytes, {} ranks / the best peer's",
            key.test, key.bytes, key.ranks
        );
        Some(if key.is_rate() {
            at_least(&goal, r, 1.0)
        } else {
            at_most(&goal, r, 1.0)
        })
    };
    lines.filter_map(judge).collect()
}

/// Where processors are wanted by others too: within twice the best of all peers.
fn judge_busy(samples: &Samples) -> Vec<Verdict> {
    let is_one = |set: &str| set.starts_with("busy");
    let lines = samples.lines.iter().filter(|(key, _)| is_one(&key.set));
    let judge = |(key, values): (&Key, &BTreeMap<String, Vec<f64>>)| {
        let peers: Vec<&str> = values.keys().map(String::as_str).filter(|peer| *peer != OURS).collect();
        let r = values_ratio(values, &peers, key.is_rate())?;
        let goal = format!(
            "{}: {} of {} bytes, {} ranks / the best peer's",
            key.set, key.test, key.bytes, key.ranks
        );
        Some(if key.is_rate() {
            at_least(&goal, r, 0.5)
        } else {
            at_most(&goal, r, 2.0)
        })
    };
    lines.filter_map(judge).collect()
}

/// As quick as the quickest to start and end, no more memory than the leanest.
fn judge_startup(samples: &Samples) -> Vec<Verdict> {
    let lines = samples.lines.iter().filter(|(key, _)| key.set == "startup");
    let judge = |(key, values): (&Key, &BTreeMap<String, Vec<f64>>)| {
        let peers: Vec<&str> = values.keys().map(String::as_str).filter(|peer| *peer != OURS).collect();
        let r = values_ratio(values, &peers, false)?;
        Some(at_most(
            &format!("startup: {} of {} ranks / the best peer's", key.test, key.ranks),
            r,
            1.0,
        ))
    };
    lines.filter_map(judge).collect()
}

/// Another MPI underneath against the same alone.
fn judge_vendor(samples: &Samples) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for vendor in ["mpich", "openmpi"] {
        let ours = format!("on-{vendor}");
        let line = |ranks, test, bytes| {
            let alone = samples.of("vendor", ranks, test, bytes, vendor);
            (samples.of("vendor", ranks, test, bytes, &ours), alone)
        };
        let (a, b) = line(2, "latency", 8);
        let more: Vec<f64> = a.iter().zip(b).map(|(a, b)| (a / b).min(1.0 + (a - b) / 2.0)).collect();
        verdicts.extend(
            Spread::of(&more).map(|s| at_most(&format!("8 bytes on {vendor} / alone, or 0.1 us more"), s, 1.05)),
        );
        for (test, limit) in [("pending", 0.3), ("any", 0.6)] {
            let (a, _) = line(3, test, 8);
            let more: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
            let goal = format!("8 bytes, {test}, on {vendor} - {vendor} alone, us");
            verdicts.extend(Spread::of(&more).map(|s| at_most(&goal, s, limit)));
        }
        let (a, b) = line(2, "bandwidth", 1 << 20);
        let goal = format!("bandwidth of 1 MiB on {vendor} / alone");
        verdicts.extend(Spread::of_ratios(a, b).map(|s| at_least(&goal, s, 0.99)));
        for test in ["allreduce", "bcast", "alltoall"] {
            for bytes in [8, 65_536] {
                let (a, b) = line(2, test, bytes);
                let goal = format!("{test} of {bytes} bytes on {vendor} / alone");
                verdicts.extend(Spread::of_ratios(a, b).map(|s| at_most(&goal, s, 1.05)));
            }
        }
    }
    verdicts
}

/// Data in pieces: no layout is much slower than with the better of all peers.
fn judge_datatypes(samples: &Samples) -> Vec<Verdict> {
    let lines = samples.lines.iter().filter(|(key, _)| key.set == "datatypes");
    let judge = |(key, values): (&Key, &BTreeMap<String, Vec<f64>>)| {
        let peers: Vec<&str> = values.keys().map(String::as_str).filter(|peer| *peer != OURS).collect();
        let r = values_ratio(values, &peers, key.is_rate())?;
        let goal = format!("{} of {} bytes / the better peer's", key.test, key.bytes);
        Some(at_most(&goal, r, 1.1))
    };
    lines.filter_map(judge).collect()
}

fn judge_wide(samples: &Samples, link: &Link) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let latency = Spread::of(samples.of("wide", 2, "latency", 8, OURS));
    verdicts.extend(latency.map(|s| at_most("wide: 8 bytes one way, us", s, link.one_way_us + 300.0)));
    let megabytes = samples.of("wide", 2, "bandwidth", 64 << 20, OURS);
    let mbit: Vec<f64> = megabytes.iter().map(|value| value * 8.0).collect();
    verdicts.extend(Spread::of(&mbit).map(|s| at_least("wide: 64 MiB one way, Mbit/s", s, link.mbit * 0.9)));
    verdicts
}

/// Inside a site over TCP as good as the best peer; eight bytes cost no more than none; TLS takes little of it.
fn judge_tcp(samples: &Samples) -> Vec<Verdict> {
    let lines = samples.lines.iter().filter(|(key, _)| key.set == "tcp");
    let judge = |(key, values): (&Key, &BTreeMap<String, Vec<f64>>)| {
        let peers: Vec<&str> = values.keys().map(String::as_str).filter(|peer| *peer != OURS).collect();
        let r = values_ratio(values, &peers, key.is_rate())?;
        let goal = format!("TCP: {} of {} bytes / the best peer's", key.test, key.bytes);
        Some(if key.is_rate() {
            at_least(&goal, r, 1.0)
        } else {
            at_most(&goal, r, 1.0)
        })
    };
    let mut verdicts: Vec<Verdict> = lines.filter_map(judge).collect();
    let ours = |set, test, bytes| samples.of(set, 2, test, bytes, OURS);
    let step = Spread::of_ratios(ours("tcp", "latency", 8), ours("tcp", "latency", 0));
    verdicts.extend(step.map(|s| at_most("TCP: 8 bytes / 0 bytes", s, 1.05)));
    let tls = Spread::of_ratios(ours("tls", "bandwidth", 64 << 20), ours("tcp", "bandwidth", 64 << 20));
    verdicts.extend(tls.map(|s| at_least("64 MiB over TLS / over TCP", s, 0.8)));
    verdicts
}

/// Ours divided by the best of `peers`; `None` when a side is missing.
fn ratio(samples: &Samples, line: Line, peers: &[&str], more_is_better: bool) -> Option<Spread> {
    let (set, ranks, test, bytes) = line;
    values_ratio(samples.line(set, ranks, test, bytes)?, peers, more_is_better)
}

/// Against each peer round by round, then the peer beside which ours looks worst. The best value of each round instead
/// would be compared with the luckiest of several noisy ones.
fn values_ratio(values: &BTreeMap<String, Vec<f64>>, peers: &[&str], more_is_better: bool) -> Option<Spread> {
    let ours = values.get(OURS)?;
    let beside = |peer: &&str| Spread::of_ratios(ours, values.get(*peer)?);
    let worse = |a: &Spread, b: &Spread| {
        let order = a.median.total_cmp(&b.median);
        if more_is_better { order } else { order.reverse() }
    };
    peers.iter().filter_map(beside).min_by(worse)
}

fn at_most(goal: &str, measured: Spread, limit: f64) -> Verdict {
    Verdict {
        goal: format!("{goal} <= {limit}"),
        measured,
        limit,
        met: measured.median <= limit,
    }
}

fn at_least(goal: &str, measured: Spread, limit: f64) -> Verdict {
    Verdict {
        goal: format!("{goal} >= {limit}"),
        measured,
        limit,
        met: measured.median >= limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Sample;

    fn with(values: &[(&str, f64)]) -> Samples {
        let mut samples = Samples::default();
        for (peer, value) in values {
            let sample = Sample {
                test: "latency".to_owned(),
                bytes: 8,
                value: *value,
                unit: "us".to_owned(),
            };
            samples.add("local", 2, peer, 0, vec![sample]);
        }
        samples
    }

    #[test]
    fn the_better_peer_counts() {
        let link = Link::of("40ms", "200mbit").unwrap();
        let verdicts = judge(&with(&[("isthmus", 0.5), ("mpich", 0.4), ("openmpi", 0.25)]), &link);
        assert_eq!(verdicts.len(), 1);
        assert_eq!((verdicts[0].measured.median, verdicts[0].met), (2.0, false));
        assert!(judge(&with(&[("mpich", 0.4)]), &link).is_empty());
    }
}
