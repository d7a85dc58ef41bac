/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that complete while the program is not inside MPI. Every process looks at its own receive buffer, which a program may
 * not do; a test of the library may. Prints one line per operation when all processes have seen its result before they waited. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LONG = 1 << 22 };
static int rank, size;
static pthread_t program;
static volatile int strangers;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Computes for a second, and on until the byte has its value or far too much time is over. */
static int comes_by_itself(const volatile unsigned char *at, unsigned char value)
{
    double start = now();
    while (now() < start + 1 || (*at != value && now() < start + 60))
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    return *at == value;
}

static void report(const char *what, int right)
{
    int all;
    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s %s\n", what, all ? "came by itself" : "DID NOT COME");
    if (!all) {
        MPI_Finalize();
        exit(1);
    }
}

static void reduction(void)
{
    unsigned char own[8], sum[8] = {0};
    memset(own, 1, sizeof own);
    MPI_Request request;
    MPI_Iallreduce(own, sum, 8, MPI_UNSIGNED_CHAR, MPI_SUM, MPI_COMM_WORLD, &request);
    int right = comes_by_itself(&sum[7], (unsigned char)size);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < 8; i++)
        right &= sum[i] == size;
    report("reduction", right);
}

static void long_messages(int distance)
{
    unsigned char *out = malloc(LONG), *in = calloc(LONG, 1);
    int to = (rank + distance) % size, from = (rank + size - distance) % size;
    memset(out, rank + 1, LONG);
    MPI_Request requests[2];
    MPI_Irecv(in, LONG, MPI_BYTE, from, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, LONG, MPI_BYTE, to, 0, MPI_COMM_WORLD, &requests[1]);
    int right = comes_by_itself(&in[LONG - 1], (unsigned char)(from + 1));
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < LONG; i++)
        right &= in[i] == from + 1;
    char what[64];
    snprintf(what, sizeof what, "message over %d ranks", distance);
    report(what, right);
    free(in);
    free(out);
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    if (!pthread_equal(pthread_self(), program))
        strangers++;
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

/* A function of the program is called by the program's threads only. */
static void own_operator(void)
{
    int sum = 0, one = 1;
    MPI_Op op;
    MPI_Op_create(add, 1, &op);
    MPI_Request request;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, op, MPI_COMM_WORLD, &request);
    nanosleep(&(struct timespec){0, 300000000}, NULL);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Op_free(&op);
    int right = sum == size && !strangers, all;
    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0)
        printf("own operator %s\n", all ? "was called by the program's thread" : "WAS CALLED BY STRANGERS");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    program = pthread_self();
    for (int round = 0; round < 3; round++)
        reduction();
    for (int distance = 1; distance < size; distance++)
        long_messages(distance);
    own_operator();
    MPI_Finalize();
    return 0;
}
