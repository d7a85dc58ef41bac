// SPDX-License-Identifier: Apache-2.0
//! Long messages at their receiver: answers to requests to send, data frames.
//!
//! The payload of a request to send is the transport's handle and one byte behind it: 1 if the sender's thread waits
//! and can put the data into frames while we take them out; else it may be computing, and we pull. Which of the two is
//! quicker, where both are open, is tried out (`protocol::ways`).

use std::time::Instant;

use isthmus_datatype::raw::{OwnMemory, ReadMemory};
use isthmus_protocol::ways::{Delivery, Turn};
use isthmus_transport::{Lease, Peer, SendError};
use isthmus_wire::frame::{BULK, Header, Kind};

use crate::Request;
use crate::p2p::Core;
use crate::p2p::queue::control;
use crate::p2p::{ReceiveStage, SendTask, State};

/// The byte behind a handle: the sender can send frames side by side with us.
pub(crate) const BESIDE: u8 = 1;
/// The same: it had better be pulled.
pub(crate) const ALONE: u8 = 0;

/// Answers the request to send that the receive has matched: pulls the data, or asks for them.
pub(crate) fn answer_request(core: &mut Core, index: u32) {
    let request = core.state.requests.token(index);
    let Some(task) = core.state.requests.receive(index) else {
        return;
    };
    let ReceiveStage::Answering { token, handle } = std::mem::replace(&mut task.stage, ReceiveStage::Streaming) else {
        return;
    };
    let (peer, wanted) = (task.peer, task.wanted);
    if core.state.peers[peer].lost() {
        let error = core.state.lost_error(peer);
        return core.state.fail(index, error);
    }
    let mut since = None;
    if let Some((&beside, handle)) = handle.split_last().filter(|_| wanted > 0) {
        let turn = turn(core, index, beside, wanted);
        since = turn.timed.then(Instant::now);
        if turn.way == Delivery::Pull {
            match pull(core, index, handle) {
                Ok(true) => {
                    control(core, peer, Header::control(Kind::Pulled, token, 0, wanted));
                    timed(&mut core.state, peer, Delivery::Pull, wanted, since);
                    return core.state.finish(index);
                }
                Ok(false) => {}
                Err(SendError::Lost(reason)) => return core.lose(peer, reason.into()),
                // The contract has no such answer to a pull; asking for the data always works.
                Err(SendError::WouldBlock) => {}
            }
            since = None;
        }
    }
    let whole = core.state.requests.receive(index).filter(|task| task.parts.is_none());
    let mut clear = Header::control(Kind::Cts, token, request, wanted);
    if let Some(task) = whole {
        task.since = since;
        clear.flags = if expect(core, index, peer, request, wanted) {
            BULK
        } else {
            0
        };
    }
    control(core, peer, clear);
    if wanted == 0 {
        core.state.finish(index);
    }
}

/// The way of a message that can be pulled.
fn turn(core: &mut Core, index: u32, beside: u8, wanted: u64) -> Turn {
    let alone = Turn {
        way: Delivery::Pull,
        timed: false,
    };
    match core.state.requests.receive(index) {
        // What does not lie in one piece comes in frames whatever is tried.
        Some(task) if beside == BESIDE && task.buffer.memory().is_some() => {
            core.state.ways.entry(task.peer).or_default().next(wanted)
        }
        _ => alone,
    }
}

/// Lets the transport write data frames straight to the buffer, if both can: then they may come in bulk. Otherwise data
/// frames come to `place` or `frame`.
fn expect(core: &mut Core, index: u32, peer: Peer, request: u64, wanted: u64) -> bool {
    let task = core.state.requests.receive(index);
    let Some(memory) = task.and_then(|task| task.buffer.memory()).filter(|_| wanted > 0) else {
        return false;
    };
    let route = core.state.peers[peer].route();
    let lease = Lease::new(memory);
    let expected = core.transports[route as usize].expect(peer, request, lease.lent(), wanted);
    if let Some(task) = core.state.requests.receive(index).filter(|_| expected) {
        task.lease = Some(lease);
        task.stage = ReceiveStage::Expected;
    }
    expected
}

/// Copies the message out of the sender's memory.
fn pull(core: &mut Core, index: u32, handle: &[u8]) -> Result<bool, SendError> {
    let Some(task) = core.state.requests.receive(index) else {
        return Ok(false);
    };
    let peer = &core.state.peers[task.peer];
    let transport = &mut core.transports[peer.route() as usize];
    match task.buffer.memory() {
        // Who copies a message of ours has no time for one of its own.
        Some(memory) if peer.offered() > 0 => transport.pull(task.peer, handle, 0, memory, task.wanted),
        Some(memory) => transport.pull_together(task.peer, handle, memory, task.wanted),
        // A buffer in pieces takes data frames: chunks pulled one by one would cost a system call each all the same.
        None => Ok(false),
    }
}

impl SendTask {
    /// What the receiver wants, in one piece of memory.
    pub(crate) fn in_one_piece(&mut self) -> ReadMemory {
        if let Some(memory) = self.buffer.memory() {
            return memory;
        }
        let packed = OwnMemory::new(0, self.wanted as isize);
        packed
            .memory()
            .with_mut(0, self.wanted as usize, |bytes| self.buffer.read(0, bytes));
        self.packed.insert(packed).reading()
    }
}

/// The receive that a data frame belongs to, if the frame fits it.
pub(crate) fn streaming(state: &mut State, peer: Peer, header: &Header) -> Option<u32> {
    let index = state.requests.index(Request::from_raw(header.token))?;
    let task = state.requests.receive(index)?;
    let fits = header
        .auxiliary()
        .checked_add(header.length)
        .is_some_and(|end| end <= task.wanted);
    // Partitions come as they are ready, all else in order: nothing counts twice.
    let next = task.parts.is_some() || header.auxiliary() == task.got;
    (task.peer == peer && matches!(task.stage, ReceiveStage::Streaming) && fits && next).then_some(index)
}

pub(crate) fn data(state: &mut State, peer: Peer, header: &Header, payload: &[u8]) {
    let Some(index) = streaming(state, peer, header) else {
        return state.broken(peer, "data that this process did not ask for");
    };
    if let Some(task) = state.requests.receive(index) {
        task.buffer.write_part(header.auxiliary(), payload, task.wanted);
    }
    arrived(state, index, header.auxiliary(), header.length);
}

/// `bytes` of a message have arrived, from byte `at` on.
pub(crate) fn arrived(state: &mut State, index: u32, at: u64, bytes: u64) {
    let Some(task) = state.requests.receive(index) else {
        return;
    };
    if let Some(parts) = &mut task.parts {
        parts.note(at, bytes);
        state.events += 1;
    }
    task.got += bytes;
    if task.got >= task.wanted {
        let (peer, wanted, since) = (task.peer, task.wanted, task.since.take());
        timed(state, peer, Delivery::Stream, wanted, since);
        state.finish(index);
    }
}

/// A message that was begun at this time, if it was timed, is here.
#[inline]
fn timed(state: &mut State, peer: Peer, way: Delivery, bytes: u64, since: Option<Instant>) {
    if let Some(since) = since {
        let time = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        state.ways.entry(peer).or_default().took(way, bytes, time);
    }
}
