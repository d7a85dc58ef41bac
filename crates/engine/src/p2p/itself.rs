// SPDX-License-Identifier: Apache-2.0
//! Messages of a process to itself.

use isthmus_protocol::matching::Envelope;
use isthmus_transport::Peer;
use isthmus_wire::frame::Header;

use crate::base::buffer::transfer;
use crate::base::work::CHUNK;
use crate::p2p::Core;
use crate::p2p::Message;
use crate::p2p::Outbound;
use crate::p2p::SendStage;
use crate::p2p::conversion::{Origin, prepare};
use crate::p2p::message::Content;
use crate::p2p::queue::chunk;
use crate::p2p::ranges::receive_parts_from_self;
use crate::p2p::state::{fill, matched, unexpected};
use crate::{Mode, SendBuffer};

/// Longest message to itself that a process copies when no receive is posted.
const SELF_EAGER: u64 = 64 << 10;

pub(crate) fn send_to_self(core: &mut Core, outbound: &mut Outbound) -> bool {
    let me = outbound.peer;
    let envelope = core.state.envelope(me, &outbound.header);
    if let Some(index) = core.state.matcher.arrive(&envelope) {
        let origin = Origin::new(me, outbound.buffer.common);
        prepare(&mut core.state, index, &envelope, origin, outbound.buffer.length());
        let wanted = matched(&mut core.state, index, &envelope, outbound.buffer.length());
        if let Some(task) = core.state.requests.receive(index) {
            transfer(
                &mut outbound.buffer,
                &mut task.buffer,
                wanted,
                chunk(&mut core.state.chunk, CHUNK),
            );
        }
        core.state.finish(index);
        return true;
    }
    let length = outbound.buffer.length();
    if outbound.mode == Mode::Synchronous || !may_be_kept(core, me, length) {
        return false;
    }
    let bytes = chunk(&mut core.state.chunk, length as usize);
    outbound.buffer.read(0, bytes);
    let content = Content::keep(bytes);
    let common = outbound.buffer.common;
    keep(core, envelope, copy_of(me, &outbound.header, common, content));
    true
}

/// The same for a standard send of data in one piece, where all processes represent data alike. False: nothing was
/// done.
pub(crate) fn send_piece_to_self(core: &mut Core, me: Peer, header: &Header, data: &[u8]) -> bool {
    let envelope = core.state.envelope(me, header);
    if let Some(index) = core.state.matcher.arrive(&envelope) {
        fill(&mut core.state, index, &envelope, Origin::new(me, false), data);
        return true;
    }
    if !may_be_kept(core, me, header.length) {
        return false;
    }
    keep(core, envelope, copy_of(me, header, false, Content::keep(data)));
    true
}

/// Whether there is room for a copy of so many bytes, which is taken then.
fn may_be_kept(core: &mut Core, me: Peer, length: u64) -> bool {
    length <= SELF_EAGER && core.state.peers[me].account_mut().hold(length)
}

/// A copy of a message that has left.
fn copy_of(me: Peer, header: &Header, common: bool, content: Content) -> Message {
    Message {
        peer: me,
        bytes: header.length,
        token: header.token,
        synchronous: false,
        common,
        content,
    }
}

/// No receive of this process matches yet: the message waits.
fn keep(core: &mut Core, envelope: Envelope, message: Message) {
    unexpected(&mut core.state, message.peer, &envelope, message.bytes);
    core.state.matcher.keep(envelope, message);
    core.state.events += 1;
}

/// No receive of this process matches yet: the message waits in its buffer.
pub(crate) fn offer_to_self(core: &mut Core, index: u32) {
    let Some(task) = core.state.requests.send(index) else {
        return;
    };
    let me = task.peer;
    task.stage = SendStage::Waiting;
    let message = Message {
        peer: me,
        bytes: task.header.length,
        token: 0,
        synchronous: false,
        common: task.header.common,
        content: Content::Local(index),
    };
    let (header, in_parts) = (task.header, task.parts.is_some());
    let envelope = core.state.envelope(me, &header);
    if in_parts {
        if let Some(receive) = core.state.matcher.arrive(&envelope) {
            let wanted = matched(&mut core.state, receive, &envelope, message.bytes);
            return receive_parts_from_self(core, index, receive, wanted);
        }
    }
    keep(core, envelope, message);
}

/// A receive has matched a message in a buffer of this process.
pub(crate) fn receive_from_self(core: &mut Core, send: u32, receive: u32, wanted: u64) {
    let Some(task) = core.state.requests.send(send) else {
        return;
    };
    if task.parts.is_some() {
        return receive_parts_from_self(core, send, receive, wanted);
    }
    let mut buffer = std::mem::replace(&mut task.buffer, SendBuffer::EMPTY);
    if let Some(task) = core.state.requests.receive(receive) {
        transfer(
            &mut buffer,
            &mut task.buffer,
            wanted,
            chunk(&mut core.state.chunk, CHUNK),
        );
    }
    core.state.finish(send);
    core.state.finish(receive);
}
