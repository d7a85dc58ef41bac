/* SPDX-License-Identifier: Apache-2.0 */
/* Two programs connect; the client kills itself, and the server gets an error and goes on with somebody else. */
#include "check.h"
#include <signal.h>
#include <unistd.h>

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
    int code = MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, inter, MPI_STATUS_IGNORE), length;
    CHECK(code != MPI_SUCCESS);
    char text[MPI_MAX_ERROR_STRING];
    OK(MPI_Error_string(code, text, &length));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Finalize());
    printf("the server goes on: %s\n", text);
    return 0;
}
