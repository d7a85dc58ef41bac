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

#endif
