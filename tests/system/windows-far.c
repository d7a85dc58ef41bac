/* SPDX-License-Identifier: Apache-2.0 */
/* The last process sleeps in its program while the first one locks it, puts, flushes and unlocks: what that took. Then the
   last one dies with a lock on the first one, and who waits for that lock hears of it. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, code, k;
    long *memory, value = 5, got[16];
    double start, took;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_allocate(1000 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memset(memory, 0, 1000 * sizeof(long));
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    if (rank == size - 1) {
        sleep(3);
        printf("woke\n");
        fflush(stdout);
    }
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, win);
        MPI_Put(&value, 1, MPI_LONG, size - 1, 7, 1, MPI_LONG, win);
        MPI_Win_flush(size - 1, win);
        for (k = 0; k < 16; k++)
            MPI_Fetch_and_op(&value, &got[k], MPI_LONG, size - 1, k, MPI_SUM, win);
        MPI_Win_unlock(size - 1, win);
        took = MPI_Wtime() - start;
        printf("done after %.1f ms\n", 1e3 * took);
        fflush(stdout);
        if (took >= 2.5 || got[7] != 5 || got[8] != 0)
            MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 1) {
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        if (rank == size - 1) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
            MPI_Put(&value, 1, MPI_LONG, 0, 7, 1, MPI_LONG, win);
            MPI_Win_flush(0, win);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == size - 1) {
            usleep(300000);
            raise(SIGKILL);
        }
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        code = MPI_Put(&value, 1, MPI_LONG, 0, 7, 1, MPI_LONG, win);
        k = MPI_Win_unlock(0, win);
        if (code == MPI_SUCCESS)
            code = k;
        k = MPI_Win_free(&win);
        printf("rank %d heard of the loss: %s, freed: %s\n", rank, code == MPI_SUCCESS ? "no" : "yes",
            k == MPI_SUCCESS && win == MPI_WIN_NULL ? "yes" : "no");
        fflush(stdout);
        pause();
    }
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
