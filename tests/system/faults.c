/* SPDX-License-Identifier: Apache-2.0 */
/* For faults.sh: some ranks are lost in a way that the first argument says, the others go on among themselves and end as usual. The
   second argument: how many are lost, the last ones. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, one = 1, sum = 0, came = 0;
    MPI_Comm survivors;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *how = argc > 1 ? argv[1] : "signal";
    int few = argc > 2 ? atoi(argv[2]) : 1, dies = rank >= size - few;
    MPI_Comm_split(MPI_COMM_WORLD, dies, rank, &survivors);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("ready\n");
        fflush(stdout);
    }
    if (dies) {
        if (strcmp(how, "signal") == 0)
            raise(SIGKILL);
        if (strcmp(how, "status") == 0)
            exit(3);
        if (strcmp(how, "silent") == 0)
            _exit(0);
        if (strcmp(how, "abort") == 0)
            MPI_Abort(MPI_COMM_WORLD, 5);
        if (strcmp(how, "agent") == 0) {
            kill(getppid(), SIGKILL);
            for (;;)
                pause();
        }
        /* "wait": somebody else ends it. */
        for (;;)
            pause();
    }
    for (int other = size - few; other < size; other++)
        if (MPI_Recv(&came, 1, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS)
            return 4;
    for (int round = 0; round < 100; round++)
        if (MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, survivors) != MPI_SUCCESS || sum != size - few)
            return 5;
    printf("rank %d went on as one of %d\n", rank, sum);
    MPI_Finalize();
    return 0;
}
