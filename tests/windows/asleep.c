/* SPDX-License-Identifier: Apache-2.0 */
/* How long a process waits that operates on the window of another one while that sleeps outside of MPI.
   usage: asleep SECONDS MICROSECONDS. The median of what each kind of epoch takes must not be longer than a message to that process
   and back, and so many microseconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TURNS 50
#define KINDS 6

static const char *const kinds[KINDS] = {"lock, put, unlock", "put, flush", "get, flush", "accumulate, flush", "fetch_and_op, flush", "lock, get, unlock"};

static int earlier(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *times)
{
    qsort(times, TURNS, sizeof *times, earlier);
    return times[TURNS / 2] * 1e6;
}

static void epoch(int kind, MPI_Win win)
{
    static long data = 1, before;
    if (kind == 0 || kind == 5) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        if (kind == 0)
            MPI_Put(&data, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win);
        else
            MPI_Get(&before, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win);
        MPI_Win_unlock(1, win);
        return;
    }
    switch (kind) {
    case 1: MPI_Put(&data, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win); break;
    case 2: MPI_Get(&before, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win); break;
    case 3: MPI_Accumulate(&data, 1, MPI_LONG, 1, 1, 1, MPI_LONG, MPI_SUM, win); break;
    default: MPI_Fetch_and_op(&data, &before, MPI_LONG, 1, 1, MPI_SUM, win);
    }
    MPI_Win_flush(1, win);
}

int main(int argc, char **argv)
{
    int rank, turn, kind, bad = 0;
    int seconds = argc > 1 ? atoi(argv[1]) : 10;
    double more = argc > 2 ? atof(argv[2]) : 1000, begin, way, all[KINDS][TURNS];
    char byte = 0;
    long *memory;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(16, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memory[0] = memory[1] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (turn = 0; turn < TURNS; turn++) {
        begin = MPI_Wtime();
        if (rank == 0) {
            MPI_Send(&byte, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(&byte, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            MPI_Recv(&byte, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&byte, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
        all[0][turn] = MPI_Wtime() - begin;
    }
    way = median(all[0]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        sleep((unsigned)seconds);
    if (rank == 0) {
        double start = MPI_Wtime();
        usleep(200000);
        for (kind = 0; kind < KINDS; kind++) {
            if (kind == 1)
                MPI_Win_lock_all(0, win);
            if (kind == 5)
                MPI_Win_unlock_all(win);
            for (turn = 0; turn < TURNS; turn++) {
                begin = MPI_Wtime();
                epoch(kind, win);
                all[kind][turn] = MPI_Wtime() - begin;
                usleep(10000);
            }
        }
        if (MPI_Wtime() - start > seconds)
            bad = 1, printf("the operations took longer than the other process slept\n");
        for (kind = 0; kind < KINDS; kind++) {
            double time = median(all[kind]);
            printf("%-20s %8.0f us, at most %8.0f; a message and its answer %8.0f\n", kinds[kind], time, all[kind][TURNS - 1] * 1e6, way);
            if (time > way + more)
                bad = 1, printf("%s: longer than a message and its answer and %.0f us\n", kinds[kind], more);
        }
    }
    MPI_Bcast(&bad, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 1 && memory[1] != 2 * TURNS)
        bad = 1, printf("%ld of %d additions\n", memory[1], 2 * TURNS);
    MPI_Win_free(&win);
    MPI_Finalize();
    return bad;
}
