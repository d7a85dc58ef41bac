// SPDX-License-Identifier: Apache-2.0
//! Messages that need not wait for anything and about which nothing is unusual: called by threads that take turns, data
//! in one piece, arguments without a mistake. Whatever is unusual takes the longer way, which knows all cases and names
//! what is wrong.

use isthmus_abi::handles as h;
use isthmus_core::comm::Comm;
use isthmus_core::p2p::{self, Receiver};

use super::Envelope;
use crate::c::{Out, Source, Target};
use crate::process::Process;
use crate::request::{Started, insert_quick};
use crate::{check, comm, datatype, process};

/// A message of which all is known.
struct Usual {
    process: &'static Process,
    comm: &'static Comm,
    rank: u32,
    tag: i32,
    /// Where the data begin behind the buffer's address, and their length.
    offset: isize,
    length: u64,
}

#[inline(always)]
fn usual(message: &Envelope, address: usize) -> Option<Usual> {
    let process = process::of_turns()?;
    let comm = comm::known(process, message.comm)?;
    let rank = u32::try_from(message.rank).ok().filter(|rank| *rank < comm.peers())?;
    let count = u64::try_from(message.count).ok()?;
    let (offset, length) = datatype::known(message.datatype)?.contiguous(count)?;
    let is_usual = message.tag >= 0 && (length == 0 || check::is_memory(address.wrapping_add_signed(offset)));
    is_usual.then_some(Usual {
        process,
        comm,
        rank,
        tag: message.tag,
        offset,
        length,
    })
}

/// Starts a send that leaves at once; false: nothing was done.
#[inline(always)]
pub(super) fn isend(buffer: Source, to: &Envelope, request: Out<h::Request>) -> bool {
    let Some(usual) = usual(to, buffer.address()).filter(|_| !request.is_null()) else {
        return false;
    };
    let memory = buffer.offset(usual.offset as i64).memory(0, usual.length as i64);
    let world = usual.process.world();
    let receiver = Receiver {
        comm: usual.comm,
        rank: usual.rank,
        tag: usual.tag,
    };
    let Some(sent) = p2p::isend_piece(world, receiver, &memory, usual.length) else {
        return false;
    };
    world.engine().watch();
    request.put(insert_quick(to.comm, Started::Sent(sent)));
    true
}

/// Sends what leaves at once, if what shall be received is as usual; false: nothing was done.
#[inline(always)]
pub(super) fn send_before(buffer: Source, to: &Envelope, room: Target, from: &Envelope) -> bool {
    let Some(usual) = usual(to, buffer.address()).filter(|_| usual(from, room.address()).is_some()) else {
        return false;
    };
    let memory = buffer.offset(usual.offset as i64).memory(0, usual.length as i64);
    let receiver = Receiver {
        comm: usual.comm,
        rank: usual.rank,
        tag: usual.tag,
    };
    p2p::isend_piece(usual.process.world(), receiver, &memory, usual.length).is_some()
}

/// Starts a receive of a message that is not there yet; false: nothing was done.
#[inline(always)]
pub(super) fn irecv(buffer: Target, from: &Envelope, request: Out<h::Request>) -> bool {
    let Some(usual) = usual(from, buffer.address()).filter(|_| !request.is_null()) else {
        return false;
    };
    let memory = buffer.offset(usual.offset as i64).memory(0, usual.length as i64);
    let world = usual.process.world();
    let Some(started) = p2p::irecv_piece(world, usual.comm, usual.rank, Some(usual.tag), memory, usual.length) else {
        return false;
    };
    world.engine().watch();
    request.put(insert_quick(from.comm, Started::Receive(started)));
    true
}
