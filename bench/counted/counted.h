/* SPDX-License-Identifier: Apache-2.0 */
/* What the chapters of the list share. */
#ifndef COUNTED_H
#define COUNTED_H

#include <mpi.h>

enum { MANY = 32, LONGEST = 1 << 16 };

static int rank, other, rounds;
static char in[2 * LONGEST], out[2 * LONGEST];

/* Of every operation rank 0 does `ahead` while rank 1 pauses, then rank 1 what is counted, and rank 0 `after`. */
typedef void part(int bytes);

/* What has no name is done once, and not counted. */
struct operation {
    const char *name;
    part *ahead, *counted, *after;
    int bytes;
};

static inline void nothing(int bytes)
{
    (void)bytes;
}

#endif
