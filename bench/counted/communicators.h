/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators. */
#ifndef COUNTED_COMMUNICATORS_H
#define COUNTED_COMMUNICATORS_H

#include "counted.h"

/* The same processes in the other order. */
static MPI_Comm reversed;
/* So many more communicators than there is shared memory for on a node. */
enum { ALIVE = 500 };
static MPI_Comm alive[ALIVE];

static void dup_and_free(int bytes)
{
    MPI_Comm copy;
    (void)bytes;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_free(&copy);
}

/* The counted process is the one that takes numbers and memory for all. */
static void dup_first_and_free(int bytes)
{
    MPI_Comm copy;
    (void)bytes;
    MPI_Comm_dup(reversed, &copy);
    MPI_Comm_free(&copy);
}

static void dup_and_use(int bytes)
{
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, copy);
    MPI_Comm_free(&copy);
}

static void split_and_free(int bytes)
{
    MPI_Comm part;
    (void)bytes;
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &part);
    MPI_Comm_free(&part);
}

static void cart_and_free(int bytes)
{
    MPI_Comm cart;
    int two = 2, round = 1;
    (void)bytes;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &two, &round, 0, &cart);
    MPI_Comm_free(&cart);
}

static void keep_alive(int bytes)
{
    (void)bytes;
    for (int n = 0; n < ALIVE; n++)
        MPI_Comm_dup(MPI_COMM_WORLD, &alive[n]);
}

static void allreduce_of_many(int bytes) { MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, alive[ALIVE - 1]); }

static void free_alive(int bytes)
{
    (void)bytes;
    for (int n = 0; n < ALIVE; n++)
        MPI_Comm_free(&alive[n]);
}

static const struct operation communicators[] = {
    {"comm_dup+free", dup_and_free, dup_and_free, nothing, 0},
    {"comm_dup-first+free", dup_first_and_free, dup_first_and_free, nothing, 0},
    {"comm_dup+allreduce+free", dup_and_use, dup_and_use, nothing, 8},
    {"comm_split+free", split_and_free, split_and_free, nothing, 0},
    {"cart_create+free", cart_and_free, cart_and_free, nothing, 0},
};

/* The same with so many. */
static const struct operation many_communicators[] = {
    {"", keep_alive, keep_alive, nothing, 0},
    {"500-comm_dup+free", dup_and_free, dup_and_free, nothing, 0},
    {"500-comm_dup-first+free", dup_first_and_free, dup_first_and_free, nothing, 0},
    {"500-allreduce-8", allreduce_of_many, allreduce_of_many, nothing, 8},
    {"", free_alive, free_alive, nothing, 0},
};

#endif
