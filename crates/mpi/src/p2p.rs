// SPDX-License-Identifier: Apache-2.0
//! Point-to-point communication (MPI 5.0 chapter 3). Every function has a twin with a large count, `_c`.

use std::ffi::c_int;

use isthmus_abi::handles as h;
use isthmus_abi::{Count, Status};
use isthmus_core::error::{Error, Result};
use isthmus_core::p2p::{self, Source as From};
use isthmus_engine::{Completion, Mode};

use crate::buffer::{receiving, sending};
use crate::c::{Out, Source, Target};
use crate::call::call_on;
use crate::request::{self, Operation, give_status, null_status, receive_status};
use crate::{comm, datatype, process};

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

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Send(
    buf: Source,
    count: c_int,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
) -> c_int {
    call_on("MPI_Send", comm, || {
        send(
            Mode::Standard,
            buf,
            Envelope {
                count: count.into(),
                datatype,
                rank,
                tag,
                comm,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Send_c(
    buf: Source,
    count: Count,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
) -> c_int {
    call_on("MPI_Send_c", comm, || {
        send(
            Mode::Standard,
            buf,
            Envelope {
                count,
                datatype,
                rank,
                tag,
                comm,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Ssend(
    buf: Source,
    count: c_int,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
) -> c_int {
    call_on("MPI_Ssend", comm, || {
        send(
            Mode::Synchronous,
            buf,
            Envelope {
                count: count.into(),
                datatype,
                rank,
                tag,
                comm,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Ssend_c(
    buf: Source,
    count: Count,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
) -> c_int {
    call_on("MPI_Ssend_c", comm, || {
        send(
            Mode::Synchronous,
            buf,
            Envelope {
                count,
                datatype,
                rank,
                tag,
                comm,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Rsend(
    buf: Source,
    count: c_int,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
) -> c_int {
    call_on("MPI_Rsend", comm, || {
        send(
            Mode::Standard,
            buf,
            Envelope {
                count: count.into(),
                datatype,
                rank,
                tag,
                comm,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Rsend_c(
    buf: Source,
    count: Count,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
) -> c_int {
    call_on("MPI_Rsend_c", comm, || {
        send(
            Mode::Standard,
            buf,
            Envelope {
                count,
                datatype,
                rank,
                tag,
                comm,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Bsend(
    buf: Source,
    count: c_int,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
) -> c_int {
    call_on("MPI_Bsend", comm, || {
        send(
            Mode::Buffered,
            buf,
            Envelope {
                count: count.into(),
                datatype,
                rank,
                tag,
                comm,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Bsend_c(
    buf: Source,
    count: Count,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
) -> c_int {
    call_on("MPI_Bsend_c", comm, || {
        send(
            Mode::Buffered,
            buf,
            Envelope {
                count,
                datatype,
                rank,
                tag,
                comm,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Isend(
    buf: Source,
    count: c_int,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    call_on("MPI_Isend", comm, || {
        let to = Envelope {
            count: count.into(),
            datatype,
            rank,
            tag,
            comm,
        };
        give(comm, request, || isend(Mode::Standard, buf, to))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Isend_c(
    buf: Source,
    count: Count,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    call_on("MPI_Isend_c", comm, || {
        let to = Envelope {
            count,
            datatype,
            rank,
            tag,
            comm,
        };
        give(comm, request, || isend(Mode::Standard, buf, to))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Issend(
    buf: Source,
    count: c_int,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    call_on("MPI_Issend", comm, || {
        let to = Envelope {
            count: count.into(),
            datatype,
            rank,
            tag,
            comm,
        };
        give(comm, request, || isend(Mode::Synchronous, buf, to))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Issend_c(
    buf: Source,
    count: Count,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    call_on("MPI_Issend_c", comm, || {
        let to = Envelope {
            count,
            datatype,
            rank,
            tag,
            comm,
        };
        give(comm, request, || isend(Mode::Synchronous, buf, to))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Irsend(
    buf: Source,
    count: c_int,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    call_on("MPI_Irsend", comm, || {
        let to = Envelope {
            count: count.into(),
            datatype,
            rank,
            tag,
            comm,
        };
        give(comm, request, || isend(Mode::Standard, buf, to))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Irsend_c(
    buf: Source,
    count: Count,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    call_on("MPI_Irsend_c", comm, || {
        let to = Envelope {
            count,
            datatype,
            rank,
            tag,
            comm,
        };
        give(comm, request, || isend(Mode::Standard, buf, to))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Ibsend(
    buf: Source,
    count: c_int,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    call_on("MPI_Ibsend", comm, || {
        let to = Envelope {
            count: count.into(),
            datatype,
            rank,
            tag,
            comm,
        };
        give(comm, request, || isend(Mode::Buffered, buf, to))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Ibsend_c(
    buf: Source,
    count: Count,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    call_on("MPI_Ibsend_c", comm, || {
        let to = Envelope {
            count,
            datatype,
            rank,
            tag,
            comm,
        };
        give(comm, request, || isend(Mode::Buffered, buf, to))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Send_init(
    buf: Source,
    count: c_int,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    call_on("MPI_Send_init", comm, || {
        let to = Envelope {
            count: count.into(),
            datatype,
            rank,
            tag,
            comm,
        };
        give_persistent(to, request, move |to| isend(Mode::Standard, buf, to))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Send_init_c(
    buf: Source,
    count: Count,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    call_on("MPI_Send_init_c", comm, || {
        let to = Envelope {
            count,
            datatype,
            rank,
            tag,
            comm,
        };
        give_persistent(to, request, move |to| isend(Mode::Standard, buf, to))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Ssend_init(
    buf: Source,
    count: c_int,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    call_on("MPI_Ssend_init", comm, || {
        let to = Envelope {
            count: count.into(),
            datatype,
            rank,
            tag,
            comm,
        };
        give_persistent(to, request, move |to| isend(Mode::Synchronous, buf, to))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Ssend_init_c(
    buf: Source,
    count: Count,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    call_on("MPI_Ssend_init_c", comm, || {
        let to = Envelope {
            count,
            datatype,
            rank,
            tag,
            comm,
        };
        give_persistent(to, request, move |to| isend(Mode::Synchronous, buf, to))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Rsend_init(
    buf: Source,
    count: c_int,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    call_on("MPI_Rsend_init", comm, || {
        let to = Envelope {
            count: count.into(),
            datatype,
            rank,
            tag,
            comm,
        };
        give_persistent(to, request, move |to| isend(Mode::Standard, buf, to))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Rsend_init_c(
    buf: Source,
    count: Count,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    call_on("MPI_Rsend_init_c", comm, || {
        let to = Envelope {
            count,
            datatype,
            rank,
            tag,
            comm,
        };
        give_persistent(to, request, move |to| isend(Mode::Standard, buf, to))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Bsend_init(
    buf: Source,
    count: c_int,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    call_on("MPI_Bsend_init", comm, || {
        let to = Envelope {
            count: count.into(),
            datatype,
            rank,
            tag,
            comm,
        };
        give_persistent(to, request, move |to| isend(Mode::Buffered, buf, to))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Bsend_init_c(
    buf: Source,
    count: Count,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    call_on("MPI_Bsend_init_c", comm, || {
        let to = Envelope {
            count,
            datatype,
            rank,
            tag,
            comm,
        };
        give_persistent(to, request, move |to| isend(Mode::Buffered, buf, to))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Recv(
    buf: Target,
    count: c_int,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    status: Out<Status>,
) -> c_int {
    call_on("MPI_Recv", comm, || {
        recv(
            buf,
            Envelope {
                count: count.into(),
                datatype,
                rank,
                tag,
                comm,
            },
            status,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Irecv(
    buf: Target,
    count: c_int,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    call_on("MPI_Irecv", comm, || {
        give(comm, request, || {
            irecv(
                buf,
                Envelope {
                    count: count.into(),
                    datatype,
                    rank,
                    tag,
                    comm,
                },
            )
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Recv_init(
    buf: Target,
    count: c_int,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    call_on("MPI_Recv_init", comm, || {
        let from = Envelope {
            count: count.into(),
            datatype,
            rank,
            tag,
            comm,
        };
        give_persistent(from, request, move |from| irecv(buf, from))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Sendrecv(
    sendbuf: Source,
    sendcount: c_int,
    sendtype: h::Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: Target,
    recvcount: c_int,
    recvtype: h::Datatype,
    source: c_int,
    recvtag: c_int,
    comm: h::Comm,
    status: Out<Status>,
) -> c_int {
    call_on("MPI_Sendrecv", comm, || {
        let out = Envelope {
            count: sendcount.into(),
            datatype: sendtype,
            rank: dest,
            tag: sendtag,
            comm,
        };
        let from = Envelope {
            count: recvcount.into(),
            datatype: recvtype,
            rank: source,
            tag: recvtag,
            comm,
        };
        sendrecv((sendbuf, out), (recvbuf, from), status)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Sendrecv_replace(
    buf: Target,
    count: c_int,
    datatype: h::Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: h::Comm,
    status: Out<Status>,
) -> c_int {
    call_on("MPI_Sendrecv_replace", comm, || {
        let out = Envelope {
            count: count.into(),
            datatype,
            rank: dest,
            tag: sendtag,
            comm,
        };
        let from = Envelope {
            rank: source,
            tag: recvtag,
            ..out
        };
        sendrecv_replace(buf, out, from, status)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Recv_c(
    buf: Target,
    count: Count,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    status: Out<Status>,
) -> c_int {
    call_on("MPI_Recv_c", comm, || {
        recv(
            buf,
            Envelope {
                count,
                datatype,
                rank,
                tag,
                comm,
            },
            status,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Irecv_c(
    buf: Target,
    count: Count,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    call_on("MPI_Irecv_c", comm, || {
        give(comm, request, || {
            irecv(
                buf,
                Envelope {
                    count,
                    datatype,
                    rank,
                    tag,
                    comm,
                },
            )
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Recv_init_c(
    buf: Target,
    count: Count,
    datatype: h::Datatype,
    rank: c_int,
    tag: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    call_on("MPI_Recv_init_c", comm, || {
        let from = Envelope {
            count,
            datatype,
            rank,
            tag,
            comm,
        };
        give_persistent(from, request, move |from| irecv(buf, from))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Sendrecv_c(
    sendbuf: Source,
    sendcount: Count,
    sendtype: h::Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: Target,
    recvcount: Count,
    recvtype: h::Datatype,
    source: c_int,
    recvtag: c_int,
    comm: h::Comm,
    status: Out<Status>,
) -> c_int {
    call_on("MPI_Sendrecv_c", comm, || {
        let out = Envelope {
            count: sendcount,
            datatype: sendtype,
            rank: dest,
            tag: sendtag,
            comm,
        };
        let from = Envelope {
            count: recvcount,
            datatype: recvtype,
            rank: source,
            tag: recvtag,
            comm,
        };
        sendrecv((sendbuf, out), (recvbuf, from), status)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Sendrecv_replace_c(
    buf: Target,
    count: Count,
    datatype: h::Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: h::Comm,
    status: Out<Status>,
) -> c_int {
    call_on("MPI_Sendrecv_replace_c", comm, || {
        let out = Envelope {
            count,
            datatype,
            rank: dest,
            tag: sendtag,
            comm,
        };
        let from = Envelope {
            rank: source,
            tag: recvtag,
            ..out
        };
        sendrecv_replace(buf, out, from, status)
    })
}
