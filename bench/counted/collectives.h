/* SPDX-License-Identifier: Apache-2.0 */
/* Collective operations. */
#ifndef COUNTED_COLLECTIVES_H
#define COUNTED_COLLECTIVES_H

#include "counted.h"

/* The same processes with a topology. */
static MPI_Comm grid;

static void barrier(int bytes)
{
    (void)bytes;
    MPI_Barrier(MPI_COMM_WORLD);
}

static inline void bcast(int root, int bytes)
{
    MPI_Bcast(in, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

static void bcast_from_0(int bytes) { bcast(0, bytes); }
static void bcast_from_1(int bytes) { bcast(1, bytes); }

static void ibcast(int bytes)
{
    MPI_Request request;
    MPI_Ibcast(in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void reduce(int bytes)
{
    MPI_Reduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, 1, MPI_COMM_WORLD);
}

static void allreduce(int bytes)
{
    MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void iallreduce(int bytes)
{
    MPI_Request request;
    MPI_Iallreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void scan(int bytes)
{
    MPI_Scan(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce_scatter_block(int bytes)
{
    MPI_Reduce_scatter_block(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce_scatter(int bytes)
{
    int counts[2] = {bytes / 8, bytes / 8};
    MPI_Reduce_scatter(out, in, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void gather(int bytes)
{
    MPI_Gather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, 1, MPI_COMM_WORLD);
}

static inline void scatter(int root, int bytes)
{
    MPI_Scatter(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

static void scatter_from_0(int bytes) { scatter(0, bytes); }
static void scatter_from_1(int bytes) { scatter(1, bytes); }

static inline void scatterv(int root, int bytes)
{
    int counts[2] = {bytes, bytes}, from[2] = {0, bytes};
    MPI_Scatterv(out, counts, from, MPI_BYTE, in, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

static inline void gatherv(int root, int bytes)
{
    int counts[2] = {bytes, bytes}, at[2] = {0, bytes};
    MPI_Gatherv(out, bytes, MPI_BYTE, in, counts, at, MPI_BYTE, root, MPI_COMM_WORLD);
}

static void scatterv_from_0(int bytes) { scatterv(0, bytes); }
static void scatterv_from_1(int bytes) { scatterv(1, bytes); }
static void gatherv_to_0(int bytes) { gatherv(0, bytes); }
static void gatherv_to_1(int bytes) { gatherv(1, bytes); }

static void allgather(int bytes)
{
    MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void allgatherv(int bytes)
{
    int counts[2] = {bytes, bytes}, from[2] = {0, bytes};
    MPI_Allgatherv(out, bytes, MPI_BYTE, in, counts, from, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoall(int bytes)
{
    MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoallv(int bytes)
{
    int counts[2] = {bytes, bytes}, from[2] = {0, bytes};
    MPI_Alltoallv(out, counts, from, MPI_BYTE, in, counts, from, MPI_BYTE, MPI_COMM_WORLD);
}

static void neighbor_alltoall(int bytes)
{
    MPI_Neighbor_alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, grid);
}

static const struct operation collectives[] = {
    {"barrier", barrier, barrier, nothing, 0},
    {"bcast-0", bcast_from_0, bcast_from_0, nothing, 0},
    {"bcast-8", bcast_from_0, bcast_from_0, nothing, 8},
    {"bcast-1024", bcast_from_0, bcast_from_0, nothing, 1024},
    {"bcast-root-8", bcast_from_1, bcast_from_1, nothing, 8},
    {"bcast-root-1024", bcast_from_1, bcast_from_1, nothing, 1024},
    {"ibcast-0", ibcast, ibcast, nothing, 0},
    {"ibcast-8", ibcast, ibcast, nothing, 8},
    {"reduce-8", reduce, reduce, nothing, 8},
    {"allreduce-0", allreduce, allreduce, nothing, 0},
    {"allreduce-8", allreduce, allreduce, nothing, 8},
    {"allreduce-1024", allreduce, allreduce, nothing, 1024},
    {"iallreduce-8", iallreduce, iallreduce, nothing, 8},
    {"scan-8", scan, scan, nothing, 8},
    {"reduce_scatter_block-64", reduce_scatter_block, reduce_scatter_block, nothing, 64},
    {"reduce_scatter-64", reduce_scatter, reduce_scatter, nothing, 64},
    {"gather-8", gather, gather, nothing, 8},
    {"scatter-8", scatter_from_0, scatter_from_0, nothing, 8},
    {"scatter-root-8", scatter_from_1, scatter_from_1, nothing, 8},
    {"scatter-64", scatter_from_0, scatter_from_0, nothing, 64},
    {"scatter-root-64", scatter_from_1, scatter_from_1, nothing, 64},
    {"scatter-root-1024", scatter_from_1, scatter_from_1, nothing, 1024},
    {"gatherv-0", gatherv_to_1, gatherv_to_1, nothing, 0},
    {"gatherv-8", gatherv_to_0, gatherv_to_0, nothing, 8},
    {"gatherv-root-8", gatherv_to_1, gatherv_to_1, nothing, 8},
    {"scatterv-8", scatterv_from_0, scatterv_from_0, nothing, 8},
    {"scatterv-root-8", scatterv_from_1, scatterv_from_1, nothing, 8},
    {"scatterv-65536", scatterv_from_0, scatterv_from_0, nothing, 65536},
    {"allgather-8", allgather, allgather, nothing, 8},
    {"allgather-1024", allgather, allgather, nothing, 1024},
    {"allgatherv-0", allgatherv, allgatherv, nothing, 0},
    {"allgatherv-8", allgatherv, allgatherv, nothing, 8},
    {"alltoall-8", alltoall, alltoall, nothing, 8},
    {"alltoall-64", alltoall, alltoall, nothing, 64},
    {"alltoallv-0", alltoallv, alltoallv, nothing, 0},
    {"alltoallv-8", alltoallv, alltoallv, nothing, 8},
    {"neighbor_alltoall-64", neighbor_alltoall, neighbor_alltoall, nothing, 64},
};

#endif
