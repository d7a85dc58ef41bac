/* SPDX-License-Identifier: Apache-2.0 */
/* How one rank ends. usage: ends killed|aborted|orderly|copy RANK (copy: it copies its standard input), or
   ends lasting: all print their ranks and process ids, and end after two minutes */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 1 && argv[1][0] == 'l') {
        printf("rank %d is %d\n", rank, (int)getpid());
        fflush(stdout);
        sleep(120);
    }
    if (argc > 2 && rank == atoi(argv[2])) {
        if (argv[1][0] == 'k')
            raise(SIGKILL);
        if (argv[1][0] == 'a')
            MPI_Abort(MPI_COMM_WORLD, 7);
        for (int c; argv[1][0] == 'c' && (c = getchar()) != EOF;)
            putchar(c);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
