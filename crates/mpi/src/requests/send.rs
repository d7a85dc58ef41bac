// SPDX-License-Identifier: Apache-2.0
//! Requests to processes of a communicator and to global pointers.

use std::ffi::c_int;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_abi::{Count, Status};
use isthmus_core::error::{About, Result};
use isthmus_core::p2p;
use isthmus_requests::{Data, POINTER_BYTES, Reply, To, owner};

use super::flags;
use super::pointer::pointer;
use crate::c::{In, Out, Source, Target, count};
use crate::call::call_in_handlers;
use crate::request::{self, Operation};
use crate::{check, comm, process};

/// What comes back in place of an error when there is no room.
const WOULD_BLOCK: c_int = -1;
/// Flag of a request: it does not wait for room.
const NOWAIT: c_int = 2;

/// A process of a communicator; `None`: MPI_PROC_NULL.
fn of_comm(rank: c_int, handle: h::Comm, handler: c_int, given: c_int) -> Result<Option<To>> {
    let waits = flags(given, NOWAIT)? & NOWAIT == 0;
    let comm = comm::find(handle)?;
    let rank = p2p::destination(comm, rank).about("rank")?;
    Ok(rank.map(|rank| To {
        peer: comm.channel().members.peer(rank),
        rank,
        target: None,
        handler: handler as u32,
        waits,
    }))
}

/// What a global pointer names.
fn of_pointer(to: In<[u8; POINTER_BYTES]>, handler: c_int, given: c_int) -> Result<Option<To>> {
    let waits = flags(given, NOWAIT)? & NOWAIT == 0;
    let pointer = pointer("to", to)?;
    Ok(Some(To {
        peer: owner(process::world()?, &pointer)?,
        rank: pointer.rank,
        target: Some(pointer.target).filter(|target| target.region != 0),
        handler: handler as u32,
        waits,
    }))
}

/// Data as the program gives them.
struct Given {
    data: Source,
    bytes: Count,
}

impl Given {
    fn data(&self) -> Result<Data> {
        let bytes = count("bytes", self.bytes)?;
        check::memory(abi::MPI_ERR_BUFFER, "data", self.data.address(), bytes)?;
        Ok(Data {
            memory: self.data.memory(0, self.bytes),
            bytes,
        })
    }
}

/// What a function returns in place of success, if there was no room.
fn unless_full(code: c_int, sent: bool) -> c_int {
    if code == abi::MPI_SUCCESS && !sent {
        WOULD_BLOCK
    } else {
        code
    }
}

fn send(function: &'static str, on: h::Comm, given: Given, to: impl FnOnce() -> Result<Option<To>>) -> c_int {
    let mut sent = true;
    let code = call_in_handlers(function, on, || {
        let data = given.data()?;
        if let Some(to) = to()? {
            let process = process::get()?;
            sent = process.requests.send(process.world(), &to, &data)?;
        }
        Ok(())
    });
    unless_full(code, sent)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_request_send(
    data: Source,
    bytes: Count,
    rank: c_int,
    handler: c_int,
    comm: h::Comm,
    given: c_int,
) -> c_int {
    send("isthmus_request_send", comm, Given { data, bytes }, || {
        of_comm(rank, comm, handler, given)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_request_send_to(
    data: Source,
    bytes: Count,
    to: In<[u8; POINTER_BYTES]>,
    handler: c_int,
    given: c_int,
) -> c_int {
    send(
        "isthmus_request_send_to",
        h::MPI_COMM_NULL,
        Given { data, bytes },
        || of_pointer(to, handler, given),
    )
}

/// A request, what comes back for it, and who hears of errors.
struct Question {
    data: Given,
    reply: (Target, Count),
    on: h::Comm,
    request: Out<h::Request>,
}

fn ask(function: &'static str, question: &Question, to: impl FnOnce() -> Result<Option<To>>) -> c_int {
    let mut sent = true;
    let Question {
        data,
        reply,
        on,
        request,
    } = question;
    let code = call_in_handlers(function, *on, || {
        request.set("request", h::MPI_REQUEST_NULL)?;
        let (data, room) = (data.data()?, count("room", reply.1)?);
        check::memory(abi::MPI_ERR_BUFFER, "reply", reply.0.address(), room)?;
        let Some(to) = to()? else {
            let nothing = Operation::Done(Status::new(abi::MPI_PROC_NULL, abi::MPI_ANY_TAG, 0));
            return request.set("request", request::insert(*on, nothing));
        };
        let process = process::get()?;
        let reply = Reply {
            memory: reply.0.memory(0, reply.1),
            room,
        };
        match process.requests.ask(process.world(), &to, &data, reply)? {
            Some(started) => request.set("request", request::insert(*on, Operation::Reply(started))),
            None => {
                sent = false;
                Ok(())
            }
        }
    });
    unless_full(code, sent)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_request_ask(
    data: Source,
    bytes: Count,
    reply: Target,
    room: Count,
    rank: c_int,
    handler: c_int,
    comm: h::Comm,
    given: c_int,
    request: Out<h::Request>,
) -> c_int {
    let question = Question {
        data: Given { data, bytes },
        reply: (reply, room),
        on: comm,
        request,
    };
    ask("isthmus_request_ask", &question, || of_comm(rank, comm, handler, given))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_request_ask_to(
    data: Source,
    bytes: Count,
    reply: Target,
    room: Count,
    to: In<[u8; POINTER_BYTES]>,
    handler: c_int,
    given: c_int,
    request: Out<h::Request>,
) -> c_int {
    let question = Question {
        data: Given { data, bytes },
        reply: (reply, room),
        on: h::MPI_COMM_SELF,
        request,
    };
    ask("isthmus_request_ask_to", &question, || of_pointer(to, handler, given))
}

fn flush(to: Option<To>) -> Result<()> {
    let Some(to) = to else { return Ok(()) };
    let process = process::get()?;
    process.requests.flush(process.world(), to.peer, to.rank)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_request_flush(rank: c_int, comm: h::Comm) -> c_int {
    call_in_handlers("isthmus_request_flush", comm, || flush(of_comm(rank, comm, 0, 0)?))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_request_flush_to(to: In<[u8; POINTER_BYTES]>) -> c_int {
    call_in_handlers("isthmus_request_flush_to", h::MPI_COMM_NULL, || {
        flush(of_pointer(to, 0, 0)?)
    })
}
