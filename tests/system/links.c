/* SPDX-License-Identifier: Apache-2.0 */
/* Prints which links are in force on every process: `PHASE: RANK: DESCRIPTION`. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void show(const char *phase, MPI_Comm comm)
{
    MPI_Info info;
    char text[MPI_MAX_INFO_VAL + 1] = "";
    int rank, flag, length = MPI_MAX_INFO_VAL;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_info(comm, &info);
    MPI_Info_get_string(info, "isthmus_links", &length, text, &flag);
    MPI_Info_free(&info);
    printf("%s: %d: %s\n", phase, rank, flag ? text : "none");
    fflush(stdout);
}

static void refresh(MPI_Comm comm)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "isthmus_links", "refresh");
    MPI_Comm_set_info(comm, info);
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    MPI_Comm copy, half, again;
    int rank, size, wait = argc > 1 ? atoi(argv[1]) : 0;
    long sum, one = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    show("begin", MPI_COMM_WORLD);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    /* What is in force does not change by itself. */
    sleep(wait);
    show("still", MPI_COMM_WORLD);
    refresh(MPI_COMM_WORLD);
    show("refreshed", MPI_COMM_WORLD);
    MPI_Comm_dup(MPI_COMM_WORLD, &again);
    show("inherited", again);
    MPI_Comm_split(copy, rank % 2, rank, &half);
    show("half", half);
    for (int i = 0; i < 3; i++) {
        MPI_Comm comms[] = {MPI_COMM_WORLD, copy, again};
        MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, comms[i]);
        if (sum != size) MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Comm_free(&half);
    MPI_Comm_free(&again);
    MPI_Comm_free(&copy);
    MPI_Finalize();
    return 0;
}
