/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads wait for messages from anybody on one communicator when a member is lost: each is told, or another one has acknowledged the loss
   before; whoever is told acknowledges it and waits on. All get what a living member sends. */
#include <mpi-ext.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 6, GO = 100 };

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

static void acknowledge(void)
{
    int acknowledged;
    MPI_Group lost;
    if (MPIX_Comm_ack_failed(MPI_COMM_WORLD, 3, &acknowledged) != MPI_SUCCESS || acknowledged != 1)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPIX_Comm_failure_get_acked(MPI_COMM_WORLD, &lost);
    MPI_Group_free(&lost);
}

/* Half of them block, the others wait for a request. */
static void *wait_for_anybody(void *number)
{
    int tag = (int)(intptr_t)number, value = -1, code;
    MPI_Request request;
    MPI_Status status;
    if (tag % 2)
        MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &request);
    for (;;) {
        code = tag % 2 ? MPI_Wait(&request, &status) : MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &status);
        if (code == MPI_SUCCESS)
            break;
        if (class_of(code) != (tag % 2 ? MPIX_ERR_PROC_FAILED_PENDING : MPIX_ERR_PROC_FAILED))
            MPI_Abort(MPI_COMM_WORLD, 3);
        acknowledge();
    }
    if (value != tag || status.MPI_SOURCE != 1)
        MPI_Abort(MPI_COMM_WORLD, 4);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, rank, count = 0, word = 0;
    pthread_t threads[THREADS];
    MPI_Group lost;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank > 0) {
        MPI_Recv(&word, 1, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 2)
            raise(SIGKILL);
        for (int tag = 0; tag < THREADS; tag++)
            MPI_Send(&tag, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
        MPI_Finalize();
        return 0;
    }
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, wait_for_anybody, (void *)(intptr_t)i) != 0)
            MPI_Abort(MPI_COMM_WORLD, 5);
    MPI_Send(&word, 1, MPI_INT, 2, GO, MPI_COMM_WORLD);
    while (count == 0) {
        usleep(1000);
        MPIX_Comm_get_failed(MPI_COMM_WORLD, &lost);
        MPI_Group_size(lost, &count);
        MPI_Group_free(&lost);
    }
    MPI_Send(&word, 1, MPI_INT, 1, GO, MPI_COMM_WORLD);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%d threads went on\n", THREADS);
    MPI_Finalize();
    return 0;
}
