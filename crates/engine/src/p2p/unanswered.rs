// SPDX-License-Identifier: Apache-2.0
//! Requests that have ended while an answer to them may still be on its way. All other answers that nobody waits for
//! are inventions.

use std::time::{Duration, Instant};

use isthmus_protocol::matching::Envelope;
use isthmus_transport::Peer;
use isthmus_wire::frame::Kind;
use rustc_hash::FxHashMap;

use crate::Request;
use crate::base::message::Message;

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

/// Messages that are asked back.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// Until when requests wait for answers.
    pub(super) until: Vec<(Instant, Request)>,
    /// Receiver and token of messages whose senders did not wait for the answer.
    pub(super) late: Vec<(Peer, u64)>,
    /// Of others, set aside here until the sender says what becomes of them. Accounted for as before, which bounds
    /// them.
    pub(super) aside: Vec<(Envelope, Message)>,
}

impl Asked {
    /// No request waits for an answer.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.until.is_empty()
    }

    /// When the next request has waited long enough.
    pub(crate) fn next(&self) -> Option<Duration> {
        let first = self.until.iter().map(|(until, _)| *until).min()?;
        Some(first.saturating_duration_since(Instant::now()))
    }

    pub(crate) fn answered(&mut self, request: Request) {
        self.until.retain(|(_, waiting)| *waiting != request);
    }
}
