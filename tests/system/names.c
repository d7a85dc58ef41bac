/* SPDX-License-Identifier: Apache-2.0 */
/* names publish NAME PORT SCOPE: publishes and waits for its standard input to end.
   names find NAME [SCOPE]: prints the port, or the class of the error. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    char port[MPI_MAX_PORT_NAME];
    int publish = argc > 1 && !strcmp(argv[1], "publish"), at = publish ? 4 : 3, rank, code;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (argc > at) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "isthmus_scope", argv[at]);
    }
    if (publish && rank == 0) {
        code = MPI_Publish_name(argv[2], info, argv[3]);
        if (code) {
            printf("class %d\n", code);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
        printf("published\n");
        fflush(stdout);
        while (getchar() != EOF)
            ;
    } else if (!publish && rank == 0) {
        code = MPI_Lookup_name(argv[2], info, port);
        code == MPI_SUCCESS ? printf("port %s\n", port) : printf("unknown %d\n", code == MPI_ERR_NAME);
    }
    MPI_Finalize();
    return 0;
}
