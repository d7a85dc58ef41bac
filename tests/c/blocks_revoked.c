/* SPDX-License-Identifier: Apache-2.0 */
/* A gather of long blocks, to which the others write in the root's memory, and whose communicator the root revokes meanwhile: when its wait has ended
   with MPIX_ERR_REVOKED the memory is the program's again, and nobody writes there any more.
   ranks: 2 4 */
#include "check.h"
#include <mpi-ext.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, TIMES = 24 };

static int class_of(int code)
{
    int class;
    OK(MPI_Error_class(code, &class));
    return class;
}

int main(int argc, char **argv)
{
    int rank, size, ended = 0;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    char *own = malloc(BLOCK), *all = malloc((size_t)size * BLOCK);
    CHECK(own && all);
    memset(own, 1, BLOCK);
    for (int turn = 0; turn < TIMES; turn++) {
        MPI_Comm comm;
        MPI_Request request;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        if (rank == 0) {
            OK(MPI_Igather(own, BLOCK, MPI_BYTE, all, BLOCK, MPI_BYTE, 0, comm, &request));
            /* Some have written then, some have not, and some do. */
            if (turn % 3)
                usleep((useconds_t)(turn * 20));
            int revoked = MPIX_Comm_revoke(comm) == MPI_SUCCESS;
            int class = class_of(MPI_Wait(&request, MPI_STATUS_IGNORE));
            CHECK(class == MPI_SUCCESS || class == MPIX_ERR_REVOKED);
            ended += class != MPI_SUCCESS;
            CHECK(revoked || class == MPI_SUCCESS);
            memset(all, 7, (size_t)size * BLOCK);
        } else {
            if (turn % 2)
                usleep((useconds_t)(rank * 50));
            int class = class_of(MPI_Gather(own, BLOCK, MPI_BYTE, NULL, 0, MPI_BYTE, 0, comm));
            CHECK(class == MPI_SUCCESS || class == MPIX_ERR_REVOKED);
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (long i = 0; rank == 0 && i < (long)size * BLOCK; i++)
            CHECK(all[i] == 7);
        OK(MPI_Comm_free(&comm));
    }
    if (rank == 0)
        printf("nobody writes to memory of an operation that has ended; %d of %d were revoked\n", ended, TIMES);
    free(own);
    free(all);
    OK(MPI_Finalize());
    return 0;
}
