/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that are spawned where nobody but the launcher reaches them.
   usage: carried SITE...     Two are spawned at each site, by all that are there by then: each speaks with each, those who came last first. */
#include "check.h"
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { LONG = 1 << 20 };
static char block[LONG];

/* Each says its rank to each of the other group; then both are one, in which long blocks go to all. */
static MPI_Comm talk(MPI_Comm inter, int came_last)
{
    MPI_Comm all;
    int me, others, said, rank, size, sum;
    OK(MPI_Comm_rank(inter, &me));
    OK(MPI_Comm_remote_size(inter, &others));
    for (int turn = 0; turn < 2; turn++)
        for (int r = 0; r < others; r++)
            if (turn != came_last)
                OK(MPI_Send(&me, 1, MPI_INT, r, 5, inter));
            else {
                OK(MPI_Recv(&said, 1, MPI_INT, r, 5, inter, MPI_STATUS_IGNORE));
                CHECK(said == r);
            }
    OK(MPI_Intercomm_merge(inter, came_last, &all));
    OK(MPI_Comm_rank(all, &rank));
    OK(MPI_Comm_size(all, &size));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all));
    CHECK(sum == size * (size - 1) / 2);
    memset(block, rank == size - 1 ? 7 : 0, LONG);
    OK(MPI_Bcast(block, LONG, MPI_CHAR, size - 1, all));
    CHECK(block[0] == 7 && block[LONG - 1] == 7);
    return all;
}

int main(int argc, char **argv)
{
    MPI_Comm parent, group = MPI_COMM_WORLD;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL)
        group = talk(parent, 1);
    for (int at = 1; at < argc; at++) {
        MPI_Comm inter;
        MPI_Info info;
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "isthmus_site", argv[at]));
        OK(MPI_Comm_spawn(argv[0], argv + at + 1, 2, info, 0, group, &inter, MPI_ERRCODES_IGNORE));
        OK(MPI_Info_free(&info));
        group = talk(inter, 0);
        if (parent == MPI_COMM_NULL)
            printf("good at %s\n", argv[at]);
    }
    OK(MPI_Finalize());
    return 0;
}
