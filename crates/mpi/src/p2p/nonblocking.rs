// SPDX-License-Identifier: Apache-2.0
//! Nonblocking sends and receives.

use std::ffi::c_int;

use isthmus_abi::Count;
use isthmus_abi::handles as h;
use isthmus_engine::Mode;

use crate::c::{Out, Source, Target};
use crate::entry::{entry, wide};
use crate::p2p::{Envelope, give, irecv, isend, isendrecv, isendrecv_replace, quick};

entry! {
    isthmus_MPI_Isend<c_int, Mode::Standard>, isthmus_MPI_Isend_c<Count, Mode::Standard>,
    isthmus_MPI_Issend<c_int, Mode::Synchronous>, isthmus_MPI_Issend_c<Count, Mode::Synchronous>,
    isthmus_MPI_Irsend<c_int, Mode::Standard>, isthmus_MPI_Irsend_c<Count, Mode::Standard>,
    isthmus_MPI_Ibsend<c_int, Mode::Buffered>, isthmus_MPI_Ibsend_c<Count, Mode::Buffered>:
    (buf: Source, count: N, datatype: h::Datatype, rank: c_int, tag: c_int, comm: h::Comm, request: Out<h::Request>)
    on comm: Mode,
    first quick::isend(VARIANT, buf, &Envelope { count: wide(count), datatype, rank, tag, comm }, request), then _ =>
    give(comm, request, || isend(VARIANT, buf, Envelope { count: wide(count), datatype, rank, tag, comm }))
}

entry! {
    isthmus_MPI_Irecv<c_int>, isthmus_MPI_Irecv_c<Count>:
    (buf: Target, count: N, datatype: h::Datatype, rank: c_int, tag: c_int, comm: h::Comm, request: Out<h::Request>)
    on comm,
    first quick::irecv(buf, &Envelope { count: wide(count), datatype, rank, tag, comm }, request), then _ =>
    give(comm, request, || irecv(buf, Envelope { count: wide(count), datatype, rank, tag, comm }))
}

entry! {
    isthmus_MPI_Isendrecv<c_int>, isthmus_MPI_Isendrecv_c<Count>:
    (sendbuf: Source, sendcount: N, sendtype: h::Datatype, dest: c_int, sendtag: c_int,
     recvbuf: Target, recvcount: N, recvtype: h::Datatype, source: c_int, recvtag: c_int,
     comm: h::Comm, request: Out<h::Request>) on comm =>
    {
        let out = Envelope { count: wide(sendcount), datatype: sendtype, rank: dest, tag: sendtag, comm };
        let from = Envelope { count: wide(recvcount), datatype: recvtype, rank: source, tag: recvtag, comm };
        give(comm, request, || isendrecv((sendbuf, out), (recvbuf, from)))
    }
}

entry! {
    isthmus_MPI_Isendrecv_replace<c_int>, isthmus_MPI_Isendrecv_replace_c<Count>:
    (buf: Target, count: N, datatype: h::Datatype, dest: c_int, sendtag: c_int, source: c_int, recvtag: c_int,
     comm: h::Comm, request: Out<h::Request>) on comm =>
    {
        let out = Envelope { count: wide(count), datatype, rank: dest, tag: sendtag, comm };
        let from = Envelope { rank: source, tag: recvtag, ..out };
        give(comm, request, || isendrecv_replace(buf, out, from))
    }
}
