// SPDX-License-Identifier: Apache-2.0
//! Reaching a peer: what [`isthmus_link::dial`] decides is done with sockets here.

use std::time::Duration;

use isthmus_link::dial::{Attempt, Dial};
use isthmus_link::ladder;
use isthmus_transport::Peer;
use isthmus_wire::hello::Purpose;

use super::failure::Failure;
use super::handshake::{Handshake, Target};
use super::last_word;
use super::{Reactor, Task};
use crate::config::Reach;
use crate::link::PlainEvent;
use crate::socket::{self, Interest};

/// A peer that is being dialled.
pub(super) struct Dialling {
    way: Reach,
    pub(super) dial: Dial<Failure>,
}

impl Reactor {
    /// Begins to dial, unless there is a connection or an attempt already. When a channel has lost its last connection
    /// it asks for another one with [`Purpose::Resume`]; then the peer is not `taken`.
    pub(super) fn dial(&mut self, peer: Peer, way: Reach, purpose: Purpose) {
        if self.taken.contains(&peer) || self.dials.contains_key(&peer) {
            return;
        }
        let (addresses, unusable) = self.places.candidates(peer);
        let rungs = match way {
            Reach::Tls => self.ladder.rungs(self.places.area(peer), addresses, purpose),
            _ => ladder::direct(addresses),
        };
        let now = self.now();
        let dial = Dial::new(purpose, now, self.dial_time, rungs, unusable);
        self.dials.insert(peer, Dialling { way, dial });
        self.dial_timer(peer, now);
    }

    pub(super) fn dial_timers(&mut self, now: Duration) {
        let peers: Vec<Peer> = self.dials.keys().copied().collect();
        for peer in peers {
            self.dial_timer(peer, now);
        }
    }

    fn dial_timer(&mut self, peer: Peer, now: Duration) {
        if self.dials.get(&peer).is_some_and(|d| d.dial.is_over(now)) {
            return self.dial_failed(peer);
        }
        while let Some(attempt) = self.dials.get_mut(&peer).and_then(|d| d.dial.poll_attempt(now)) {
            match self.begin(peer, attempt) {
                Ok(number) => {
                    if let Some(dialling) = self.dials.get_mut(&peer) {
                        dialling.dial.handle_begun(attempt.candidate, number);
                    }
                }
                Err(reason) => self.attempt_ended((peer, attempt.candidate), Some(reason)),
            }
        }
        if let Some(dialling) = self.dials.get(&peer) {
            self.alarm(dialling.dial.poll_timeout());
        }
    }

    /// Connects. The number of the handshake that goes on by itself.
    fn begin(&mut self, peer: Peer, attempt: Attempt) -> Result<u64, Failure> {
        let Some(dialling) = self.dials.get(&peer) else {
            return Err(Failure::Bug("nobody was dialled"));
        };
        let target = Target {
            peer,
            candidate: attempt.candidate,
            way: dialling.way,
            by: attempt.by,
            makes_way: false,
        };
        let purpose = dialling.dial.purpose();
        let socket = socket::connect(attempt.address)?;
        self.shake(Handshake::dial(socket, attempt.deadline, target, purpose))
    }

    /// A handshake that this end begins.
    pub(super) fn shake(&mut self, handshake: Handshake) -> Result<u64, Failure> {
        let number = self.slots.insert(Task::Handshake(handshake));
        let Some(Task::Handshake(handshake)) = self.slots.get(number) else {
            return Err(Failure::Bug("a task that was just added is not there"));
        };
        let added = handshake.socket().map(|s| self.poller.add(s, number, Interest::WRITE));
        if !matches!(added, Some(Ok(()))) {
            self.slots.remove(number);
            return Err(Failure::Unwatched);
        }
        Ok(number)
    }

    /// An attempt at this address of the peer has ended without a connection. No cause: the peer has been asked to
    /// dial us.
    pub(super) fn attempt_ended(&mut self, (peer, index): (Peer, usize), cause: Option<Failure>) {
        let now = self.now();
        let Some(dialling) = self.dials.get_mut(&peer) else {
            return;
        };
        let failed = cause.is_some();
        match cause {
            Some(cause) => dialling.dial.handle_failed(index, cause, now),
            None => dialling.dial.handle_told(index, now),
        }
        let next = dialling.dial.poll_timeout();
        self.alarm(next);
        if !failed {
            return;
        }
        let Some(channel) = self.channels.get(&peer) else {
            return;
        };
        if channel.life.is_given_up() {
            // It is told if it calls.
            return self.give_up_dial(peer);
        }
        let last = channel.life.last_seen();
        if let Some(dialling) = self.dials.get(&peer).filter(|d| d.dial.is_refused(last)) {
            let report = dialling.dial.explain();
            self.still_away(peer, &report, true);
        }
    }

    /// A peer that cannot reach us asks to be dialled.
    pub(super) fn called(&mut self, peer: Peer) {
        let channel = self.channels.get(&peer);
        let away = channel.is_some_and(|c| c.life.away().is_some());
        if channel.is_some_and(|c| c.life.is_given_up()) {
            last_word::dial(self, peer);
        } else if !self.closing {
            let purpose = if away { Purpose::Resume } else { Purpose::First };
            self.dial(peer, Reach::Tls, purpose);
        }
    }

    /// The peer has a connection, or is not wanted any more.
    pub(super) fn give_up_dial(&mut self, peer: Peer) {
        let Some(dialling) = self.dials.remove(&peer) else {
            return;
        };
        for number in dialling.dial.under_way() {
            self.forget(number);
        }
    }

    fn dial_failed(&mut self, peer: Peer) {
        let Some(Dialling { way, dial }) = self.dials.get(&peer) else {
            return;
        };
        let way = *way;
        let reason = format!(
            "{} cannot be reached from {}: tried for {} s: {}. {}",
            self.places.name(peer),
            self.places.own_name(),
            self.dial_time.as_secs(),
            dial.report(),
            dial.cure()
        );
        self.give_up_dial(peer);
        if way == Reach::Tls && self.still_away(peer, &reason, false) {
            return;
        }
        if way == Reach::Tls && self.forget_unused(peer) {
            // Dialled only to be measured: whoever has something to say may try again.
            return;
        }
        self.taken.insert(peer);
        if way == Reach::Tls {
            self.lose(peer, reason);
            self.deliver();
        } else {
            self.early.remove(&peer);
            self.link.plain(PlainEvent::Failed { peer, reason });
        }
    }
}
