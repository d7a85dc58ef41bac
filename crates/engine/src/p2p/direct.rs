// SPDX-License-Identifier: Apache-2.0
//! The blocking receive of a message that arrives while its thread polls.
//!
//! Nearly all short messages are received so, and for them a request would cost more than everything else. There is one
//! such receive at most, since its thread keeps the engine while it polls, and it is the youngest of all: a message
//! that arrives is first offered to the posted receives. As soon as anything but its message happens it becomes an
//! ordinary receive.

use isthmus_datatype::raw::WriteMemory;
use isthmus_protocol::matching::{Context, Envelope, Pattern};
use isthmus_transport::Peer;

use crate::{Channel, Completion, EngineError, Members, ReceiveBuffer, Request};

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

/// A thread that waits for one message looks at all transports once in so many times: a local message costs the same
/// whatever other transports there are, and what comes by those waits for a microsecond more.
const OFTEN: u32 = 8;

/// The receive.
#[derive(Debug)]
pub(crate) struct Expected {
    /// Looks for messages, of all direct receives together.
    turns: u32,
    stage: Stage,
    pattern: Pattern,
    /// [`Peer::NONE`]: any of these.
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
    Posted(Request),
}

/// What becomes of a direct receive whose memory is needed before all of its message is there.
pub(crate) struct Ordinary {
    pattern: Pattern,
    buffer: ReceiveBuffer,
    peer: Peer,
    members: Option<Members>,
}

impl Ordinary {
    /// What it receives, into what, and from whom.
    pub(super) fn parts(self) -> (Pattern, ReceiveBuffer, Peer, Option<Members>) {
        (self.pattern, self.buffer, self.peer, self.members)
    }
}

impl Default for Expected {
    fn default() -> Self {
        Self {
            turns: 0,
            stage: Stage::Idle,
            pattern: Pattern {
                context: Context::default(),
                source: None,
                tag: None,
            },
            peer: Peer::NONE,
            members: None,
            memory: WriteMemory::EMPTY,
            room: 0,
        }
    }
}

impl Expected {
    /// Begins; [`Expected::end`] must follow before the engine is unlocked.
    #[inline]
    pub(crate) fn begin(&mut self, channel: &Channel, pattern: Pattern, memory: WriteMemory, room: u64) {
        let (peer, members) = match pattern.source {
            Some(rank) => (channel.members.peer(rank), None),
            None => (Peer::NONE, Some(channel.members.clone())),
        };
        *self = Self {
            turns: self.turns,
            stage: Stage::Waiting,
            pattern,
            peer,
            members,
            memory,
            room,
        };
    }

    /// Whose transport to look at this time; `None`: at everything, as every so many times ([`OFTEN`]), and always
    /// where anybody may have sent it.
    #[inline]
    pub(crate) fn next_look(&mut self) -> Option<Peer> {
        self.turns = self.turns.wrapping_add(1);
        (self.turns % OFTEN != 0).then_some(self.peer)
    }

    #[inline]
    fn waits_for(&self, peer: Peer, envelope: &Envelope) -> bool {
        // A message in the name of another one is kept, and found out when the receive that it fits is an ordinary one.
        let is_for = || match &self.members {
            Some(members) => members.names(envelope.source, peer),
            None => self.peer == peer,
        };
        self.stage == Stage::Waiting && self.pattern.fits(envelope) && is_for()
    }

    /// Takes a message that no posted receive matches, if it matches this one.
    #[inline]
    pub(crate) fn fill(&mut self, peer: Peer, envelope: &Envelope, data: &[u8]) -> bool {
        if !self.waits_for(peer, envelope) {
            return false;
        }
        let wanted = data.len().min(self.room as usize);
        self.memory.write(0, &data[..wanted]);
        self.stage = Stage::Received {
            source: envelope.source,
            tag: envelope.tag,
            bytes: data.len() as u64,
        };
        true
    }

    /// If this message matches, the receive becomes an ordinary one, of which [`Expected::is_posted`] tells.
    #[cold]
    pub(crate) fn become_ordinary(&mut self, peer: Peer, envelope: &Envelope) -> Option<Ordinary> {
        if !self.waits_for(peer, envelope) {
            return None;
        }
        let memory = std::mem::replace(&mut self.memory, WriteMemory::EMPTY);
        let buffer = ReceiveBuffer::contiguous(memory, 0, self.room);
        Some(Ordinary {
            pattern: self.pattern,
            buffer,
            peer: self.peer,
            members: self.members.take(),
        })
    }

    /// It is this request from now on.
    pub(crate) fn is_posted(&mut self, request: Request) {
        self.stage = Stage::Posted(request);
    }

    #[inline]
    pub(crate) fn end(&mut self) -> Direct {
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Received { source, tag, bytes } => Direct::Received(Received {
                source,
                tag,
                bytes,
                room: self.room,
            }),
            Stage::Posted(request) => Direct::Posted(request),
            Stage::Idle | Stage::Waiting => Direct::Nothing,
        }
    }
}
