// SPDX-License-Identifier: Apache-2.0
//! Counters of the links, and whether the run can be trusted.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

/// Width of a bucket of lateness.
const BUCKET_MICROS: u64 = 5;
/// Buckets; the last holds everything later.
const BUCKETS: usize = 1000;
/// A 99th percentile of lateness above this says that the machine was too busy.
const TRUSTED_P99_MICROS: u64 = 1000;
/// A share of stolen time above this says that the machine itself was not running.
const TRUSTED_STEAL_PERCENT: f64 = 2.0;

/// What one direction of a link did; written by its forwarder thread, read by anyone.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) packets: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) overflowed: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) cut: AtomicU64,
    pub(crate) failed: AtomicU64,
    lateness: Vec<AtomicU64>,
    latest: AtomicU64,
}

impl Counters {
    pub(crate) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            packets: zero(),
            bytes: zero(),
            overflowed: zero(),
            lost: zero(),
            cut: zero(),
            failed: zero(),
            lateness: (0..BUCKETS).map(|_| zero()).collect(),
            latest: zero(),
        }
    }

    /// Notes that packets were delivered `nanos` after they were due.
    pub(crate) fn late(&self, nanos: u64) {
        let micros = nanos / 1000;
        let bucket = usize::try_from(micros / BUCKET_MICROS)
            .unwrap_or(BUCKETS)
            .min(BUCKETS - 1);
        self.lateness[bucket].fetch_add(1, Relaxed);
        self.latest.fetch_max(micros, Relaxed);
    }

    /// Upper bound of the lateness of 99 % of the deliveries, in microseconds.
    fn p99(&self) -> u64 {
        let counts: Vec<u64> = self.lateness.iter().map(|c| c.load(Relaxed)).collect();
        let target = counts.iter().sum::<u64>() * 99 / 100;
        let mut seen = 0;
        for (bucket, count) in (1u64..).zip(&counts) {
            seen += count;
            if seen > target {
                return if bucket as usize == BUCKETS {
                    self.latest.load(Relaxed)
                } else {
                    bucket * BUCKET_MICROS
                };
            }
        }
        0
    }

    pub(crate) fn report(&self, from: &str, to: &str, up: bool) -> LinkReport {
        LinkReport {
            from: from.to_owned(),
            to: to.to_owned(),
            up,
            packets: self.packets.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            overflowed: self.overflowed.load(Relaxed),
            lost: self.lost.load(Relaxed),
            cut: self.cut.load(Relaxed),
            failed: self.failed.load(Relaxed),
            late_p99_us: self.p99(),
            late_max_us: self.latest.load(Relaxed),
        }
    }
}

/// What one direction of a link did.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct LinkReport {
    /// Site where the packets came from.
    pub from: String,
    /// Site where they went.
    pub to: String,
    /// Whether the link is not cut at the moment.
    pub up: bool,
    /// Packets delivered.
    pub packets: u64,
    /// Bytes of IP delivered, without framing.
    pub bytes: u64,
    /// Packets dropped because the queue was full.
    pub overflowed: u64,
    /// Packets lost by chance, as asked for.
    pub lost: u64,
    /// Packets dropped because the link was cut.
    pub cut: u64,
    /// Packets that the far device refused: a fault of the testbed.
    pub failed: u64,
    /// 99 % of the deliveries were at most this late, in microseconds.
    pub late_p99_us: u64,
    /// The latest delivery, in microseconds.
    pub late_max_us: u64,
}

/// What all links did, and how far to trust it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Report {
    /// Both directions of each pair of sites.
    pub links: Vec<LinkReport>,
    /// Share of the processors' time that the hypervisor took since the start, in percent.
    pub steal_percent: f64,
    /// Whether the forwarder runs at real-time priority.
    pub realtime: bool,
    /// Frames that a capture could not keep; a proof by capture needs 0.
    pub capture_missed: u64,
}

impl Report {
    /// Why measurements of this run should be thrown away, if they should.
    #[must_use]
    pub fn distrust(&self) -> Option<String> {
        if self.steal_percent > TRUSTED_STEAL_PERCENT {
            return Some(format!(
                "the hypervisor took {:.1} % of the processors' time",
                self.steal_percent
            ));
        }
        let worst = self.links.iter().max_by_key(|link| link.late_p99_us)?;
        (worst.late_p99_us > TRUSTED_P99_MICROS).then(|| {
            format!(
                "packets {} -> {} left up to {} us late (99th percentile)",
                worst.from, worst.to, worst.late_p99_us
            )
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "link          packets        bytes  overflow   lost    cut  late p99/max us"
        )?;
        for link in &self.links {
            let name = format!("{} -> {}{}", link.from, link.to, if link.up { "" } else { " (cut)" });
            writeln!(
                f,
                "{name:<12}{:>9}{:>13}{:>10}{:>7}{:>7}  {}/{}",
                link.packets, link.bytes, link.overflowed, link.lost, link.cut, link.late_p99_us, link.late_max_us
            )?;
        }
        write!(
            f,
            "steal {:.1} %, real-time forwarder: {}",
            self.steal_percent,
            if self.realtime { "yes" } else { "no" }
        )?;
        if let Some(reason) = self.distrust() {
            write!(f, "\nnot to be trusted: {reason}")?;
        }
        Ok(())
    }
}

/// Stolen and total processor time since boot, in the kernel's ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ticks {
    steal: u64,
    total: u64,
}

impl Ticks {
    /// Reads `/proc/stat`; zeros when there is none.
    pub(crate) fn now() -> Self {
        std::fs::read_to_string("/proc/stat").map_or_else(|_| Self::default(), |text| Self::parse(&text))
    }

    fn parse(stat: &str) -> Self {
        let line = stat.lines().next().unwrap_or_default();
        let fields: Vec<u64> = line.split_whitespace().skip(1).filter_map(|f| f.parse().ok()).collect();
        Self {
            steal: fields.get(7).copied().unwrap_or(0),
            total: fields.iter().take(8).sum(),
        }
    }

    /// Percentage of stolen time between `self` and `later`.
    pub(crate) fn steal_percent(self, later: Self) -> f64 {
        let total = later.total.saturating_sub(self.total);
        let steal = later.steal.saturating_sub(self.steal);
        #[expect(clippy::cast_precision_loss, reason = "a percentage for people")]
        let percent = steal as f64 * 100.0 / total.max(1) as f64;
        percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_is_an_upper_bound() {
        let counters = Counters::new();
        for micros in 0..200 {
            counters.late(micros * 1000);
        }
        let report = counters.report("a", "b", true);
        assert_eq!((report.late_p99_us, report.late_max_us), (200, 199));
        counters.late(9_000_000_000);
        assert_eq!(counters.report("a", "b", true).late_max_us, 9_000_000);
    }

    #[test]
    fn steal_is_the_eighth_field() {
        let before = Ticks::parse("cpu  10 0 10 80 0 0 0 0 0 0\n");
        let after = Ticks::parse("cpu  20 0 20 160 0 0 0 20 0 0\n");
        assert_eq!(before.steal_percent(after), 100.0 * 20.0 / 120.0);
    }

    #[test]
    fn a_late_forwarder_is_not_trusted() {
        let counters = Counters::new();
        let report = |c: &Counters| Report {
            links: vec![c.report("a", "b", true)],
            steal_percent: 0.0,
            realtime: true,
            capture_missed: 0,
        };
        assert_eq!(report(&counters).distrust(), None);
        counters.late(2_000_000);
        assert!(report(&counters).to_string().contains("not to be trusted"));
    }
}
