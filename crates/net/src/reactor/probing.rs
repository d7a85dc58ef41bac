// SPDX-License-Identifier: Apache-2.0
//! Measuring wide-area connections: what [`isthmus_link::gauge`] decides is said here, in frames that the threads make
//! and answer, so no process need be inside MPI.

use std::time::{Duration, Instant};

use isthmus_link::gauge::{Gauge, Rounds, Turn, Word};
use isthmus_transport::Peer;
use isthmus_wire::frame::{Header, Probe};

use super::channels::Channels;
use super::hands::Hands;
use crate::link::Round;

/// Rounds that are still to come.
#[derive(Default)]
pub(super) struct Probing {
    rounds: Rounds<Peer>,
}

impl Probing {
    /// These rounds follow.
    pub(super) fn add(&mut self, hands: &mut Hands, channels: &mut Channels, rounds: &[Round]) {
        self.rounds.add(rounds.iter().copied());
        self.next_round(hands, channels);
    }

    /// Does what the round needs that has its turn.
    fn next_round(&mut self, hands: &mut Hands, channels: &mut Channels) {
        loop {
            let is_open = |peer| channels.get(peer).is_some_and(|c| c.life.is_open());
            let turn = self.rounds.poll_turn(hands.now(), is_open);
            self.rounds.poll_timeout().into_iter().for_each(|end| hands.alarm(end));
            match turn {
                Turn::Over => return hands.link.measured(|all| all.rounds_over = true),
                Turn::Wait => return,
                Turn::Receive(peer) => {
                    let word = channels.to(peer).gauge.begin_trains();
                    return word.into_iter().for_each(|word| say(channels, peer, word));
                }
                Turn::Serve(peer, bytes) if serves(channels, peer, bytes) => return,
                Turn::Serve(..) => self.rounds.end_round(),
            }
        }
    }

    fn end_round(&mut self, hands: &mut Hands, channels: &mut Channels) {
        self.rounds.end_round();
        self.next_round(hands, channels);
    }

    /// Ends a round that takes too long.
    pub(super) fn handle_timeout(&mut self, hands: &mut Hands, channels: &mut Channels, now: Duration) {
        if self.rounds.handle_timeout(now) {
            self.next_round(hands, channels);
        } else if let Some(end) = self.rounds.poll_timeout() {
            hands.alarm(end);
        }
    }

    /// The channel is open.
    pub(super) fn handle_opened(&mut self, hands: &mut Hands, channels: &mut Channels, peer: Peer) {
        let word = channels.to(peer).gauge.ask(Instant::now());
        say(channels, peer, word);
        if self.rounds.is_next(peer) {
            self.next_round(hands, channels);
        }
    }

    /// A frame has come that measures.
    pub(super) fn handle_frame(
        &mut self,
        hands: &mut Hands,
        channels: &mut Channels,
        peer: Peer,
        header: &Header,
        now: Instant,
    ) {
        let number = header.token;
        match Probe::from_code(header.auxiliary()) {
            Some(Probe::Ask) => say(channels, peer, Gauge::handle_question(number)),
            Some(Probe::Answer) => {
                let (counts, word) = channels.to(peer).gauge.handle_answer(number, now);
                if counts {
                    publish(hands, channels, peer);
                }
                word.into_iter().for_each(|word| say(channels, peer, word));
            }
            Some(Probe::Want) => {
                let over = self.rounds.handle_wanted(peer, number) && !serves(channels, peer, number);
                if over {
                    self.end_round(hands, channels);
                }
            }
            Some(Probe::Train) => {
                let Some(arrived) = channels.to(peer).gauge.handle_train(header.length, now) else {
                    return;
                };
                publish(hands, channels, peer);
                say(channels, peer, arrived.say);
                if arrived.content && self.rounds.is_with(peer, true) {
                    self.end_round(hands, channels);
                }
            }
            // Of a later version.
            None => {}
        }
    }
}

/// The channel is used: from time to time a round trip.
pub(super) fn measure_used(channels: &mut Channels, peer: Peer, now: Instant) {
    let settling = channels.settling;
    let Some(channel) = channels.get_mut(peer) else { return };
    if channel.life.is_open() && channel.queues.is_empty() && channel.gauge.is_due(now) && !settling {
        let word = channel.gauge.ask(Instant::now());
        say(channels, peer, word);
    }
}

/// Lets the main thread see what is known.
pub(super) fn publish(hands: &Hands, channels: &mut Channels, peer: Peer) {
    let estimate = channels.to(peer).gauge.meter.estimate();
    hands.link.measured(|all| {
        all.estimates.insert(peer, estimate);
    });
}

/// Sends the peer the train that it wants. False: there is none to send.
fn serves(channels: &mut Channels, peer: Peer, bytes: u64) -> bool {
    if channels.settling {
        return false;
    }
    let head = channels.to(peer).gauge.serve(bytes);
    head.into_iter().for_each(|word| say(channels, peer, word));
    head.is_some()
}

fn say(channels: &mut Channels, peer: Peer, word: Word) {
    let channel = channels.to(peer);
    if channel.life.is_open() {
        channel.push_loose(&Header::probe(word.what, 0, word.number).encode());
        let _ = channels.want_to_send(peer);
    }
}
