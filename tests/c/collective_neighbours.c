/* SPDX-License-Identifier: Apache-2.0 */
/* Neighbourhood collectives in all forms: on grids (borders, periodic dimensions of one and two processes) and on a
   directed graph with several edges between the same two processes and to oneself; with blocks of all lengths, and
   processes that come late.
   ranks: 1 2 4 6 */
#include <unistd.h>

#include "check.h"

enum { MOST = 64 };
static int rank, size, form;
static MPI_Comm comm;

#define RUN(name, iname, ...) \
    do { \
        MPI_Request request_; \
        if (form == 0) { \
            OK(MPI_##name(__VA_ARGS__, comm)); \
        } else if (form == 1) { \
            OK(MPI_##iname(__VA_ARGS__, comm, &request_)); \
            OK(MPI_Wait(&request_, MPI_STATUS_IGNORE)); \
        } else { \
            OK(MPI_##name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &request_)); \
            for (int i_ = 0; i_ < 2; i_++) { \
                OK(MPI_Start(&request_)); \
                OK(MPI_Wait(&request_, MPI_STATUS_IGNORE)); \
            } \
            OK(MPI_Request_free(&request_)); \
        } \
    } while (0)

static int item(int from, int edge, int i)
{
    return from * 10007 + edge * 101 + i;
}

/* Neighbours of this process: whom blocks come from, and by which of that process's edges out. */
struct source {
    int rank, edge;
};

static void exchange(const struct source *sources, int indegree, int outdegree)
{
    int in[4 * MOST], out[4 * MOST], counts[MOST], in_counts[MOST], displs[MOST], i;
    MPI_Aint bytes[MOST];
    MPI_Datatype types[MOST];
    for (i = 0; i < 4 * MOST; i++)
        in[i] = item(rank, 0, i);
    memset(out, -1, sizeof out);
    RUN(Neighbor_allgather, Ineighbor_allgather, in, 2, MPI_INT, out, 2, MPI_INT);
    for (i = 0; i < 2 * indegree; i++)
        CHECK(out[i] == (sources[i / 2].rank < 0 ? -1 : item(sources[i / 2].rank, 0, i % 2)));
    for (i = 0; i < MOST; i++) {
        displs[i] = 3 * i;
        bytes[i] = 12 * i;
        types[i] = MPI_INT;
        in_counts[i] = i < indegree && sources[i].rank >= 0 ? sources[i].rank % 3 : 0;
    }
    memset(out, -1, sizeof out);
    RUN(Neighbor_allgatherv, Ineighbor_allgatherv, in, rank % 3, MPI_INT, out, in_counts, displs, MPI_INT);
    for (i = 0; i < 3 * indegree; i++)
        CHECK(out[i] == (i % 3 < in_counts[i / 3] ? item(sources[i / 3].rank, 0, i % 3) : -1));
    for (i = 0; i < 3 * outdegree; i++)
        in[i] = item(rank, i / 3, i % 3);
    memset(out, -1, sizeof out);
    RUN(Neighbor_alltoall, Ineighbor_alltoall, in, 3, MPI_INT, out, 3, MPI_INT);
    for (i = 0; i < 3 * indegree; i++)
        CHECK(out[i] == (sources[i / 3].rank < 0 ? -1 : item(sources[i / 3].rank, sources[i / 3].edge, i % 3)));
    for (i = 0; i < MOST; i++) {
        counts[i] = (rank + i) % 3;
        in_counts[i] = i < indegree && sources[i].rank >= 0 ? (sources[i].rank + sources[i].edge) % 3 : 0;
    }
    memset(out, -1, sizeof out);
    RUN(Neighbor_alltoallv, Ineighbor_alltoallv, in, counts, displs, MPI_INT, out, in_counts, displs, MPI_INT);
    for (i = 0; i < 3 * indegree; i++)
        CHECK(out[i] == (i % 3 < in_counts[i / 3] ? item(sources[i / 3].rank, sources[i / 3].edge, i % 3) : -1));
    memset(out, -1, sizeof out);
    RUN(Neighbor_alltoallw, Ineighbor_alltoallw, in, counts, bytes, types, out, in_counts, bytes, types);
    for (i = 0; i < 3 * indegree; i++)
        CHECK(out[i] == (i % 3 < in_counts[i / 3] ? item(sources[i / 3].rank, sources[i / 3].edge, i % 3) : -1));
}

static void grid(int periodic)
{
    int dims[2] = {0, 0}, periods[2] = {periodic, 0};
    struct source sources[4];
    OK(MPI_Dims_create(size, 2, dims));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &comm));
    OK(MPI_Comm_rank(comm, &rank));
    for (int d = 0; d < 2; d++) {
        int before, after;
        OK(MPI_Cart_shift(comm, d, 1, &before, &after));
        /* What comes from before has left there by its edge after, and the other way round. */
        sources[2 * d].rank = before == MPI_PROC_NULL ? -1 : before;
        sources[2 * d].edge = 2 * d + 1;
        sources[2 * d + 1].rank = after == MPI_PROC_NULL ? -1 : after;
        sources[2 * d + 1].edge = 2 * d;
    }
    for (form = 0; form < 3; form++)
        exchange(sources, 4, 4);
    OK(MPI_Comm_free(&comm));
}

/* Each process sends to itself, twice to the next, and to the process after that. */
static void graph(void)
{
    int next = (rank + 1) % size, far = (rank + 2) % size, last = (rank + size - 1) % size;
    int before = (rank + 2 * size - 2) % size;
    int to[4] = {next, rank, far, next}, from[4] = {before, last, rank, last};
    /* Edges between the same two processes are matched in the order in which both name them. */
    struct source sources[4] = {{before, 2}, {last, 0}, {rank, 1}, {last, 3}};
    if (size < 3)
        return;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 4, from, MPI_UNWEIGHTED, 4, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                      &comm));
    for (form = 0; form < 3; form++)
        exchange(sources, 4, 4);
    OK(MPI_Comm_free(&comm));
}

/* A ring as MPI_Graph_create makes it. */
static void ring(void)
{
    int index[MOST], edges[2 * MOST];
    struct source sources[2] = {{(rank + size - 1) % size, 1}, {(rank + 1) % size, 0}};
    if (size < 3)
        return;
    for (int i = 0; i < size; i++) {
        index[i] = 2 * i + 2;
        edges[2 * i] = (i + size - 1) % size;
        edges[2 * i + 1] = (i + 1) % size;
    }
    OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &comm));
    for (form = 0; form < 3; form++)
        exchange(sources, 2, 2);
    OK(MPI_Comm_free(&comm));
}

/* Long blocks along some edges of a ring and short ones along others, and each process late in its turn: neighbours need
   not go the same way. In the end one expects more or less than comes. */
static void uneven(void)
{
    enum { LONG = 3000 };
    static int in[2 * LONG], out[2 * LONG];
    int periodic = 1, displs[2] = {0, LONG}, before, after, class;
    if (size < 3)
        return;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &comm));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Cart_shift(comm, 0, 1, &before, &after));
    for (int turn = 0; turn < 3 * size; turn++) {
        /* The edge between a process and the next one has the former's number. */
        int edges[2] = {before, rank}, counts[2];
        for (int k = 0; k < 2; k++) {
            counts[k] = (edges[k] + turn) % 3 == 0 ? LONG : 2 + edges[k] % 2;
            for (int i = 0; i < counts[k]; i++)
                in[k * LONG + i] = item(rank, k, i) + turn;
        }
        memset(out, -1, sizeof out);
        if (rank == turn % size)
            usleep(2000);
        OK(MPI_Neighbor_alltoallv(in, counts, displs, MPI_INT, out, counts, displs, MPI_INT, comm));
        for (int i = 0; i < LONG; i++) {
            CHECK(out[i] == (i < counts[0] ? item(before, 1, i) + turn : -1));
            CHECK(out[LONG + i] == (i < counts[1] ? item(after, 0, i) + turn : -1));
        }
    }
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    for (int expected = 1; expected < 4; expected++) {
        int counts[2] = {2, 2}, room[2] = {rank == 0 ? expected : 2, 2};
        int code = MPI_Neighbor_alltoallv(in, counts, displs, MPI_INT, out, room, displs, MPI_INT, comm);
        OK(MPI_Error_class(code, &class));
        CHECK(class == (room[0] == 2 ? MPI_SUCCESS : MPI_ERR_TRUNCATE));
        OK(MPI_Barrier(comm));
    }
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    grid(0);
    grid(1);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    graph();
    ring();
    uneven();
    OK(MPI_Finalize());
    if (rank == 0)
        printf("neighbourhood collectives of %d processes are right\n", size);
    return 0;
}
