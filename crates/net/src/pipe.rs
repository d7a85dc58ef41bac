// SPDX-License-Identifier: Apache-2.0
//! How many connections fill a link, and how fast traffic may go that is to leave queues short. Knows no clock.
//!
//! A link is full when packets queue up before it: then the round trip grows. While there is more to send and it does not, what holds
//! the data back is the connection: lost packets, which congestion control takes for a full link, or buffers that are too small
//! for bandwidth by round trip. Then more connections carry more. Their number doubles as long as the rate grows with it.

use std::time::Duration;

/// Shortest time over which a rate is measured; longer with long round trips.
const INTERVAL: Duration = Duration::from_millis(200);
const TRIPS: u32 = 4;
/// A rate that grows by this in an interval is still on its way up by itself.
const GROWING: f64 = 1.1;
/// More connections must bring at least this.
const WORTH: f64 = 1.05;
/// How long it is not tried again when they did not.
const CONTENT: Duration = Duration::from_secs(20);
/// Queues that traffic of the bulk class may make: so much of the round trip, or so long.
const SHORT_QUEUE: (f64, Duration) = (0.08, Duration::from_millis(1));

/// What one looks at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Look {
    /// Bytes of segments that were acknowledged until now.
    pub(crate) acknowledged: u64,
    /// There was always more to send.
    pub(crate) backlog: bool,
    /// Of the connection that queues most.
    pub(crate) round_trip: Duration,
    /// Shortest of all.
    pub(crate) shortest: Duration,
    /// Connections there are.
    pub(crate) streams: usize,
    /// Most that may be.
    pub(crate) most: usize,
}

/// The way to one peer.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    /// Time and acknowledged bytes at the begin of the interval.
    begin: Option<(Duration, u64)>,
    last: f64,
    /// Bytes per second when there was always more to send.
    rate: Option<f64>,
    /// Rate before the last growth, and when it can be judged.
    before: Option<(f64, Duration)>,
    content_until: Duration,
    /// Bytes per second to which bulk traffic is held.
    limit: Option<f64>,
}

impl Pipe {
    /// What the link carried when it was kept busy.
    pub(crate) fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// Looks from time to time. How many connections there should be, when that is to change.
    pub(crate) fn look(&mut self, now: Duration, look: &Look) -> Option<usize> {
        if !look.backlog {
            self.begin = None;
            return None;
        }
        let Some((begin, bytes)) = self.begin else {
            self.begin = Some((now, look.acknowledged));
            return None;
        };
        let time = now.saturating_sub(begin);
        if time < INTERVAL.max(look.shortest * TRIPS) {
            return None;
        }
        let rate = look.acknowledged.saturating_sub(bytes) as f64 / time.as_secs_f64();
        self.begin = Some((now, look.acknowledged));
        let last = std::mem::replace(&mut self.last, rate);
        let old = self.rate.unwrap_or(rate);
        self.rate = Some(if rate > old { rate } else { old + (rate - old) / 4.0 });
        self.grow(now, look, last, rate)
    }

    fn grow(&mut self, now: Duration, look: &Look, last: f64, rate: f64) -> Option<usize> {
        if let Some((before, when)) = self.before {
            if now < when {
                return None;
            }
            self.before = None;
            if rate < before * WORTH {
                self.content_until = now + CONTENT;
            }
        }
        let climbing = last == 0.0 || rate > last * GROWING;
        let queue = look.round_trip.saturating_sub(look.shortest);
        let full = queue > look.shortest / 4 + Duration::from_millis(1);
        if climbing || full || now < self.content_until || look.streams >= look.most {
            return None;
        }
        // The handshake of TLS and the slow start come first.
        self.before = Some((rate, now + look.shortest * 8 + INTERVAL / 2));
        Some((look.streams * 2).min(look.most))
    }

    /// The rate, bytes per second in all, for traffic that is to leave queues short; look at it once per round trip.
    pub(crate) fn polite(&mut self, look: &Look) -> Option<f64> {
        let best = self.rate?;
        let queue = look.round_trip.saturating_sub(look.shortest).as_secs_f64();
        let target = (look.shortest.as_secs_f64() * SHORT_QUEUE.0).max(SHORT_QUEUE.1.as_secs_f64());
        // As LEDBAT does: the further from the target, the faster the change; down at most by an eighth.
        let off = ((target - queue) / target).clamp(-2.0, 1.0);
        let limit = self.limit.unwrap_or(best) * (1.0 + off / 16.0);
        let limit = limit.clamp(best / 50.0, best * 1.25);
        self.limit = Some(limit);
        Some(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link of `capacity` bytes per second on which a connection reaches `each`.
    fn settle(capacity: f64, each: f64, most: usize) -> (usize, f64) {
        let (mut pipe, mut streams, mut bytes) = (Pipe::default(), 1, 0.0);
        let shortest = Duration::from_millis(75);
        for i in 0..400u32 {
            let now = Duration::from_millis(100) * i;
            let wanted = streams as f64 * each;
            bytes += wanted.min(capacity) * 0.1;
            let queue = if wanted > capacity { 40 } else { 0 };
            let look = Look {
                acknowledged: bytes as u64,
                backlog: true,
                round_trip: shortest + Duration::from_millis(queue),
                shortest,
                streams,
                most,
            };
            streams = pipe.look(now, &look).unwrap_or(streams);
        }
        (streams, pipe.rate().unwrap())
    }

    #[test]
    fn connections_are_added_until_the_link_is_full() {
        assert_eq!(settle(12.5e6, 20e6, 64).0, 1, "one is enough");
        let (streams, rate) = settle(12.5e6, 1e6, 64);
        assert_eq!(streams, 16);
        assert!(rate > 12e6, "{rate}");
        assert_eq!(settle(12.5e6, 0.1e6, 8).0, 8);
    }

    #[test]
    fn what_brings_nothing_is_not_repeated() {
        let mut pipe = Pipe::default();
        let (mut streams, mut changes) = (1, 0);
        for i in 0..150u32 {
            let look = Look {
                acknowledged: u64::from(i) * 100_000,
                backlog: true,
                round_trip: Duration::from_millis(20),
                shortest: Duration::from_millis(20),
                streams,
                most: 64,
            };
            if let Some(more) = pipe.look(Duration::from_millis(100) * i, &look) {
                streams = more;
                changes += 1;
            }
        }
        assert_eq!((streams, changes), (2, 1));
    }

    #[test]
    fn polite_traffic_keeps_the_queue_short() {
        let mut pipe = Pipe {
            rate: Some(12.5e6),
            ..Pipe::default()
        };
        let (mut queue, mut rate) = (50.0e-3f64, 12.5e6);
        let mut seen = Vec::new();
        for _ in 0..2000 {
            // 40 ms pass.
            queue = (queue + (rate - 12.5e6) / 12.5e6 * 0.04).max(0.0);
            let look = Look {
                round_trip: Duration::from_secs_f64(0.04 + queue),
                shortest: Duration::from_millis(40),
                ..Look::default()
            };
            rate = pipe.polite(&look).unwrap();
            seen.push((queue, rate));
        }
        let late = &seen[1000..];
        assert!(
            late.iter().all(|(q, _)| *q < 8e-3),
            "{:?}",
            late.iter().map(|s| s.0).fold(0.0, f64::max)
        );
        let mean = late.iter().map(|(_, r)| r).sum::<f64>() / late.len() as f64;
        assert!(mean > 12e6, "{mean}");
    }
}
