// SPDX-License-Identifier: Apache-2.0
//! A plain connection on its way to the main thread, by way of the frames that were waiting for it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use isthmus_transport::Peer;
use isthmus_wire::hello::Purpose;

use super::{Reactor, Task};
use crate::config::Reach;
use crate::link::{Early, PlainEvent};
use crate::socket::{self, Interest};

pub(super) struct Handing {
    peer: Peer,
    socket: OwnedFd,
    early: Arc<Early>,
    bytes: Vec<u8>,
    sent: usize,
}

impl Handing {
    /// Sends until the socket is full (false) or nothing is left. Errors are left for the main thread to find.
    fn advance(&mut self) -> bool {
        loop {
            while self.sent < self.bytes.len() {
                match socket::send(&self.socket, &self.bytes[self.sent..], &[]) {
                    Ok(Some(n)) => self.sent += n,
                    Ok(None) => return false,
                    Err(_) => return true,
                }
            }
            let Some(next) = self.early.next() else { return true };
            self.bytes = next;
            self.sent = 0;
        }
    }
}

impl Reactor {
    pub(super) fn dial_plain(&mut self, peer: Peer, early: Arc<Early>) {
        // When there is a connection already, the main thread will find the frames when it gets to know it.
        if !self.taken.contains(&peer) {
            self.early.insert(peer, early);
            self.dial(peer, Reach::Tcp, Purpose::First);
        }
    }

    /// The connection is proven: sends what waits, then gives it to the main thread.
    pub(super) fn hand_over(&mut self, peer: Peer, socket: OwnedFd) {
        let Some(early) = self.early.remove(&peer) else {
            return self.link.plain(PlainEvent::Connected { peer, socket });
        };
        let number = self.slots.insert(Task::Handing(Handing {
            peer,
            socket,
            early,
            bytes: Vec::new(),
            sent: 0,
        }));
        self.hand_on(number);
        if let Some(Task::Handing(handing)) = self.slots.get(number) {
            let both = Interest {
                read: true,
                write: true,
            };
            if self.poller.add(&handing.socket, number, both).is_err() {
                self.handed(number);
            }
        }
    }

    pub(super) fn hand_on(&mut self, number: u64) {
        if let Some(Task::Handing(handing)) = self.slots.get_mut(number) {
            if handing.advance() {
                self.handed(number);
            }
        }
    }

    pub(super) fn handed(&mut self, number: u64) {
        if let Some(Task::Handing(Handing {
            peer,
            socket,
            early,
            bytes,
            sent,
        })) = self.slots.remove(number)
        {
            self.poller.remove(&socket);
            early.put_back(&bytes[sent..]);
            self.link.plain(PlainEvent::Connected { peer, socket });
        }
    }
}
