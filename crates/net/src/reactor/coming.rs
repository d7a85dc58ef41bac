// SPDX-License-Identifier: Apache-2.0
//! Connections on their way: who is let in, handshakes, and what comes of them.

use std::time::Duration;

use isthmus_link::door::{MAX_HANDSHAKES, Stranger};
use isthmus_link::line::By;
use isthmus_transport::Peer;
use isthmus_wire::hello::Purpose;

use super::Reactor;
use super::failure::Failure;
use super::handshake::{Context, Handshake, Outcome, Proven};
use super::slots::LISTENER;
use super::task::Task;
use super::wide::Wide;
use crate::listener::Accepted;
use crate::socket::{self, Interest};

/// Connections accepted before other work gets its turn: half of those that may be in a handshake. Reading what callers
/// say is other work, and whoever has not been read yet counts as silent: with four times as many the first of a burst
/// would be dropped for its last. With a quarter the poller is asked four times as often while a whole job calls.
const BURST: usize = MAX_HANDSHAKES / 2;

impl Reactor {
    pub(super) fn accept(&mut self) {
        for _ in 0..BURST {
            let now = self.hands.now();
            match self.listener.accept() {
                Accepted::Socket(socket) => {
                    let slots = &self.hands.slots;
                    let how = |number| match slots.get(number) {
                        Some(Task::Handshake(handshake)) if handshake.is_silent() => Stranger::Silent,
                        Some(Task::Handshake(_)) => Stranger::Speaks,
                        _ => Stranger::Gone,
                    };
                    if let Some(victim) = self.door.make_room(how) {
                        self.hands.forget(victim);
                    }
                    let handshake = Handshake::accept(socket, now);
                    let deadline = handshake.deadline();
                    if let Ok(number) = self.hands.shake(handshake, Interest::READ) {
                        self.door.handle_in(number);
                        self.hands.alarm(deadline);
                    }
                }
                Accepted::Nobody => return,
                Accepted::Exhausted => {
                    self.hands.poller.remove(&self.listener);
                    let until = self.door.handle_exhausted(now);
                    return self.hands.alarm(until);
                }
            }
        }
    }

    /// Lets callers in again, if it is time.
    pub(super) fn open_door(&mut self, now: Duration) {
        let poller = &self.hands.poller;
        let opened = self.door.opens(now) && poller.add(&self.listener, LISTENER, Interest::READ).is_ok();
        let again = self.door.handle_opened(now, opened);
        again.into_iter().for_each(|at| self.hands.alarm(at));
    }

    /// Goes on with a handshake.
    pub(super) fn handshake(&mut self, number: u64) {
        let Self { hands, wide, keys, .. } = self;
        let Wide { channels, dials, .. } = wide;
        let now = hands.now();
        let Some(Task::Handshake(handshake)) = hands.slots.get_mut(number) else {
            return;
        };
        let places = &*hands.places;
        let admits = |peer: Peer, purpose: Purpose| match channels.get(peer) {
            None => !purpose.is_more() && dials.admits_plain(peer),
            Some(channel) => {
                let deciding = places.rank(peer).is_some_and(|rank| places.me() < rank);
                channel.life.admits(purpose, deciding, now)
            }
        };
        let mut context = Context {
            places,
            prover: &keys.prover,
            gate: dials.has_gateway().then_some(&keys.gate),
            identity: keys.identity.as_ref(),
            admits: &admits,
            given_up: &|peer| channels.get(peer).is_some_and(|c| c.life.is_given_up()),
            scratch: &mut hands.scratch,
        };
        let outcome = match handshake.advance(&mut context) {
            Ok(outcome) => outcome,
            Err(reason) => return self.handshake_ended(number, reason),
        };
        match outcome {
            Outcome::Wait => {
                let interest = handshake.interest();
                if let Some(socket) = handshake.socket() {
                    if interest != handshake.watched && hands.poller.change(socket, number, interest).is_ok() {
                        handshake.watched = interest;
                    }
                }
            }
            Outcome::Asked => {
                if let Some((peer, candidate)) = hands.forget(number) {
                    dials.handle_ended(hands, peer, candidate, None);
                }
            }
            Outcome::Called(peer) => {
                hands.forget(number);
                wide.called(hands, peer);
            }
            Outcome::Over(peer) => {
                hands.forget(number);
                dials.stop(hands, peer);
            }
            Outcome::Proven(peer, proven) => {
                let by = handshake.by();
                hands.forget(number);
                self.adopt(peer, proven, by);
            }
        }
    }

    /// A handshake came to nothing.
    pub(super) fn handshake_ended(&mut self, number: u64, reason: Failure) {
        let Self { hands, wide, .. } = self;
        let Wide { channels, dials, .. } = &mut *wide;
        let more =
            matches!(hands.slots.get(number), Some(Task::Handshake(h)) if h.purpose().is_some_and(Purpose::is_more));
        let Some((peer, candidate)) = hands.forget(number) else {
            return;
        };
        if more {
            return channels.to(peer).life.handle_not_coming();
        }
        dials.handle_ended(hands, peer, candidate, Some(reason));
        wide.attempt_failed(hands, peer);
    }

    /// This connection carries the channel from now on; all other attempts are given up. However it came about, here
    /// what makes connections ends and the channel begins. `by`: through what this end has dialled, if it has.
    fn adopt(&mut self, peer: Peer, proven: Proven, by: Option<By>) {
        let Self { hands, wide, .. } = self;
        let dials = &mut wide.dials;
        let (more, better) = match &proven {
            Proven::Wide { purpose, .. } => (purpose.is_more(), *purpose == Purpose::Better),
            Proven::Plain(_) => (false, false),
        };
        if let Some(by) = by.filter(|_| !more || better) {
            dials.learn(hands, peer, by);
        }
        if !more {
            dials.stop(hands, peer);
        }
        let (way, socket) = match &proven {
            Proven::Plain(socket) => ("tcp", socket),
            Proven::Wide { secure, .. } => ("tls", &secure.socket),
        };
        hands.poller.remove(socket);
        hands.link.note_connection(format!(
            "{way} to {} at {}{}",
            hands.places.name(peer),
            socket::describe(socket),
            if by == Some(By::Gateway) { ", the gateway" } else { "" }
        ));
        match proven {
            Proven::Plain(socket) => {
                let early = dials.take_plain(peer);
                hands.hand_over(peer, socket, early);
            }
            Proven::Wide { secure, early, purpose } => {
                wide.open_connection(hands, peer, (*secure, by), &early, purpose);
            }
        }
    }
}
