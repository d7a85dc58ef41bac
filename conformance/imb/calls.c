/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that IMB does not measure: communicators that are made and freed, requests, neighbours, probes, a datatype of short runs.
 *
 *   calls SECONDS [STEP...]
 */
#include "steps.h"

enum { MANY = 32, WINDOW = 64, ALIVE = 500, RUNS = 100000 };

static char out[MANY * 64], in[MANY * 64];
static float *spread_out, *spread_in;
static MPI_Comm around, alive[ALIVE];
static MPI_Datatype runs;

static int left(void) { return (rank + size - 1) % size; }
static int right(void) { return (rank + 1) % size; }

static void duplicate(void)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_free(&comm);
}

static void duplicate_and_use(void)
{
    MPI_Comm comm;
    int one = 1, all;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm);
    if (all != size)
        fail("duplicate_and_use");
    MPI_Comm_free(&comm);
}

/* As duplicate, while so many other communicators are there. */
static void duplicate_beside(void) { duplicate(); }

static void split(void)
{
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm);
    MPI_Comm_free(&comm);
}

static void make_grid(void)
{
    MPI_Comm comm;
    int cyclic = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &cyclic, 0, &comm);
    MPI_Comm_free(&comm);
}

/* Many requests, of which one after another is waited for. */
static void waitany(void)
{
    MPI_Request requests[2 * MANY];
    int which;
    for (int n = 0; n < MANY; n++)
        MPI_Irecv(in + n * 8, 8, MPI_BYTE, left(), n, MPI_COMM_WORLD, &requests[n]);
    for (int n = 0; n < MANY; n++)
        MPI_Isend(out + n * 8, 8, MPI_BYTE, right(), n, MPI_COMM_WORLD, &requests[MANY + n]);
    for (int n = 0; n < 2 * MANY; n++)
        MPI_Waitany(2 * MANY, requests, &which, MPI_STATUS_IGNORE);
}

static void neighbours(void) { MPI_Neighbor_alltoall(out, 64, MPI_BYTE, in, 64, MPI_BYTE, around); }

/* Short runs of floats with gaps between them, to the next process. */
static void short_runs(void)
{
    MPI_Sendrecv(spread_out, 1, runs, right(), 1, spread_in, 1, runs, left(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (spread_in[4 * (RUNS - 1)] != spread_out[4 * (RUNS - 1)])
        fail("short_runs");
}

/* Short messages one way, so many at a time; then an answer. */
static void window(void)
{
    MPI_Request requests[WINDOW];
    for (int n = 0; n < WINDOW; n++)
        if (rank % 2 == 0)
            MPI_Isend(out, 8, MPI_BYTE, right(), 2, MPI_COMM_WORLD, &requests[n]);
        else
            MPI_Irecv(in, 8, MPI_BYTE, left(), 2, MPI_COMM_WORLD, &requests[n]);
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    if (rank % 2 == 0)
        MPI_Recv(in, 4, MPI_BYTE, right(), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(out, 4, MPI_BYTE, left(), 3, MPI_COMM_WORLD);
}

static void probe_and_receive(void)
{
    MPI_Status status;
    int there = 0;
    MPI_Send(out, 8, MPI_BYTE, right(), 4, MPI_COMM_WORLD);
    while (!there)
        MPI_Iprobe(left(), 4, MPI_COMM_WORLD, &there, &status);
    MPI_Recv(in, 8, MPI_BYTE, status.MPI_SOURCE, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static const struct step calls[] = {
    {"dup_free", duplicate}, {"dup_allreduce_free", duplicate_and_use}, {"split_free", split}, {"cart_create_free", make_grid},
    {"irecv_isend_waitany", waitany}, {"neighbor_alltoall", neighbours}, {"sendrecv_short_runs", short_runs}, {"window_of_64", window},
    {"send_iprobe_recv", probe_and_receive},
};
static const struct step beside[] = {{"dup_free_500", duplicate_beside}};

int main(int argc, char **argv)
{
    int cyclic = 1;
    MPI_Init(&argc, &argv);
    double seconds = begin_steps(argc, argv);
    if (size % 2 != 0) {
        fprintf(stderr, "calls: give it an even number of processes\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    spread_out = malloc(4 * RUNS * sizeof *spread_out);
    spread_in = calloc(4 * RUNS, sizeof *spread_in);
    if (!spread_out || !spread_in)
        MPI_Abort(MPI_COMM_WORLD, 3);
    for (int n = 0; n < 4 * RUNS; n++)
        spread_out[n] = (float)n;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &cyclic, 0, &around);
    MPI_Type_vector(RUNS, 3, 4, MPI_FLOAT, &runs);
    MPI_Type_commit(&runs);
    measure(calls, sizeof calls / sizeof *calls, seconds, argc, argv);
    for (int n = 0; n < ALIVE; n++)
        MPI_Comm_dup(MPI_COMM_WORLD, &alive[n]);
    measure(beside, sizeof beside / sizeof *beside, seconds, argc, argv);
    for (int n = 0; n < ALIVE; n++)
        MPI_Comm_free(&alive[n]);
    MPI_Type_free(&runs);
    MPI_Comm_free(&around);
    free(spread_out);
    free(spread_in);
    MPI_Finalize();
    return 0;
}
