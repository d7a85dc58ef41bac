/* SPDX-License-Identifier: Apache-2.0 */
/* A number goes round through all ranks, each adds its own; rank 0 checks and prints the sum. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char *argv[])
{
    int rank, size, wrong = 0;
    long sum = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;

    if (rank == 0 && size > 1) {
        MPI_Send(&sum, 1, MPI_LONG, next, 0, MPI_COMM_WORLD);
        MPI_Recv(&sum, 1, MPI_LONG, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank > 0) {
        MPI_Recv(&sum, 1, MPI_LONG, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum += rank;
        MPI_Send(&sum, 1, MPI_LONG, next, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) {
        long expected = (long)size * (size - 1) / 2;
        wrong = sum != expected;
        printf("the sum of all ranks is %ld, expected %ld: %s\n", sum, expected, wrong ? "WRONG" : "right");
    }
    MPI_Finalize();
    return wrong;
}
