// SPDX-License-Identifier: Apache-2.0
//! Communicators that are, underneath, communicators of a vendor MPI ([`isthmus_transport::native`]).
//!
//! Their messages never meet our matching: that MPI matches them, any source and any tag included, because nobody else
//! can send to such a communicator. Requests, statuses and errors stay ours. Data that do not lie in one piece go
//! through memory in between.
//!
//! Collective operations: [`crate::vendor::native_collective`]. Blocking sends and receives block in that MPI where all
//! processes of the job are that MPI's and all communicators are ([`Engine::mix`]), and nobody waits for this process:
//! elsewhere a process that waits for a message has to move others meanwhile.

use isthmus_datatype::raw::{OwnMemory, ReadMemory, WriteMemory};
use isthmus_transport::Peer;
use isthmus_transport::native::{self, Created, Native, Pattern};

use crate::base::buffer::SendForm;
use crate::base::requests::{Owned, Owner};
use crate::machine::Machine;
use crate::p2p::Core;
use crate::p2p::Outbound;
use crate::p2p::Task;
use crate::p2p::direct::{Direct, Received};
use crate::p2p::send::count;
use crate::vendor::{Held, NativeComm, NativeTask, Vendor, vendor_error};
use crate::{
    Arrived, Channel, Completion, EngineError, MatchedMessage, Mode, Operation, ReceiveBuffer, Request, SendBuffer,
};

/// Marks messages of the other MPI among those that were taken out of the matching.
const TAKEN: u32 = 1 << 31;

impl MatchedMessage {
    pub(crate) fn is_native(self) -> bool {
        self.0 & TAKEN != 0
    }
}

impl NativeComm {
    /// For [`Channel::special`].
    pub fn name(&self) -> u64 {
        self.name
    }

    /// Whether all members are on one node, so that they know when all have come to a blocking collective operation.
    pub fn is_near(&self) -> bool {
        self.near
    }
}

impl Drop for NativeComm {
    fn drop(&mut self) {
        let mut freed = self.freed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        freed.push(self.name);
    }
}

impl Machine for Vendor {
    /// Completes requests of the other MPI.
    #[inline]
    fn advance(&mut self, core: &mut Core) -> bool {
        !self.waiting.is_empty() && self.complete(core)
    }

    fn is_flushed(&self) -> bool {
        self.sends == 0
    }
}

impl Vendor {
    /// How many sends the other MPI has not completed.
    pub(crate) fn unfinished(&self) -> usize {
        self.sends
    }

    #[inline]
    pub(crate) fn get(&mut self) -> Result<&mut dyn Native, EngineError> {
        match &mut self.native {
            Some(native) => Ok(&mut **native),
            None => Err(EngineError::Misuse {
                what: "a communicator of a machine's own MPI without that MPI",
            }),
        }
    }
}

impl Vendor {
    /// From now on on top of this; `alone`: all processes of the job are.
    pub(crate) fn attach(&mut self, native: Box<dyn Native>, alone: bool) {
        self.native = Some(native);
        self.alone = alone;
    }

    /// A communicator that is not the other MPI's is about to be: its messages need progress of ours for good.
    pub(crate) fn mix(&mut self) {
        self.alone = false;
    }

    /// Whether a blocking send or receive may block in the other MPI.
    #[inline]
    pub(crate) fn may_block(&self, core: &Core) -> bool {
        self.alone && !self.is_waited_for(core)
    }

    /// Whether there is a vendor MPI with communicators of its own.
    pub(crate) fn is_there(&self) -> bool {
        self.native.is_some()
    }

    /// A communicator of these peers; collective over them, and blocks: all of them are about to call this.
    pub(crate) fn create(&mut self, peers: &[Peer], tag: i32) -> Result<Option<NativeComm>, EngineError> {
        let freed = self.freed.clone();
        let old = std::mem::take(&mut *freed.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        let (in_use, old): (Vec<u64>, Vec<u64>) = old.into_iter().partition(|&comm| self.is_used_by_collectives(comm));
        let native = self.get()?;
        for comm in old {
            native.release(comm);
        }
        let mut later = freed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        later.extend(in_use);
        drop(later);
        let made = native.create(peers, tag).map_err(vendor_error)?;
        self.alone &= made.is_some();
        Ok(made.map(|Created { comm: name, near }| NativeComm { name, near, freed }))
    }

    /// Sends; the message has left (`None`) or has a request now.
    pub(crate) fn send(
        &mut self,
        core: &mut Core,
        channel: &Channel,
        to: u32,
        outbound: Outbound,
    ) -> Result<Option<u32>, EngineError> {
        usable(channel)?;
        let (header, mode, buffer) = outbound.into_message();
        let buffered = mode == Mode::Buffered;
        let buffer = if buffered { buffer.into_owned() } else { buffer };
        let (memory, buffer) = readable(buffer);
        let sent = self.get()?.send(
            channel.special.name(),
            &memory,
            header.length,
            to,
            header.tag,
            mode == Mode::Synchronous,
        );
        let Some(request) = sent.map_err(vendor_error)? else {
            return Ok(None);
        };
        self.sends += 1;
        let index = self.wait_for(core, request, 0, Held::Send(buffer, memory));
        if buffered {
            core.state.requests_mut().slot_mut(index).set_done(true);
            core.state.happened();
        }
        Ok(Some(index))
    }

    /// A blocking send out of one piece of memory; what has not left has a request.
    #[inline]
    pub(crate) fn send_piece(
        &mut self,
        core: &mut Core,
        channel: &Channel,
        to: u32,
        tag: i32,
        (memory, length): (ReadMemory, u64),
    ) -> Result<Option<Request>, EngineError> {
        usable(channel)?;
        count(core, Operation::POINT_TO_POINT, channel.members.peer(to), length);
        let blocks = self.may_block(core);
        let native = self.get()?;
        if blocks {
            let sent = native.send_now(channel.special.name(), &memory, length, to, tag);
            return sent.map(|()| None).map_err(vendor_error);
        }
        let sent = native.send(channel.special.name(), &memory, length, to, tag, false);
        let Some(request) = sent.map_err(vendor_error)? else {
            return Ok(None);
        };
        self.sends += 1;
        let held = Held::Send(SendBuffer::EMPTY, memory);
        let index = self.wait_for(core, request, 0, held);
        Ok(Some(core.state.requests().name(index)))
    }

    pub(crate) fn isend(&mut self, core: &mut Core, channel: &Channel, to: u32, outbound: Outbound) -> Request {
        let index = match self.send(core, channel, to, outbound) {
            Ok(Some(index)) => index,
            sent => {
                let index = core.state.requests_mut().insert(Task::Nothing);
                match sent {
                    Ok(_) => core.state.finish(index),
                    Err(error) => core.state.fail(index, error),
                }
                index
            }
        };
        core.state.requests().name(index)
    }

    /// Whether collective operations that were started on a communicator are not over.
    pub(crate) fn is_used_by_collectives(&self, comm: u64) -> bool {
        let mut waiting = self.waiting.iter();
        waiting.any(|task| match &task.held {
            Held::Collective(running) => running.comm == comm,
            Held::Step(step) => step.comm == comm,
            Held::Send(..) | Held::Placed | Held::Staged(..) => false,
        })
    }

    pub(crate) fn wait_for(&mut self, core: &mut Core, request: u64, room: u64, held: Held) -> u32 {
        let index = core.own(Owned::by(Owner::Vendor));
        self.waiting.push(NativeTask {
            index,
            request,
            room,
            held,
        });
        index
    }

    /// Starts to receive.
    pub(crate) fn receive(
        &mut self,
        core: &mut Core,
        channel: &Channel,
        from: Option<u32>,
        tag: Option<i32>,
        buffer: ReceiveBuffer,
    ) -> u32 {
        if let Err(error) = usable(channel) {
            return core.failed(error);
        }
        let (room, pattern) = (buffer.length(), pattern(channel, from, tag));
        let (memory, held) = writable(buffer);
        let received = match self.get() {
            Ok(native) => native.receive(&pattern, &memory, room, 1).map_err(vendor_error),
            Err(error) => Err(error),
        };
        match received {
            Ok(Err(request)) => self.wait_for(core, request, room, held),
            Ok(Ok(arrival)) => {
                let task = NativeTask {
                    index: core.own(Owned::by(Owner::Vendor)),
                    request: 0,
                    room,
                    held,
                };
                let index = task.index;
                self.arrived(core, task, &arrival);
                index
            }
            Err(error) => core.failed(error),
        }
    }

    /// Receives into one piece of memory, looking so many times, or until the message is there.
    #[inline]
    pub(crate) fn receive_soon(
        &mut self,
        core: &mut Core,
        channel: &Channel,
        from: Option<u32>,
        tag: Option<i32>,
        memory: WriteMemory,
        (room, rounds): (u64, u32),
    ) -> Direct {
        if usable(channel).is_err() {
            return Direct::Nothing;
        }
        let (pattern, blocks) = (pattern(channel, from, tag), self.may_block(core));
        let Some(native) = &mut self.native else {
            return Direct::Nothing;
        };
        let received = if blocks {
            native.receive_now(&pattern, &memory, room).map(Ok)
        } else {
            native.receive(&pattern, &memory, room, rounds)
        };
        match received {
            Ok(Ok(arrival)) => Direct::Received(Received {
                source: arrival.source,
                tag: arrival.tag,
                bytes: arrival.bytes.unwrap_or(u64::MAX),
                room,
            }),
            Ok(Err(request)) => {
                let index = self.wait_for(core, request, room, Held::Placed);
                Direct::Posted(core.state.requests().name(index))
            }
            Err(text) => {
                let index = core.failed(vendor_error(text));
                Direct::Posted(core.state.requests().name(index))
            }
        }
    }

    /// What a message is before it is received.
    pub(crate) fn probe(
        &mut self,
        channel: &Channel,
        from: Option<u32>,
        tag: Option<i32>,
        take: bool,
    ) -> Result<Option<(MatchedMessage, Arrived)>, EngineError> {
        usable(channel)?;
        let pattern = pattern(channel, from, tag);
        let Some(found) = self.get()?.probe(&pattern, take).map_err(vendor_error)? else {
            return Ok(None);
        };
        let arrived = Arrived {
            source: found.source,
            tag: found.tag,
            bytes: found.bytes.unwrap_or(0),
            form: None,
        };
        let mut name = MatchedMessage(TAKEN);
        if take {
            let taken = &mut self.taken;
            let at = taken.iter().position(Option::is_none).unwrap_or(taken.len());
            if at == taken.len() {
                taken.push(None);
            }
            taken[at] = Some(found.message);
            name = MatchedMessage(TAKEN | at as u32);
        }
        Ok(Some((name, arrived)))
    }

    /// Starts to receive a message of the other MPI that was taken out of its matching.
    pub(crate) fn receive_taken(&mut self, core: &mut Core, message: MatchedMessage, buffer: ReceiveBuffer) -> Request {
        let at = (message.0 & !TAKEN) as usize;
        let name = self.taken.get_mut(at).and_then(Option::take);
        let room = buffer.length();
        let (memory, held) = writable(buffer);
        let started = match (name, &mut self.native) {
            (Some(name), Some(native)) => native.receive_taken(name, &memory, room).map_err(vendor_error),
            _ => Err(EngineError::Misuse {
                what: "this matched message has been received already",
            }),
        };
        let index = match started {
            Ok(request) => self.wait_for(core, request, room, held),
            Err(error) => core.failed(error),
        };
        core.state.requests().name(index)
    }

    /// Asks to cancel a receive; a send goes on.
    pub(crate) fn cancel(&mut self, index: u32) {
        let task = self.waiting.iter().find(|task| task.index == index);
        if let (Some(native), Some(task)) = (&mut self.native, task) {
            if !matches!(task.held, Held::Send(..)) {
                native.cancel(task.request);
            }
        }
    }

    #[inline(never)]
    fn complete(&mut self, core: &mut Core) -> bool {
        let (mut at, mut any) = (0, false);
        while let Some(task) = self.waiting.get(at) {
            let tested = match &mut self.native {
                Some(native) => native.test(task.request),
                None => Ok(None),
            };
            // In order: receives of one pattern complete in the order in which they were posted.
            match tested {
                Ok(None) => at += 1,
                Ok(Some(arrival)) => {
                    let task = self.waiting.remove(at);
                    self.arrived(core, task, &arrival);
                    any = true;
                }
                Err(text) => {
                    let task = self.waiting.remove(at);
                    core.state.fail(task.index, vendor_error(text));
                    any = true;
                }
            }
        }
        any
    }

    /// A request of the other MPI is complete.
    fn arrived(&mut self, core: &mut Core, task: NativeTask, arrival: &native::Arrival) {
        match task.held {
            Held::Send(..) => self.sends -= 1,
            Held::Collective(running) => self.over(core, running),
            Held::Step(step) => step.finish(),
            held => {
                let slot = core.state.requests_mut().slot_mut(task.index);
                *slot.completion_mut() = completion(arrival, task.room);
                if let Held::Staged(mut buffer, between) = held {
                    let bytes = slot.completion().bytes as usize;
                    between.reading().with(0, bytes, |data| buffer.write(0, data));
                }
            }
        }
        core.state.finish(task.index);
    }

    /// Whether others may wait for something that this process has begun and not ended outside the other MPI.
    #[inline(always)]
    pub(crate) fn is_waited_for(&self, core: &Core) -> bool {
        core.state.has_outgoing() || core.state.requests().any_of_ours(self.waiting.len())
    }
}

/// A revoked communicator takes the way of those of a vendor MPI, and ends here.
#[inline]
fn usable(channel: &Channel) -> Result<(), EngineError> {
    match channel.special.is_revoked() {
        false => Ok(()),
        true => Err(EngineError::Revoked),
    }
}

fn pattern(channel: &Channel, source: Option<u32>, tag: Option<i32>) -> Pattern {
    Pattern {
        comm: channel.special.name(),
        source,
        tag,
    }
}

fn completion(arrival: &native::Arrival, room: u64) -> Completion {
    let error = arrival.bytes.is_none().then_some(EngineError::Truncate {
        source: arrival.source,
        tag: arrival.tag,
        message: u64::MAX,
        buffer: room,
    });
    Completion {
        source: arrival.source,
        tag: arrival.tag,
        bytes: arrival.bytes.unwrap_or(room),
        cancelled: arrival.cancelled,
        error,
    }
}

/// Memory to send a message from, and the message.
fn readable(mut buffer: SendBuffer) -> (ReadMemory, SendBuffer) {
    if let SendForm::Contiguous(memory) = &buffer.form {
        return (memory.clone(), buffer);
    }
    let between = OwnMemory::new(0, buffer.length as isize);
    between
        .memory()
        .with_mut(0, buffer.length as usize, |bytes| buffer.read(0, bytes));
    (between.reading(), buffer)
}

/// Memory to receive a message into, and what becomes of it there.
fn writable(buffer: ReceiveBuffer) -> (WriteMemory, Held) {
    match buffer.memory() {
        Some(memory) => (memory, Held::Placed),
        None => {
            let between = OwnMemory::new(0, buffer.length() as isize);
            (between.memory(), Held::Staged(buffer, between))
        }
    }
}
