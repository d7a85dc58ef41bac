/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that compute and talk until a file is there; they say what signals they have got. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t got[65];

static void take(int number)
{
    got[number] = 1;
}

int main(int argc, char **argv)
{
    int rank, done = 0, rounds = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    signal(SIGUSR1, take);
    signal(SIGUSR2, take);
    signal(SIGINT, take);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("began\n");
        fflush(stdout);
    }
    while (!done) {
        if (rank == 0)
            done = access(argv[1], F_OK) == 0;
        MPI_Bcast(&done, 1, MPI_INT, 0, MPI_COMM_WORLD);
        usleep(20000);
        rounds++;
        if (got[SIGINT]) {
            printf("rank %d: interrupted\n", rank);
            fflush(stdout);
            _exit(7);
        }
    }
    printf("rank %d:%s%s ended well\n", rank, got[SIGUSR1] ? " USR1" : "", got[SIGUSR2] ? " USR2" : "");
    MPI_Finalize();
    return 0;
}
