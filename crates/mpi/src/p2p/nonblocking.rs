// SPDX-License-Identifier: Apache-2.0
//! Nonblocking sends and receives.

use std::ffi::c_int;

use isthmus_abi::Count;
use isthmus_abi::handles as h;
use isthmus_engine::Mode;

use crate::c::{Out, Source, Target};
use crate::call::call_on;
use crate::p2p::{Envelope, give, irecv, isend};

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
