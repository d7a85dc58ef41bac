// SPDX-License-Identifier: Apache-2.0
//! Connections of a channel come and go, and are looked at.

use std::time::Duration;

use isthmus_link::channel::ConnectionId;
use isthmus_link::filling::Looked;
use isthmus_link::life::{End, MAX_STREAMS, Opening};
use isthmus_link::line::Line;
use isthmus_link::pipe::Look;
use isthmus_wire::hello::Purpose;

use super::channel::Channel;
use super::connection::Connection;
use super::hands::Hands;
use super::task::Task;
use crate::receiver::Receiver;
use crate::secure::Secure;
use crate::socket;
use crate::tcpinfo::{TcpInfo, at_work, tcp_info};

impl Channel {
    /// Looks how the connections do, and holds them to what they may do from now on.
    pub(super) fn look(&mut self, now: Duration) -> Looked {
        // Another kind of connection has another round trip.
        let alone = self.life.common() == 0;
        let looked_at = self.life.lines.values_mut().filter(|c| !c.line.is_apart() || alone);
        let each = |c: &mut Connection| {
            let info = tcp_info(&c.secure.socket)?;
            c.secure.rest(now, &info);
            Some((info, std::mem::replace(&mut c.acknowledged, info.acknowledged)))
        };
        let found: Vec<(TcpInfo, u64)> = looked_at.filter_map(each).collect();
        let infos: Vec<TcpInfo> = found.iter().map(|(info, _)| *info).collect();
        let shortest = infos.iter().map(|i| i.shortest).filter(|t| !t.is_zero()).min();
        let shortest = shortest.unwrap_or_default();
        let look = Look {
            acknowledged: self.traffic.acknowledged,
            backlog: !self.queues.is_empty(),
            round_trip: at_work(found.into_iter()).unwrap_or(shortest),
            standing: Duration::ZERO,
            shortest,
            unsent: infos.iter().map(|i| i.unsent).sum(),
            resent: infos.iter().map(|i| i.resent).sum(),
            busy: infos.iter().map(|i| i.busy).sum(),
            buffered: infos.iter().map(|i| i.buffered).sum(),
            // Those that have not carried much yet will, where others do.
            by_rate: self.life.lines.values().any(|c| c.secure.by_rate || c.secure.near),
            window: socket::window(),
            streams: self.life.expected(),
            most: MAX_STREAMS,
        };
        self.traffic.retransmitted = self.traffic.retransmitted.max(look.resent);
        let used = self.used();
        let looked = self.filling.handle_look(now, look, used);
        if looked.anew {
            self.life.lines.values().for_each(|c| c.secure.look_anew());
        }
        self.pace();
        self.mark();
        looked
    }

    /// A connection that is proven to be the peer's. Its name.
    pub(super) fn open(&mut self, hands: &mut Hands, secure: Secure, line: Line, how: Opening) -> ConnectionId {
        let old = self.life.replaced(line.purpose);
        old.into_iter().for_each(|id| self.drop_connection(hands, id));
        let id = self.life.next_id();
        let number = hands.slots.insert(Task::Wide(self.peer, id));
        let mut connection = Connection::new(line, secure, number);
        if line.purpose != Purpose::First {
            // The link has been measured. What goes by losses would need seconds to become fast where some packets are
            // lost.
            connection.secure.smooth();
        }
        connection.writing.control(&self.receiver.incoming.hello().encode());
        self.out.open(id);
        let back = self.life.handle_opened(id, connection, how);
        self.note_kinds();
        self.pace();
        self.traffic.streams = self.traffic.streams.max(self.life.lines.len() as u64);
        if let Some(away) = back {
            // Gateways end what they carry on another way or thread from then on: nothing has broken.
            match away.end {
                End::Handed => self.traffic.renewed += 1,
                End::Silent | End::Closed => {
                    self.traffic.cuts += 1;
                    self.traffic.away += hands.now().saturating_sub(away.since);
                }
            }
        }
        self.watch(hands);
        id
    }

    /// The peer has spoken on this connection.
    pub(super) fn has_spoken(&mut self, hands: &mut Hands, id: ConnectionId) {
        let worse = self.life.handle_hello(id);
        if !worse.is_empty() {
            self.traffic.moved += 1;
            let name = hands.places.name(self.peer);
            hands.link.note_connection(format!(
                "{name} is reached directly now; until now gateways carried what it was sent"
            ));
        }
        for id in worse {
            self.drop_connection(hands, id);
        }
    }

    pub(super) fn drop_connection(&mut self, hands: &mut Hands, id: ConnectionId) {
        self.out.lost(id);
        let gone = self.life.lines.remove(&id);
        self.note_kinds();
        if let Some(connection) = gone {
            self.receiver.unended += connection.reading.begun.time(hands.now());
            hands.slots.remove(connection.number);
            hands.poller.remove(&connection.secure.socket);
        }
    }

    /// Lets go of the connections and of all memory of the user. `lost`: the peer will hear so.
    pub(super) fn end(&mut self, hands: &mut Hands, lost: bool) {
        let connections = self.life.handle_end(lost);
        let kept: usize = self.out.clear().iter().map(|p| p.payload.frames()).sum();
        let waiting = self.queues.waiting();
        self.queues.clear();
        self.longs.clear();
        self.copied = 0;
        self.receiver = Receiver::default();
        if let Some(flow) = self.flow.take() {
            flow.left(waiting);
            flow.acknowledged(waiting + kept);
        }
        for connection in connections.into_values() {
            hands.slots.remove(connection.number);
            hands.poller.remove(&connection.secure.socket);
        }
        self.note_traffic(hands);
    }

    /// Lets the main thread see what has passed.
    pub(super) fn note_traffic(&mut self, hands: &Hands) {
        self.traffic.resent = self.out.resent();
        self.traffic.duplicates = self.receiver.incoming.duplicates();
        self.traffic.connections = self.life.lines.len() as u64;
        self.traffic.is_away = self.life.away().is_some();
        self.traffic.looked = hands.clock.wall();
        self.traffic.round_trip = self.gauge.meter.last_trip();
        hands.link.note_traffic(self.peer, self.traffic.clone());
    }
}
