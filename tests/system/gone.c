/* SPDX-License-Identifier: Apache-2.0 */
/* For gone.sh: the last rank dies without a word. The others wait for it, each in another way, and hear of it; among themselves they go on. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    int rank, size, one = 1, sum = 0, came = 0, code = MPI_SUCCESS, length;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Comm survivors;
    MPI_Request request;
    /* The job ends because of the death; there has to be time to say what was heard. */
    signal(SIGTERM, SIG_IGN);
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int dies = size - 1;
    MPI_Comm_split(MPI_COMM_WORLD, rank == dies, rank, &survivors);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == dies)
        raise(SIGKILL);
    switch (rank % 3) {
    case 0: code = MPI_Recv(&came, 1, MPI_INT, dies, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); break;
    case 1: code = MPI_Allreduce(&one, &came, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); break;
    default:
        MPI_Irecv(&came, 1, MPI_INT, dies, 1, MPI_COMM_WORLD, &request);
        for (int over = 0; !over;)
            code = MPI_Test(&request, &over, MPI_STATUS_IGNORE);
    }
    if (code == MPI_SUCCESS)
        return 3;
    MPI_Error_string(code, text, &length);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, survivors);
    printf("rank %d of %d survivors heard: %s\n", rank, sum, text);
    fflush(stdout);
    /* Whoever has said it waits for the end. */
    for (;;)
        MPI_Barrier(survivors);
}
