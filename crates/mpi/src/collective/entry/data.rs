// SPDX-License-Identifier: Apache-2.0
//! Blocking operations that move data.

use std::ffi::c_int;

use isthmus_abi::handles as h;
use isthmus_abi::{Aint, Count};

use crate::c::{In, Source, Target};
use crate::collective::{Elements, Unequal, blocking, data};

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Barrier(comm: h::Comm) -> c_int {
    blocking("MPI_Barrier", comm, data::barrier)
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
