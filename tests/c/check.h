/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs of tests/c share: CHECK ends the job with the place of a condition that does not hold. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) \
            check_failed(__FILE__, __LINE__, #condition); \
    } while (0)

/* The call must succeed. */
#define OK(call) CHECK((call) == MPI_SUCCESS)

static void check_failed(const char *file, int line, const char *condition)
{
    int started = 0, rank = -1;
    MPI_Initialized(&started);
    if (started)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "%s:%d: rank %d: not true: %s\n", file, line, rank, condition);
    fflush(stderr);
    if (started)
        MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* Whether all processes share memory. */
static inline int are_together(void)
{
    MPI_Comm node;
    int size, together;
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Comm_size(node, &together));
    OK(MPI_Comm_free(&node));
    return together == size;
}

#endif
