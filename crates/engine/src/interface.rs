// SPDX-License-Identifier: Apache-2.0
//! What others call: messages and operations, and which machine does them.

use isthmus_datatype::raw::WriteMemory;
use isthmus_schedule::Operation as What;
use isthmus_schedule::step::{Plan, Together};
use isthmus_transport::Peer;
use isthmus_transport::sharing::Sharing;

use crate::base::notes::Made;
use crate::base::requests::Owner;
use crate::engine::plans;
use crate::groups::rows::slots::Slots;
use crate::groups::state::{Groups, give_back};
use crate::groups::{Cut, Taker};
use crate::mismatch::Which;
use crate::mismatch::asking::{note_made, passes};
use crate::p2p::Core;
use crate::p2p::Outbound;
use crate::p2p::{cancel, receive, send};
use crate::partitioned;
use crate::plans::Hands;
use crate::vendor::Vendor;
use crate::{
    Arrived, Binding, Channel, Engine, EngineError, MatchedMessage, Mode, NativeComm, NativeOperation, Next, Operation,
    ReceiveBuffer, Request, SendBuffer, Sent, Shared,
};

/// Rounds of progress in which what somebody sent before it was gone is taken in.
const LAST_LOOKS: u32 = 1000;

/// Messages: those of a channel that is a vendor MPI underneath are that MPI's.
impl Engine {
    /// Sends if that is possible at once: `Ok(None)` means that the message has left or is kept, and the buffer may be
    /// reused.
    /// `Ok(Some(request))`: it takes longer; wait for the request. Saves the request for most short messages.
    #[inline]
    pub fn send(
        &mut self,
        channel: &Channel,
        to: u32,
        tag: i32,
        mode: Mode,
        buffer: SendBuffer,
    ) -> Result<Option<Request>, EngineError> {
        let outbound = Outbound::new(channel, to, tag, mode, buffer);
        // A buffered one is complete at once.
        let outbound = outbound.waits(mode != Mode::Buffered);
        if channel.special.is_any() {
            let sent = self.vendor.send(&mut self.core, channel, to, outbound)?;
            return Ok(sent.map(|index| self.core.state.requests().name(index)));
        }
        let sent = send::send(&mut self.core, outbound)?;
        if sent.is_some() {
            self.work();
        }
        Ok(sent)
    }

    /// Starts a send. Failures are found in the completion.
    pub fn isend(&mut self, channel: &Channel, to: u32, tag: i32, mode: Mode, buffer: SendBuffer) -> Request {
        let outbound = Outbound::new(channel, to, tag, mode, buffer);
        if channel.special.is_any() {
            return self.vendor.isend(&mut self.core, channel, to, outbound);
        }
        let request = send::isend(&mut self.core, outbound);
        self.work();
        request
    }

    /// Starts a receive; `None` as source or tag: any.
    #[inline]
    pub fn irecv(&mut self, channel: &Channel, from: Option<u32>, tag: Option<i32>, buffer: ReceiveBuffer) -> Request {
        if channel.special.is_any() {
            let index = self.vendor.receive(&mut self.core, channel, from, tag, buffer);
            return self.core.state.requests().name(index);
        }
        let request = receive::irecv(&mut self.core, channel, from, tag, buffer);
        self.work();
        request
    }

    /// Starts a receive of one process into one piece of memory, if nothing stands in the way: what most nonblocking
    /// receives are. `None`: nothing was done; [`Engine::irecv`] knows all other cases. Only where all processes
    /// represent data alike, and not on a channel of a vendor MPI.
    #[inline]
    pub fn irecv_plainly(
        &mut self,
        channel: &Channel,
        from: u32,
        tag: Option<i32>,
        memory: WriteMemory,
        room: u64,
    ) -> Option<Request> {
        let request = receive::irecv_plainly(&mut self.core, channel, from, tag, memory, room)?;
        // Of a message that was here its sender may wait to hear.
        self.work();
        Some(request)
    }

    /// The first message that such a receive would match, if it is there. Call [`Engine::progress`] before
    /// (`Shared::wait` does). Fails when nobody is left who could send it.
    pub fn iprobe(
        &mut self,
        channel: &Channel,
        from: Option<u32>,
        tag: Option<i32>,
    ) -> Result<Option<Arrived>, EngineError> {
        if channel.special.is_any() {
            let found = self.vendor.probe(channel, from, tag, false)?;
            return Ok(found.map(|(_, arrived)| arrived));
        }
        receive::iprobe(&mut self.core, channel, from, tag)
    }

    /// As [`Engine::iprobe`], and takes the message off the queue: only [`Engine::imrecv`] can receive it then.
    pub fn improbe(
        &mut self,
        channel: &Channel,
        from: Option<u32>,
        tag: Option<i32>,
    ) -> Result<Option<(MatchedMessage, Arrived)>, EngineError> {
        if channel.special.is_any() {
            return self.vendor.probe(channel, from, tag, true);
        }
        receive::improbe(&mut self.core, channel, from, tag)
    }

    /// Starts to receive a message that was taken off the queue.
    /// A message that does not exist (received already) gives a request that has failed.
    pub fn imrecv(&mut self, message: MatchedMessage, buffer: ReceiveBuffer) -> Request {
        if message.is_native() {
            return self.vendor.receive_taken(&mut self.core, message, buffer);
        }
        let request = receive::imrecv(&mut self.core, message, buffer);
        self.work();
        request
    }

    /// Cancels a receive or send that has not matched yet; it completes as cancelled. Anything else goes on as if
    /// nothing had been said.
    pub fn cancel(&mut self, request: Request) {
        match self.core.owner(request) {
            Some((Owner::Vendor, index)) => self.vendor.cancel(index),
            _ => cancel::cancel(&mut self.core, request),
        }
        self.work();
    }

    /// Cancels a send that has no request: gives it one, which completes as cancelled or not.
    pub fn cancel_sent(&mut self, sent: Sent) -> Request {
        let request = cancel::cancel_sent(&mut self.core, sent);
        self.work();
        request
    }

    /// Forgets the request; what it began goes on (MPI_Request_free).
    pub fn release(&mut self, request: Request) {
        if let Some((Owner::Partitioned, index)) = self.core.owner(request) {
            self.partitioned.released(index);
        }
        self.core.release(request);
    }

    /// These peers are gone, as somebody says who knows: everything that waits for one of them fails.
    pub fn lose_peers(&mut self, peers: impl IntoIterator<Item = Peer>, reason: &str) {
        // Whoever is gone may have done its part before: what is there to be received counts. Others may go on sending.
        for _ in 0..LAST_LOOKS {
            if !self.progress() {
                break;
            }
        }
        for peer in peers {
            self.core.lose(peer, reason.into());
        }
        self.work();
    }

    /// Partitioned messages.
    pub fn partitioned(&mut self) -> Partitions<'_> {
        Partitions(self)
    }
}

/// Operations of groups.
impl Engine {
    /// Starts this process's part of a collective operation. `sequence`: number of the operation within the
    /// communicator, equal on all members, below 2^16. Messages travel in the context `channel.context + 1`. `next` is
    /// called when the plan has ended and may give another plan for the same request. The first error of a step is the
    /// error of the request.
    pub fn start_plan(
        &mut self,
        channel: &Channel,
        operation: Operation,
        sequence: u32,
        plan: Box<dyn Plan>,
        binding: Binding,
        next: Option<Next>,
    ) -> Request {
        // The caller has looked before it had the engine; nobody ends what begins after the word that it was revoked.
        if channel.special.is_revoked() {
            let index = self.core.failed(EngineError::Revoked);
            return self.core.state.requests().name(index);
        }
        let (plans, mut hands) = plans!(self);
        let request = plans.start(&mut hands, channel, operation, sequence, plan, binding, next);
        self.work();
        request
    }

    /// Starts a collective operation of a vendor MPI.
    pub fn start_natively(
        &mut self,
        channel: &Channel,
        operation: Operation,
        sequence: u32,
        native: NativeOperation,
    ) -> Request {
        self.vendor.start(&mut self.core, channel, operation, sequence, native)
    }

    /// The vendor MPI underneath.
    pub fn underneath(&mut self) -> Underneath<'_> {
        Underneath(&mut self.vendor)
    }

    /// The order of operations where the members of the group meet.
    #[inline]
    pub fn turns<'a>(&'a mut self, channel: &'a Channel) -> Turns<'a> {
        Turns {
            core: &mut self.core,
            groups: &mut self.groups,
            channel,
        }
    }

    /// Memory of groups.
    pub fn slabs(&mut self) -> Slabs<'_> {
        Slabs {
            core: &mut self.core,
            groups: &mut self.groups,
        }
    }
}

/// A vendor MPI underneath ([`Engine::underneath`]).
pub struct Underneath<'a>(&'a mut Vendor);

impl Underneath<'_> {
    /// Whether there is one with communicators of its own.
    pub fn is_there(&self) -> bool {
        self.0.is_there()
    }

    /// A communicator of these peers; collective over them, and blocks: all of them are about to call this.
    pub fn create(self, peers: &[Peer], tag: i32) -> Result<Option<NativeComm>, EngineError> {
        self.0.create(peers, tag)
    }

    /// A communicator that is not the other MPI's is about to be: its messages need progress of ours for good.
    pub fn mix(self) {
        self.0.mix();
    }
}

/// Turns of the operations of a group where its members meet ([`Engine::turns`]).
pub struct Turns<'a> {
    core: &'a mut Core,
    groups: &'a mut Groups,
    channel: &'a Channel,
}

impl Turns<'_> {
    /// How many operations of the group this process has begun where its members meet.
    pub fn taken(self) -> u64 {
        self.groups.turns_taken(self.channel)
    }

    /// An operation of the group takes its turn that needs no step together, because no member has any data.
    pub fn take(self, what: What) {
        self.groups.take_turn(self.core, self.channel, what, Taker::Empty);
    }

    /// The same for one in which this process has no part, while others may have one: they hear that it is over here.
    /// `is_empty`: as far as this process knows, no member has any data.
    pub fn leave_out(self, what: What, (operation, sequence): (Operation, u32), is_empty: bool) {
        let taker = if is_empty { Taker::Empty } else { Taker::Program(None) };
        self.groups.take_turn(self.core, self.channel, what, taker);
        let (state, which) = (
            &mut self.core.state,
            Which::new(self.channel.context, sequence & 0xffff),
        );
        passes(state, self.channel, which, operation);
    }

    /// The same for one that is waited for as this request, with the bytes of which all members must say the same
    /// number, if there are such.
    pub fn take_with(self, what: What, request: Request, amount: Option<u64>) {
        let taker = Taker::Program(Some((request, amount)));
        self.groups.take_turn(self.core, self.channel, what, taker);
    }

    /// The same for one of the library's own, by which a communicator is made or a file opened.
    pub fn take_to_set_up(self, what: What, request: Request) {
        self.groups
            .take_turn(self.core, self.channel, what, Taker::Library(request));
    }

    /// The same for a persistent operation that is made, by a call of this name: all members make theirs in the same
    /// order. Where the members do not meet, they can ask for it. `in_memory`: they agree on memory for it now.
    pub fn take_to_make(self, what: What, made: Made, call: Operation, in_memory: bool) {
        self.groups.take_turn_to_make(self.core, self.channel, what, in_memory);
        note_made(&mut self.core.state, self.channel, made, call);
    }

    /// A persistent operation is started in which this process has no part: whoever waits for it hears that.
    pub fn pass(self, operation: Operation, number: u32) {
        let which = Which::new(self.channel.context, number & 0xffff);
        passes(&mut self.core.state, self.channel, which, operation);
    }

    /// A persistent operation of the group was started as this request.
    pub fn watch(self, request: Request) {
        self.groups.watch_turns(self.core, self.channel, request);
    }
}

/// Blocks that do not go through cells in an operation of blocks that may differ in length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongBlocks {
    longest: u64,
    moved: Option<u64>,
}

impl LongBlocks {
    /// Bytes of the longest block that goes through cells.
    pub fn longest(&self) -> u64 {
        self.longest
    }

    /// Blocks of so many bytes and more are moved straight from memory to memory, where that is possible.
    pub fn moved(&self) -> Option<u64> {
        self.moved
    }

    /// Whether a block of so many bytes goes in a message.
    pub fn is_sent(&self, bytes: u64) -> bool {
        bytes > self.longest && self.moved.is_none_or(|moved| bytes < moved)
    }
}

/// Memory in which groups meet ([`Engine::frames`]).
pub struct Slabs<'a> {
    core: &'a mut Core,
    groups: &'a mut Groups,
}

impl<'a> Slabs<'a> {
    /// Memory of windows, and of other processes of this machine, if there is a transport that has it.
    pub fn sharing(self) -> Option<&'a mut dyn Sharing> {
        let mut transports = self.core.transports.iter_mut();
        transports.find_map(|transport| transport.sharing())
    }

    /// Whether this process and these others share memory in which groups meet.
    pub fn are_shared_with(self, peers: impl IntoIterator<Item = Peer>) -> bool {
        let slabs = self.groups.slabs(self.core);
        slabs.is_some_and(|slabs| peers.into_iter().all(|peer| slabs.is_near(peer)))
    }

    /// Whether the blocks of a step of all members fit into short cells or those of words. The same at all members.
    pub fn are_enough_when_short(self, channel: &Channel, step: &Together, binding: &Binding) -> bool {
        let (members, unit) = (channel.members.count(), binding.unit_bytes());
        self.groups.slabs(self.core).is_some_and(|slabs| {
            let cut = Cut::new(slabs, step.what, members, step.block * unit, unit, true);
            cut.is_short()
        })
    }

    /// What goes how in an operation of blocks that may differ in length. The same at all members. `None`: all goes in
    /// messages.
    pub fn long_blocks(self, channel: &Channel, what: What) -> Option<LongBlocks> {
        channel.slab?;
        let (slabs, members) = (self.groups.slabs(self.core)?, channel.members.count());
        let slots = Slots::of(slabs, what, members)?;
        Some(LongBlocks {
            longest: slots.longest(),
            moved: slots.moved(what, members),
        })
    }

    /// Whether steps together go on in a frame.
    pub fn is_in_use(&self, slab: u32) -> bool {
        self.groups.uses(self.core, slab)
    }

    /// Memory for a group of so many processes of this node, if there is some left. One of them takes it and tells the
    /// others, and all of them [open](Frames::open) it.
    pub fn take(self, members: u32) -> Option<u32> {
        self.groups.slabs(self.core)?.take_slab(members)
    }

    /// From now on a new group uses the memory.
    pub fn open(self, slab: u32) {
        self.groups.open(self.core, slab);
    }

    /// The group's memory is used by this process no longer.
    pub fn give_back(self, slab: u32) {
        give_back(self.groups, self.core, slab);
    }
}

/// Partitioned messages ([`Engine::partitioned`]).
pub struct Partitions<'a>(&'a mut Engine);

impl Partitions<'_> {
    /// MPI_Psend_init. The result names no operation; give it to [`Partitions::psend_start`] and in the end to
    /// [`Engine::release`].
    pub fn psend_init(self, channel: &Channel, to: u32, tag: i32) -> Request {
        let Engine { core, partitioned, .. } = &mut *self.0;
        let request = partitioned.psend_init(core, channel, to, tag);
        self.0.work();
        request
    }

    /// MPI_Precv_init. The result names no operation; give it to [`Partitions::precv_start`] and in the end to
    /// [`Engine::release`].
    pub fn precv_init(self, channel: &Channel, from: u32, tag: i32) -> Request {
        let Engine { core, partitioned, .. } = &mut *self.0;
        let request = partitioned.precv_init(core, channel, from, tag);
        self.0.work();
        request
    }

    /// MPI_Start of a partitioned send of `partitions` equal parts.
    pub fn psend_start(self, outlet: Request, buffer: SendBuffer, partitions: u32) -> Request {
        let Engine { core, partitioned, .. } = &mut *self.0;
        let request = partitioned.psend_start(core, outlet, buffer, partitions);
        self.0.work();
        request
    }

    /// MPI_Start of a partitioned receive of `partitions` equal parts.
    pub fn precv_start(self, inlet: Request, buffer: ReceiveBuffer, partitions: u32) -> Request {
        let Engine { core, partitioned, .. } = &mut *self.0;
        let request = partitioned.precv_start(core, inlet, buffer, partitions);
        self.0.work();
        request
    }

    /// MPI_Pready: the partition of a send that was started may leave. Fails if it was marked before or is none.
    pub fn pready(self, request: Request, partition: u32) -> Result<(), EngineError> {
        partitioned::pready(&mut self.0.core, request, partition)?;
        self.0.work();
        Ok(())
    }

    /// MPI_Parrived: whether a partition of a receive that was started has arrived. A request that has ended: yes.
    pub fn parrived(&self, request: Request, partition: u32) -> bool {
        partitioned::parrived(&self.0.core, request, partition)
    }
}

/// The same message in memory of the library, which is used again when it has left. Others may make progress while it
/// is copied.
pub fn in_own_memory(engine: &Shared, mut message: SendBuffer) -> SendBuffer {
    let length = isize::try_from(message.length()).ok();
    let Some(memory) = length.and_then(|length| engine.lock().plans.spare().take(0, length)) else {
        return message.into_owned();
    };
    message.read_into(&memory);
    let copy = message.with_data(memory.reading());
    engine.lock().plans.spare().give_back(memory);
    copy
}
