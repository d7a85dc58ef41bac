// SPDX-License-Identifier: Apache-2.0
//! Wide-area channels: queues on the one side, a TLS connection on the other.

use std::sync::Arc;
use std::time::Instant;

use isthmus_datatype::raw::WriteMemory;
use isthmus_transport::{Peer, Placement};
use isthmus_wire::frame::{Header, Kind};
use isthmus_wire::hello::Purpose;

use super::probe::Gauge;
use super::{Reactor, Task};
use crate::inbound::{Deliver, Inbound, Violation};
use crate::link::{Arrival, Flow};
use crate::outbox::{Bulk, Outbox};
use crate::secure::{Broken, Secure, Source};
use crate::socket::{self, Interest};
use crate::start::Reach;
use crate::wide::{FRAGMENT, FRAME};

/// Bytes sent on one connection before others get their turn.
const TURN: usize = 1 << 20;
/// Reads from one connection before others get their turn.
const READS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No connection was needed yet.
    Idle,
    Dialling,
    Open,
    /// Our farewell is on its way; nothing more to send.
    Farewell,
    /// Over: in order, or lost.
    Ended,
}

pub(super) struct Channel {
    pub(super) state: State,
    pub(super) outbox: Outbox,
    inbound: Inbound,
    /// Where the main thread counts what it has queued.
    flow: Option<Arc<Flow>>,
    connection: Option<Connection>,
    pub(super) gauge: Gauge,
}

struct Connection {
    secure: Secure,
    number: u64,
    /// What the poller watches for; `None` when it does not.
    watched: Option<Interest>,
    shut: bool,
}

impl Channel {
    fn new() -> Self {
        Self {
            state: State::Idle,
            outbox: Outbox::new(FRAGMENT),
            inbound: Inbound::new(FRAME),
            flow: None,
            connection: None,
            gauge: Gauge::default(),
        }
    }

    /// Whether one more stream is welcome.
    pub(super) fn admits_more(&self) -> bool {
        false
    }

    /// Whether a connection that replaces all others is welcome. `deciding`: this end decides which one is used.
    pub(super) fn admits_resumption(&self, _deciding: bool) -> bool {
        false
    }
}

/// Takes from an outbox; notes what became of it.
struct Feed<'a> {
    outbox: &'a mut Outbox,
    sent: Vec<u64>,
}

impl Source for Feed<'_> {
    fn next(&mut self) -> (&[u8], &[u8]) {
        self.outbox.next()
    }
    fn consume(&mut self, n: usize) {
        self.sent.extend(self.outbox.consume(n));
    }
}

struct ToArrivals<'a> {
    peer: Peer,
    arrivals: &'a mut Vec<Arrival>,
    /// Frames that measure; they are for the thread itself.
    probes: Vec<Header>,
}

impl Deliver for ToArrivals<'_> {
    fn frame(&mut self, header: &Header, payload: &[u8]) {
        self.collected(header, payload.to_vec());
    }
    fn collected(&mut self, header: &Header, payload: Vec<u8>) {
        if header.kind == Kind::Probe {
            return self.probes.push(*header);
        }
        self.arrivals.push(Arrival::Frame {
            peer: self.peer,
            header: *header,
            payload,
        });
    }
    fn place(&mut self, _: &Header) -> Placement {
        // Only the engine knows, and it is not here.
        Placement::Collect
    }
    fn placed(&mut self, _: &Header) {}
    fn received(&mut self, token: u64) {
        self.arrivals.push(Arrival::Received { peer: self.peer, token });
    }
}

impl Reactor {
    pub(super) fn channel(&mut self, peer: Peer) -> &mut Channel {
        self.channels.entry(peer).or_insert_with(Channel::new)
    }

    pub(super) fn frame(&mut self, flow: Arc<Flow>, bytes: Vec<u8>) {
        let peer = flow.peer;
        let channel = self.channel(peer);
        if channel.state == State::Ended {
            flow.release(bytes.len());
            return;
        }
        channel.outbox.push_piece(bytes);
        channel.flow = Some(flow);
        self.want_to_send(peer);
    }

    pub(super) fn bulk(&mut self, peer: Peer, bulk: Bulk) {
        let channel = self.channel(peer);
        if channel.state != State::Ended {
            channel.outbox.push_bulk(bulk);
            self.want_to_send(peer);
        }
    }

    pub(super) fn expect(&mut self, peer: Peer, token: u64, memory: WriteMemory, length: u64) {
        let channel = self.channel(peer);
        if channel.state != State::Ended {
            channel.inbound.expect(token, memory, length);
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

    /// The handshake is done; what was queued meanwhile goes out.
    pub(super) fn open_lane(&mut self, peer: Peer, secure: Secure, early: &[u8], _: Purpose) {
        let number = self.slots.insert(Task::Wide(peer));
        let channel = self.channel(peer);
        channel.state = State::Open;
        channel.connection = Some(Connection {
            secure,
            number,
            watched: None,
            shut: false,
        });
        self.watch(peer);
        self.busy.push(peer);
        let mut to = ToArrivals {
            peer,
            arrivals: &mut self.arrivals,
            probes: Vec::new(),
        };
        let fed = self
            .channels
            .get_mut(&peer)
            .map_or(Ok(()), |c| c.inbound.feed(early, &mut to));
        let probes = to.probes;
        self.measure_new(peer);
        let now = Instant::now();
        probes.iter().for_each(|header| self.probed(peer, header, now));
        if let Err(violation) = fed {
            self.broken_rules(peer, &violation);
        }
        self.deliver();
    }

    pub(super) fn receive(&mut self, peer: Peer) {
        let mut now = None;
        for _ in 0..READS {
            let Some(channel) = self.channels.get_mut(&peer) else {
                return;
            };
            let Some(connection) = &mut channel.connection else {
                return;
            };
            if connection.secure.ended || self.paused {
                break;
            }
            let (inbound, mut to) = (
                &mut channel.inbound,
                ToArrivals {
                    peer,
                    arrivals: &mut self.arrivals,
                    probes: Vec::new(),
                },
            );
            let mut violation = None;
            let before = inbound.in_long_frame();
            let read = connection.secure.read(&mut self.scratch, &mut |bytes| {
                if violation.is_none() {
                    violation = inbound.feed(bytes, &mut to).err();
                }
            });
            if let Some(violation) = violation {
                return self.broken_rules(peer, &violation);
            }
            let (probes, inside) = (to.probes, (before, inbound.in_long_frame()));
            match read {
                Ok(0) => break,
                Ok(n) => self.metered(peer, n, inside, &probes, *now.insert(Instant::now())),
                Err(e) => return self.broken(peer, &e),
            }
            self.deliver();
        }
        if let Some(now) = now {
            self.measure_used(peer, now);
        }
        self.received_end(peer);
        self.watch(peer);
    }

    /// So many encrypted bytes were read, and these frames that measure were in them.
    fn metered(&mut self, peer: Peer, bytes: usize, (before, after): (bool, bool), probes: &[Header], now: Instant) {
        if self.channel(peer).gauge.meter.read(now, bytes as u64, before, after) {
            self.publish(peer);
        }
        probes.iter().for_each(|header| self.probed(peer, header, now));
    }

    /// Deals with the end of the peer's stream.
    fn received_end(&mut self, peer: Peer) {
        let Some(channel) = self.channels.get(&peer) else {
            return;
        };
        if !channel.connection.as_ref().is_some_and(|c| c.secure.ended) {
            return;
        }
        let orderly = channel.inbound.farewell || channel.state == State::Farewell;
        if !orderly {
            let reason = format!(
                "lost the connection to {}: it was closed without a farewell. The process was probably killed, or its machine stopped",
                self.places.name(peer)
            );
            self.lose(peer, reason);
        }
    }

    /// Sends what can be sent, for one turn.
    pub(super) fn send(&mut self, peer: Peer) {
        let mut turn = TURN;
        loop {
            let Some(channel) = self.channels.get_mut(&peer) else {
                return;
            };
            let Some(connection) = &mut channel.connection else {
                return;
            };
            match connection.secure.flush() {
                Ok(true) => {}
                Ok(false) => break,
                Err(e) => return self.broken(peer, &e),
            }
            if channel.outbox.is_empty() {
                match channel.gauge.next_piece() {
                    Some(piece) => channel.outbox.push_own(&piece),
                    None => break,
                }
            }
            if turn == 0 {
                self.busy.push(peer);
                break;
            }
            let before = channel.outbox.waiting();
            let mut feed = Feed {
                outbox: &mut channel.outbox,
                sent: Vec::new(),
            };
            let written = connection.secure.write(&mut self.scratch, &mut feed);
            let sent = feed.sent;
            let gone = before - channel.outbox.waiting();
            if let Some(flow) = channel
                .flow
                .as_ref()
                .filter(|_| gone > 0 && channel.state != State::Farewell)
            {
                if flow.release(gone) {
                    self.arrivals.push(Arrival::Writable { peer });
                }
            }
            self.arrivals
                .extend(sent.into_iter().map(|token| Arrival::Sent { peer, token }));
            match written {
                Ok(n) => turn = turn.saturating_sub(n),
                Err(e) => return self.broken(peer, &e),
            }
        }
        self.finish(peer);
        self.watch(peer);
    }

    /// One more stream that we dialled came to nothing.
    pub(super) fn one_more_failed(&mut self, _: Peer) {}

    /// Dialling has come to nothing for this time. True: the channel waits on and dials again.
    pub(super) fn still_away(&mut self, _: Peer, _reason: &str) -> bool {
        false
    }

    /// Makes a channel that was dialled without anything to send as if it had not been. False: there is something to send.
    pub(super) fn forget_unused(&mut self, peer: Peer) -> bool {
        let channel = self.channel(peer);
        let unused = channel.state == State::Dialling && channel.outbox.is_empty();
        if unused {
            channel.state = State::Idle;
        }
        unused
    }

    /// When closing: says farewell once all is sent, and ends our direction once that is sent.
    fn finish(&mut self, peer: Peer) {
        let Some(channel) = self.channels.get_mut(&peer).filter(|_| self.closing) else {
            return;
        };
        let Some(connection) = &mut channel.connection else {
            return;
        };
        if channel.state == State::Open && channel.outbox.is_empty() {
            channel.state = State::Farewell;
            channel.outbox.push_farewell();
            let mut feed = Feed {
                outbox: &mut channel.outbox,
                sent: Vec::new(),
            };
            let said = connection
                .secure
                .write(&mut self.scratch, &mut feed)
                .and_then(|_| connection.secure.close_notify());
            if let Err(e) = said.and_then(|()| connection.secure.flush().map(|_| ())) {
                return self.broken(peer, &e);
            }
        }
        if channel.state == State::Farewell && !connection.secure.full() && !connection.shut {
            connection.shut = true;
            socket::shut(&connection.secure.socket);
        }
    }

    pub(super) fn close(&mut self) {
        self.closing = true;
        let peers: Vec<Peer> = self.channels.keys().copied().collect();
        for peer in peers {
            self.channel(peer).gauge.stop();
            self.send(peer);
        }
        self.deliver();
    }

    /// All channels have nothing left to say.
    pub(super) fn all_closed(&self) -> bool {
        self.channels.values().all(|c| match (c.state, &c.connection) {
            (State::Idle | State::Ended, _) => true,
            (State::Dialling, _) => c.outbox.is_empty(),
            (State::Farewell, Some(connection)) => connection.shut,
            (State::Open | State::Farewell, _) => false,
        })
    }

    /// Watches for what matters now. A connection that is neither read nor written is not watched at all, for
    /// a hang-up would be reported for ever.
    fn watch(&mut self, peer: Peer) {
        let Some(connection) = self.channels.get_mut(&peer).and_then(|c| c.connection.as_mut()) else {
            return;
        };
        let secure = &connection.secure;
        let interest = Interest {
            read: !self.paused && !secure.ended,
            write: secure.full(),
        };
        let wanted = (interest.read || interest.write).then_some(interest);
        if wanted == connection.watched {
            return;
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

    pub(super) fn watch_all(&mut self) {
        let peers: Vec<Peer> = self.channels.keys().copied().collect();
        for peer in peers {
            self.watch(peer);
        }
    }

    fn broken(&mut self, peer: Peer, error: &Broken) {
        let orderly = self.channels.get(&peer).is_some_and(|c| c.state == State::Farewell);
        if orderly {
            // The peer went first, having heard all there was to hear.
            self.end(peer);
            return;
        }
        let reason = format!("lost the connection to {}: {error}", self.places.name(peer));
        self.lose(peer, reason);
    }

    fn broken_rules(&mut self, peer: Peer, violation: &Violation) {
        let reason = format!(
            "closed the connection to {}: {violation}. The two run different versions of Isthmus, or one has a bug",
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
        self.arrivals.push(Arrival::Lost { peer, reason });
    }

    /// Lets go of the connection and of all memory of the user.
    fn end(&mut self, peer: Peer) {
        let channel = self.channel(peer);
        channel.state = State::Ended;
        let waiting = channel.outbox.waiting();
        channel.outbox.clear();
        channel.inbound = Inbound::new(FRAME);
        if let Some(flow) = channel.flow.take() {
            flow.release(waiting);
        }
        let connection = channel.connection.take();
        if let Some(connection) = connection {
            self.slots.remove(connection.number);
            self.poller.remove(&connection.secure.socket);
        }
    }
}
