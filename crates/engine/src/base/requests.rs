// SPDX-License-Identifier: Apache-2.0
//! The slab of requests.

use std::any::Any;
use std::time::Instant;

use isthmus_datatype::raw::{OwnMemory, ReadMemory, WriteMemory};
use isthmus_protocol::matching::{Envelope, Posted};
use isthmus_transport::{Lease, Peer};
use isthmus_wire::frame::Header;

use crate::base::buffer::Conversion;
use crate::p2p::parts::{Arrivals, Ready};
use crate::tools::waited::Awaited;
use crate::{Completion, Members, ReceiveBuffer, Request, SendBuffer};

/// No request.
pub(crate) const NONE: u32 = u32::MAX;

/// What lives as long as an operation that nobody waits for any more.
pub type Kept = Box<dyn Any + Send>;

/// What a request does.
#[derive(Debug)]
pub(crate) enum Task {
    /// Nothing any more.
    Nothing,
    Send(SendTask),
    Receive(ReceiveTask),
    /// A receive into one piece of memory to which nothing has happened yet: the next message usually ends it, and
    /// whoever else wants it makes an ordinary one of it ([`Requests::receive`]).
    Plain(PlainTask),
    /// A machine has it.
    Of(Owned),
    /// Somebody else completes it.
    User,
    /// A send that had completed; the peer was asked to throw the message away.
    Recall(Peer),
}

/// Machines that have requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Plans,
    Groups,
    Vendor,
    Partitioned,
    /// One that registered itself.
    Registered(u8),
}

/// What the core knows of a request that a machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) by: Owner,
    /// Progress may complete it.
    pub(crate) moves: bool,
    /// It can be given up at any time: nobody touches its memory any more when it has ended.
    pub(crate) can_be_left: bool,
}

impl Owned {
    /// One that moves, and must be let end by itself.
    pub(crate) fn by(by: Owner) -> Self {
        Self {
            by,
            moves: true,
            can_be_left: false,
        }
    }
}

impl Task {
    /// Takes back what was lent: whatever is done with the memory now, no transport reaches it any more.
    #[inline]
    pub(crate) fn take_back(&mut self) {
        match self {
            Self::Send(task) => task.lease = None,
            Self::Receive(task) => task.lease = None,
            _ => {}
        }
    }

    /// Whether progress may complete it: it moves data, or waits for an answer.
    #[inline]
    pub(crate) fn moves(&self) -> bool {
        match self {
            Self::Send(_) | Self::Receive(_) | Self::Plain(_) | Self::Recall(_) => true,
            Self::Of(owned) => owned.moves,
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
            Self::Of(owned) => Some(owned.by),
            _ => None,
        }
    }
}

/// What became of a step of a plan.
pub(crate) enum Outcome {
    Done,
    /// Runs as this request.
    Started(u32),
}

#[derive(Debug)]
pub(crate) struct SendTask {
    /// The memory that its transport reads by itself. First, so that it is out of reach before anything below is given
    /// back.
    pub(crate) lease: Option<Lease<ReadMemory>>,
    pub(crate) peer: Peer,
    /// Of the first frame; its kind is decided when it leaves.
    pub(crate) header: Header,
    pub(crate) synchronous: bool,
    /// The request has been complete from the beginning.
    pub(crate) buffered: bool,
    /// The peer was asked to throw the message away.
    pub(crate) recalled: bool,
    /// A thread waits until the message has left, so it can take part in moving it.
    pub(crate) waits: bool,
    /// What of a partitioned message may leave.
    pub(crate) parts: Option<Box<Ready>>,
    pub(crate) stage: SendStage,
    /// The peer was told where the message lies, and may be copying it.
    pub(crate) offered: bool,
    pub(crate) buffer: SendBuffer,
    /// How far an announced message is.
    pub(crate) announced: AnnouncedStage,
    /// The receiver's request, once it asked for data.
    pub(crate) receiver: u64,
    /// Bytes that the receiver wants.
    pub(crate) wanted: u64,
    /// Its transport expects them in bulk, and nothing else.
    pub(crate) bulk: bool,
    /// For these: data that do not lie in one piece.
    pub(crate) packed: Option<OwnMemory>,
    /// Bytes sent as data frames.
    pub(crate) sent: u64,
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
}

/// A message and its announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnnouncedStage {
    /// It was not announced.
    Never,
    Announced,
    /// The receiver has called it in before it matched.
    Called,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendStage {
    /// The first frame has not left.
    Queued,
    /// The receiver's answer (`Ack`, `Cts` or `Pulled`) is awaited.
    Waiting,
    /// Data frames are leaving.
    Streaming,
    /// The transport sends the data by itself.
    Bulk,
}

#[derive(Debug)]
pub(crate) struct ReceiveTask {
    /// The memory that its transport writes by itself. First, so that it is out of reach before anything below is given
    /// back.
    pub(crate) lease: Option<Lease<WriteMemory>>,
    pub(crate) buffer: ReceiveBuffer,
    pub(crate) stage: ReceiveStage,
    /// What of a partitioned message has arrived.
    pub(crate) parts: Option<Box<Arrivals>>,
    /// The sender: known if asked for by rank, or once matched; else [`Peer::NONE`].
    pub(crate) peer: Peer,
    /// Who could send: only for receives from any source.
    pub(crate) members: Option<Members>,
    /// Bytes that will be delivered.
    pub(crate) wanted: u64,
    pub(crate) got: u64,
    /// When its data were asked for, if that is of interest.
    pub(crate) since: Option<Instant>,
    /// What is done with the message once it is here, if its sender represents data differently.
    pub(crate) conversion: Option<Box<Conversion>>,
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
}

/// What a receive needs until its message comes.
#[derive(Clone, Debug)]
pub(crate) struct PlainTask {
    pub(crate) memory: WriteMemory,
    pub(crate) room: u64,
    pub(crate) peer: Peer,
    pub(crate) posted: Posted,
}

#[derive(Debug)]
pub(crate) enum ReceiveStage {
    /// Partitioned: the sender's name for the messages is not known yet.
    Unposted,
    Posted(Posted),
    /// Matched a request to send of this token, with this handle.
    Answering {
        token: u64,
        handle: Box<[u8]>,
    },
    /// Matched an announced message that was called in before; its data are on their way to the memory of the engine.
    Called(Box<Called>),
    /// Data frames arrive.
    Streaming,
    /// The transport takes the data to their place by itself: data frames have no business here.
    Expected,
    /// An eager message is being read into the buffer.
    Placing,
}

/// What a receive knows of its message that is being called in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Called {
    pub(crate) envelope: Envelope,
    pub(crate) common: bool,
    /// The sender's request, if it waits to hear that the message matched; else 0.
    pub(crate) acknowledge: u64,
}

#[derive(Debug)]
pub(crate) struct Slot {
    generation: u32,
    pub(crate) done: bool,
    /// Nobody will ask: freed on completion.
    pub(crate) detached: bool,
    /// The plan it is a step of, or [`NONE`].
    pub(crate) owner: u32,
    pub(crate) step: u32,
    /// Whom an eager message went to, or [`Peer::NONE`].
    pub(crate) sent_to: Peer,
    /// Context of that message.
    pub(crate) sent_in: u32,
    pub(crate) completion: Completion,
    pub(crate) task: Task,
}

#[derive(Debug, Default)]
pub(crate) struct Requests {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Sends that are not complete.
    pub(crate) sends: usize,
    /// What is kept for requests that were released.
    kept: Vec<(u32, Kept)>,
}

impl Requests {
    #[inline]
    pub(crate) fn insert(&mut self, task: Task) -> u32 {
        if let Some(index) = self.free.pop() {
            let before = std::mem::replace(&mut self.slots[index as usize].task, task);
            debug_assert!(matches!(before, Task::Nothing));
            // There is nothing in it that would have to be dropped.
            std::mem::forget(before);
            return index;
        }
        let completion = Completion::default();
        self.slots.push(Slot {
            generation: 1,
            done: false,
            detached: false,
            owner: NONE,
            step: 0,
            sent_to: Peer::NONE,
            sent_in: 0,
            completion,
            task,
        });
        (self.slots.len() - 1) as u32
    }

    /// A request without a task.
    #[inline]
    pub(crate) fn vacant(&mut self) -> u32 {
        match self.free.pop() {
            Some(index) => index,
            None => self.insert(Task::Nothing),
        }
    }

    /// An eager message has left whole.
    #[inline]
    pub(crate) fn left(&mut self, index: u32, to: Peer, context: u32) {
        let slot = &mut self.slots[index as usize];
        slot.sent_to = to;
        slot.sent_in = context;
    }

    /// A request without a task becomes a send.
    pub(crate) fn set_send(&mut self, index: u32, task: SendTask) {
        self.sends += 1;
        self.slots[index as usize].task = Task::Send(task);
    }

    #[inline]
    pub(crate) fn name(&self, index: u32) -> Request {
        Request::new(index, self.slots[index as usize].generation)
    }

    #[inline]
    pub(crate) fn token(&self, index: u32) -> u64 {
        self.name(index).to_raw()
    }

    /// The index if the name is not stale.
    #[inline]
    pub(crate) fn index(&self, request: Request) -> Option<u32> {
        let slot = self.slots.get(request.index() as usize)?;
        (slot.generation == request.generation()).then_some(request.index())
    }

    #[inline]
    pub(crate) fn slot(&self, index: u32) -> &Slot {
        &self.slots[index as usize]
    }

    #[inline]
    pub(crate) fn slot_mut(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }

    #[inline]
    pub(crate) fn send(&mut self, index: u32) -> Option<&mut SendTask> {
        match &mut self.slots.get_mut(index as usize)?.task {
            Task::Send(task) => Some(task),
            _ => None,
        }
    }

    /// Whether this receive is for messages that this peer sends in the name of this rank.
    #[inline]
    pub(crate) fn is_for(&self, index: u32, peer: Peer, source: u32) -> bool {
        match &self.slots[index as usize].task {
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
        let task = &mut self.slots.get_mut(index as usize)?.task;
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
        true
    }

    /// There are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.len() == self.free.len()
    }

    /// Whether any request needs messages that the engine itself sends or receives. `others`: requests that certainly
    /// do not. Looks through all if there are more.
    #[inline]
    pub(crate) fn any_of_ours(&self, others: usize) -> bool {
        self.slots.len() - self.free.len() > others && self.is_any_of_ours()
    }

    fn is_any_of_ours(&self) -> bool {
        let ours = |slot: &Slot| slot.task.moves() && slot.task.owner() != Some(Owner::Vendor);
        self.slots.iter().any(ours)
    }

    /// Sends of which nothing more can leave before their receivers answer.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = &SendTask> {
        self.slots.iter().filter_map(|slot| match &slot.task {
            Task::Send(task) if task.stage == SendStage::Waiting => Some(task),
            _ => None,
        })
    }

    pub(crate) fn indices(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.slots.len() as u32
    }

    /// Frees the slot and gives its completion.
    #[inline]
    pub(crate) fn remove(&mut self, index: u32) -> Completion {
        let slot = &mut self.slots[index as usize];
        let completion = std::mem::take(&mut slot.completion);
        if !matches!(slot.task, Task::Nothing) {
            slot.task = Task::Nothing;
        }
        self.discard(index);
        if !self.kept.is_empty() {
            self.let_go(index);
        }
        completion
    }

    /// Keeps something until the request is gone.
    pub(crate) fn keep(&mut self, index: u32, kept: Kept) {
        self.kept.push((index, kept));
    }

    #[cold]
    fn let_go(&mut self, index: u32) {
        self.kept.retain(|(of, _)| *of != index);
    }

    /// Frees the slot of a request that has completed without an error and without a task.
    #[inline]
    pub(crate) fn discard(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        debug_assert!(matches!(slot.task, Task::Nothing) && slot.completion.error.is_none());
        slot.generation = slot.generation.wrapping_add(2);
        slot.done = false;
        slot.detached = false;
        slot.owner = NONE;
        slot.sent_to = Peer::NONE;
        slot.completion.source = 0;
        slot.completion.tag = 0;
        slot.completion.bytes = 0;
        self.free.push(index);
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
