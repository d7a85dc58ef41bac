// SPDX-License-Identifier: Apache-2.0
// One rank is late for messages, another for a barrier; every rank says how long it waited by its own clock.
#include <mpi.h>
#include <stdio.h>

static void compute(double seconds)
{
    double began = MPI_Wtime();
    while (MPI_Wtime() - began < seconds)
        ;
}

int main(int argc, char **argv)
{
    int rank, size, word = 0;
    double message = 0, together;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double began = MPI_Wtime();
    MPI_Barrier(MPI_COMM_WORLD);
    together = MPI_Wtime() - began;
    began = MPI_Wtime();
    if (rank == 0) {
        compute(1);
        for (int to = 1; to < size; to++)
            MPI_Send(&word, 1, MPI_INT, to, 7, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&word, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        message = MPI_Wtime() - began;
    }
    if (rank == size - 1)
        compute(1);
    began = MPI_Wtime();
    MPI_Barrier(MPI_COMM_WORLD);
    together += MPI_Wtime() - began;
    printf("%d %f %f\n", rank, message, together);
    MPI_Finalize();
    return 0;
}
