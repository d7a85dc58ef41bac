// SPDX-License-Identifier: Apache-2.0
//! Measuring a connection by words of its own: which questions are asked when, and which bytes are wanted.
//!
//! *Round trips*: one end asks, the other answers. A few when a connection is new, then one a second while it is used.
//!
//! *Rates*: every transfer is metered where it arrives ([`crate::meter`]). Connections that carry nothing yet can be
//! asked for a *train*: so many bytes without meaning. The receiver asks for a short one, and for a longer one if that
//! took no time to speak of. A process does that with one peer at a time ([`Rounds`]), in the order that it was told;
//! both ends are told the same order.
//!
//! ```text
//!   receiver   Want 64 KiB ──>        ──> Want 384 KiB ──>       ──> Want 0 (content)
//!   sender          <── Train 0, Train …       <── Train 0, Train …
//! ```

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::{Duration, Instant};

use isthmus_wire::frame::Probe;

use crate::meter::Meter;

/// Round trips that are measured when a connection is new. The least of them counts, so one of ten that meets
/// neither a queue nor a process that waits for its processor is enough.
const FIRST_TRIPS: u8 = 10;
/// Between round trips on a connection that is used: what they take of any link is nothing, and those that are
/// remembered (24) forget a way that is no more in half a minute.
const INTERVAL: Duration = Duration::from_secs(1);
/// An answer that has not come by then is not waited for: TCP has repeated it four times (after 0.2 s, doubled each
/// time).
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// Bytes of trains, one after the other. In `ENOUGH` they measure links up to 21, 126 and 336 Mbit/s; on faster ones
/// the last is over too soon to say how fast (`TOO_FAST` of [`crate::pipe`]).
pub const TRAINS: [u64; 3] = [64 << 10, 384 << 10, 1 << 20];
/// A train that kept the link busy for so long says enough: a reader that comes a millisecond late is 4 % of it.
const ENOUGH: Duration = Duration::from_millis(25);
/// After one that took so long, and a few round trips for a connection that begins slowly, no longer one follows: that
/// has up to six times the bytes, which fills [`ROUND_TIME`].
const LONG: Duration = Duration::from_millis(300);
/// Bytes per frame of a train: long ones, since short ones do not count ([`crate::meter`]).
const PIECE: u64 = 64 << 10;
/// Most trains that a peer may ask for; a few more than [`TRAINS`].
const MAX_ASKED: u8 = 8;
/// Longest time with one peer.
pub const ROUND_TIME: Duration = Duration::from_secs(2);

/// What one end says to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// What it is.
    pub what: Probe,
    /// Of a question, or bytes.
    pub number: u64,
}

impl Word {
    fn new(what: Probe, number: u64) -> Self {
        Self { what, number }
    }
}

/// A train that is under way to this end.
#[derive(Clone, Copy, Debug)]
struct Train {
    wanted: u64,
    got: u64,
    begin: Option<Instant>,
}

/// A train has arrived whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// To be said: another one is wanted, or none.
    pub say: Word,
    /// None is wanted any more.
    pub content: bool,
}

/// What one end measures of a channel.
#[derive(Debug, Default)]
pub struct Gauge {
    /// What is known of the connection.
    pub meter: Meter,
    /// The question that is under way.
    asked: Option<(u64, Instant)>,
    questions: u64,
    answers: u8,
    /// Bytes of a train that are still to be sent.
    left: u64,
    served: u8,
    train: Option<Train>,
}

impl Gauge {
    /// Asks for an answer.
    pub fn ask(&mut self, now: Instant) -> Word {
        self.questions += 1;
        self.asked = Some((self.questions, now));
        Word::new(Probe::Ask, self.questions)
    }

    /// The connection is used and has nothing to do: whether a round trip is due.
    pub fn is_due(&self, now: Instant) -> bool {
        let Some((_, at)) = self.asked else { return true };
        let wait = if self.answers < FIRST_TRIPS {
            ANSWER_TIME
        } else {
            INTERVAL
        };
        now.saturating_duration_since(at) >= wait
    }

    /// The other end asks.
    pub fn handle_question(number: u64) -> Word {
        Word::new(Probe::Answer, number)
    }

    /// An answer has come. Whether it counts, and what is said then.
    pub fn handle_answer(&mut self, number: u64, now: Instant) -> (bool, Option<Word>) {
        let Some((_, at)) = self.asked.filter(|(n, _)| *n == number) else {
            return (false, None);
        };
        self.meter.round_trip(now.saturating_duration_since(at));
        self.answers = self.answers.saturating_add(1);
        let more = self.answers < FIRST_TRIPS;
        (true, more.then(|| self.ask(now)))
    }

    /// Asks for the first train, unless one is on its way.
    pub fn begin_trains(&mut self) -> Option<Word> {
        let begins = self.train.is_none();
        begins.then(|| self.want(TRAINS[0]))
    }

    fn want(&mut self, wanted: u64) -> Word {
        let train = Train {
            wanted,
            got: 0,
            begin: None,
        };
        self.train = (wanted > 0).then_some(train);
        Word::new(Probe::Want, wanted)
    }

    /// A frame of a train has come, with so many bytes. Something: the train is complete.
    pub fn handle_train(&mut self, bytes: u64, now: Instant) -> Option<Arrived> {
        let train = self.train.as_mut()?;
        let begin = *train.begin.get_or_insert(now);
        train.got = train.got.saturating_add(bytes);
        if train.got < train.wanted {
            return None;
        }
        let (wanted, time) = (train.wanted, now.saturating_duration_since(begin));
        // Until there is a burst that counts, the time was spent waiting for acknowledgements.
        let estimate = self.meter.estimate();
        let busy = |rate: u64| Duration::from_secs_f64(wanted as f64 / rate.max(1) as f64) >= ENOUGH;
        let slow = time > LONG + 4 * estimate.round_trip.unwrap_or_default();
        let enough = slow || estimate.bursts && estimate.rate.is_some_and(|r| busy(r.bytes_per_second));
        let next = TRAINS.iter().copied().find(|&t| t > wanted && !enough);
        self.meter.transfer(wanted, time, next.is_none());
        Some(Arrived {
            say: self.want(next.unwrap_or(0)),
            content: next.is_none(),
        })
    }

    /// The other end wants a train of so many bytes; none: it is content. Its head, from which on the other end counts
    /// the time; nothing: there is to be no train.
    pub fn serve(&mut self, bytes: u64) -> Option<Word> {
        if bytes == 0 || self.served == MAX_ASKED {
            return None;
        }
        self.served += 1;
        self.left = bytes.min(TRAINS[TRAINS.len() - 1]);
        Some(Word::new(Probe::Train, 0))
    }

    /// Bytes of the next frame of a train, which counts as sent.
    pub fn next_piece(&mut self) -> Option<u64> {
        let size = self.left.min(PIECE);
        self.left -= size;
        (size > 0).then_some(size)
    }

    /// Whether a train is being sent.
    pub fn has_pieces(&self) -> bool {
        self.left > 0
    }

    /// Drops what is not sent yet of a train.
    pub fn stop(&mut self) {
        self.left = 0;
    }
}

/// Whose rate is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round<P> {
    /// With whom.
    pub peer: P,
    /// This process receives; otherwise the peer does.
    pub receive: bool,
}

/// What the round that has its turn needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn<P> {
    /// There are no more.
    Over,
    /// This peer's channel is not there yet, or it has not asked.
    Wait,
    /// Trains are wanted of this peer.
    Receive(P),
    /// This peer wants a train of so many bytes.
    Serve(P, u64),
}

/// Rounds that are still to come.
#[derive(Debug)]
pub struct Rounds<P> {
    waiting: VecDeque<Round<P>>,
    /// When the present one ends at the latest.
    end: Option<Duration>,
    /// Trains that peers want whose round has not come.
    wanted: HashMap<P, u64>,
}

impl<P> Default for Rounds<P> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            end: None,
            wanted: HashMap::new(),
        }
    }
}

impl<P: Copy + Eq + Hash> Rounds<P> {
    /// These follow.
    pub fn add(&mut self, rounds: impl IntoIterator<Item = Round<P>>) {
        self.waiting.extend(rounds);
    }

    /// What is to be done for the first one. `is_open`: there is a connection to this peer.
    pub fn poll_turn(&mut self, now: Duration, is_open: impl FnOnce(P) -> bool) -> Turn<P> {
        let Some(Round { peer, receive }) = self.waiting.front().copied() else {
            return Turn::Over;
        };
        self.end.get_or_insert(now + ROUND_TIME);
        if !is_open(peer) {
            return Turn::Wait;
        }
        match receive {
            true => Turn::Receive(peer),
            false => self.wanted.remove(&peer).map_or(Turn::Wait, |n| Turn::Serve(peer, n)),
        }
    }

    /// When the present one ends at the latest.
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.end
    }

    /// Ends the present one if it takes too long. True: it is the next one's turn.
    pub fn handle_timeout(&mut self, now: Duration) -> bool {
        let late = self.end.is_some_and(|end| end <= now);
        if late {
            self.end_round();
        }
        late
    }

    /// The peer wants a train. True: it has its turn; otherwise it is remembered.
    pub fn handle_wanted(&mut self, peer: P, bytes: u64) -> bool {
        let now = self.is_with(peer, false);
        if !now {
            self.wanted.insert(peer, bytes);
        }
        now
    }

    /// Whether this peer has its turn, and this process receives, or it.
    pub fn is_with(&self, peer: P, receive: bool) -> bool {
        self.waiting.front() == Some(&Round { peer, receive })
    }

    /// Whether this peer has its turn.
    pub fn is_next(&self, peer: P) -> bool {
        self.waiting.front().is_some_and(|round| round.peer == peer)
    }

    /// The present one is over.
    pub fn end_round(&mut self) {
        self.waiting.pop_front();
        self.end = None;
    }
}

#[cfg(test)]
mod tests;
