/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that are spawned where nobody but the launcher reaches them.
   usage: carried SITE... [cut]     Two are spawned at each site, by all that are there by then: each speaks with each, those who came last first.
   cut: then the file `spoken` is made, the file `cut` is waited for, and all speak again. */
#include "check.h"
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LONG = 1 << 20 };
static char block[LONG];

/* Long blocks go from the last of a group to all. */
static void whole(MPI_Comm all)
{
    int rank, size, sum;
    OK(MPI_Comm_rank(all, &rank));
    OK(MPI_Comm_size(all, &size));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all));
    CHECK(sum == size * (size - 1) / 2);
    memset(block, rank == size - 1 ? 7 : 0, LONG);
    OK(MPI_Bcast(block, LONG, MPI_CHAR, size - 1, all));
    CHECK(block[0] == 7 && block[LONG - 1] == 7);
}

/* Each says its rank to each of the other group; then both are one. */
static MPI_Comm talk(MPI_Comm inter, int came_last)
{
    MPI_Comm all;
    int me, others, said;
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
    whole(all);
    return all;
}

int main(int argc, char **argv)
{
    MPI_Comm parent, group = MPI_COMM_WORLD;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL)
        group = talk(parent, 1);
    int cut = argc > 1 && !strcmp(argv[argc - 1], "cut");
    for (int at = 1; at < argc - cut; at++) {
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
    if (cut) {
        int rank;
        OK(MPI_Comm_rank(group, &rank));
        if (rank == 0) {
            fclose(fopen("spoken", "w"));
            while (access("cut", F_OK))
                usleep(50000);
        }
        OK(MPI_Barrier(group));
        whole(group);
        if (rank == 0)
            printf("good after a cut\n");
    }
    OK(MPI_Finalize());
    return 0;
}
