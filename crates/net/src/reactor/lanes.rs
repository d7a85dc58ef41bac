// SPDX-License-Identifier: Apache-2.0
//! Connections of channels come and go; silence; how long a peer may stay away.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use isthmus_link::channel::Lane;
use isthmus_link::filling::Looked;
use isthmus_link::life::{Down, End, Gone, MAX_STREAMS, Moment, Opening, Unreached, Upkeep};
use isthmus_link::line::{By, Line, Via};
use isthmus_transport::Peer;
use isthmus_wire::hello::Purpose;
use isthmus_wire::segment::{Kind, Segment};

use super::channels::Channel;
use super::handshake::{Handshake, Target};
use super::lane::Connection;
use super::{Reactor, Task};
use crate::config::Reach;
use crate::secure::Secure;
use crate::socket;
use crate::tcpinfo::{TcpInfo, at_work, tcp_info};
use isthmus_link::pipe::Look;

impl Reactor {
    /// A connection that is proven to be the peer's, and how we dialled it if we did. `early`: what the peer sent right
    /// behind its part of the handshake.
    pub(super) fn open_lane(&mut self, peer: Peer, (secure, by): (Secure, Option<By>), early: &[u8], purpose: Purpose) {
        let (now, dialled) = (self.now(), by.is_some());
        if self.channel(peer).life.has_ended() {
            return;
        }
        let old = self.channel(peer).life.replaced(purpose);
        old.into_iter().for_each(|lane| self.drop_lane(peer, lane));
        let lane = self.channel(peer).life.next_lane();
        let number = self.slots.insert(Task::Wide(peer, lane));
        let address = socket::peer_address(&secure.socket);
        let via = Via::of(purpose, by, || self.caller(peer, address));
        let mut connection = Connection::new(Line::new(purpose, via, now), secure, number);
        if purpose != Purpose::First {
            // The link has been measured. What goes by losses would need seconds to become fast where some packets are
            // lost.
            connection.secure.smooth();
        }
        let Self { channels, ladder, .. } = self;
        let Some(channel) = channels.get_mut(&peer) else {
            return;
        };
        connection.writing.control(&channel.receiver.incoming.hello().encode());
        let by_gateway = channel.life.address().is_some_and(|a| ladder.by(a) == By::Gateway);
        let how = Opening {
            dialled,
            address,
            by_gateway,
        };
        channel.out.open(lane);
        let back = channel.life.handle_opened(lane, connection, how);
        channel.note_kinds();
        channel.pace();
        channel.traffic.streams = channel.traffic.streams.max(channel.life.lines.len() as u64);
        if let Some(away) = back {
            let time = now.saturating_sub(away.since);
            // Gateways end what they carry on another way or thread from then on: nothing has broken.
            match away.end {
                End::Handed => channel.traffic.renewed += 1,
                End::Silent | End::Closed => {
                    channel.traffic.cuts += 1;
                    channel.traffic.away += time;
                }
            }
        }
        self.watch(peer);
        self.busy.push(peer);
        if purpose == Purpose::First {
            self.measure_new(peer);
        }
        self.want_kinds(peer);
        self.fed_early(peer, lane, early);
        self.alarm(now + Duration::from_millis(100));
    }

    fn fed_early(&mut self, peer: Peer, lane: Lane, early: &[u8]) {
        use crate::receiver::Takers;
        let now = self.now();
        let Some(channel) = self.channels.get_mut(&peer) else {
            return;
        };
        let Channel { life, receiver, .. } = channel;
        let Some(connection) = life.lines.get_mut(&lane) else {
            return;
        };
        let mut to = Takers {
            peer,
            now,
            arrivals: &mut self.arrivals,
            told: Vec::new(),
            probes: Vec::new(),
        };
        let fed = connection.reading.feed(early, receiver, &mut to);
        let (told, probes) = (to.told, to.probes);
        let at = Instant::now();
        probes.iter().for_each(|header| self.probed(peer, header, at));
        for one in told {
            self.told(peer, lane, one);
        }
        if let Err(fault) = fed {
            self.broken_rules(peer, &fault);
        }
        self.deliver();
    }

    /// The peer would like so many connections in all, and cannot dial, as it was dialled.
    pub(super) fn streams_wanted(&mut self, peer: Peer, count: u64) {
        self.dial_more(peer, usize::try_from(count).unwrap_or(MAX_STREAMS).min(MAX_STREAMS));
    }

    /// Makes connections beside the present ones, the same way, until there are so many.
    fn dial_more(&mut self, peer: Peer, count: usize) {
        while let Some(address) = self.channel(peer).life.room_for(count) {
            let by = self.ladder.by(address);
            if !self.dial_beside(peer, address, by, Purpose::More) {
                return;
            }
        }
    }

    /// Begins to make one connection beside the present ones. False: that is not possible now.
    pub(super) fn dial_beside(&mut self, peer: Peer, address: SocketAddr, by: By, purpose: Purpose) -> bool {
        let Ok(socket) = socket::connect(address) else {
            return false;
        };
        let deadline = self.now() + self.dial_time;
        let target = Target {
            peer,
            candidate: 0,
            way: Reach::Tls,
            by,
            makes_way: purpose == Purpose::More && self.channel(peer).asked().extra() > 0,
        };
        let handshake = Handshake::dial(socket, deadline, target, purpose);
        if self.shake(handshake).is_err() {
            return false;
        }
        self.channel(peer).life.handle_coming();
        self.alarm(deadline);
        true
    }

    /// Looks whether the link is full.
    fn look(&mut self, peer: Peer, now: Duration) {
        let channel = self.channel(peer);
        if !channel.filling.is_due(now) || channel.life.lines.is_empty() {
            return;
        }
        let looked = channel.look(now);
        let (again, busy) = (channel.filling.poll_timeout(), !channel.is_idle());
        if let Some(count) = looked.connections {
            self.want_streams(peer, count);
        }
        self.want_kinds(peer);
        self.want_better(peer);
        if busy {
            self.alarm(again);
        }
        self.note_traffic(peer);
    }

    fn want_streams(&mut self, peer: Peer, count: usize) {
        let channel = self.channel(peer);
        if channel.life.address().is_some() {
            return self.dial_more(peer, count);
        }
        // Where there is always something to send no connection has room for it now.
        channel
            .loose
            .extend_from_slice(&Segment::control(Kind::Streams, count as u64).encode());
        self.want_to_send(peer);
    }

    pub(super) fn drop_lane(&mut self, peer: Peer, lane: Lane) {
        let now = self.now();
        let Some(channel) = self.channels.get_mut(&peer) else {
            return;
        };
        channel.out.lost(lane);
        let gone = channel.life.lines.remove(&lane);
        if let Some(time) = gone.as_ref().map(|connection| connection.reading.begun.time(now)) {
            channel.receiver.unended += time;
        }
        channel.note_kinds();
        if let Some(connection) = gone {
            self.slots.remove(connection.number);
            self.poller.remove(&connection.secure.socket);
        }
    }

    /// A connection is dead.
    pub(super) fn lane_down(&mut self, peer: Peer, lane: Lane, why: Down<'_>) {
        let channel = self.channel(peer);
        if !channel.life.lines.contains_key(&lane) {
            return;
        }
        let end = channel.life.end_of(lane, why);
        self.drop_lane(peer, lane);
        let (now, closing) = (self.now(), self.closing);
        let channel = self.channel(peer);
        let last_word = channel.receiver.farewell || closing;
        match channel.life.handle_lost(end, why.to_string(), last_word, now) {
            Gone::Nothing => {}
            Gone::Resend => self.want_to_send(peer),
            Gone::End => self.end(peer, false),
            Gone::Dial(end) => {
                self.taken.remove(&peer);
                self.will_report();
                let name = self.places.name(peer);
                self.link.note_connection(match end {
                    End::Handed => format!("the gateway has ended the connection to {name}: it is made again"),
                    End::Silent | End::Closed => format!("the connection to {name} broke: {why}"),
                });
                self.dial(peer, Reach::Tls, Purpose::Resume);
                let end = now + self.away_time;
                self.alarm(end);
            }
        }
    }

    /// Dialling has come to nothing for this time. True: the channel goes on waiting, or was given up.
    pub(super) fn still_away(&mut self, peer: Peer, report: &str, refused: bool) -> bool {
        let (now, limit) = (self.now(), self.away_time);
        let unreached = self.channel(peer).life.handle_unreached(now, limit, refused);
        if unreached == Unreached::NotAway {
            return false;
        }
        self.give_up_dial(peer);
        if let Unreached::Lost(why) = unreached {
            let reason = format!("lost {}: {why}. {report}", self.places.name(peer));
            self.lose(peer, reason);
            self.deliver();
        } else {
            self.dial(peer, Reach::Tls, Purpose::Resume);
        }
        true
    }

    /// Acknowledgements that are due, silence, peers that stay away.
    pub(super) fn upkeep(&mut self, now: Duration) {
        let peers: Vec<Peer> = self.channels.keys().copied().collect();
        for peer in peers {
            self.upkeep_of(peer, now);
        }
    }

    /// This process had been stopped: whoever was silent or away meanwhile has as much time as at first.
    pub(super) fn forgive(&mut self) {
        let now = self.now();
        for channel in self.channels.values_mut() {
            channel.life.forgive(now);
        }
    }

    fn upkeep_of(&mut self, peer: Peer, now: Duration) {
        let moment = |unended| Moment {
            now,
            patience: self.away_time,
            listens: !self.paused,
            unended,
        };
        let Some(channel) = self.channels.get_mut(&peer) else {
            return;
        };
        let (receiver, out) = (&channel.receiver, &channel.out);
        let awaited = |c: &Connection| c.reading.is_awaited(receiver);
        let moment = moment(receiver.unended);
        let upkeep = channel.life.handle_timeout(moment, |lane| out.in_flight(lane), awaited);
        let (mut next, say, dead) = match upkeep {
            Upkeep::Away(end) => return self.alarm(end),
            Upkeep::AwayTooLong => {
                let dialling = self.dials.get(&peer);
                let report = dialling.map(|d| d.dial.explain()).unwrap_or_default();
                self.still_away(peer, &report, false);
                return;
            }
            Upkeep::NeverEnds(time) => return never_ends(self, peer, time),
            Upkeep::Connections { next, say, dead } => (next, say, dead),
        };
        // All alarms were forgotten: whatever is to come must be said again.
        next = next.min(
            channel
                .queues
                .next_at(now)
                .filter(|at| *at > now)
                .unwrap_or(Duration::MAX),
        );
        // Without a connection there is nothing to look at: many processes that wait for one would keep the machine
        // busy.
        if !channel.is_idle() && !channel.life.lines.is_empty() {
            next = next.min(channel.filling.poll_timeout().max(now + Duration::from_millis(1)));
        }
        if say || channel.queues.next_at(now).is_some_and(|at| at <= now) {
            self.send(peer);
        }
        for (lane, time) in dead {
            self.lane_down(peer, lane, Down::Silent(time));
        }
        self.look(peer, now);
        if next < Duration::MAX {
            self.alarm(next.max(now + Duration::from_millis(1)));
        }
    }

    /// Lets the main thread see what has passed on all channels.
    pub(super) fn note_all_traffic(&mut self) {
        let peers: Vec<Peer> = self.channels.keys().copied().collect();
        peers.into_iter().for_each(|peer| self.note_traffic(peer));
    }

    /// Lets the main thread see what has passed.
    pub(super) fn note_traffic(&mut self, peer: Peer) {
        let looked = self.began.elapsed();
        let channel = self.channel(peer);
        channel.traffic.resent = channel.out.resent();
        channel.traffic.duplicates = channel.receiver.incoming.duplicates();
        channel.traffic.connections = channel.life.lines.len() as u64;
        channel.traffic.is_away = channel.life.away().is_some();
        channel.traffic.looked = looked;
        channel.traffic.round_trip = channel.gauge.meter.last_trip();
        let traffic = channel.traffic.clone();
        self.link.note_traffic(peer, traffic);
    }
}

impl Channel {
    /// Looks how the connections do, and holds them to what they may do from now on.
    fn look(&mut self, now: Duration) -> Looked {
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
}

/// The peer has begun something and keeps this process waiting for its end, for so long.
fn never_ends(reactor: &mut Reactor, peer: Peer, time: Duration) {
    let reason = format!(
        "lost {}: it has begun to send something and has not ended it for {} s, longer than ISTHMUS_AWAY allows ({} s)",
        reactor.places.name(peer),
        time.as_secs(),
        reactor.away_time.as_secs()
    );
    reactor.lose(peer, reason);
    reactor.deliver();
}
