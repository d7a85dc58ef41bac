/* SPDX-License-Identifier: Apache-2.0 */
/* Scatters of growing size until one fails for want of memory that processes of a node share. Its root has data in pieces, which nobody can copy
   straight, so they go through that memory.
   Every rank says what it was told: only the root, the last rank, has found the lack itself, and which of them ends the job is a matter of luck. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 16 << 20 };

int main(int argc, char **argv)
{
    int rank, size, code = MPI_SUCCESS;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Datatype spread;
    MPI_Type_create_resized(MPI_BYTE, 0, 2, &spread);
    MPI_Type_commit(&spread);
    char *data = calloc(MOST, 2), *mine = calloc(MOST, 1);
    if (!data || !mine)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int bytes = 64; bytes <= MOST / size && code == MPI_SUCCESS; bytes *= 2)
        code = MPI_Scatter(data, bytes, spread, mine, bytes, MPI_BYTE, size - 1, MPI_COMM_WORLD);
    if (code == MPI_SUCCESS)
        printf("rank %d: no error\n", rank);
    else {
        char text[MPI_MAX_ERROR_STRING];
        int class, length;
        MPI_Error_class(code, &class);
        MPI_Error_string(code, text, &length);
        printf("rank %d: class %s: %s\n", rank, class == MPI_ERR_NO_MEM ? "MPI_ERR_NO_MEM" : "another", text);
    }
    fflush(stdout);
    sleep(1);
    MPI_Abort(MPI_COMM_WORLD, 7);
}
