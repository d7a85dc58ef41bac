/* SPDX-License-Identifier: Apache-2.0
 * A few collective operations whose messages are counted. */
#include <mpi.h>
#include <stddef.h>

int main(void)
{
    int one = 1, sum, size;
    static char data[300000];
    MPI_Init(NULL, NULL);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* Steps together come with the third operation. */
    for (int i = 0; i < 2; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 5; i++) {
        MPI_Bcast(data, sizeof data, MPI_CHAR, i % size, MPI_COMM_WORLD);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (sum != size)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
