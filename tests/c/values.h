/* SPDX-License-Identifier: Apache-2.0 */
/* Data of which everybody knows what they are at everybody else, and their sums. */
#ifndef VALUES_H
#define VALUES_H

#include "check.h"

static int rank, size;
static MPI_Comm comm;

static int value(int from, long i, int salt)
{
    return (int)((unsigned)from * 1000003u + (unsigned)i * 7u + (unsigned)salt * 31u);
}

static inline int total(long i, int salt)
{
    unsigned sum = 0;
    for (int r = 0; r < size; r++)
        sum += (unsigned)value(r, i, salt);
    return (int)sum;
}

static void fill(int *a, long n, int from, int salt)
{
    for (long i = 0; i < n; i++)
        a[i] = value(from, i, salt);
}

#endif
