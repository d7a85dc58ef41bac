// SPDX-License-Identifier: Apache-2.0
//! Blocking operations that compute.

use std::ffi::c_int;

use isthmus_abi::Count;
use isthmus_abi::handles as h;
use isthmus_schedule::Operation;

use crate::c::{In, Source, Target};
use crate::collective::blocking;
use crate::collective::reduction::{self, Operands};

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Reduce(
    sendbuf: Source,
    recvbuf: Target,
    count: c_int,
    datatype: h::Datatype,
    op: h::Op,
    root: c_int,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Reduce", comm, |place| {
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
extern "C" fn isthmus_MPI_Reduce_c(
    sendbuf: Source,
    recvbuf: Target,
    count: Count,
    datatype: h::Datatype,
    op: h::Op,
    root: c_int,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Reduce_c", comm, |place| {
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
extern "C" fn isthmus_MPI_Allreduce(
    sendbuf: Source,
    recvbuf: Target,
    count: c_int,
    datatype: h::Datatype,
    op: h::Op,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Allreduce", comm, |place| {
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
extern "C" fn isthmus_MPI_Allreduce_c(
    sendbuf: Source,
    recvbuf: Target,
    count: Count,
    datatype: h::Datatype,
    op: h::Op,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Allreduce_c", comm, |place| {
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
extern "C" fn isthmus_MPI_Scan(
    sendbuf: Source,
    recvbuf: Target,
    count: c_int,
    datatype: h::Datatype,
    op: h::Op,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Scan", comm, |place| {
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
extern "C" fn isthmus_MPI_Scan_c(
    sendbuf: Source,
    recvbuf: Target,
    count: Count,
    datatype: h::Datatype,
    op: h::Op,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Scan_c", comm, |place| {
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
extern "C" fn isthmus_MPI_Exscan(
    sendbuf: Source,
    recvbuf: Target,
    count: c_int,
    datatype: h::Datatype,
    op: h::Op,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Exscan", comm, |place| {
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
extern "C" fn isthmus_MPI_Exscan_c(
    sendbuf: Source,
    recvbuf: Target,
    count: Count,
    datatype: h::Datatype,
    op: h::Op,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Exscan_c", comm, |place| {
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
extern "C" fn isthmus_MPI_Reduce_scatter_block(
    sendbuf: Source,
    recvbuf: Target,
    recvcount: c_int,
    datatype: h::Datatype,
    op: h::Op,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Reduce_scatter_block", comm, |place| {
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
extern "C" fn isthmus_MPI_Reduce_scatter_block_c(
    sendbuf: Source,
    recvbuf: Target,
    recvcount: Count,
    datatype: h::Datatype,
    op: h::Op,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Reduce_scatter_block_c", comm, |place| {
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
extern "C" fn isthmus_MPI_Reduce_scatter(
    sendbuf: Source,
    recvbuf: Target,
    recvcounts: In<c_int>,
    datatype: h::Datatype,
    op: h::Op,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Reduce_scatter", comm, |place| {
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
extern "C" fn isthmus_MPI_Reduce_scatter_c(
    sendbuf: Source,
    recvbuf: Target,
    recvcounts: In<Count>,
    datatype: h::Datatype,
    op: h::Op,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Reduce_scatter_c", comm, |place| {
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
