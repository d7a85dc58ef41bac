// SPDX-License-Identifier: Apache-2.0
//! Cancelling (MPI 5.0 section 3.8.4).
//!
//! A receive that has not matched and a message that has not left are withdrawn at once. Whether a message that has left has matched
//! only its receiver knows: it is asked, and the request is complete when the answer has come.
//!
//! ```text
//!  sender: Cancel  ->  receiver: not matched, thrown away: CancelReply(1)  -> cancelled
//!                      receiver: matched:                  CancelReply(0)  -> goes on as if nothing had been asked
//! ```

use isthmus_transport::Peer;
use isthmus_wire::frame::{Header, Kind};

use crate::message::Content;
use crate::requests::{NONE, SendStage, Task};
use crate::state::{State, Work};
use crate::{Engine, Request, Sent};

impl Engine {
    /// Cancels a receive or send that has not matched yet; it completes as cancelled. Anything else goes on as if nothing had been said.
    pub fn cancel(&mut self, request: Request) {
        let Some(index) = self.state.requests.index(request) else {
            return;
        };
        if self.cancel_natively(index) {
            return;
        }
        if self.state.withdraw(index) || self.withdraw_send(index) {
            self.state.requests.slot_mut(index).completion.cancelled = true;
            self.state.finish(index);
        } else if let Some((peer, context)) = self.recallable(index) {
            self.recall(index, peer, context);
        }
        self.work();
    }

    /// Cancels a send that has no request: gives it one, which completes as cancelled or not.
    pub fn cancel_sent(&mut self, sent: Sent) -> Request {
        let Sent { peer, context, token } = sent;
        let index = self.state.requests.insert(Task::Nothing);
        let request = self.state.requests.name(index);
        if peer == self.state.me {
            let thrown = self.throw_own(|content, t| !content.is_local() && t == token);
            self.state.requests.slot_mut(index).completion.cancelled = thrown;
            self.state.finish(index);
        } else if self.state.peers[peer as usize].lost {
            self.state.finish(index);
        } else {
            self.state.requests.slot_mut(index).task = Task::Recall(peer);
            self.state.recalls.insert(token, index);
            self.control(peer, question(token, context));
        }
        self.work();
        request
    }

    /// A message of which nothing has left this process stays here.
    fn withdraw_send(&mut self, index: u32) -> bool {
        let me = self.state.me;
        let slot = self.state.requests.slot(index);
        let token = self.state.requests.token(index);
        let (peer, stage) = match &slot.task {
            Task::Send(task) if task.parts.is_none() => (task.peer, task.stage),
            Task::Nothing if slot.sent_to == me => {
                return self.throw_own(|content, t| !content.is_local() && t == token);
            }
            _ => return false,
        };
        match stage {
            SendStage::Queued => {
                let Some(queue) = self.state.outgoing.get_mut(&peer) else {
                    return false;
                };
                let before = queue.messages.len();
                queue.messages.retain(|&i| i != index);
                queue.messages.len() < before
            }
            SendStage::Waiting if peer == me => {
                self.throw_own(|content, _| matches!(content, Content::Local(i) if *i == index))
            }
            SendStage::Waiting | SendStage::Streaming | SendStage::Bulk => false,
        }
    }

    /// Throws a message of this process to itself away.
    fn throw_own(&mut self, which: impl Fn(&Content, u64) -> bool) -> bool {
        let me = self.state.me;
        let found = self
            .state
            .matcher
            .search(|_, m| m.peer == me && which(&m.content, m.token));
        let Some((_, message)) = found.and_then(|waiting| self.state.matcher.remove(waiting)) else {
            return false;
        };
        self.state.unkeep(&message);
        true
    }

    /// Whom to ask for the message of this request, and its context.
    fn recallable(&self, index: u32) -> Option<(Peer, u32)> {
        let slot = self.state.requests.slot(index);
        let (peer, context) = match &slot.task {
            Task::Send(task) if task.stage == SendStage::Waiting && task.parts.is_none() && !task.recalled => {
                (task.peer, task.header.context)
            }
            Task::Nothing if slot.done => (slot.sent_to, slot.sent_in),
            _ => return None,
        };
        (peer != NONE && peer != self.state.me && !self.state.peers[peer as usize].lost).then_some((peer, context))
    }

    fn recall(&mut self, index: u32, peer: Peer, context: u32) {
        let token = self.state.requests.token(index);
        let slot = self.state.requests.slot_mut(index);
        slot.done = false;
        match &mut slot.task {
            Task::Send(task) => task.recalled = true,
            other => *other = Task::Recall(peer),
        }
        self.control(peer, question(token, context));
    }
}

impl State {
    /// A sender wants a message back.
    pub(crate) fn throw_away(&mut self, peer: Peer, token: u64) {
        let found = self.matcher.search(|_, m| m.peer == peer && m.token == token);
        // One that has been called in comes, whatever is said of it.
        let calls = &mut self.calls;
        let found = found.filter(|&waiting| match self.matcher.look(waiting).map(|(_, m)| &m.content) {
            Some(Content::Announced(name)) => calls.withdraw(*name),
            _ => true,
        });
        let thrown = found.and_then(|waiting| self.matcher.remove(waiting));
        let answer = Header::control(Kind::CancelReply, token, 0, u64::from(thrown.is_some()));
        if let Some((_, message)) = thrown {
            self.unaccount(&message);
            self.settle(peer, message.kept(), 0);
        }
        self.work.push_back(Work::Control(peer, answer));
    }

    /// The answer to a question of ours whether a message was thrown away. The send may have ended meanwhile.
    pub(crate) fn recalled(&mut self, peer: Peer, header: &Header) {
        if self.unanswered.expects(peer, header.kind, header.token) {
            return;
        }
        let recalled = self.recalls.get(&header.token).copied();
        let Some(index) = recalled.or_else(|| self.requests.index(Request::from_raw(header.token))) else {
            return self.broken(peer, UNASKED);
        };
        let thrown = header.length != 0;
        let slot = self.requests.slot_mut(index);
        match &mut slot.task {
            Task::Recall(to) if *to == peer => {
                self.recalls.remove(&header.token);
            }
            Task::Send(task) if task.peer == peer && task.recalled => {
                task.recalled = false;
                if thrown && task.stage != SendStage::Waiting {
                    return self.broken(peer, "it threw a message away for which it had asked");
                }
                if !thrown {
                    slot.done = task.buffered;
                    self.events += 1;
                    return;
                }
            }
            _ => return self.broken(peer, UNASKED),
        }
        slot.completion.cancelled = thrown;
        self.finish(index);
    }
}

/// What a peer does that answers it all the same.
const UNASKED: &str = "it says whether a message could be had back, which nobody had asked";

/// Transports that treat some contexts otherwise than others must not let it overtake the message.
fn question(token: u64, context: u32) -> Header {
    Header::control(Kind::Cancel, token, context.into(), 0)
}

impl Content {
    fn is_local(&self) -> bool {
        matches!(self, Self::Local(_))
    }
}
