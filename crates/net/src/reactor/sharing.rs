// SPDX-License-Identifier: Apache-2.0
//! Which connection of a channel carries what: classes apart from each other, messages that ask for a kind of
//! connection on one of that kind, and packets marked by what they carry.

use std::time::Duration;

use isthmus_link::filling::{Demand, Use};
use isthmus_link::sharing::{Bands, Takes};
use isthmus_transport::Class;

use super::channel::Channel;
use crate::socket::{self, Mark};
use crate::tcpinfo::tcp_info;

impl Channel {
    /// What the communicators ask for.
    pub(super) fn asked(&self) -> Demand {
        Demand {
            streams: self.queues.streams().map(usize::from),
            latency: self.queues.any_latency(),
            bulk: self.queues.any_bulk(),
        }
    }

    /// What the connections are there for.
    pub(super) fn used(&self) -> Use {
        Use {
            asked: self.asked(),
            bands: self.bands(),
            relayed: self.life.lines.values().any(|c| c.line.via.is_relayed()),
        }
    }

    fn bands(&self) -> Bands {
        let asked = self.asked();
        self.life.bands(asked.latency, asked.bulk)
    }

    /// Which segments each connection takes, in their order.
    pub(super) fn shares(&self) -> Vec<Takes> {
        self.life.shares(self.bands())
    }

    /// Kinds of connection have come or gone.
    pub(super) fn note_kinds(&mut self) {
        self.queues.there = self.life.there();
    }

    /// Looks at the round trip, where it matters and from time to time.
    pub(super) fn glimpse(&mut self, now: Duration) {
        // Most channels have no classes, and this is asked whenever something is sent.
        let classes = self.queues.any_latency() || self.queues.any_bulk();
        if !classes || !self.filling.poll_glimpse(now, self.used()) {
            return;
        }
        let common = self.life.lines.values().filter(|c| !c.line.is_apart());
        let infos = common.filter_map(|c| tcp_info(&c.secure.socket));
        if let Some(info) = infos.max_by_key(|info| info.acknowledged) {
            self.filling.handle_glimpse(info.round_trip);
        }
    }

    /// Holds the connections to what they may do now.
    pub(super) fn pace(&mut self) {
        let paces = self.filling.paces(self.bands(), &self.shares());
        for (connection, pace) in self.life.lines.values_mut().zip(paces.each) {
            connection.secure.hold(pace, paces.at_once);
        }
    }

    /// Packets are marked by what their connection has carried of late.
    pub(super) fn mark(&mut self) {
        for connection in self.life.lines.values_mut() {
            let classes = connection.writing.classes();
            let mark = match classes.only() {
                Some(Class::Latency) => Mark::Latency,
                Some(Class::Bulk) => Mark::Bulk,
                _ if classes.is_empty() => connection.mark,
                _ => Mark::Normal,
            };
            if mark != connection.mark {
                connection.mark = mark;
                socket::mark(&connection.secure.socket, mark);
            }
        }
    }
}
