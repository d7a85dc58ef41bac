// SPDX-License-Identifier: Apache-2.0
//! Point-to-point communication (MPI 5.0 chapter 3). Every function has a twin with a large count, `_c`.

use std::ffi::c_int;

use isthmus_abi::Status;
use isthmus_abi::handles as h;
use isthmus_core::comm::Comm;
use isthmus_core::error::{Error, Result};
use isthmus_core::p2p::{self, Source as From};
use isthmus_engine::{Completion, Direct, Engine, Mode, ReceiveBuffer, SendBuffer};

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
    comm: &'a Comm,
    to: u32,
    tag: i32,
    data: SendBuffer,
}

/// A receive with its arguments checked.
struct Inbound<'a> {
    comm: &'a Comm,
    source: Option<u32>,
    tag: Option<i32>,
    room: ReceiveBuffer,
}

/// Checks the arguments of a send; `None`: to MPI_PROC_NULL.
#[inline(always)]
fn outbound(buffer: Source, to: Envelope) -> Result<Option<Outbound<'static>>> {
    let comm = comm::find(to.comm)?;
    let tag = p2p::send_tag(to.tag)?;
    let destination = p2p::destination(comm, to.rank)?;
    let data = sending(buffer, to.count, to.datatype)?;
    let data = marked(data, comm, to.datatype)?;
    Ok(destination.map(|to| Outbound { comm, to, tag, data }))
}

/// Checks the arguments of a receive; `None`: from MPI_PROC_NULL.
#[inline(always)]
fn inbound(buffer: Target, from: Envelope) -> Result<Option<Inbound<'static>>> {
    let comm = comm::find(from.comm)?;
    let tag = p2p::receive_tag(from.tag)?;
    let source = p2p::source(comm, from.rank)?;
    let room = receiving(buffer, from.count, from.datatype)?;
    let room = described(room, comm, buffer, from.count, from.datatype)?;
    Ok(match source {
        From::Nobody => None,
        From::From(source) => Some(Inbound {
            comm,
            source,
            tag,
            room,
        }),
    })
}

impl Outbound<'_> {
    /// In buffered mode the message must fit into an attached buffer; the copy itself is the engine's.
    #[inline(always)]
    fn charged(mut self, mode: Mode) -> Result<Self> {
        if mode == Mode::Buffered {
            let charge = attached::charge(self.comm, self.data.length())?;
            self.data = self.data.charged(charge);
        }
        Ok(self)
    }

    fn start(self, mode: Mode) -> Result<isthmus_engine::Request> {
        let message = self.charged(mode)?;
        let mut engine = process::world()?.engine().lock();
        Ok(engine.isend(message.comm.channel(), message.to, message.tag, mode, message.data))
    }
}

impl Inbound<'_> {
    fn start(self) -> Result<Operation> {
        let mut engine = process::world()?.engine().lock();
        let request = engine.irecv(self.comm.channel(), self.source, self.tag, self.room);
        Ok(Operation::Receive(request))
    }
}

/// Blocking send.
fn send(mode: Mode, buffer: Source, to: Envelope) -> Result<()> {
    if mode == Mode::Standard && !process::unlike() {
        let comm = comm::find(to.comm)?;
        if comm.is_native() {
            return send_there(comm, buffer, to);
        }
        let at_once =
            |engine: &mut Engine, comm: &Comm, to, tag, data: &[u8]| engine.send_at_once(comm.channel(), to, tag, data);
        if try_at_once(buffer, &to, at_once)? == Some(true) {
            return Ok(());
        }
    }
    send_in_time(mode, buffer, to)
}

/// Blocking send on a communicator of the vendor MPI.
#[inline]
fn send_there(comm: &Comm, buffer: Source, to: Envelope) -> Result<()> {
    let tag = p2p::send_tag(to.tag)?;
    let (Some(destination), Some(data)) = (p2p::destination(comm, to.rank)?, piece(buffer, to.count, to.datatype)?)
    else {
        return send_in_time(Mode::Standard, buffer, to);
    };
    let sent = process::world()?
        .engine()
        .send_natively(comm.channel(), destination, tag, data);
    sent.map_err(|error| Error::from(&error))
}

/// Lets the engine try to send a message that lies in one piece, if it does.
#[inline(always)]
fn try_at_once<T>(
    buffer: Source,
    to: &Envelope,
    send: impl FnOnce(&mut Engine, &Comm, u32, i32, &[u8]) -> T,
) -> Result<Option<T>> {
    let comm = comm::find(to.comm)?;
    if comm.is_native() {
        return Ok(None);
    }
    let tag = p2p::send_tag(to.tag)?;
    let (Some(destination), Some((memory, length))) =
        (p2p::destination(comm, to.rank)?, piece(buffer, to.count, to.datatype)?)
    else {
        return Ok(None);
    };
    let mut engine = process::world()?.engine().lock();
    let sent = memory.with(0, length as usize, |data| {
        send(&mut engine, comm, destination, tag, data)
    });
    Ok(Some(sent))
}

#[inline(never)]
fn send_in_time(mode: Mode, buffer: Source, to: Envelope) -> Result<()> {
    let Some(message) = outbound(buffer, to)? else {
        return Ok(());
    };
    let message = message.charged(mode)?;
    process::world()?
        .engine()
        .send(message.comm.channel(), message.to, message.tag, mode, message.data)
        .map_err(|error| Error::from(&error))
}

fn isend(mode: Mode, buffer: Source, to: Envelope) -> Result<Operation> {
    if mode == Mode::Standard && !process::unlike() {
        let at_once = |engine: &mut Engine, comm: &Comm, to, tag, data: &[u8]| {
            engine.isend_at_once(comm.channel(), to, tag, data)
        };
        if let Some(Some(sent)) = try_at_once(buffer, &to, at_once)? {
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

/// Blocking receive.
fn recv(buffer: Target, from: Envelope, status: Out<Status>) -> Result<()> {
    if process::unlike() {
        return recv_in_time(buffer, from, status);
    }
    match recv_at_once(buffer, &from)? {
        Direct::Received(message) if message.bytes == message.room => {
            give_status(
                status,
                Status::new(message.source as c_int, message.tag, message.bytes as i64),
            );
            Ok(())
        }
        Direct::Received(message) => finish(&message.completion(), &from, message.room, status),
        Direct::Posted(request) => {
            let completion = process::world()?.engine().wait(|engine| engine.take(request));
            let room = receiving(buffer, from.count, from.datatype)?.length();
            finish(&completion, &from, room, status)
        }
        Direct::Nothing => recv_in_time(buffer, from, status),
    }
}

/// Receives a message into one piece of memory if it is the next thing that happens.
#[inline(always)]
fn recv_at_once(buffer: Target, from: &Envelope) -> Result<Direct> {
    let comm = comm::find(from.comm)?;
    let tag = p2p::receive_tag(from.tag)?;
    let (From::From(source), Some((memory, length))) =
        (p2p::source(comm, from.rank)?, room(buffer, from.count, from.datatype)?)
    else {
        return Ok(Direct::Nothing);
    };
    let engine = process::world()?.engine();
    if comm.is_native() {
        return Ok(engine.receive_natively(comm.channel(), source, tag, memory, length));
    }
    Ok(engine.receive_directly(comm.channel(), source, tag, memory, length))
}

#[inline(never)]
fn recv_in_time(buffer: Target, from: Envelope, status: Out<Status>) -> Result<()> {
    let Some(message) = inbound(buffer, from)? else {
        give_status(status, null_status());
        return Ok(());
    };
    let engine = process::world()?.engine();
    let room = message.room.length();
    let completion = engine.receive(message.comm.channel(), message.source, message.tag, message.room);
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
    let message = outbound(buffer, to)?.map(|m| (m.to, m.tag, m.data));
    let held = Held::of(to.comm);
    let starter = move || match &message {
        Some((to, tag, data)) => {
            let message = Outbound {
                comm: held.get()?,
                to: *to,
                tag: *tag,
                data: data.clone(),
            };
            message.start(mode).map(Operation::Send)
        }
        None => Ok(Operation::Done(Status::empty())),
    };
    request.set("request", request::insert_persistent(to.comm, Box::new(starter)))
}

/// A persistent receive.
fn recv_init(buffer: Target, from: Envelope, request: Out<h::Request>) -> Result<()> {
    request.set("request", h::MPI_REQUEST_NULL)?;
    let message = inbound(buffer, from)?.map(|m| (m.source, m.tag, m.room));
    let held = Held::of(from.comm);
    let starter = move || match &message {
        Some((source, tag, room)) => {
            let message = Inbound {
                comm: held.get()?,
                source: *source,
                tag: *tag,
                room: room.clone(),
            };
            message.start()
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
    let message = outbound(buffer.source(), out)?.map(|message| Outbound {
        // Sent from a copy, so that the buffer is free for what arrives.
        data: message.data.into_owned(),
        ..message
    });
    start_both(message, inbound(buffer, from)?)
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
