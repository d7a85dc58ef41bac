// SPDX-License-Identifier: Apache-2.0
//! Payloads that a transport reads straight into the memory of their receive.

use isthmus_datatype::raw::WriteMemory;
use isthmus_protocol::matching::Envelope;
use isthmus_transport::{Lease, Peer, Placement};
use isthmus_wire::frame::Header;

use crate::p2p::conversion::{Origin, is_prepared_first};
use crate::p2p::state::matched;
use crate::p2p::{ReceiveStage, ReceiveTask, State, Task};

/// Lends memory of a receive for the payload of one frame.
pub(crate) fn lend(state: &mut State, index: u32, memory: WriteMemory) -> Placement {
    let lease = Lease::new(memory);
    let lent = lease.lent();
    if let Some(task) = state.requests.receive(index) {
        task.lease = Some(lease);
    }
    Placement::Into(lent)
}

/// Memory for an eager message that a posted receive can take as it is.
pub(crate) fn place_eager(state: &mut State, peer: Peer, header: &Header) -> Placement {
    let envelope = state.envelope(peer, header);
    if state.matcher.expect(&envelope).is_none() {
        post_direct(state, peer, &envelope);
    }
    let Some((posted, &index)) = state.matcher.expect(&envelope) else {
        return Placement::Collect;
    };
    if !state.requests.is_for(index, peer, envelope.source) {
        // Whose it is not is told apart when all of it is here.
        return Placement::Collect;
    }
    if !state.representations.is_empty() && is_prepared_first(state, index, Origin::new(peer, header.common)) {
        return Placement::Collect;
    }
    let fitting = state
        .requests
        .receive(index)
        .filter(|task| task.buffer.length() >= header.length);
    let Some(memory) = fitting.and_then(|task| task.buffer.memory()) else {
        return Placement::Collect;
    };
    state.matcher.cancel(posted);
    matched(state, index, &envelope, header.length);
    if let Some(task) = state.requests.receive(index) {
        task.peer = peer;
        task.stage = ReceiveStage::Placing;
    }
    state.placing.insert(peer, index);
    lend(state, index, memory)
}

/// If this message matches the direct receive, that becomes an ordinary one: its memory is needed before all of the
/// message is there.
#[cold]
fn post_direct(state: &mut State, peer: Peer, envelope: &Envelope) {
    let Some(ordinary) = state.direct.become_ordinary(peer, envelope) else {
        return;
    };
    let (pattern, buffer, peer, members) = ordinary.parts();
    let task = ReceiveTask::new(buffer, peer, members);
    let index = state.requests.insert(Task::Receive(task));
    let posted = state.matcher.post(pattern, index);
    if let Some(task) = state.requests.receive(index) {
        task.stage = ReceiveStage::Posted(posted);
    }
    state.direct.is_posted(state.requests.name(index));
}
