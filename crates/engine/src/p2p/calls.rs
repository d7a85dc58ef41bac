// SPDX-License-Identifier: Apache-2.0
//! Short messages that were announced, at their receiver: see [`isthmus_protocol::calling`].

use isthmus_protocol::calling::{Arrival, Matched};
use isthmus_protocol::matching::Envelope;
use isthmus_transport::Peer;
use isthmus_wire::frame::{Header, Kind, ROOM};

use crate::Request;
use crate::base::work::Work;
use crate::p2p::Message;
use crate::p2p::conversion::Origin;
use crate::p2p::message::Content;
use crate::p2p::state::{answer, arrive, fill, keep, lied, settle, tell_matched};
use crate::p2p::{Called, ReceiveStage, State};

/// A short message waits at its sender.
pub(crate) fn announced(state: &mut State, peer: Peer, header: &Header) {
    let envelope = state.envelope(peer, header);
    let Ok(receive) = arrive(state, peer, &envelope) else {
        return lied(state, peer, &envelope);
    };
    if let Some(index) = receive {
        settle(state, peer, 0, 0);
        let origin = Origin::new(peer, header.common);
        return answer(
            state,
            index,
            origin,
            &envelope,
            header.length,
            header.token,
            Box::default(),
        );
    }
    let message = state.calls.announce(peer.number(), header.token, header.length);
    keep(state, peer, header, Content::Announced(message));
    call_in(state, peer);
}

/// Asks for announced messages of this peer while there is room.
pub(crate) fn call_in(state: &mut State, peer: Peer) {
    let known = state.peers[peer];
    if known.lost() || known.broken() {
        return;
    }
    while let Some(call) = state.calls.next(peer.number()) {
        let mut clear = Header::control(Kind::Cts, call.token, call.receiver, call.bytes);
        clear.flags = ROOM;
        state.work.push_back(Work::Control(peer, clear));
    }
}

/// Data of a message that was called in.
pub(crate) fn called_data(state: &mut State, peer: Peer, header: &Header, payload: &[u8]) {
    let arrival = state
        .calls
        .arrived(peer.number(), header.token, header.auxiliary(), payload);
    let (receive, data) = match arrival {
        Ok(Arrival::Kept) => return,
        Ok(Arrival::For(receive, data)) => (receive, data),
        Err(_) => return state.broken(peer, "data that this process did not ask for"),
    };
    let index = state.requests.index(Request::from_raw(receive));
    let task = index.and_then(|index| state.requests.receive(index));
    if let (Some(index), Some(ReceiveStage::Called(called))) = (index, task.map(|task| &task.stage)) {
        let Called {
            envelope,
            common,
            acknowledge,
        } = **called;
        tell_matched(state, peer, acknowledge);
        fill(state, index, &envelope, Origin::new(peer, common), &data);
    }
    call_in(state, peer);
}

/// Gives an announced message to the receive that it matches.
pub(crate) fn deliver_announced(state: &mut State, index: u32, envelope: &Envelope, message: &Message) {
    let Content::Announced(name) = message.content else {
        return;
    };
    let (peer, common) = (message.peer, message.common);
    let acknowledge = if message.synchronous { message.token } else { 0 };
    let receive = state.requests.token(index);
    match state.calls.matched(name, receive) {
        Matched::Waits => {
            let (origin, token) = (Origin::new(peer, common), message.token);
            answer(state, index, origin, envelope, message.bytes, token, Box::default());
        }
        Matched::Here(data) => {
            tell_matched(state, peer, acknowledge);
            fill(state, index, envelope, Origin::new(peer, common), &data);
        }
        Matched::Coming if state.peers[peer].lost() => {
            state.calls.discard(name);
            let error = state.lost_error(peer);
            state.fail(index, error);
        }
        Matched::Coming => {
            if let Some(task) = state.requests.receive(index) {
                task.peer = peer;
                task.stage = ReceiveStage::Called(Box::new(Called {
                    envelope: *envelope,
                    common,
                    acknowledge,
                }));
            }
        }
    }
    call_in(state, peer);
}

/// An unexpected message is gone.
pub(crate) fn unkeep(state: &mut State, message: &Message) {
    if let Content::Announced(name) = message.content {
        state.calls.discard(name);
    }
    unaccount(state, message);
}

/// Releases the memory that an unexpected message was accounted for.
pub(crate) fn unaccount(state: &mut State, message: &Message) {
    if !matches!(message.content, Content::Local(_)) {
        state.peers[message.peer].account_mut().let_go(message.kept());
    }
}
