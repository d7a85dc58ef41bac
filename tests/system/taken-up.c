/* SPDX-License-Identifier: Apache-2.0 */
/* Numbered lines of all ranks in step, until a file appears; then exit status 7. What each rank has reached stands in a file of its own.
   A name that was published at first is found at the end.
   usage: taken-up SIGNS */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t signalled;

static void note(int signal)
{
    (void)signal;
    signalled = 1;
}

static void reach(const char *signs, const char *what, int rank, int step)
{
    char name[512], new[520];
    snprintf(name, sizeof name, "%s/%s.%d", signs, what, rank);
    snprintf(new, sizeof new, "%s.new", name);
    FILE *file = fopen(new, "w");
    if (!file)
        MPI_Abort(MPI_COMM_WORLD, 3);
    fprintf(file, "%d\n", step);
    fclose(file);
    rename(new, name);
}

int main(int argc, char **argv)
{
    char stop[512];
    int rank, size, all = 0;
    signal(SIGUSR1, note);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* A name lasts, whoever has the job. */
    char port[MPI_MAX_PORT_NAME], found[MPI_MAX_PORT_NAME];
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name("tide", MPI_INFO_NULL, port);
    }
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    snprintf(stop, sizeof stop, "%s/stop", argv[1]);
    for (int step = 0; !all; step++) {
        int mine = access(stop, F_OK) == 0, sum = 0;
        MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        MPI_Allreduce(&step, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (sum != step * size)
            MPI_Abort(MPI_COMM_WORLD, 4);
        printf("rank %d step %d\n", rank, step);
        fflush(stdout);
        reach(argv[1], "step", rank, step);
        if (signalled)
            reach(argv[1], "signalled", rank, step);
        usleep(20000);
    }
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (MPI_Lookup_name("tide", MPI_INFO_NULL, found) != MPI_SUCCESS || strcmp(port, found) != 0)
        MPI_Abort(MPI_COMM_WORLD, 5);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && MPI_Unpublish_name("tide", MPI_INFO_NULL, port) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 6);
    MPI_Finalize();
    return 7;
}
