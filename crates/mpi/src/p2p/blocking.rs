// SPDX-License-Identifier: Apache-2.0
//! Blocking sends and receives.

use std::ffi::c_int;

use isthmus_abi::handles as h;
use isthmus_abi::{Count, Status};
use isthmus_engine::Mode;

use crate::c::{Out, Source, Target};
use crate::entry::{entry, wide};
use crate::p2p::quick::Left;
use crate::p2p::{Envelope, quick, recv, send, sendrecv, sendrecv_replace};

// Ready mode gains nothing here.
entry! {
    isthmus_MPI_Send<c_int, Mode::Standard>, isthmus_MPI_Send_c<Count, Mode::Standard>,
    isthmus_MPI_Ssend<c_int, Mode::Synchronous>, isthmus_MPI_Ssend_c<Count, Mode::Synchronous>,
    isthmus_MPI_Rsend<c_int, Mode::Standard>, isthmus_MPI_Rsend_c<Count, Mode::Standard>,
    isthmus_MPI_Bsend<c_int, Mode::Buffered>, isthmus_MPI_Bsend_c<Count, Mode::Buffered>:
    (buf: Source, count: N, datatype: h::Datatype, rank: c_int, tag: c_int, comm: h::Comm) on comm: Mode,
    first quick::send(VARIANT, buf, &Envelope { count: wide(count), datatype, rank, tag, comm }), then _ =>
    send(VARIANT, buf, Envelope { count: wide(count), datatype, rank, tag, comm })
}

entry! {
    isthmus_MPI_Recv<c_int>, isthmus_MPI_Recv_c<Count>:
    (buf: Target, count: N, datatype: h::Datatype, rank: c_int, tag: c_int, comm: h::Comm, status: Out<Status>) on comm,
    first quick::recv(buf, &Envelope { count: wide(count), datatype, rank, tag, comm }, status), then begun =>
    recv(begun, buf, Envelope { count: wide(count), datatype, rank, tag, comm }, status)
}

entry! {
    isthmus_MPI_Sendrecv<c_int>, isthmus_MPI_Sendrecv_c<Count>:
    (sendbuf: Source, sendcount: N, sendtype: h::Datatype, dest: c_int, sendtag: c_int,
     recvbuf: Target, recvcount: N, recvtype: h::Datatype, source: c_int, recvtag: c_int,
     comm: h::Comm, status: Out<Status>) on comm,
    first quick::sendrecv(
        sendbuf, &Envelope { count: wide(sendcount), datatype: sendtype, rank: dest, tag: sendtag, comm },
        recvbuf, &Envelope { count: wide(recvcount), datatype: recvtype, rank: source, tag: recvtag, comm },
        status,
    ), then left =>
    {
        let out = Envelope { count: wide(sendcount), datatype: sendtype, rank: dest, tag: sendtag, comm };
        let from = Envelope { count: wide(recvcount), datatype: recvtype, rank: source, tag: recvtag, comm };
        match left {
            // What has left already takes no part in what is waited for.
            Left::Receive(begun) => recv(begun, recvbuf, from, status),
            Left::Both => sendrecv((sendbuf, out), (recvbuf, from), status),
        }
    }
}

entry! {
    isthmus_MPI_Sendrecv_replace<c_int>, isthmus_MPI_Sendrecv_replace_c<Count>:
    (buf: Target, count: N, datatype: h::Datatype, dest: c_int, sendtag: c_int, source: c_int, recvtag: c_int,
     comm: h::Comm, status: Out<Status>) on comm,
    first quick::sendrecv(
        buf.source(), &Envelope { count: wide(count), datatype, rank: dest, tag: sendtag, comm },
        buf, &Envelope { count: wide(count), datatype, rank: source, tag: recvtag, comm },
        status,
    ), then left =>
    {
        let out = Envelope { count: wide(count), datatype, rank: dest, tag: sendtag, comm };
        let from = Envelope { rank: source, tag: recvtag, ..out };
        match left {
            Left::Receive(begun) => recv(begun, buf, from, status),
            Left::Both => sendrecv_replace(buf, out, from, status),
        }
    }
}
