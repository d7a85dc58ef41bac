/* SPDX-License-Identifier: Apache-2.0 */
/* For faults.sh: which error handler MPI_COMM_WORLD, MPI_COMM_SELF and the communicator with the parents begin with, and what MPI_INFO_ENV says.
   Parents spawn a child without the key mpi_initial_errhandler, and one with it. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static const char *name_of(MPI_Comm comm)
{
    MPI_Errhandler handler;
    MPI_Comm_get_errhandler(comm, &handler);
    return handler == MPI_ERRORS_RETURN ? "return" : handler == MPI_ERRORS_ABORT ? "abort" : handler == MPI_ERRORS_ARE_FATAL ? "fatal" : "?";
}

int main(int argc, char **argv)
{
    char said[MPI_MAX_INFO_VAL] = "";
    int length = sizeof said, found;
    MPI_Comm parents, child;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parents);
    MPI_Info_get_string(MPI_INFO_ENV, "mpi_initial_errhandler", &length, said, &found);
    printf("%s %s %s %s\n", parents == MPI_COMM_NULL ? "parent" : "child", said, name_of(MPI_COMM_WORLD), name_of(MPI_COMM_SELF));
    fflush(stdout);
    if (parents != MPI_COMM_NULL) {
        int code = strcmp(name_of(parents), name_of(MPI_COMM_WORLD)) != 0;
        MPI_Comm_disconnect(&parents);
        MPI_Finalize();
        return code;
    }
    /* Only with MPI_ERRORS_RETURN the program goes on. */
    int code = MPI_Send(&length, 1, MPI_INT, 77, 0, MPI_COMM_WORLD);
    printf("went on: %d\n", code == MPI_ERR_RANK);
    for (int key = 0; key < 2; key++) {
        MPI_Info info;
        MPI_Info_create(&info);
        if (key)
            MPI_Info_set(info, "mpi_initial_errhandler", "MPI_ERRORS_ABORT");
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, info, 0, MPI_COMM_WORLD, &child, MPI_ERRCODES_IGNORE);
        MPI_Comm_disconnect(&child);
        MPI_Info_free(&info);
    }
    MPI_Finalize();
    return 0;
}
