/* SPDX-License-Identifier: Apache-2.0 */
/* Collective operations of no data, or of blocks of which some are empty: each ends in every role, the operation behind it has the right data.
   All that move data or compute, blocking, nonblocking and persistent, in one group and between two, where some give MPI_PROC_NULL.
   ranks: 2 5 */
#include "check.h"

enum { MOST = 16, FOLLOWING = 32 };

static int size, world, form;
/* Of the communicator: between groups; this rank and its group; the others that it exchanges with, and the first of them in the world. */
static MPI_Comm comm;
static int inter, me, mine, theirs, first;
/* The argument root, the root's rank in the world, and what this process is. */
static int root, root_in_world, is_root, is_bystander;

static int buf[MOST], got[6][MOST], words[FOLLOWING], followed, counts[MOST], zeros[MOST], displs[MOST], bytes[MOST];
static MPI_Datatype nothing, ints[MOST], nothings[MOST];
static MPI_Op none;
static MPI_Request requests[2 * FOLLOWING];
static int pending;

#define DO(blocking, nonblocking, persistent, ...) \
    do { \
        if (form == 0) { \
            OK(MPI_##blocking(__VA_ARGS__)); \
        } else if (form == 1) { \
            OK(MPI_##nonblocking(__VA_ARGS__, &requests[pending++])); \
        } else { \
            MPI_Request request; \
            OK(MPI_##persistent(__VA_ARGS__, MPI_INFO_NULL, &request)); \
            for (int time = 0; time < 2; time++) { \
                OK(MPI_Start(&request)); \
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE)); \
            } \
            OK(MPI_Request_free(&request)); \
        } \
        follow(); \
    } while (0)

static void computes_nothing(void *in, void *inout, int *n, MPI_Datatype *type)
{
    CHECK(in != NULL && inout != NULL && *n > 0 && type != NULL);
}

/* The operation behind another one. */
static void follow(void)
{
    int *word = &words[followed++];
    *word = is_root ? 1000 + followed : -1;
    if (form == 0)
        OK(MPI_Bcast(word, 1, MPI_INT, root, comm));
    else
        OK(MPI_Ibcast(word, 1, MPI_INT, root, comm, &requests[pending++]));
}

static void finish(void)
{
    OK(MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < followed; i++)
        CHECK(words[i] == (is_bystander ? -1 : 1001 + i));
    pending = followed = 0;
}

/* `n` elements of a datatype of no data, or none; `all`: this for each process. To a process that gave MPI_PROC_NULL counts mean nothing. */
static void empty(int n, MPI_Datatype type, const int *all, const MPI_Datatype *types)
{
    int k = is_bystander ? 5 : n;
    DO(Bcast, Ibcast, Bcast_init, buf, k, type, root, comm);
    DO(Gather, Igather, Gather_init, buf, k, type, got[0], k, type, root, comm);
    DO(Gatherv, Igatherv, Gatherv_init, buf, k, type, got[0], all, displs, type, root, comm);
    DO(Scatter, Iscatter, Scatter_init, buf, k, type, got[0], k, type, root, comm);
    DO(Scatterv, Iscatterv, Scatterv_init, buf, all, displs, type, got[0], k, type, root, comm);
    DO(Allgather, Iallgather, Allgather_init, buf, n, type, got[0], n, type, comm);
    DO(Allgatherv, Iallgatherv, Allgatherv_init, buf, n, type, got[0], all, displs, type, comm);
    DO(Alltoall, Ialltoall, Alltoall_init, buf, n, type, got[0], n, type, comm);
    DO(Alltoallv, Ialltoallv, Alltoallv_init, buf, all, displs, type, got[0], all, displs, type, comm);
    DO(Alltoallw, Ialltoallw, Alltoallw_init, buf, all, bytes, types, got[0], all, bytes, types, comm);
    DO(Barrier, Ibarrier, Barrier_init, comm);
    MPI_Op op = n ? none : MPI_SUM;
    DO(Reduce, Ireduce, Reduce_init, buf, got[0], k, type, op, root, comm);
    DO(Allreduce, Iallreduce, Allreduce_init, buf, got[0], n, type, op, comm);
    DO(Reduce_scatter, Ireduce_scatter, Reduce_scatter_init, buf, got[0], all, type, op, comm);
    DO(Reduce_scatter_block, Ireduce_scatter_block, Reduce_scatter_block_init, buf, got[0], n, type, op, comm);
    if (!inter) {
        DO(Scan, Iscan, Scan_init, buf, got[0], n, type, op, comm);
        DO(Exscan, Iexscan, Exscan_init, buf, got[0], n, type, op, comm);
    }
    finish();
    for (int i = 0; i < MOST; i++)
        CHECK(got[0][i] == -1);
}

/* Who has an odd rank in its group has one element for each, or one for each of those with odd ranks. */
static void some_are_empty(void)
{
    int odd = me % 2, gives[MOST], firsts[MOST] = {2}, sums[2] = {0, 0};
    for (int i = 0; i < theirs; i++) {
        gives[i] = odd && i % 2;
        for (int k = 0; k < 2; k++)
            sums[k] += 100 * (first + i) + k;
    }
    DO(Gatherv, Igatherv, Gatherv_init, buf, odd, MPI_INT, got[0], counts, displs, MPI_INT, root, comm);
    DO(Scatterv, Iscatterv, Scatterv_init, buf, counts, displs, MPI_INT, got[1], odd, MPI_INT, root, comm);
    DO(Allgatherv, Iallgatherv, Allgatherv_init, buf, odd, MPI_INT, got[2], counts, displs, MPI_INT, comm);
    DO(Alltoallv, Ialltoallv, Alltoallv_init, buf, gives, displs, MPI_INT, got[3], gives, displs, MPI_INT, comm);
    DO(Alltoallw, Ialltoallw, Alltoallw_init, buf, gives, bytes, ints, got[4], gives, bytes, ints, comm);
    DO(Reduce_scatter, Ireduce_scatter, Reduce_scatter_init, buf, got[5], firsts, MPI_INT, MPI_SUM, comm);
    finish();
    int takes = inter ? !is_root && !is_bystander : 1;
    CHECK(got[1][0] == (takes && odd ? 100 * root_in_world + me : -1));
    for (int i = 0; i < theirs; i++) {
        CHECK(got[0][i] == (is_root && i % 2 ? 100 * (first + i) : -1));
        CHECK(got[2][i] == (i % 2 ? 100 * (first + i) : -1));
        CHECK(got[3][i] == (gives[i] ? 100 * (first + i) + me : -1));
        CHECK(got[4][i] == (gives[i] ? 100 * (first + i) + me : -1));
    }
    for (int k = 0; k < 2; k++)
        CHECK(got[5][k] == (me == 0 ? sums[k] : -1));
    memset(got, -1, sizeof got);
}

/* In every form, with the root at this rank of the world. */
static void rooted_at(int at, int half)
{
    int same = (world < half) == (at < half);
    root_in_world = at;
    is_root = world == at;
    is_bystander = inter && same && !is_root;
    root = !inter ? at : is_root ? MPI_ROOT : same ? MPI_PROC_NULL : at < half ? at : at - half;
    int threes[MOST];
    for (int i = 0; i < MOST; i++)
        threes[i] = 3;
    for (form = 0; form < 3; form++) {
        empty(0, MPI_INT, zeros, ints);
        empty(3, nothing, threes, nothings);
        some_are_empty();
    }
}

static void exchanging_with(int number, int from)
{
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Comm_size(comm, &mine));
    theirs = number;
    first = from;
}

int main(int argc, char **argv)
{
    MPI_Comm side;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &world));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    int half = size / 2, low = world < half;
    OK(MPI_Type_contiguous(0, MPI_INT, &nothing));
    OK(MPI_Type_commit(&nothing));
    OK(MPI_Op_create(computes_nothing, 1, &none));
    for (int i = 0; i < MOST; i++) {
        buf[i] = 100 * world + i;
        counts[i] = i % 2;
        displs[i] = i;
        bytes[i] = i * (int)sizeof(int);
        ints[i] = MPI_INT;
        nothings[i] = nothing;
    }
    memset(got, -1, sizeof got);

    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    exchanging_with(size, 0);
    rooted_at(size - 1, size);
    OK(MPI_Comm_free(&comm));

    inter = 1;
    OK(MPI_Comm_split(MPI_COMM_WORLD, low, world, &side));
    OK(MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, low ? half : 0, 5, &comm));
    exchanging_with(low ? size - half : half, low ? half : 0);
    rooted_at(half - 1, half);
    rooted_at(half, half);
    int sum;
    OK(MPI_Allreduce(&world, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == (low ? size * (size - 1) - half * (half - 1) : half * (half - 1)) / 2);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free(&side));
    OK(MPI_Op_free(&none));
    OK(MPI_Type_free(&nothing));
    OK(MPI_Finalize());
    if (world == 0)
        printf("operations of no data end, in step with what follows\n");
    return 0;
}
