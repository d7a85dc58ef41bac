// SPDX-License-Identifier: Apache-2.0
//! Measuring wide-area connections: what [`isthmus_link::gauge`] decides is said here, in frames that the threads make
//! and answer, so no process need be inside MPI.

use std::time::{Duration, Instant};

use isthmus_link::gauge::{Gauge, Turn, Word};
use isthmus_link::life::Wanted;
use isthmus_transport::Peer;
use isthmus_wire::frame::{Header, Probe};
use isthmus_wire::hello::Purpose;

use super::Reactor;
use super::channels::Channel;
use crate::config::Reach;
use crate::link::Round;

impl Reactor {
    /// Makes connections and begins the rounds.
    pub(super) fn probe(&mut self, dial: &[Peer], rounds: &[Round]) {
        for &peer in dial {
            if self.channel(peer).life.handle_wanted() == Wanted::Dial {
                self.dial(peer, Reach::Tls, Purpose::First);
            }
        }
        self.rounds.add(rounds.iter().copied());
        self.next_round();
    }

    /// Does what the round needs that has its turn.
    fn next_round(&mut self) {
        let now = self.now();
        loop {
            let Self { rounds, channels, .. } = self;
            let turn = rounds.poll_turn(now, |peer| channels.get(&peer).is_some_and(|c| c.life.is_open()));
            if let Some(end) = rounds.poll_timeout() {
                self.alarm(end);
            }
            match turn {
                Turn::Over => return self.link.measured(|all| all.rounds_over = true),
                Turn::Wait => return,
                Turn::Receive(peer) => {
                    let word = self.channel(peer).gauge.begin_trains();
                    return word.into_iter().for_each(|word| self.say(peer, word));
                }
                Turn::Serve(peer, bytes) => {
                    if self.serves(peer, bytes) {
                        return;
                    }
                    self.rounds.end_round();
                }
            }
        }
    }

    /// Sends the peer the train that it wants. False: there is none to send.
    fn serves(&mut self, peer: Peer, bytes: u64) -> bool {
        let settling = self.settling;
        let gauge = &mut self.channel(peer).gauge;
        let head = if settling { None } else { gauge.serve(bytes) };
        head.into_iter().for_each(|word| self.say(peer, word));
        head.is_some()
    }

    /// Ends a round that takes too long.
    pub(super) fn round_timer(&mut self, now: Duration) {
        if self.rounds.handle_timeout(now) {
            self.next_round();
        } else if let Some(end) = self.rounds.poll_timeout() {
            self.alarm(end);
        }
    }

    /// The channel is open.
    pub(super) fn measure_new(&mut self, peer: Peer) {
        let word = self.channel(peer).gauge.ask(Instant::now());
        self.say(peer, word);
        if self.rounds.is_next(peer) {
            self.next_round();
        }
    }

    /// The channel is used: from time to time a round trip.
    pub(super) fn measure_used(&mut self, peer: Peer, now: Instant) {
        let idle = |c: &Channel| c.life.is_open() && c.queues.is_empty() && c.gauge.is_due(now);
        if self.channels.get(&peer).is_some_and(idle) && !self.settling {
            let word = self.channel(peer).gauge.ask(Instant::now());
            self.say(peer, word);
        }
    }

    fn say(&mut self, peer: Peer, word: Word) {
        let channel = self.channel(peer);
        if channel.life.is_open() {
            channel.push_loose(&Header::probe(word.what, 0, word.number).encode());
            self.want_to_send(peer);
        }
    }

    /// A frame has come that is ours.
    pub(super) fn probed(&mut self, peer: Peer, header: &Header, now: Instant) {
        let number = header.token;
        match Probe::from_code(header.auxiliary()) {
            Some(Probe::Ask) => self.say(peer, Gauge::handle_question(number)),
            Some(Probe::Answer) => {
                let (counts, word) = self.channel(peer).gauge.handle_answer(number, now);
                if counts {
                    self.publish(peer);
                }
                word.into_iter().for_each(|word| self.say(peer, word));
            }
            Some(Probe::Want) => {
                if self.rounds.handle_wanted(peer, number) && !self.serves(peer, number) {
                    self.rounds.end_round();
                    self.next_round();
                }
            }
            Some(Probe::Train) => self.train_came(peer, header.length, now),
            // Of a later version.
            None => {}
        }
    }

    fn train_came(&mut self, peer: Peer, bytes: u64, now: Instant) {
        let Some(arrived) = self.channel(peer).gauge.handle_train(bytes, now) else {
            return;
        };
        self.publish(peer);
        self.say(peer, arrived.say);
        if arrived.content && self.rounds.is_with(peer, true) {
            self.rounds.end_round();
            self.next_round();
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
