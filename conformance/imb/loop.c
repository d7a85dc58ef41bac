/* SPDX-License-Identifier: Apache-2.0 */
/* What short collective operations take in a loop, the root in turn: microseconds for each call, the best of seven loops at the slower process.

     mpicc -O2 conformance/imb/loop.c -o loop && mpiexec -n 2 ./loop gatherv 3000 0 8 1024 4096

   Arguments: an operation, calls in a loop, and bytes of a block. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, BYTES = 1 << 16 };

static char give[MOST * BYTES], take[MOST * BYTES];
static int counts[MOST], displs[MOST], elements[MOST];
static MPI_Datatype types[MOST];
static const MPI_Comm world = MPI_COMM_WORLD;

static const char *names[] = {"gatherv", "scatterv", "allgatherv", "alltoallv", "alltoallw", "reduce_scatter", "allreduce", "bcast", "barrier"};
enum { GATHERV, SCATTERV, ALLGATHERV, ALLTOALLV, ALLTOALLW, REDUCE_SCATTER, ALLREDUCE, BCAST, BARRIER, OPERATIONS };

static void call(int what, int n, int root)
{
    switch (what) {
    case GATHERV: MPI_Gatherv(give, n, MPI_BYTE, take, counts, displs, MPI_BYTE, root, world); break;
    case SCATTERV: MPI_Scatterv(give, counts, displs, MPI_BYTE, take, n, MPI_BYTE, root, world); break;
    case ALLGATHERV: MPI_Allgatherv(give, n, MPI_BYTE, take, counts, displs, MPI_BYTE, world); break;
    case ALLTOALLV: MPI_Alltoallv(give, counts, displs, MPI_BYTE, take, counts, displs, MPI_BYTE, world); break;
    case ALLTOALLW: MPI_Alltoallw(give, counts, displs, types, take, counts, displs, types, world); break;
    case REDUCE_SCATTER: MPI_Reduce_scatter(give, take, elements, MPI_DOUBLE, MPI_SUM, world); break;
    case ALLREDUCE: MPI_Allreduce(give, take, n / 8, MPI_DOUBLE, MPI_SUM, world); break;
    case BCAST: MPI_Bcast(give, n, MPI_BYTE, root, world); break;
    default: MPI_Barrier(world);
    }
}

/* The same as a nonblocking operation. */
static MPI_Request begun(int what, int n, int root)
{
    MPI_Request r;
    switch (what) {
    case GATHERV: MPI_Igatherv(give, n, MPI_BYTE, take, counts, displs, MPI_BYTE, root, world, &r); break;
    case SCATTERV: MPI_Iscatterv(give, counts, displs, MPI_BYTE, take, n, MPI_BYTE, root, world, &r); break;
    case ALLGATHERV: MPI_Iallgatherv(give, n, MPI_BYTE, take, counts, displs, MPI_BYTE, world, &r); break;
    case ALLTOALLV: MPI_Ialltoallv(give, counts, displs, MPI_BYTE, take, counts, displs, MPI_BYTE, world, &r); break;
    case ALLTOALLW: MPI_Ialltoallw(give, counts, displs, types, take, counts, displs, types, world, &r); break;
    case REDUCE_SCATTER: MPI_Ireduce_scatter(give, take, elements, MPI_DOUBLE, MPI_SUM, world, &r); break;
    case ALLREDUCE: MPI_Iallreduce(give, take, n / 8, MPI_DOUBLE, MPI_SUM, world, &r); break;
    case BCAST: MPI_Ibcast(give, n, MPI_BYTE, root, world, &r); break;
    default: MPI_Ibarrier(world, &r);
    }
    return r;
}

#if MPI_VERSION >= 4
/* The same as a persistent operation with root 0. */
static MPI_Request made(int what, int n)
{
    MPI_Request r;
    MPI_Info i = MPI_INFO_NULL;
    switch (what) {
    case GATHERV: MPI_Gatherv_init(give, n, MPI_BYTE, take, counts, displs, MPI_BYTE, 0, world, i, &r); break;
    case SCATTERV: MPI_Scatterv_init(give, counts, displs, MPI_BYTE, take, n, MPI_BYTE, 0, world, i, &r); break;
    case ALLGATHERV: MPI_Allgatherv_init(give, n, MPI_BYTE, take, counts, displs, MPI_BYTE, world, i, &r); break;
    case ALLTOALLV: MPI_Alltoallv_init(give, counts, displs, MPI_BYTE, take, counts, displs, MPI_BYTE, world, i, &r); break;
    case ALLTOALLW: MPI_Alltoallw_init(give, counts, displs, types, take, counts, displs, types, world, i, &r); break;
    case REDUCE_SCATTER: MPI_Reduce_scatter_init(give, take, elements, MPI_DOUBLE, MPI_SUM, world, i, &r); break;
    case ALLREDUCE: MPI_Allreduce_init(give, take, n / 8, MPI_DOUBLE, MPI_SUM, world, i, &r); break;
    case BCAST: MPI_Bcast_init(give, n, MPI_BYTE, 0, world, i, &r); break;
    default: MPI_Barrier_init(world, i, &r);
    }
    return r;
}
#endif

enum { BLOCKING, NONBLOCKING, PERSISTENT, WAYS };
static const char *prefixes[] = {"", "nonblocking_", "persistent_"};

static double loop(int what, int way, int calls, int n, int size, MPI_Request *request)
{
    double since, time, slower;
    MPI_Barrier(world);
    since = MPI_Wtime();
    for (int i = 0; i < calls; i++) {
        if (way == BLOCKING) {
            call(what, n, i % size);
            continue;
        }
        if (way == PERSISTENT)
            MPI_Start(request);
        else
            *request = begun(what, n, i % size);
        MPI_Wait(request, MPI_STATUS_IGNORE);
    }
    time = (MPI_Wtime() - since) / calls * 1e6;
    MPI_Allreduce(&time, &slower, 1, MPI_DOUBLE, MPI_MAX, world);
    return slower;
}

int main(int argc, char **argv)
{
    int rank, size, what, way;
    const char *name = argc > 3 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    for (way = WAYS - 1; strncmp(name, prefixes[way], strlen(prefixes[way])) != 0; way--)
        ;
    for (what = 0; what < OPERATIONS && strcmp(names[what], name + strlen(prefixes[way])) != 0; what++)
        ;
    if (what == OPERATIONS || size > MOST) {
        fprintf(stderr, "usage: loop [nonblocking_|persistent_]OPERATION CALLS BYTES..., at most %d processes\n", MOST);
        MPI_Abort(world, 2);
    }
    for (int k = 3; k < argc; k++) {
        int n = atoi(argv[k]);
        double best = 1e9;
        MPI_Request request = MPI_REQUEST_NULL;
        if (n < 0 || n > BYTES)
            MPI_Abort(world, 2);
        for (int i = 0; i < size; i++) {
            counts[i] = n;
            displs[i] = i * n;
            elements[i] = n / 8;
            types[i] = MPI_BYTE;
        }
#if MPI_VERSION >= 4
        if (way == PERSISTENT)
            request = made(what, n);
#endif
        for (int again = 0; again < 7; again++) {
            double time = loop(what, way, atoi(argv[2]), n, size, &request);
            best = time < best ? time : best;
        }
        if (request != MPI_REQUEST_NULL)
            MPI_Request_free(&request);
        if (rank == 0)
            printf("%s %d %.2f\n", name, n, best);
    }
    MPI_Finalize();
    return 0;
}
