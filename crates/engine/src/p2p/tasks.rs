// SPDX-License-Identifier: Apache-2.0
//! Requests that are messages.

use isthmus_datatype::raw::WriteMemory;
use isthmus_protocol::matching::Envelope;
use isthmus_transport::Peer;
use isthmus_wire::frame::Header;

use crate::base::requests::{Does, Owner, Requests};
use crate::p2p::parts::{Arrivals, NotMarked, Ready};
use crate::p2p::{AnnouncedStage, PlainTask, ReceiveStage, ReceiveTask, SendStage, SendTask, Task};
use crate::tools::waited::Awaited;
use crate::{Members, ReceiveBuffer, SendBuffer};

impl Does for Task {
    const NOTHING: Self = Self::Nothing;

    #[inline(always)]
    fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

impl Task {
    /// Takes back what was lent: whatever is done with the memory now, no transport reaches it any more.
    #[inline]
    pub(crate) fn take_back(&mut self) {
        match self {
            Self::Send(task) => task.take_back(),
            Self::Receive(task) => task.take_back(),
            _ => {}
        }
    }

    /// Whether progress may complete it: it moves data, or waits for an answer.
    #[inline]
    pub(crate) fn moves(&self) -> bool {
        match self {
            Self::Send(_) | Self::Receive(_) | Self::Plain(_) | Self::Recall(_) => true,
            Self::Of(owned) => owned.moves(),
            Self::Nothing | Self::User => false,
        }
    }

    /// What whoever waits for it waits for.
    #[inline]
    pub(crate) fn awaited(&self) -> Awaited {
        match self.owner() {
            Some(Owner::Plans) => Awaited::Collective,
            Some(Owner::Groups) => Awaited::Together,
            _ => Awaited::Message,
        }
    }

    /// The machine that has it.
    #[inline]
    pub(crate) fn owner(&self) -> Option<Owner> {
        match self {
            Self::Of(owned) => Some(owned.owner()),
            _ => None,
        }
    }
}

impl Requests<Task> {
    /// Whether any request needs messages that the engine itself sends or receives. `others`: requests that certainly
    /// do not. Looks through all if there are more.
    #[inline]
    pub(crate) fn any_of_ours(&self, others: usize) -> bool {
        self.count() > others && self.is_any_of_ours()
    }

    fn is_any_of_ours(&self) -> bool {
        self.tasks()
            .any(|task| task.moves() && task.owner() != Some(Owner::Vendor))
    }

    /// A request without a task becomes a send.
    pub(crate) fn set_send(&mut self, index: u32, task: SendTask) {
        self.send_begins();
        *self.slot_mut(index).task_mut() = Task::Send(task);
    }

    #[inline]
    pub(crate) fn send(&mut self, index: u32) -> Option<&mut SendTask> {
        match self.get_mut(index)?.task_mut() {
            Task::Send(task) => Some(task),
            _ => None,
        }
    }

    /// Whether this receive is for messages that this peer sends in the name of this rank.
    #[inline]
    pub(crate) fn is_for(&self, index: u32, peer: Peer, source: u32) -> bool {
        match self.slot(index).task() {
            Task::Plain(task) => task.peer == peer,
            Task::Receive(task) => match &task.members {
                Some(members) => members.names(source, peer),
                None => task.peer == peer,
            },
            _ => false,
        }
    }

    /// A plain receive is an ordinary one from then on.
    #[inline]
    pub(crate) fn receive(&mut self, index: u32) -> Option<&mut ReceiveTask> {
        let task = self.get_mut(index)?.task_mut();
        if let Task::Plain(plain) = task {
            *task = Task::Receive(plain.clone().into());
        }
        match task {
            Task::Receive(task) => Some(task),
            _ => None,
        }
    }

    /// Gives a whole message to the receive that it matched, if that is a plain one with room.
    #[inline]
    pub(crate) fn fill_plainly(&mut self, index: u32, envelope: &Envelope, data: &[u8]) -> bool {
        let slot = self.slot_mut(index);
        let detached = slot.detached();
        let (task, completion) = slot.halves();
        let Task::Plain(plain) = task else {
            return false;
        };
        if data.len() as u64 > plain.room || detached {
            return false;
        }
        plain.memory.write(0, data);
        completion.source = envelope.source;
        completion.tag = envelope.tag;
        completion.bytes = data.len() as u64;
        // Nothing else in it needs to be dropped.
        plain.memory = WriteMemory::EMPTY;
        std::mem::forget(std::mem::replace(task, Task::Nothing));
        slot.set_done(true);
        true
    }

    /// Sends of which nothing more can leave before their receivers answer.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = &SendTask> {
        self.tasks().filter_map(|task| match task {
            Task::Send(task) if task.stage == SendStage::Waiting => Some(task),
            _ => None,
        })
    }
}

impl SendTask {
    /// A message of which nothing has left.
    pub(crate) fn new(peer: Peer, header: Header, buffer: SendBuffer) -> Self {
        Self {
            lease: None,
            peer,
            header,
            synchronous: false,
            buffered: false,
            recalled: false,
            waits: false,
            parts: None,
            stage: SendStage::Queued,
            offered: false,
            buffer,
            announced: AnnouncedStage::Never,
            receiver: 0,
            wanted: 0,
            bulk: false,
            packed: None,
            sent: 0,
        }
    }
    /// The same for one whose parts leave as they become ready.
    pub(crate) fn in_parts(peer: Peer, header: Header, buffer: SendBuffer, partitions: u32) -> Self {
        let parts = Ready::new(buffer.length(), partitions);
        Self {
            parts: Some(Box::new(parts)),
            ..Self::new(peer, header, buffer)
        }
    }

    /// Whether it is a partitioned message whose receiver has asked for its data.
    pub(crate) fn has_begun_in_parts(&self) -> bool {
        self.parts.as_ref().is_some_and(|parts| parts.are_cleared())
    }

    pub(crate) fn peer(&self) -> Peer {
        self.peer
    }

    /// What it is, as its receiver sees it, but for kind and token.
    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// A part of it may leave.
    pub(crate) fn mark(&mut self, partition: u32) -> Result<(), NotMarked> {
        let length = self.buffer.length();
        let parts = self.parts.as_mut().ok_or(NotMarked::NoSuch)?;
        parts.mark(partition, length)
    }

    /// Whatever is done with the memory now, no transport reaches it any more.
    #[inline]
    pub(crate) fn take_back(&mut self) {
        self.lease = None;
    }
}

impl ReceiveTask {
    pub(crate) fn new(buffer: ReceiveBuffer, peer: Peer, members: Option<Members>) -> Self {
        // The stage is set when the receive is posted or matches.
        Self {
            lease: None,
            buffer,
            stage: ReceiveStage::Streaming,
            parts: None,
            peer,
            members,
            wanted: 0,
            got: 0,
            since: None,
            conversion: None,
        }
    }
    /// A partitioned one from this peer, whose name for the messages is not known yet. `tag`: the user's.
    pub(crate) fn in_parts(buffer: ReceiveBuffer, peer: Peer, tag: i32, partitions: u32) -> Self {
        let parts = Arrivals::new(buffer.length(), partitions, tag);
        Self {
            parts: Some(Box::new(parts)),
            stage: ReceiveStage::Unposted,
            ..Self::new(buffer, peer, None)
        }
    }

    /// Whether it has matched a message.
    pub(crate) fn has_matched(&self) -> bool {
        !matches!(self.stage, ReceiveStage::Posted(_))
    }

    /// Whether a part of it has arrived.
    pub(crate) fn has(&self, partition: u32) -> bool {
        let Some(parts) = &self.parts else { return false };
        // What is converted when it is complete is not there before.
        let started = matches!(self.stage, ReceiveStage::Streaming) && self.conversion.is_none();
        started && parts.is_here(partition)
    }

    /// Whatever is done with the memory now, no transport reaches it any more.
    #[inline]
    pub(crate) fn take_back(&mut self) {
        self.lease = None;
    }
}

impl From<PlainTask> for ReceiveTask {
    fn from(plain: PlainTask) -> Self {
        let PlainTask {
            memory,
            room,
            peer,
            posted,
        } = plain;
        let buffer = ReceiveBuffer::contiguous(memory, 0, room);
        let stage = ReceiveStage::Posted(posted);
        Self {
            stage,
            ..Self::new(buffer, peer, None)
        }
    }
}
