// SPDX-License-Identifier: Apache-2.0
//! The transport inside a site: plain TCP, moved by whichever thread waits in an MPI call.

mod channel;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_transport::{Lent, Limits, Peer, SendError, Sink, Transport};
use isthmus_wire::frame::{HEADER_BYTES, Header};
use rustc_hash::FxHashMap;
use rustix::io::Errno;

use self::channel::{Channel, FRAME, Read, State};
use crate::driver::Handle;
use crate::inbound::Inbound;
use crate::link::{Command, Early, PlainEvent, TookEarly};
use crate::outbox::{self, Bulk};
use crate::pacing;
use crate::pages::Fill;
use crate::places::Places;
use crate::socket::{self, Interest, Poller, Ready};

/// Messages up to here go at once: about what a local network carries in the time of a rendezvous.
const EAGER: usize = 64 << 10;
/// Bytes of frames that may wait for one peer.
const QUEUE: usize = 1 << 20;
/// Longest payload that is copied to leave together with other frames: a copy of it takes less than a system call.
const GATHERED: usize = 8 << 10;
/// So many bytes that were gathered leave at once.
const ENOUGH: usize = 64 << 10;
/// Room for one read.
const SCRATCH: usize = 128 << 10;
/// With up to so many connections each is simply read; with more the poller says which.
const FEW: usize = 2;
/// Nor are they simply read after so many bytes came at once: a reader locks the socket, and while packets arrive, one
/// after the other, those who bring them wait for the lock. Below, a call that finds the bytes and takes them is less
/// than two.
const SEVERAL_PACKETS: usize = 2048;
/// Number of the bell in the poller; others are indices of channels.
const BELL: u64 = u64::MAX;

/// Plain TCP inside a site (`tcp`).
#[derive(Debug)]
pub struct TcpTransport {
    thread: Arc<Handle>,
    places: Arc<Places>,
    poller: Poller,
    channels: Vec<Channel>,
    index: FxHashMap<Peer, usize>,
    /// Channels with a connection.
    open: Vec<usize>,
    /// Of the pages of the thread that sends, whatever the connection.
    fill: Fill,
    scratch: Vec<u8>,
    /// Found out while there was no sink to tell it to.
    untold: Vec<Event>,
    ready: Vec<Ready>,
    closing: bool,
}

#[derive(Debug)]
enum Event {
    Sent {
        peer: Peer,
        token: u64,
    },
    Writable {
        peer: Peer,
    },
    /// The connection of this channel failed while sending; what has arrived is still to be read.
    Broken {
        channel: usize,
        reason: String,
    },
}

impl TcpTransport {
    pub(crate) fn new(thread: Arc<Handle>, places: Arc<Places>) -> Result<Self, Errno> {
        let poller = Poller::new()?;
        poller.add(&thread.link.plain_bell, BELL, Interest::READ)?;
        Ok(Self {
            thread,
            places,
            poller,
            channels: Vec::new(),
            index: FxHashMap::default(),
            open: Vec::new(),
            fill: Fill::default(),
            scratch: vec![0; SCRATCH],
            untold: Vec::new(),
            ready: Vec::new(),
            closing: false,
        })
    }

    /// For people: every connection made so far, of both transports, with address and congestion control.
    pub fn connections(&self) -> Vec<String> {
        self.thread.link.connections()
    }

    fn at(&mut self, peer: Peer) -> usize {
        *self.index.entry(peer).or_insert_with(|| {
            self.channels.push(Channel::new(peer));
            self.channels.len() - 1
        })
    }

    /// A channel that takes frames; dials when it has no connection yet.
    fn usable(&mut self, peer: Peer) -> Result<usize, SendError> {
        let at = self.at(peer);
        match &self.channels[at].state {
            State::Open(_) | State::Dialling(_) if !self.closing => {}
            State::Idle if !self.closing => {
                let early = Arc::new(Early::default());
                self.channels[at].state = State::Dialling(early.clone());
                self.thread.link.command(Command::Dial { peer, early });
            }
            State::Lost(reason) => return Err(SendError::Lost(reason.clone())),
            _ => {
                return Err(SendError::Lost(format!(
                    "{} or this process has ended its communication (MPI_Finalize)",
                    self.places.name(peer)
                )));
            }
        }
        Ok(at)
    }

    /// Pushes out what waits. Failures are kept for the next poll, which first reads what the peer still said.
    fn flush(&mut self, at: usize) -> Result<(), SendError> {
        let channel = &mut self.channels[at];
        let (mut sent, peer) = (Vec::new(), channel.peer);
        let result = channel.flush(&mut self.fill, self.open.len() == 1, &mut sent);
        self.untold
            .extend(sent.into_iter().map(|token| Event::Sent { peer, token }));
        if let Err(e) = result {
            return Err(self.broken(at, e));
        }
        let channel = &mut self.channels[at];
        if channel.refused && channel.outbox.waiting() <= QUEUE / 2 {
            channel.refused = false;
            self.untold.push(Event::Writable { peer });
        }
        let write = !channel.outbox.is_empty();
        if write != channel.watching_write {
            if let State::Open(socket) = &channel.state {
                let _ = self.poller.change(socket, at as u64, Interest { read: true, write });
                channel.watching_write = write;
            }
        }
        Ok(())
    }

    fn broken(&mut self, at: usize, error: Errno) -> SendError {
        let reason = format!(
            "lost the connection to {}: {}",
            self.places.name(self.channels[at].peer),
            std::io::Error::from(error)
        );
        self.channels[at].outbox.clear();
        self.untold.push(Event::Broken {
            channel: at,
            reason: reason.clone(),
        });
        SendError::Lost(reason)
    }

    /// Sends a frame at once if nothing is before it.
    fn send_now(&mut self, at: usize, header: &[u8; HEADER_BYTES], payload: &[u8]) -> Result<(), SendError> {
        let gathered = self.channels[at].gathers && payload.len() <= GATHERED;
        if !gathered && self.channels[at].has_gathered() {
            // A long payload is not copied to leave behind others.
            self.flush(at)?;
        }
        let channel = &mut self.channels[at];
        let mut gone = 0;
        if let State::Dialling(early) = &channel.state {
            match early.push(header, payload, QUEUE) {
                TookEarly::Yes => return Ok(()),
                TookEarly::NoRoom => {
                    channel.refused = true;
                    return Err(SendError::WouldBlock);
                }
                TookEarly::Handed => {}
            }
        }
        if let State::Open(socket) = &channel.state {
            if channel.outbox.is_empty() && !gathered {
                match socket::send(socket, header, payload) {
                    Ok(n) => gone = n.unwrap_or(0),
                    Err(e) => return Err(self.broken(at, e)),
                }
                self.fill.sent(gone);
                if gone == HEADER_BYTES + payload.len() {
                    return Ok(());
                }
            }
        }
        if gone == 0 && channel.outbox.waiting() > 0 && channel.outbox.waiting() + payload.len() > QUEUE {
            channel.refused = true;
            return Err(SendError::WouldBlock);
        }
        channel.outbox.push(header, payload, gone);
        if gathered && channel.outbox.waiting() < ENOUGH {
            return Ok(());
        }
        if gone > 0 || !channel.watching_write {
            return self.flush(at);
        }
        Ok(())
    }

    fn plain_events(&mut self, sink: &mut dyn Sink) -> bool {
        if !self.thread.link.plain_waiting.load(Ordering::Acquire) {
            return false;
        }
        for event in self.thread.link.take_plain() {
            match event {
                PlainEvent::Connected { peer, socket } => self.connected(peer, socket),
                PlainEvent::Failed { peer, reason } => {
                    let at = self.at(peer);
                    self.lose(at, reason, sink);
                }
            }
        }
        true
    }

    fn connected(&mut self, peer: Peer, socket: OwnedFd) {
        let at = self.at(peer);
        let early = match &self.channels[at].state {
            State::Idle => Vec::new(),
            State::Dialling(early) => early.hand_over(),
            State::Open(_) | State::Ended | State::Lost(_) => return,
        };
        self.channels[at].outbox.push_first(early);
        // Inside a site most are.
        pacing::spare_the_near(&socket);
        // Without the poller the connection still works while it is one of a few, and says so when it fails.
        let _ = self.poller.add(&socket, at as u64, Interest::READ);
        self.channels[at].state = State::Open(socket);
        self.open.push(at);
        // A failure is told at the next poll.
        let _ = self.flush(at);
    }

    /// Takes the connection away. What the state is from now on, is the caller's.
    fn detach(&mut self, at: usize, state: State) {
        let channel = &mut self.channels[at];
        if let State::Open(socket) = &channel.state {
            self.poller.remove(socket);
        }
        channel.state = state;
        channel.outbox.clear();
        channel.inbound = Inbound::new(FRAME);
        self.open.retain(|o| *o != at);
    }

    fn lose(&mut self, at: usize, reason: String, sink: &mut dyn Sink) {
        if matches!(self.channels[at].state, State::Lost(_) | State::Ended) {
            return;
        }
        let peer = self.channels[at].peer;
        if self.closing && self.channels[at].farewell_said {
            return self.detach(at, State::Ended);
        }
        self.detach(at, State::Lost(reason.clone()));
        sink.lost(peer, &reason);
    }

    fn tell(&mut self, sink: &mut dyn Sink) -> bool {
        let any = !self.untold.is_empty();
        for event in std::mem::take(&mut self.untold) {
            match event {
                Event::Sent { peer, token } => sink.sent(peer, token),
                Event::Writable { peer } => sink.writable(peer),
                Event::Broken { channel, reason } => {
                    while matches!(self.channels[channel].read(&mut self.scratch, sink), Read::Something) {}
                    self.lose(channel, reason, sink);
                }
            }
        }
        any
    }

    fn receive(&mut self, at: usize, sink: &mut dyn Sink) -> bool {
        let outcome = self.channels[at].read(&mut self.scratch, sink);
        let name = |this: &Self| this.places.name(this.channels[at].peer);
        match outcome {
            Read::Nothing => return false,
            Read::Something => {}
            Read::End if self.closing => self.detach(at, State::Ended),
            Read::End if self.channels[at].inbound.farewell => {
                let peer = self.channels[at].peer;
                self.detach(at, State::Ended);
                sink.ended(peer);
            }
            Read::End => {
                let reason = format!(
                    "lost the connection to {}: it was closed without a farewell. The process was probably killed, or its machine stopped",
                    name(self)
                );
                self.lose(at, reason, sink);
            }
            Read::Failed(why) => {
                let reason = format!("lost the connection to {}: {why}", name(self));
                self.lose(at, reason, sink);
            }
        }
        true
    }

    /// Writes on after a time of no room.
    fn write_on(&mut self, at: usize) -> bool {
        if self.channels[at].outbox.is_empty() && !self.channels[at].refused {
            return false;
        }
        let _ = self.flush(at);
        true
    }

    fn poll_few(&mut self, sink: &mut dyn Sink) -> bool {
        let mut any = false;
        let mut i = 0;
        while let Some(at) = self.open.get(i).copied() {
            any |= self.receive(at, sink);
            // Receiving may have ended it, and moved the next one here.
            if self.open.get(i) == Some(&at) {
                let before = self.channels[at].outbox.waiting();
                self.write_on(at);
                any |= self.channels[at].outbox.waiting() != before;
                i += 1;
            }
        }
        any
    }

    fn poll_many(&mut self, sink: &mut dyn Sink) -> bool {
        let mut ready = std::mem::take(&mut self.ready);
        self.poller.wait(&mut ready, Some(std::time::Duration::ZERO));
        let mut any = false;
        for event in ready.iter().filter(|e| e.number != BELL) {
            let at = event.number as usize;
            if event.read {
                any |= self.receive(at, sink);
            }
            if event.write {
                any |= self.write_on(at);
            }
        }
        self.ready = ready;
        any
    }

    /// Says farewell where all is sent. True when nothing is left to send.
    fn close_channel(&mut self, at: usize) -> bool {
        let channel = &mut self.channels[at];
        match &channel.state {
            State::Idle | State::Ended | State::Lost(_) => return true,
            State::Dialling(early) => return channel.outbox.is_empty() && early.is_empty(),
            State::Open(_) => {}
        }
        if channel.outbox.is_empty() && !channel.farewell_said {
            channel.farewell_said = true;
            channel.outbox.push_farewell();
        }
        if self.flush(at).is_err() {
            return true;
        }
        let channel = &mut self.channels[at];
        let done = channel.outbox.is_empty() && channel.farewell_said;
        if let (true, State::Open(socket)) = (done, &channel.state) {
            socket::shut(socket);
        }
        done
    }
}

impl Transport for TcpTransport {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn limits(&self, _: Peer) -> Limits {
        Limits {
            frame: FRAME,
            eager: EAGER,
            pull: false,
            bulk: true,
            far: false,
        }
    }

    fn send(&mut self, peer: Peer, header: &Header, payload: &[u8]) -> Result<(), SendError> {
        outbox::check(peer, header, payload);
        let at = self.usable(peer)?;
        self.send_now(at, &header.encode(), payload)
    }

    fn gather(&mut self, peer: Peer) {
        let at = self.at(peer);
        self.channels[at].gathers = true;
    }

    fn send_gathered(&mut self, peer: Peer) {
        let at = self.at(peer);
        let leaves = self.channels[at].has_gathered();
        self.channels[at].gathers = false;
        if leaves {
            // A failure is told at the next poll.
            let _ = self.flush(at);
        }
    }

    fn send_bulk(
        &mut self,
        peer: Peer,
        token: u64,
        memory: Lent<ReadMemory>,
        length: u64,
        _: u32,
        sent_token: u64,
    ) -> Result<(), SendError> {
        let at = self.usable(peer)?;
        self.channels[at]
            .outbox
            .push_bulk(Bulk::new(token, memory, length, sent_token));
        self.flush(at)
    }

    fn expect(&mut self, peer: Peer, token: u64, memory: Lent<WriteMemory>, length: u64) -> bool {
        let at = self.at(peer);
        self.channels[at].inbound.expect(token, memory, length);
        true
    }

    fn poll(&mut self, sink: &mut dyn Sink) -> bool {
        let mut any = self.plain_events(sink);
        any |= if self.open.len() <= FEW && self.open.iter().all(|at| self.channels[*at].came < SEVERAL_PACKETS) {
            self.poll_few(sink)
        } else {
            self.poll_many(sink)
        };
        any | self.tell(sink)
    }

    fn lose(&mut self, peer: Peer, reason: &str) {
        let at = self.at(peer);
        if !matches!(self.channels[at].state, State::Lost(_) | State::Ended) {
            self.detach(at, State::Lost(reason.into()));
        }
    }

    fn arm(&mut self) -> bool {
        // Everything else shows at the poller's descriptor by itself.
        self.untold.is_empty() && !self.thread.link.plain_waiting.load(Ordering::Acquire)
    }

    fn disarm(&mut self) {}

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.poller.as_fd())
    }

    fn is_flushed(&self) -> bool {
        let flushed = |channel: &Channel| match &channel.state {
            State::Idle | State::Ended | State::Lost(_) => true,
            State::Dialling(early) => channel.outbox.is_empty() && early.is_empty(),
            State::Open(_) => channel.outbox.is_empty(),
        };
        self.channels.iter().all(flushed)
    }

    fn close(&mut self, sink: &mut dyn Sink) -> bool {
        self.poll(sink);
        self.closing = true;
        let mut done = true;
        for at in 0..self.channels.len() {
            done &= self.close_channel(at);
        }
        self.tell(sink);
        done
    }
}
