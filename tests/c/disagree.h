/* SPDX-License-Identifier: Apache-2.0 */
/* What programs share whose members disagree: a communicator with the processes of the job whose errors are returned. */
#ifndef DISAGREE_H
#define DISAGREE_H

#include "check.h"

/* Members of a job: as many as collectives.sh starts. */
enum { MOST = 6 };

static int rank, size;

/* So many elements for each process, the blocks so far apart. */
struct blocks {
    int counts[MOST], starts[MOST], bytes[MOST];
    MPI_Datatype types[MOST];
};

static inline struct blocks blocks_of(int n, int apart)
{
    struct blocks all;
    for (int i = 0; i < MOST; i++) {
        all.counts[i] = n;
        all.starts[i] = i * apart;
        all.bytes[i] = (int)sizeof(int) * all.starts[i];
        all.types[i] = MPI_INT;
    }
    return all;
}

static inline MPI_Comm begin(void)
{
    MPI_Comm world;
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &world));
    OK(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN));
    OK(MPI_Comm_rank(world, &rank));
    OK(MPI_Comm_size(world, &size));
    return world;
}

static inline void end_with(MPI_Comm world, const char *what)
{
    OK(MPI_Comm_free(&world));
    OK(MPI_Finalize());
    if (rank == 0)
        printf("%s\n", what);
}

#endif
