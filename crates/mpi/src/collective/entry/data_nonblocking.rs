// SPDX-License-Identifier: Apache-2.0
//! Nonblocking operations that move data.

use std::ffi::c_int;

use isthmus_abi::handles as h;
use isthmus_abi::{Aint, Count};

use crate::c::{In, Out, Source, Target};
use crate::collective::{Elements, Unequal, data, nonblocking};

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Ibarrier(comm: h::Comm, request: Out<h::Request>) -> c_int {
    nonblocking("MPI_Ibarrier", comm, request, data::barrier)
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
