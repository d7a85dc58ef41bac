// SPDX-License-Identifier: Apache-2.0
//! How many connections fill a link, and how fast traffic may go that is to leave queues short. Knows no clock.
//!
//! What holds data back, while there is more to send, is the link or the connection: buffers that are too small for
//! bandwidth by round trip, of which TCP keeps account, or lost packets, which most congestion controls take for a full
//! link. Where it is the connection more of them carry more, and their number doubles as long as the rate grows with
//! it. A link is full when packets queue up before it: then the round trip grows. A connection with BBR leaves no queue
//! and does not mind single losses: for it only the buffers count.
//!
//! Several connections with BBR on one link overestimate it together, each by the others' gaps, and do not mind losing
//! much (measured with four at 500 Mbit/s, 75 ms, one packet of a thousand lost: 11 to 18 % sent again). So where far
//! more is lost than a link loses by chance, all together are paced at what arrives, and from there on carefully
//! faster.
//!
//! How many connections their buffers make necessary is known beforehand where rate and round trip are: the bytes that
//! are under way then, by what one may have under way. Only what that does not explain has to be found by trying.
//!
//! What the members of a job know of a link when they begin saves the search: a connection is paced at that rate, or at
//! its share when it is known that several processes will send. A link whose rate is met exactly has no queue and loses
//! nothing, where congestion control alone has to fill the queue, or more, to find the rate (measured with collectives
//! of 16 MiB at 100 Mbit/s, 20 to 75 ms: 2 to 8 % of the bytes sent again). While there is always more to send and no
//! queue to be seen, the link may be faster than known: then so are the packets. Where it turns out to be much faster
//! (a lost packet in the short train that measured it is enough), nothing is known any more, and congestion control,
//! which took the pace for the link, begins to look for the rate anew.
//!
//! How far each constant may be from its value is in `docs/measured/pipe.md`, with those that no test holds.

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
/// How fast that traffic answers to a queue that is not as it should be, as a part of that queue per look: up to 3.2 %
/// of the rate faster, and `SLOWER` times that slower. What stays of the answer when the queue is as it should be.
const ANSWER: f64 = 0.4;
const STAYS: f64 = 0.25;
/// Of a queue that is too long by more than so often what it should be, no more is answered to. With less, others wait
/// twice as long for this traffic to give way; with more, a single look in eight that sees a queue where there is none
/// costs a tenth of the link.
const SLOWER: f64 = 4.0;
/// With next to no queue and below so much of the rate of the link, so much faster at every look.
const NEAR: f64 = 0.8;
const RECOVER: f64 = 1.05;
/// Never above so much of the rate of the link as it is known.
const ABOVE: f64 = 1.08;
/// Shortest time between two looks.
const OFTEN: Duration = Duration::from_millis(50);

/// Lost by more than chance: such a share of the bytes was sent again.
const TOO_MUCH: f64 = 0.02;
/// Then together at so much of what arrives, so that the queue drains; faster by this per interval while there is one,
/// and without.
const DRAIN: f64 = 0.98;
const CAREFUL: (f64, f64) = (1.01, 1.1);

/// What one looks at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// Bytes of segments that were acknowledged until now.
    pub acknowledged: u64,
    /// There was always more to send.
    pub backlog: bool,
    /// Bytes that wait for their turn to leave.
    pub unsent: u64,
    /// Of the connection that queues most.
    pub round_trip: Duration,
    /// Shortest that was glimpsed since the last look; zero: none was.
    pub standing: Duration,
    /// Shortest of all.
    pub shortest: Duration,
    /// Bytes that TCP sent again until now.
    pub resent: u64,
    /// Times, of all connections together, in which there was something to send, and in which buffers held it back.
    pub busy: Duration,
    /// The second of them.
    pub buffered: Duration,
    /// All go by the rate that they find, not by losses.
    pub by_rate: bool,
    /// Bytes that one connection can have under way; zero: not known.
    pub window: u64,
    /// Connections there are.
    pub streams: usize,
    /// Most that may be.
    pub most: usize,
}

impl Look {
    /// Whether packets queue up before the link.
    fn is_queueing(&self) -> bool {
        let queue = self.round_trip.saturating_sub(self.shortest);
        queue > self.shortest / 4 + Duration::from_millis(1)
    }
}

/// Short trains measure a little less than the link carries (91.5 to 93.5 of 94.1 Mbit/s).
const MEASURED: f64 = 1.02;
/// Bytes per second above which they are over too soon to say much: a megabyte in 25 ms.
const TOO_FAST: f64 = 42e6;
/// Where a round trip takes longer than such a train it is used all the same, with so much added: what is too slow is
/// found within a few round trips, and congestion control that looks for the rate with twice and three times of it
/// loses more than that takes.
const TRAIN: f64 = 1_000_000.0;
const UNSURE: f64 = 1.1;
/// Faster than known by this per round trip while there is hardly a queue (so much of the round trip, or so long),
/// slower, but not slower than known, when there is much more.
const TRUST: (f64, f64) = (1.05, 0.95);
const HARDLY: (f64, Duration) = (0.1, Duration::from_millis(1));
const MUCH: (f64, Duration) = (0.25, Duration::from_millis(1));

/// So much faster than known: what was known is wrong.
const WRONG: f64 = 1.3;
/// The pace holds the data back where so much of it arrives; of this a look is so large a part.
const BINDING: f64 = 0.9;
const OF_LATE: f64 = 0.5;

/// Buffers that hold the data back for this share of the time are worth another connection.
const BUFFERED: f64 = 0.1;

/// More under way than rate by round trip: what was lost is sent again, acknowledgements come in groups.
const SPARE: f64 = 1.25;

/// Time between two glimpses of the round trip: twelve and more for a look, so that one of 400 looks sees a queue where
/// there is none if three of five glimpses do; and at most 250 system calls a second.
pub const GLIMPSE: Duration = Duration::from_millis(4);

/// Round trips between two looks. The shortest one tells of the queue that never empties: single ones are longer,
/// because a processor was busy or an acknowledgement was held back, and whoever takes those for queues slows down for
/// nothing (measured: to a seventh of the link).
#[derive(Clone, Copy, Debug, Default)]
pub struct Glimpses {
    shortest: Option<Duration>,
    next: Duration,
}

impl Glimpses {
    /// Whether it is time for one.
    pub fn are_due(&mut self, now: Duration) -> bool {
        let due = now >= self.next;
        if due {
            self.next = now + GLIMPSE;
        }
        due
    }

    /// One more.
    pub fn add(&mut self, trip: Duration) {
        if !trip.is_zero() {
            self.shortest = Some(self.shortest.map_or(trip, |s| s.min(trip)));
        }
    }

    /// The shortest since this was asked last; zero: there was none.
    pub fn take(&mut self) -> Duration {
        self.shortest.take().unwrap_or_default()
    }
}

/// How long a rate is measured.
fn interval(look: &Look) -> Duration {
    INTERVAL.max(look.shortest * TRIPS)
}

/// A rate that goes down by a part of itself ends at nothing, not among the smallest numbers there are.
fn settled(rate: f64) -> f64 {
    if rate < 1.0 { 0.0 } else { rate }
}

/// What is held back gets at least this part of the fastest rate of late, whatever round trips seem to say. With more,
/// a second of queue behind others that want nine tenths of the link takes longer than 25 s to empty, and with 0.1 it
/// never does; with less it takes longer than 3 s until the link is filled again when they have gone.
pub const LEAST: f64 = 0.05;
/// How fast that is forgotten, per look.
const FORGET: f64 = 0.9995;

/// The fastest rate of late, given the last one.
pub fn fastest(before: f64, rate: Option<f64>) -> f64 {
    settled(rate.unwrap_or_default().max(before * FORGET))
}

/// The way to one peer.
#[derive(Debug, Default)]
pub struct Pipe {
    /// Time and acknowledged bytes at the begin of the interval.
    begin: Option<(Duration, u64)>,
    last: f64,
    /// Bytes per second when there was always more to send.
    rate: Option<f64>,
    /// Rate before the last growth, and when it can be judged.
    before: Option<(f64, Duration)>,
    content_until: Duration,
    /// Bytes sent again at the begin of the interval.
    resent: u64,
    /// Busy, and held back by buffers, at the begin of the interval.
    times: (Duration, Duration),
    /// Bytes per second to which all traffic is held since too much was lost.
    cap: Option<f64>,
    /// When that was looked at last.
    capped_at: Duration,
    /// Bytes per second that the link is known to carry, and by how much it seems to carry more.
    known: Option<f64>,
    more: f64,
    /// The same as it was told, also where it is too fast to be sure of; and what is too fast as long as the round trip
    /// is not known.
    about: Option<f64>,
    fast: Option<f64>,
    /// Until then that many connections are not asked for again.
    asked_until: Duration,
    /// What was known has turned out to be wrong, and nobody was told.
    was_wrong: bool,
    /// Bytes per second that arrived of late; when that was looked at, and what had arrived then.
    of_late: f64,
    looked: (Duration, u64),
    /// Channels that use it.
    sharers: u32,
    /// Bytes per second about which [`Pipe::polite`] goes up and down.
    middle: Option<f64>,
}

impl Pipe {
    /// What the link carried when it was kept busy.
    pub fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// What the link carries, bytes per second.
    pub fn know(&mut self, rate: Option<u64>) {
        #[expect(clippy::cast_precision_loss, reason = "no link carries 2^53 bytes per second")]
        let bytes = |rate: u64| rate as f64;
        let rate = rate.map(bytes);
        if std::mem::replace(&mut self.about, rate) != rate {
            let (slow, fast) = (rate.filter(|r| *r < TOO_FAST), rate.filter(|r| *r >= TOO_FAST));
            (self.known, self.fast, self.more) = (slow.map(|r| r * MEASURED), fast, 1.0);
        }
    }

    /// What was told is known where the round trip is long enough for that.
    fn believe(&mut self, look: &Look) {
        let is_long = |rate: &mut f64| *rate * look.shortest.as_secs_f64() >= TRAIN;
        if let Some(fast) = self.fast.take_if(is_long) {
            self.known = Some(fast * UNSURE);
        }
    }

    /// Whether what was known has turned out to be wrong since this was asked last.
    pub fn was_wrong(&mut self) -> bool {
        std::mem::take(&mut self.was_wrong)
    }

    /// So many channels, this one included, use it at the same time.
    pub fn share(&mut self, sharers: u32) {
        self.sharers = sharers;
    }

    /// The share, bytes per second, of what is known of the link.
    pub fn share_of_known(&self) -> Option<f64> {
        Some(self.known? * self.more / f64::from(self.sharers.max(1)))
    }

    /// Whether the link seems to carry more than is known.
    fn trust(&mut self, now: Duration, look: &Look) {
        let (at, before) = std::mem::replace(&mut self.looked, (now, look.acknowledged));
        let time = now.saturating_sub(at).as_secs_f64().max(1e-3);
        let rate = look.acknowledged.saturating_sub(before) as f64 / time;
        self.of_late = settled(self.of_late + (rate - self.of_late) * OF_LATE);
        let queue = look.round_trip.saturating_sub(look.shortest);
        let longer_than = |(share, time): (f64, Duration)| queue > look.shortest.mul_f64(share) + time;
        if longer_than(MUCH) {
            self.more = (self.more * TRUST.1).max(1.0);
        } else if !longer_than(HARDLY) && (look.backlog || look.unsent > 0) && self.is_binding() {
            self.more *= TRUST.0;
            if self.more > WRONG && self.sharers <= 1 {
                (self.known, self.more, self.was_wrong) = (None, 1.0, true);
            }
        }
    }

    /// Whether the pace is what holds the data back.
    fn is_binding(&self) -> bool {
        self.share_of_known().is_some_and(|pace| self.of_late > pace * BINDING)
    }

    /// Looks from time to time. How many connections there should be, when that is to change.
    pub fn look(&mut self, now: Duration, look: &Look) -> Option<usize> {
        self.believe(look);
        self.trust(now, look);
        let begun = self.begin.is_some();
        // For a moment there may have been nothing to send where buffers are what holds the data back.
        let was_held = begun && self.is_buffered(look);
        if !look.backlog && !was_held {
            self.begin = None;
            self.ease(now, look);
            if look.unsent == 0 {
                return None;
            }
        }
        let Some((begin, bytes)) = self.begin else {
            self.begin = Some((now, look.acknowledged));
            self.resent = look.resent;
            self.times = (look.busy, look.buffered);
            return self.needed(now, look);
        };
        let time = now.saturating_sub(begin);
        if time < interval(look) {
            return self.needed(now, look);
        }
        let rate = look.acknowledged.saturating_sub(bytes) as f64 / time.as_secs_f64();
        self.begin = Some((now, look.acknowledged));
        let last = std::mem::replace(&mut self.last, rate);
        let old = self.rate.unwrap_or(rate);
        self.rate = Some(if rate > old {
            rate
        } else {
            settled(old + (rate - old) / 4.0)
        });
        self.capped_at = now;
        self.restrain(look, look.acknowledged.saturating_sub(bytes));
        let by_buffers = self.is_buffered(look);
        self.times = (look.busy, look.buffered);
        // Nor is it losses where it is the pace.
        let by_losses = !look.by_rate && !look.is_queueing() && !self.is_binding();
        self.grow(now, look, (last, rate), by_buffers || by_losses)
    }

    /// Whether buffers hold the data back, since the interval began.
    fn is_buffered(&self, look: &Look) -> bool {
        let (busy, buffered) = self.times;
        let waited = look.buffered.saturating_sub(buffered).as_secs_f64();
        waited > look.busy.saturating_sub(busy).as_secs_f64() * BUFFERED
    }

    /// Connections whose buffers together hold what is under way when the link is full, if those are more than there
    /// are.
    fn needed(&mut self, now: Duration, look: &Look) -> Option<usize> {
        let rate = self.about? / f64::from(self.sharers.max(1));
        let under_way = rate * look.shortest.as_secs_f64() * SPARE;
        let count = ((under_way / look.window.max(1) as f64).ceil() as usize).min(look.most);
        if look.window == 0 || count <= look.streams || now < self.asked_until {
            return None;
        }
        self.asked_until = now + CONTENT;
        Some(count)
    }

    /// Bytes per second that all connections together should not exceed.
    pub fn cap(&self) -> Option<f64> {
        self.cap
    }

    /// An interval is over in which so much arrived.
    fn restrain(&mut self, look: &Look, arrived: u64) {
        let again = look
            .resent
            .saturating_sub(std::mem::replace(&mut self.resent, look.resent));
        let best = self.rate.unwrap_or_default();
        if look.streams > 1 && again as f64 > (arrived + again) as f64 * TOO_MUCH {
            self.cap = Some(best * DRAIN);
        } else if let Some(cap) = self.cap {
            let faster = if look.is_queueing() { CAREFUL.0 } else { CAREFUL.1 };
            self.cap = Some(cap * faster);
        }
        self.forget();
    }

    /// A cap far above what arrives holds nobody.
    fn forget(&mut self) {
        let best = self.rate.unwrap_or_default();
        self.cap = self.cap.filter(|cap| *cap < best * 2.0);
    }

    /// There is not always more to send: what a relay passes on, for example, comes in pieces. Then nothing says how
    /// fast all could go, and what the cap rests on grows old.
    fn ease(&mut self, now: Duration, look: &Look) {
        if now.saturating_sub(self.capped_at) < interval(look) {
            return;
        }
        self.capped_at = now;
        self.cap = self.cap.map(|cap| cap * CAREFUL.1);
        self.forget();
    }

    /// `held_back`: by the connections, not by the link.
    fn grow(&mut self, now: Duration, look: &Look, (last, rate): (f64, f64), held_back: bool) -> Option<usize> {
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
        if climbing || !held_back || now < self.content_until || look.streams >= look.most {
            return None;
        }
        // The handshake of TLS and the slow start come first.
        self.before = Some((rate, now + look.shortest * 8 + INTERVAL / 2));
        Some((look.streams * 2).min(look.most))
    }

    /// The rate, bytes per second in all, for traffic that is to leave queues short; look at it once per round trip.
    pub fn polite(&mut self, look: &Look) -> Option<f64> {
        // What is known counts as well: where there is not always more to send the rate says little.
        let best = self.rate.into_iter().chain(self.known).reduce(f64::max)?;
        let trip = if look.standing.is_zero() {
            look.round_trip
        } else {
            look.standing.min(look.round_trip)
        };
        let queue = trip.saturating_sub(look.shortest).as_secs_f64();
        let target = (look.shortest.as_secs_f64() * SHORT_QUEUE.0).max(SHORT_QUEUE.1.as_secs_f64());
        // The queue itself sums up what is too fast, and shows it a look later. So most of the answer is to what the
        // queue is, and only a small part of it stays; with an answer that all stays the rate swings (measured: between
        // 65 and 125 %).
        let off = ((target - queue) / target).clamp(-SLOWER, 1.0);
        let answer = ANSWER * target / time_of_look(look).as_secs_f64();
        let middle = self.middle.unwrap_or(best);
        let faster = if off > 0.5 && middle < best * NEAR {
            RECOVER
        } else {
            1.0 + off * answer * STAYS
        };
        let middle = (middle * faster).clamp(best * LEAST, best * ABOVE);
        self.middle = Some(middle);
        Some(middle * (1.0 + off * answer))
    }
}

/// Time between two looks.
pub fn time_of_look(look: &Look) -> Duration {
    look.shortest.max(OFTEN)
}

#[cfg(test)]
mod tests;
