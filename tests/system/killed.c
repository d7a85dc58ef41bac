/* SPDX-License-Identifier: Apache-2.0 */
/* For killed.sh: messages and collective operations of all kinds in shared memory, for ever. Every rank leaves its process id in a file. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 1 << 17 };
static int from[8 * MOST], into[8 * MOST];

int main(void)
{
    int rank, size;
    char name[32];
    MPI_Request request[3];
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(name, sizeof name, "pid.%d", rank);
    FILE *file = fopen(name, "w");
    if (!file || fprintf(file, "%ld\n", (long)getpid()) < 0 || fclose(file) != 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Barrier(MPI_COMM_WORLD);
    unsigned seed = 1;
    for (long round = 0;; round++) {
        seed = seed * 1103515245u + 12345u;
        int n = 1 << (seed >> 16) % 18, root = (int)(seed >> 8) % size;
        int next = (rank + 1) % size, before = (rank + size - 1) % size;
        switch ((seed >> 20) % 9) {
        case 0: MPI_Barrier(MPI_COMM_WORLD); break;
        case 1: MPI_Bcast(from, n, MPI_INT, root, MPI_COMM_WORLD); break;
        case 2: MPI_Allreduce(from, into, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD); break;
        case 3: MPI_Allgather(from, n, MPI_INT, into, n, MPI_INT, MPI_COMM_WORLD); break;
        case 4: MPI_Alltoall(from, n, MPI_INT, into, n, MPI_INT, MPI_COMM_WORLD); break;
        case 5: MPI_Reduce(from, into, n, MPI_INT, MPI_MAX, root, MPI_COMM_WORLD); break;
        case 6:
            MPI_Sendrecv(from, n, MPI_INT, next, 1, into, n, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            break;
        case 7:
            /* Both ends of a long message copy it. */
            if (rank % 2 == 0 && rank + 1 < size)
                MPI_Send(from, 8 * n, MPI_INT, rank + 1, 2, MPI_COMM_WORLD);
            else if (rank % 2 == 1)
                MPI_Recv(into, 8 * n, MPI_INT, rank - 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            break;
        default:
            MPI_Ibcast(from, n, MPI_INT, root, MPI_COMM_WORLD, &request[0]);
            MPI_Iallreduce(from, into, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request[1]);
            MPI_Ibarrier(MPI_COMM_WORLD, &request[2]);
            MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
        }
    }
}
