// SPDX-License-Identifier: Apache-2.0
// Every process of the first half exchanges 1 KiB with several of the second, again and again, until the file that is named appears.
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 1024, PEERS = 3 };

int main(int argc, char **argv)
{
    int rank, size, rounds = 0;
    char out[BYTES], in[BYTES];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int half = size / 2;
    for (int go = 1; go; rounds++) {
        if (rank == 0 && access(argv[1], F_OK) == 0)
            go = 0;
        MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        for (int k = 0; k < PEERS; k++) {
            int step = k * 7 % half, peer = rank < half ? half + (rank + step) % half : (rank - step) % half;
            memset(out, rank + k, BYTES);
            MPI_Sendrecv(out, BYTES, MPI_CHAR, peer, k, in, BYTES, MPI_CHAR, peer, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < BYTES; i++)
                if (in[i] != (char)(peer + k))
                    MPI_Abort(MPI_COMM_WORLD, 4);
        }
        if (rounds == 1 && rank == 0) {
            printf("going\n");
            fflush(stdout);
        }
        usleep(200000);
    }
    int all = 0;
    MPI_Reduce(&rounds, &all, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d processes are through, %d rounds\n", size, all);
    MPI_Finalize();
    return 0;
}
