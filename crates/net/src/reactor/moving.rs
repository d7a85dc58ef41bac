// SPDX-License-Identifier: Apache-2.0
//! Bytes between the connections of a channel and its queues.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use isthmus_link::channel::{Lane, Place, Violation};
use isthmus_link::life::Down;
use isthmus_link::meter;
use isthmus_transport::{Peer, Tuning};
use isthmus_wire::frame::{Header, Probe};
use isthmus_wire::segment::COMPRESSED;
use rustc_hash::FxHashMap;

use super::channels::Channel;
use super::last_word;
use super::looking::time_of;
use super::{Reactor, Worker};
use crate::compression::{Adaptive, SHORTEST};
use crate::link::{Arrival, Traffic};
use crate::outbox;
use crate::queues::{Body, Held, SEGMENT};
use crate::receiver::{Fault, Takers, Told};
use crate::secure::Scratch;
use crate::socket::Interest;
use crate::writing::Feed;

/// Bytes sent to one peer before others get their turn.
const TURN: usize = 1 << 20;
/// Reads from one connection before others get their turn.
const READS: usize = 4;
/// Most bytes of one channel that are copied so that the user has its memory back before they are acknowledged: what
/// is under way on a good line.
const COPIES: usize = 16 << 20;

/// What became of one reading.
enum Read {
    /// So many encrypted bytes; the last: all that was there.
    Some(usize, Vec<Told>, Vec<Header>, (bool, bool), bool),
    Nothing,
    /// No more will come.
    End(String),
    Fault(Fault),
}

impl Reactor {
    pub(super) fn receive(&mut self, peer: Peer, lane: Lane) {
        let (mut used, mut emptied) = (None, false);
        for _ in 0..READS {
            // The poller tells of what has come since.
            if self.paused || emptied {
                break;
            }
            match self.read(peer, lane) {
                // Somebody looked, and nobody had said that there is anything.
                Read::Nothing if used.is_none() && self.worker == Worker::Looking => return,
                Read::Nothing => break,
                Read::Some(bytes, told, probes, inside, all) => {
                    self.looks.found = true;
                    emptied = all;
                    if inside.0 || inside.1 {
                        self.link.moved.store(true, Ordering::Relaxed);
                    }
                    let (bytes, emptied) = (bytes as u64, all);
                    self.metered(
                        peer,
                        meter::Read { bytes, emptied },
                        inside,
                        &probes,
                        *used.insert(Instant::now()),
                    );
                    for one in told {
                        self.told(peer, lane, one);
                    }
                }
                Read::End(why) => {
                    self.looks.found = true;
                    self.lane_down(peer, lane, Down::Ended(&why));
                    break;
                }
                Read::Fault(fault) => {
                    self.looks.found = true;
                    return self.broken_rules(peer, &fault);
                }
            }
            self.deliver();
        }
        if let Some(now) = used {
            self.will_report();
            self.measure_used(peer, now);
            self.want_better(peer);
        }
        self.after_receiving(peer, lane);
    }

    fn read(&mut self, peer: Peer, lane: Lane) -> Read {
        let now = time_of(self);
        let Some(channel) = self.channels.get_mut(&peer) else {
            return Read::Nothing;
        };
        let before = channel.life.lines.values().any(|c| c.reading.in_long());
        let Channel { life, receiver, .. } = channel;
        let Some(connection) = life.lines.get_mut(&lane) else {
            return Read::Nothing;
        };
        let mut to = Takers {
            peer,
            now,
            arrivals: &mut self.arrivals,
            told: Vec::new(),
            probes: Vec::new(),
        };
        let mut fed = Ok(());
        let reading = &mut connection.reading;
        let read = connection.secure.read(&mut self.scratch, &mut |bytes| {
            if fed.is_ok() {
                fed = reading.feed(bytes, receiver, &mut to);
            }
        });
        let (told, probes) = (to.told, to.probes);
        let (ended, emptied) = (connection.secure.ended, connection.secure.emptied);
        match (fed, read) {
            (Err(fault), _) => Read::Fault(fault),
            (_, Ok(0)) => Read::Nothing,
            (_, Ok(n)) if !ended => {
                connection.came = n;
                connection.line.vigil.heard(now);
                channel.traffic.received += n as u64;
                let after = channel.life.lines.values().any(|c| c.reading.in_long());
                Read::Some(n, told, probes, (before, after), emptied)
            }
            (_, Ok(_)) => Read::End("it was closed by the other end".into()),
            (_, Err(e)) => Read::End(e.to_string()),
        }
    }

    /// Says what is due and looks at deadlines again.
    fn after_receiving(&mut self, peer: Peer, lane: Lane) {
        let now = self.now();
        let Some(channel) = self.channels.get(&peer) else {
            return;
        };
        let Some(connection) = channel.life.lines.get(&lane) else {
            return;
        };
        let receipts = &connection.reading.receipts;
        let (due, unended) = (receipts.due_at(), connection.reading.begun.due(self.away_time));
        if receipts.is_due(now) || self.settling {
            self.send(peer);
        } else if let Some(at) = due {
            self.alarm(at);
        }
        unended.into_iter().for_each(|at| self.alarm(at));
        self.watch(peer);
    }

    pub(super) fn told(&mut self, peer: Peer, lane: Lane, told: Told) {
        let Self { channels, arrivals, .. } = self;
        let Some(channel) = channels.get_mut(&peer) else {
            return;
        };
        match told {
            Told::Hello(hello) => {
                let known = channel.out.arrived(&hello);
                channel.arrived(peer, known, arrivals);
                self.has_spoken(peer, lane);
                self.want_to_send(peer);
            }
            Told::Ack(count) => {
                // The memory of what is half sent is still being read.
                let inside = channel.life.lines.get(&lane).is_some_and(|c| c.writing.is_inside());
                let whole = channel.out.sent(lane) - u64::from(inside);
                if count > whole {
                    let fault = Violation::Acknowledged { count, sent: whole };
                    return self.broken_rules(peer, &Fault::Channel(fault));
                }
                let pieces: Vec<_> = channel
                    .out
                    .acknowledged(lane, count)
                    .map_or_else(|_| Vec::new(), Iterator::collect);
                channel.arrived(peer, pieces, arrivals);
            }
            Told::Streams(count) => self.streams_wanted(peer, count),
            Told::Farewell => {}
            Told::GivenUp => self.lose(peer, last_word::heard(&self.places.name(peer))),
        }
    }

    /// Encrypted bytes were read, and these frames that measure were in them.
    fn metered(
        &mut self,
        peer: Peer,
        read: meter::Read,
        (before, after): (bool, bool),
        probes: &[Header],
        now: Instant,
    ) {
        if self.channel(peer).gauge.meter.read(now, read, before, after) {
            self.publish(peer);
        }
        probes.iter().for_each(|header| self.probed(peer, header, now));
    }

    /// Sends what can be sent, for one turn.
    pub(super) fn send(&mut self, peer: Peer) {
        let now = self.now();
        let mut turn = TURN;
        let mut broken = Vec::new();
        let mut any = false;
        if let Some(channel) = self.channels.get_mut(&peer) {
            let before = channel.queues.waiting();
            while turn > 0 {
                let sent = channel.send_round(&mut self.scratch, now, &mut broken);
                turn = turn.saturating_sub(sent);
                any |= sent > 0;
                if sent == 0 || channel.has_sent_all() {
                    break;
                }
            }
            let left = before - channel.queues.waiting();
            if left > 0 || any && channel.is_inside() {
                self.link.moved.store(true, Ordering::Relaxed);
            }
            channel.glimpse(now);
            channel.left(peer, left, &mut self.arrivals);
            channel.give_back(peer, &mut self.arrivals);
            if turn == 0 && !channel.life.has_ended() {
                self.busy.push(peer);
            }
            if let Some(at) = channel.queues.next_at(now).filter(|at| *at > now) {
                self.alarm(at);
            }
        }
        if any {
            self.will_report();
        }
        for (lane, why) in broken {
            self.lane_down(peer, lane, Down::Ended(&why));
        }
        self.finish(peer);
        self.watch(peer);
    }

    /// Watches for what matters now. A connection that is neither read nor written is not watched at all, for
    /// a hang-up would be reported for ever.
    pub(super) fn watch(&mut self, peer: Peer) {
        let Some(channel) = self.channels.get_mut(&peer) else {
            return;
        };
        for connection in channel.life.lines.values_mut() {
            let secure = &connection.secure;
            let interest = Interest {
                read: !self.paused && !secure.ended,
                write: secure.full(),
            };
            let wanted = (interest.read || interest.write).then_some(interest);
            if wanted == connection.watched {
                continue;
            }
            match (connection.watched, wanted) {
                (None, Some(interest)) => {
                    let _ = self.poller.add(&secure.socket, connection.number, interest);
                }
                (Some(_), Some(interest)) => {
                    let _ = self.poller.change(&secure.socket, connection.number, interest);
                }
                (_, None) => self.poller.remove(&secure.socket),
            }
            connection.watched = wanted;
        }
    }

    pub(super) fn watch_all(&mut self) {
        let peers: Vec<Peer> = self.channels.keys().copied().collect();
        for peer in peers {
            self.watch(peer);
        }
    }
}

/// Counts a segment, and makes it smaller if that pays.
fn press(
    presses: &mut FxHashMap<(u8, bool), Adaptive>,
    traffic: &mut Traffic,
    link: &dyn Fn() -> Option<f64>,
    (place, tuning): (&Place, Tuning),
    held: Held,
) -> Held {
    traffic.classes[held.class as usize] += held.plain as u64;
    if held.plain < SHORTEST || tuning.compress == Some(false) {
        return held;
    }
    let Some(link) = link() else { return held };
    let key = match place {
        Place::Ordered { queue, .. } => (*queue, false),
        Place::Fragment { .. } => (0, true),
    };
    // A limit that the user set is as slow as a link.
    let link = tuning.rate.map_or(link, |rate| link.min(rate as f64));
    let press = presses.entry(key).or_default();
    let pressed = held.body.with(0, |bytes| press.press(bytes, held.long, link));
    let Some(bytes) = pressed.flatten() else {
        return held;
    };
    traffic.compressed.0 += bytes.len() as u64;
    traffic.compressed.1 += held.plain as u64;
    let range = 0..bytes.len();
    Held {
        body: Body::Owned(Arc::new(bytes), range),
        flags: COMPRESSED,
        ..held
    }
}

impl Channel {
    /// A part of a frame has left, and more of it is to come.
    fn is_inside(&self) -> bool {
        self.life.lines.values().any(|c| !c.writing.is_between())
    }

    /// Nothing is left for another round.
    fn has_sent_all(&self) -> bool {
        let waits = !self.queues.is_empty() || self.out.waits_again() || self.gauge.has_pieces();
        !waits && self.loose.is_empty() && !self.is_inside()
    }

    /// Every connection that has room takes something. How many bytes in all.
    fn send_round(
        &mut self,
        scratch: &mut Scratch,
        now: std::time::Duration,
        broken: &mut Vec<(Lane, String)>,
    ) -> usize {
        let mut sent = 0;
        let many = self.life.lines.len() > 1;
        let shares = self.shares();
        if self.loose.is_empty() && self.queues.is_empty() {
            if let Some(size) = self.gauge.next_piece() {
                let header = Header::probe(Probe::Train, size, 0);
                self.push_loose(&outbox::encode(&header, &vec![0; size as usize]));
            }
        }
        let Self {
            life,
            out,
            queues,
            loose,
            traffic,
            presses,
            filling,
            ..
        } = self;
        let meter = &self.gauge.meter;
        let link = || {
            filling
                .rate()
                .or_else(|| meter.estimate().rate.map(|r| r.bytes_per_second as f64))
        };
        for ((lane, connection), takes) in life.lines.iter_mut().zip(shares) {
            match connection.secure.flush() {
                Ok(true) => {}
                Ok(false) => continue,
                Err(e) => {
                    broken.push((*lane, e.to_string()));
                    continue;
                }
            }
            let mut feed = Feed {
                lane: *lane,
                now,
                takes,
                ready: connection.line.is_ready(),
                writing: &mut connection.writing,
                receipts: &mut connection.reading.receipts,
                out: &mut *out,
                queues: &mut *queues,
                loose: &mut *loose,
                allowance: if many { SEGMENT } else { connection.secure.batch() },
                press: &mut |place, tuning, held| press(presses, traffic, &link, (place, tuning), held),
            };
            match connection.secure.write(scratch, &mut feed) {
                Ok(n) => sent += n,
                Err(e) => broken.push((*lane, e.to_string())),
            }
        }
        traffic.sent += sent as u64;
        if self.queues.is_empty() && !self.out.waits_again() {
            self.filling.runs_dry();
        }
        if broken.is_empty() { sent } else { 0 }
    }

    /// Copies what is under way of long messages all of which has left, so that their senders can go on. Over short
    /// round trips it is acknowledged sooner than it is copied.
    fn give_back(&mut self, peer: Peer, arrivals: &mut Vec<Arrival>) {
        let near = self.life.lines.values().all(|c| c.secure.near);
        for id in std::mem::take(&mut self.queues.over) {
            if near {
                continue;
            }
            let Some(unsent) = self.longs.get(&id) else { continue };
            let bytes = unsent.bytes as usize;
            if self.copied + bytes > COPIES {
                continue;
            }
            // Memory that was taken back stays out of reach.
            let copied = |body: &Body| match body {
                Body::Memory(..) => body.with(0, |bytes| Body::Owned(Arc::new(bytes.to_vec()), 0..bytes.len())),
                Body::Owned(..) => None,
            };
            let copy = |body: &Body| copied(body).unwrap_or_else(|| body.clone());
            for piece in self.out.kept().filter(|p| p.payload.long == Some(id)) {
                piece.payload.body = copy(&piece.payload.body);
                piece.payload.copied = true;
                self.copied += piece.payload.plain;
            }
            for connection in self.life.lines.values_mut() {
                connection.writing.replace(id, &copy);
            }
            if let Some(unsent) = self.longs.remove(&id) {
                let token = unsent.token;
                arrivals.push(Arrival::Sent { peer, token });
            }
        }
    }
}
