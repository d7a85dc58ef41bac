/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is open when the only process at its site dies: whatever the others do to it, each call returns an error,
   and none waits forever. See mpi-io.sh. */
#include "files.h"
#include <signal.h>
static int rank, size, wrong;

/* A call must fail, and its error have these words. */
static void fails_with(const char *what, int error, const char *words)
{
    char text[MPI_MAX_ERROR_STRING] = "success";
    int length, class = class_of(error);
    if (error) MPI_Error_string(error, text, &length);
    if (error && class != MPI_ERR_INTERN && class != MPI_ERR_UNKNOWN && strstr(text, words)) return;
    printf("rank %d: %s: class %d: %s\n", rank, what, class, text);
    fflush(stdout);
    wrong = 1;
}

/* Where data are accessed the error names the file. */
static void fails(const char *what, int error)
{
    fails_with(what, error, "open at a lost site");
}

/* left NAME: a file at the site of the last process, which dies. */
int main(int argc, char **argv)
{
    MPI_File file;
    MPI_Request request;
    MPI_Status status;
    MPI_Offset bytes;
    int value = 1, error;
    /* The job ends because of the deaths; there has to be time to say what was heard. */
    signal(SIGTERM, SIG_IGN);
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_write_at_all(file, 4 * rank, &value, 1, MPI_INT, &status));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) raise(SIGKILL);
    /* Those that die may still answer. */
    do error = MPI_File_read_at(file, 0, &value, 1, MPI_INT, &status);
    while (!error);
    fails("read_at", error);
    fails("write_at", MPI_File_write_at(file, 0, &value, 1, MPI_INT, &status));
    error = MPI_File_iwrite_at(file, 0, &value, 1, MPI_INT, &request);
    fails("iwrite_at", error ? error : MPI_Wait(&request, &status));
    fails("write_shared", MPI_File_write_shared(file, &value, 1, MPI_INT, &status));
    fails("get_size", MPI_File_get_size(file, &bytes));
    fails("write_at_all", MPI_File_write_at_all(file, 4 * rank, &value, 1, MPI_INT, &status));
    error = MPI_File_iread_at_all(file, 4 * rank, &value, 1, MPI_INT, &request);
    fails("iread_at_all", error ? error : MPI_Wait(&request, &status));
    fails_with("read_ordered", MPI_File_read_ordered(file, &value, 1, MPI_INT, &status), " is lost");
    fails_with("set_size", MPI_File_set_size(file, 4), " is lost");
    fails_with("sync", MPI_File_sync(file), " is lost");
    fails_with("close", MPI_File_close(&file), " is lost");
    printf("rank %d is %s\n", rank, wrong ? "wrong" : "done");
    fflush(stdout);
    _exit(1);
}
