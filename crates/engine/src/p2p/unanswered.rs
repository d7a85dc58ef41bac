// SPDX-License-Identifier: Apache-2.0
//! Requests that have ended while an answer to them may still be on its way. All other answers that nobody waits for
//! are inventions.

use isthmus_transport::Peer;
use isthmus_wire::frame::Kind;
use rustc_hash::FxHashMap;

/// What may still be said of them, by the names that the peers know.
#[derive(Debug, Default)]
pub(crate) struct Unanswered {
    /// Messages that waited to be asked for or acknowledged.
    messages: FxHashMap<u64, Peer>,
    /// Questions whether a message can be had back.
    questions: FxHashMap<u64, Peer>,
}

impl Unanswered {
    /// The send with this name ends before its time, and waited for an answer of its receiver.
    pub(crate) fn abandoned(&mut self, token: u64, peer: Peer) {
        self.messages.insert(token, peer);
    }

    /// The send with this name ends, and its peer was asked whether the message can be had back.
    pub(crate) fn asked(&mut self, token: u64, peer: Peer) {
        self.questions.insert(token, peer);
    }

    /// This answer of the peer comes too late for its request, and was to be expected.
    pub(crate) fn expects(&mut self, peer: Peer, kind: Kind, token: u64) -> bool {
        let names = if kind == Kind::CancelReply {
            &mut self.questions
        } else {
            &mut self.messages
        };
        let expected = names.get(&token) == Some(&peer);
        if expected {
            names.remove(&token);
        }
        expected
    }

    /// Nothing will come of this peer.
    pub(crate) fn lose(&mut self, peer: Peer) {
        self.messages.retain(|_, of| *of != peer);
        self.questions.retain(|_, of| *of != peer);
    }
}
