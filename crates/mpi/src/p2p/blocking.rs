// SPDX-License-Identifier: Apache-2.0
//! Blocking sends and receives.

use std::ffi::c_int;

use isthmus_abi::handles as h;
use isthmus_abi::{Count, Status};
use isthmus_engine::Mode;

use crate::c::{Out, Source, Target};
use crate::call::call_on;
use crate::p2p::{Envelope, recv, send, sendrecv, sendrecv_replace};

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
