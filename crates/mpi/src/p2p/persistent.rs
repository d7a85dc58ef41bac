// SPDX-License-Identifier: Apache-2.0
//! Persistent sends and receives.

use std::ffi::c_int;

use isthmus_abi::Count;
use isthmus_abi::handles as h;
use isthmus_engine::Mode;

use crate::c::{Out, Source, Target};
use crate::entry::{entry, wide};
use crate::p2p::{Envelope, recv_init, send_init};

entry! {
    isthmus_MPI_Send_init<c_int, Mode::Standard>, isthmus_MPI_Send_init_c<Count, Mode::Standard>,
    isthmus_MPI_Ssend_init<c_int, Mode::Synchronous>, isthmus_MPI_Ssend_init_c<Count, Mode::Synchronous>,
    isthmus_MPI_Rsend_init<c_int, Mode::Standard>, isthmus_MPI_Rsend_init_c<Count, Mode::Standard>,
    isthmus_MPI_Bsend_init<c_int, Mode::Buffered>, isthmus_MPI_Bsend_init_c<Count, Mode::Buffered>:
    (buf: Source, count: N, datatype: h::Datatype, rank: c_int, tag: c_int, comm: h::Comm, request: Out<h::Request>)
    on comm: Mode =>
    send_init(VARIANT, buf, Envelope { count: wide(count), datatype, rank, tag, comm }, request)
}

entry! {
    isthmus_MPI_Recv_init<c_int>, isthmus_MPI_Recv_init_c<Count>:
    (buf: Target, count: N, datatype: h::Datatype, rank: c_int, tag: c_int, comm: h::Comm, request: Out<h::Request>)
    on comm =>
    recv_init(buf, Envelope { count: wide(count), datatype, rank, tag, comm }, request)
}
