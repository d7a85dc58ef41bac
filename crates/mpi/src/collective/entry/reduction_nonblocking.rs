// SPDX-License-Identifier: Apache-2.0
//! Nonblocking operations that compute.

use std::ffi::c_int;

use isthmus_abi::Count;
use isthmus_abi::handles as h;
use isthmus_schedule::Operation;

use crate::c::{In, Out, Source, Target};
use crate::collective::nonblocking;
use crate::collective::reduction::{self, Operands};

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Ireduce(
    sendbuf: Source,
    recvbuf: Target,
    count: c_int,
    datatype: h::Datatype,
    op: h::Op,
    root: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Ireduce", comm, request, |place| {
        reduction::reduce(
            place,
            Operands {
                from: sendbuf,
                into: recvbuf,
                datatype,
                op,
            },
            count.into(),
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Ireduce_c(
    sendbuf: Source,
    recvbuf: Target,
    count: Count,
    datatype: h::Datatype,
    op: h::Op,
    root: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Ireduce_c", comm, request, |place| {
        reduction::reduce(
            place,
            Operands {
                from: sendbuf,
                into: recvbuf,
                datatype,
                op,
            },
            count,
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Iallreduce(
    sendbuf: Source,
    recvbuf: Target,
    count: c_int,
    datatype: h::Datatype,
    op: h::Op,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Iallreduce", comm, request, |place| {
        reduction::symmetric(
            place,
            Operation::Allreduce,
            Operands {
                from: sendbuf,
                into: recvbuf,
                datatype,
                op,
            },
            count.into(),
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Iallreduce_c(
    sendbuf: Source,
    recvbuf: Target,
    count: Count,
    datatype: h::Datatype,
    op: h::Op,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Iallreduce_c", comm, request, |place| {
        reduction::symmetric(
            place,
            Operation::Allreduce,
            Operands {
                from: sendbuf,
                into: recvbuf,
                datatype,
                op,
            },
            count,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Iscan(
    sendbuf: Source,
    recvbuf: Target,
    count: c_int,
    datatype: h::Datatype,
    op: h::Op,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Iscan", comm, request, |place| {
        reduction::symmetric(
            place,
            Operation::Scan,
            Operands {
                from: sendbuf,
                into: recvbuf,
                datatype,
                op,
            },
            count.into(),
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Iscan_c(
    sendbuf: Source,
    recvbuf: Target,
    count: Count,
    datatype: h::Datatype,
    op: h::Op,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Iscan_c", comm, request, |place| {
        reduction::symmetric(
            place,
            Operation::Scan,
            Operands {
                from: sendbuf,
                into: recvbuf,
                datatype,
                op,
            },
            count,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Iexscan(
    sendbuf: Source,
    recvbuf: Target,
    count: c_int,
    datatype: h::Datatype,
    op: h::Op,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Iexscan", comm, request, |place| {
        reduction::symmetric(
            place,
            Operation::Exscan,
            Operands {
                from: sendbuf,
                into: recvbuf,
                datatype,
                op,
            },
            count.into(),
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Iexscan_c(
    sendbuf: Source,
    recvbuf: Target,
    count: Count,
    datatype: h::Datatype,
    op: h::Op,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Iexscan_c", comm, request, |place| {
        reduction::symmetric(
            place,
            Operation::Exscan,
            Operands {
                from: sendbuf,
                into: recvbuf,
                datatype,
                op,
            },
            count,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Ireduce_scatter_block(
    sendbuf: Source,
    recvbuf: Target,
    recvcount: c_int,
    datatype: h::Datatype,
    op: h::Op,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Ireduce_scatter_block", comm, request, |place| {
        reduction::reduce_scatter_block(
            place,
            Operands {
                from: sendbuf,
                into: recvbuf,
                datatype,
                op,
            },
            recvcount.into(),
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Ireduce_scatter_block_c(
    sendbuf: Source,
    recvbuf: Target,
    recvcount: Count,
    datatype: h::Datatype,
    op: h::Op,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Ireduce_scatter_block_c", comm, request, |place| {
        reduction::reduce_scatter_block(
            place,
            Operands {
                from: sendbuf,
                into: recvbuf,
                datatype,
                op,
            },
            recvcount,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Ireduce_scatter(
    sendbuf: Source,
    recvbuf: Target,
    recvcounts: In<c_int>,
    datatype: h::Datatype,
    op: h::Op,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Ireduce_scatter", comm, request, |place| {
        reduction::reduce_scatter(
            place,
            Operands {
                from: sendbuf,
                into: recvbuf,
                datatype,
                op,
            },
            recvcounts,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Ireduce_scatter_c(
    sendbuf: Source,
    recvbuf: Target,
    recvcounts: In<Count>,
    datatype: h::Datatype,
    op: h::Op,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Ireduce_scatter_c", comm, request, |place| {
        reduction::reduce_scatter(
            place,
            Operands {
                from: sendbuf,
                into: recvbuf,
                datatype,
                op,
            },
            recvcounts,
        )
    })
}
