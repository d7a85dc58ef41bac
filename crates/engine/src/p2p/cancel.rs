// SPDX-License-Identifier: Apache-2.0
//! Cancelling (MPI 5.0 section 3.8.4).
//!
//! A receive that has not matched and a message that has not left are withdrawn at once. Whether a message that has
//! left has matched only its receiver knows: it is asked.
//!
//! ```text
//!  sender: Cancel(0)  ->  receiver: not matched, set aside: CancelReply(1)  -> cancelled: Cancel(1), it is forgotten
//!                         receiver: matched:                CancelReply(0)  -> not cancelled
//!          Cancel(2), if no answer comes                    -> not cancelled: it is put back
//! ```
//!
//! The receiver may not call MPI for hours, and whoever waits for the request waits for nobody. So after [`NEAR`] or
//! [`FAR`] the send ends without having been cancelled, which the standard allows. Its data, if they are still here,
//! are copied, and a handle of the memory is revoked. Until the answer comes no later message leaves for that
//! receiver: none can overtake one that is put back. What has matched ends the same way. A receiver that comes back
//! finds both questions, and lets the message stay where it is.

use std::time::{Duration, Instant};

use isthmus_protocol::calling::Aside;
use isthmus_protocol::matching::Envelope;
use isthmus_transport::Peer;
use isthmus_wire::frame::{Header, Kind};

use crate::base::work::Work;
use crate::p2p::Core;
use crate::p2p::Message;
use crate::p2p::calls::{call_in, unkeep};
use crate::p2p::message::Content;
use crate::p2p::queue::{control, queue};
use crate::p2p::receive::deliver;
use crate::p2p::state::{arrive, lied, settle, withdraw};
use crate::p2p::{AskedBack, SendStage, State, Task};
use crate::{Request, Sent};

/// How long an answer is waited for: a receiver that is inside MPI gives it in microseconds, and has to get a core
/// for that.
const NEAR: Duration = Duration::from_millis(if cfg!(miri) { 60_000 } else { 100 });
/// The same for one in another local area, where a thread of the library answers: more than a few trips round the
/// world.
const FAR: Duration = Duration::from_secs(1);

/// What a frame of the kind `Cancel` asks for, in its length.
const THROW: u64 = 0;
const FORGET: u64 = 1;
const PUT_BACK: u64 = 2;

/// Cancels a receive or send that has not matched yet; it completes as cancelled. Anything else goes on as if nothing
/// had been said.
pub(crate) fn cancel(core: &mut Core, request: Request) {
    let Some(index) = core.state.requests.index(request) else {
        return;
    };
    if withdraw(&mut core.state, index) || withdraw_send(core, index) {
        core.state.requests.slot_mut(index).completion_mut().cancelled = true;
        core.state.finish(index);
    } else if let Some((peer, context)) = recallable(core, index) {
        recall(core, index, peer, context);
    } else {
        let_go(core, request);
    }
}

/// Cancels a send that has no request: gives it one, which completes as cancelled or not.
pub(crate) fn cancel_sent(core: &mut Core, sent: Sent) -> Request {
    let Sent { peer, context, token } = sent;
    let index = core.state.requests.insert(Task::Nothing);
    let request = core.state.requests.name(index);
    if core.state.is_own(peer) {
        let thrown = throw_own(core, |content, t| !content.is_local() && t == token);
        core.state.requests.slot_mut(index).completion_mut().cancelled = thrown;
        core.state.finish(index);
    } else if core.state.peers[peer].lost() {
        core.state.finish(index);
    } else {
        *core.state.requests.slot_mut(index).task_mut() = Task::Recall(peer);
        core.state.requests.left(index, peer, context);
        core.state.recalls.insert(token, index);
        ask(core, request, peer, question(token, context, THROW));
    }
    request
}

/// A message of which nothing has left this process stays here.
fn withdraw_send(core: &mut Core, index: u32) -> bool {
    let slot = core.state.requests.slot(index);
    let token = core.state.requests.token(index);
    let (peer, stage) = match slot.task() {
        Task::Send(task) if !task.has_begun_in_parts() => (task.peer, task.stage),
        Task::Nothing if slot.sent_to() != Peer::NONE && core.state.is_own(slot.sent_to()) => {
            return throw_own(core, |content, t| !content.is_local() && t == token);
        }
        _ => return false,
    };
    match stage {
        SendStage::Queued => {
            let Some(queue) = core.state.outgoing.get_mut(&peer) else {
                return false;
            };
            let before = queue.messages.len();
            queue.messages.retain(|&i| i != index);
            queue.messages.len() < before
        }
        SendStage::Waiting if core.state.is_own(peer) => {
            throw_own(core, |content, _| matches!(content, Content::Local(i) if *i == index))
        }
        SendStage::Waiting | SendStage::Streaming | SendStage::Bulk => false,
    }
}

/// Asks the receiver for the message of a step of a plan, if it has one that it may not have matched. True: the step is
/// over when it has answered.
pub(crate) fn is_asked_back(core: &mut Core, index: u32) -> bool {
    let Some((peer, context)) = recallable(core, index) else {
        return false;
    };
    let sends = matches!(core.state.requests.slot(index).task(), Task::Send(_));
    if sends {
        recall(core, index, peer, context);
    }
    sends
}

/// Throws a message of this process to itself away.
fn throw_own(core: &mut Core, which: impl Fn(&Content, u64) -> bool) -> bool {
    let peers = &core.state.peers;
    let is_own = |peer: Peer| peers[peer].own();
    let found = core
        .state
        .matcher
        .search(|_, m| is_own(m.peer) && which(&m.content, m.token));
    let Some((_, message)) = found.and_then(|waiting| core.state.matcher.remove(waiting)) else {
        return false;
    };
    unkeep(&mut core.state, &message);
    true
}

/// Whom to ask for the message of this request, and its context.
fn recallable(core: &Core, index: u32) -> Option<(Peer, u32)> {
    let slot = core.state.requests.slot(index);
    let (peer, context) = match slot.task() {
        Task::Send(task) if task.stage == SendStage::Waiting && !task.has_begun_in_parts() && !task.recalled => {
            (task.peer, task.header.context)
        }
        Task::Nothing if slot.done() => (slot.sent_to(), slot.sent_in()),
        _ => return None,
    };
    let known = core.state.peers.get(peer)?;
    (!known.own() && !known.lost()).then_some((peer, context))
}

fn recall(core: &mut Core, index: u32, peer: Peer, context: u32) {
    let token = core.state.requests.token(index);
    let slot = core.state.requests.slot_mut(index);
    slot.set_done(false);
    match slot.task_mut() {
        Task::Send(task) => task.recalled = true,
        other => *other = Task::Recall(peer),
    }
    ask(core, Request::from_raw(token), peer, question(token, context, THROW));
}

fn ask(core: &mut Core, request: Request, peer: Peer, question: Header) {
    let patience = if core.state.peers[peer].is_far() { FAR } else { NEAR };
    core.state.asked.until.push((Instant::now() + patience, request));
    control(core, peer, question);
}

/// Ends sends that have waited long enough for an answer; true if there were any.
#[cold]
pub(crate) fn ask_no_longer(core: &mut Core) -> bool {
    let now = Instant::now();
    let mut any = false;
    while let Some(at) = core.state.asked.until.iter().position(|(until, _)| *until <= now) {
        let (_, request) = core.state.asked.until.swap_remove(at);
        let Some(index) = core.state.requests.index(request) else {
            continue;
        };
        let slot = core.state.requests.slot_mut(index);
        match slot.task_mut() {
            Task::Recall(peer) => {
                let (peer, context) = (*peer, slot.sent_in());
                let recalls = &mut core.state.recalls;
                let token = recalls
                    .iter()
                    .find(|(_, waiting)| **waiting == index)
                    .map(|(&token, _)| token);
                // A send that had a request from the beginning is named by it.
                let token = token.unwrap_or_else(|| request.to_raw());
                recalls.remove(&token);
                core.state.finish(index);
                hold(core, peer, token, context);
            }
            // What is not marked yet cannot be copied: it ends when its receiver has answered.
            Task::Send(task) if task.parts.is_some() => continue,
            Task::Send(task) if task.recalled => {
                task.recalled = false;
                let (peer, context) = (task.peer, task.header.context);
                hold(core, peer, request.to_raw(), context);
                let_go(core, request);
            }
            _ => continue,
        }
        any = true;
    }
    any
}

/// The message is to stay, and none leaves for the peer until it has said what it has done with this one.
fn hold(core: &mut Core, peer: Peer, token: u64, context: u32) {
    core.state.asked.late.push((peer, token));
    queue(core, peer).held += 1;
    control(core, peer, question(token, context, PUT_BACK));
}

/// A send that is not cancelled ends for the program, which may use the memory.
pub(crate) fn let_go(core: &mut Core, request: Request) {
    let Some(index) = core.state.requests.index(request) else {
        return;
    };
    let Some(task) = core.state.requests.send(index) else {
        return;
    };
    // What the transport sends by itself leaves without the receiver's help.
    let stays =
        core.state.peers[task.peer].own() || task.parts.is_some() || task.stage == SendStage::Bulk || task.recalled;
    if stays {
        return;
    }
    if task.offered {
        let route = core.state.peers[task.peer].route();
        core.transports[route as usize].revoke();
    }
    task.buffer.own();
    task.buffered = true;
    core.state.requests.slot_mut(index).set_done(true);
    core.state.events += 1;
}

/// A sender wants a message back, or says what becomes of one that was set aside for it.
pub(crate) fn asked_back(state: &mut State, peer: Peer, header: &Header) {
    let token = header.token;
    if header.length == THROW {
        // Not at once: its sender may have changed its mind long ago, which the next frames say.
        state.work.push_back(Work::SetAside(peer, token));
        return;
    }
    let same = |work: &Work| matches!(work, Work::SetAside(to, name) if (*to, *name) == (peer, token));
    if let Some(question) = state.work.iter().position(same) {
        state.work[question] = Work::Control(peer, Header::control(Kind::CancelReply, token, 0, 0));
        return;
    }
    let is_it = |(_, message): &(Envelope, Message)| message.peer == peer && message.token == token;
    let Some(at) = state.asked.aside.iter().position(is_it) else {
        return;
    };
    let (envelope, message) = state.asked.aside.swap_remove(at);
    if header.length == PUT_BACK {
        return put_back(state, envelope, message);
    }
    unkeep(state, &message);
    settle(state, peer, message.kept(), 0);
    call_in(state, peer);
}

/// Takes a message from those that wait, if it is there, and says so.
pub(crate) fn set_aside(state: &mut State, peer: Peer, token: u64) {
    let found = state.matcher.search(|_, m| m.peer == peer && m.token == token);
    let name = found.and_then(|waiting| match state.matcher.look(waiting).map(|(_, m)| &m.content) {
        Some(Content::Announced(name)) => Some(*name),
        _ => None,
    });
    let aside = name.map(|name| state.calls.set_aside(name));
    // One that has been called in comes, whatever is said of it.
    let found = found.filter(|_| aside != Some(Aside::Coming));
    let mut taken = found.and_then(|waiting| state.matcher.remove(waiting));
    if let (Some((_, message)), Some(Aside::Waits)) = (&mut taken, aside) {
        // Should it be put back, it is asked for when it matches, which tells its sender that it did.
        message.content = Content::Offered(Box::default());
        message.synchronous = false;
    }
    let answer = Header::control(Kind::CancelReply, token, 0, u64::from(taken.is_some()));
    state.asked.aside.extend(taken);
    state.work.push_back(Work::Control(peer, answer));
}

/// The message arrives again.
fn put_back(state: &mut State, envelope: Envelope, message: Message) {
    state.events += 1;
    match arrive(state, message.peer, &envelope) {
        Ok(Some(index)) => {
            // One of this process itself is never set aside.
            let _ = deliver(state, index, &envelope, message);
        }
        Ok(None) => {
            state.matcher.keep(envelope, message);
        }
        Err(_) => {
            unkeep(state, &message);
            lied(state, message.peer, &envelope);
        }
    }
}

/// The answer to a question of ours whether a message was thrown away. The send may have ended meanwhile.
pub(crate) fn recalled(state: &mut State, peer: Peer, header: &Header) {
    let (token, thrown) = (header.token, header.length != 0);
    let late = state
        .asked
        .late
        .iter()
        .position(|(to, late)| (*to, *late) == (peer, token));
    if let Some(at) = late {
        // Whatever the answer is: the message was put back, or had matched.
        state.asked.late.swap_remove(at);
        if let Some(queue) = state.outgoing.get_mut(&peer) {
            queue.held = queue.held.saturating_sub(1);
        }
        state.work.push_back(Work::Flush(peer));
        return;
    }
    if state.unanswered.expects(peer, header.kind, token) {
        return;
    }
    let recalled = state.recalls.get(&token).copied();
    let Some(index) = recalled.or_else(|| state.requests.index(Request::from_raw(token))) else {
        return state.broken(peer, UNASKED);
    };
    let request = state.requests.name(index);
    let slot = state.requests.slot_mut(index);
    let context = match slot.task_mut() {
        Task::Recall(to) if *to == peer => {
            state.recalls.remove(&token);
            slot.sent_in()
        }
        Task::Send(task) if task.peer == peer && task.recalled => {
            task.recalled = false;
            if thrown && task.stage != SendStage::Waiting {
                return state.broken(peer, "it threw a message away for which it had asked");
            }
            if !thrown {
                state.asked.answered(request);
                state.work.push_back(Work::LetGo(request));
                return;
            }
            task.header.context
        }
        _ => return state.broken(peer, UNASKED),
    };
    slot.completion_mut().cancelled = thrown;
    state.asked.answered(request);
    if thrown {
        state
            .work
            .push_back(Work::Control(peer, question(token, context, FORGET)));
    }
    state.finish(index);
}

/// The peer is lost: it answers no question, and says nothing of what was set aside.
pub(crate) fn forget_asked(state: &mut State, peer: Peer) {
    state.asked.late.retain(|(to, _)| *to != peer);
    let aside = std::mem::take(&mut state.asked.aside);
    let (gone, aside): (Vec<_>, Vec<_>) = aside.into_iter().partition(|(_, message)| message.peer == peer);
    state.asked.aside = aside;
    for (_, message) in gone {
        unkeep(state, &message);
    }
}

/// What a peer does that answers it all the same.
const UNASKED: &str = "an answer to a cancellation that this process did not ask for";

/// Transports that treat some contexts otherwise than others must not let it overtake the message.
fn question(token: u64, context: u32, what: u64) -> Header {
    Header::control(Kind::Cancel, token, context.into(), what)
}

impl Content {
    fn is_local(&self) -> bool {
        matches!(self, Self::Local(_))
    }
}

impl AskedBack {
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
