// SPDX-License-Identifier: Apache-2.0
//! Sending: first frames, answers to the receiver, queues per peer.

use isthmus_protocol::choice::{Facts, first_frame};
use isthmus_transport::{Lease, Limits, Peer, SendError, Transport};
use isthmus_wire::frame::{Header, Kind, SYNCHRONOUS};

use crate::base::buffer::SendForm;
use crate::base::requests::{AnnouncedStage, NONE, SendStage, SendTask, Task};
use crate::base::state::{CHUNK, Outgoing, Work};
use crate::p2p::long::{ALONE, BESIDE};
use crate::{Channel, Engine, EngineError, Knob, Mode, Operation, Request, SendBuffer, Sent};

/// What happened to a message that is sent piece by piece.
enum Fragment {
    /// A piece left, more are to come.
    Sent,
    /// The last piece left.
    Last,
    /// Nothing is ready to leave.
    NotReady,
}

/// What happened to a first frame.
enum First {
    /// It left; nothing more is to be done for the message.
    Done,
    /// It left; an answer will come.
    Waiting,
    /// It did not leave.
    Blocked,
    Lost,
}

/// Who sends what to whom: the arguments of a send.
pub(crate) struct Outbound {
    pub(crate) peer: Peer,
    /// Complete but for kind and token.
    pub(crate) header: Header,
    pub(crate) mode: Mode,
    pub(crate) buffer: SendBuffer,
    /// A thread waits until the message has left.
    pub(crate) waits: bool,
}

impl Engine {
    /// Sends if that is possible at once: `Ok(None)` means that the message has left or is kept, and the buffer may be reused.
    /// `Ok(Some(request))`: it takes longer; wait for the request. Saves the request for most short messages.
    pub fn send(
        &mut self,
        channel: &Channel,
        to: u32,
        tag: i32,
        mode: Mode,
        buffer: SendBuffer,
    ) -> Result<Option<Request>, EngineError> {
        let mut outbound = outbound(channel, to, tag, mode, buffer);
        // A buffered one is complete at once.
        outbound.waits = mode != Mode::Buffered;
        let peer = outbound.peer;
        self.count(Operation::POINT_TO_POINT, peer, outbound.buffer.length());
        if channel.native != 0 {
            let sent = self.send_natively(channel, to, outbound)?;
            return Ok(sent.map(|index| self.state.requests.name(index)));
        }
        if self.try_send(&mut outbound) {
            return Ok(None);
        }
        if self.state.peers[peer as usize].lost {
            return Err(self.state.lost_error(peer));
        }
        let index = self.start_send(outbound);
        self.work();
        Ok(Some(self.state.requests.name(index)))
    }

    /// Sends a message that lies in one piece, if nothing stands in its way: what nearly all short messages take. False: nothing
    /// was done; [`Engine::send`] knows all other cases. Only where all processes represent data alike.
    #[inline]
    pub fn send_at_once(&mut self, channel: &Channel, to: u32, tag: i32, data: &[u8]) -> bool {
        self.send_with_token(channel, to, tag, data, 0)
    }

    /// The same for a send that can be cancelled afterwards.
    #[inline]
    pub fn isend_at_once(&mut self, channel: &Channel, to: u32, tag: i32, data: &[u8]) -> Option<Sent> {
        let token = self.state.sent.next();
        let sent = self.send_with_token(channel, to, tag, data, token);
        sent.then(|| Sent {
            peer: channel.members.peer(to),
            context: channel.context,
            token,
        })
    }

    #[inline]
    fn send_with_token(&mut self, channel: &Channel, to: u32, tag: i32, data: &[u8], token: u64) -> bool {
        let length = data.len() as u64;
        let header = Header::new(Kind::Eager, channel.context, channel.rank, tag, length, token);
        let peer = channel.members.peer(to);
        let sent = self.may_be_eager(peer, length) && self.push(peer, &header, data);
        if sent {
            self.count(Operation::POINT_TO_POINT, peer, length);
        }
        sent
    }

    /// Starts a send. Failures are found in the completion.
    pub fn isend(&mut self, channel: &Channel, to: u32, tag: i32, mode: Mode, buffer: SendBuffer) -> Request {
        let outbound = outbound(channel, to, tag, mode, buffer);
        self.count(Operation::POINT_TO_POINT, outbound.peer, outbound.buffer.length());
        if channel.native != 0 {
            return self.isend_natively(channel, to, outbound);
        }
        let index = self.start_or_send(outbound);
        self.work();
        self.state.requests.name(index)
    }

    #[inline]
    pub(crate) fn count(&mut self, operation: Operation, peer: Peer, bytes: u64) {
        let level = self.state.peers[peer as usize].level;
        self.state.table.sent(operation, level, bytes);
    }

    /// A request for the send, complete if that was possible at once.
    pub(crate) fn start_or_send(&mut self, mut outbound: Outbound) -> u32 {
        let peer = outbound.peer;
        let index = self.state.requests.insert(Task::Nothing);
        // So that the message can be asked back.
        outbound.header.token = self.state.requests.token(index);
        if self.try_send(&mut outbound) {
            self.state.requests.left(index, peer, outbound.header.context);
            self.state.finish(index);
        } else if self.state.peers[peer as usize].lost {
            let error = self.state.lost_error(peer);
            self.state.fail(index, error);
        } else {
            self.begin_send(index, outbound);
        }
        index
    }

    /// May a message leave unasked and at once, as far as the engine knows?
    #[inline]
    fn may_be_eager(&self, peer: Peer, length: u64) -> bool {
        let peer = &self.state.peers[peer as usize];
        length < peer.unasked
            && length <= self.state.tuning.get(Knob::Eager)
            && !peer.queued
            && !peer.lost
            && peer.account.allows_eager(length)
    }

    /// Gives a whole message to the peer's transport.
    #[inline]
    fn push(&mut self, to: Peer, header: &Header, data: &[u8]) -> bool {
        let peer = &mut self.state.peers[to as usize];
        match self.transports[peer.route as usize].send(to, header, data) {
            Ok(()) => {
                peer.account.sent(header.length);
                self.state.trace_sent(to, header);
                true
            }
            Err(error) => {
                self.not_taken(to, error);
                false
            }
        }
    }

    /// Sends a message that can leave at once and completely.
    pub(crate) fn try_send(&mut self, outbound: &mut Outbound) -> bool {
        let (peer, length) = (outbound.peer, outbound.header.length);
        if peer == self.state.me {
            return self.send_to_self(outbound);
        }
        if outbound.mode == Mode::Synchronous || !self.may_be_eager(peer, length) {
            return false;
        }
        if let SendForm::Contiguous(memory) = &outbound.buffer.form {
            return self.push(peer, &outbound.header, memory.slice(0, length as usize));
        }
        let transport = &mut self.transports[self.state.peers[peer as usize].route as usize];
        let (header, scratch) = (&outbound.header, &mut self.state.chunk);
        match send_piece(&mut **transport, peer, header, &mut outbound.buffer, 0, scratch) {
            Ok(()) => {
                self.state.peers[peer as usize].account.sent(length);
                self.state.trace_sent(peer, &outbound.header);
                true
            }
            Err(error) => {
                self.not_taken(peer, error);
                false
            }
        }
    }

    /// A transport refused a frame.
    #[cold]
    fn not_taken(&mut self, peer: Peer, error: SendError) {
        match error {
            SendError::WouldBlock => self.state.peers[peer as usize].queued = true,
            SendError::Lost(reason) => self.lose(peer, reason.into()),
        }
    }

    /// A request for a message that cannot leave at once.
    pub(crate) fn start_send(&mut self, outbound: Outbound) -> u32 {
        let index = self.state.requests.insert(Task::Nothing);
        self.begin_send(index, outbound);
        index
    }

    /// The same for a request that is there already.
    pub(crate) fn begin_send(&mut self, index: u32, outbound: Outbound) {
        let Outbound {
            peer,
            header,
            mode,
            buffer,
            waits,
        } = outbound;
        let buffered = mode == Mode::Buffered;
        let buffer = if buffered { buffer.into_owned() } else { buffer };
        let task = SendTask {
            lease: None,
            peer,
            header,
            synchronous: mode == Mode::Synchronous,
            buffered,
            recalled: false,
            waits,
            parts: None,
            stage: SendStage::Queued,
            offered: false,
            buffer,
            announced: AnnouncedStage::Never,
            receiver: 0,
            wanted: 0,
            bulk: false,
            packed: None,
            sent: 0,
        };
        self.begin(index, task);
        if buffered && !self.state.requests.slot(index).done {
            self.state.requests.slot_mut(index).done = true;
            self.state.events += 1;
        }
    }

    /// The message of this request takes its way.
    pub(crate) fn begin(&mut self, index: u32, task: SendTask) {
        let peer = task.peer;
        self.state.requests.set_send(index, task);
        self.offer(peer, index);
    }

    /// The message is offered to its receiver.
    pub(crate) fn offer(&mut self, peer: Peer, index: u32) {
        if peer == self.state.me {
            self.offer_to_self(index);
        } else {
            self.enqueue(peer, index);
        }
    }

    /// The message takes its place among those to the peer, and leaves if it is the first.
    fn enqueue(&mut self, peer: Peer, index: u32) {
        let queue = self.state.outgoing.get(&peer);
        if queue.is_some_and(|o| o.held > 0 || !o.messages.is_empty()) {
            self.queue(peer).messages.push_back(index);
            return;
        }
        match self.first_frame(index) {
            First::Done => {
                self.state.finish(index);
                self.unblocked(peer);
            }
            First::Waiting => self.unblocked(peer),
            First::Blocked => self.queue(peer).messages.push_back(index),
            First::Lost => {
                let error = self.state.lost_error(peer);
                if matches!(self.state.requests.slot(index).task, Task::Send(_)) {
                    self.state.fail(index, error);
                }
            }
        }
    }

    /// A frame was taken: the peer is blocked no longer than something waits for it.
    fn unblocked(&mut self, peer: Peer) {
        self.state.peers[peer as usize].queued = self.state.outgoing.contains_key(&peer);
    }

    pub(crate) fn queue(&mut self, peer: Peer) -> &mut Outgoing {
        self.state.peers[peer as usize].queued = true;
        self.state.outgoing.entry(peer).or_default()
    }

    /// Tries to send the first frame of a message.
    fn first_frame(&mut self, index: u32) -> First {
        let eager = self.state.tuning.get(Knob::Eager);
        let token = self.state.requests.token(index);
        let Some(task) = self.state.requests.send(index) else {
            return First::Done;
        };
        let peer_of = task.peer;
        let peer = &mut self.state.peers[peer_of as usize];
        let transport = &mut self.transports[peer.route as usize];
        let limits = transport.limits(peer_of);
        let length = task.header.length;
        let chosen = match task.parts {
            // Data leave when they are ready, whatever their length.
            Some(_) => peer.account.allows_request().then_some(Kind::Rts),
            None => first_frame(facts(task, &limits, eager), &peer.account),
        };
        let Some(mut kind) = chosen else { return First::Blocked };
        // What can be copied out of this process's memory need not be called in.
        if kind == Kind::Announce && limits.pull && task.buffer.memory().is_some() {
            kind = Kind::Rts;
        }
        let mut header = task.header;
        header.kind = kind;
        header.token = token;
        let sent = if kind == Kind::Rts {
            let may_pull = limits.pull && task.parts.is_none();
            let mut handle = match task.buffer.memory().filter(|_| may_pull) {
                Some(memory) => transport.handle(task.peer, memory, length),
                None => Vec::new(),
            };
            if !handle.is_empty() {
                let beside = task.waits && transport.streams();
                handle.push(if beside { BESIDE } else { ALONE });
            }
            header.flags = handle.len() as u8;
            let sent = transport.send(task.peer, &header, &handle);
            if sent.is_ok() && !handle.is_empty() {
                task.offered = true;
                peer.offered += 1;
            }
            sent
        } else if kind == Kind::Announce {
            header.flags = if task.synchronous { SYNCHRONOUS } else { 0 };
            let sent = transport.send(task.peer, &header, &[]);
            if sent.is_ok() {
                task.announced = AnnouncedStage::Announced;
            }
            sent
        } else {
            let scratch = &mut self.state.chunk;
            send_piece(&mut **transport, task.peer, &header, &mut task.buffer, 0, scratch)
        };
        match sent {
            Ok(()) => {
                peer.account.sent(if matches!(kind, Kind::Rts | Kind::Announce) {
                    0
                } else {
                    length
                });
                task.stage = SendStage::Waiting;
                self.state.trace_sent(peer_of, &header);
                if kind == Kind::Eager {
                    self.state.requests.left(index, peer_of, header.context);
                    First::Done
                } else {
                    First::Waiting
                }
            }
            Err(SendError::WouldBlock) => First::Blocked,
            Err(SendError::Lost(reason)) => {
                self.lose(peer_of, reason.into());
                First::Lost
            }
        }
    }

    /// Sends a frame without data.
    pub(crate) fn control(&mut self, peer: Peer, header: Header) {
        let state = self.state.peers[peer as usize];
        if state.lost {
            return;
        }
        let waiting = self.state.outgoing.get(&peer).is_some_and(|o| !o.controls.is_empty());
        if waiting {
            self.queue(peer).controls.push_back(header);
            return;
        }
        match self.transports[state.route as usize].send(peer, &header, &[]) {
            Ok(()) => {}
            Err(SendError::WouldBlock) => self.queue(peer).controls.push_back(header),
            Err(SendError::Lost(reason)) => self.lose(peer, reason.into()),
        }
    }

    /// The receiver wants the data of this send.
    pub(crate) fn start_data(&mut self, index: u32) {
        let token = self.state.requests.token(index);
        let Some(task) = self.state.requests.send(index) else {
            return;
        };
        let peer = task.peer;
        let transport = &mut self.transports[self.state.peers[peer as usize].route as usize];
        task.stage = SendStage::Streaming;
        if let Some(parts) = &mut task.parts {
            parts.cleared = true;
            return self.go_on(index);
        }
        if task.bulk && transport.limits(peer).bulk {
            let context = task.header.context;
            let lease = Lease::new(task.in_one_piece());
            match transport.send_bulk(peer, task.receiver, lease.lent(), task.wanted, context, token) {
                Ok(()) => {
                    task.lease = Some(lease);
                    task.stage = SendStage::Bulk;
                    return;
                }
                Err(SendError::WouldBlock) => {}
                Err(SendError::Lost(reason)) => return self.lose(peer, reason.into()),
            }
        }
        self.stream(peer, index);
        self.state.work.push_back(Work::Flush(peer));
    }

    /// Data of this message leave in turn with those of others to the peer.
    pub(crate) fn stream(&mut self, peer: Peer, index: u32) {
        self.queue(peer).streams.push_back(index);
    }

    /// Sends what waits for the peer, until the transport takes no more.
    pub(crate) fn flush(&mut self, peer: Peer) {
        let Some(mut queue) = self.state.outgoing.remove(&peer) else {
            self.state.peers[peer as usize].queued = false;
            return;
        };
        let route = self.state.peers[peer as usize].route as usize;
        let outcome = self.flush_queue(peer, route, &mut queue);
        if let Err(SendError::Lost(reason)) = outcome {
            return self.lose(peer, reason.into());
        }
        if self.state.peers[peer as usize].lost {
            return;
        }
        self.state.peers[peer as usize].queued = !queue.is_empty();
        if !queue.is_empty() {
            self.state.outgoing.insert(peer, queue);
        }
    }

    fn flush_queue(&mut self, peer: Peer, route: usize, queue: &mut Outgoing) -> Result<(), SendError> {
        while let Some(header) = queue.controls.front() {
            self.transports[route].send(peer, header, &[])?;
            queue.controls.pop_front();
        }
        while let Some(&index) = queue.messages.front().filter(|_| queue.held == 0) {
            match self.first_frame(index) {
                First::Done => self.state.finish(index),
                First::Waiting => {}
                First::Blocked => break,
                First::Lost => return Ok(()),
            }
            queue.messages.pop_front();
        }
        while let Some(index) = queue.streams.pop_front() {
            match self.fragment(index, route) {
                Ok(Fragment::Last) => self.state.finish(index),
                Ok(Fragment::Sent) => queue.streams.push_back(index),
                Ok(Fragment::NotReady) => {}
                Err(error) => {
                    queue.streams.push_front(index);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Sends the next data frame of a message.
    fn fragment(&mut self, index: u32, route: usize) -> Result<Fragment, SendError> {
        let Some(task) = self.state.requests.send(index) else {
            return Ok(Fragment::NotReady);
        };
        let transport = &mut self.transports[route];
        let limit = transport.limits(task.peer).frame.min(CHUNK) as u64;
        let Some((at, length)) = task.next_piece(limit) else {
            return Ok(Fragment::NotReady);
        };
        let header = Header::control(Kind::Data, task.receiver, at, length);
        let (buffer, scratch) = (&mut task.buffer, &mut self.state.chunk);
        send_piece(&mut **transport, task.peer, &header, buffer, at, scratch)?;
        task.piece_sent(length);
        if !task.is_over() {
            return Ok(Fragment::Sent);
        }
        if task.announced == AnnouncedStage::Called {
            let (peer, context) = (task.peer, task.header.context);
            if task.synchronous {
                task.stage = SendStage::Waiting;
                return Ok(Fragment::NotReady);
            }
            // It may wait there unmatched, and can be asked back.
            self.state.requests.left(index, peer, context);
        }
        Ok(Fragment::Last)
    }

    /// Ends the sends of a plan that has failed as far as nobody touches their memory any more. True if it is over.
    pub(crate) fn abandon(&mut self, index: u32) -> bool {
        if self.state.withdraw(index) {
            self.forget(index);
            return true;
        }
        if matches!(self.state.requests.slot(index).task, Task::Meet(_)) {
            self.state.meets.retain(|&meet| meet != index);
            self.forget(index);
            return true;
        }
        let token = self.state.requests.token(index);
        let Some(task) = self.state.requests.send(index) else {
            return false;
        };
        if matches!(task.stage, SendStage::Streaming | SendStage::Bulk) {
            return false;
        }
        let peer = task.peer;
        self.state.unanswered.abandoned(token, task);
        if let Some(queue) = self.state.outgoing.get_mut(&peer) {
            queue.messages.retain(|&i| i != index);
        }
        self.forget(index);
        true
    }

    /// Ends a request of which nobody will be told.
    fn forget(&mut self, index: u32) {
        let slot = self.state.requests.slot_mut(index);
        slot.owner = NONE;
        slot.detached = true;
        self.state.finish(index);
    }
}

#[inline]
fn outbound(channel: &Channel, to: u32, tag: i32, mode: Mode, buffer: SendBuffer) -> Outbound {
    let mut header = Header::new(Kind::Eager, channel.context, channel.rank, tag, buffer.length(), 0);
    header.common = buffer.common;
    Outbound {
        peer: channel.members.peer(to),
        header,
        mode,
        buffer,
        waits: false,
    }
}

#[inline]
pub(crate) fn envelope(header: &Header) -> isthmus_protocol::matching::Envelope {
    isthmus_protocol::matching::Envelope {
        context: header.context,
        source: header.source,
        tag: header.tag,
    }
}

fn facts(task: &SendTask, limits: &Limits, eager: u64) -> Facts {
    Facts {
        bytes: task.header.length,
        synchronous: task.synchronous,
        eager: eager.min(limits.eager as u64),
        frame: limits.frame as u64,
    }
}

/// Memory to work with, `length` bytes.
pub(crate) fn chunk(memory: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if memory.len() < length {
        memory.resize(length, 0);
    }
    &mut memory[..length]
}

/// Sends a frame with the bytes of the message from `at` on as its payload.
#[inline]
fn send_piece(
    transport: &mut dyn Transport,
    peer: Peer,
    header: &Header,
    buffer: &mut SendBuffer,
    at: u64,
    scratch: &mut Vec<u8>,
) -> Result<(), SendError> {
    match buffer.piece(at, header.length as usize) {
        Some(piece) => transport.send(peer, header, piece),
        None => transport.send_filled(peer, header, scratch, &mut |to| buffer.read(at, to)),
    }
}
