/* SPDX-License-Identifier: Apache-2.0 */
/* For faults.sh: one of two children, whose loss does not end the job (isthmus_on_loss), is killed while its parents wait for it. The other
   one and the parents go on. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static int parents(const char *program)
{
    MPI_Comm children;
    MPI_Info info;
    char text[MPI_MAX_ERROR_STRING];
    int rank, length, number = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Info_create(&info);
    MPI_Info_set(info, "isthmus_on_loss", "go-on");
    MPI_Comm_spawn(program, MPI_ARGV_NULL, 2, info, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Info_free(&info);
    MPI_Comm_set_errhandler(children, MPI_ERRORS_RETURN);
    MPI_Recv(&number, 1, MPI_INT, 0, 0, children, MPI_STATUS_IGNORE);
    int code = MPI_Recv(&number, 1, MPI_INT, 1, 0, children, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS)
        return 3;
    MPI_Error_string(code, text, &length);
    printf("parent %d heard: %s\n", rank, text);
    if (MPI_Send(&rank, 1, MPI_INT, 0, 0, children) != MPI_SUCCESS || MPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS)
        return 4;
    return 0;
}

static int child(MPI_Comm parent)
{
    int rank, count, number;
    MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_remote_size(parent, &count);
    if (rank == 1) {
        usleep(300000);
        raise(SIGKILL);
    }
    for (int i = 0; i < count; i++)
        MPI_Send(&rank, 1, MPI_INT, i, 0, parent);
    for (int i = 0; i < count; i++)
        if (MPI_Recv(&number, 1, MPI_INT, i, 0, parent, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return 5;
    return 0;
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    int status = parent == MPI_COMM_NULL ? parents(argv[0]) : child(parent);
    MPI_Finalize();
    return status;
}
