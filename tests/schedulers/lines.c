/* SPDX-License-Identifier: Apache-2.0
 * Every rank prints so many lines of 200 bytes, each with its rank, its number and a filling that follows from both. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char line[201], host[256] = "";
    int rank, size;
    long lines = argc > 1 ? atol(argv[1]) : 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(host, sizeof host - 1);
    fprintf(stderr, "rank %d of %d on %s\n", rank, size, host);
    for (long i = 0; i < lines; i++) {
        int n = snprintf(line, sizeof line, "%d %ld ", rank, i);
        for (; n < 199; n++)
            line[n] = (char)('a' + (rank + i + n) % 26);
        line[199] = '\n';
        fwrite(line, 1, 200, stdout);
    }
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
