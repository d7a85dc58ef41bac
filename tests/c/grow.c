/* SPDX-License-Identifier: Apache-2.0 */
/* A pool that takes workers which are added from outside, so many times, and lets them go; and a worker, which may stay until SIGUSR1. Without arguments it is a job
 * that nothing is added to. */
/* ranks: 2 4 */
#include "check.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t is_asked_to_leave;

static void leave(int number)
{
    is_asked_to_leave = number;
}

/* Gives each worker a number, and gets its square. */
static void serve(MPI_Comm workers)
{
    int rank, many;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_remote_size(workers, &many);
    for (int to = 0; rank == 0 && to < many; to++) {
        long number = 100 + to, square = 0;
        OK(MPI_Sendrecv(&number, 1, MPI_LONG, to, 1, &square, 1, MPI_LONG, to, 2, workers, MPI_STATUS_IGNORE));
        CHECK(square == number * number);
    }
    OK(MPI_Comm_disconnect(&workers));
    if (rank == 0) {
        printf("%d have worked\n", many);
        fflush(stdout);
    }
}

/* stays: until somebody who looks after the machine asks for it. */
static void work(MPI_Comm pool, int stays)
{
    long number, square;
    OK(MPI_Recv(&number, 1, MPI_LONG, 0, 1, pool, MPI_STATUS_IGNORE));
    square = number * number;
    OK(MPI_Send(&square, 1, MPI_LONG, 0, 2, pool));
    while (stays && !is_asked_to_leave)
        usleep(10000);
    OK(MPI_Comm_disconnect(&pool));
}

int main(int argc, char **argv)
{
    int rank, size, times = argc > 2 ? atoi(argv[2]) : 1;
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm workers, pool;
    signal(SIGUSR1, leave);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&pool);
    if (argc > 1 && !strcmp(argv[1], "worker")) {
        CHECK(pool != MPI_COMM_NULL);
        work(pool, argc > 2);
    } else if (argc > 1) {
        if (rank == 0) {
            OK(MPI_Open_port(MPI_INFO_NULL, port));
            OK(MPI_Publish_name("pool", MPI_INFO_NULL, port));
        }
        for (int time = 0; time < times; time++) {
            OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &workers));
            serve(workers);
        }
        /* Who was asked were the workers. */
        CHECK(!is_asked_to_leave);
        if (rank == 0)
            OK(MPI_Unpublish_name("pool", MPI_INFO_NULL, port));
    } else {
        CHECK(pool == MPI_COMM_NULL);
    }
    MPI_Finalize();
    return 0;
}
