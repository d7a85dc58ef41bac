// SPDX-License-Identifier: Apache-2.0
// What a local ping-pong costs while peers at another site are connected and idle. Ranks 0 and 1 are of one site; every rank first talks to every
// other one; then 0 and 1 pass messages and the others wait.
//   idle ROUNDS BYTES...      prints, for each size, the median over 20 batches of the time of one way, microseconds
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCHES = 20, LONGEST = 1 << 20 };

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(int rank, char *data, int bytes, int rounds) {
    double times[BATCHES];
    for (int b = 0; b < BATCHES; b++) {
        double begin = MPI_Wtime();
        for (int i = 0; i < rounds; i++) {
            if (rank == 0) {
                MPI_Send(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
                MPI_Recv(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                MPI_Recv(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Send(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
            }
        }
        times[b] = (MPI_Wtime() - begin) / rounds / 2 * 1e6;
    }
    qsort(times, BATCHES, sizeof times[0], by_size);
    return times[BATCHES / 2];
}

int main(int argc, char **argv) {
    int rank, size, word = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rounds = argc > 1 ? atoi(argv[1]) : 10000;
    char *data = calloc(LONGEST, 1);
    for (int step = 1; step < size; step++) {
        int to = (rank + step) % size, from = (rank + size - step) % size;
        MPI_Sendrecv(&rank, 1, MPI_INT, to, 2, &word, 1, MPI_INT, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = 2; i < argc && rank < 2; i++) {
        int bytes = atoi(argv[i]);
        median(rank, data, bytes, rounds / 10);
        double time = median(rank, data, bytes, bytes > 4096 ? rounds / 20 : rounds);
        if (rank == 0) printf("%d %.4f\n", bytes, time);
    }
    if (rank == 0)
        for (int i = 2; i < size; i++) MPI_Send(&word, 1, MPI_INT, i, 3, MPI_COMM_WORLD);
    else if (rank > 1)
        MPI_Recv(&word, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    free(data);
    return 0;
}
