// SPDX-License-Identifier: Apache-2.0
/* Messages of all lengths among all, mixed with collective operations, so that every answer of the library to a peer falls due
 * where the memory file system has no room left. The argument is the seed. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 1 << 18, ROUNDS = 60, PARTS = 4 };

int main(int argc, char **argv)
{
    unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    char *mine = malloc(LONGEST), *all = malloc((size_t)LONGEST * size);
    memset(mine, rank, LONGEST);
    memset(all, 0, (size_t)LONGEST * size);
    for (int round = 0; round < ROUNDS; round++) {
        seed = seed * 1103515245u + 12345u;
        int length = 1 << ((seed >> 16) % 19);
        int part = length < LONGEST / PARTS ? length : LONGEST / PARTS;
        MPI_Sendrecv_replace(mine, length, MPI_BYTE, right, 1, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        switch (round % 5) {
        case 1:
            MPI_Allgather(mine, part, MPI_BYTE, all, part, MPI_BYTE, MPI_COMM_WORLD);
            break;
        case 2: {
            MPI_Request requests[2 * PARTS];
            for (int i = 0; i < PARTS; i++) {
                MPI_Irecv(all + i * part, part, MPI_BYTE, left, i, MPI_COMM_WORLD, &requests[i]);
                MPI_Isend(mine, part, MPI_BYTE, right, i, MPI_COMM_WORLD, &requests[PARTS + i]);
            }
            MPI_Waitall(2 * PARTS, requests, MPI_STATUSES_IGNORE);
            break;
        }
        case 3:
            MPI_Bcast(mine, length, MPI_BYTE, round % size, MPI_COMM_WORLD);
            break;
        default:
            break;
        }
        for (int other = 0; other < size; other++)
            if (other != rank)
                MPI_Send(mine, 64, MPI_BYTE, other, 9, MPI_COMM_WORLD);
        for (int other = 0; other < size; other++)
            if (other != rank)
                MPI_Recv(all, 64, MPI_BYTE, other, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    free(mine);
    free(all);
    MPI_Finalize();
    return 0;
}
