// SPDX-License-Identifier: Apache-2.0
/* Many puts in a row to the last process, and a flush: what a link carries of them.
   usage: puts [BYTES] [MIB] [TIMES]     (1024 bytes each, 64 MiB, 5 times)
   For a link between two sites: isthmus-testbed run --sites 2x1 --rtt 40ms --rate 200mbit -- isthmus run --site home:1 --site b1:1 ./puts
   A line each time: seconds, Mbit/s of data. The data are random, so that nothing is gained by compression. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long bytes = argc > 1 ? atol(argv[1]) : 1024, all = (argc > 2 ? atol(argv[2]) : 64) << 20;
    int times = argc > 3 ? atoi(argv[3]) : 5;
    if (bytes < 1 || bytes > all) {
        if (rank == 0)
            fprintf(stderr, "usage: puts [BYTES] [MIB] [TIMES]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    char *memory, *data = malloc((size_t)all);
    MPI_Win window;
    MPI_Win_allocate(rank == size - 1 ? all : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    srand(5);
    for (long at = 0; at < all; at++)
        data[at] = (char)(rand() >> 7);
    for (int time = 0; time < times; time++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank > 0)
            continue;
        MPI_Win_lock(MPI_LOCK_SHARED, size - 1, 0, window);
        double start = MPI_Wtime();
        for (long at = 0; at + bytes <= all; at += bytes)
            MPI_Put(data + at, (int)bytes, MPI_BYTE, size - 1, at, (int)bytes, MPI_BYTE, window);
        MPI_Win_flush(size - 1, window);
        double took = MPI_Wtime() - start;
        MPI_Win_unlock(size - 1, window);
        printf("%ld bytes each: %.3f s, %.1f Mbit/s\n", bytes, took, 8e-6 * (double)(all / bytes * bytes) / took);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    int wrong = 0;
    for (long at = 0; rank == size - 1 && at < all / bytes * bytes; at++)
        wrong += memory[at] != data[at];
    if (wrong)
        printf("%d bytes are wrong\n", wrong);
    MPI_Win_free(&window);
    free(data);
    MPI_Finalize();
    return wrong != 0;
}
