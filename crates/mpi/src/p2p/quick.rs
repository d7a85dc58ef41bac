// SPDX-License-Identifier: Apache-2.0
//! Messages that need not wait for anything and about which nothing is unusual: called by threads that take turns, data
//! in one piece, arguments without a mistake. Whatever is unusual takes the longer way, which knows all cases and names
//! what is wrong.

use std::ffi::c_int;

use isthmus_abi::Status;
use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::comm::Comm;
use isthmus_core::p2p::{self, Receiver, Sender};
use isthmus_core::world::World;
use isthmus_engine::{Direct, Mode, Request, Sent};

use super::Envelope;
use crate::c::{Out, Source, Target};
use crate::process::Process;
use crate::request::{Started, give_status, insert_quick, null_status};
use crate::{check, comm, datatype, process};

/// A message of which all is known.
struct Usual {
    world: &'static World,
    /// Who gets it, or sends it.
    partner: Receiver<'static>,
    /// Of the data, which lie where the buffer begins.
    length: u64,
}

/// Its communicator, and the length of its data.
#[inline(always)]
fn solid(message: &Envelope, address: usize) -> Option<(&'static Process, &'static Comm, u64)> {
    let process = process::of_turns()?;
    let comm = comm::known(process, message.comm)?;
    let count = u64::try_from(message.count).ok()?;
    let length = datatype::solid_bytes(message.datatype, count)?;
    let is_usual = length == 0 || check::is_memory(address);
    is_usual.then_some((process, comm, length))
}

#[inline(always)]
fn usual(message: &Envelope, address: usize) -> Option<Usual> {
    let (process, comm, length) = solid(message, address)?;
    let rank = u32::try_from(message.rank).ok().filter(|rank| *rank < comm.peers())?;
    let tag = message.tag;
    (tag >= 0).then_some(Usual {
        world: process.world(),
        partner: Receiver { comm, rank, tag },
        length,
    })
}

impl Usual {
    #[inline(always)]
    fn send(&self, buffer: Source) -> bool {
        let memory = buffer.memory(0, self.length as i64);
        p2p::send_briefly(self.world, self.partner, &memory, self.length)
    }
}

/// An error: what of the receive has begun, if anything has.
#[inline(always)]
fn receive(
    world: &World,
    from: Sender<'static>,
    length: u64,
    buffer: Target,
    status: Out<Status>,
) -> Result<(), Option<Direct>> {
    let memory = buffer.memory(0, length as i64);
    match p2p::receive_briefly(world, from, memory, length) {
        Some(Direct::Received(message)) if message.bytes == length => {
            let (source, bytes) = (message.source as c_int, message.bytes as i64);
            give_status(status, Status::new(source, message.tag, bytes));
            Ok(())
        }
        begun => Err(begun),
    }
}

/// Sends what leaves at once. An error: nothing was done.
#[inline(always)]
pub(super) fn send(mode: Mode, buffer: Source, to: &Envelope) -> Result<(), ()> {
    let usual = usual(to, buffer.address()).filter(|_| matches!(mode, Mode::Standard));
    let is_over = usual.is_some_and(|usual| usual.send(buffer)) || goes_to_nobody(to, buffer.address());
    if is_over { Ok(()) } else { Err(()) }
}

/// Who sends what is wanted, and its tag; `None` in their place: anybody, any.
type Wanted = (Option<u32>, Option<i32>);

#[inline(always)]
fn wanted(comm: &Comm, from: &Envelope) -> Option<Wanted> {
    let rank = match from.rank {
        abi::MPI_ANY_SOURCE => None,
        rank => Some(u32::try_from(rank).ok().filter(|rank| *rank < comm.peers())?),
    };
    match from.tag {
        abi::MPI_ANY_TAG => Some((rank, None)),
        tag => (tag >= 0).then_some((rank, Some(tag))),
    }
}

/// Receives the message that is here, or comes while this thread polls. An error: what has begun, if anything has.
#[inline(always)]
pub(super) fn recv(buffer: Target, from: &Envelope, status: Out<Status>) -> Result<(), Option<Direct>> {
    let (process, comm, length) = solid(from, buffer.address()).ok_or(None)?;
    let Some((rank, tag)) = wanted(comm, from) else {
        return from_nobody(comm, from, status).ok_or(None);
    };
    receive(process.world(), Sender { comm, rank, tag }, length, buffer, status)
}

/// What is left of a send and a receive.
#[derive(Default)]
pub(super) enum Left {
    #[default]
    Both,
    /// As [`recv`] leaves it.
    Receive(Option<Direct>),
}

/// Sends what leaves at once and receives what comes then, if both are as usual. The two may have the same buffer: what
/// leaves has been copied.
#[inline(always)]
pub(super) fn sendrecv(
    out: Source,
    to: &Envelope,
    into: Target,
    from: &Envelope,
    status: Out<Status>,
) -> Result<(), Left> {
    let (process, comm, length) = solid(from, into.address()).ok_or(Left::Both)?;
    let wanted = wanted(comm, from);
    if wanted.is_none() && !comes_from_nobody(comm, from) {
        return Err(Left::Both);
    }
    if !usual(to, out.address()).is_some_and(|send| send.send(out)) && !goes_to_nobody(to, out.address()) {
        return Err(Left::Both);
    }
    let Some((rank, tag)) = wanted else {
        give_status(status, null_status());
        return Ok(());
    };
    receive(process.world(), Sender { comm, rank, tag }, length, into, status).map_err(Left::Receive)
}

/// Whether a receive without a mistake is from MPI_PROC_NULL, as at the edge of a grid, where nobody has revoked the
/// communicator.
#[inline(never)]
fn comes_from_nobody(comm: &Comm, from: &Envelope) -> bool {
    let is_tag = from.tag >= 0 || from.tag == abi::MPI_ANY_TAG;
    from.rank == abi::MPI_PROC_NULL && is_tag && !comm.channel().special.is_any()
}

/// Ends such a receive.
#[inline(never)]
fn from_nobody(comm: &Comm, from: &Envelope, status: Out<Status>) -> Option<()> {
    comes_from_nobody(comm, from).then(|| give_status(status, null_status()))
}

/// The same of a send, to MPI_PROC_NULL.
#[inline(never)]
fn goes_to_nobody(to: &Envelope, address: usize) -> bool {
    to.rank == abi::MPI_PROC_NULL
        && to.tag >= 0
        && solid(to, address).is_some_and(|(_, comm, _)| !comm.channel().special.is_any())
}

/// Starts a send that leaves at once. An error: nothing was done.
#[inline(always)]
pub(super) fn isend(mode: Mode, buffer: Source, to: &Envelope, request: Out<h::Request>) -> Result<(), ()> {
    let is_for_this = matches!(mode, Mode::Standard) && !request.is_null();
    let Some(usual) = usual(to, buffer.address()).filter(|_| is_for_this) else {
        return isend_to_nobody(buffer.address(), to, request);
    };
    let memory = buffer.memory(0, usual.length as i64);
    let sent = match p2p::isend_briefly(usual.world, usual.partner, &memory, usual.length) {
        Some(sent) => sent,
        None => isend_beside_others(&usual, buffer),
    };
    let sent = sent.ok_or(())?;
    usual.world.engine().watch();
    request.put(insert_quick(to.comm, Started::Sent(sent)));
    Ok(())
}

#[inline(never)]
fn isend_to_nobody(address: usize, to: &Envelope, request: Out<h::Request>) -> Result<(), ()> {
    if request.is_null() || !goes_to_nobody(to, address) {
        return Err(());
    }
    request.put(insert_quick(to.comm, Started::Over));
    Ok(())
}

#[inline(never)]
fn isend_beside_others(usual: &Usual, buffer: Source) -> Option<Sent> {
    let memory = buffer.memory(0, usual.length as i64);
    p2p::isend_piece(usual.world, usual.partner, &memory, usual.length)
}

/// Starts a receive into one piece of memory. An error: nothing was done.
#[inline(always)]
pub(super) fn irecv(buffer: Target, from: &Envelope, request: Out<h::Request>) -> Result<(), ()> {
    let Some(usual) = usual(from, buffer.address()).filter(|_| !request.is_null()) else {
        return irecv_from_nobody(buffer.address(), from, request);
    };
    let memory = buffer.memory(0, usual.length as i64);
    let started = match p2p::irecv_briefly(usual.world, usual.partner, memory, usual.length) {
        Some(started) => started,
        None => irecv_beside_others(&usual, buffer),
    };
    let started = started.ok_or(())?;
    usual.world.engine().watch();
    request.put(insert_quick(from.comm, Started::Receive(started)));
    Ok(())
}

#[inline(never)]
fn irecv_from_nobody(address: usize, from: &Envelope, request: Out<h::Request>) -> Result<(), ()> {
    let (_, comm, _) = solid(from, address).filter(|_| !request.is_null()).ok_or(())?;
    if !comes_from_nobody(comm, from) {
        return Err(());
    }
    request.put(insert_quick(from.comm, Started::FromNobody));
    Ok(())
}

#[inline(never)]
fn irecv_beside_others(usual: &Usual, buffer: Target) -> Option<Request> {
    let (Receiver { comm, rank, tag }, memory) = (usual.partner, buffer.memory(0, usual.length as i64));
    p2p::irecv_piece(usual.world, comm, rank, Some(tag), memory, usual.length)
}
