// SPDX-License-Identifier: Apache-2.0
//! Persistent sends and receives.

use std::ffi::c_int;

use isthmus_abi::Count;
use isthmus_abi::handles as h;
use isthmus_engine::Mode;

use crate::c::{Out, Source, Target};
use crate::call::call_on;
use crate::p2p::{Envelope, give_persistent, irecv, isend};

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
