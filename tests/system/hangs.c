// SPDX-License-Identifier: Apache-2.0
/* Programs that hang, each for another reason. usage: hangs KIND; rank 0 says "begun" before it waits. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, word = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *kind = argc > 1 ? argv[1] : "";
    if (rank == 0) {
        puts("begun");
        fflush(stdout);
    }
    if (!strcmp(kind, "receives")) {
        if (rank < 2)
            MPI_Recv(&word, 1, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (!strcmp(kind, "missing")) {
        if (rank == size - 1)
            for (;;)
                pause();
        MPI_Allreduce(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else if (!strcmp(kind, "different")) {
        if (rank == size - 1)
            MPI_Reduce(&rank, &word, 1, MPI_INT, MPI_SUM, size - 1, MPI_COMM_WORLD);
        else
            MPI_Bcast(&word, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
    } else if (!strcmp(kind, "roots")) {
        MPI_Bcast(&word, 1, MPI_INT, rank == size - 1 ? 0 : size - 1, MPI_COMM_WORLD);
    } else if (!strcmp(kind, "tag")) {
        if (rank == 1)
            MPI_Send(&word, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
        if (rank == 0)
            MPI_Recv(&word, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (!strcmp(kind, "leaders")) {
        MPI_Comm between;
        if (rank < 2)
            MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - rank, rank, &between);
    } else if (!strcmp(kind, "stopped")) {
        if (rank == size - 1)
            raise(SIGSTOP);
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (!strcmp(kind, "cut")) {
        if (rank == 0)
            MPI_Recv(&word, 1, MPI_INT, size - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == size - 1)
            for (;;)
                pause();
    }
    MPI_Finalize();
    return 0;
}
