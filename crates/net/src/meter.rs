// SPDX-License-Identifier: Apache-2.0
//! What arrivals say about a connection: its round trip and its rate. Knows no clock.
//!
//! The rate is measured where data arrive, over *bursts*: stretches within long frames, which their sender gives away at once, in
//! which the connection never fell silent. The bytes of the
//! first read of a burst do not count, since nobody knows when they came; so neither the pauses of a sender that waits for
//! acknowledgements nor data that had piled up before the reader came do any harm. Within a burst data come as fast as the slowest
//! part of the way lets them. Of the rates of the last bursts, weighted by their duration, the middle one counts: data that something
//! on the way had held back come in short bursts that are too fast.

use std::time::{Duration, Instant};

/// A silence that ends a burst.
const SILENCE: Duration = Duration::from_millis(4);
/// Longest burst; the next one begins right after it.
const LONGEST: Duration = Duration::from_millis(50);
/// Shortest burst that counts.
const SHORTEST: (u64, Duration) = (32 << 10, Duration::from_millis(1));
/// Bursts of so long say something before all transfers are over.
const ENOUGH: Duration = Duration::from_millis(20);
/// Bytes that a new connection sends before the first acknowledgement: ten packets.
const FIRST_WINDOW: u64 = 14_600;
/// Bursts and round trips that are remembered.
const MEMORY: usize = 24;

/// What is known of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Estimate {
    /// Shortest of the last round trips.
    pub round_trip: Option<Duration>,
    /// Median of the last round trips.
    pub median: Option<Duration>,
    /// Round trips that were measured.
    pub trips: u32,
    /// Bytes per second that arrive.
    pub rate: Option<u64>,
    /// The rate is that of bursts, not of a transfer as a whole, which is less than the connection can do.
    pub bursts: bool,
    /// Bytes that the rate stands on.
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Burst {
    begin: Instant,
    last: Instant,
    bytes: u64,
}

/// Remembers the last few of something.
#[derive(Debug)]
struct Ring<T> {
    all: Vec<T>,
    next: usize,
}

impl<T> Ring<T> {
    fn push(&mut self, one: T) {
        if self.all.len() < MEMORY {
            self.all.push(one);
        } else {
            self.all[self.next] = one;
        }
        self.next = (self.next + 1) % MEMORY;
    }
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            next: 0,
        }
    }
}

/// Measures one connection.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    burst: Option<Burst>,
    /// Bytes per second, bytes, duration.
    rates: Ring<(u64, u64, Duration)>,
    /// Of the fastest transfer as a whole: less than the connection can do.
    whole: Option<(u64, u64)>,
    /// No more transfers are asked for.
    settled: bool,
    round_trips: Ring<Duration>,
    last: Duration,
    trips: u32,
}

impl Meter {
    /// So many bytes were read. `before`, `after`: whether the connection was inside a long frame then. True: there is a new rate.
    pub(crate) fn read(&mut self, now: Instant, bytes: u64, before: bool, after: bool) -> bool {
        if let Some(burst) = self.burst.as_mut().filter(|_| before) {
            if now.saturating_duration_since(burst.last) < SILENCE {
                burst.bytes += bytes;
                burst.last = now;
                if after && burst.last - burst.begin < LONGEST {
                    return false;
                }
            }
        }
        let new = self.rest();
        self.burst = after.then_some(Burst {
            begin: now,
            last: now,
            bytes: 0,
        });
        new
    }

    /// Ends the burst. True: there is a new rate.
    fn rest(&mut self) -> bool {
        let Some(burst) = self.burst.take() else { return false };
        let time = burst.last - burst.begin;
        let counts = burst.bytes >= SHORTEST.0 && time >= SHORTEST.1;
        if counts {
            self.rates.push((per_second(burst.bytes, time), burst.bytes, time));
        }
        counts
    }

    /// A transfer that was asked for has arrived. The fastest counts as a whole if they are `all`, there was no burst that is long
    /// enough, and it took much longer than waiting for acknowledgements did.
    pub(crate) fn transfer(&mut self, bytes: u64, time: Duration, all: bool) {
        self.settled |= all;
        // A connection begins with a few packets per round trip and doubles that each time.
        let doublings = (bytes / FIRST_WINDOW).checked_ilog2().unwrap_or(0) + 1;
        let waiting = self.round_trips.all.iter().min().copied().unwrap_or_default() * doublings;
        if time > 2 * waiting {
            self.whole = self.whole.max(Some((per_second(bytes, time - waiting), bytes)));
        }
    }

    /// The last round trip; zero: there was none.
    pub(crate) fn last_trip(&self) -> Duration {
        self.last
    }

    /// An answer has come after this time.
    pub(crate) fn round_trip(&mut self, time: Duration) {
        self.round_trips.push(time);
        self.last = time;
        self.trips = self.trips.saturating_add(1);
    }

    /// What is known now.
    pub(crate) fn estimate(&self) -> Estimate {
        let mut trips = self.round_trips.all.clone();
        trips.sort_unstable();
        let mut rates = self.rates.all.clone();
        rates.sort_unstable();
        let bytes: u64 = rates.iter().map(|(_, bytes, _)| bytes).sum();
        let whole: Duration = rates.iter().map(|(_, _, time)| *time).sum();
        let mut below = Duration::ZERO;
        let middle = rates.iter().find(|(_, _, time)| {
            below += *time;
            below * 2 >= whole
        });
        let enough = self.settled || whole >= ENOUGH;
        let rate = middle.filter(|_| enough).map(|(rate, _, _)| *rate);
        Estimate {
            round_trip: trips.first().copied(),
            median: trips.get(trips.len() / 2).copied(),
            trips: self.trips,
            bursts: rate.is_some(),
            rate: rate.or_else(|| self.whole.filter(|_| self.settled).map(|(rate, _)| rate)),
            bytes: bytes.max(self.whole.map_or(0, |(_, bytes)| bytes)),
        }
    }
}

fn per_second(bytes: u64, time: Duration) -> u64 {
    let rate = u128::from(bytes) * 1_000_000_000 / time.as_nanos().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads of `bytes` every `micros`, `count` times.
    fn feed(meter: &mut Meter, now: &mut Instant, count: u32, micros: u64, bytes: u64) {
        for _ in 0..count {
            *now += Duration::from_micros(micros);
            meter.read(*now, bytes, true, true);
        }
    }

    #[test]
    fn pauses_of_the_sender_do_not_count() {
        let (mut meter, mut now) = (Meter::default(), Instant::now());
        for burst in [40, 80, 160, 320] {
            feed(&mut meter, &mut now, burst, 100, 1250);
            now += Duration::from_millis(40);
        }
        meter.rest();
        let estimate = meter.estimate();
        assert_eq!(estimate.rate, Some(12_500_000));
        assert!(estimate.bytes >= 320_000, "{estimate:?}");
    }

    #[test]
    fn what_had_piled_up_does_not_count() {
        let (mut meter, mut now) = (Meter::default(), Instant::now());
        meter.read(now, 10_000_000, false, true);
        feed(&mut meter, &mut now, 1100, 100, 1250);
        meter.rest();
        assert_eq!(meter.estimate().rate, Some(12_500_000));
    }

    #[test]
    fn short_messages_do_not_count() {
        let (mut meter, mut now) = (Meter::default(), Instant::now());
        for _ in 0..1000 {
            now += Duration::from_micros(100);
            assert!(!meter.read(now, 1000, false, false));
        }
        assert_eq!(meter.estimate().rate, None);
    }

    #[test]
    fn bursts_that_were_held_up_or_held_back_do_not_count() {
        let (mut meter, mut now) = (Meter::default(), Instant::now());
        for (micros, count) in [(300, 100), (100, 500), (100, 500), (10, 300), (200, 200)] {
            feed(&mut meter, &mut now, count, micros, 1250);
            now += Duration::from_millis(10);
        }
        meter.rest();
        assert_eq!(meter.estimate().rate, Some(12_500_000));
    }

    #[test]
    fn a_slow_link_is_measured_as_a_whole() {
        let mut meter = Meter::default();
        meter.transfer(65_536, Duration::from_millis(500), false);
        assert_eq!(meter.estimate().rate, None);
        meter.transfer(65_536, Duration::from_millis(524), true);
        assert_eq!(meter.estimate().rate, Some(131_072));
        let mut far = Meter::default();
        far.round_trip(Duration::from_millis(75));
        far.transfer(65_536, Duration::from_millis(300), true);
        assert_eq!(far.estimate().rate, None, "that was waiting");
        far.transfer(65_536, Duration::from_millis(725), true);
        assert_eq!(far.estimate().rate, Some(131_072));
    }

    #[test]
    fn the_last_round_trips_count() {
        let mut meter = Meter::default();
        (0..100).for_each(|i| meter.round_trip(Duration::from_millis(200 - i)));
        (0..MEMORY).for_each(|_| meter.round_trip(Duration::from_millis(150)));
        meter.round_trip(Duration::from_millis(160));
        let estimate = meter.estimate();
        assert_eq!(estimate.round_trip, Some(Duration::from_millis(150)));
        assert_eq!(estimate.median, Some(Duration::from_millis(150)));
        assert_eq!(estimate.trips, 101 + MEMORY as u32);
        assert_eq!(meter.estimate().rate, None);
    }
}
