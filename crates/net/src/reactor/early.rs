// SPDX-License-Identifier: Apache-2.0
//! A plain connection on its way to the main thread, by way of the frames that were waiting for it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use isthmus_transport::Peer;

use super::handing::Handing;
use super::hands::Hands;
use super::task::Task;
use crate::link::{Early, PlainEvent};
use crate::socket::Interest;

impl Hands {
    /// The connection is proven: sends what waits, then gives it to the main thread.
    pub(super) fn hand_over(&mut self, peer: Peer, socket: OwnedFd, early: Option<Arc<Early>>) {
        let Some(early) = early else {
            return self.link.plain(PlainEvent::Connected { peer, socket });
        };
        let handing = Handing::new(peer, socket, early);
        let number = self.slots.insert(Task::Handing(handing));
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
        if let Some(Task::Handing(handing)) = self.slots.remove(number) {
            handing.put_back();
            let Handing { peer, socket, .. } = handing;
            self.poller.remove(&socket);
            self.link.plain(PlainEvent::Connected { peer, socket });
        }
    }
}
