// SPDX-License-Identifier: Apache-2.0
//! Probing, and receiving what a matched probe has found (MPI 5.0 section 3.8).

use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_abi::{Count, Status};
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_core::p2p::{self, Source};
use isthmus_engine::{Arrived, Channel, Engine, EngineError, MatchedMessage};

use crate::buffer::{described, receiving};
use crate::c::{Out, Target, flag};
use crate::call::call_on;
use crate::entry::{entry, wide};
use crate::handle::{Kind, Table};
use crate::request::{self, Operation, give_status, null_status};
use crate::{comm, process};

/// A message taken off the queue.
struct Matched {
    message: Mutex<Option<MatchedMessage>>,
    comm: h::Comm,
}

static MESSAGES: Table<Matched> = Table::new(Kind::Message);

fn status_of(arrived: &Arrived) -> Status {
    let mut status = Status::new(arrived.source as c_int, arrived.tag, arrived.bytes as i64);
    if let Some(form) = arrived.form {
        status.set_form(form.encode());
    }
    status
}

/// What to look for; `None`: MPI_PROC_NULL, from which everything is there at once and empty.
struct Wanted<'a> {
    channel: &'a Channel,
    source: Option<u32>,
    tag: Option<i32>,
}

fn wanted(handle: h::Comm, source: c_int, tag: c_int) -> Result<Option<Wanted<'static>>> {
    let comm = comm::find(handle)?;
    let tag = p2p::receive_tag(tag)?;
    Ok(match p2p::source(comm, source)? {
        Source::Nobody => None,
        Source::From(source) => Some(Wanted {
            channel: comm.channel(),
            source,
            tag,
        }),
    })
}

fn failed(error: EngineError) -> Error {
    Error::from(&error)
}

/// Looks once, with progress before.
fn once<T>(look: impl Fn(&mut Engine) -> std::result::Result<Option<T>, EngineError>) -> Result<Option<T>> {
    let shared = process::world()?.engine();
    let mut engine = shared.lock();
    if let Some(found) = look(&mut engine).map_err(failed)? {
        return Ok(Some(found));
    }
    // Where nothing has happened there is nothing new to be found.
    let found = match engine.progress() {
        true => look(&mut engine).map_err(failed)?,
        false => None,
    };
    drop(engine);
    if found.is_none() {
        shared.idle();
    }
    Ok(found)
}

fn until<T>(look: impl Fn(&mut Engine) -> std::result::Result<Option<T>, EngineError>) -> Result<T> {
    process::world()?
        .engine()
        .wait(|engine| look(engine).transpose())
        .map_err(failed)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Probe(source: c_int, tag: c_int, comm: h::Comm, status: Out<Status>) -> c_int {
    call_on("MPI_Probe", comm, || {
        let found = match wanted(comm, source, tag)? {
            None => null_status(),
            Some(w) => status_of(&until(|engine| engine.iprobe(w.channel, w.source, w.tag))?),
        };
        give_status(status, found);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Iprobe(
    source: c_int,
    tag: c_int,
    comm: h::Comm,
    found: Out<c_int>,
    status: Out<Status>,
) -> c_int {
    call_on("MPI_Iprobe", comm, || {
        let there = match wanted(comm, source, tag)? {
            None => Some(null_status()),
            Some(w) => once(|engine| engine.iprobe(w.channel, w.source, w.tag))?.map(|a| status_of(&a)),
        };
        found.set("flag", flag(there.is_some()))?;
        if let Some(there) = there {
            give_status(status, there);
        }
        Ok(())
    })
}

fn give_message(comm: h::Comm, message: Out<h::Message>, found: MatchedMessage) -> Result<()> {
    let matched = Matched {
        message: Mutex::new(Some(found)),
        comm,
    };
    message.set("message", h::Message(MESSAGES.insert(matched)))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Mprobe(
    source: c_int,
    tag: c_int,
    comm: h::Comm,
    message: Out<h::Message>,
    status: Out<Status>,
) -> c_int {
    call_on("MPI_Mprobe", comm, || {
        message.set("message", h::MPI_MESSAGE_NULL)?;
        let Some(w) = wanted(comm, source, tag)? else {
            give_status(status, null_status());
            return message.set("message", h::MPI_MESSAGE_NO_PROC);
        };
        let (found, arrived) = until(|engine| engine.improbe(w.channel, w.source, w.tag))?;
        give_status(status, status_of(&arrived));
        give_message(comm, message, found)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Improbe(
    source: c_int,
    tag: c_int,
    comm: h::Comm,
    found: Out<c_int>,
    message: Out<h::Message>,
    status: Out<Status>,
) -> c_int {
    call_on("MPI_Improbe", comm, || {
        message.set("message", h::MPI_MESSAGE_NULL)?;
        let Some(w) = wanted(comm, source, tag)? else {
            give_status(status, null_status());
            found.set("flag", flag(true))?;
            return message.set("message", h::MPI_MESSAGE_NO_PROC);
        };
        let there = once(|engine| engine.improbe(w.channel, w.source, w.tag))?;
        found.set("flag", flag(there.is_some()))?;
        let Some((matched, arrived)) = there else { return Ok(()) };
        give_status(status, status_of(&arrived));
        give_message(comm, message, matched)
    })
}

fn imrecv(buffer: Target, count: i64, datatype: h::Datatype, message: Out<h::Message>) -> Result<(h::Comm, Operation)> {
    let room = receiving(buffer, count, datatype)?;
    let handle = message.get("message")?;
    if handle == h::MPI_MESSAGE_NO_PROC {
        message.set("message", h::MPI_MESSAGE_NULL)?;
        return Ok((h::MPI_COMM_SELF, Operation::Done(null_status())));
    }
    let Some(matched) = MESSAGES.remove(handle.0) else {
        if handle == h::MPI_MESSAGE_NULL {
            fail!(abi::MPI_ERR_REQUEST, argument("message"), "is MPI_MESSAGE_NULL");
        }
        fail!(
            abi::MPI_ERR_REQUEST,
            argument("message"),
            "is {:#x}, which is not the handle of a message, or of one that was received already",
            handle.0
        );
    };
    message.set("message", h::MPI_MESSAGE_NULL)?;
    let Some(found) = matched.message.into_inner().unwrap_or_else(PoisonError::into_inner) else {
        fail!(abi::MPI_ERR_REQUEST, "the message was received already");
    };
    // The communicator may have been freed in the meantime; its messages have not.
    let room = match comm::find(matched.comm) {
        Ok(comm) => described(room, comm, buffer, count, datatype)?,
        Err(_) => room,
    };
    let request = process::world()?.engine().lock().imrecv(found, room);
    Ok((matched.comm, Operation::Receive(request)))
}

fn mrecv(
    buffer: Target,
    count: i64,
    datatype: h::Datatype,
    message: Out<h::Message>,
    status: Out<Status>,
) -> Result<()> {
    request::finish(&imrecv(buffer, count, datatype, message)?.1, status)
}

fn start_mrecv(
    buffer: Target,
    count: i64,
    datatype: h::Datatype,
    message: Out<h::Message>,
    request: Out<h::Request>,
) -> Result<()> {
    request.set("request", h::MPI_REQUEST_NULL)?;
    let (comm, operation) = imrecv(buffer, count, datatype, message)?;
    request.set("request", request::insert(comm, operation))
}

entry! {
    isthmus_MPI_Mrecv<c_int>, isthmus_MPI_Mrecv_c<Count>:
    (buf: Target, count: N, datatype: h::Datatype, message: Out<h::Message>, status: Out<Status>) =>
    mrecv(buf, wide(count), datatype, message, status)
}

entry! {
    isthmus_MPI_Imrecv<c_int>, isthmus_MPI_Imrecv_c<Count>:
    (buf: Target, count: N, datatype: h::Datatype, message: Out<h::Message>, request: Out<h::Request>) =>
    start_mrecv(buf, wide(count), datatype, message, request)
}
