/* SPDX-License-Identifier: Apache-2.0 */
/* For survivors-far.sh: how long agreeing, shrinking and revoking take over sites, in milliseconds. Clocks of the testbed's hosts are one. */
#include <mpi-ext.h>
#include <stdio.h>
#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

/* The longest that a process took. */
static double longest(double time)
{
    double most;
    MPI_Allreduce(&time, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

int main(int argc, char **argv)
{
    int rank, size, flag, rounds = 5, never;
    double best[3] = {1e9, 1e9, 1e9}, began, time;
    MPI_Comm comm, smaller;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    /* All are connected with all. */
    int got = 0;
    for (int i = 0; i < 3; i++)
        for (int to = 0; to < size; to++)
            MPI_Sendrecv(&rank, 1, MPI_INT, (rank + to) % size, 1, &got, 1, MPI_INT, (rank + size - to) % size, 1, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    for (int round = 0; round < rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        began = now();
        flag = -1;
        MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
        time = longest(now() - began);
        best[0] = time < best[0] ? time : best[0];
        MPI_Barrier(MPI_COMM_WORLD);
        began = now();
        MPIX_Comm_shrink(MPI_COMM_WORLD, &smaller);
        time = longest(now() - began);
        best[1] = time < best[1] ? time : best[1];
        MPI_Comm_free(&smaller);
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Barrier(comm);
        began = now();
        if (rank == 0)
            MPIX_Comm_revoke(comm);
        else if (MPI_Recv(&never, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, MPI_STATUS_IGNORE) != MPIX_ERR_REVOKED)
            MPI_Abort(MPI_COMM_WORLD, 3);
        time = now();
        MPI_Bcast(&began, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        time = longest(time - began);
        best[2] = time < best[2] ? time : best[2];
        MPI_Comm_free(&comm);
    }
    if (rank == 0)
        printf("agree %.1f ms, shrink %.1f ms, revoke %.1f ms with %d ranks\n", best[0], best[1], best[2], size);
    MPI_Finalize();
    return 0;
}
