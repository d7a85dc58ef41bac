// SPDX-License-Identifier: Apache-2.0
// Some megabytes to another site and a quarter of it back, between two pauses that the files given by name end.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void until(const char *file)
{
    while (access(file, F_OK) != 0)
        usleep(20000);
}

int main(int argc, char **argv)
{
    (void)argc;
    enum { MIB = 1 << 20, TIMES = 16 };
    int rank;
    char *data = malloc(MIB);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < MIB; i++)
        data[i] = (char)rand();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        puts("ready");
        fflush(stdout);
        until(argv[1]);
    }
    for (int i = 0; i < TIMES; i++) {
        int there = i % 4 != 3, from = there ? 0 : 1;
        if (rank == from)
            MPI_Send(data, MIB, MPI_CHAR, !from, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(data, MIB, MPI_CHAR, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        puts("done");
        fflush(stdout);
        until(argv[2]);
    }
    MPI_Finalize();
    return 0;
}
