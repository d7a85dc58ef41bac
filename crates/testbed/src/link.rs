// SPDX-License-Identifier: Apache-2.0
//! What a link is like.

use std::time::Duration;

/// A wide-area link; the same in both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// Round trip without queueing; half of it in each direction.
    pub round_trip: Duration,
    /// Bits per second including 38 bytes of Ethernet framing per packet; `None` is unlimited.
    pub rate: Option<u64>,
    /// Room for packets that wait for the line.
    pub queue: Queue,
    /// Probability that a packet is lost on the way.
    pub loss: f64,
    /// Each packet is later by a random time up to this; order is kept.
    pub jitter: Duration,
}

/// Size of a drop-tail queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// One bandwidth-delay product, at least 100 full packets.
    Auto,
    /// Full-sized packets of 1538 bytes on the line.
    Packets(u64),
    /// Bytes on the line.
    Bytes(u64),
}

impl Default for LinkSpec {
    fn default() -> Self {
        Self {
            round_trip: Duration::from_millis(40),
            rate: Some(200_000_000),
            queue: Queue::Auto,
            loss: 0.0,
            jitter: Duration::ZERO,
        }
    }
}

impl LinkSpec {
    /// Between machines of a site, where nothing else is said: no delay, no limit.
    pub(crate) fn local() -> Self {
        Self {
            round_trip: Duration::ZERO,
            rate: None,
            ..Self::default()
        }
    }
}
