/* SPDX-License-Identifier: Apache-2.0 */
/* What two groups of different jobs do with each other once they have an intercommunicator. */
#include "check.h"

enum { SEVERAL = 3, LONG = 1 << 18 };

/* Everybody of the other group hears from all of this one, who are any source; short and long messages. */
static inline void between_groups(MPI_Comm inter)
{
    int rank, remote, *data = malloc(LONG * sizeof *data), *got = malloc(LONG * sizeof *got);
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_remote_size(inter, &remote));
    for (int tag = 5; tag < 7; tag++) {
        int length = tag == 5 ? 1 : LONG;
        MPI_Request *requests = malloc(remote * sizeof *requests);
        for (int i = 0; i < length; i++)
            data[i] = rank * 7 + i;
        for (int to = 0; to < remote; to++)
            OK(MPI_Isend(data, length, MPI_INT, to, tag, inter, &requests[to]));
        for (int n = 0; n < remote; n++) {
            MPI_Status status;
            OK(MPI_Recv(got, length, MPI_INT, MPI_ANY_SOURCE, tag, inter, &status));
            CHECK(got[0] == status.MPI_SOURCE * 7 && got[length - 1] == status.MPI_SOURCE * 7 + length - 1);
        }
        OK(MPI_Waitall(remote, requests, MPI_STATUSES_IGNORE));
        free(requests);
    }
    free(data);
    free(got);
}

/* All of both groups in one communicator. */
static inline void merged(MPI_Comm inter, int high)
{
    MPI_Comm all, copy, half, node;
    int rank, size, local, sum, flag, result;
    OK(MPI_Intercomm_merge(inter, high, &all));
    OK(MPI_Comm_rank(all, &rank));
    OK(MPI_Comm_size(all, &size));
    OK(MPI_Comm_rank(inter, &local));
    /* Any source, whichever job it is of. */
    for (int turn = 0; turn < size; turn++) {
        if (rank == turn) {
            int heard = 0;
            for (int n = 1; n < size; n++) {
                MPI_Status status;
                int value;
                OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, all, &status));
                CHECK(value == status.MPI_SOURCE && status.MPI_TAG == value + 1);
                heard += value;
            }
            CHECK(heard == size * (size - 1) / 2 - rank);
        } else {
            OK(MPI_Send(&rank, 1, MPI_INT, turn, rank + 1, all));
        }
    }
    /* Collective operations: several times, so that memory of nodes is used where there is some. */
    for (int n = 0; n < 5; n++) {
        MPI_Request request;
        int *every = malloc(size * sizeof *every);
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all));
        CHECK(sum == size * (size - 1) / 2);
        OK(MPI_Iallgather(&rank, 1, MPI_INT, every, 1, MPI_INT, all, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int i = 0; i < size; i++)
            CHECK(every[i] == i);
        free(every);
        int *block = malloc(LONG * sizeof *block);
        for (int i = 0; i < LONG; i++)
            block[i] = rank == n % size ? i * n : -1;
        OK(MPI_Bcast(block, LONG, MPI_INT, n % size, all));
        CHECK(block[LONG - 1] == (LONG - 1) * n);
        free(block);
        OK(MPI_Barrier(all));
    }
    OK(MPI_Comm_dup(all, &copy));
    OK(MPI_Comm_compare(all, copy, &result));
    CHECK(result == MPI_CONGRUENT);
    OK(MPI_Comm_split(copy, rank % 2, -rank, &half));
    OK(MPI_Comm_size(half, &result));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_MAX, half));
    CHECK(sum % 2 == rank % 2);
    OK(MPI_Comm_split_type(copy, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Comm_size(node, &result));
    CHECK(result <= size);
    OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, node));
    /* Levels: all are in one wide area; colours are equal at all members. */
    int *depths, **colors;
    OK(MPI_Comm_get_attr(all, MPICHX_TOPOLOGY_DEPTHS, &depths, &flag));
    CHECK(flag);
    OK(MPI_Comm_get_attr(all, MPICHX_TOPOLOGY_COLORS, &colors, &flag));
    CHECK(flag);
    for (int i = 0; i < size; i++) {
        int mine[3] = { depths[i], colors[i][0], colors[i][2] }, theirs[3] = { depths[i], colors[i][0], colors[i][2] };
        OK(MPI_Bcast(theirs, 3, MPI_INT, 0, all));
        CHECK(memcmp(mine, theirs, sizeof mine) == 0 && mine[1] == 0);
    }
    OK(MPI_Comm_free(&node));
    OK(MPI_Comm_free(&half));
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&all));
}

/* Collective operations between the groups. */
static inline void collective(MPI_Comm inter)
{
    int rank, size, remote, sum = -1, root_rank = -1;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_size(inter, &size));
    OK(MPI_Comm_remote_size(inter, &remote));
    OK(MPI_Barrier(inter));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter));
    CHECK(sum == remote * (remote - 1) / 2);
    MPI_Request request;
    OK(MPI_Iallreduce(&size, &root_rank, 1, MPI_INT, MPI_MAX, inter, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(root_rank == remote);
}
