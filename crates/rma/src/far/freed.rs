// SPDX-License-Identifier: Apache-2.0
//! Windows that this process has freed because a member was lost. Others may not have heard of that.

use std::collections::BTreeMap;

use isthmus_engine::{Members, Peer, Port};

use super::open::Open;
use super::outgoing::{Key, Outgoing};

/// See the module.
#[derive(Default)]
pub(super) struct Freed {
    members: BTreeMap<Key, Members>,
    /// Those for whose locks processes on other nodes have tickets: others of this node wait behind them.
    ticketed: Vec<Open>,
}

impl Freed {
    pub(super) fn insert(&mut self, port: &mut Port<'_>, out: &mut Outgoing, key: Key, mut open: Open) {
        self.members.insert(key, open.members().clone());
        open.abandon(port, out);
        if open.waits() {
            self.ticketed.push(open);
        }
    }

    /// There is a window with this key again.
    pub(super) fn remove(&mut self, key: Key) {
        self.members.remove(&key);
    }

    /// Whether a peer may operate on a window with this number, which was freed.
    pub(super) fn has(&self, number: u32, peer: Peer) -> bool {
        let mut all = self.members.range((number, 0)..=(number, u32::MAX));
        all.any(|(_, members)| members.contains(peer))
    }

    /// Whether somebody may wait behind a ticket.
    pub(super) fn has_tickets(&self) -> bool {
        !self.ticketed.is_empty()
    }

    /// Gives tickets up whose turn has come. True if anything was done.
    pub(super) fn go_on(&mut self, port: &mut Port<'_>, out: &mut Outgoing) -> bool {
        let mut any = false;
        self.ticketed.retain_mut(|open| {
            any |= open.go_on(port, out);
            open.waits()
        });
        any
    }

    /// A peer is gone.
    pub(super) fn lose(&mut self, port: &mut Port<'_>, out: &mut Outgoing, peer: Peer) {
        for open in self.ticketed.iter_mut().filter(|open| open.has(peer)) {
            open.lose(port, out, peer);
        }
    }
}
