// SPDX-License-Identifier: Apache-2.0
//! Connections of channels come and go; silence; how long a peer may stay away.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use isthmus_link::channel::{Duty, Lane, SILENCE};
use isthmus_link::line::{By, Line, Via};
use isthmus_transport::Peer;
use isthmus_wire::hello::Purpose;
use isthmus_wire::segment::{Kind, Segment};

use super::channels::{Away, Channel, State};
use super::handshake::{Handshake, Target};
use super::lane::Connection;
use super::{Reactor, Task};
use crate::config::Reach;
use crate::secure::Secure;
use crate::socket;
use crate::tcpinfo::{TcpInfo, at_work, tcp_info};
use isthmus_link::pipe::{Look, time_of_look};

/// Most connections of one channel.
pub(super) const MAX_STREAMS: usize = 64;

/// Why a connection is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Down<'a> {
    /// Nothing was heard on it for so long.
    Silent(Duration),
    /// The other end, or something on the way, ended it.
    Ended(&'a str),
}

impl std::fmt::Display for Down<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Silent(time) => write!(f, "nothing was heard on it for {} s", time.as_secs()),
            Self::Ended(why) => f.write_str(why),
        }
    }
}

impl Channel {
    /// Whether one more stream is welcome.
    pub(super) fn admits_more(&self) -> bool {
        self.state == State::Open && self.connections.len() < MAX_STREAMS
    }

    /// Whether a connection that replaces all others is welcome. `deciding`: this end decides which one is used.
    pub(super) fn admits_resumption(&self, deciding: bool, now: Duration) -> bool {
        let young = |c: &Connection| c.line.is_young(now);
        self.state != State::Ended && !(deciding && self.connections.values().any(young))
    }
}

impl Reactor {
    /// A connection that is proven to be the peer's, and how we dialled it if we did. `early`: what the peer sent right
    /// behind its part of the handshake.
    pub(super) fn open_lane(&mut self, peer: Peer, (secure, by): (Secure, Option<By>), early: &[u8], purpose: Purpose) {
        let (now, dialled) = (self.now(), by.is_some());
        if self.channel(peer).state == State::Ended {
            return;
        }
        if purpose == Purpose::Resume {
            let old: Vec<Lane> = self.channel(peer).connections.keys().copied().collect();
            old.into_iter().for_each(|lane| self.drop_lane(peer, lane));
        }
        let channel = self.channel(peer);
        let lane = channel.next_lane;
        channel.next_lane += 1;
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
        if purpose.is_more() {
            channel.coming = channel.coming.saturating_sub(usize::from(dialled));
        }
        // Of two that both ends made at the same time each keeps its own: otherwise neither could make more.
        let replaces = dialled || channel.address.is_some_and(|a| ladder.by(a) == By::Gateway);
        if !purpose.is_more() || (connection.line.is_better() && replaces) {
            channel.address = address.filter(|_| dialled);
            channel.caller = address.map(|a| a.ip().to_canonical()).filter(|_| !dialled);
        }
        channel.out.open(lane);
        channel.connections.insert(lane, connection);
        channel.note_kinds();
        channel.pace();
        channel.traffic.streams = channel.traffic.streams.max(channel.connections.len() as u64);
        if channel.state != State::Farewell {
            channel.state = State::Open;
        }
        let back = channel.away.take();
        if let Some(away) = &back {
            let time = now.saturating_sub(away.since);
            // Gateways end what they carry on another way or thread from then on: nothing has broken.
            match away.relayed {
                true => channel.traffic.renewed += 1,
                false => {
                    channel.traffic.cuts += 1;
                    channel.traffic.away += time;
                }
            }
        }
        let farewell = channel.state == State::Farewell;
        if farewell {
            self.say_farewell(peer);
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
        let Channel {
            connections, receiver, ..
        } = channel;
        let Some(connection) = connections.get_mut(&lane) else {
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

    /// One more stream that we dialled came to nothing.
    pub(super) fn one_more_failed(&mut self, peer: Peer) {
        let channel = self.channel(peer);
        channel.coming = channel.coming.saturating_sub(1);
    }

    /// The peer would like so many connections in all, and cannot dial, as it was dialled.
    pub(super) fn streams_wanted(&mut self, peer: Peer, count: u64) {
        self.dial_more(peer, usize::try_from(count).unwrap_or(MAX_STREAMS).min(MAX_STREAMS));
    }

    /// Makes connections beside the present ones, the same way, until there are so many.
    fn dial_more(&mut self, peer: Peer, count: usize) {
        loop {
            let channel = self.channel(peer);
            let Some(address) = channel.address else { return };
            if channel.state != State::Open || channel.common() + channel.coming >= count {
                return;
            }
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
            makes_way: purpose == Purpose::More && self.channel(peer).extra() > 0,
        };
        let handshake = Handshake::dial(socket, deadline, target, purpose);
        if self.shake(handshake).is_err() {
            return false;
        }
        self.channel(peer).coming += 1;
        self.alarm(deadline);
        true
    }

    /// Looks whether the link is full.
    fn look(&mut self, peer: Peer, now: Duration) {
        let channel = self.channel(peer);
        if now < channel.look_at || channel.connections.is_empty() {
            return;
        }
        // Another kind of connection has another round trip.
        let alone = channel.common() == 0;
        let looked_at = channel.connections.values_mut().filter(|c| !c.line.is_apart() || alone);
        let each = |c: &mut Connection| {
            let info = tcp_info(&c.secure.socket)?;
            c.secure.rest(now, &info);
            Some((info, std::mem::replace(&mut c.acknowledged, info.acknowledged)))
        };
        let found: Vec<(TcpInfo, u64)> = looked_at.filter_map(each).collect();
        let infos: Vec<TcpInfo> = found.iter().map(|(info, _)| *info).collect();
        let shortest = infos.iter().map(|i| i.shortest).filter(|t| !t.is_zero()).min();
        let shortest = shortest.unwrap_or_default();
        let wanted = channel.queues.streams().map(usize::from);
        let look = Look {
            acknowledged: channel.traffic.acknowledged,
            backlog: !std::mem::take(&mut channel.ran_dry) && !channel.queues.is_empty(),
            round_trip: at_work(found.into_iter()).unwrap_or(shortest),
            standing: channel.glimpsed.take(),
            shortest,
            unsent: infos.iter().map(|i| i.unsent).sum(),
            resent: infos.iter().map(|i| i.resent).sum(),
            busy: infos.iter().map(|i| i.busy).sum(),
            buffered: infos.iter().map(|i| i.buffered).sum(),
            // Those that have not carried much yet will, where others do.
            by_rate: channel.connections.values().any(|c| c.secure.by_rate || c.secure.near),
            window: socket::window(),
            streams: channel.common() + channel.coming,
            most: MAX_STREAMS,
        };
        channel.traffic.retransmitted = channel.traffic.retransmitted.max(look.resent);
        channel.look_at = now + time_of_look(&look);
        let again = channel.look_at;
        let busy = !channel.is_idle();
        let mut more = channel.pipe.look(now, &look);
        if channel.pipe.was_wrong() {
            channel.connections.values().for_each(|c| c.secure.look_anew());
        }
        channel.be_polite(&look);
        channel.mark();
        // Classes have connections of their own.
        let extra = channel.extra();
        if wanted.is_some() || extra > 0 {
            let count = match wanted {
                Some(wanted) => wanted + extra,
                None => more.unwrap_or(look.streams).max(1 + extra),
            };
            more = Some(count.min(MAX_STREAMS)).filter(|n| *n > look.streams);
        }
        if let Some(count) = more {
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
        if channel.address.is_some() {
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
        let gone = channel.connections.remove(&lane);
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
        if !self.channel(peer).connections.contains_key(&lane) {
            return;
        }
        let closed = matches!(why, Down::Ended(_));
        let relayed = closed
            && self
                .channel(peer)
                .connections
                .get(&lane)
                .is_some_and(|c| c.line.via.is_carried());
        self.drop_lane(peer, lane);
        let (now, closing) = (self.now(), self.closing);
        let channel = self.channel(peer);
        if channel.state == State::Ended {
            return;
        }
        if !channel.connections.is_empty() {
            return self.want_to_send(peer);
        }
        if channel.receiver.farewell || closing {
            // Who says farewell, and who is about to, knows that all processes have settled: nobody needs what has not
            // arrived.
            self.end(peer);
            return;
        }
        channel.away = Some(Away {
            since: now,
            why: why.to_string(),
            closed,
            relayed,
        });
        self.taken.remove(&peer);
        self.will_report();
        let name = self.places.name(peer);
        self.link.note_connection(match relayed {
            true => format!("the gateway has ended the connection to {name}: it is made again"),
            false => format!("the connection to {name} broke: {why}"),
        });
        self.dial(peer, Reach::Tls, Purpose::Resume);
        let end = now + self.away_time;
        self.alarm(end);
    }

    /// Dialling has come to nothing for this time. True: the channel goes on waiting, or was given up.
    pub(super) fn still_away(&mut self, peer: Peer, report: &str, refused: bool) -> bool {
        let (now, limit) = (self.now(), self.away_time);
        let Some(away) = &self.channel(peer).away else {
            return false;
        };
        let (time, why) = (now.saturating_sub(away.since), away.why.clone());
        self.give_up_dial(peer);
        if time < limit && !refused {
            self.dial(peer, Reach::Tls, Purpose::Resume);
            return true;
        }
        let end = if refused {
            "nobody listens there any more: the process has probably ended or was killed".to_owned()
        } else {
            format!(
                "the link has been down for {} s, longer than ISTHMUS_AWAY allows ({} s)",
                time.as_secs(),
                limit.as_secs()
            )
        };
        let reason = format!("lost {}: {why}, and {end}. {report}", self.places.name(peer));
        self.lose(peer, reason);
        self.deliver();
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
            if let Some(away) = &mut channel.away {
                away.since = now;
            }
            for connection in channel.connections.values_mut() {
                connection.line.vigil.heard(now);
                connection.reading.begun.forgive(now);
            }
        }
    }

    fn upkeep_of(&mut self, peer: Peer, now: Duration) {
        let paused = self.paused;
        let Some(channel) = self.channels.get_mut(&peer) else {
            return;
        };
        if let Some(away) = &channel.away {
            let end = away.since + self.away_time;
            if now >= end {
                let report = self.dials.get(&peer).map(|d| d.dial.explain()).unwrap_or_default();
                self.still_away(peer, &report, false);
            } else {
                self.alarm(end);
            }
            return;
        }
        let (mut next, mut dead, mut say) = (Duration::MAX, Vec::new(), false);
        match unended(channel, self.away_time + SILENCE, now) {
            _ if paused => {}
            Unended::Lost(lane) => return never_ends(self, peer, lane),
            Unended::Due { at, lanes } => (next, dead) = (at, lanes),
        }
        let Channel { connections, out, .. } = channel;
        for (first, (lane, connection)) in connections.iter_mut().enumerate().map(|(i, c)| (i == 0, c)) {
            if paused {
                // The peer must not think that nobody is there.
                connection.reading.receipts.heard(now);
                connection.line.vigil.heard(now);
                connection.reading.begun.forgive(now);
            }
            say |= connection.reading.receipts.is_due(now);
            let busy = out.in_flight(*lane) > 0 || !connection.is_flushed();
            match connection.line.vigil.duty(now, busy, first) {
                Duty::Wait(until) => next = next.min(until),
                Duty::Ask => {
                    connection.line.vigil.asked(now);
                    if connection.is_flushed() {
                        connection.writing.control(&Segment::control(Kind::Ask, 0).encode());
                        say = true;
                    }
                    next = next.min(now + Duration::from_secs(1));
                }
                Duty::GiveUp if connection.reaches() && connection.line.vigil.spare() => next = next.min(now),
                Duty::GiveUp => dead.push((*lane, connection.line.vigil.silence(now))),
            }
            next = next.min(connection.reading.receipts.due_at().unwrap_or(Duration::MAX));
        }
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
        if !channel.is_idle() && !channel.connections.is_empty() {
            next = next.min(channel.look_at.max(now + Duration::from_millis(1)));
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
        channel.traffic.connections = channel.connections.len() as u64;
        channel.traffic.is_away = channel.away.is_some();
        channel.traffic.looked = looked;
        channel.traffic.round_trip = channel.gauge.meter.last_trip();
        let traffic = channel.traffic.clone();
        self.link.note_traffic(peer, traffic);
    }
}

/// What there is to do about what has begun on connections of a channel and not ended.
enum Unended {
    /// The peer keeps this process waiting on this connection.
    Lost(Lane),
    /// These connections have broken for the other end alone; the next look is due then.
    Due { at: Duration, lanes: Vec<(Lane, Duration)> },
}

/// Looks for what has not ended within `patience`.
fn unended(channel: &Channel, patience: Duration, now: Duration) -> Unended {
    let receiver = &channel.receiver;
    let (mut at, mut lanes) = (Duration::MAX, Vec::new());
    for (lane, connection) in &channel.connections {
        let reading = &connection.reading;
        match reading.begun.due(patience.saturating_sub(receiver.unended)) {
            Some(due) if now < due => at = at.min(due),
            // What was sent again on another connection is not waited for.
            Some(_) if reading.is_awaited(receiver) || !receiver.unended.is_zero() => return Unended::Lost(*lane),
            Some(_) => lanes.push((*lane, reading.begun.time(now))),
            None => {}
        }
    }
    Unended::Due { at, lanes }
}

/// The peer has begun something on this connection and keeps this process waiting for its end.
fn never_ends(reactor: &mut Reactor, peer: Peer, lane: Lane) {
    let now = reactor.now();
    let channel = reactor.channel(peer);
    let here = channel.connections.get(&lane).map(|c| c.reading.begun.time(now));
    let time = channel.receiver.unended + here.unwrap_or_default();
    let reason = format!(
        "lost {}: it has begun to send something and has not ended it for {} s, longer than ISTHMUS_AWAY allows ({} s)",
        reactor.places.name(peer),
        time.as_secs(),
        reactor.away_time.as_secs()
    );
    reactor.lose(peer, reason);
    reactor.deliver();
}
