/* SPDX-License-Identifier: Apache-2.0 */
/* A window and a file whose processes have lost one: the process that has the shared pointer closes it, and another one still uses it. Nobody
 * waits for ever, errors tell of the loss, and the survivors open the next file. Used by faults.sh; three processes. */
#include <mpi-ext.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static int class_of(int error)
{
    int class;
    MPI_Error_class(error, &class);
    return class;
}

static void want(int error, int class, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "no error";
    int length;
    if (class_of(error) == class)
        return;
    if (error != MPI_SUCCESS)
        MPI_Error_string(error, text, &length);
    printf("%s: class %d and not %d: %s\n", what, class_of(error), class, text);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 9);
}

/* An operation on the part of a process that is lost, or has freed the window already, is an error of the loss if it is one. */
static void reach(MPI_Win window, int rank, int lost)
{
    int word, error = MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window), later;
    if (error == MPI_SUCCESS) {
        error = MPI_Get(&word, 1, MPI_INT, rank, 0, 1, MPI_INT, window);
        later = MPI_Win_unlock(rank, window);
        error = error == MPI_SUCCESS ? later : error;
    }
    if (lost || error != MPI_SUCCESS)
        want(error, MPIX_ERR_PROC_FAILED, "a window");
}

int main(int argc, char **argv)
{
    int rank, word = 1, part = 7;
    MPI_Win window;
    char data[8] = "1234567";
    MPI_Comm comm, left;
    MPI_File file;
    MPI_Request request;
    MPI_Offset at;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    want(MPI_File_open(comm, "lost.data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_SUCCESS, "open");
    want(MPI_File_write_shared(file, data, 8, MPI_CHAR, MPI_STATUS_IGNORE), MPI_SUCCESS, "write_shared");
    want(MPI_Win_create(&part, sizeof part, sizeof part, MPI_INFO_NULL, comm, &window), MPI_SUCCESS, "create");
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    want(MPI_Barrier(comm), MPI_SUCCESS, "barrier");
    if (rank == 2)
        raise(SIGKILL);
    want(MPI_Recv(&word, 1, MPI_INT, 2, 0, comm, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED, "a receive");
    reach(window, 2, 1);
    if (rank == 0) {
        MPI_Win_free(&window);
        want(MPI_File_close(&file), MPIX_ERR_PROC_FAILED, "the first close");
        want(MPI_Send(&word, 1, MPI_INT, 1, 0, comm), MPI_SUCCESS, "send");
    } else {
        want(MPI_Recv(&word, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE), MPI_SUCCESS, "receive");
        reach(window, 0, 0);
        MPI_Win_free(&window);
        /* The pointer has gone with who had it. */
        want(MPI_File_write_shared(file, data, 8, MPI_CHAR, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED, "write_shared");
        want(MPI_File_iread_shared(file, data, 8, MPI_CHAR, &request), MPI_SUCCESS, "iread_shared");
        want(MPI_Wait(&request, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED, "wait");
        want(MPI_File_get_position_shared(file, &at), MPIX_ERR_PROC_FAILED, "get_position_shared");
        want(MPI_File_read_at(file, 0, data, 8, MPI_CHAR, MPI_STATUS_IGNORE), MPI_SUCCESS, "read_at");
        want(MPI_File_close(&file), MPIX_ERR_PROC_FAILED, "the last close");
    }
    want(MPIX_Comm_shrink(comm, &left), MPI_SUCCESS, "shrink");
    for (int round = 0; round < 3; round++) {
        want(MPI_File_open(left, "lost.data", MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_SUCCESS, "the next open");
        want(MPI_File_write_shared(file, data, 8, MPI_CHAR, MPI_STATUS_IGNORE), MPI_SUCCESS, "the next write_shared");
        want(MPI_File_close(&file), MPI_SUCCESS, "the next close");
    }
    MPI_Comm_free(&left);
    MPI_Comm_free(&comm);
    printf("went on as one of 2\n");
    MPI_Finalize();
    return 0;
}
