// SPDX-License-Identifier: Apache-2.0
//! Point-to-point communication (MPI 5.0 chapter 3). Every function has a twin with a large count, `_c`.

use std::ffi::c_int;

use isthmus_abi::Status;
use isthmus_abi::handles as h;
use isthmus_core::error::{Error, Result};
use isthmus_core::p2p::{self, Source as From};
use isthmus_engine::{Completion, Mode};

use crate::buffer::{receiving, sending};
use crate::c::{Out, Source, Target};
use crate::request::{self, Operation, give_status, null_status, receive_status};
use crate::{comm, datatype, process};

mod blocking;
mod nonblocking;
mod persistent;

/// A message and where it goes or comes from, as the program wrote it.
#[derive(Clone, Copy)]
struct Envelope {
    count: i64,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
}

fn done() -> Operation {
    Operation::Done(Status::empty())
}

/// Blocking send.
#[inline]
fn send(mode: Mode, buffer: Source, to: Envelope) -> Result<()> {
    let comm = comm::find(to.comm)?;
    let tag = p2p::send_tag(to.tag)?;
    let destination = p2p::destination(comm, to.rank)?;
    let data = sending(buffer, to.count, to.datatype)?;
    let Some(destination) = destination else { return Ok(()) };
    reserve(mode, data.length())?;
    let engine = process::world()?.engine();
    engine
        .send(comm.channel(), destination, tag, mode, data)
        .map_err(|error| Error::from(&error))
}

/// Buffered mode needs an attached buffer that is large enough; the copy itself is the engine's.
fn reserve(mode: Mode, length: u64) -> Result<()> {
    if mode == Mode::Buffered {
        crate::attached::check(length)
    } else {
        Ok(())
    }
}

fn isend(mode: Mode, buffer: Source, to: Envelope) -> Result<Operation> {
    let comm = comm::find(to.comm)?;
    let tag = p2p::send_tag(to.tag)?;
    let destination = p2p::destination(comm, to.rank)?;
    let data = sending(buffer, to.count, to.datatype)?;
    let Some(destination) = destination else {
        return Ok(done());
    };
    reserve(mode, data.length())?;
    let mut engine = process::world()?.engine().lock();
    Ok(Operation::Other(engine.isend(
        comm.channel(),
        destination,
        tag,
        mode,
        data,
    )))
}

fn irecv(buffer: Target, from: Envelope) -> Result<Operation> {
    let comm = comm::find(from.comm)?;
    let tag = p2p::receive_tag(from.tag)?;
    let source = p2p::source(comm, from.rank)?;
    let room = receiving(buffer, from.count, from.datatype)?;
    let From::From(source) = source else {
        return Ok(Operation::Done(null_status()));
    };
    Ok(Operation::Receive(process::world()?.engine().lock().irecv(
        comm.channel(),
        source,
        tag,
        room,
    )))
}

/// Waits for a receive that was started.
fn finish_receive(operation: Operation, status: Out<Status>) -> Result<()> {
    match operation {
        Operation::Done(known) => {
            give_status(status, known);
            Ok(())
        }
        Operation::Other(request) | Operation::Receive(request) => {
            received(&process::world()?.engine().wait(|engine| engine.take(request)), status)
        }
    }
}

/// Blocking receive.
#[inline]
fn recv(buffer: Target, from: Envelope, status: Out<Status>) -> Result<()> {
    let comm = comm::find(from.comm)?;
    let tag = p2p::receive_tag(from.tag)?;
    let source = p2p::source(comm, from.rank)?;
    let room = receiving(buffer, from.count, from.datatype)?;
    let From::From(source) = source else {
        give_status(status, null_status());
        return Ok(());
    };
    received(
        &process::world()?.engine().receive(comm.channel(), source, tag, room),
        status,
    )
}

/// Gives the status of a completed receive; a truncated message has one too.
#[inline]
fn received(completion: &Completion, status: Out<Status>) -> Result<()> {
    give_status(status, receive_status(completion));
    completion.error.as_ref().map_or(Ok(()), |error| Err(error.into()))
}

fn give(comm: h::Comm, request: Out<h::Request>, start: impl FnOnce() -> Result<Operation>) -> Result<()> {
    request.set("request", h::MPI_REQUEST_NULL)?;
    request.set("request", request::insert(comm, start()?))
}

fn give_persistent(
    message: Envelope,
    request: Out<h::Request>,
    starter: impl Fn(Envelope) -> Result<Operation> + Send + Sync + 'static,
) -> Result<()> {
    comm::find(message.comm)?;
    datatype::find(message.datatype)?;
    request.set("request", h::MPI_REQUEST_NULL)?;
    // The program may free the datatype between this call and MPI_Start.
    let held = datatype::hold(message.datatype);
    let starter = move || {
        starter(Envelope {
            datatype: held.handle(),
            ..message
        })
    };
    request.set("request", request::insert_persistent(message.comm, Box::new(starter)))
}

fn sendrecv(out: (Source, Envelope), into: (Target, Envelope), status: Out<Status>) -> Result<()> {
    let receive = irecv(into.0, into.1)?;
    if let Operation::Other(request) = isend(Mode::Standard, out.0, out.1)? {
        process::world()?.wait(request)?;
    }
    finish_receive(receive, status)
}

fn sendrecv_replace(buffer: Target, out: Envelope, from: Envelope, status: Out<Status>) -> Result<()> {
    // Sent from a packed copy, so that the buffer is free for what arrives.
    let packed = crate::pack::packed(buffer.source(), out.count, out.datatype)?;
    let copy = Envelope {
        count: packed.len() as i64,
        datatype: h::MPI_PACKED,
        ..out
    };
    sendrecv((Source::of(&packed), copy), (buffer, from), status)
}
