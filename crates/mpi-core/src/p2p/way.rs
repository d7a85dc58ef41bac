// SPDX-License-Identifier: Apache-2.0
//! How a message goes: one question for sends and receives, blocking or not.
//!
//! Most messages lie in one piece and between processes that represent data alike. Those may be over before their
//! function returns, without a request. `None` or [`Direct::Nothing`]: nothing was done, and the message goes the
//! general way, which knows all cases: pieces, modes, conversion, requests.

use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_engine::{Completion, Direct, Mode, ReceiveBuffer, Request, SendBuffer, Sent};

use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::world::World;

/// Who shall get a message.
#[derive(Clone, Copy, Debug)]
pub struct Receiver<'a> {
    /// The communicator of the message.
    pub comm: &'a Comm,
    /// In it.
    pub rank: u32,
    /// What the receiver looks for.
    pub tag: i32,
}

/// Whose message is received.
#[derive(Clone, Copy, Debug)]
pub struct Sender<'a> {
    /// The communicator of the message.
    pub comm: &'a Comm,
    /// In it; `None`: anybody's.
    pub rank: Option<u32>,
    /// `None`: any.
    pub tag: Option<i32>,
}

/// How a message in one piece goes, if the program has asked for nothing unusual.
enum SendPath {
    /// As one of the vendor MPI, where those of a communicator that was revoked find out.
    Vendor,
    /// Straight into the queue of its receiver, or straight from that of its sender.
    AtOnce,
    /// With a request: it may have to be converted.
    General,
}

#[inline(always)]
fn way(world: &World, comm: &Comm) -> SendPath {
    if world.unlike() {
        SendPath::General
    } else if comm.channel().special.is_any() {
        SendPath::Vendor
    } else {
        SendPath::AtOnce
    }
}

/// A blocking standard send of `length` bytes.
#[inline(always)]
pub fn send_piece(world: &World, to: Receiver<'_>, memory: &ReadMemory, length: u64) -> Option<Result<()>> {
    match way(world, to.comm) {
        SendPath::AtOnce => {
            let mut engine = world.engine().lock();
            let sent = memory.with(0, length as usize, |data| {
                engine.core.send_at_once(to.comm.channel(), to.rank, to.tag, data)
            });
            sent.then_some(Ok(()))
        }
        SendPath::Vendor => {
            let data = (memory.clone(), length);
            let sent = world.engine().send_natively(to.comm.channel(), to.rank, to.tag, data);
            Some(sent.map_err(|error| Error::from(&error)))
        }
        SendPath::General => None,
    }
}

/// A nonblocking standard send of `length` bytes.
#[inline(always)]
pub fn isend_piece(world: &World, to: Receiver<'_>, memory: &ReadMemory, length: u64) -> Option<Sent> {
    match way(world, to.comm) {
        SendPath::AtOnce => {
            let mut engine = world.engine().lock();
            memory.with(0, length as usize, |data| {
                engine.core.isend_at_once(to.comm.channel(), to.rank, to.tag, data)
            })
        }
        SendPath::Vendor | SendPath::General => None,
    }
}

/// Whether messages of this communicator go as most do.
#[inline(always)]
fn is_usual(world: &World, comm: &Comm) -> bool {
    !world.unlike() && !comm.channel().special.is_any()
}

/// A standard send of `length` bytes that leaves at once, in a process whose threads take turns and without any of the
/// library; false: nothing was done.
#[inline(always)]
pub fn send_briefly(world: &World, to: Receiver<'_>, memory: &ReadMemory, length: u64) -> bool {
    if !is_usual(world, to.comm) {
        return false;
    }
    let Some(mut engine) = world.engine().briefly() else {
        return false;
    };
    memory.with(0, length as usize, |data| {
        engine.core.send_at_once(to.comm.channel(), to.rank, to.tag, data)
    })
}

/// The same for a nonblocking one, which can be cancelled. `None`: it is no such process; of what did not leave at once
/// nothing was done.
#[inline(always)]
pub fn isend_briefly(world: &World, to: Receiver<'_>, memory: &ReadMemory, length: u64) -> Option<Option<Sent>> {
    if !is_usual(world, to.comm) {
        return None;
    }
    let mut engine = world.engine().briefly()?;
    Some(memory.with(0, length as usize, |data| {
        engine.core.isend_at_once(to.comm.channel(), to.rank, to.tag, data)
    }))
}

/// A blocking receive of at most `room` bytes in such a process; `None`: nothing was done.
#[inline(always)]
pub fn receive_briefly(world: &World, from: Sender<'_>, memory: WriteMemory, room: u64) -> Option<Direct> {
    let (engine, channel) = (world.engine(), from.comm.channel());
    match is_usual(world, from.comm) {
        true => engine.receive_alone(channel, from.rank, from.tag, memory, room),
        false => None,
    }
}

/// The beginning of a nonblocking receive. `None`: it is no such process; of what is unusual nothing was done.
#[inline(always)]
pub fn irecv_briefly(world: &World, from: Receiver<'_>, memory: WriteMemory, room: u64) -> Option<Option<Request>> {
    if !is_usual(world, from.comm) {
        return None;
    }
    let mut engine = world.engine().briefly()?;
    Some(engine.irecv_plainly(from.comm.channel(), from.rank, Some(from.tag), memory, room))
}

/// A blocking receive of at most `room` bytes, if it is the next thing that happens.
#[inline(always)]
pub fn receive_piece(world: &World, from: Sender<'_>, memory: WriteMemory, room: u64) -> Direct {
    let engine = world.engine();
    match way(world, from.comm) {
        SendPath::AtOnce => engine.receive_directly(from.comm.channel(), from.rank, from.tag, memory, room),
        SendPath::Vendor => engine.receive_natively(from.comm.channel(), from.rank, from.tag, memory, room),
        SendPath::General => Direct::Nothing,
    }
}

/// A nonblocking receive of at most `room` bytes of process `rank`; `tag`: `None`: any.
#[inline(always)]
pub fn irecv_piece(
    world: &World,
    comm: &Comm,
    rank: u32,
    tag: Option<i32>,
    memory: WriteMemory,
    room: u64,
) -> Option<Request> {
    match way(world, comm) {
        SendPath::AtOnce => {
            let mut engine = world.engine().lock();
            engine.irecv_plainly(comm.channel(), rank, tag, memory, room)
        }
        SendPath::Vendor | SendPath::General => None,
    }
}

/// Any blocking send.
pub fn send(world: &World, to: Receiver<'_>, mode: Mode, data: SendBuffer) -> Result<()> {
    let sent = world.engine().send(to.comm.channel(), to.rank, to.tag, mode, data);
    sent.map_err(|error| Error::from(&error))
}

/// Any nonblocking send.
pub fn isend(world: &World, to: Receiver<'_>, mode: Mode, data: SendBuffer) -> Request {
    let mut engine = world.engine().lock();
    engine.isend(to.comm.channel(), to.rank, to.tag, mode, data)
}

/// Any blocking receive.
pub fn receive(world: &World, from: Sender<'_>, room: ReceiveBuffer) -> Completion {
    world.engine().receive(from.comm.channel(), from.rank, from.tag, room)
}

/// Any nonblocking receive.
pub fn irecv(world: &World, from: Sender<'_>, room: ReceiveBuffer) -> Request {
    let mut engine = world.engine().lock();
    engine.irecv(from.comm.channel(), from.rank, from.tag, room)
}
