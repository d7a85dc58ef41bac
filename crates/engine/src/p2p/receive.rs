// SPDX-License-Identifier: Apache-2.0
//! Receiving: posting, probing, answering requests to send.

use isthmus_datatype::raw::WriteMemory;
use isthmus_protocol::matching::{Context, Envelope, Pattern, Waiting};
use isthmus_transport::Peer;

use crate::p2p::Core;
use crate::p2p::Inbound;
use crate::p2p::Message;
use crate::p2p::calls::{deliver_announced, unaccount, unkeep};
use crate::p2p::conversion::{Origin, form_of, prepare};
use crate::p2p::itself::receive_from_self;
use crate::p2p::message::Content;
use crate::p2p::state::{answer, fill, lied, matched, settle};
use crate::p2p::{PlainTask, ReceiveStage, ReceiveTask, State, Task};
use crate::tools::waited::Awaited;
use crate::{Arrived, Channel, Direct, EngineError, MatchedMessage, Members, ReceiveBuffer, Received, Request};

impl Inbound {
    /// From one peer.
    #[inline]
    pub(crate) fn from(peer: Peer, pattern: Pattern, buffer: ReceiveBuffer) -> Self {
        Self {
            pattern,
            peer,
            members: None,
            buffer,
        }
    }
}

/// What would receive the messages of a peer that wait here in a context, with tags whose upper half is this.
#[cold]
pub(crate) fn waiting_of(core: &Core, peer: Peer, context: Context, tag: i32) -> Vec<Pattern> {
    let mut found: Vec<Pattern> = Vec::new();
    let pattern = |envelope: &Envelope| Pattern {
        context: envelope.context,
        source: Some(envelope.source),
        tag: Some(envelope.tag),
    };
    loop {
        let next = core.state.matcher.search(|envelope, message| {
            message.peer == peer
                && envelope.context == context
                && envelope.tag >> 16 == tag >> 16
                && !found.contains(&pattern(envelope))
        });
        match next.and_then(|waiting| core.state.matcher.look(waiting)) {
            Some((envelope, _)) => found.push(pattern(envelope)),
            None => return found,
        }
    }
}

/// Starts a receive; `None` as source or tag: any.
#[inline]
pub(crate) fn irecv(
    core: &mut Core,
    channel: &Channel,
    from: Option<u32>,
    tag: Option<i32>,
    buffer: ReceiveBuffer,
) -> Request {
    let pattern = Pattern {
        context: channel.context,
        source: from,
        tag,
    };
    let (peer, members) = match from {
        Some(rank) => (channel.members.peer(rank), None),
        None => (Peer::NONE, Some(channel.members.clone())),
    };
    let index = start_receive(
        core,
        Inbound {
            pattern,
            peer,
            members,
            buffer,
        },
    );
    core.state.requests.name(index)
}

/// Starts a receive of one process into one piece of memory, if nothing stands in the way: what most nonblocking
/// receives are. A message that waits here whole is received. `None`: nothing was done; [`Engine::irecv`] knows all
/// other cases. Only where all processes represent data alike.
#[inline]
pub(crate) fn irecv_plainly(
    core: &mut Core,
    channel: &Channel,
    from: u32,
    tag: Option<i32>,
    memory: WriteMemory,
    room: u64,
) -> Option<Request> {
    let state = &mut core.state;
    let pattern = Pattern {
        context: channel.context,
        source: Some(from),
        tag,
    };
    // As in `begin_directly`.
    if !state.work.is_empty() || channel.special.is_any() {
        return None;
    }
    if let Some(waiting) = state.matcher.find(&pattern) {
        return irecv_waiting(state, channel, waiting, memory, room);
    }
    if !state.reasons.is_empty() && is_hopeless(state, channel, Some(from)) {
        return None;
    }
    let index = state.requests.vacant();
    let posted = state.matcher.post(pattern, index);
    let peer = channel.members.peer(from);
    let plain = Task::Plain(PlainTask {
        memory,
        room,
        peer,
        posted,
    });
    // There was nothing.
    std::mem::forget(std::mem::replace(state.requests.slot_mut(index).task_mut(), plain));
    Some(state.requests.name(index))
}

/// The same where this message waits.
#[inline(never)]
fn irecv_waiting(
    state: &mut State,
    channel: &Channel,
    waiting: Waiting,
    memory: WriteMemory,
    room: u64,
) -> Option<Request> {
    let fits = state
        .matcher
        .look(waiting)
        .is_some_and(|(_, message)| message.bytes <= room);
    let received = fits.then(|| take_whole(state, channel, waiting, memory, room))??;
    let index = state.requests.vacant();
    let slot = state.requests.slot_mut(index);
    let completion = slot.completion_mut();
    completion.source = received.source;
    completion.tag = received.tag;
    completion.bytes = received.bytes;
    slot.set_done(true);
    state.tools.came.completes(Awaited::Message);
    Some(state.requests.name(index))
}

/// Receives a message that waits, if all of it is here and its sender is who it says. What is still to come is the
/// affair of the general way, and so are lies.
fn take_whole(
    state: &mut State,
    channel: &Channel,
    waiting: Waiting,
    mut memory: WriteMemory,
    room: u64,
) -> Option<Received> {
    let (envelope, message) = state.matcher.look(waiting)?;
    let data = match &message.content {
        Content::Inline(bytes) => &bytes[..message.bytes as usize],
        Content::Kept(bytes) => bytes,
        Content::Offered(_) | Content::Announced(_) | Content::Local(_) => return None,
    };
    if !channel.members.names(envelope.source, message.peer) {
        return None;
    }
    memory.write(0, &data[..data.len().min(room as usize)]);
    let (envelope, message) = state.matcher.remove(waiting)?;
    unaccount(state, &message);
    let acknowledge = if message.synchronous { message.token } else { 0 };
    settle(state, message.peer, message.kept(), acknowledge);
    state.events += 1;
    Some(Received {
        source: envelope.source,
        tag: envelope.tag,
        bytes: message.bytes,
        room,
    })
}

/// The first message that such a receive would match, if it is there. Call [`Engine::progress`] before (`Shared::wait`
/// does). Fails when nobody is left who could send it.
pub(crate) fn iprobe(
    core: &mut Core,
    channel: &Channel,
    from: Option<u32>,
    tag: Option<i32>,
) -> Result<Option<Arrived>, EngineError> {
    let pattern = Pattern {
        context: channel.context,
        source: from,
        tag,
    };
    let Some(waiting) = find_honest(&mut core.state, &pattern, &channel.members) else {
        return hopeless(core, channel, from).map_or(Ok(None), Err);
    };
    let found = core.state.matcher.look(waiting);
    Ok(found.map(|(envelope, message)| arrived_message(&core.state, envelope, message)))
}

/// As [`Engine::iprobe`], and takes the message off the queue: only [`Engine::imrecv`] can receive it then.
pub(crate) fn improbe(
    core: &mut Core,
    channel: &Channel,
    from: Option<u32>,
    tag: Option<i32>,
) -> Result<Option<(MatchedMessage, Arrived)>, EngineError> {
    let pattern = Pattern {
        context: channel.context,
        source: from,
        tag,
    };
    let waiting = find_honest(&mut core.state, &pattern, &channel.members);
    let Some((envelope, message)) = waiting.and_then(|waiting| core.state.matcher.remove(waiting)) else {
        return hopeless(core, channel, from).map_or(Ok(None), Err);
    };
    let arrived = arrived_message(&core.state, &envelope, &message);
    let taken = &mut core.state.taken;
    let at = taken.iter().position(Option::is_none).unwrap_or(taken.len());
    if at == taken.len() {
        taken.push(None);
    }
    taken[at] = Some((envelope, message));
    Ok(Some((MatchedMessage(at as u32), arrived)))
}

/// Starts to receive a message that was taken off the queue.
/// A message that does not exist (received already) gives a request that has failed.
pub(crate) fn imrecv(core: &mut Core, message: MatchedMessage, buffer: ReceiveBuffer) -> Request {
    let taken = core.state.taken.get_mut(message.0 as usize).and_then(Option::take);
    let index = core
        .state
        .requests
        .insert(Task::Receive(ReceiveTask::new(buffer, Peer::NONE, None)));
    match taken {
        Some((envelope, message)) => deliver_any(core, index, &envelope, message),
        None => core.state.fail(
            index,
            EngineError::Misuse {
                what: "this matched message has been received already",
            },
        ),
    }
    core.state.requests.name(index)
}

/// Whether a message from there, or from anybody, may never come because somebody is lost.
#[cold]
pub(crate) fn is_hopeless(state: &State, channel: &Channel, from: Option<u32>) -> bool {
    match from {
        Some(rank) => state.peers[channel.members.peer(rank)].lost(),
        None => state.missed(channel.context, &channel.members).is_some(),
    }
}

/// Why no such message can come any more, if that is so.
fn hopeless(core: &mut Core, channel: &Channel, from: Option<u32>) -> Option<EngineError> {
    core.state.knocking.note_probe(&channel.members, from);
    if core.state.reasons.is_empty() {
        return None;
    }
    match from.map(|rank| channel.members.peer(rank)) {
        Some(peer) => core.state.peers[peer].lost().then(|| core.state.lost_error(peer)),
        None => {
            let missed = core.state.missed(channel.context, &channel.members)?;
            Some(core.state.lost_error(missed))
        }
    }
}

#[inline]
pub(crate) fn start_receive(core: &mut Core, inbound: Inbound) -> u32 {
    let Inbound {
        pattern,
        peer,
        members,
        buffer,
    } = inbound;
    let task = ReceiveTask::new(buffer, peer, members);
    let index = core.state.requests.insert(Task::Receive(task));
    post(core, index, pattern);
    index
}

/// The receive takes a message that waits, or begins to wait for one.
#[inline]
pub(crate) fn post(core: &mut Core, index: u32, pattern: Pattern) {
    while let Some((envelope, message)) = core.state.matcher.take(&pattern) {
        if core.state.requests.is_for(index, message.peer, envelope.source) {
            return deliver_any(core, index, &envelope, message);
        }
        throw_lie(&mut core.state, &envelope, &message);
    }
    if !core.state.reasons.is_empty() && fail_hopeless(core, index, pattern.context) {
        return;
    }
    let posted = core.state.matcher.post(pattern, index);
    if let Some(task) = core.state.requests.receive(index) {
        task.stage = ReceiveStage::Posted(posted);
    }
}

/// Fails a receive whose sender is lost. One from any source waits where the job goes on.
fn fail_hopeless(core: &mut Core, index: u32, context: Context) -> bool {
    let Some(task) = core.state.requests.receive(index) else {
        return false;
    };
    let (peer, members) = (task.peer, task.members.clone());
    let error = match members {
        Some(_) if core.state.goes_on => None,
        Some(members) => core
            .state
            .missed(context, &members)
            .map(|missed| core.state.lost_error(missed)),
        None => core.state.peers[peer].lost().then(|| core.state.lost_error(peer)),
    };
    let Some(error) = error else { return false };
    core.state.fail(index, error);
    true
}

/// Gives a message that waited to a receive.
fn deliver_any(core: &mut Core, index: u32, envelope: &Envelope, message: Message) {
    let local = deliver(&mut core.state, index, envelope, message);
    if let Some((send, wanted)) = local {
        receive_from_self(core, send, index, wanted);
    }
}

/// Gives a message that waited to a receive. One of this process itself is still to be copied: its send, and how
/// many bytes are wanted.
pub(crate) fn deliver(state: &mut State, index: u32, envelope: &Envelope, message: Message) -> Option<(u32, u64)> {
    unaccount(state, &message);
    let announced = matches!(message.content, Content::Announced(_));
    let acknowledge = if message.synchronous && !announced {
        message.token
    } else {
        0
    };
    settle(state, message.peer, message.kept(), acknowledge);
    let origin = Origin::new(message.peer, message.common);
    match message.content {
        Content::Inline(bytes) => fill(state, index, envelope, origin, &bytes[..message.bytes as usize]),
        Content::Kept(bytes) => fill(state, index, envelope, origin, &bytes),
        Content::Offered(handle) => {
            answer(state, index, origin, envelope, message.bytes, message.token, handle);
        }
        Content::Announced(_) => deliver_announced(state, index, envelope, &message),
        Content::Local(send) => {
            prepare(state, index, envelope, origin, message.bytes);
            return Some((send, matched(state, index, envelope, message.bytes)));
        }
    }
    None
}

/// A message that was sent in the name of another one is gone, and its sender lost.
#[cold]
fn throw_lie(state: &mut State, envelope: &Envelope, message: &Message) {
    unkeep(state, message);
    lied(state, message.peer, envelope);
}

/// The first message that waits and comes from whom it says; such as do not are thrown away before it.
#[inline]
fn find_honest(state: &mut State, pattern: &Pattern, members: &Members) -> Option<Waiting> {
    loop {
        let waiting = state.matcher.find(pattern)?;
        let (envelope, message) = state.matcher.look(waiting)?;
        if members.names(envelope.source, message.peer) {
            return Some(waiting);
        }
        if let Some((envelope, message)) = state.matcher.remove(waiting) {
            throw_lie(state, &envelope, &message);
        }
    }
}

fn arrived_message(state: &State, envelope: &Envelope, message: &Message) -> Arrived {
    Arrived {
        source: envelope.source,
        tag: envelope.tag,
        bytes: message.bytes,
        form: form_of(state, message.peer, message.common),
    }
}

/// Begins to receive directly; the end must follow before the engine is unlocked. `Some`: it is over, because the
/// message was here, or because that is not possible.
#[inline]
pub(crate) fn begin_directly(
    core: &mut Core,
    channel: &Channel,
    pattern: Pattern,
    memory: WriteMemory,
    room: u64,
) -> Option<Direct> {
    let state = &mut core.state;
    // The caller has looked before it had the engine; nobody ends what begins after the word that it was revoked.
    if channel.special.is_any() {
        return Some(Direct::Nothing);
    }
    if let Some(waiting) = state.matcher.find(&pattern) {
        let taken = take_whole(state, channel, waiting, memory, room);
        return Some(taken.map_or(Direct::Nothing, Direct::Received));
    }
    if !state.reasons.is_empty() && is_hopeless(state, channel, pattern.source) {
        return Some(Direct::Nothing);
    }
    state.direct.begin(channel, pattern, memory, room);
    None
}
