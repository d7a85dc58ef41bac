// SPDX-License-Identifier: Apache-2.0
//! Wide-area channels: what is common to their life. Moving bytes is in `moving`, connections that come and go in
//! `lanes`.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use isthmus_datatype::raw::WriteMemory;
use isthmus_link::channel::{Lane, Outgoing, Piece};
use isthmus_link::dial::LastSeen;
use isthmus_transport::{Lent, Peer, Rates, Tuning};
use isthmus_wire::hello::Purpose;
use isthmus_wire::segment::{Kind, Segment};
use rustc_hash::FxHashMap;

use super::Reactor;
use super::lane::Connection;
use super::last_word;
use super::probe::Gauge;
use crate::compression::Adaptive;
use crate::config::Reach;
use crate::flow::Flow;
use crate::link::{Arrival, Traffic};
use crate::queues::{Held, Long, Queues};
use crate::receiver::{Fault, Receiver};
use isthmus_link::pipe::{Glimpses, Pipe};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No connection was needed yet.
    Idle,
    Dialling,
    /// It has, or had, connections.
    Open,
    /// Everything was acknowledged and our farewell said; nothing more to send.
    Farewell,
    /// Over: in order, or lost.
    Ended,
}

/// A long message of which something was not acknowledged.
pub(super) struct Unsent {
    pub(super) token: u64,
    pub(super) bytes: u64,
}

/// A channel without connections.
pub(super) struct Away {
    pub(super) since: Duration,
    pub(super) why: String,
    /// The other end, or something on the way, ended the connection; otherwise it had been silent.
    pub(super) closed: bool,
    /// A gateway carried it, and has ended it.
    pub(super) relayed: bool,
}

pub(super) struct Channel {
    pub(super) state: State,
    pub(super) queues: Queues,
    pub(super) out: Outgoing<Held>,
    pub(super) receiver: Receiver,
    pub(super) connections: BTreeMap<Lane, Connection>,
    pub(super) next_lane: Lane,
    /// Connections that are being made beside those.
    pub(super) coming: usize,
    /// Where the main thread counts what it has queued.
    flow: Option<Arc<Flow>>,
    pub(super) longs: FxHashMap<u64, Unsent>,
    /// Bytes that were copied so that the user has its memory back.
    pub(super) copied: usize,
    /// Segments that are sent once: they measure.
    pub(super) loose: Vec<u8>,
    pub(super) gauge: Gauge,
    pub(super) away: Option<Away>,
    /// The peer counts as lost here, and hears so if it calls again.
    pub(super) given_up: bool,
    pub(super) pipe: Pipe,
    /// Fastest rate of late.
    pub(super) fastest: f64,
    /// Before then no connections of kinds that are missing are tried.
    pub(super) kinds_at: Duration,
    /// When a better way is looked for next, and how long to wait after that.
    pub(super) better_at: Option<(Duration, Duration)>,
    /// Bytes per second that traffic may send which leaves queues short.
    pub(super) polite: Option<f64>,
    /// The shortest round trip that was seen since the last look, and when one is seen next.
    pub(super) glimpsed: Glimpses,
    /// When the pipe is looked at again.
    pub(super) look_at: Duration,
    /// Nothing was left to send at some time since then.
    pub(super) ran_dry: bool,
    /// How messages are compressed: of frames and of long messages, by queue.
    pub(super) presses: FxHashMap<(u8, bool), Adaptive>,
    /// Where we reached the peer, or what stands for it, last; `None` if it reached us.
    pub(super) address: Option<SocketAddr>,
    /// Where it called from, if it reached us.
    pub(super) caller: Option<IpAddr>,
    pub(super) traffic: Traffic,
}

impl Channel {
    fn new() -> Self {
        Self {
            state: State::Idle,
            queues: Queues::default(),
            out: Outgoing::default(),
            receiver: Receiver::default(),
            connections: BTreeMap::new(),
            next_lane: 0,
            coming: 0,
            flow: None,
            longs: FxHashMap::default(),
            copied: 0,
            loose: Vec::new(),
            gauge: Gauge::default(),
            away: None,
            given_up: false,
            pipe: Pipe::default(),
            fastest: 0.0,
            kinds_at: Duration::ZERO,
            better_at: None,
            polite: None,
            glimpsed: Glimpses::default(),
            look_at: Duration::ZERO,
            ran_dry: false,
            presses: FxHashMap::default(),
            address: None,
            caller: None,
            traffic: Traffic::default(),
        }
    }

    /// Where the peer was when the connection broke.
    pub(super) fn last_seen(&self) -> LastSeen {
        let closed = self.away.as_ref().is_some_and(|a| a.closed);
        match (self.address, self.caller) {
            (Some(address), _) => LastSeen::Listening(address),
            (None, Some(ip)) if closed => LastSeen::Calling(ip),
            _ => LastSeen::Nowhere,
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
            channel.pipe.know(rates.as_ref().and_then(|rate| rate(peer)));
            channel.pipe.share(sharers);
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
            channel.pipe.know(rates(*peer));
            channel.pace();
        }
        self.rates = Some(rates);
    }

    /// So many channels use each link.
    pub(super) fn share(&mut self, sharers: u32) {
        self.sharers = sharers;
        for channel in self.channels.values_mut() {
            channel.pipe.share(sharers);
            channel.pace();
        }
    }

    pub(super) fn frame(&mut self, flow: Arc<Flow>, queue: u8, bytes: Vec<u8>) {
        let peer = flow.peer;
        let channel = self.channel(peer);
        if channel.state == State::Ended {
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
        if channel.state != State::Ended {
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
        if channel.state != State::Ended {
            channel.receiver.expect(token, memory, length);
        }
    }

    pub(super) fn want_to_send(&mut self, peer: Peer) {
        match self.channel(peer).state {
            State::Open => {
                if !self.busy.contains(&peer) {
                    self.busy.push(peer);
                }
            }
            State::Idle => {
                self.channel(peer).state = State::Dialling;
                self.dial(peer, Reach::Tls, Purpose::First);
            }
            State::Dialling | State::Farewell | State::Ended => {}
        }
    }

    /// Makes a channel that was dialled without anything to send as if it had not been. False: there is something to
    /// send.
    pub(super) fn forget_unused(&mut self, peer: Peer) -> bool {
        let channel = self.channel(peer);
        let unused = channel.state == State::Dialling && channel.queues.is_empty();
        if unused {
            channel.state = State::Idle;
        }
        unused
    }

    /// When closing: says farewell once all is acknowledged.
    pub(super) fn finish(&mut self, peer: Peer) {
        let Some(channel) = self.channels.get_mut(&peer).filter(|_| self.closing) else {
            return;
        };
        if channel.state != State::Open || !channel.is_idle() {
            return;
        }
        channel.state = State::Farewell;
        channel.loose.clear();
        self.note_traffic(peer);
        self.say_farewell(peer);
        self.send(peer);
    }

    /// On every connection on which it was not said.
    pub(super) fn say_farewell(&mut self, peer: Peer) {
        let channel = self.channel(peer);
        for connection in channel.connections.values_mut().filter(|c| c.writing.is_between()) {
            if connection.line.takes_leave() {
                let farewell = Segment::control(Kind::Farewell, 0);
                connection.writing.control(&farewell.encode());
            }
        }
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
        self.channels.values().all(|c| match c.state {
            State::Dialling => c.queues.is_empty(),
            State::Idle | State::Open => c.is_idle(),
            State::Farewell | State::Ended => true,
        })
    }

    /// All processes have settled, so that nobody will miss what a connection that breaks now still carries.
    pub(super) fn close(&mut self) {
        self.closing = true;
        let away = self.channels.iter().filter(|(_, c)| c.away.is_some());
        let away: Vec<Peer> = away.map(|(peer, _)| *peer).collect();
        away.into_iter().for_each(|peer| self.end(peer));
        self.settle();
    }

    /// All channels have nothing left to say.
    pub(super) fn all_closed(&self) -> bool {
        self.channels.values().all(|c| match c.state {
            State::Idle | State::Ended => true,
            State::Dialling => c.queues.is_empty(),
            State::Open => c.is_idle() && c.connections.is_empty(),
            State::Farewell => c
                .connections
                .values()
                .all(|c| c.line.has_taken_leave() && c.is_flushed()),
        })
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
        if self.channel(peer).state == State::Ended {
            return;
        }
        self.end(peer);
        last_word::given_up(self, peer);
        self.arrivals.push(Arrival::Lost { peer, reason });
    }

    /// The program does not rely on the peer any more, and knows why.
    pub(super) fn give_up(&mut self, peer: Peer, reason: &str) {
        if self.channel(peer).state != State::Ended {
            self.link
                .note_connection(format!("gave up {}: {reason}", self.places.name(peer)));
            self.end(peer);
            last_word::given_up(self, peer);
        }
    }

    /// Lets go of the connections and of all memory of the user.
    pub(super) fn end(&mut self, peer: Peer) {
        self.taken.insert(peer);
        self.give_up_dial(peer);
        let channel = self.channel(peer);
        channel.state = State::Ended;
        channel.away = None;
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
        for connection in std::mem::take(&mut channel.connections).into_values() {
            self.slots.remove(connection.number);
            self.poller.remove(&connection.secure.socket);
        }
        self.note_traffic(peer);
    }
}
