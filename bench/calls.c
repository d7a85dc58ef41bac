/* SPDX-License-Identifier: Apache-2.0 */
/* What a call takes from C, beside calls.F90: arguments and output are the same.
 *
 *   calls rank|self REPETITIONS
 *
 * rank: MPI_Comm_rank. self: an exchange with oneself, four calls. Prints nanoseconds a repetition.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void exchange(void)
{
    int from = 1, to;
    MPI_Request requests[2];
    MPI_Irecv(&to, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[0]);
    MPI_Isend(&from, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[1]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank, self;
    long repetitions;
    double start;
    if (argc != 3)
        return 2;
    self = strcmp(argv[1], "self") == 0;
    repetitions = atol(argv[2]);
    MPI_Init(&argc, &argv);
    start = MPI_Wtime();
    for (long n = 0; n < repetitions; n++) {
        if (self)
            exchange();
        else
            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    }
    printf("%.2f\n", (MPI_Wtime() - start) / repetitions * 1e9);
    MPI_Finalize();
    return 0;
}
