/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is open when processes die, the one that has it for the others among them or not: whatever the others do to it, each call returns an
   error that names the file, and none waits forever. See mpi-io.sh. */
#include "files.h"
#include <signal.h>
static int rank, size, wrong;

/* A call must fail, and its error name the file and this process. */
static void fails(const char *what, int error)
{
    char text[MPI_MAX_ERROR_STRING] = "success", own[20];
    int length, class = class_of(error);
    if (error) MPI_Error_string(error, text, &length);
    snprintf(own, sizeof own, "rank %d", rank);
    if (error && class != MPI_ERR_INTERN && class != MPI_ERR_UNKNOWN && strstr(text, "\"/tmp/open at a lost site\"") && strstr(text, own) && strstr(text, " is lost"))
        return;
    printf("rank %d: %s: class %d: %s\n", rank, what, class, text);
    fflush(stdout);
    wrong = 1;
}

/* The process that has the file for those who do not reach it. */
static int home_of(MPI_File file)
{
    MPI_Info info;
    char reach[64] = "";
    int there, length = sizeof reach;
    OK(MPI_File_get_info(file, &info));
    OK(MPI_Info_get_string(info, "isthmus_reach", &length, reach, &there));
    OK(MPI_Info_free(&info));
    return atoi(reach);
}

/* What a process at the other site asks the file's home for. */
static void alone(MPI_File file)
{
    MPI_Request request;
    MPI_Status status;
    MPI_Offset bytes;
    int value = 1, error;
    /* Those that die may still answer. */
    do error = MPI_File_read_at(file, 0, &value, 1, MPI_INT, &status);
    while (!error);
    fails("read_at", error);
    fails("write_at", MPI_File_write_at(file, 0, &value, 1, MPI_INT, &status));
    error = MPI_File_iwrite_at(file, 0, &value, 1, MPI_INT, &request);
    fails("iwrite_at", error ? error : MPI_Wait(&request, &status));
    fails("write_shared", MPI_File_write_shared(file, &value, 1, MPI_INT, &status));
    fails("get_position_shared", MPI_File_get_position_shared(file, &bytes));
    fails("get_size", MPI_File_get_size(file, &bytes));
    fails("seek", MPI_File_seek(file, 0, MPI_SEEK_END));
}

/* What needs all processes. */
static void together(MPI_File file)
{
    MPI_Request request;
    MPI_Status status;
    int value = 1, error;
    fails("write_at_all", MPI_File_write_at_all(file, 4 * rank, &value, 1, MPI_INT, &status));
    fails("read_all", MPI_File_read_all(file, &value, 1, MPI_INT, &status));
    error = MPI_File_iread_at_all(file, 4 * rank, &value, 1, MPI_INT, &request);
    fails("iread_at_all", error ? error : MPI_Wait(&request, &status));
    error = MPI_File_write_ordered_begin(file, &value, 1, MPI_INT);
    fails("write_ordered_end", error ? error : MPI_File_write_ordered_end(file, &value, &status));
    fails("read_ordered", MPI_File_read_ordered(file, &value, 1, MPI_INT, &status));
    fails("seek_shared", MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    fails("set_view", MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    fails("set_atomicity", MPI_File_set_atomicity(file, 1));
    fails("preallocate", MPI_File_preallocate(file, 4));
    fails("set_size", MPI_File_set_size(file, 4));
    fails("sync", MPI_File_sync(file));
    fails("close", MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL);
}

/* left NAME RANK...: these die. The first half of the processes is at one site, the others at another one. */
int main(int argc, char **argv)
{
    MPI_File file;
    int value = 1, home_dies = 0, i;
    /* The job ends because of the deaths; there has to be time to say what was heard. */
    signal(SIGTERM, SIG_IGN);
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_write_at_all(file, 4 * rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    for (i = 2; i < argc; i++) {
        if (rank == atoi(argv[i])) raise(SIGKILL);
        home_dies |= home_of(file) == atoi(argv[i]);
    }
    if (home_dies && (rank < size / 2) != (home_of(file) < size / 2)) alone(file);
    together(file);
    printf("rank %d is %s\n", rank, wrong ? "wrong" : "done");
    fflush(stdout);
    _exit(1);
}
