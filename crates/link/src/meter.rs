// SPDX-License-Identifier: Apache-2.0
//! What arrivals say about a connection: its round trip, its rate, and what they stand on. Knows no clock. Everybody
//! who measures a link does it with this: processes of a job ([`Meter`]), and commands that send one stream for that
//! ([`Sounding`]).
//!
//! The rate is measured where data arrive, over *bursts*: stretches within long frames, which their sender gives away
//! at once, in which the connection never fell silent. A burst begins and ends where the reader found nothing left to
//! read: what was read in between is what came in between. So neither the pauses of a sender that waits for
//! acknowledgements nor data that had piled up while the reader had no processor do any harm. Where the reader never
//! gets to the end of what is there, it is what is slow, and its rate is all that is seen.
//!
//! Within a burst data come as fast as the slowest part of the way lets them. Of the rates of the last bursts, weighted
//! by their duration, the middle one counts: data that something on the way had held back come in short bursts that are
//! too fast.
//!
//! A connection begins slowly: it sends a few packets, and twice as many each round trip. Those pauses are silences
//! only if a silence is shorter than a round trip, so how long one is depends on that.

use std::time::{Duration, Instant};

use isthmus_wire::rate::Rate;

/// A silence that ends a burst, at least and at most: a part of the round trip in between, since what begins slowly is
/// silent for most of one. The least is more than packets of a link of 25 Mbit/s are apart (1,500 bytes: 0.48 ms), the
/// most is a turn of another process on the reader's processor.
const SILENCE: (Duration, Duration) = (Duration::from_micros(500), Duration::from_millis(4));
const SILENT_PART: u32 = 4;
/// Longest burst; the next one begins right after it, so that a transfer of a second has twenty of them, and their
/// middle one is not what it was at its beginning.
const LONGEST: Duration = Duration::from_millis(50);
/// Shortest burst that counts: more than twice what a connection sends before the first acknowledgement
/// ([`FIRST_WINDOW`]), which comes as fast as its sender is.
const SHORTEST: (u64, Duration) = (32 << 10, Duration::from_millis(1));
/// Bursts of so long say something before all transfers are over, and that the link does no more.
const ENOUGH: Duration = Duration::from_millis(20);
/// A transfer of less time says nothing: it had arrived before anybody looked.
const AT_ONCE: Duration = Duration::from_micros(20);
/// Bytes that a new connection sends before the first acknowledgement: ten packets (RFC 6928).
const FIRST_WINDOW: u64 = 14_600;
/// Bursts and round trips that are remembered. The middle of so many has a quarter of the spread of one, and more would
/// remember longer what is no more.
const MEMORY: usize = 24;

/// How long a stream is watched, and the round trips beside that in which it becomes as fast as it can: doubled in
/// each, [`FIRST_WINDOW`] is 30 MB after twelve, what 1 Gbit/s has under way over 240 ms; the longest.
const WATCHED: Duration = Duration::from_millis(300);
const BEGINNING: u32 = 12;
const LONGEST_WATCHED: Duration = Duration::from_secs(3);
/// Most bytes of such a stream.
pub const MAX_STREAM: u64 = 64 << 20;

/// What is known of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Estimate {
    /// Shortest of the last round trips.
    pub round_trip: Option<Duration>,
    /// Median of the last round trips.
    pub median: Option<Duration>,
    /// Round trips that were measured.
    pub trips: u32,
    /// How fast bytes arrive.
    pub rate: Option<Rate>,
    /// The rate is that of bursts, not of a transfer as a whole, which is less than the connection can do.
    pub bursts: bool,
}

/// What one reading of a connection gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// So many.
    pub bytes: u64,
    /// All that there were.
    pub emptied: bool,
}

#[derive(Clone, Copy, Debug)]
struct Burst {
    begin: Instant,
    /// Nothing was left to read at the beginning; otherwise what has piled up may be part of what follows.
    clean: bool,
    /// The last reading, and whether it left something.
    last: Instant,
    left: bool,
    /// What came since the beginning.
    bytes: u64,
    /// When nothing was left to read the last time, and what had come by then.
    emptied: (Instant, u64),
}

impl Burst {
    fn new(now: Instant, clean: bool) -> Self {
        Self {
            begin: now,
            clean,
            last: now,
            left: !clean,
            bytes: 0,
            emptied: (now, 0),
        }
    }

    fn read(&mut self, now: Instant, Read { bytes, emptied }: Read) {
        if emptied && !self.clean {
            // Now it is known when the rest comes.
            *self = Self::new(now, true);
            return;
        }
        (self.last, self.left, self.bytes) = (now, !emptied, self.bytes + bytes);
        if emptied {
            self.emptied = (now, self.bytes);
        }
    }

    /// Nothing fell silent meanwhile: something was left to read, or has come soon.
    fn goes_on(&self, now: Instant, silence: Duration) -> bool {
        self.left || now.saturating_duration_since(self.last) < silence
    }

    /// What came, and in which time; `None`: nobody can say.
    fn seen(&self) -> Option<(u64, Duration)> {
        let (at, bytes) = if self.clean {
            self.emptied
        } else {
            (self.last, self.bytes)
        };
        let time = at - self.begin;
        // A reader that never gets to the end of what is there needs a while to show that.
        let least = if self.clean { SHORTEST.1 } else { LONGEST };
        (bytes >= SHORTEST.0 && time >= least).then_some((bytes, time))
    }
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
pub struct Meter {
    burst: Option<Burst>,
    /// Bytes per second, bytes, duration.
    rates: Ring<(u64, u64, Duration)>,
    /// Of the fastest transfer as a whole: less than the connection can do.
    whole: Option<Rate>,
    /// No more transfers are asked for.
    settled: bool,
    round_trips: Ring<Duration>,
    last: Duration,
    trips: u32,
}

impl Meter {
    /// Something was read. `before`, `after`: whether the connection was inside a long frame then. True: there is a new
    /// rate.
    pub fn read(&mut self, now: Instant, read: Read, before: bool, after: bool) -> bool {
        let silence = if before { self.silence() } else { Duration::ZERO };
        if let Some(burst) = self.burst.as_mut().filter(|_| before) {
            if burst.goes_on(now, silence) {
                burst.read(now, read);
                if after && now.saturating_duration_since(burst.begin) < LONGEST {
                    return false;
                }
            }
        }
        let new = self.rest();
        self.burst = after.then(|| Burst::new(now, read.emptied));
        new
    }

    /// How long nothing comes when a burst is over.
    fn silence(&self) -> Duration {
        let trip = self.round_trips.all.iter().min();
        trip.map_or(SILENCE.1, |t| (*t / SILENT_PART).clamp(SILENCE.0, SILENCE.1))
    }

    /// Ends the burst. True: there is a new rate.
    fn rest(&mut self) -> bool {
        let Some(burst) = self.burst.take() else { return false };
        let Some((bytes, time)) = burst.seen() else {
            return false;
        };
        self.rates.push((per_second(bytes, time), bytes, time));
        true
    }

    /// A transfer that was asked for has arrived. The fastest counts as a whole if they are `all` and there was no
    /// burst that is long enough; if most of its time was waiting for acknowledgements, as a bound.
    pub fn transfer(&mut self, bytes: u64, time: Duration, all: bool) {
        self.settled |= all;
        if time < AT_ONCE {
            return;
        }
        let trip = self.round_trips.all.iter().min().copied().unwrap_or_default();
        let waiting = waited(bytes, time, trip);
        let busy = time.saturating_sub(waiting);
        let mut whole = Rate {
            bytes,
            busy: nanoseconds(busy),
            // How much of the time was waiting is a guess.
            spread: thousandths(nanoseconds(waiting), nanoseconds(time)),
            at_least: busy < ENOUGH,
            ..Rate::bare(per_second(bytes, busy))
        };
        // Mostly waiting: the link did as much with it.
        if time <= 2 * waiting {
            whole.bytes_per_second = per_second(bytes, time);
            (whole.spread, whole.at_least) = (0, true);
        }
        let better = |old: &Rate| (!old.at_least, old.bytes_per_second) >= (!whole.at_least, whole.bytes_per_second);
        if whole.bytes_per_second > 0 && !self.whole.as_ref().is_some_and(better) {
            self.whole = Some(whole);
        }
    }

    /// The last round trip; zero: there was none.
    pub fn last_trip(&self) -> Duration {
        self.last
    }

    /// An answer has come after this time.
    pub fn round_trip(&mut self, time: Duration) {
        self.round_trips.push(time);
        self.last = time;
        self.trips = self.trips.saturating_add(1);
    }

    /// What is known now.
    pub fn estimate(&self) -> Estimate {
        let mut trips = self.round_trips.all.clone();
        trips.sort_unstable();
        let rate = self.rate_of_bursts();
        Estimate {
            round_trip: trips.first().copied(),
            median: trips.get(trips.len() / 2).copied(),
            trips: self.trips,
            bursts: rate.is_some(),
            rate: rate.or_else(|| self.whole.filter(|_| self.settled)),
        }
    }

    fn rate_of_bursts(&self) -> Option<Rate> {
        let mut rates = self.rates.all.clone();
        rates.sort_unstable();
        let busy: Duration = rates.iter().map(|(_, _, time)| *time).sum();
        if !self.settled && busy < ENOUGH {
            return None;
        }
        // The one below which a part of the time lies.
        let below = |quarters: u32| {
            let mut below = Duration::ZERO;
            let found = rates.iter().find(|(_, _, time)| {
                below += *time;
                below * 4 >= busy * quarters
            });
            found.map_or(0, |(rate, _, _)| *rate)
        };
        let middle = below(2);
        let bytes = rates
            .iter()
            .fold(0, |sum: u64, (_, bytes, _)| sum.saturating_add(*bytes));
        (middle > 0).then(|| Rate {
            bytes,
            busy: nanoseconds(busy),
            // About the standard error of a median: single bursts are off by a lot where machines are busy, the middle
            // one of many is not.
            spread: thousandths((below(3) - middle).max(middle - below(1)), middle)
                / (rates.len().isqrt() as u16).max(1),
            at_least: busy < ENOUGH,
            ..Rate::bare(middle)
        })
    }
}

/// Measures a link by one stream that does nothing else, where it arrives.
#[derive(Debug)]
pub struct Sounding {
    meter: Meter,
    round_trip: Duration,
    began: Option<Instant>,
    last: Instant,
    /// Without what came first: nobody knows when that came.
    bytes: u64,
}

impl Sounding {
    /// Of a link with this round trip.
    pub fn new(now: Instant, round_trip: Duration) -> Self {
        let mut meter = Meter::default();
        meter.round_trip(round_trip);
        Self {
            meter,
            round_trip,
            began: None,
            last: now,
            bytes: 0,
        }
    }

    /// Something has come.
    pub fn arrived(&mut self, now: Instant, read: Read) {
        let first = self.began.is_none();
        self.began.get_or_insert(now);
        self.bytes += if first { 0 } else { read.bytes };
        self.last = now;
        self.meter.read(now, read, !first, true);
    }

    /// How long it still takes; none: enough has been seen.
    pub fn left(&self, now: Instant) -> Option<Duration> {
        let most = (WATCHED + self.round_trip * BEGINNING).min(LONGEST_WATCHED);
        let seen = self
            .began
            .map_or(Duration::ZERO, |began| now.saturating_duration_since(began));
        let left = most.saturating_sub(seen);
        (self.bytes < MAX_STREAM && !left.is_zero()).then_some(left)
    }

    /// What came of it.
    pub fn end(mut self) -> Option<Rate> {
        let time = self.began.map(|began| self.last.saturating_duration_since(began))?;
        self.meter.rest();
        self.meter.transfer(self.bytes, time, true);
        self.meter.estimate().rate
    }
}

/// How much of a transfer's time its sender waited for acknowledgements: it begins with a few packets per round trip
/// and doubles that each time, until they keep the link busy for a round trip. How many that are depends on the rate,
/// so it is found step by step.
fn waited(bytes: u64, time: Duration, trip: Duration) -> Duration {
    const STEPS: usize = 6;
    let mut waiting = Duration::ZERO;
    for _ in 0..STEPS {
        let rate = per_second(bytes, time.saturating_sub(waiting)).max(1);
        let windows = (0..40).map(|doublings| FIRST_WINDOW << doublings);
        let busy = |window: u64| Duration::from_secs_f64(window as f64 / rate as f64);
        let waits = windows.take_while(|w| *w < bytes).map(|w| trip.saturating_sub(busy(w)));
        waiting = waits.sum::<Duration>().min(time);
    }
    waiting
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn thousandths(part: u64, whole: u64) -> u16 {
    let parts = u128::from(part) * 1000 / u128::from(whole.max(1));
    u16::try_from(parts).unwrap_or(u16::MAX)
}

fn per_second(bytes: u64, time: Duration) -> u64 {
    let rate = u128::from(bytes) * 1_000_000_000 / time.as_nanos().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: u64) -> Read {
        let emptied = true;
        Read { bytes, emptied }
    }

    /// Reads of `bytes` every `micros`, `count` times.
    fn feed(meter: &mut Meter, now: &mut Instant, count: u32, micros: u64, bytes: u64) {
        for _ in 0..count {
            *now += Duration::from_micros(micros);
            meter.read(*now, all(bytes), true, true);
        }
    }

    fn rate(meter: &Meter) -> Option<u64> {
        meter.estimate().rate.map(|r| r.bytes_per_second)
    }

    /// A stream over a link, one packet at a time: windows of twice as many packets each round trip, until they fill
    /// the link.
    fn stream(bytes_per_second: u64, round_trip: Duration) -> Option<Rate> {
        const PACKET: u64 = 1448;
        let packet = Duration::from_nanos(PACKET * 1_000_000_000 / bytes_per_second);
        let mut now = Instant::now();
        let mut sounding = Sounding::new(now, round_trip);
        let mut window = 10;
        while sounding.left(now).is_some() {
            for _ in 0..window {
                now += packet;
                sounding.arrived(now, all(PACKET));
            }
            now += round_trip.saturating_sub(packet * window);
            window = (window * 2).min(1 << 16);
        }
        sounding.end()
    }

    #[test]
    fn a_slow_beginning_does_not_count_whatever_the_round_trip() {
        for milliseconds in [0, 1, 2, 4, 10, 40, 150] {
            for rate in [25_000_000, 2_500_000, 125_000_000, 100_000] {
                let found = stream(rate, Duration::from_millis(milliseconds)).unwrap();
                let off = found.bytes_per_second.abs_diff(rate) * 100 / rate;
                assert!(off <= 5 && !found.at_least, "{milliseconds} ms, {rate}: {found:?}");
            }
        }
    }

    /// A stream over a link of this rate whose reader has no processor at the begin of each period. Otherwise it reads
    /// what is there, a buffer at a time, so many bytes a microsecond.
    fn read_by(rate: u64, (every, stalls): (u64, u64), reader: u64) -> Rate {
        const BUFFER: u64 = 256 << 10;
        let (start, every, stalls) = (Instant::now(), every * 1000, stalls * 1000);
        let mut sounding = Sounding::new(start, Duration::from_millis(4));
        let (mut micros, mut taken) = (0, 0);
        let at = |micros| start + Duration::from_micros(micros);
        while sounding.left(at(micros)).is_some() {
            micros += stalls.saturating_sub(micros % every);
            let there = rate * micros / 1_000_000 - taken;
            let n = there.min(BUFFER);
            // It is woken by some packets.
            micros += n / reader + 20;
            taken += n;
            let (bytes, emptied) = (n, n < BUFFER);
            sounding.arrived(at(micros), Read { bytes, emptied });
        }
        sounding.end().unwrap()
    }

    #[test]
    fn a_reader_without_a_processor_takes_no_backlog_for_the_link() {
        for times in [(20, 6), (37, 12), (60, 6), (100, 30), (10, 0)] {
            let found = read_by(118_000_000, times, 4_000);
            let off = found.bytes_per_second.abs_diff(118_000_000) * 100 / 118_000_000;
            assert!(off <= 1 && !found.at_least, "{times:?}: {found:?}");
        }
        // Who reads more slowly than data come never sees the end of them: what it does is all that can be said.
        let slow = read_by(1_000_000_000, (100, 0), 200);
        assert!(slow.bytes_per_second.abs_diff(197_000_000) < 5_000_000, "{slow:?}");
    }

    #[test]
    fn a_fast_link_does_at_least_what_was_seen() {
        let (mut meter, mut now) = (Meter::default(), Instant::now());
        feed(&mut meter, &mut now, 800, 10, 1250);
        meter.rest();
        assert_eq!(meter.estimate().rate, None, "more may come");
        meter.transfer(1_000_000, Duration::from_millis(8), true);
        let rate = meter.estimate().rate.unwrap();
        assert!(rate.at_least && rate.bytes_per_second == 125_000_000, "{rate:?}");
    }

    #[test]
    fn what_had_arrived_before_anybody_looked_has_no_rate() {
        let mut meter = Meter::default();
        meter.transfer(65_536, Duration::ZERO, true);
        meter.transfer(65_536, Duration::from_nanos(1), true);
        assert_eq!(meter.estimate().rate, None);
        meter.transfer(65_536, Duration::from_micros(64), true);
        assert_eq!(rate(&meter), Some(1_024_000_000));
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
        let rate = estimate.rate.unwrap();
        assert_eq!(
            (rate.bytes_per_second, rate.spread, rate.at_least),
            (12_500_000, 0, false)
        );
        assert!(rate.bytes >= 320_000 && rate.busy > 20_000_000, "{estimate:?}");
    }

    #[test]
    fn what_had_piled_up_does_not_count() {
        let (mut meter, mut now) = (Meter::default(), Instant::now());
        meter.read(now, all(10_000_000), false, true);
        feed(&mut meter, &mut now, 1100, 100, 1250);
        meter.rest();
        assert_eq!(rate(&meter), Some(12_500_000));
    }

    #[test]
    fn short_messages_do_not_count() {
        let (mut meter, mut now) = (Meter::default(), Instant::now());
        for _ in 0..1000 {
            now += Duration::from_micros(100);
            assert!(!meter.read(now, all(1000), false, false));
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
        assert_eq!(rate(&meter), Some(12_500_000));
    }

    #[test]
    fn a_slow_link_is_measured_as_a_whole() {
        let mut meter = Meter::default();
        meter.transfer(65_536, Duration::from_millis(500), false);
        assert_eq!(meter.estimate().rate, None);
        meter.transfer(65_536, Duration::from_millis(524), true);
        assert_eq!(rate(&meter), Some(131_072));
        let mut far = Meter::default();
        far.round_trip(Duration::from_millis(200));
        far.transfer(65_536, Duration::from_millis(400), true);
        assert!(far.estimate().rate.unwrap().at_least, "that was waiting");
        // The first window takes 111 ms and waits for 89 ms, the second one fills the link.
        far.transfer(65_536, Duration::from_millis(589), true);
        let found = rate(&far).unwrap();
        assert!(found.abs_diff(131_072) < 1000, "{found}");
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
