/* SPDX-License-Identifier: Apache-2.0 */
/* The last process, at another site than the file, is killed in the middle of a long write in atomic mode, while it has the file for itself. The
   others write all the same, and what they read is of one writer. See mpi-io.sh. */
#include "files.h"
#include <signal.h>
#include <sys/time.h>
enum { LONG = 1 << 28, BYTES = 1 << 16 };
static char *data;

static void die(int number)
{
    (void)number;
    raise(SIGKILL);
}

/* holder NAME */
int main(int argc, char **argv)
{
    int rank, size, i;
    MPI_File file;
    MPI_Status status;
    struct itimerval soon = {{0, 0}, {0, 300000}};
    /* The job ends because of the death; there has to be time to say what became of the others. */
    signal(SIGTERM, SIG_IGN);
    signal(SIGALRM, die);
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_set_atomicity(file, 1));
    data = malloc(rank == size - 1 ? LONG : BYTES);
    memset(data, 'A' + rank, rank == size - 1 ? LONG : BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) {
        setitimer(ITIMER_REAL, &soon, NULL);
        MPI_File_write_at(file, 0, data, LONG, MPI_BYTE, &status);
        puts("the write was over before the process was killed");
        pause();
    }
    usleep(100000);
    OK(MPI_File_write_at(file, 0, data, BYTES, MPI_BYTE, &status));
    OK(MPI_File_read_at(file, 0, data, BYTES, MPI_BYTE, &status));
    for (i = 1; i < BYTES; i++) CHECK(data[i] == data[0]);
    printf("rank %d has written\n", rank);
    fflush(stdout);
    /* The others may need this process still. */
    pause();
}
