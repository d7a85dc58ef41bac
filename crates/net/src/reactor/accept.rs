// SPDX-License-Identifier: Apache-2.0
//! Accepting connections: bounded, whoever comes.

use std::collections::VecDeque;
use std::time::Duration;

use super::handshake::Handshake;
use super::slots::LISTENER;
use super::{HANDSHAKE_TIME, MAX_HANDSHAKES, Reactor, Task};
use crate::listener::{Accepted, Listener};
use crate::socket::Interest;

/// Connections accepted before other work gets its turn.
const BURST: usize = 32;
/// How long to leave callers waiting when the process or machine has no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

/// The listener and those who came in and have not proven anything yet.
pub(super) struct Door {
    listener: Listener,
    /// Oldest first.
    waiting: VecDeque<u64>,
    closed_until: Option<Duration>,
}

impl Door {
    pub(super) fn new(listener: Listener) -> Self {
        Self {
            listener,
            waiting: VecDeque::new(),
            closed_until: None,
        }
    }

    pub(super) fn forget(&mut self, number: u64) {
        self.waiting.retain(|n| *n != number);
    }
}

impl Reactor {
    pub(super) fn accept(&mut self) {
        for _ in 0..BURST {
            match self.door.listener.accept() {
                Accepted::Socket(socket) => {
                    self.make_room();
                    self.let_in(Handshake::accept(socket, self.now() + HANDSHAKE_TIME));
                }
                Accepted::Nobody => return,
                Accepted::Exhausted => return self.close_door(),
            }
        }
    }

    fn let_in(&mut self, handshake: Handshake) {
        let deadline = handshake.deadline;
        let number = self.slots.insert(Task::Handshake(handshake));
        let Some(Task::Handshake(handshake)) = self.slots.get(number) else {
            return;
        };
        let watched = handshake
            .socket()
            .is_some_and(|s| self.poller.add(s, number, Interest::READ).is_ok());
        if !watched {
            self.slots.remove(number);
            return;
        }
        self.door.waiting.push_back(number);
        self.alarm(deadline);
    }

    /// The silent go before those who have begun to prove themselves.
    fn make_room(&mut self) {
        if self.door.waiting.len() < MAX_HANDSHAKES {
            return;
        }
        let silent = |number: &&u64| matches!(self.slots.get(**number), Some(Task::Handshake(h)) if h.silent());
        let victim = self
            .door
            .waiting
            .iter()
            .find(silent)
            .or_else(|| self.door.waiting.front())
            .copied();
        if let Some(number) = victim {
            self.forget(number);
        }
    }

    fn close_door(&mut self) {
        let until = self.now() + PAUSE;
        self.poller.remove(&self.door.listener);
        self.door.closed_until = Some(until);
        self.alarm(until);
    }

    pub(super) fn open_door(&mut self, now: Duration) {
        let Some(until) = self.door.closed_until else { return };
        let opened = until <= now && self.poller.add(&self.door.listener, LISTENER, Interest::READ).is_ok();
        if opened {
            self.door.closed_until = None;
        } else {
            self.alarm(until.max(now + PAUSE / 2));
        }
    }
}
