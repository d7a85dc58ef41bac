/* SPDX-License-Identifier: Apache-2.0 */
/* Persistent collectives: every operation started again and again with new data; handles that are freed before the request;
   requests that are started in different orders by different processes; alltoallw; types with negative extents.
   ranks: 1 2 3 5 */
#include "check.h"

enum { ROUNDS = 3, MOST = 16 };
static int rank, size;
static MPI_Comm comm;

/* Starts a request and waits for it. */
static void run(MPI_Request *request)
{
    OK(MPI_Start(request));
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    CHECK(*request != MPI_REQUEST_NULL);
}

static int item(int round, int from, int to, int i)
{
    return round * 1000003 + from * 10007 + to * 101 + i;
}

static void rooted(int root)
{
    int given[2 * MOST], got[2 * MOST], counts[MOST], displs[MOST], all[4 * MOST];
    MPI_Request r[5];
    for (int i = 0; i < size; i++) {
        counts[i] = i % 3;
        displs[i] = 3 * i;
    }
    OK(MPI_Bcast_init(got, 2, MPI_INT, root, comm, MPI_INFO_NULL, &r[0]));
    OK(MPI_Gather_init(given, 2, MPI_INT, all, 2, MPI_INT, root, comm, MPI_INFO_NULL, &r[1]));
    OK(MPI_Scatter_init(all, 2, MPI_INT, got, 2, MPI_INT, root, comm, MPI_INFO_NULL, &r[2]));
    OK(MPI_Gatherv_init(given, rank % 3, MPI_INT, all, counts, displs, MPI_INT, root, comm, MPI_INFO_NULL, &r[3]));
    OK(MPI_Scatterv_init(all, counts, displs, MPI_INT, got, rank % 3, MPI_INT, root, comm, MPI_INFO_NULL, &r[4]));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2; i++)
            got[i] = rank == root ? item(round, root, 0, i) : -1;
        run(&r[0]);
        CHECK(got[0] == item(round, root, 0, 0) && got[1] == item(round, root, 0, 1));
        for (int i = 0; i < 2; i++)
            given[i] = item(round, rank, root, i);
        run(&r[1]);
        for (int i = 0; rank == root && i < 2 * size; i++)
            CHECK(all[i] == item(round, i / 2, root, i % 2));
        for (int i = 0; i < 2 * size; i++)
            all[i] = item(round, root, i / 2, i % 2);
        run(&r[2]);
        CHECK(got[0] == item(round, root, rank, 0) && got[1] == item(round, root, rank, 1));
        for (int i = 0; i < 3 * size; i++)
            all[i] = -7;
        run(&r[3]);
        for (int i = 0; rank == root && i < 3 * size; i++)
            CHECK(all[i] == (i % 3 < (i / 3) % 3 ? item(round, i / 3, root, i % 3) : -7));
        for (int i = 0; i < 3 * size; i++)
            all[i] = item(round, root, i / 3, i % 3);
        run(&r[4]);
        for (int i = 0; i < rank % 3; i++)
            CHECK(got[i] == item(round, root, rank, i));
    }
    for (int i = 0; i < 5; i++)
        OK(MPI_Request_free(&r[i]));
}

static void symmetric(void)
{
    int given[MOST], got[MOST], sum, ones[MOST];
    MPI_Request r[8];
    for (int i = 0; i < size; i++)
        ones[i] = 1;
    OK(MPI_Allgather_init(&given[0], 1, MPI_INT, got, 1, MPI_INT, comm, MPI_INFO_NULL, &r[0]));
    OK(MPI_Alltoall_init(given, 1, MPI_INT, got, 1, MPI_INT, comm, MPI_INFO_NULL, &r[1]));
    OK(MPI_Allreduce_init(&given[0], &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[2]));
    OK(MPI_Reduce_init(&given[0], &sum, 1, MPI_INT, MPI_SUM, 0, comm, MPI_INFO_NULL, &r[3]));
    OK(MPI_Scan_init(&given[0], &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[4]));
    OK(MPI_Exscan_init(&given[0], &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[5]));
    OK(MPI_Reduce_scatter_block_init(given, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[6]));
    OK(MPI_Reduce_scatter_init(given, &sum, ones, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[7]));
    for (int round = 1; round <= ROUNDS; round++) {
        int triangle = size * (size - 1) / 2;
        for (int i = 0; i < size; i++)
            given[i] = item(round, rank, i, 0);
        run(&r[0]);
        for (int i = 0; i < size; i++)
            CHECK(got[i] == item(round, i, 0, 0));
        run(&r[1]);
        for (int i = 0; i < size; i++)
            CHECK(got[i] == item(round, i, rank, 0));
        for (int i = 0; i < size; i++)
            given[i] = round * rank + i;
        run(&r[2]);
        CHECK(sum == round * triangle);
        run(&r[3]);
        CHECK(rank || sum == round * triangle);
        run(&r[4]);
        CHECK(sum == round * rank * (rank + 1) / 2);
        run(&r[5]);
        CHECK(!rank || sum == round * rank * (rank - 1) / 2);
        run(&r[6]);
        CHECK(sum == round * triangle + size * rank);
        sum = -1;
        run(&r[7]);
        CHECK(sum == round * triangle + size * rank);
    }
    for (int i = 0; i < 8; i++)
        OK(MPI_Request_free(&r[i]));
}

static void last_of(void *in, void *inout, int *n, MPI_Datatype *type)
{
    /* Not commutative: the right operand, marked with how many were combined. */
    MPI_Aint lower, extent;
    OK(MPI_Type_get_extent(*type, &lower, &extent));
    for (int i = 0; i < *n; i++) {
        int *a = (int *)((char *)in + i * extent), *b = (int *)((char *)inout + i * extent);
        b[1] += a[1];
    }
}

/* Handles are freed while the request lives, the types have negative extents. */
static void handles(void)
{
    int given[8], got[8], values[4];
    MPI_Comm copy;
    MPI_Datatype pair, backwards, type;
    MPI_Op op;
    MPI_Request reduce, gather, barrier;
    OK(MPI_Comm_dup(comm, &copy));
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_create_resized(pair, 0, -8, &backwards));
    OK(MPI_Type_commit(&backwards));
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Op_create(last_of, 0, &op));
    OK(MPI_Allreduce_init(&given[6], &got[6], 4, backwards, op, copy, MPI_INFO_NULL, &reduce));
    OK(MPI_Bcast_init(values, 1, type, 0, copy, MPI_INFO_NULL, &gather));
    OK(MPI_Barrier_init(copy, MPI_INFO_NULL, &barrier));
    OK(MPI_Type_free(&pair));
    OK(MPI_Type_free(&backwards));
    OK(MPI_Type_free(&type));
    OK(MPI_Op_free(&op));
    OK(MPI_Comm_free(&copy));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 4; i++) {
            given[2 * i] = rank * 10 + i;
            given[2 * i + 1] = 1 + round;
            values[i] = rank ? -1 : 40 + i + round;
        }
        run(&reduce);
        for (int i = 0; i < 4; i++)
            CHECK(got[2 * i] == (size - 1) * 10 + i && got[2 * i + 1] == size * (1 + round));
        run(&gather);
        CHECK(values[0] == 40 + round && values[2] == 42 + round && (!rank || (values[1] == -1 && values[3] == -1)));
        run(&barrier);
    }
    OK(MPI_Request_free(&reduce));
    OK(MPI_Request_free(&gather));
    OK(MPI_Request_free(&barrier));
}

/* Two requests at once, started in another order by each second process. */
static void orders(void)
{
    int a, b, first, second;
    MPI_Request r[2], other[2];
    OK(MPI_Allreduce_init(&a, &first, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[0]));
    OK(MPI_Allreduce_init(&b, &second, 1, MPI_INT, MPI_MAX, comm, MPI_INFO_NULL, &r[1]));
    for (int round = 0; round < 20; round++) {
        a = rank + round;
        b = rank * round;
        if (rank % 2) {
            OK(MPI_Start(&r[1]));
            OK(MPI_Start(&r[0]));
        } else {
            OK(MPI_Startall(2, r));
        }
        memcpy(other, r, sizeof r);
        OK(MPI_Waitall(2, other, MPI_STATUSES_IGNORE));
        CHECK(first == size * (size - 1) / 2 + size * round && second == (size - 1) * round);
    }
    OK(MPI_Request_free(&r[0]));
    OK(MPI_Request_free(&r[1]));
}

/* More requests than operations get memory of their own, in flight together, started in an order that differs; made and
   freed again and again. */
static void many(void)
{
    enum { MANY = 20 };
    int given[MANY], got[MANY][MOST], counts[MOST], displs[MOST];
    MPI_Request r[MANY];
    for (int i = 0; i < size; i++) {
        counts[i] = i % 2;
        displs[i] = i;
    }
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < MANY; i++) {
            if (i % 3 == 0)
                OK(MPI_Allreduce_init(&given[i], got[i], 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[i]));
            else if (i % 3 == 1)
                OK(MPI_Allgather_init(&given[i], 1, MPI_INT, got[i], 1, MPI_INT, comm, MPI_INFO_NULL, &r[i]));
            else
                OK(MPI_Allgatherv_init(&given[i], rank % 2, MPI_INT, got[i], counts, displs, MPI_INT, comm, MPI_INFO_NULL,
                                       &r[i]));
        }
        for (int round = 0; round < 6; round++) {
            for (int i = 0; i < MANY; i++) {
                given[i] = item(round, rank, i, again);
                for (int j = 0; j < MOST; j++)
                    got[i][j] = -1;
            }
            for (int i = 0; i < MANY; i++)
                OK(MPI_Start(&r[(7 * i + rank) % MANY]));
            OK(MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE));
            for (int i = 0; i < MANY; i++)
                for (int j = 0, sum = 0; j < size; j++) {
                    sum += item(round, j, i, again);
                    if (i % 3 == 0)
                        CHECK(j + 1 < size || got[i][0] == sum);
                    else
                        CHECK(got[i][j] == (i % 3 == 1 || j % 2 ? item(round, j, i, again) : -1));
                }
        }
        for (int i = 0; i < MANY; i++)
            OK(MPI_Request_free(&r[i]));
    }
}

/* In place, without any data, and freed without ever having been started. */
static void unusual(void)
{
    int values[MOST], ones[MOST], displs[MOST], none[MOST], sum;
    MPI_Datatype types[MOST];
    MPI_Request r[7], unused;
    for (int i = 0; i < size; i++) {
        ones[i] = 1;
        displs[i] = i;
        none[i] = 0;
        types[i] = MPI_INT;
    }
    OK(MPI_Allreduce_init(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[0]));
    OK(MPI_Allgatherv_init(MPI_IN_PLACE, 0, MPI_INT, values, ones, displs, MPI_INT, comm, MPI_INFO_NULL, &r[1]));
    OK(MPI_Reduce_scatter_init(MPI_IN_PLACE, values, ones, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[2]));
    OK(MPI_Allgatherv_init(NULL, 0, MPI_INT, NULL, none, displs, MPI_INT, comm, MPI_INFO_NULL, &r[3]));
    OK(MPI_Bcast_init(NULL, 0, MPI_INT, 0, comm, MPI_INFO_NULL, &r[4]));
    OK(MPI_Gatherv_init(NULL, 0, MPI_INT, NULL, none, displs, MPI_INT, 0, comm, MPI_INFO_NULL, &r[5]));
    OK(MPI_Alltoallw_init(NULL, none, displs, types, NULL, none, displs, types, comm, MPI_INFO_NULL, &r[6]));
    OK(MPI_Barrier_init(comm, MPI_INFO_NULL, &unused));
    OK(MPI_Request_free(&unused));
    for (int round = 0; round < ROUNDS; round++) {
        sum = rank + round;
        run(&r[0]);
        CHECK(sum == size * (size - 1) / 2 + size * round);
        values[rank] = item(round, rank, 0, 0);
        run(&r[1]);
        for (int i = 0; i < size; i++)
            CHECK(values[i] == item(round, i, 0, 0));
        for (int i = 0; i < size; i++)
            values[i] = i * round + rank;
        run(&r[2]);
        CHECK(values[0] == size * rank * round + size * (size - 1) / 2);
        for (int i = 3; i < 7; i++)
            run(&r[i]);
    }
    for (int i = 0; i < 7; i++)
        OK(MPI_Request_free(&r[i]));
    /* Members free theirs at different times; nobody may take another one's memory for the next. */
    for (int round = 0; round < 20; round++) {
        OK(MPI_Bcast_init(values, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &r[0]));
        values[0] = rank ? -1 : round;
        run(&r[0]);
        CHECK(values[0] == round);
        if (round % 2 == rank % 2)
            OK(MPI_Request_free(&r[0]));
        OK(MPI_Allreduce(MPI_IN_PLACE, &values[0], 1, MPI_INT, MPI_SUM, comm));
        CHECK(values[0] == size * round);
        if (r[0] != MPI_REQUEST_NULL)
            OK(MPI_Request_free(&r[0]));
    }
}

/* Blocks of different types, some empty, with gaps; then in place. */
static void alltoallw(void)
{
    int given[4 * MOST], got[4 * MOST], counts[MOST], displs[MOST], in_counts[MOST], in_displs[MOST];
    MPI_Datatype types[MOST], in_types[MOST], gap;
    MPI_Request request;
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &gap));
    OK(MPI_Type_commit(&gap));
    for (int i = 0; i < size; i++) {
        counts[i] = (rank + i) % 3 ? 1 : 0;
        in_counts[i] = (rank + i) % 3 ? 2 : 0;
        types[i] = gap;
        in_types[i] = MPI_INT;
        displs[i] = in_displs[i] = 16 * i;
        for (int j = 0; j < 4; j++)
            given[4 * i + j] = item(0, rank, i, j);
    }
    OK(MPI_Alltoallw_init(given, counts, displs, types, got, in_counts, in_displs, in_types, comm, MPI_INFO_NULL,
                          &request));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 4 * size; i++)
            got[i] = -5;
        run(&request);
        for (int i = 0; i < size; i++) {
            int full = in_counts[i] > 0;
            CHECK(got[4 * i] == (full ? item(0, i, rank, 0) : -5));
            CHECK(got[4 * i + 1] == (full ? item(0, i, rank, 2) : -5));
            CHECK(got[4 * i + 2] == -5 && got[4 * i + 3] == -5);
        }
    }
    OK(MPI_Request_free(&request));
    for (int i = 0; i < 4 * size; i++)
        got[i] = item(1, rank, i / 4, i % 4);
    OK(MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, got, counts, displs, types, comm));
    for (int i = 0; i < 4 * size; i++) {
        int moved = counts[i / 4] && i % 2 == 0 && i % 4 < 3;
        CHECK(got[i] == (moved ? item(1, i / 4, rank, i % 4) : item(1, rank, i / 4, i % 4)));
    }
    OK(MPI_Type_free(&gap));
}

/* Blocks from empty to far longer than what goes through memory that processes share, which differ between neighbours. */
static void long_blocks(void)
{
    enum { BLOCK = 40000 };
    int *given = malloc(MOST * BLOCK * sizeof *given), *got = malloc(MOST * BLOCK * sizeof *got);
    int counts[MOST], in_counts[MOST], displs[MOST];
    MPI_Request r[3];
    for (int i = 0; i < size; i++) {
        counts[i] = (rank + 2 * i) % 4 * (BLOCK / 4);
        in_counts[i] = (i + 2 * rank) % 4 * (BLOCK / 4);
        displs[i] = BLOCK * i;
    }
    OK(MPI_Alltoallv_init(given, counts, displs, MPI_INT, got, in_counts, displs, MPI_INT, comm, MPI_INFO_NULL, &r[0]));
    OK(MPI_Gatherv_init(given, counts[0], MPI_INT, got, in_counts, displs, MPI_INT, 0, comm, MPI_INFO_NULL, &r[1]));
    OK(MPI_Scatterv_init(given, counts, displs, MPI_INT, got, in_counts[0], MPI_INT, 0, comm, MPI_INFO_NULL, &r[2]));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < size; i++)
            for (int j = 0; j < BLOCK; j++)
                given[BLOCK * i + j] = item(round, rank, i, j);
        for (int what = 0; what < 3; what++) {
            memset(got, 0xff, MOST * BLOCK * sizeof *got);
            run(&r[what]);
            for (int i = 0; i < size; i++) {
                int takes = what == 0 || (what == 1 ? rank == 0 : i == 0);
                int *block = got + (what == 2 ? 0 : BLOCK * i);
                /* Of a gatherv all blocks are the givers' first ones. */
                int to = what == 1 ? 0 : rank;
                for (int j = 0; takes && j < in_counts[i]; j++)
                    CHECK(block[j] == item(round, i, to, j));
                CHECK(!takes || block[in_counts[i]] == -1);
            }
        }
    }
    for (int i = 0; i < 3; i++)
        OK(MPI_Request_free(&r[i]));
    free(given);
    free(got);
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    for (int root = 0; root < size; root++)
        rooted(root);
    symmetric();
    handles();
    orders();
    many();
    unusual();
    alltoallw();
    long_blocks();
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    if (rank == 0)
        printf("persistent collectives of %d processes are right\n", size);
    return 0;
}
