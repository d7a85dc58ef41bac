/* SPDX-License-Identifier: Apache-2.0 */
/* Two programs connect, and have a file open together; the client kills itself, and the server gets errors and goes on: the file that it
   reaches itself it still writes and closes. */
#include "check.h"
#include <isthmus.h>
#include <signal.h>
#include <unistd.h>

/* Rank 0, who has the shared pointer, is the client. Both are in the middle of it, and the client has the file for itself, when it ends. */
static MPI_File opened(MPI_Comm inter, int high)
{
    MPI_Comm all;
    MPI_File file;
    int rank;
    OK(MPI_Intercomm_merge(inter, high, &all));
    OK(MPI_Comm_rank(all, &rank));
    CHECK(rank == high);
    OK(MPI_File_open(all, "parted.data", MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    OK(MPI_Comm_free(&all));
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_write_ordered(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    return file;
}

static void without_partner(MPI_File file)
{
    int value[2] = { 7, 7 }, class;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Status status;
    OK(MPI_File_write_at(file, 2 * sizeof *value, value, 1, MPI_INT, &status));
    int code = MPI_File_write_shared(file, value, 1, MPI_INT, &status);
    CHECK(code != MPI_SUCCESS);
    OK(MPI_Error_string(code, text, &class));
    CHECK(strstr(text, "parted.data"));
    CHECK(MPI_File_sync(file) != MPI_SUCCESS);
    CHECK(MPI_File_write_at_all(file, 0, value, 1, MPI_INT, &status) != MPI_SUCCESS);
    CHECK(MPI_File_close(&file) != MPI_SUCCESS);
    CHECK(file == MPI_FILE_NULL);
    OK(MPI_File_open(MPI_COMM_SELF, "parted.data", MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_read_at(file, sizeof *value, value, 2, MPI_INT, &status));
    CHECK(value[0] == 1 && value[1] == 7);
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm inter;
    int value = 0;
    OK(MPI_Init(&argc, &argv));
    CHECK(argc == 3 || argc == 4);
    if (strcmp(argv[1], "client") == 0) {
        FILE *file;
        while (!(file = fopen(argv[2], "r")))
            usleep(10000);
        CHECK(fgets(port, sizeof port, file));
        OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
        OK(MPI_Send(&value, 1, MPI_INT, 0, 0, inter));
        OK(MPI_Recv(&value, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE));
        opened(inter, 0);
        /* Somebody looks first, and makes this file then. */
        while (argc == 4 && access(argv[3], F_OK) != 0)
            usleep(10000);
        raise(SIGKILL);
    }
    OK(MPI_Open_port(MPI_INFO_NULL, port));
    FILE *file = fopen("new", "w");
    CHECK(file && fputs(port, file) >= 0 && fclose(file) == 0 && rename("new", argv[2]) == 0);
    OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, inter, MPI_STATUS_IGNORE));
    OK(MPI_Send(&value, 1, MPI_INT, 0, 0, inter));
    MPI_File both = opened(inter, 1);
    /* Who waits for requests waits for the other job, too, without a communicator. */
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    CHECK(isthmus_handlers_run(1, NULL) != MPI_SUCCESS);
    int code = MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, inter, MPI_STATUS_IGNORE), length;
    CHECK(code != MPI_SUCCESS);
    char text[MPI_MAX_ERROR_STRING];
    OK(MPI_Error_string(code, text, &length));
    without_partner(both);
    OK(MPI_Comm_free(&inter));
    OK(MPI_Finalize());
    printf("the server goes on: %s\n", text);
    return 0;
}
