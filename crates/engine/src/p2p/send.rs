// SPDX-License-Identifier: Apache-2.0
//! Sending: first frames, answers to the receiver, queues per peer.

use isthmus_protocol::choice::{self, Facts};
use isthmus_transport::{Lease, Limits, Peer, SendError};
use isthmus_wire::frame::{Header, Kind, SYNCHRONOUS};

use crate::base::buffer::SendForm;
use crate::base::parcels::send_piece;
use crate::base::peers::PeerState;
use crate::base::requests::NONE;
use crate::base::work::{CHUNK, Work};
use crate::p2p::Core;
use crate::p2p::Outbound;
use crate::p2p::beside::{drop_parcels, serve};
use crate::p2p::itself::{offer_to_self, send_piece_to_self, send_to_self};
use crate::p2p::long::{ALONE, BESIDE};
use crate::p2p::queue::{queue, stream, unblocked};
use crate::p2p::ranges::go_on;
use crate::p2p::state::withdraw;
use crate::p2p::{AnnouncedStage, Outgoing, SendStage, SendTask, Task};
use crate::{Channel, EngineError, Knob, Mode, Operation, Request, Sent};

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

/// Sends if that is possible at once: `Ok(None)` means that the message has left or is kept, and the buffer may be
/// reused.
/// `Ok(Some(request))`: it takes longer; wait for the request. Saves the request for most short messages.
#[inline(always)]
pub(crate) fn send(core: &mut Core, mut outbound: Outbound) -> Result<Option<Request>, EngineError> {
    let peer = outbound.peer;
    let known = &core.state.peers[peer];
    let (level, own) = (known.level(), known.own());
    let length = outbound.buffer.length();
    core.state.tools.count(Operation::POINT_TO_POINT, level, length);
    if send_where(core, &mut outbound, own) {
        return Ok(None);
    }
    if core.state.peers[peer].lost() {
        return Err(core.state.lost_error(peer));
    }
    let index = start_send(core, outbound);
    Ok(Some(core.state.requests.name(index)))
}

/// Sends a message that lies in one piece, if nothing stands in its way: what nearly all short messages take. False:
/// nothing was done; [`Engine::send`] knows all other cases. Only where all processes represent data alike.
#[inline]
pub(crate) fn send_at_once(core: &mut Core, channel: &Channel, to: u32, tag: i32, data: &[u8]) -> bool {
    send_with_token(core, channel, to, tag, data, 0)
}

/// The same for a message of a collective operation.
#[inline]
pub(crate) fn send_of_operation(
    core: &mut Core,
    channel: &Channel,
    operation: Operation,
    to: u32,
    tag: i32,
    data: &[u8],
) -> bool {
    let (context, length) = (channel.context.number() + 1, data.len() as u64);
    let header = Header::new(Kind::Eager, context, channel.rank, tag, length, 0);
    let Some(level) = push(core, channel.members.peer(to), &header, data) else {
        return false;
    };
    core.state.tools.count(operation, level, length);
    true
}

/// The same for a send that can be cancelled afterwards.
#[inline]
pub(crate) fn isend_at_once(core: &mut Core, channel: &Channel, to: u32, tag: i32, data: &[u8]) -> Option<Sent> {
    let token = core.state.sent.next();
    let sent = send_with_token(core, channel, to, tag, data, token);
    sent.then(|| Sent {
        peer: channel.members.peer(to),
        context: channel.context.number(),
        token,
    })
}

#[inline]
fn send_with_token(core: &mut Core, channel: &Channel, to: u32, tag: i32, data: &[u8], token: u64) -> bool {
    let length = data.len() as u64;
    let header = Header::new(Kind::Eager, channel.context.number(), channel.rank, tag, length, token);
    let peer = channel.members.peer(to);
    let Some(level) = push(core, peer, &header, data) else {
        return own_message(core, peer, &header, data);
    };
    core.state.tools.count(Operation::POINT_TO_POINT, level, length);
    true
}

/// What no transport takes is perhaps for this process itself.
#[inline(never)]
fn own_message(core: &mut Core, peer: Peer, header: &Header, data: &[u8]) -> bool {
    if !core.state.is_own(peer) || !send_piece_to_self(core, peer, header, data) {
        return false;
    }
    count(core, Operation::POINT_TO_POINT, peer, header.length);
    true
}

/// Starts a send. Failures are found in the completion.
pub(crate) fn isend(core: &mut Core, outbound: Outbound) -> Request {
    count(core, Operation::POINT_TO_POINT, outbound.peer, outbound.buffer.length());
    let index = start_or_send(core, outbound);
    core.state.requests.name(index)
}

#[inline]
pub(crate) fn count(core: &mut Core, operation: Operation, peer: Peer, bytes: u64) {
    let level = core.state.peers[peer].level();
    core.state.tools.count(operation, level, bytes);
}

/// A request for the send, complete if that was possible at once.
pub(crate) fn start_or_send(core: &mut Core, mut outbound: Outbound) -> u32 {
    let peer = outbound.peer;
    let index = core.state.requests.insert(Task::Nothing);
    // So that the message can be asked back.
    outbound.header.token = core.state.requests.token(index);
    if try_send(core, &mut outbound) {
        core.state.requests.left(index, peer, outbound.header.context);
        core.state.finish(index);
    } else if core.state.peers[peer].lost() {
        let error = core.state.lost_error(peer);
        core.state.fail(index, error);
    } else {
        begin_send(core, index, outbound);
    }
    index
}

/// May a message leave unasked and at once, as far as the engine knows? `most`: bytes of an eager message.
#[inline]
fn may_be_eager(peer: &PeerState, length: u64, most: u64) -> bool {
    length < peer.unasked() && length <= most && !peer.queued() && !peer.lost() && peer.account().allows_eager(length)
}

/// Gives a whole message to the peer's transport, if it may leave at once. How far away the peer is, when it has left.
#[inline]
fn push(core: &mut Core, to: Peer, header: &Header, data: &[u8]) -> Option<u8> {
    let most = core.state.tuning.get(Knob::Eager);
    let peer = &mut core.state.peers[to];
    if !may_be_eager(peer, header.length, most) {
        return None;
    }
    match core.transports[peer.route() as usize].send(to, header, data) {
        Ok(()) => {
            peer.account_mut().sent(header.length);
            let level = peer.level();
            core.state.tools.sent(to, header);
            Some(level)
        }
        Err(error) => {
            not_taken(core, to, error);
            None
        }
    }
}

/// Sends a message that can leave at once and completely.
pub(crate) fn try_send(core: &mut Core, outbound: &mut Outbound) -> bool {
    let own = core.state.is_own(outbound.peer);
    send_where(core, outbound, own)
}

/// The same; `own`: to this process itself.
fn send_where(core: &mut Core, outbound: &mut Outbound, own: bool) -> bool {
    let (peer, length) = (outbound.peer, outbound.header.length);
    if own {
        return send_to_self(core, outbound);
    }
    if outbound.mode == Mode::Synchronous {
        return false;
    }
    if let SendForm::Contiguous(memory) = &outbound.buffer.form {
        let header = &outbound.header;
        return memory.with(0, length as usize, |data| push(core, peer, header, data).is_some());
    }
    let known = &core.state.peers[peer];
    if !may_be_eager(known, length, core.state.tuning.get(Knob::Eager)) {
        return false;
    }
    let transport = &mut core.transports[known.route() as usize];
    let (header, scratch) = (&outbound.header, &mut core.state.chunk);
    match send_piece(&mut **transport, peer, header, &mut outbound.buffer, 0, scratch) {
        Ok(()) => {
            core.state.peers[peer].account_mut().sent(length);
            core.state.tools.sent(peer, &outbound.header);
            true
        }
        Err(error) => {
            not_taken(core, peer, error);
            false
        }
    }
}

/// A transport refused a frame.
#[cold]
fn not_taken(core: &mut Core, peer: Peer, error: SendError) {
    match error {
        SendError::WouldBlock => core.state.peers[peer].set_queued(true),
        SendError::Lost(reason) => core.lose(peer, reason.into()),
    }
}

/// A request for a message that cannot leave at once.
pub(crate) fn start_send(core: &mut Core, outbound: Outbound) -> u32 {
    let index = core.state.requests.insert(Task::Nothing);
    begin_send(core, index, outbound);
    index
}

/// The same for a request that is there already.
pub(crate) fn begin_send(core: &mut Core, index: u32, outbound: Outbound) {
    let Outbound {
        peer,
        header,
        mode,
        buffer,
        waits,
    } = outbound;
    let buffered = mode == Mode::Buffered;
    let buffer = if buffered { buffer.into_owned() } else { buffer };
    let mut task = SendTask::new(peer, header, buffer);
    task.synchronous = mode == Mode::Synchronous;
    task.buffered = buffered;
    task.waits = waits;
    begin(core, index, task);
    if buffered && !core.state.requests.slot(index).done() {
        core.state.requests.slot_mut(index).set_done(true);
        core.state.events += 1;
    }
}

/// The message of this request takes its way.
pub(crate) fn begin(core: &mut Core, index: u32, task: SendTask) {
    let peer = task.peer;
    core.state.requests.set_send(index, task);
    offer(core, peer, index);
}

/// The message is offered to its receiver.
pub(crate) fn offer(core: &mut Core, peer: Peer, index: u32) {
    if core.state.is_own(peer) {
        offer_to_self(core, index);
    } else {
        enqueue(core, peer, index);
    }
}

/// A part of the message has become ready.
pub(crate) fn go_on_with_parts(core: &mut Core, index: u32) {
    let Some(task) = core.state.requests.send(index) else {
        return;
    };
    let (empty, peer) = (task.buffer.length() == 0, task.peer);
    let Some(parts) = &task.parts else { return };
    if parts.are_cleared() {
        go_on(core, index);
    } else if empty && parts.are_all_marked() {
        offer(core, peer, index);
    }
}

/// The message takes its place among those to the peer, and leaves if it is the first.
fn enqueue(core: &mut Core, peer: Peer, index: u32) {
    let waiting = core.state.outgoing.get(&peer);
    if waiting.is_some_and(|o| o.held > 0 || !o.messages.is_empty()) {
        queue(core, peer).messages.push_back(index);
        return;
    }
    match first_frame(core, index) {
        First::Done => {
            core.state.finish(index);
            unblocked(core, peer);
        }
        First::Waiting => unblocked(core, peer),
        First::Blocked => queue(core, peer).messages.push_back(index),
        First::Lost => {
            let error = core.state.lost_error(peer);
            if matches!(core.state.requests.slot(index).task(), Task::Send(_)) {
                core.state.fail(index, error);
            }
        }
    }
}

/// Tries to send the first frame of a message.
fn first_frame(core: &mut Core, index: u32) -> First {
    let eager = core.state.tuning.get(Knob::Eager);
    let token = core.state.requests.token(index);
    let Some(task) = core.state.requests.send(index) else {
        return First::Done;
    };
    let peer_of = task.peer;
    let peer = &mut core.state.peers[peer_of];
    let transport = &mut core.transports[peer.route() as usize];
    let limits = transport.limits(peer_of);
    let length = task.header.length;
    let chosen = match task.parts {
        // Data leave when they are ready, whatever their length.
        Some(_) => peer.account().allows_request().then_some(Kind::Rts),
        None => choice::first_frame(facts(task, &limits, eager), peer.account()),
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
            peer.offer();
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
        let scratch = &mut core.state.chunk;
        send_piece(&mut **transport, task.peer, &header, &mut task.buffer, 0, scratch)
    };
    match sent {
        Ok(()) => {
            peer.account_mut().sent(if matches!(kind, Kind::Rts | Kind::Announce) {
                0
            } else {
                length
            });
            task.stage = SendStage::Waiting;
            core.state.tools.sent(peer_of, &header);
            if kind == Kind::Eager {
                core.state.requests.left(index, peer_of, header.context);
                First::Done
            } else {
                First::Waiting
            }
        }
        Err(SendError::WouldBlock) => First::Blocked,
        Err(SendError::Lost(reason)) => {
            core.lose(peer_of, reason.into());
            First::Lost
        }
    }
}

/// The receiver wants the data of this send.
pub(crate) fn start_data(core: &mut Core, index: u32) {
    let token = core.state.requests.token(index);
    let Some(task) = core.state.requests.send(index) else {
        return;
    };
    let peer = task.peer;
    let transport = &mut core.transports[core.state.peers[peer].route() as usize];
    task.stage = SendStage::Streaming;
    if let Some(parts) = &mut task.parts {
        parts.clear();
        return go_on(core, index);
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
            Err(SendError::Lost(reason)) => return core.lose(peer, reason.into()),
        }
    }
    stream(core, peer, index);
    core.state.work.push_back(Work::Flush(peer));
}

/// Sends what waits for the peer, until the transport takes no more.
pub(crate) fn flush(core: &mut Core, peer: Peer) {
    let Some(mut queue) = core.state.outgoing.remove(&peer) else {
        core.state.peers[peer].set_queued(false);
        return;
    };
    let route = core.state.peers[peer].route() as usize;
    let several = queue.has_several();
    if several {
        core.transports[route].gather(peer);
    }
    let outcome = flush_queue(core, peer, route, &mut queue);
    if several {
        core.transports[route].send_gathered(peer);
    }
    if let Err(SendError::Lost(reason)) = outcome {
        core.lose(peer, reason.into());
    }
    if core.state.peers[peer].lost() {
        return drop_parcels(&mut core.state, peer, queue.parcels);
    }
    core.state.peers[peer].set_queued(queue.blocks());
    if !queue.is_empty() {
        core.state.outgoing.insert(peer, queue);
    }
}

fn flush_queue(core: &mut Core, peer: Peer, route: usize, queue: &mut Outgoing) -> Result<(), SendError> {
    while let Some(header) = queue.controls.front() {
        core.transports[route].send(peer, header, &[])?;
        queue.controls.pop_front();
    }
    while let Some(&index) = queue.messages.front().filter(|_| queue.held == 0) {
        match first_frame(core, index) {
            First::Done => core.state.finish(index),
            First::Waiting => {}
            First::Blocked => break,
            First::Lost => return Ok(()),
        }
        queue.messages.pop_front();
        serve(core, peer, route, &mut queue.parcels)?;
    }
    while let Some(index) = queue.streams.pop_front() {
        match fragment(core, index, route) {
            Ok(Fragment::Last) => core.state.finish(index),
            Ok(Fragment::Sent) => queue.streams.push_back(index),
            Ok(Fragment::NotReady) => {}
            Err(error) => {
                queue.streams.push_front(index);
                return Err(error);
            }
        }
        serve(core, peer, route, &mut queue.parcels)?;
    }
    while !queue.parcels.wait_for_credit() {
        serve(core, peer, route, &mut queue.parcels)?;
    }
    Ok(())
}

/// Sends the next data frame of a message.
fn fragment(core: &mut Core, index: u32, route: usize) -> Result<Fragment, SendError> {
    let Some(task) = core.state.requests.send(index) else {
        return Ok(Fragment::NotReady);
    };
    let transport = &mut core.transports[route];
    let limit = transport.limits(task.peer).frame.min(CHUNK) as u64;
    let Some((at, length)) = task.next_piece(limit) else {
        return Ok(Fragment::NotReady);
    };
    let header = Header::control(Kind::Data, task.receiver, at, length);
    let (buffer, scratch) = (&mut task.buffer, &mut core.state.chunk);
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
        core.state.requests.left(index, peer, context);
    }
    Ok(Fragment::Last)
}

/// Ends the sends of a plan that has failed as far as nobody touches their memory any more. True if it is over.
pub(crate) fn abandon(core: &mut Core, index: u32) -> bool {
    if withdraw(&mut core.state, index) {
        forget(core, index);
        return true;
    }
    if matches!(core.state.requests.slot(index).task(), Task::Of(owned) if owned.can_be_left()) {
        forget(core, index);
        return true;
    }
    let token = core.state.requests.token(index);
    let Some(task) = core.state.requests.send(index) else {
        return false;
    };
    if matches!(task.stage, SendStage::Streaming | SendStage::Bulk) {
        return false;
    }
    let peer = task.peer;
    if task.stage == SendStage::Waiting {
        core.state.unanswered.abandoned(token, peer);
    }
    if let Some(queue) = core.state.outgoing.get_mut(&peer) {
        queue.messages.retain(|&i| i != index);
    }
    forget(core, index);
    true
}

/// Ends a request of which nobody will be told.
pub(crate) fn forget(core: &mut Core, index: u32) {
    let slot = core.state.requests.slot_mut(index);
    slot.belongs_to(NONE, 0);
    slot.detach();
    core.state.finish(index);
}

fn facts(task: &SendTask, limits: &Limits, eager: u64) -> Facts {
    Facts {
        bytes: task.header.length,
        synchronous: task.synchronous,
        eager: eager.min(limits.eager as u64),
        frame: limits.frame as u64,
        far: limits.far,
    }
}
