/* SPDX-License-Identifier: Apache-2.0 */
/* Members that call different operations, or one with different lengths, where these go in messages, because more communicators are there than have
   memory of the node, or because they are intercommunicators: nobody waits for ever. All at once, for whoever waits in
   vain asks after a second.
   ranks: 2 4 */
#include "disagree.h"

enum { KEPT = 72, CASES = 10, INTER = CASES - 1, OPERATIONS = 16, LONG = 120000 };

static double mine[4], all[64];
static int from[MOST * LONG], into[MOST * LONG];
static MPI_Comm made;

/* An operation of a member; the last rank calls another one than the others. */
static void start(int what, int odd, MPI_Comm comm, MPI_Request *request)
{
    int root = what == 3 || what == 4 ? size - 1 : 0;
    switch (what) {
    case 0:
        odd ? MPI_Ibarrier(comm, request) : MPI_Ibcast(mine, 1, MPI_DOUBLE, root, comm, request);
        break;
    case 1:
        odd ? MPI_Ibcast(mine, 1, MPI_DOUBLE, root, comm, request) : MPI_Ibarrier(comm, request);
        break;
    case 2:
        odd ? MPI_Iallreduce(mine, all, 1, MPI_DOUBLE, MPI_SUM, comm, request)
            : MPI_Igather(mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, root, comm, request);
        break;
    case 3: /* It has done its part when the others ask. */
        odd ? MPI_Igather(mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, comm, request)
            : MPI_Iscatter(mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, root, comm, request);
        break;
    case 4:
        odd ? MPI_Iscan(mine, all, 1, MPI_DOUBLE, MPI_SUM, comm, request)
            : MPI_Ibcast(mine, 1, MPI_DOUBLE, root, comm, request);
        break;
    case 5: /* Persistent ones. */
        odd ? MPI_Barrier_init(comm, MPI_INFO_NULL, request)
            : MPI_Bcast_init(mine, 1, MPI_DOUBLE, root, comm, MPI_INFO_NULL, request);
        OK(MPI_Start(request));
        break;
    case 6: /* A persistent one, and one that is called. */
        if (!odd) {
            OK(MPI_Ibarrier(comm, request));
            break;
        }
        OK(MPI_Barrier_init(comm, MPI_INFO_NULL, request));
        OK(MPI_Start(request));
        break;
    case 7: /* And the other way round. */
        if (odd) {
            OK(MPI_Ibcast(mine, 1, MPI_DOUBLE, root, comm, request));
            break;
        }
        OK(MPI_Allreduce_init(mine, all, 1, MPI_DOUBLE, MPI_SUM, comm, MPI_INFO_NULL, request));
        OK(MPI_Start(request));
        break;
    case 8: /* A communicator is made. */
        odd ? MPI_Comm_idup(comm, &made, request)
            : MPI_Iallgather(mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, comm, request);
        break;
    default: /* Between two groups: the last of one of them. */
        odd ? MPI_Ibarrier(comm, request) : MPI_Iallgather(mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, comm, request);
    }
}

/* True if it failed. Two of four members never wait. */
static int end(MPI_Request *request)
{
    int error = MPI_SUCCESS, over = 0;
    if (rank < 2)
        return MPI_Wait(request, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    while (error == MPI_SUCCESS && !over)
        error = MPI_Test(request, &over, MPI_STATUS_IGNORE);
    return error != MPI_SUCCESS;
}

/* Of n elements in a block, as the caller says. */
static int operation(int what, int n, MPI_Comm comm)
{
    struct blocks b = blocks_of(n, LONG);
    switch (what) {
    case 0:
        return MPI_Reduce(from, into, n, MPI_INT, MPI_SUM, 0, comm);
    case 1:
        return MPI_Allreduce(from, into, n, MPI_INT, MPI_SUM, comm);
    case 2:
        return MPI_Scan(from, into, n, MPI_INT, MPI_SUM, comm);
    case 3:
        return MPI_Exscan(from, into, n, MPI_INT, MPI_SUM, comm);
    case 4:
        return MPI_Reduce_scatter_block(from, into, n, MPI_INT, MPI_SUM, comm);
    case 5:
        return MPI_Reduce_scatter(from, into, b.counts, MPI_INT, MPI_SUM, comm);
    case 6:
        return MPI_Bcast(into, n, MPI_INT, 0, comm);
    case 7:
        return MPI_Gather(from, n, MPI_INT, into, n, MPI_INT, 0, comm);
    case 8:
        return MPI_Gatherv(from, n, MPI_INT, into, b.counts, b.starts, MPI_INT, 0, comm);
    case 9:
        return MPI_Scatter(from, n, MPI_INT, into, n, MPI_INT, 0, comm);
    case 10:
        return MPI_Scatterv(from, b.counts, b.starts, MPI_INT, into, n, MPI_INT, 0, comm);
    case 11:
        return MPI_Allgather(from, n, MPI_INT, into, n, MPI_INT, comm);
    case 12:
        return MPI_Allgatherv(from, n, MPI_INT, into, b.counts, b.starts, MPI_INT, comm);
    case 13:
        return MPI_Alltoall(from, n, MPI_INT, into, n, MPI_INT, comm);
    case 14:
        return MPI_Alltoallv(from, b.counts, b.starts, MPI_INT, into, b.counts, b.starts, MPI_INT, comm);
    default:
        return MPI_Alltoallw(from, b.counts, b.bytes, b.types, into, b.counts, b.bytes, b.types, comm);
    }
}

/* Of which the last rank gives more elements than the others, or fewer; short data, and such as go in pieces. */
static void lengths(MPI_Comm world)
{
    for (int what = 0; what < OPERATIONS; what++)
        for (int how = 0; how < 3; how++) {
            MPI_Comm comm;
            int n = how < 2 ? 1 : LONG / 3, odd = rank == size - 1, class, failed, any;
            OK(MPI_Comm_dup(world, &comm));
            OK(MPI_Error_class(operation(what, odd == (how < 2 ? how : what % 2) ? 3 * n : n, comm), &class));
            /* Others may hear only that somebody has given it up. */
            if (class != MPI_SUCCESS && class != MPI_ERR_TRUNCATE && class != MPI_ERR_OTHER)
                printf("operation %d, %d: class %d\n", what, how, class);
            CHECK(class == MPI_SUCCESS || class == MPI_ERR_TRUNCATE || class == MPI_ERR_OTHER);
            failed = class == MPI_ERR_TRUNCATE;
            OK(MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, world));
            if (!any)
                printf("operation %d, %d: nobody is told\n", what, how);
            CHECK(any);
            OK(MPI_Comm_free(&comm));
        }
}

/* The last rank gives the first one nothing where that expects something, or much where that expects nothing: who waits in vain hears that the
   other one is through. The communicator stays usable. */
static void blocks(MPI_Comm world)
{
    enum { WAYS = 4 };
    struct blocks b = blocks_of(0, LONG);
    MPI_Comm comms[WAYS];
    MPI_Request requests[WAYS];
    MPI_Comm node;
    int gives[WAYS][MOST], takes[WAYS][MOST], failed[WAYS], any[WAYS], sum, near;
    for (int i = 0; i < WAYS; i++)
        OK(MPI_Comm_dup(world, &comms[i]));
    OK(MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Comm_size(node, &near));
    OK(MPI_Comm_free(&node));
    for (int i = 0; i < WAYS; i++) {
        int expected = i % 2 ? 0 : 1, given = i % 2 ? LONG : 0;
        for (int r = 0; r < MOST; r++)
            gives[i][r] = takes[i][r] = 0;
        if (rank == size - 1)
            gives[i][0] = given;
        if (rank == 0)
            takes[i][size - 1] = expected;
        if (i < 2)
            OK(MPI_Ialltoallv(from, gives[i], b.starts, MPI_INT, into, takes[i], b.starts, MPI_INT, comms[i], &requests[i]));
        else
            OK(MPI_Igatherv(from, gives[i][0], MPI_INT, into, takes[i], b.starts, MPI_INT, 0, comms[i], &requests[i]));
    }
    for (int i = 0; i < WAYS; i++) {
        int class;
        OK(MPI_Error_class(MPI_Wait(&requests[i], MPI_STATUS_IGNORE), &class));
        CHECK(class == MPI_SUCCESS || class == MPI_ERR_TRUNCATE);
        failed[i] = class != MPI_SUCCESS;
    }
    OK(MPI_Allreduce(failed, any, WAYS, MPI_INT, MPI_SUM, world));
    for (int i = 0; i < WAYS; i++) {
        /* Over sites blocks that are shorter may go unnoticed. */
        CHECK(any[i] || near < size);
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comms[i]));
        CHECK(sum == size * (size - 1) / 2);
        OK(MPI_Comm_free(&comms[i]));
    }
}

int main(void)
{
    MPI_Comm world = begin(), kept[KEPT], comms[CASES], half, apart;
    MPI_Request requests[CASES];
    int failed[CASES], any[CASES];
    for (int i = 0; i < KEPT; i++)
        OK(MPI_Comm_dup(world, &kept[i]));
    for (int i = 0; i < INTER; i++)
        OK(MPI_Comm_dup(world, &comms[i]));
    OK(MPI_Comm_split(world, rank < size / 2, 0, &half));
    OK(MPI_Intercomm_create(half, 0, world, rank < size / 2 ? size / 2 : 0, 1, &comms[INTER]));
    OK(MPI_Comm_set_errhandler(comms[INTER], MPI_ERRORS_RETURN));

    for (int i = 0; i < CASES; i++)
        start(i, rank == size - 1, comms[i], &requests[i]);
    for (int i = 0; i < CASES; i++)
        failed[i] = end(&requests[i]);
    for (int i = 5; i < 8; i++)
        if (requests[i] != MPI_REQUEST_NULL)
            OK(MPI_Request_free(&requests[i]));
    OK(MPI_Allreduce(failed, any, CASES, MPI_INT, MPI_MAX, world));
    for (int i = 0; i < CASES; i++)
        CHECK(any[i]);

    /* Two calls that make communicators. */
    OK(MPI_Comm_dup(world, &apart));
    made = MPI_COMM_NULL;
    failed[0] = (rank == size - 1 ? MPI_Comm_dup(apart, &made) : MPI_Comm_split(apart, 0, 0, &made)) != MPI_SUCCESS;
    CHECK(failed[0] == (made == MPI_COMM_NULL));
    OK(MPI_Allreduce(failed, any, 1, MPI_INT, MPI_MAX, world));
    CHECK(any[0]);
    OK(MPI_Comm_free(&apart));

    lengths(world);
    blocks(world);
    for (int i = 0; i < CASES; i++)
        OK(MPI_Comm_free(&comms[i]));
    for (int i = 0; i < KEPT; i++)
        OK(MPI_Comm_free(&kept[i]));
    OK(MPI_Comm_free(&half));
    end_with(world, "members that disagree in messages are told so");
    return 0;
}
