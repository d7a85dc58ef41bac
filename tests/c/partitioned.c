/* SPDX-License-Identifier: Apache-2.0 */
/* Partitioned communication: different partitions on the two sides, order of initialization, strided types, misuse, itself.
   ranks: 1 2 3 */
#include "check.h"

enum { N = 5040 };

static int rank, size, next, before;

static void exchange(int mine, int theirs, MPI_Datatype type, int stride)
{
    static int out[3][2 * N], in[3][2 * N];
    MPI_Request sends[3], receives[3];
    MPI_Status status;
    int flag, count, done = 0;
    /* All have the same tag: the order of initialization says which belongs to which. The sender starts them the other way round. */
    for (int i = 0; i < 3; i++) {
        OK(MPI_Psend_init(out[i], mine, N / mine, type, next, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &sends[i]));
        OK(MPI_Precv_init(in[i], theirs, N / theirs, type, before, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &receives[i]));
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < 2 * N; k++) {
                out[i][k] = ((rank * 3 + round) * 3 + i) * 10000 + k;
                in[i][k] = -1;
            }
        if (round % 2)
            OK(MPI_Startall(3, receives));
        for (int i = 2; i >= 0; i--)
            OK(MPI_Start(&sends[i]));
        if (round % 2 == 0)
            OK(MPI_Startall(3, receives));
        CHECK(MPI_Start(&sends[0]) == MPI_ERR_REQUEST);
        if (size == 1) {
            OK(MPI_Test(&receives[1], &flag, MPI_STATUS_IGNORE));
            CHECK(!flag);
        }
        for (int p = mine - 1; p >= mine / 2; p--)
            for (int i = 0; i < 3; i++)
                OK(MPI_Pready(p, sends[i]));
        CHECK(MPI_Pready(mine - 1, sends[0]) == MPI_ERR_REQUEST);
        CHECK(MPI_Pready(mine, sends[0]) == MPI_ERR_ARG);
        CHECK(MPI_Pready(0, receives[0]) == MPI_ERR_REQUEST);
        CHECK(MPI_Cancel(&sends[0]) == MPI_ERR_REQUEST);
        if (mine > 1) {
            do
                OK(MPI_Parrived(receives[2], theirs - 1, &flag));
            while (!flag && theirs >= mine);
            for (int k = N - N / theirs; k < N && theirs >= mine; k++)
                CHECK(in[2][k * stride] == ((before * 3 + round) * 3 + 2) * 10000 + k * stride);
            OK(MPI_Parrived(receives[2], 0, &flag));
            CHECK(!flag || size > 1);
            OK(MPI_Pready_range(0, mine / 2 - 1, sends[0]));
            OK(MPI_Pready_range(0, mine / 2 - 1, sends[1]));
            int *list = malloc(mine * sizeof(int));
            for (int p = 0; p < mine / 2; p++)
                list[p] = mine / 2 - 1 - p;
            OK(MPI_Pready_list(mine / 2, list, sends[2]));
            free(list);
        }
        for (int i = 0; i < 3; i++) {
            OK(MPI_Wait(&receives[i], &status));
            OK(MPI_Get_count(&status, type, &count));
            CHECK(status.MPI_SOURCE == before && status.MPI_TAG == 7 && count == N);
            for (int k = 0; k < N * stride; k++)
                CHECK(in[i][k] == (k % stride == 0 ? ((before * 3 + round) * 3 + i) * 10000 + k : -1));
            OK(MPI_Parrived(receives[i], 0, &flag));
            CHECK(flag);
        }
        OK(MPI_Waitall(3, sends, MPI_STATUSES_IGNORE));
        done++;
    }
    CHECK(done == 3 && MPI_Pready(0, sends[0]) == MPI_ERR_REQUEST);
    for (int i = 0; i < 3; i++) {
        OK(MPI_Request_free(&sends[i]));
        OK(MPI_Request_free(&receives[i]));
    }
}

/* Without data nothing has arrived before every partition is ready either. */
static void empty(void)
{
    MPI_Request send, receive;
    int flag;
    OK(MPI_Psend_init(NULL, 3, 0, MPI_INT, 0, 5, MPI_COMM_SELF, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(NULL, 2, 0, MPI_INT, 0, 5, MPI_COMM_SELF, MPI_INFO_NULL, &receive));
    for (int round = 0; round < 3; round++) {
        OK(MPI_Start(&receive));
        OK(MPI_Start(&send));
        for (int part = 0; part < 3; part++) {
            OK(MPI_Parrived(receive, 0, &flag));
            CHECK(!flag);
            OK(MPI_Test(&send, &flag, MPI_STATUS_IGNORE));
            CHECK(!flag);
            OK(MPI_Pready(part, send));
        }
        do
            OK(MPI_Parrived(receive, 1, &flag));
        while (!flag);
        OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
    /* And between processes. */
    OK(MPI_Psend_init(NULL, 3, 0, MPI_INT, next, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(NULL, 3, 0, MPI_INT, before, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    for (int round = 0; round < 3; round++) {
        OK(MPI_Start(&receive));
        OK(MPI_Start(&send));
        OK(MPI_Pready_range(0, 2, send));
        OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
}

static void misuse(void)
{
    MPI_Request request;
    int data[4], flag;
    CHECK(MPI_Precv_init(data, 1, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request) == MPI_ERR_RANK);
    CHECK(MPI_Precv_init(data, 1, 1, MPI_INT, before, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &request) == MPI_ERR_TAG);
    CHECK(MPI_Psend_init(data, -1, 1, MPI_INT, next, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request) != MPI_SUCCESS);
    OK(MPI_Irecv(data, 1, MPI_INT, before, 3, MPI_COMM_WORLD, &request));
    CHECK(MPI_Parrived(request, 0, &flag) == MPI_ERR_REQUEST);
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Psend_init(data, 2, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    OK(MPI_Pready_range(0, 1, request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));
}

int main(int argc, char **argv)
{
    MPI_Datatype spread;
    int parts[][2] = {{1, 1}, {1, 10}, {10, 1}, {16, 24}, {5, 7}, {720, 144}};
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    next = (rank + 1) % size;
    before = (rank + size - 1) % size;
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread));
    OK(MPI_Type_commit(&spread));
    for (int i = 0; i < 6; i++) {
        exchange(parts[i][0], parts[i][1], MPI_INT, 1);
        exchange(parts[i][0], parts[i][1], spread, 2);
    }
    OK(MPI_Type_free(&spread));
    empty();
    misuse();
    if (rank == 0)
        printf("partitioned messages arrive whole and in the right places\n");
    OK(MPI_Finalize());
    return 0;
}
