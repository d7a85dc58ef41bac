/* SPDX-License-Identifier: Apache-2.0 */
/* Members of which some give or expect no data, or another number of elements, where the others wait for them: in persistent operations, in
   operations of unequal blocks, and between two groups, or call another operation. Whoever would wait for ever has an error. All at once, for whoever waits in vain asks
   after a second.
   ranks: 2 4 */
#include "disagree.h"

enum { SCAN, EXSCAN, SUM, SUM_BLOCK, KEPT, GATHERV = KEPT, ALLTOALLV, ALLTOALLW, SCATTERV, REDUCE, ALLREDUCE, ALLGATHER, GATHER, SCATTER, BCAST };
enum { INTER = REDUCE, OPERATIONS = BCAST + 1, NUMBERS = 4, CASES = NUMBERS * OPERATIONS, LONG = 5000 };
/* Of the last rank, and of the others. */
static const int numbers[NUMBERS][2] = {{0, LONG}, {LONG, 0}, {1, LONG}, {LONG, 1}};
static int from[MOST * LONG], into[MOST * LONG];

/* Whether it is an operation of two groups. */
static int is_between(int what)
{
    return what >= INTER;
}

/* Starts an operation of n elements, between two groups if `inter`. */
static int start(int what, int n, int inter, MPI_Comm comm, MPI_Request *request)
{
    struct blocks of = blocks_of(n, LONG);
    int *counts = of.counts, *starts = of.starts, *bytes = of.bytes, code;
    int root = !inter ? 0 : rank >= size / 2 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Datatype *types = of.types, t = MPI_INT;
    switch (what) {
    case SCAN:
        code = MPI_Scan_init(from, into, n, t, MPI_SUM, comm, MPI_INFO_NULL, request);
        break;
    case EXSCAN:
        code = MPI_Exscan_init(from, into, n, t, MPI_SUM, comm, MPI_INFO_NULL, request);
        break;
    case SUM:
        code = MPI_Reduce_scatter_init(from, into, counts, t, MPI_SUM, comm, MPI_INFO_NULL, request);
        break;
    case SUM_BLOCK:
        code = MPI_Reduce_scatter_block_init(from, into, n, t, MPI_SUM, comm, MPI_INFO_NULL, request);
        break;
    case GATHERV:
        return MPI_Igatherv(from, n, t, into, counts, starts, t, root, comm, request);
    case SCATTERV:
        return MPI_Iscatterv(from, counts, starts, t, into, n, t, root, comm, request);
    case ALLTOALLV:
        return MPI_Ialltoallv(from, counts, starts, t, into, counts, starts, t, comm, request);
    case ALLTOALLW:
        return MPI_Ialltoallw(from, counts, bytes, types, into, counts, bytes, types, comm, request);
    case REDUCE:
        return MPI_Ireduce(from, into, n, t, MPI_SUM, root, comm, request);
    case ALLREDUCE:
        return MPI_Iallreduce(from, into, n, t, MPI_SUM, comm, request);
    case ALLGATHER:
        return MPI_Iallgather(from, n, t, into, n, t, comm, request);
    case GATHER:
        return MPI_Igather(from, n, t, into, n, t, root, comm, request);
    case SCATTER:
        return MPI_Iscatter(from, n, t, into, n, t, root, comm, request);
    default:
        return MPI_Ibcast(into, n, t, root, comm, request);
    }
    return code ? code : MPI_Start(request);
}

/* The root of a long scatterv waits for receivers that are in another operation. */
static void scattered(MPI_Comm world)
{
    for (int how = 0; how < 2; how++) {
        struct blocks of = blocks_of(LONG, LONG);
        int *counts = of.counts, *starts = of.starts, code;
        MPI_Comm comm;
        MPI_Request request = MPI_REQUEST_NULL;
        OK(MPI_Comm_dup(world, &comm));
        if (rank > 0)
            code = MPI_Gather(from, 1, MPI_INT, into, 1, MPI_INT, 0, comm);
        else if (how == 0)
            code = MPI_Scatterv(from, counts, starts, MPI_INT, into, LONG, MPI_INT, 0, comm);
        else
            code = MPI_Iscatterv(from, counts, starts, MPI_INT, into, LONG, MPI_INT, 0, comm, &request);
        code = code ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(rank > 0 || code != MPI_SUCCESS);
        OK(MPI_Barrier(world));
        OK(MPI_Comm_free(&comm));
    }
}

int main(void)
{
    MPI_Comm world = begin(), half, comms[CASES];
    MPI_Request requests[CASES];
    int failed[CASES], any[CASES];
    OK(MPI_Comm_split(world, rank < size / 2, 0, &half));
    for (int i = 0; i < CASES; i++) {
        if (is_between(i / NUMBERS))
            OK(MPI_Intercomm_create(half, 0, world, rank < size / 2 ? size / 2 : 0, 1, &comms[i]));
        else
            OK(MPI_Comm_dup(world, &comms[i]));
        OK(MPI_Comm_set_errhandler(comms[i], MPI_ERRORS_RETURN));
    }
    for (int i = 0; i < CASES; i++) {
        /* Within a group one differs, between two all of one. */
        int what = i / NUMBERS, odd = is_between(what) ? rank >= size / 2 : rank == size - 1;
        requests[i] = MPI_REQUEST_NULL;
        failed[i] = start(what, numbers[i % NUMBERS][!odd], is_between(what), comms[i], &requests[i]);
    }
    for (int i = 0; i < CASES; i++) {
        int class;
        if (failed[i] == MPI_SUCCESS)
            failed[i] = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        OK(MPI_Error_class(failed[i], &class));
        /* Others may hear only that somebody has given it up. */
        if (class != MPI_SUCCESS && class != MPI_ERR_TRUNCATE && class != MPI_ERR_OTHER)
            printf("case %d: class %d\n", i, class);
        CHECK(class == MPI_SUCCESS || class == MPI_ERR_TRUNCATE || class == MPI_ERR_OTHER);
        failed[i] = class == MPI_ERR_TRUNCATE;
        if (requests[i] != MPI_REQUEST_NULL)
            OK(MPI_Request_free(&requests[i]));
    }
    OK(MPI_Allreduce(failed, any, CASES, MPI_INT, MPI_MAX, world));
    for (int i = 0; i < CASES; i++) {
        /* In the others those who differ may be waited for by nobody. */
        int waits = i / NUMBERS == ALLREDUCE || (i / NUMBERS < KEPT && i % NUMBERS == 1);
        if (waits && !any[i])
            printf("operation %d, %d and %d elements: nobody is told\n", i / NUMBERS, numbers[i % NUMBERS][1], numbers[i % NUMBERS][0]);
        CHECK(!waits || any[i]);
        OK(MPI_Comm_free(&comms[i]));
    }
    OK(MPI_Comm_free(&half));
    scattered(world);
    end_with(world, "members without data are not waited for");
    return 0;
}
