/* SPDX-License-Identifier: Apache-2.0 */
/* One member calls another collective operation than the others: nobody waits for ever, and errors name what was called.
   ranks: 3 */
#include "check.h"
#include <string.h>

enum { SIZE = 3, KINDS = 21 };
static const char *names[KINDS] = {
    "MPI_Barrier",    "MPI_Bcast",      "MPI_Gather",    "MPI_Gatherv",   "MPI_Scatter",        "MPI_Scatterv",
    "MPI_Allgather",  "MPI_Allgatherv", "MPI_Alltoall",  "MPI_Alltoallv", "MPI_Alltoallw",      "MPI_Reduce",
    "MPI_Allreduce",  "MPI_Scan",       "MPI_Exscan",    "MPI_Reduce_scatter", "MPI_Reduce_scatter_block",
    "empty MPI_Gather", "empty MPI_Bcast", "long MPI_Bcast", "long MPI_Allreduce"};
static int rank;
static int in[1 << 18], out[1 << 18];

static int call(int kind, MPI_Comm comm)
{
    int counts[SIZE] = {1, 1, 1}, offsets[SIZE] = {0, 1, 2}, bytes[SIZE] = {0, 4, 8};
    MPI_Datatype types[SIZE] = {MPI_INT, MPI_INT, MPI_INT};
    switch (kind) {
    case 0: return MPI_Barrier(comm);
    case 1: return MPI_Bcast(in, 1, MPI_INT, 0, comm);
    case 2: return MPI_Gather(in, 1, MPI_INT, out, 1, MPI_INT, 0, comm);
    case 3: return MPI_Gatherv(in, 1, MPI_INT, out, counts, offsets, MPI_INT, 0, comm);
    case 4: return MPI_Scatter(in, 1, MPI_INT, out, 1, MPI_INT, 0, comm);
    case 5: return MPI_Scatterv(in, counts, offsets, MPI_INT, out, 1, MPI_INT, 0, comm);
    case 6: return MPI_Allgather(in, 1, MPI_INT, out, 1, MPI_INT, comm);
    case 7: return MPI_Allgatherv(in, 1, MPI_INT, out, counts, offsets, MPI_INT, comm);
    case 8: return MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, comm);
    case 9: return MPI_Alltoallv(in, counts, offsets, MPI_INT, out, counts, offsets, MPI_INT, comm);
    case 10: return MPI_Alltoallw(in, counts, bytes, types, out, counts, bytes, types, comm);
    case 11: return MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, 0, comm);
    case 12: return MPI_Allreduce(in, out, 1, MPI_INT, MPI_SUM, comm);
    case 13: return MPI_Scan(in, out, 1, MPI_INT, MPI_SUM, comm);
    case 14: return MPI_Exscan(in, out, 1, MPI_INT, MPI_SUM, comm);
    case 15: return MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, comm);
    case 16: return MPI_Reduce_scatter_block(in, out, 1, MPI_INT, MPI_SUM, comm);
    case 17: return MPI_Gather(in, 0, MPI_INT, out, 0, MPI_INT, 0, comm);
    case 18: return MPI_Bcast(in, 0, MPI_INT, 0, comm);
    case 19: return MPI_Bcast(in, 1 << 18, MPI_INT, 0, comm);
    default: return MPI_Allreduce(in, out, 1 << 18, MPI_INT, MPI_SUM, comm);
    }
}

static void pair(int most, int odd, int which, MPI_Comm world)
{
    MPI_Comm comm;
    char text[MPI_MAX_ERROR_STRING] = "";
    int code, length, mine[2], all[2];
    OK(MPI_Comm_dup(world, &comm));
    code = call(rank == which ? odd : most, comm);
    /* Whoever could leave at once did; whoever comes next does not wait either. */
    if (code == MPI_SUCCESS)
        code = MPI_Barrier(comm);
    if (code != MPI_SUCCESS)
        OK(MPI_Error_string(code, text, &length));
    mine[0] = code != MPI_SUCCESS;
    mine[1] = strstr(text, " was in ") != NULL || strstr(text, "truncated") != NULL;
    OK(MPI_Allreduce(mine, all, 2, MPI_INT, MPI_MAX, world));
    if (most == odd)
        CHECK(!all[0]);
    if (all[0] && !all[1]) {
        fprintf(stderr, "%s and %s at %d: %s\n", names[most], names[odd], which, text);
        CHECK(!"an error that names what was called");
    }
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
    MPI_Comm world;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &world));
    OK(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN));
    for (int most = 0; most < KINDS; most++)
        for (int odd = 0; odd < KINDS; odd++)
            for (int which = 0; which < SIZE; which++)
                pair(most, odd, which, world);
    OK(MPI_Comm_free(&world));
    OK(MPI_Finalize());
    if (rank == 0)
        printf("nobody waits for ever for members that call something else\n");
    return 0;
}
