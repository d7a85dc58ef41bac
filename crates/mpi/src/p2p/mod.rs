// SPDX-License-Identifier: Apache-2.0
//! Point-to-point communication (MPI 5.0 chapter 3). Every function has a twin with a large count, `_c`.

use std::ffi::c_int;

use isthmus_abi::Status;
use isthmus_abi::handles as h;
use isthmus_core::comm::Comm;
use isthmus_core::error::{Error, Result, Subject};
use isthmus_core::p2p::{self, Receiver, Sender, Source as From};
use isthmus_engine::{Completion, Direct, Mode, ReceiveBuffer, SendBuffer, in_own_memory};

use crate::buffer::{described, marked, piece, receiving, room, sending, whole};
use crate::c::{Out, Source, Target};
use crate::check::Sided;
use crate::comm::Held;
use crate::request::{self, Operation, give_status, null_status, receive_status};
use crate::{attached, comm, process};

mod blocking;
mod nonblocking;
mod partitioned;
mod persistent;
mod quick;

/// A message and where it goes or comes from, as the program wrote it.
#[derive(Clone, Copy)]
struct Envelope {
    count: i64,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
}

// What makes these two is always inlined: they are too large to be handed over in registers, and copying them costs a
// short message a tenth of its latency.

/// A send with its arguments checked.
struct Outbound<'a> {
    to: Receiver<'a>,
    data: SendBuffer,
}

/// A receive with its arguments checked.
struct Inbound<'a> {
    from: Sender<'a>,
    room: ReceiveBuffer,
}

/// Who shall get a message; `None`: MPI_PROC_NULL.
#[inline(always)]
fn receiver(comm: &'static Comm, to: &Envelope) -> Result<Option<Receiver<'static>>> {
    let tag = p2p::send_tag(to.tag)?;
    let rank = p2p::destination(comm, to.rank)?;
    Ok(rank.map(|rank| Receiver { comm, rank, tag }))
}

/// Whose message is received; `None`: MPI_PROC_NULL's.
#[inline(always)]
fn sender(comm: &'static Comm, from: &Envelope) -> Result<Option<Sender<'static>>> {
    let tag = p2p::receive_tag(from.tag)?;
    Ok(match p2p::source(comm, from.rank)? {
        From::Nobody => None,
        From::From(rank) => Some(Sender { comm, rank, tag }),
    })
}

/// Checks the arguments of a send; `None`: to MPI_PROC_NULL.
#[inline(always)]
fn outbound(buffer: Source, to: Envelope) -> Result<Option<Outbound<'static>>> {
    let comm = comm::find(to.comm)?;
    let receiver = receiver(comm, &to)?;
    let data = sending(buffer, to.count, to.datatype)?;
    let data = marked(data, comm, to.datatype)?;
    Ok(receiver.map(|to| Outbound { to, data }))
}

/// Checks the arguments of a receive; `None`: from MPI_PROC_NULL.
#[inline(always)]
fn inbound(buffer: Target, from: Envelope) -> Result<Option<Inbound<'static>>> {
    let comm = comm::find(from.comm)?;
    let sender = sender(comm, &from)?;
    let room = receiving(buffer, from.count, from.datatype)?;
    let room = described(room, comm, buffer, from.count, from.datatype)?;
    Ok(sender.map(|from| Inbound { from, room }))
}

impl Outbound<'_> {
    /// In buffered mode the message must fit into an attached buffer; the copy itself is the engine's.
    #[inline(always)]
    fn charged(mut self, mode: Mode) -> Result<Self> {
        if mode == Mode::Buffered {
            let charge = attached::charge(self.to.comm, self.data.length())?;
            self.data = self.data.charged(charge);
        }
        Ok(self)
    }

    fn start(self, mode: Mode) -> Result<isthmus_engine::Request> {
        let message = self.charged(mode)?;
        Ok(p2p::isend(process::world()?, message.to, mode, message.data))
    }
}

impl Inbound<'_> {
    fn start(self) -> Result<Operation> {
        Ok(Operation::Receive(p2p::irecv(process::world()?, self.from, self.room)))
    }
}

/// Blocking send.
fn send(mode: Mode, buffer: Source, to: Envelope) -> Result<()> {
    let comm = comm::find(to.comm)?;
    let receiver = receiver(comm, &to)?;
    if let (Mode::Standard, Some(to), Some((memory, length))) = (mode, receiver, piece(buffer, to.count, to.datatype)?)
    {
        if let Some(sent) = p2p::send_piece(process::world()?, to, &memory, length) {
            return sent;
        }
    }
    send_in_time(mode, buffer, to)
}

#[inline(never)]
fn send_in_time(mode: Mode, buffer: Source, to: Envelope) -> Result<()> {
    let Some(message) = outbound(buffer, to)? else {
        return Ok(());
    };
    let message = message.charged(mode)?;
    p2p::send(process::world()?, message.to, mode, message.data)
}

fn isend(mode: Mode, buffer: Source, to: Envelope) -> Result<Operation> {
    let comm = comm::find(to.comm)?;
    let receiver = receiver(comm, &to)?;
    if let (Mode::Standard, Some(to), Some((memory, length))) = (mode, receiver, piece(buffer, to.count, to.datatype)?)
    {
        if let Some(sent) = p2p::isend_piece(process::world()?, to, &memory, length) {
            return Ok(Operation::Sent(sent));
        }
    }
    match outbound(buffer, to)? {
        Some(message) => message.start(mode).map(Operation::Send),
        None => Ok(Operation::Done(Status::empty())),
    }
}

fn irecv(buffer: Target, from: Envelope) -> Result<Operation> {
    match inbound(buffer, from)? {
        Some(message) => message.start(),
        None => Ok(Operation::Done(null_status())),
    }
}

/// Blocking receive, of which this has begun.
fn recv(begun: Option<Direct>, buffer: Target, from: Envelope, status: Out<Status>) -> Result<()> {
    match begun {
        Some(direct) => recv_rest(direct, buffer, from, status),
        None => recv_rest(recv_directly(buffer, from)?, buffer, from, status),
    }
}

/// Receives what is here, or comes while this thread polls.
fn recv_directly(buffer: Target, from: Envelope) -> Result<Direct> {
    let comm = comm::find(from.comm)?;
    let sender = sender(comm, &from)?;
    Ok(match (sender, room(buffer, from.count, from.datatype)?) {
        (Some(sender), Some((memory, room))) => p2p::receive_piece(process::world()?, sender, memory, room),
        _ => Direct::Nothing,
    })
}

/// Ends what was begun directly, or receives in the ordinary way what was not.
fn recv_rest(direct: Direct, buffer: Target, from: Envelope, status: Out<Status>) -> Result<()> {
    match direct {
        Direct::Received(message) if message.bytes == message.room => {
            give_status(
                status,
                Status::new(message.source as c_int, message.tag, message.bytes as i64),
            );
            Ok(())
        }
        Direct::Received(message) => finish(&message.completion(), &from, message.room, status),
        Direct::Posted(request) => {
            let completion = process::world()?.engine().wait(|engine| engine.core.take(request));
            let room = receiving(buffer, from.count, from.datatype)?.length();
            finish(&completion, &from, room, status)
        }
        Direct::Nothing => recv_in_time(buffer, from, status),
    }
}

#[inline(never)]
fn recv_in_time(buffer: Target, from: Envelope, status: Out<Status>) -> Result<()> {
    let Some(message) = inbound(buffer, from)? else {
        give_status(status, null_status());
        return Ok(());
    };
    let room = message.room.length();
    let completion = p2p::receive(process::world()?, message.from, message.room);
    finish(&completion, &from, room, status)
}

/// Ends a receive into `room` bytes; a truncated message has a status too.
#[inline(never)]
fn finish(completion: &Completion, from: &Envelope, room: u64, status: Out<Status>) -> Result<()> {
    give_status(status, receive_status(completion));
    if let Some(error) = &completion.error {
        return Err(error.into());
    }
    if completion.bytes == room {
        return Ok(());
    }
    whole(comm::find(from.comm)?, from.datatype, completion.bytes)
}

fn give(comm: h::Comm, request: Out<h::Request>, start: impl FnOnce() -> Result<Operation>) -> Result<()> {
    request.set("request", h::MPI_REQUEST_NULL)?;
    request.set("request", request::insert(comm, start()?))
}

/// A persistent send. Everything is checked and looked up here, once: the program may free communicator and datatype
/// before MPI_Start.
fn send_init(mode: Mode, buffer: Source, to: Envelope, request: Out<h::Request>) -> Result<()> {
    request.set("request", h::MPI_REQUEST_NULL)?;
    let message = outbound(buffer, to)?.map(|m| (m.to.rank, m.to.tag, m.data));
    let piece = piece(buffer, to.count, to.datatype)?.filter(|_| mode == Mode::Standard);
    let held = Held::of(to.comm);
    let starter = move || match &message {
        Some((rank, tag, data)) => {
            let to = Receiver {
                comm: held.get()?,
                rank: *rank,
                tag: *tag,
            };
            if let Some((memory, length)) = &piece {
                if let Some(sent) = p2p::isend_piece(process::world()?, to, memory, *length) {
                    return Ok(Operation::Sent(sent));
                }
            }
            let data = data.clone();
            Outbound { to, data }.start(mode).map(Operation::Send)
        }
        None => Ok(Operation::Done(Status::empty())),
    };
    request.set("request", request::insert_persistent(to.comm, Box::new(starter)))
}

/// A persistent receive.
fn recv_init(buffer: Target, from: Envelope, request: Out<h::Request>) -> Result<()> {
    request.set("request", h::MPI_REQUEST_NULL)?;
    let message = inbound(buffer, from)?.map(|m| (m.from.rank, m.from.tag, m.room));
    let piece = room(buffer, from.count, from.datatype)?;
    let held = Held::of(from.comm);
    let starter = move || match &message {
        Some((rank, tag, room)) => {
            let from = Sender {
                comm: held.get()?,
                rank: *rank,
                tag: *tag,
            };
            if let (Some((memory, bytes)), Some(rank)) = (&piece, rank) {
                let world = process::world()?;
                if let Some(request) = p2p::irecv_piece(world, from.comm, *rank, *tag, memory.clone(), *bytes) {
                    return Ok(Operation::Receive(request));
                }
            }
            let room = room.clone();
            Inbound { from, room }.start()
        }
        None => Ok(Operation::Done(null_status())),
    };
    request.set("request", request::insert_persistent(from.comm, Box::new(starter)))
}

/// Starts a receive and a send; all arguments are checked before either begins.
fn isendrecv(out: (Source, Envelope), into: (Target, Envelope)) -> Result<Operation> {
    start_both(outbound(out.0, out.1).of("send")?, inbound(into.0, into.1).of("recv")?)
}

fn isendrecv_replace(buffer: Target, out: Envelope, from: Envelope) -> Result<Operation> {
    // The tags are all that there are two of.
    let tag = |side: &'static str| {
        move |error: Error| match &error.subject {
            Subject::Argument(name) if name == "tag" => error.about(side),
            _ => error,
        }
    };
    let message = outbound(buffer.source(), out).map_err(tag("sendtag"))?;
    let room = inbound(buffer, from).map_err(tag("recvtag"))?;
    // Sent from a copy, so that the buffer is free for what arrives.
    let engine = process::world()?.engine();
    let from_copy = |message: Outbound<'static>| Outbound {
        data: in_own_memory(engine, message.data),
        ..message
    };
    start_both(message.map(from_copy), room)
}

fn start_both(message: Option<Outbound<'_>>, room: Option<Inbound<'_>>) -> Result<Operation> {
    let receive = match room {
        Some(room) => room.start()?,
        None => Operation::Done(null_status()),
    };
    let send = message.map(|message| message.start(Mode::Standard)).transpose()?;
    Ok(Operation::Pair(send, Box::new(receive)))
}

fn sendrecv(out: (Source, Envelope), into: (Target, Envelope), status: Out<Status>) -> Result<()> {
    request::finish(&isendrecv(out, into)?, status)
}

fn sendrecv_replace(buffer: Target, out: Envelope, from: Envelope, status: Out<Status>) -> Result<()> {
    request::finish(&isendrecv_replace(buffer, out, from)?, status)
}
