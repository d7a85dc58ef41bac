// SPDX-License-Identifier: Apache-2.0
//! Wide-area channels: what is common to their life. Moving bytes is in `moving`, connections that come and go in
//! `lanes`.

use std::sync::Arc;

use isthmus_datatype::raw::WriteMemory;
use isthmus_link::channel::{Outgoing, Piece};
use isthmus_link::filling::Filling;
use isthmus_link::gauge::Gauge;
use isthmus_link::life::{Life, Wanted};
use isthmus_transport::{Lent, Peer, Rates, Tuning};
use isthmus_wire::hello::Purpose;
use isthmus_wire::segment::{Kind, Segment};
use rustc_hash::FxHashMap;

use super::Reactor;
use super::lane::Connection;
use super::last_word;
use crate::compression::Adaptive;
use crate::config::Reach;
use crate::flow::Flow;
use crate::link::{Arrival, Traffic};
use crate::queues::{Held, Long, Queues};
use crate::receiver::{Fault, Receiver};

/// A long message of which something was not acknowledged.
pub(super) struct Unsent {
    pub(super) token: u64,
    pub(super) bytes: u64,
}

pub(super) struct Channel {
    /// Its connections, and what becomes of it.
    pub(super) life: Life<Connection>,
    pub(super) queues: Queues,
    pub(super) out: Outgoing<Held>,
    pub(super) receiver: Receiver,
    /// Where the main thread counts what it has queued.
    flow: Option<Arc<Flow>>,
    pub(super) longs: FxHashMap<u64, Unsent>,
    /// Bytes that were copied so that the user has its memory back.
    pub(super) copied: usize,
    /// Segments that are sent once: they measure.
    pub(super) loose: Vec<u8>,
    pub(super) gauge: Gauge,
    pub(super) filling: Filling,
    /// How messages are compressed: of frames and of long messages, by queue.
    pub(super) presses: FxHashMap<(u8, bool), Adaptive>,
    pub(super) traffic: Traffic,
}

impl Channel {
    fn new() -> Self {
        Self {
            life: Life::default(),
            queues: Queues::default(),
            out: Outgoing::default(),
            receiver: Receiver::default(),
            flow: None,
            longs: FxHashMap::default(),
            copied: 0,
            loose: Vec::new(),
            gauge: Gauge::default(),
            filling: Filling::default(),
            presses: FxHashMap::default(),
            traffic: Traffic::default(),
        }
    }

    /// Nothing waits and nothing is unacknowledged.
    pub(super) fn is_idle(&self) -> bool {
        self.queues.is_empty() && self.out.is_empty()
    }

    /// A frame that measures goes next, and once.
    pub(super) fn push_loose(&mut self, frame: &[u8]) {
        let header = Segment {
            length: frame.len() as u32,
            ..Segment::control(Kind::Loose, 0)
        };
        self.loose.extend_from_slice(&header.encode());
        self.loose.extend_from_slice(frame);
    }

    /// These segments have arrived.
    pub(super) fn arrived(&mut self, peer: Peer, pieces: Vec<Piece<Held>>, arrivals: &mut Vec<Arrival>) {
        let mut frames = 0;
        for piece in pieces {
            let held = piece.payload;
            frames += held.frames();
            self.traffic.acknowledged += held.body.len() as u64;
            self.copied -= if held.copied { held.plain } else { 0 };
            let Some(id) = held.long else { continue };
            if let Some(unsent) = self.longs.get_mut(&id) {
                unsent.bytes -= held.plain as u64;
                if unsent.bytes == 0 {
                    arrivals.push(Arrival::Sent {
                        peer,
                        token: unsent.token,
                    });
                    self.longs.remove(&id);
                }
            }
        }
        self.release(peer, frames, arrivals);
    }

    /// These bytes of frames have left the queues.
    pub(super) fn left(&self, peer: Peer, bytes: usize, arrivals: &mut Vec<Arrival>) {
        if bytes > 0 && self.flow.as_ref().is_some_and(|flow| flow.left(bytes)) {
            arrivals.push(Arrival::Writable { peer });
        }
    }

    fn release(&self, peer: Peer, bytes: usize, arrivals: &mut Vec<Arrival>) {
        if bytes > 0 && self.flow.as_ref().is_some_and(|flow| flow.acknowledged(bytes)) {
            arrivals.push(Arrival::Writable { peer });
        }
    }
}

impl Reactor {
    pub(super) fn channel(&mut self, peer: Peer) -> &mut Channel {
        let (tunings, rates, sharers) = (&self.tunings, &self.rates, self.sharers);
        self.channels.entry(peer).or_insert_with(|| {
            let mut channel = Channel::new();
            channel.filling.know(rates.as_ref().and_then(|rate| rate(peer)));
            channel.filling.share(sharers);
            tunings
                .iter()
                .for_each(|(id, tuning)| channel.queues.tune(*id, *tuning));
            channel
        })
    }

    /// A communicator wants its traffic treated so.
    pub(super) fn tune(&mut self, queue: u8, tuning: Tuning) {
        self.tunings.insert(queue, tuning);
        for channel in self.channels.values_mut() {
            channel.queues.tune(queue, tuning);
        }
        if tuning.path.is_some() {
            let peers: Vec<Peer> = self.channels.keys().copied().collect();
            peers.into_iter().for_each(|peer| self.want_kinds(peer));
        }
    }

    /// What the links carry.
    pub(super) fn know(&mut self, rates: Rates) {
        for (peer, channel) in &mut self.channels {
            channel.filling.know(rates(*peer));
            channel.pace();
        }
        self.rates = Some(rates);
    }

    /// So many channels use each link.
    pub(super) fn share(&mut self, sharers: u32) {
        self.sharers = sharers;
        for channel in self.channels.values_mut() {
            channel.filling.share(sharers);
            channel.pace();
        }
    }

    pub(super) fn frame(&mut self, flow: Arc<Flow>, queue: u8, bytes: Vec<u8>) {
        let peer = flow.peer;
        let channel = self.channel(peer);
        if channel.life.has_ended() {
            flow.left(bytes.len());
            flow.acknowledged(bytes.len());
            return;
        }
        channel.queues.push_frame(queue, bytes);
        channel.flow = Some(flow);
        self.want_to_send(peer);
    }

    pub(super) fn long(&mut self, peer: Peer, queue: u8, long: Long) {
        let channel = self.channel(peer);
        if !channel.life.has_ended() {
            let unsent = Unsent {
                token: long.sent_token,
                bytes: long.length,
            };
            let id = channel.queues.push_long(queue, long);
            channel.longs.insert(id, unsent);
            self.want_to_send(peer);
        }
    }

    pub(super) fn expect(&mut self, peer: Peer, token: u64, memory: Lent<WriteMemory>, length: u64) {
        let channel = self.channel(peer);
        if !channel.life.has_ended() {
            channel.receiver.expect(token, memory, length);
        }
    }

    pub(super) fn want_to_send(&mut self, peer: Peer) {
        match self.channel(peer).life.handle_wanted() {
            Wanted::Send => {
                if !self.busy.contains(&peer) {
                    self.busy.push(peer);
                }
            }
            Wanted::Dial => self.dial(peer, Reach::Tls, Purpose::First),
            Wanted::Wait => {}
        }
    }

    /// Makes a channel that was dialled without anything to send as if it had not been. False: there is something to
    /// send.
    pub(super) fn forget_unused(&mut self, peer: Peer) -> bool {
        let channel = self.channel(peer);
        channel.queues.is_empty() && channel.life.handle_unused()
    }

    /// When closing: says farewell once all is acknowledged.
    pub(super) fn finish(&mut self, peer: Peer) {
        let Some(channel) = self.channels.get_mut(&peer).filter(|_| self.closing) else {
            return;
        };
        if !channel.is_idle() || !channel.life.handle_idle() {
            return;
        }
        channel.loose.clear();
        self.note_traffic(peer);
        self.send(peer);
    }

    /// Acknowledgements leave at once from now on, for others wait for them to settle.
    pub(super) fn settle(&mut self) {
        self.settling = true;
        let peers: Vec<Peer> = self.channels.keys().copied().collect();
        for peer in peers {
            self.channel(peer).gauge.stop();
            self.send(peer);
        }
        self.deliver();
    }

    /// Everything that was there to send has arrived.
    pub(super) fn all_settled(&self) -> bool {
        let settled = |c: &Channel| c.life.has_settled(!c.queues.is_empty(), c.is_idle());
        self.channels.values().all(settled)
    }

    /// All processes have settled, so that nobody will miss what a connection that breaks now still carries.
    pub(super) fn close(&mut self) {
        self.closing = true;
        let away = self.channels.iter().filter(|(_, c)| c.life.away().is_some());
        let away: Vec<Peer> = away.map(|(peer, _)| *peer).collect();
        away.into_iter().for_each(|peer| self.end(peer, false));
        self.settle();
    }

    /// All channels have nothing left to say.
    pub(super) fn all_closed(&self) -> bool {
        let closed = |c: &Channel| c.life.has_closed(!c.queues.is_empty(), c.is_idle());
        self.channels.values().all(closed)
    }

    pub(super) fn broken_rules(&mut self, peer: Peer, fault: &Fault) {
        let reason = format!(
            "closed the connection to {}: {fault}. The two run different versions of Isthmus, or one has a bug",
            self.places.name(peer)
        );
        self.lose(peer, reason);
    }

    /// The channel is gone and the program must know.
    pub(super) fn lose(&mut self, peer: Peer, reason: String) {
        if self.channel(peer).life.has_ended() {
            return;
        }
        self.end(peer, true);
        last_word::given_up(self, peer);
        self.arrivals.push(Arrival::Lost { peer, reason });
    }

    /// The program does not rely on the peer any more, and knows why.
    pub(super) fn give_up(&mut self, peer: Peer, reason: &str) {
        if !self.channel(peer).life.has_ended() {
            self.link
                .note_connection(format!("gave up {}: {reason}", self.places.name(peer)));
            self.end(peer, true);
            last_word::given_up(self, peer);
        }
    }

    /// Lets go of the connections and of all memory of the user. `lost`: the peer will hear so.
    pub(super) fn end(&mut self, peer: Peer, lost: bool) {
        self.taken.insert(peer);
        self.give_up_dial(peer);
        let channel = self.channel(peer);
        let connections = channel.life.handle_end(lost);
        let kept: usize = channel.out.clear().iter().map(|p| p.payload.frames()).sum();
        let waiting = channel.queues.waiting();
        channel.queues.clear();
        channel.longs.clear();
        channel.copied = 0;
        channel.receiver = Receiver::default();
        if let Some(flow) = channel.flow.take() {
            flow.left(waiting);
            flow.acknowledged(waiting + kept);
        }
        for connection in connections.into_values() {
            self.slots.remove(connection.number);
            self.poller.remove(&connection.secure.socket);
        }
        self.note_traffic(peer);
    }
}
