// SPDX-License-Identifier: Apache-2.0
//! The functions that C calls.

use std::ffi::c_int;

use isthmus_abi::handles as h;
use isthmus_abi::{Aint, Count};
use isthmus_schedule::Operation;

use super::reduction::{self, Operands};
use super::{Elements, Unequal, blocking, data, nonblocking};
use crate::c::{In, Out, Source, Target};

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Barrier(comm: h::Comm) -> c_int {
    blocking("MPI_Barrier", comm, data::barrier)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Ibarrier(comm: h::Comm, request: Out<h::Request>) -> c_int {
    nonblocking("MPI_Ibarrier", comm, request, data::barrier)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Bcast(
    buffer: Target,
    count: c_int,
    datatype: h::Datatype,
    root: c_int,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Bcast", comm, |place| {
        data::bcast(
            place,
            Elements {
                buffer,
                count: count.into(),
                datatype,
            },
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Ibcast(
    buffer: Target,
    count: c_int,
    datatype: h::Datatype,
    root: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Ibcast", comm, request, |place| {
        data::bcast(
            place,
            Elements {
                buffer,
                count: count.into(),
                datatype,
            },
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Bcast_c(
    buffer: Target,
    count: Count,
    datatype: h::Datatype,
    root: c_int,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Bcast_c", comm, |place| {
        data::bcast(
            place,
            Elements {
                buffer,
                count,
                datatype,
            },
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Ibcast_c(
    buffer: Target,
    count: Count,
    datatype: h::Datatype,
    root: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Ibcast_c", comm, request, |place| {
        data::bcast(
            place,
            Elements {
                buffer,
                count,
                datatype,
            },
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Gather(
    sendbuf: Source,
    sendcount: c_int,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcount: c_int,
    recvtype: h::Datatype,
    root: c_int,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Gather", comm, |place| {
        data::gather(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount.into(),
                datatype: sendtype,
            },
            Elements {
                buffer: recvbuf,
                count: recvcount.into(),
                datatype: recvtype,
            },
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Igather(
    sendbuf: Source,
    sendcount: c_int,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcount: c_int,
    recvtype: h::Datatype,
    root: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Igather", comm, request, |place| {
        data::gather(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount.into(),
                datatype: sendtype,
            },
            Elements {
                buffer: recvbuf,
                count: recvcount.into(),
                datatype: recvtype,
            },
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Gather_c(
    sendbuf: Source,
    sendcount: Count,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcount: Count,
    recvtype: h::Datatype,
    root: c_int,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Gather_c", comm, |place| {
        data::gather(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount,
                datatype: sendtype,
            },
            Elements {
                buffer: recvbuf,
                count: recvcount,
                datatype: recvtype,
            },
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Igather_c(
    sendbuf: Source,
    sendcount: Count,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcount: Count,
    recvtype: h::Datatype,
    root: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Igather_c", comm, request, |place| {
        data::gather(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount,
                datatype: sendtype,
            },
            Elements {
                buffer: recvbuf,
                count: recvcount,
                datatype: recvtype,
            },
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Gatherv(
    sendbuf: Source,
    sendcount: c_int,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcounts: In<c_int>,
    rdispls: In<c_int>,
    recvtype: h::Datatype,
    root: c_int,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Gatherv", comm, |place| {
        data::gatherv(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount.into(),
                datatype: sendtype,
            },
            Unequal {
                buffer: recvbuf,
                counts: recvcounts,
                displacements: rdispls,
                datatype: recvtype,
            },
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Igatherv(
    sendbuf: Source,
    sendcount: c_int,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcounts: In<c_int>,
    rdispls: In<c_int>,
    recvtype: h::Datatype,
    root: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Igatherv", comm, request, |place| {
        data::gatherv(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount.into(),
                datatype: sendtype,
            },
            Unequal {
                buffer: recvbuf,
                counts: recvcounts,
                displacements: rdispls,
                datatype: recvtype,
            },
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Gatherv_c(
    sendbuf: Source,
    sendcount: Count,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcounts: In<Count>,
    rdispls: In<Aint>,
    recvtype: h::Datatype,
    root: c_int,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Gatherv_c", comm, |place| {
        data::gatherv(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount,
                datatype: sendtype,
            },
            Unequal {
                buffer: recvbuf,
                counts: recvcounts,
                displacements: rdispls,
                datatype: recvtype,
            },
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Igatherv_c(
    sendbuf: Source,
    sendcount: Count,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcounts: In<Count>,
    rdispls: In<Aint>,
    recvtype: h::Datatype,
    root: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Igatherv_c", comm, request, |place| {
        data::gatherv(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount,
                datatype: sendtype,
            },
            Unequal {
                buffer: recvbuf,
                counts: recvcounts,
                displacements: rdispls,
                datatype: recvtype,
            },
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Scatter(
    sendbuf: Source,
    sendcount: c_int,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcount: c_int,
    recvtype: h::Datatype,
    root: c_int,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Scatter", comm, |place| {
        data::scatter(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount.into(),
                datatype: sendtype,
            },
            Elements {
                buffer: recvbuf,
                count: recvcount.into(),
                datatype: recvtype,
            },
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Iscatter(
    sendbuf: Source,
    sendcount: c_int,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcount: c_int,
    recvtype: h::Datatype,
    root: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Iscatter", comm, request, |place| {
        data::scatter(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount.into(),
                datatype: sendtype,
            },
            Elements {
                buffer: recvbuf,
                count: recvcount.into(),
                datatype: recvtype,
            },
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Scatter_c(
    sendbuf: Source,
    sendcount: Count,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcount: Count,
    recvtype: h::Datatype,
    root: c_int,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Scatter_c", comm, |place| {
        data::scatter(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount,
                datatype: sendtype,
            },
            Elements {
                buffer: recvbuf,
                count: recvcount,
                datatype: recvtype,
            },
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Iscatter_c(
    sendbuf: Source,
    sendcount: Count,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcount: Count,
    recvtype: h::Datatype,
    root: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Iscatter_c", comm, request, |place| {
        data::scatter(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount,
                datatype: sendtype,
            },
            Elements {
                buffer: recvbuf,
                count: recvcount,
                datatype: recvtype,
            },
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Scatterv(
    sendbuf: Source,
    sendcounts: In<c_int>,
    sdispls: In<c_int>,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcount: c_int,
    recvtype: h::Datatype,
    root: c_int,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Scatterv", comm, |place| {
        data::scatterv(
            place,
            Unequal {
                buffer: sendbuf,
                counts: sendcounts,
                displacements: sdispls,
                datatype: sendtype,
            },
            Elements {
                buffer: recvbuf,
                count: recvcount.into(),
                datatype: recvtype,
            },
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Iscatterv(
    sendbuf: Source,
    sendcounts: In<c_int>,
    sdispls: In<c_int>,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcount: c_int,
    recvtype: h::Datatype,
    root: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Iscatterv", comm, request, |place| {
        data::scatterv(
            place,
            Unequal {
                buffer: sendbuf,
                counts: sendcounts,
                displacements: sdispls,
                datatype: sendtype,
            },
            Elements {
                buffer: recvbuf,
                count: recvcount.into(),
                datatype: recvtype,
            },
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Scatterv_c(
    sendbuf: Source,
    sendcounts: In<Count>,
    sdispls: In<Aint>,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcount: Count,
    recvtype: h::Datatype,
    root: c_int,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Scatterv_c", comm, |place| {
        data::scatterv(
            place,
            Unequal {
                buffer: sendbuf,
                counts: sendcounts,
                displacements: sdispls,
                datatype: sendtype,
            },
            Elements {
                buffer: recvbuf,
                count: recvcount,
                datatype: recvtype,
            },
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Iscatterv_c(
    sendbuf: Source,
    sendcounts: In<Count>,
    sdispls: In<Aint>,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcount: Count,
    recvtype: h::Datatype,
    root: c_int,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Iscatterv_c", comm, request, |place| {
        data::scatterv(
            place,
            Unequal {
                buffer: sendbuf,
                counts: sendcounts,
                displacements: sdispls,
                datatype: sendtype,
            },
            Elements {
                buffer: recvbuf,
                count: recvcount,
                datatype: recvtype,
            },
            root,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Allgather(
    sendbuf: Source,
    sendcount: c_int,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcount: c_int,
    recvtype: h::Datatype,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Allgather", comm, |place| {
        data::allgather(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount.into(),
                datatype: sendtype,
            },
            Elements {
                buffer: recvbuf,
                count: recvcount.into(),
                datatype: recvtype,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Iallgather(
    sendbuf: Source,
    sendcount: c_int,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcount: c_int,
    recvtype: h::Datatype,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Iallgather", comm, request, |place| {
        data::allgather(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount.into(),
                datatype: sendtype,
            },
            Elements {
                buffer: recvbuf,
                count: recvcount.into(),
                datatype: recvtype,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Allgather_c(
    sendbuf: Source,
    sendcount: Count,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcount: Count,
    recvtype: h::Datatype,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Allgather_c", comm, |place| {
        data::allgather(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount,
                datatype: sendtype,
            },
            Elements {
                buffer: recvbuf,
                count: recvcount,
                datatype: recvtype,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Iallgather_c(
    sendbuf: Source,
    sendcount: Count,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcount: Count,
    recvtype: h::Datatype,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Iallgather_c", comm, request, |place| {
        data::allgather(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount,
                datatype: sendtype,
            },
            Elements {
                buffer: recvbuf,
                count: recvcount,
                datatype: recvtype,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Allgatherv(
    sendbuf: Source,
    sendcount: c_int,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcounts: In<c_int>,
    rdispls: In<c_int>,
    recvtype: h::Datatype,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Allgatherv", comm, |place| {
        data::allgatherv(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount.into(),
                datatype: sendtype,
            },
            Unequal {
                buffer: recvbuf,
                counts: recvcounts,
                displacements: rdispls,
                datatype: recvtype,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Iallgatherv(
    sendbuf: Source,
    sendcount: c_int,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcounts: In<c_int>,
    rdispls: In<c_int>,
    recvtype: h::Datatype,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Iallgatherv", comm, request, |place| {
        data::allgatherv(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount.into(),
                datatype: sendtype,
            },
            Unequal {
                buffer: recvbuf,
                counts: recvcounts,
                displacements: rdispls,
                datatype: recvtype,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Allgatherv_c(
    sendbuf: Source,
    sendcount: Count,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcounts: In<Count>,
    rdispls: In<Aint>,
    recvtype: h::Datatype,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Allgatherv_c", comm, |place| {
        data::allgatherv(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount,
                datatype: sendtype,
            },
            Unequal {
                buffer: recvbuf,
                counts: recvcounts,
                displacements: rdispls,
                datatype: recvtype,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Iallgatherv_c(
    sendbuf: Source,
    sendcount: Count,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcounts: In<Count>,
    rdispls: In<Aint>,
    recvtype: h::Datatype,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Iallgatherv_c", comm, request, |place| {
        data::allgatherv(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount,
                datatype: sendtype,
            },
            Unequal {
                buffer: recvbuf,
                counts: recvcounts,
                displacements: rdispls,
                datatype: recvtype,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Alltoall(
    sendbuf: Source,
    sendcount: c_int,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcount: c_int,
    recvtype: h::Datatype,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Alltoall", comm, |place| {
        data::alltoall(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount.into(),
                datatype: sendtype,
            },
            Elements {
                buffer: recvbuf,
                count: recvcount.into(),
                datatype: recvtype,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Ialltoall(
    sendbuf: Source,
    sendcount: c_int,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcount: c_int,
    recvtype: h::Datatype,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Ialltoall", comm, request, |place| {
        data::alltoall(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount.into(),
                datatype: sendtype,
            },
            Elements {
                buffer: recvbuf,
                count: recvcount.into(),
                datatype: recvtype,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Alltoall_c(
    sendbuf: Source,
    sendcount: Count,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcount: Count,
    recvtype: h::Datatype,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Alltoall_c", comm, |place| {
        data::alltoall(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount,
                datatype: sendtype,
            },
            Elements {
                buffer: recvbuf,
                count: recvcount,
                datatype: recvtype,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Ialltoall_c(
    sendbuf: Source,
    sendcount: Count,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcount: Count,
    recvtype: h::Datatype,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Ialltoall_c", comm, request, |place| {
        data::alltoall(
            place,
            Elements {
                buffer: sendbuf,
                count: sendcount,
                datatype: sendtype,
            },
            Elements {
                buffer: recvbuf,
                count: recvcount,
                datatype: recvtype,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Alltoallv(
    sendbuf: Source,
    sendcounts: In<c_int>,
    sdispls: In<c_int>,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcounts: In<c_int>,
    rdispls: In<c_int>,
    recvtype: h::Datatype,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Alltoallv", comm, |place| {
        data::alltoallv(
            place,
            Unequal {
                buffer: sendbuf,
                counts: sendcounts,
                displacements: sdispls,
                datatype: sendtype,
            },
            Unequal {
                buffer: recvbuf,
                counts: recvcounts,
                displacements: rdispls,
                datatype: recvtype,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Ialltoallv(
    sendbuf: Source,
    sendcounts: In<c_int>,
    sdispls: In<c_int>,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcounts: In<c_int>,
    rdispls: In<c_int>,
    recvtype: h::Datatype,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Ialltoallv", comm, request, |place| {
        data::alltoallv(
            place,
            Unequal {
                buffer: sendbuf,
                counts: sendcounts,
                displacements: sdispls,
                datatype: sendtype,
            },
            Unequal {
                buffer: recvbuf,
                counts: recvcounts,
                displacements: rdispls,
                datatype: recvtype,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Alltoallv_c(
    sendbuf: Source,
    sendcounts: In<Count>,
    sdispls: In<Aint>,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcounts: In<Count>,
    rdispls: In<Aint>,
    recvtype: h::Datatype,
    comm: h::Comm,
) -> c_int {
    blocking("MPI_Alltoallv_c", comm, |place| {
        data::alltoallv(
            place,
            Unequal {
                buffer: sendbuf,
                counts: sendcounts,
                displacements: sdispls,
                datatype: sendtype,
            },
            Unequal {
                buffer: recvbuf,
                counts: recvcounts,
                displacements: rdispls,
                datatype: recvtype,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Ialltoallv_c(
    sendbuf: Source,
    sendcounts: In<Count>,
    sdispls: In<Aint>,
    sendtype: h::Datatype,
    recvbuf: Target,
    recvcounts: In<Count>,
    rdispls: In<Aint>,
    recvtype: h::Datatype,
    comm: h::Comm,
    request: Out<h::Request>,
) -> c_int {
    nonblocking("MPI_Ialltoallv_c", comm, request, |place| {
        data::alltoallv(
            place,
            Unequal {
                buffer: sendbuf,
                counts: sendcounts,
                displacements: sdispls,
                datatype: sendtype,
            },
            Unequal {
                buffer: recvbuf,
                counts: recvcounts,
                displacements: rdispls,
                datatype: recvtype,
            },
        )
    })
}

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
