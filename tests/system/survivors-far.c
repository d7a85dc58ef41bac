/* SPDX-License-Identifier: Apache-2.0 */
/* For survivors-far.sh: how long agreeing, shrinking, revoking, connecting and spawning take over sites, in milliseconds. Clocks of the testbed's hosts are one. */
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

/* Between the first process and the last one, of another site. */
static double connecting(int rank, int size)
{
    char port[MPI_MAX_PORT_NAME] = "";
    double best = 1e9, began, time = 0;
    MPI_Comm inter;
    for (int round = 0; round < 3; round++) {
        if (rank == 0)
            MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        began = now();
        if (rank == 0)
            MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
        else if (rank == size - 1)
            MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
        time = longest(now() - began);
        best = time < best ? time : best;
        if (rank == 0 || rank == size - 1)
            MPI_Comm_disconnect(&inter);
        if (rank == 0)
            MPI_Close_port(port);
    }
    return best;
}

/* Four processes at a site. */
static double spawning(const char *program, int rank, char *site)
{
    double best = 1e9, began, time = 0;
    char *arguments[] = {"child", NULL};
    MPI_Comm inter;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "isthmus_site", site);
    for (int round = 0; round < 2; round++) {
        began = now();
        if (rank == 0 && MPI_Comm_spawn(program, arguments, 4, info, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE) == MPI_SUCCESS) {
            time = now() - began;
            MPI_Comm_disconnect(&inter);
            best = time < best ? time : best;
        }
    }
    MPI_Info_free(&info);
    return best;
}

int main(int argc, char **argv)
{
    int rank, size, flag, rounds = 5, never;
    double best[3] = {1e9, 1e9, 1e9}, began, time;
    MPI_Comm comm, smaller;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&comm);
    if (comm != MPI_COMM_NULL) {
        MPI_Comm_disconnect(&comm);
        MPI_Finalize();
        return 0;
    }
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
    time = connecting(rank, size);
    double home = spawning(argv[0], rank, "home"), far = spawning(argv[0], rank, "b1");
    if (rank == 0)
        printf("connect %.1f ms, spawn of 4 at home %.1f ms, at another site %.1f ms\n", time, home, far);
    MPI_Finalize();
    return 0;
}
