/* SPDX-License-Identifier: Apache-2.0 */
/* Every collective operation between two groups of unequal size, for every root, blocking, nonblocking and persistent.
   ranks: 2 3 5 7 */
#include "check.h"

enum { MOST = 16 };
static int rank, local, remote, low, form;
static MPI_Comm inter;

/* The operation in its blocking, nonblocking and persistent form. */
#define RUN(name, iname, ...) \
    do { \
        MPI_Request request_; \
        if (form == 0) { \
            OK(MPI_##name(__VA_ARGS__, inter)); \
        } else if (form == 1) { \
            OK(MPI_##iname(__VA_ARGS__, inter, &request_)); \
            OK(MPI_Wait(&request_, MPI_STATUS_IGNORE)); \
        } else { \
            OK(MPI_##name##_init(__VA_ARGS__, inter, MPI_INFO_NULL, &request_)); \
            for (int i_ = 0; i_ < 2; i_++) { \
                OK(MPI_Start(&request_)); \
                OK(MPI_Wait(&request_, MPI_STATUS_IGNORE)); \
            } \
            OK(MPI_Request_free(&request_)); \
        } \
    } while (0)

/* Item i of what a process of a group has for another of the other group. */
static int item(int of_low, int from, int to, int i)
{
    return of_low * 1000003 + from * 10007 + to * 101 + i;
}

/* The root argument of this process if process `r` of one of the groups is root. */
static int root_of(int in_low, int r)
{
    if (in_low != low)
        return r;
    return r == rank ? MPI_ROOT : MPI_PROC_NULL;
}

static void rooted(int in_low, int r)
{
    int root = root_of(in_low, r), i;
    int at_root = root == MPI_ROOT, other = in_low != low;
    int data[4 * MOST], small[4], counts[MOST], displs[MOST];
    for (i = 0; i < MOST; i++) {
        counts[i] = i % 3;
        displs[i] = 3 * i;
    }
    for (i = 0; i < 4; i++)
        small[i] = at_root ? item(in_low, r, 0, i) : -1;
    RUN(Bcast, Ibcast, small, 4, MPI_INT, root);
    for (i = 0; i < 4; i++)
        CHECK(small[i] == (at_root || other ? item(in_low, r, 0, i) : -1));

    for (i = 0; i < 4; i++)
        small[i] = item(low, rank, r, i);
    memset(data, -1, sizeof data);
    RUN(Gather, Igather, small, 2, MPI_INT, data, 2, MPI_INT, root);
    for (i = 0; i < 2 * remote; i++)
        CHECK(data[i] == (at_root ? item(!low, i / 2, r, i % 2) : -1));
    memset(data, -1, sizeof data);
    RUN(Gatherv, Igatherv, small, rank % 3, MPI_INT, data, counts, displs, MPI_INT, root);
    for (i = 0; i < 3 * remote; i++)
        CHECK(data[i] == (at_root && i % 3 < i / 3 % 3 ? item(!low, i / 3, r, i % 3) : -1));

    for (i = 0; i < 3 * MOST; i++)
        data[i] = item(in_low, r, i / 3, i % 3);
    memset(small, -1, sizeof small);
    RUN(Scatter, Iscatter, data, 3, MPI_INT, small, 3, MPI_INT, root);
    for (i = 0; i < 3; i++)
        CHECK(small[i] == (other ? item(in_low, r, rank, i) : -1));
    memset(small, -1, sizeof small);
    RUN(Scatterv, Iscatterv, data, counts, displs, MPI_INT, small, rank % 3, MPI_INT, root);
    for (i = 0; i < 3; i++)
        CHECK(small[i] == (other && i < rank % 3 ? item(in_low, r, rank, i) : -1));

    for (i = 0; i < 4; i++)
        small[i] = rank + i;
    memset(data, -1, sizeof data);
    RUN(Reduce, Ireduce, small, data, 4, MPI_INT, MPI_SUM, root);
    for (i = 0; i < 4; i++)
        CHECK(data[i] == (at_root ? remote * (remote - 1) / 2 + remote * i : -1));
}

static void symmetric(void)
{
    int in[4 * MOST], out[4 * MOST], counts[MOST], displs[MOST], out_counts[MOST], out_displs[MOST], i;
    MPI_Datatype types[MOST];
    int n = low ? 1 : 2, m = low ? 2 : 1;
    RUN(Allreduce, Iallreduce, &rank, out, 1, MPI_INT, MPI_SUM);
    CHECK(out[0] == remote * (remote - 1) / 2);
    for (i = 0; i < 4; i++)
        in[i] = item(low, rank, 0, i);
    RUN(Allgather, Iallgather, in, n, MPI_INT, out, m, MPI_INT);
    for (i = 0; i < m * remote; i++)
        CHECK(out[i] == item(!low, i / m, 0, i % m));
    for (i = 0; i < MOST; i++) {
        counts[i] = i % 3;
        displs[i] = 3 * i;
        types[i] = MPI_INT;
    }
    memset(out, -1, sizeof out);
    RUN(Allgatherv, Iallgatherv, in, rank % 3, MPI_INT, out, counts, displs, MPI_INT);
    for (i = 0; i < 3 * remote; i++)
        CHECK(out[i] == (i % 3 < i / 3 % 3 ? item(!low, i / 3, 0, i % 3) : -1));
    for (i = 0; i < 3 * MOST; i++)
        in[i] = item(low, rank, i / 3, i % 3);
    RUN(Alltoall, Ialltoall, in, 3, MPI_INT, out, 3, MPI_INT);
    for (i = 0; i < 3 * remote; i++)
        CHECK(out[i] == item(!low, i / 3, rank, i % 3));
    for (i = 0; i < MOST; i++)
        counts[i] = out_counts[i] = (i + rank) % 3;
    memset(out, -1, sizeof out);
    RUN(Alltoallv, Ialltoallv, in, counts, displs, MPI_INT, out, out_counts, displs, MPI_INT);
    for (i = 0; i < 3 * remote; i++)
        CHECK(out[i] == (i % 3 < (i / 3 + rank) % 3 ? item(!low, i / 3, rank, i % 3) : -1));
    for (i = 0; i < MOST; i++)
        out_displs[i] = 4 * displs[i];
    memset(out, -1, sizeof out);
    RUN(Alltoallw, Ialltoallw, in, counts, out_displs, types, out, out_counts, out_displs, types);
    for (i = 0; i < 3 * remote; i++)
        CHECK(out[i] == (i % 3 < (i / 3 + rank) % 3 ? item(!low, i / 3, rank, i % 3) : -1));
    /* Both groups give local * remote elements. */
    for (i = 0; i < local * remote; i++)
        in[i] = rank * 100 + i;
    RUN(Reduce_scatter_block, Ireduce_scatter_block, in, out, remote, MPI_INT, MPI_SUM);
    for (i = 0; i < remote; i++)
        CHECK(out[i] == 100 * remote * (remote - 1) / 2 + remote * (rank * remote + i));
    for (i = 0; i < local; i++)
        counts[i] = i ? 0 : local * remote;
    RUN(Reduce_scatter, Ireduce_scatter, in, out, counts, MPI_INT, MPI_SUM);
    for (i = 0; i < counts[rank]; i++)
        CHECK(out[i] == 100 * remote * (remote - 1) / 2 + remote * i);
    if (form == 0) {
        OK(MPI_Barrier(inter));
    } else {
        MPI_Request request;
        OK(MPI_Ibarrier(inter, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
}

/* Groups cut at `cut`, or the even and the odd ranks. */
static void between(int cut)
{
    int world, size, color;
    MPI_Comm group;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &world));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    low = cut ? world < cut : world % 2 == 0;
    color = !low;
    OK(MPI_Comm_split(MPI_COMM_WORLD, color, world, &group));
    OK(MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, cut ? (low ? cut : 0) : low, 12, &inter));
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_size(inter, &local));
    OK(MPI_Comm_remote_size(inter, &remote));
    for (form = 0; form < 3; form++) {
        for (int in_low = 0; in_low < 2; in_low++)
            for (int r = 0; r < (in_low == low ? local : remote); r++)
                rooted(in_low, r);
        symmetric();
    }
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    int code, class, in = 0, out;
    code = MPI_Scan(&in, &out, 1, MPI_INT, MPI_SUM, inter);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_COMM);
    code = MPI_Allreduce(MPI_IN_PLACE, &out, 1, MPI_INT, MPI_SUM, inter);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_BUFFER);
    code = MPI_Bcast(&in, 1, MPI_INT, remote, inter);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_ROOT);
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&group));
}

int main(int argc, char **argv)
{
    int size, world;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &world));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    between(1);
    between((size + 1) / 2);
    between(0);
    OK(MPI_Finalize());
    if (world == 0)
        printf("collectives between groups of %d processes are right\n", size);
    return 0;
}
