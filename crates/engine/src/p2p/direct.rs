// SPDX-License-Identifier: Apache-2.0
//! The blocking receive of a message that arrives while its thread polls.
//!
//! Nearly all short messages are received so, and for them a request would cost more than everything else. There is one such
//! receive at most, since its thread keeps the engine while it polls, and it is the youngest of all: a message that arrives is
//! first offered to the posted receives. As soon as anything but its message happens it becomes an ordinary receive.

use isthmus_datatype::raw::WriteMemory;
use isthmus_protocol::matching::{Envelope, Pattern};
use isthmus_transport::Peer;

use crate::base::requests::{NONE, ReceiveStage, ReceiveTask, Task};
use crate::base::state::State;
use crate::{Channel, Completion, Engine, EngineError, Members, ReceiveBuffer, Request};

/// How a direct receive has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direct {
    /// Without a message: receive it in the ordinary way.
    Nothing,
    /// It has become this request.
    Posted(Request),
    /// The message is in its place.
    Received(Received),
}

/// A message that was received directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Rank of the sender in the communicator.
    pub source: u32,
    /// Tag.
    pub tag: i32,
    /// Bytes of the message: more than `room` if it was truncated.
    pub bytes: u64,
    /// Bytes of the memory.
    pub room: u64,
}

impl Received {
    /// As the completion of a request.
    pub fn completion(&self) -> Completion {
        let Self {
            source,
            tag,
            bytes: message,
            room: buffer,
        } = *self;
        Completion {
            source,
            tag,
            bytes: message.min(buffer),
            cancelled: false,
            error: (message > buffer).then_some(EngineError::Truncate {
                source,
                tag,
                message,
                buffer,
            }),
        }
    }
}

/// A thread that waits for one message looks at all transports once in so many times: a local message costs the same whatever other transports
/// there are, and what comes by those waits for a microsecond more.
const OFTEN: u32 = 8;

/// The receive.
#[derive(Debug)]
pub(crate) struct Expected {
    /// Looks for messages, of all direct receives together.
    turns: u32,
    stage: Stage,
    pattern: Pattern,
    /// [`NONE`]: any of these.
    peer: Peer,
    members: Option<Members>,
    memory: WriteMemory,
    room: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// There is none.
    Idle,
    Waiting,
    /// The message is there.
    Received {
        source: u32,
        tag: i32,
        bytes: u64,
    },
    /// It has become the receive with this request.
    Posted(u32),
}

impl Default for Expected {
    fn default() -> Self {
        Self {
            turns: 0,
            stage: Stage::Idle,
            pattern: Pattern {
                context: 0,
                source: None,
                tag: None,
            },
            peer: 0,
            members: None,
            memory: WriteMemory::EMPTY,
            room: 0,
        }
    }
}

impl State {
    #[inline]
    fn waits_directly(&self, peer: Peer, envelope: &Envelope) -> bool {
        let direct = &self.direct;
        // A message in the name of another one is kept, and found out when the receive that it fits is an ordinary one.
        let is_for = || match &direct.members {
            Some(members) => members.names(envelope.source, peer),
            None => direct.peer == peer,
        };
        direct.stage == Stage::Waiting && direct.pattern.fits(envelope) && is_for()
    }

    /// Gives a message that no posted receive matches to the direct one, if it matches that.
    #[inline]
    pub(crate) fn fill_directly(&mut self, peer: Peer, envelope: &Envelope, data: &[u8]) -> bool {
        if !self.waits_directly(peer, envelope) {
            return false;
        }
        let direct = &mut self.direct;
        let wanted = data.len().min(direct.room as usize);
        direct.memory.write(0, &data[..wanted]);
        direct.stage = Stage::Received {
            source: envelope.source,
            tag: envelope.tag,
            bytes: data.len() as u64,
        };
        self.events += 1;
        true
    }

    /// Gives a whole message to the receive that it matched, if that is a plain one with room.
    #[inline]
    pub(crate) fn fill_plainly(&mut self, index: u32, envelope: &Envelope, data: &[u8]) -> bool {
        let slot = self.requests.slot_mut(index);
        let Task::Plain(plain) = &mut slot.task else {
            return false;
        };
        if data.len() as u64 > plain.room || slot.detached {
            return false;
        }
        plain.memory.write(0, data);
        slot.completion.source = envelope.source;
        slot.completion.tag = envelope.tag;
        slot.completion.bytes = data.len() as u64;
        // Nothing else in it needs to be dropped.
        plain.memory = WriteMemory::EMPTY;
        std::mem::forget(std::mem::replace(&mut slot.task, Task::Nothing));
        slot.done = true;
        self.events += 1;
        true
    }

    /// If this message matches the direct receive, that becomes an ordinary one: its memory is needed before all of the message is there.
    #[cold]
    pub(crate) fn post_direct(&mut self, peer: Peer, envelope: &Envelope) {
        if !self.waits_directly(peer, envelope) {
            return;
        }
        let Expected {
            pattern,
            peer: from,
            room,
            ..
        } = self.direct;
        let members = self.direct.members.take();
        let memory = std::mem::replace(&mut self.direct.memory, WriteMemory::EMPTY);
        let buffer = ReceiveBuffer::contiguous(memory, 0, room);
        let index = self
            .requests
            .insert(Task::Receive(ReceiveTask::new(buffer, from, members)));
        let posted = self.matcher.post(pattern, index);
        if let Some(task) = self.requests.receive(index) {
            task.stage = ReceiveStage::Posted(posted);
        }
        self.direct.stage = Stage::Posted(index);
    }
}

impl Engine {
    /// Begins to receive directly, if that is possible; [`Engine::end_directly`] must follow before the engine is unlocked.
    #[inline]
    pub(crate) fn begin_directly(
        &mut self,
        channel: &Channel,
        from: Option<u32>,
        tag: Option<i32>,
        memory: WriteMemory,
        room: u64,
    ) -> bool {
        let state = &mut self.state;
        let pattern = Pattern {
            context: channel.context,
            source: from,
            tag,
        };
        if !state.reasons.is_empty() || state.matcher.find(&pattern).is_some() {
            return false;
        }
        let (peer, members) = match from {
            Some(rank) => (channel.members.peer(rank), None),
            None => (NONE, Some(channel.members.clone())),
        };
        state.direct = Expected {
            turns: state.direct.turns,
            stage: Stage::Waiting,
            pattern,
            peer,
            members,
            memory,
            room,
        };
        true
    }

    /// Looks for its message where that comes from, and every so many times (see [`OFTEN`]) for everything else too; always for everything where
    /// anybody may have sent it. True if anything happened.
    #[inline]
    pub(crate) fn progress_directly(&mut self) -> bool {
        let state = &mut self.state;
        state.direct.turns = state.direct.turns.wrapping_add(1);
        let peer = state.peers.get(state.direct.peer as usize);
        match peer.and_then(|peer| self.transports.get_mut(peer.route as usize)) {
            Some(transport) if state.direct.turns % OFTEN != 0 => {
                let any = transport.poll(state);
                any | self.work()
            }
            _ => self.progress(),
        }
    }

    /// Ends the direct receive.
    #[inline]
    pub(crate) fn end_directly(&mut self) -> Direct {
        let direct = &mut self.state.direct;
        match std::mem::replace(&mut direct.stage, Stage::Idle) {
            Stage::Received { source, tag, bytes } => Direct::Received(Received {
                source,
                tag,
                bytes,
                room: direct.room,
            }),
            Stage::Posted(index) => Direct::Posted(self.state.requests.name(index)),
            Stage::Idle | Stage::Waiting => Direct::Nothing,
        }
    }
}
