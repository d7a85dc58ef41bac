// SPDX-License-Identifier: Apache-2.0
//! Measuring wide-area connections.
//!
//! *Round trips*: a frame that asks, a frame that answers, both made by the threads, so no process need be inside MPI.
//! A few when a connection is new, then one a second while it is used.
//!
//! *Rates*: every transfer is metered where it arrives ([`isthmus_link::meter`]). Connections that carry nothing
//! yet can be asked for a *train*: so many bytes without meaning. The receiver asks for a short one, and for a longer
//! one if that took no time to speak of. A process does that with one peer at a time, in the order that it was told;
//! both ends are told the same order.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use isthmus_link::life::Wanted;
use isthmus_link::meter::Meter;
use isthmus_transport::Peer;
use isthmus_wire::frame::{Header, Probe};
use isthmus_wire::hello::Purpose;
use rustc_hash::FxHashMap;

use super::Reactor;
use super::channels::Channel;
use crate::config::Reach;
use crate::link::Round;
use crate::outbox;

/// Round trips that are measured when a connection is new.
const FIRST_TRIPS: u8 = 10;
/// Between round trips on a connection that is used.
const INTERVAL: Duration = Duration::from_secs(1);
/// An answer that has not come by then is not waited for.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// Bytes of trains, one after the other.
const TRAINS: [u64; 3] = [64 << 10, 384 << 10, 1 << 20];
/// A train that kept the link busy for so long says enough.
const ENOUGH: Duration = Duration::from_millis(25);
/// After one that took so long, and a few round trips for a connection that begins slowly, no longer one follows.
const LONG: Duration = Duration::from_millis(300);
/// Bytes per frame of a train: long ones, since short ones do not count ([`isthmus_link::meter`]).
const PIECE: u64 = 64 << 10;
/// Most trains that a peer may ask for; a few more than [`TRAINS`].
const MAX_ASKED: u8 = 8;
/// Longest time with one peer.
const ROUND_TIME: Duration = Duration::from_secs(2);

/// What a channel measures.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    pub(super) meter: Meter,
    /// Of the question that is under way.
    asked: Option<(u64, Instant)>,
    questions: u64,
    answers: u8,
    /// Bytes of a train that are still to be sent.
    left: u64,
    served: u8,
    /// Bytes of the train that is under way to us: wanted, arrived; when it began.
    train: Option<(u64, u64, Option<Instant>)>,
}

impl Gauge {
    /// The next frame of a train.
    pub(super) fn next_piece(&mut self) -> Option<Vec<u8>> {
        let size = self.left.min(PIECE);
        self.left -= size;
        (size > 0).then(|| outbox::encode(&Header::probe(Probe::Train, size, 0), &vec![0; size as usize]))
    }

    /// Whether a train is being sent.
    pub(super) fn has_pieces(&self) -> bool {
        self.left > 0
    }

    /// Drops what is not sent yet of a train.
    pub(super) fn stop(&mut self) {
        self.left = 0;
    }

    /// Whether a round trip is due.
    fn is_due(&self, now: Instant) -> bool {
        match self.asked {
            None => true,
            Some((_, at)) => {
                let wait = if self.answers < FIRST_TRIPS {
                    ANSWER_TIME
                } else {
                    INTERVAL
                };
                now.saturating_duration_since(at) >= wait
            }
        }
    }
}

/// Rounds that are still to come.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    waiting: VecDeque<Round>,
    /// When the present one ends at the latest.
    end: Option<Duration>,
    /// Trains that peers want whose round has not come.
    wanted: FxHashMap<Peer, u64>,
}

impl Reactor {
    /// Makes connections and begins the rounds.
    pub(super) fn probe(&mut self, dial: &[Peer], rounds: &[Round]) {
        for &peer in dial {
            if self.channel(peer).life.handle_wanted() == Wanted::Dial {
                self.dial(peer, Reach::Tls, Purpose::First);
            }
        }
        self.rounds.waiting.extend(rounds);
        self.next_round();
    }

    /// Begins the round at the front, if its peer is there.
    fn next_round(&mut self) {
        let Some(round) = self.rounds.waiting.front().copied() else {
            return self.link.measured(|all| all.rounds_over = true);
        };
        if self.rounds.end.is_none() {
            let end = self.now() + ROUND_TIME;
            self.rounds.end = Some(end);
            self.alarm(end);
        }
        if !self.channel(round.peer).life.is_open() {
            return;
        }
        if round.receive {
            if self.channel(round.peer).gauge.train.is_none() {
                self.want_train(round.peer, TRAINS[0]);
            }
        } else if let Some(bytes) = self.rounds.wanted.remove(&round.peer) {
            self.serve(round.peer, bytes);
        }
    }

    fn end_round(&mut self) {
        self.rounds.waiting.pop_front();
        self.rounds.end = None;
        self.next_round();
    }

    /// Ends a round that takes too long.
    pub(super) fn round_timer(&mut self, now: Duration) {
        match self.rounds.end {
            Some(end) if end <= now => self.end_round(),
            Some(end) => self.alarm(end),
            None => {}
        }
    }

    /// The channel is open.
    pub(super) fn measure_new(&mut self, peer: Peer) {
        self.ask(peer);
        if self.rounds.waiting.front().is_some_and(|r| r.peer == peer) {
            self.next_round();
        }
    }

    /// The channel is used: from time to time a round trip.
    pub(super) fn measure_used(&mut self, peer: Peer, now: Instant) {
        let idle = |c: &Channel| c.life.is_open() && c.queues.is_empty() && c.gauge.is_due(now);
        if self.channels.get(&peer).is_some_and(idle) && !self.settling {
            self.ask(peer);
        }
    }

    fn ask(&mut self, peer: Peer) {
        let gauge = &mut self.channel(peer).gauge;
        gauge.questions += 1;
        let number = gauge.questions;
        gauge.asked = Some((number, Instant::now()));
        self.say(peer, Probe::Ask, number);
    }

    fn want_train(&mut self, peer: Peer, bytes: u64) {
        self.channel(peer).gauge.train = (bytes > 0).then_some((bytes, 0, None));
        self.say(peer, Probe::Want, bytes);
    }

    fn say(&mut self, peer: Peer, what: Probe, number: u64) {
        let channel = self.channel(peer);
        if channel.life.is_open() {
            channel.push_loose(&Header::probe(what, 0, number).encode());
            self.want_to_send(peer);
        }
    }

    /// A frame has come that is ours.
    pub(super) fn probed(&mut self, peer: Peer, header: &Header, now: Instant) {
        match Probe::from_code(header.auxiliary()) {
            Some(Probe::Ask) => self.say(peer, Probe::Answer, header.token),
            Some(Probe::Answer) => self.answered(peer, header.token, now),
            Some(Probe::Want) => self.wanted(peer, header.token),
            Some(Probe::Train) => self.train_came(peer, header.length, now),
            // Of a later version.
            None => {}
        }
    }

    fn answered(&mut self, peer: Peer, number: u64, now: Instant) {
        let gauge = &mut self.channel(peer).gauge;
        let Some((_, at)) = gauge.asked.filter(|(n, _)| *n == number) else {
            return;
        };
        gauge.meter.round_trip(now.saturating_duration_since(at));
        gauge.answers = gauge.answers.saturating_add(1);
        let more = gauge.answers < FIRST_TRIPS;
        self.publish(peer);
        if more {
            self.ask(peer);
        }
    }

    /// The peer wants a train of so many bytes; none: it is content.
    fn wanted(&mut self, peer: Peer, bytes: u64) {
        let mine = Round { peer, receive: false };
        if self.rounds.waiting.front() != Some(&mine) {
            self.rounds.wanted.insert(peer, bytes);
        } else {
            self.serve(peer, bytes);
        }
    }

    fn serve(&mut self, peer: Peer, bytes: u64) {
        let gauge = &mut self.channel(peer).gauge;
        let refuse = gauge.served == MAX_ASKED;
        gauge.served += u8::from(!refuse);
        if bytes == 0 || refuse || self.settling {
            return self.end_round();
        }
        let gauge = &mut self.channel(peer).gauge;
        gauge.left = bytes.min(TRAINS[TRAINS.len() - 1]);
        // The train's head: from here on the peer counts the time.
        self.say(peer, Probe::Train, 0);
    }

    fn train_came(&mut self, peer: Peer, bytes: u64, now: Instant) {
        let gauge = &mut self.channel(peer).gauge;
        let Some((wanted, got, begin)) = &mut gauge.train else {
            return;
        };
        let begin = *begin.get_or_insert(now);
        *got += bytes;
        if *got < *wanted {
            return;
        }
        let (wanted, time) = (*wanted, now.saturating_duration_since(begin));
        // Until there is a burst that counts, the time was spent waiting for acknowledgements.
        let estimate = gauge.meter.estimate();
        let busy = |rate: u64| Duration::from_secs_f64(wanted as f64 / rate.max(1) as f64) >= ENOUGH;
        let slow = time > LONG + 4 * estimate.round_trip.unwrap_or_default();
        let enough = slow || estimate.bursts && estimate.rate.is_some_and(|r| busy(r.bytes_per_second));
        let next = TRAINS.iter().copied().find(|&t| t > wanted && !enough);
        gauge.meter.transfer(wanted, time, next.is_none());
        self.publish(peer);
        self.want_train(peer, next.unwrap_or(0));
        if next.is_none() && self.rounds.waiting.front() == Some(&Round { peer, receive: true }) {
            self.end_round();
        }
    }

    /// Lets the main thread see what is known.
    pub(super) fn publish(&mut self, peer: Peer) {
        let estimate = self.channel(peer).gauge.meter.estimate();
        self.link.measured(|all| {
            all.estimates.insert(peer, estimate);
        });
    }
}
