// SPDX-License-Identifier: Apache-2.0
//! Short messages that were announced, at their receiver: see [`isthmus_protocol::calling`].

use isthmus_protocol::calling::{Arrival, Matched};
use isthmus_protocol::matching::Envelope;
use isthmus_transport::Peer;
use isthmus_wire::frame::{Header, Kind, ROOM, SYNCHRONOUS};

use crate::Request;
use crate::base::message::{Content, Message};
use crate::base::requests::ReceiveStage;
use crate::base::state::{State, Work};

impl State {
    /// A short message waits at its sender.
    pub(crate) fn announced(&mut self, peer: Peer, header: &Header) {
        let envelope = crate::p2p::send::envelope(header);
        let Ok(receive) = self.arrive(peer, &envelope) else {
            return self.lied(peer, &envelope);
        };
        if let Some(index) = receive {
            self.settle(peer, 0, 0);
            let message = (header.length, header.common);
            return self.answer(index, peer, &envelope, message, header.token, Box::default());
        }
        let message = self.calls.announce(peer, header.token, header.length);
        self.keep(peer, header, Content::Announced(message));
        self.call_in(peer);
    }

    /// Asks for announced messages of this peer while there is room.
    pub(crate) fn call_in(&mut self, peer: Peer) {
        let known = self.peers[peer as usize];
        if known.lost || known.broken {
            return;
        }
        while let Some(call) = self.calls.next(peer) {
            let mut clear = Header::control(Kind::Cts, call.token, call.receiver, call.bytes);
            clear.flags = ROOM;
            self.work.push_back(Work::Control(peer, clear));
        }
    }

    /// Data of a message that was called in.
    pub(crate) fn called_data(&mut self, peer: Peer, header: &Header, payload: &[u8]) {
        let arrival = self.calls.arrived(peer, header.token, header.auxiliary(), payload);
        let (receive, data) = match arrival {
            Ok(Arrival::Kept) => return,
            Ok(Arrival::For(receive, data)) => (receive, data),
            Err(_) => return self.broken(peer, "data that nobody asked for"),
        };
        let index = self.requests.index(Request::from_raw(receive));
        let task = index.and_then(|index| self.requests.receive(index));
        if let (Some(index), Some(ReceiveStage::Called(called))) = (index, task.map(|task| &task.stage)) {
            let Called {
                envelope,
                common,
                acknowledge,
            } = **called;
            self.acknowledge(peer, acknowledge);
            self.fill(index, &envelope, (peer, common), &data);
        }
        self.call_in(peer);
    }
}

/// What a receive knows of its message that is being called in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Called {
    envelope: Envelope,
    common: bool,
    /// As for [`State::acknowledge`].
    acknowledge: u64,
}

impl State {
    /// Gives an announced message to the receive that it matches.
    pub(crate) fn deliver_announced(&mut self, index: u32, envelope: &Envelope, message: &Message) {
        let Content::Announced(name) = message.content else {
            return;
        };
        let (peer, common) = (message.peer, message.common);
        let acknowledge = if message.synchronous { message.token } else { 0 };
        let receive = self.requests.token(index);
        match self.calls.matched(name, receive) {
            Matched::Waits => {
                let (length, token) = ((message.bytes, common), message.token);
                self.answer(index, peer, envelope, length, token, Box::default());
            }
            Matched::Here(data) => {
                self.acknowledge(peer, acknowledge);
                self.fill(index, envelope, (peer, common), &data);
            }
            Matched::Coming if self.peers[peer as usize].lost => {
                self.calls.discard(name);
                let error = self.lost_error(peer);
                self.fail(index, error);
            }
            Matched::Coming => {
                if let Some(task) = self.requests.receive(index) {
                    task.peer = peer;
                    task.stage = ReceiveStage::Called(Box::new(Called {
                        envelope: *envelope,
                        common,
                        acknowledge,
                    }));
                }
            }
        }
        self.call_in(peer);
    }

    /// An unexpected message is gone.
    pub(crate) fn unkeep(&mut self, message: &Message) {
        if let Content::Announced(name) = message.content {
            self.calls.discard(name);
        }
        self.unaccount(message);
    }

    /// Releases the memory that an unexpected message was accounted for.
    pub(crate) fn unaccount(&mut self, message: &Message) {
        if !matches!(message.content, Content::Local(_)) {
            self.peers[message.peer as usize].account.let_go(message.kept());
        }
    }
}

/// Whether the sender of an announced message waits to hear that it matched.
pub(crate) fn is_synchronous(header: &Header) -> bool {
    match header.kind {
        Kind::EagerSync => true,
        Kind::Announce => header.flags & SYNCHRONOUS != 0,
        _ => false,
    }
}
