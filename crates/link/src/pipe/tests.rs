// SPDX-License-Identifier: Apache-2.0
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
            resent: 0,
            streams,
            most,
            ..Look::default()
        };
        streams = pipe.look(now, &look).unwrap_or(streams);
    }
    (streams, pipe.rate().unwrap())
}

/// A program may make numbers below the smallest normal one trap.
#[test]
fn rates_end_at_nothing_when_nothing_is_sent() {
    let mut pipe = Pipe::default();
    pipe.know(Some(10_000_000));
    let mut fastest = 0.0;
    for i in 0..60_000u32 {
        let look = Look {
            acknowledged: u64::from(i.min(10)) * 1_000_000,
            backlog: true,
            round_trip: Duration::from_millis(20),
            shortest: Duration::from_millis(20),
            streams: 1,
            most: 1,
            ..Look::default()
        };
        let _ = pipe.look(Duration::from_millis(100) * i, &look);
        let _ = pipe.polite(&look);
        fastest = super::fastest(fastest, pipe.rate());
        let rates = [Some(fastest), Some(pipe.of_late), pipe.rate(), pipe.cap(), pipe.middle];
        assert!(
            rates.into_iter().flatten().all(|r| r == 0.0 || r.is_normal()),
            "{pipe:?}"
        );
    }
    assert_eq!((pipe.of_late, pipe.rate(), fastest), (0.0, Some(0.0), 0.0));
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
fn a_connection_that_goes_by_the_rate_gets_help_when_buffers_hold_it_back() {
    let run = |buffered: f64| {
        let (mut pipe, mut streams) = (Pipe::default(), 1);
        for i in 0..60u32 {
            let busy = Duration::from_millis(100) * i;
            let look = Look {
                acknowledged: u64::from(i) * 1_000_000,
                backlog: true,
                round_trip: Duration::from_millis(75),
                shortest: Duration::from_millis(75),
                busy,
                buffered: busy.mul_f64(buffered),
                by_rate: true,
                streams,
                most: 64,
                ..Look::default()
            };
            streams = pipe.look(busy, &look).unwrap_or(streams);
        }
        streams
    };
    assert_eq!((run(0.0), run(0.5)), (1, 2));
}

#[test]
fn what_buffers_cannot_hold_is_known_beforehand() {
    let first = |rate: u64, sharers: u32| {
        let mut pipe = Pipe::default();
        pipe.know(Some(rate));
        pipe.share(sharers);
        let look = Look {
            backlog: true,
            shortest: Duration::from_millis(75),
            window: 2_500_000,
            streams: 1,
            most: 64,
            ..Look::default()
        };
        pipe.look(Duration::from_millis(100), &look)
    };
    assert_eq!(first(12_500_000, 1), None, "one holds it");
    assert_eq!(first(60_000_000, 1), Some(3));
    assert_eq!(first(60_000_000, 4), None, "four others help");
    assert_eq!(first(10_000_000_000, 1), Some(64));
}

#[test]
fn a_moment_with_nothing_to_send_hides_no_buffer_that_is_too_small() {
    let run = |buffered: f64| {
        let (mut pipe, mut streams) = (Pipe::default(), 1);
        for i in 0..60u32 {
            let busy = Duration::from_millis(100) * i;
            let look = Look {
                acknowledged: u64::from(i) * 1_000_000,
                unsent: 1,
                shortest: Duration::from_millis(75),
                busy,
                buffered: busy.mul_f64(buffered),
                by_rate: true,
                streams,
                most: 64,
                ..Look::default()
            };
            streams = pipe.look(busy, &look).unwrap_or(streams);
        }
        streams
    };
    assert_eq!((run(0.0), run(0.5)), (1, 2));
}

/// A link of `capacity` bytes per second that is known to carry `known`, used by so many channels: what share of the
/// capacity is used after some time, and the longest queue on the way there, round trips.
fn pace(capacity: f64, known: u64, sharers: u32) -> (f64, f64) {
    let mut pipe = Pipe::default();
    pipe.know(Some(known));
    pipe.share(sharers);
    let (mut queue, mut longest, mut used, trip) = (0.0f64, 0.0f64, 0.0f64, 0.075);
    let mut arrived = 0.0;
    for i in 0..200u32 {
        // Where nothing is known congestion control finds the rate.
        let each = pipe.share_of_known().unwrap_or(capacity);
        let sent = each * f64::from(sharers) / capacity * trip;
        let passed = (queue + sent).min(trip);
        arrived += passed * capacity / f64::from(sharers);
        used += if i < 100 { 0.0 } else { passed };
        queue = (queue + sent - trip).max(0.0);
        longest = longest.max(queue / trip);
        let look = Look {
            acknowledged: arrived as u64,
            unsent: 1,
            round_trip: Duration::from_secs_f64(trip + queue),
            shortest: Duration::from_secs_f64(trip),
            ..Look::default()
        };
        pipe.look(Duration::from_millis(75) * (i + 1), &look);
    }
    (used / (100.0 * trip), longest)
}

#[test]
fn the_pace_is_that_of_the_link_or_a_share_of_it() {
    for (known, sharers) in [(12_000_000, 1), (6_000_000, 1), (12_000_000, 16)] {
        let (used, queue) = pace(12.5e6, known, sharers);
        assert!(used > 0.98, "{known} {sharers}: {used}");
        assert!(queue < 0.6, "{known} {sharers}: {queue}");
    }
    let mut fast = Pipe::default();
    assert_eq!(fast.share_of_known(), None);
    fast.know(Some(1_000_000_000));
    assert_eq!(fast.share_of_known(), None, "too fast to be known");
}

/// Two seconds with always more to send on a link that is known to carry `known`: of what the pace lets leave so much
/// arrives, behind a short queue.
fn hardly_queued(known: u64, queue: Duration, arrives: impl Fn(f64) -> f64) -> (Pipe, usize) {
    let (mut pipe, mut streams, mut bytes) = (Pipe::default(), 1, 0.0);
    pipe.know(Some(known));
    for i in 0..27u32 {
        bytes += arrives(pipe.share_of_known().unwrap()) * 0.075;
        let look = Look {
            acknowledged: bytes as u64,
            backlog: true,
            round_trip: Duration::from_millis(75) + queue,
            shortest: Duration::from_millis(75),
            streams,
            most: 64,
            ..Look::default()
        };
        streams = pipe.look(Duration::from_millis(75) * (i + 1), &look).unwrap_or(streams);
    }
    (pipe, streams)
}

#[test]
fn more_connections_are_no_help_against_the_pace() {
    // Too long for more of everything, too short for a full link.
    let queue = Duration::from_millis(12);
    let (_, streams) = hardly_queued(11_550_000, queue, |pace| pace);
    assert_eq!(streams, 1);
    // What else but losses makes it so slow?
    let (_, streams) = hardly_queued(11_550_000, queue, |pace| pace / 2.0);
    assert!(streams > 1);
}

#[test]
fn congestion_control_that_leaves_no_queue_does_not_make_a_link_seem_faster() {
    let (mut pipe, _) = hardly_queued(11_550_000, Duration::ZERO, |pace| pace.min(11_770_000.0));
    assert!(!pipe.was_wrong());
    let pace = pipe.share_of_known().unwrap();
    assert!((11.7e6..13.7e6).contains(&pace), "{pace}");
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
            resent: 0,
            streams,
            most: 64,
            ..Look::default()
        };
        if let Some(more) = pipe.look(Duration::from_millis(100) * i, &look) {
            streams = more;
            changes += 1;
        }
    }
    assert_eq!((streams, changes), (2, 1));
}

#[test]
fn connections_that_lose_too_much_are_held_to_what_arrives() {
    let (mut pipe, mut queue) = (Pipe::default(), 0.0f64);
    let (capacity, shortest) = (58.0e6, Duration::from_millis(75));
    let (mut acknowledged, mut resent, mut lost_late) = (0.0, 0.0, 0.0);
    for i in 0..2000u32 {
        // They would send a fifth more than the link carries; its queue holds one round trip.
        let rate = pipe.cap().map_or(1.2 * capacity, |cap| cap.min(1.2 * capacity));
        let after = queue + (rate - capacity) * 0.1;
        let lost = (after - capacity * 0.075).max(0.0);
        queue = (after - lost).max(0.0);
        acknowledged += rate.min(capacity) * 0.1 - lost.min(capacity * 0.1) * 0.1;
        resent += lost + rate * 0.1 * 0.001;
        lost_late += if i > 1000 { lost } else { 0.0 };
        let look = Look {
            acknowledged: acknowledged as u64,
            backlog: true,
            round_trip: shortest + Duration::from_secs_f64(queue / capacity),
            shortest,
            resent: resent as u64,
            streams: 4,
            most: 4,
            ..Look::default()
        };
        pipe.look(Duration::from_millis(100) * i, &look);
    }
    assert!(
        acknowledged > 0.97 * capacity * 200.0,
        "{}",
        acknowledged / capacity / 200.0
    );
    assert!(lost_late < 0.01 * capacity * 100.0, "{}", lost_late / capacity / 100.0);
}

#[test]
fn who_has_not_always_more_to_send_is_not_held_for_ever() {
    let (mut pipe, mut look) = (Pipe::default(), Look::default());
    look.shortest = Duration::from_millis(40);
    look.streams = 4;
    let mut at = |pipe: &mut Pipe, i: u32, backlog, bytes, resent| {
        look.backlog = backlog;
        look.acknowledged += bytes;
        look.resent += resent;
        pipe.look(Duration::from_millis(100) * i, &look);
    };
    (0..10).for_each(|i| at(&mut pipe, i, true, 1_000_000, 100_000));
    let cap = pipe.cap().unwrap();
    assert!((9.0e6..10.0e6).contains(&cap), "{cap}");
    (10..40).for_each(|i| at(&mut pipe, i, i % 2 == 0, 900_000, 0));
    assert_eq!(pipe.cap(), None);
}

#[test]
fn a_link_that_loses_by_chance_is_not_held_back() {
    let mut pipe = Pipe::default();
    for i in 0..400u32 {
        let look = Look {
            acknowledged: u64::from(i) * 5_000_000,
            backlog: true,
            round_trip: Duration::from_millis(75),
            shortest: Duration::from_millis(75),
            resent: u64::from(i) * 50_000,
            streams: 4,
            most: 4,
            ..Look::default()
        };
        pipe.look(Duration::from_millis(100) * i, &look);
        assert_eq!(pipe.cap(), None);
    }
}

#[test]
fn what_is_far_too_low_is_no_longer_known() {
    let told = |arriving: f64| {
        let mut pipe = Pipe::default();
        pipe.know(Some(2_000_000));
        let mut wrong = 0;
        for i in 1..100u32 {
            let look = Look {
                acknowledged: (arriving * 0.075 * f64::from(i)) as u64,
                backlog: true,
                round_trip: Duration::from_millis(75),
                shortest: Duration::from_millis(75),
                streams: 1,
                most: 1,
                ..Look::default()
            };
            pipe.look(Duration::from_millis(75) * i, &look);
            wrong += u32::from(pipe.was_wrong());
        }
        pipe.know(Some(2_000_000));
        (wrong, pipe.share_of_known().is_some())
    };
    assert_eq!(told(9e6), (1, false));
    // Something else holds the data back, which says nothing of the link.
    assert_eq!(told(1e6), (0, true));
}

#[test]
fn a_fast_link_is_known_where_round_trips_are_long() {
    let share = |rate: u64, trip: u64| {
        let mut pipe = Pipe::default();
        pipe.know(Some(rate));
        let look = Look {
            shortest: Duration::from_millis(trip),
            ..Look::default()
        };
        pipe.look(Duration::from_millis(100), &look);
        // The same again changes nothing.
        pipe.know(Some(rate));
        pipe.share_of_known().map(|rate| (rate / 1e5).round())
    };
    assert_eq!(share(60_000_000, 75), Some(660.0));
    assert_eq!(share(60_000_000, 2), None);
    assert_eq!(share(10_000_000, 2), Some(102.0));
}

/// A link of 12.5 MB/s, empty packets of which take so many milliseconds there and back, and polite traffic on it.
struct Polite {
    trip: u32,
    pipe: Pipe,
    /// Bytes per second that it may send.
    rate: f64,
    /// How long what is sent now waits, and what was seen of that, which is a round trip old; in seconds.
    queue: f64,
    on_the_way: std::collections::VecDeque<f64>,
    /// Milliseconds until now, those in which the link carried something, and all that packets have waited in them.
    time: u32,
    used: f64,
    waited: f64,
    longest: f64,
}

const CAPACITY: f64 = 12.5e6;

impl Polite {
    /// What is known of the link, and the rate at first.
    fn new(trip: u32, known: f64, begin: f64) -> Self {
        let pipe = Pipe {
            rate: Some(known),
            middle: Some(begin),
            ..Pipe::default()
        };
        let queue = 0.03;
        Self {
            trip,
            pipe,
            rate: begin,
            queue,
            on_the_way: vec![queue; trip as usize].into(),
            time: 0,
            used: 0.0,
            waited: 0.0,
            longest: 0.0,
        }
    }

    /// One millisecond, in which others send so many bytes per second; how long packets of the last round trip waited.
    fn pass(&mut self, others: f64) -> f64 {
        let left = self.queue + (self.rate + others - CAPACITY) / CAPACITY * 1e-3;
        self.queue = left.max(0.0);
        self.time += 1;
        self.used += 1.0 + left.min(0.0) * 1e3;
        self.waited += self.queue;
        self.longest = self.longest.max(self.queue);
        self.on_the_way.push_back(self.queue);
        self.on_the_way.pop_front().unwrap()
    }

    /// Until the next look; glimpses say what `glimpse` makes of what packets have waited. Then it looks.
    fn look(&mut self, others: impl Fn(u32) -> f64, mut glimpse: impl FnMut(f64) -> f64) {
        let shortest = Duration::from_millis(u64::from(self.trip));
        let mut glimpses = Glimpses::default();
        for _ in 0..self.trip.max(50) {
            let waited = self.pass(others(self.time));
            if glimpses.are_due(Duration::from_millis(u64::from(self.time))) {
                glimpses.add(shortest + Duration::from_secs_f64(glimpse(waited)));
            }
        }
        let standing = glimpses.take();
        let seen = Look {
            // One acknowledgement was held back.
            round_trip: standing + Duration::from_millis(20),
            standing,
            shortest,
            ..Look::default()
        };
        let least = self.pipe.rate().unwrap() * LEAST;
        self.rate = self.pipe.polite(&seen).unwrap().max(least);
    }

    /// From now on it counts how much of the link is used, and how long packets wait.
    fn begin(&mut self) {
        (self.time, self.used, self.waited, self.longest) = (0, 0.0, 0.0, 0.0);
    }

    /// How much of the link was used.
    fn used(&self) -> f64 {
        self.used / f64::from(self.time)
    }
}

#[test]
fn polite_traffic_fills_the_link_and_keeps_the_queue_short() {
    for trip in [20, 40, 75, 150] {
        for (known, begin) in [(12.4e6, 12.4e6), (12.4e6, 1e6), (14e6, 14e6), (12.0e6, 15e6)] {
            let mut polite = Polite::new(trip, known, begin);
            (0..500).for_each(|_| polite.look(|_| 0.0, |waited| waited));
            polite.begin();
            (0..500).for_each(|_| polite.look(|_| 0.0, |waited| waited));
            let (used, queue) = (polite.used(), polite.longest * 1e3 / f64::from(trip));
            assert!(used > 0.95 && queue < 0.12, "{trip} {known} {begin}: {used} {queue}");
        }
    }
}

#[test]
fn polite_traffic_gives_way_to_others() {
    // These want half of the link, every other five seconds.
    let half = |time: u32| f64::from(time / 5000 % 2) * CAPACITY / 2.0;
    for (trip, most) in [(20, 0.3), (40, 0.12), (75, 0.12)] {
        let mut polite = Polite::new(trip, 12.4e6, 12.4e6);
        (0..600).for_each(|_| polite.look(half, |waited| waited));
        let waited = polite.waited / f64::from(polite.time);
        assert!(waited < most, "{trip}: {waited}");
    }
}

#[test]
fn a_look_in_eight_that_sees_a_queue_where_there_is_none_costs_little() {
    for trip in [5, 20] {
        let mut polite = Polite::new(trip, 12.4e6, 12.4e6);
        let mut random = 1_u64;
        for look in 0..1000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let wrong = if random >> 61 == 0 { 0.02 } else { 0.0 };
            polite.look(|_| 0.0, |waited| waited + wrong);
            if look == 100 {
                polite.begin();
            }
        }
        assert!(polite.used() > 0.98, "{trip}: {}", polite.used());
    }
}

#[test]
fn single_glimpses_that_come_late_cost_nothing() {
    for trip in [5, 20, 50] {
        let mut polite = Polite::new(trip, 12.4e6, 12.4e6);
        let mut random = 1_u64;
        for look in 0..1000 {
            // Three of five, since the processor was busy.
            let late = |waited: f64| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                waited + if (random >> 32) % 5 < 3 { 0.02 } else { 0.0 }
            };
            polite.look(|_| 0.0, late);
            if look == 100 {
                polite.begin();
            }
        }
        assert!(polite.used() > 0.98, "{trip}: {}", polite.used());
    }
    let second = 1_000_000 / GLIMPSE.as_micros();
    assert!(second <= 250, "so many system calls: {second}");
}

#[test]
fn what_is_held_back_hinders_nobody_and_is_soon_back() {
    for trip in [5, 20, 50] {
        let known = 12.4e6;
        let mut polite = Polite::new(trip, known, known * LEAST);
        (polite.rate, polite.queue) = (known * LEAST, 1.0);
        polite.on_the_way.iter_mut().for_each(|waited| *waited = 1.0);
        // Others want nine tenths, and wait behind a second of everything; then they are gone.
        while polite.queue > 0.01 {
            polite.look(|_| 0.9 * CAPACITY, |waited| waited);
            assert!(polite.time < 25_000, "{trip}: {}", polite.queue);
        }
        polite.begin();
        while polite.rate < 0.8 * CAPACITY {
            polite.look(|_| 0.0, |waited| waited);
            assert!(polite.time <= 3000, "{trip}: {}", polite.rate);
        }
    }
}
