// SPDX-License-Identifier: Apache-2.0
//! A plain connection that sends the frames that were waiting for it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use isthmus_transport::Peer;

use crate::link::Early;
use crate::socket;

pub(super) struct Handing {
    pub(super) peer: Peer,
    pub(super) socket: OwnedFd,
    early: Arc<Early>,
    bytes: Vec<u8>,
    sent: usize,
}

impl Handing {
    pub(super) fn new(peer: Peer, socket: OwnedFd, early: Arc<Early>) -> Self {
        Self {
            peer,
            socket,
            early,
            bytes: Vec::new(),
            sent: 0,
        }
    }

    /// What was not sent waits again.
    pub(super) fn put_back(&self) {
        self.early.put_back(&self.bytes[self.sent..]);
    }

    /// Sends until the socket is full (false) or nothing is left. Errors are left for the main thread to find.
    pub(super) fn advance(&mut self) -> bool {
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
