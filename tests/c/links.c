/* SPDX-License-Identifier: Apache-2.0 */
/* The hint isthmus_links: agreeing anew on the links changes no result, on any kind of communicator. ranks: 1 2 5 */
#include "check.h"

static void refresh(MPI_Comm comm)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "isthmus_links", "refresh");
    MPI_Comm_set_info(comm, info);
    MPI_Info_free(&info);
}

/* Among processes of one local area there is nothing to tell, and the wish is not kept. */
static int known(MPI_Comm comm)
{
    MPI_Info info;
    int flag, length = 0;
    MPI_Comm_get_info(comm, &info);
    MPI_Info_get_string(info, "isthmus_links", &length, NULL, &flag);
    MPI_Info_free(&info);
    return flag;
}

static long sum(MPI_Comm comm)
{
    long one = 1, all = 0;
    MPI_Allreduce(&one, &all, 1, MPI_LONG, MPI_SUM, comm);
    return all;
}

int main(int argc, char **argv)
{
    int rank, size;
    long one = 1, all = 0;
    MPI_Comm copy;
    MPI_Request persistent;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(!known(MPI_COMM_WORLD));
    MPI_Allreduce_init(&one, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &persistent);
    for (int i = 0; i < 3; i++) {
        refresh(MPI_COMM_WORLD);
        CHECK(sum(MPI_COMM_WORLD) == size);
        MPI_Start(&persistent);
        MPI_Wait(&persistent, MPI_STATUS_IGNORE);
        CHECK(all == size);
    }
    MPI_Request_free(&persistent);
    CHECK(!known(MPI_COMM_WORLD));
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    refresh(copy);
    refresh(MPI_COMM_SELF);
    CHECK(sum(copy) == size && sum(MPI_COMM_SELF) == 1);
    if (size > 1) {
        MPI_Comm half, inter, merged;
        MPI_Comm_split(copy, rank % 2, rank, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &inter);
        refresh(inter);
        CHECK(sum(inter) == (rank % 2 ? (size + 1) / 2 : size / 2));
        MPI_Intercomm_merge(inter, rank % 2, &merged);
        refresh(merged);
        CHECK(sum(merged) == size);
        MPI_Comm_free(&merged);
        MPI_Comm_free(&inter);
        MPI_Comm_free(&half);
    }
    MPI_Comm_free(&copy);
    MPI_Finalize();
    return 0;
}
