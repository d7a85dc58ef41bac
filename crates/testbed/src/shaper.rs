// SPDX-License-Identifier: Apache-2.0
//! One direction of a wide-area link as arithmetic: no clock, no packets, only times and sizes.

use crate::link::{LinkSpec, Queue};

/// Bytes that Ethernet adds to an IP packet: preamble 8, header 14, check sequence 4, gap 12.
pub(crate) const FRAMING: u64 = 38;
/// Bytes on the line of a full-sized packet.
const FULL_PACKET: u64 = 1500 + FRAMING;
/// Smallest automatic queue, in full packets.
const MIN_QUEUE_PACKETS: u64 = 100;

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It leaves the far end at this time, in nanoseconds of the caller's clock.
    Due(u64),
    /// The queue was full.
    Overflow,
    /// The line lost it, after it took its time on the line.
    Lost,
}

/// One direction of a link: serialises at the rate, delays, drops from the tail, loses at random.
#[derive(Debug)]
pub struct Shaper {
    bits_per_second: Option<u64>,
    delay: u64,
    queue_bytes: u64,
    loss: f64,
    jitter: u64,
    random: Random,
    line_free_at: u64,
    last_due: u64,
}

impl Shaper {
    /// A line as `link` describes it whose chances come from `seed`.
    #[must_use]
    pub fn new(link: &LinkSpec, seed: u64) -> Self {
        let mut shaper = Self {
            bits_per_second: None,
            delay: 0,
            queue_bytes: 0,
            loss: 0.0,
            jitter: 0,
            random: Random::new(seed),
            line_free_at: 0,
            last_due: 0,
        };
        shaper.change(link);
        shaper
    }

    /// From now on the line is as `link` says; what is on it keeps its times, and nothing overtakes it.
    pub fn change(&mut self, link: &LinkSpec) {
        let nanos = |d: std::time::Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        self.bits_per_second = link.rate;
        self.delay = nanos(link.round_trip) / 2;
        self.queue_bytes = queue_bytes(link);
        self.loss = link.loss;
        self.jitter = nanos(link.jitter);
    }

    /// Offers a packet of `ip_bytes` at time `now` (nanoseconds, never decreasing).
    pub fn offer(&mut self, now: u64, ip_bytes: u64) -> Verdict {
        let bytes = ip_bytes + FRAMING;
        let start = self.line_free_at.max(now);
        if self.bytes_waiting(now) + bytes > self.queue_bytes {
            return Verdict::Overflow;
        }
        self.line_free_at = start + self.line_time(bytes);
        if self.loss > 0.0 && self.random.unit() < self.loss {
            return Verdict::Lost;
        }
        let jitter = if self.jitter == 0 {
            0
        } else {
            self.random.next() % (self.jitter + 1)
        };
        self.last_due = self.last_due.max(self.line_free_at + self.delay + jitter);
        Verdict::Due(self.last_due)
    }

    /// Nanoseconds from one end to the other.
    pub(crate) fn delay(&self) -> u64 {
        self.delay
    }

    /// Nanoseconds that `bytes` occupy the line.
    pub(crate) fn line_time(&self, bytes: u64) -> u64 {
        self.bits_per_second
            .map_or(0, |rate| scale(bytes * 8, 1_000_000_000, rate))
    }

    fn bytes_waiting(&self, now: u64) -> u64 {
        let backlog = self.line_free_at.saturating_sub(now);
        self.bits_per_second
            .map_or(0, |rate| scale(backlog, rate, 8_000_000_000))
    }
}

/// The queue of a link in bytes on the line.
fn queue_bytes(link: &LinkSpec) -> u64 {
    match (link.queue, link.rate) {
        (Queue::Bytes(bytes), _) => bytes.max(FULL_PACKET),
        (Queue::Packets(packets), _) => packets.max(1) * FULL_PACKET,
        (Queue::Auto, None) => u64::MAX,
        (Queue::Auto, Some(rate)) => {
            let nanos = u64::try_from(link.round_trip.as_nanos()).unwrap_or(u64::MAX);
            scale(nanos, rate, 8_000_000_000).max(MIN_QUEUE_PACKETS * FULL_PACKET)
        }
    }
}

/// `a * b / c` without overflow on the way.
fn scale(a: u64, b: u64, c: u64) -> u64 {
    u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).unwrap_or(u64::MAX)
}

/// SplitMix64: small, seeded, good enough to lose packets.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    fn unit(&mut self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits are exact in a double")]
        let unit = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        unit
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn link(ms: u64, rate: Option<u64>) -> LinkSpec {
        LinkSpec {
            round_trip: Duration::from_millis(ms),
            rate,
            ..LinkSpec::default()
        }
    }

    #[test]
    fn a_lone_packet_takes_its_line_time_and_half_the_round_trip() {
        let mut shaper = Shaper::new(&link(40, Some(1_000_000)), 1);
        // 62 + 38 = 100 bytes at 1 Mbit/s: 0.8 ms.
        assert_eq!(shaper.offer(5, 62), Verdict::Due(5 + 800_000 + 20_000_000));
    }

    #[test]
    fn a_burst_leaves_at_the_rate_and_overflows_at_the_queue() {
        let mut spec = link(40, Some(100_000_000));
        spec.queue = Queue::Packets(10);
        let mut shaper = Shaper::new(&spec, 1);
        let dues: Vec<_> = (0..12).map(|_| shaper.offer(0, 1500)).collect();
        for pair in dues[..10].windows(2) {
            let [Verdict::Due(a), Verdict::Due(b)] = pair else {
                panic!("{pair:?}")
            };
            assert_eq!(b - a, 1538 * 8 * 10);
        }
        assert_eq!(dues[10..], [Verdict::Overflow, Verdict::Overflow]);
    }

    #[test]
    fn a_change_holds_from_the_next_packet_on_and_keeps_the_order() {
        let mut shaper = Shaper::new(&link(40, Some(1_000_000)), 1);
        assert_eq!(shaper.offer(0, 62), Verdict::Due(20_800_000));
        shaper.change(&link(0, Some(10_000_000)));
        assert_eq!(shaper.offer(1_000_000, 62), Verdict::Due(20_800_000));
        assert_eq!(shaper.offer(30_000_000, 62), Verdict::Due(30_080_000));
    }

    #[test]
    fn automatic_queue_is_one_bandwidth_delay_product() {
        assert_eq!(queue_bytes(&link(40, Some(200_000_000))), 1_000_000);
        assert_eq!(queue_bytes(&link(1, Some(10_000_000))), 100 * 1538);
    }

    #[test]
    fn loss_is_seeded_and_near_its_share() {
        let spec = LinkSpec {
            loss: 0.1,
            ..link(10, None)
        };
        let lost = |seed| {
            let mut shaper = Shaper::new(&spec, seed);
            (0..10_000)
                .filter(|&now| shaper.offer(now, 1000) == Verdict::Lost)
                .count()
        };
        assert_eq!(lost(7), lost(7));
        assert!((900..1100).contains(&lost(7)), "{}", lost(7));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn order_is_kept_and_nothing_is_early(
            steps in proptest::collection::vec((0u64..200_000, 20u64..1501), 1..200),
            jitter in 0u64..5,
        ) {
            let spec = LinkSpec { jitter: Duration::from_millis(jitter), loss: 0.05, ..link(20, Some(50_000_000)) };
            let mut shaper = Shaper::new(&spec, 3);
            let (mut now, mut last) = (0, 0);
            for (gap, bytes) in steps {
                now += gap;
                if let Verdict::Due(due) = shaper.offer(now, bytes) {
                    prop_assert!(due >= last);
                    prop_assert!(due >= now + 10_000_000 + shaper.line_time(bytes + FRAMING));
                    last = due;
                }
            }
        }
    }
}
