/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided communication. */
#ifndef COUNTED_WINDOWS_H
#define COUNTED_WINDOWS_H

#include "counted.h"

static MPI_Win window, locked;

static void put(int bytes)
{
    MPI_Put(out, bytes, MPI_BYTE, other, 0, bytes, MPI_BYTE, window);
    MPI_Win_flush(other, window);
}

static void get(int bytes)
{
    MPI_Get(in, bytes, MPI_BYTE, other, 0, bytes, MPI_BYTE, window);
    MPI_Win_flush(other, window);
}

static void fetch_and_op(int bytes)
{
    long one = 1, before;
    (void)bytes;
    MPI_Fetch_and_op(&one, &before, MPI_LONG, other, 0, MPI_SUM, window);
    MPI_Win_flush(other, window);
}

static void accumulate(int bytes)
{
    MPI_Accumulate(out, bytes / 8, MPI_LONG, other, 0, bytes / 8, MPI_LONG, MPI_SUM, window);
    MPI_Win_flush(other, window);
}

static void get_accumulate(int bytes)
{
    MPI_Get_accumulate(out, bytes / 8, MPI_LONG, in, bytes / 8, MPI_LONG, other, 0, bytes / 8, MPI_LONG, MPI_SUM, window);
    MPI_Win_flush(other, window);
}

static void compare_and_swap(int bytes)
{
    long new = 1, old = 2, before;
    (void)bytes;
    MPI_Compare_and_swap(&new, &old, &before, MPI_LONG, other, 0, window);
    MPI_Win_flush(other, window);
}

static void lock_put_unlock(int bytes)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, locked);
    MPI_Put(out, bytes, MPI_BYTE, other, 0, bytes, MPI_BYTE, locked);
    MPI_Win_unlock(other, locked);
}

static const struct operation windows[] = {
    {"put+flush-8", nothing, put, nothing, 8},
    {"get+flush-8", nothing, get, nothing, 8},
    {"fetch_and_op+flush", nothing, fetch_and_op, nothing, 8},
    {"accumulate+flush-8", nothing, accumulate, nothing, 8},
    {"get_accumulate+flush-8", nothing, get_accumulate, nothing, 8},
    {"compare_and_swap+flush", nothing, compare_and_swap, nothing, 8},
    {"lock+put+unlock-8", nothing, lock_put_unlock, nothing, 8},
};

#endif
