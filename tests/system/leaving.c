/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 is in MPI_Finalize while rank 1 still needs something of it. With "cancelled": to be told that a message nobody receives is one that it
   has not received. With "many": that what it has received long ago is off the sender's hands, which some MPIs underneath tell when they are called. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TRIES = 10, MANY = 300, LENGTH = 32768, TIME = 300000 };

static char data[LENGTH];

static int cancelled(int rank)
{
    int value = 1, flag = rank == 0;
    if (rank == 1)
        usleep(TIME);
    /* A receiver that gets no processor for long does not answer in time, and keeps the message. */
    for (int i = 0; i < TRIES && !flag; i++) {
        MPI_Request request;
        MPI_Status status;
        MPI_Isend(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &flag);
    }
    return flag;
}

static void many(int rank)
{
    int value = 0;
    if (rank == 1) {
        for (int i = 0; i < MANY; i++)
            MPI_Send(data, LENGTH, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        usleep(2 * TIME);
        MPI_Recv(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        usleep(TIME / 2);
        MPI_Send(&value, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
        for (int i = 0; i < MANY; i++)
            MPI_Recv(data, LENGTH, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    int rank, good = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 1 && !strcmp(argv[1], "cancelled"))
        good = cancelled(rank);
    else
        many(rank);
    MPI_Finalize();
    if (!good)
        printf("a message that nobody receives was not cancelled\n");
    return !good;
}
