/* SPDX-License-Identifier: Apache-2.0 */
/* What one process does alone. */
#ifndef COUNTED_LOCAL_H
#define COUNTED_LOCAL_H

#include "counted.h"

static MPI_Datatype vector;

static void comm_rank(int bytes)
{
    int me;
    (void)bytes;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
}

static void reduce_local(int bytes)
{
    MPI_Reduce_local(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM);
}

static void reduce_local_floats(int bytes)
{
    MPI_Reduce_local(out, in, bytes / 4, MPI_FLOAT, MPI_SUM);
}

static void pack(int bytes)
{
    int at = 0;
    (void)bytes;
    MPI_Pack(out, 1, vector, in, sizeof in, &at, MPI_COMM_SELF);
}

static void contiguous(int bytes)
{
    MPI_Datatype type;
    (void)bytes;
    MPI_Type_contiguous(4, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&type);
}

static const struct operation local[] = {
    {"comm_rank", nothing, comm_rank, nothing, 0},
    {"reduce_local-8", nothing, reduce_local, nothing, 8},
    {"reduce_local-64", nothing, reduce_local, nothing, 64},
    {"reduce_local-4096", nothing, reduce_local, nothing, 4096},
    {"reduce_local-floats-4096", nothing, reduce_local_floats, nothing, 4096},
    {"pack-vector", nothing, pack, nothing, 0},
    {"type+commit+free", nothing, contiguous, nothing, 0},
};

#endif
