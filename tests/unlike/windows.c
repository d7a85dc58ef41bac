/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided communication among machines that represent data differently: every datatype is put, got, fetched and replaced, numbers are
   added, elements are compared, long data come in pieces, and what lies outside of a window is an error there. */
#include "types.h"

#define N 13
#define LONG 40000

struct mixed {
    char c;
    double d;
    short s[3];
    long l;
};

static MPI_Win window(size_t bytes, int unit, void *base)
{
    MPI_Win win;
    OK(MPI_Win_allocate((MPI_Aint)bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, base, &win));
    memset(*(void **)base, 0, bytes);
    OK(MPI_Win_fence(0, win));
    return win;
}

/* All put to all, and get it back; then under locks. */
static void moved(const struct kind *k)
{
    char *base, *mine = memory(N * k->extent), *got = memory(N * k->extent);
    int extent = (int)k->extent;
    MPI_Win win = window((size_t)size * N * k->extent, extent, &base);
    make(k, mine, N, 100 * rank);
    for (int r = 0; r < size; r++) OK(MPI_Put(mine, N, k->type, r, rank * N, N, k->type, win));
    OK(MPI_Win_fence(0, win));
    for (int r = 0; r < size; r++) must_be(k, base + (size_t)r * N * k->extent, N, 100 * r, "MPI_Put");
    for (int r = 0; r < size; r++) {
        int from = (rank + r) % size;
        memset(got, 0, N * k->extent);
        OK(MPI_Win_lock(MPI_LOCK_SHARED, from, 0, win));
        OK(MPI_Get(got, N, k->type, from, rank * N, N, k->type, win));
        OK(MPI_Win_unlock(from, win));
        must_be(k, got, N, 100 * rank, "MPI_Get");
    }
    /* In turn, so that each finds what the one before has left. */
    for (int r = 0; r < size; r++) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (r != rank || k->type == MPI_CHARACTER) continue;
        int other = (rank + size / 2) % size;
        MPI_Request request;
        OK(MPI_Win_lock_all(0, win));
        make(k, mine, N, 7 + rank);
        OK(MPI_Rget_accumulate(mine, N, k->type, got, N, k->type, other, 0, N, k->type, MPI_REPLACE, win, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        must_be(k, got, N, 0, "MPI_Rget_accumulate");
        memset(got, 0, N * k->extent);
        OK(MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, got, N, k->type, other, 0, N, k->type, MPI_NO_OP, win));
        OK(MPI_Win_flush(other, win));
        must_be(k, got, N, 7 + rank, "MPI_Get_accumulate with MPI_NO_OP");
        make(k, mine, 1, 50 + rank);
        OK(MPI_Fetch_and_op(mine, got, k->type, other, 1, MPI_REPLACE, win));
        OK(MPI_Win_flush(other, win));
        must_be(k, got, 1, 8 + rank, "MPI_Fetch_and_op");
        make(k, mine, N, 0);
        OK(MPI_Accumulate(mine, N, k->type, other, 0, N, k->type, MPI_REPLACE, win));
        OK(MPI_Win_unlock_all(win));
    }
    OK(MPI_Win_free(&win));
    free(mine);
    free(got);
}

/* All add to one process of each machine; one swaps. */
static void computed(void)
{
    struct { long sum; double product; short small; long swapped; struct { double v; int i; } most; } *base, one;
    MPI_Win win = window(sizeof *base, 1, &base);
    base->product = 1;
    OK(MPI_Win_fence(0, win));
    int targets[2] = {0, size - 1};
    for (int t = 0; t < 2; t++) {
        int to = targets[t];
        one.sum = 1000000007L * (rank + 1);
        one.product = rank + 2;
        one.small = (short)(rank + 1);
        one.most.v = rank;
        one.most.i = 10 * rank;
        OK(MPI_Accumulate(&one.sum, 1, MPI_LONG, to, (char *)&base->sum - (char *)base, 1, MPI_LONG, MPI_SUM, win));
        OK(MPI_Accumulate(&one.product, 1, MPI_DOUBLE, to, (char *)&base->product - (char *)base, 1, MPI_DOUBLE, MPI_PROD, win));
        OK(MPI_Accumulate(&one.small, 1, MPI_SHORT, to, (char *)&base->small - (char *)base, 1, MPI_SHORT, MPI_BOR, win));
        OK(MPI_Accumulate(&one.most, 1, MPI_DOUBLE_INT, to, (char *)&base->most - (char *)base, 1, MPI_DOUBLE_INT, MPI_MAXLOC, win));
    }
    OK(MPI_Win_fence(0, win));
    if (rank == 0 || rank == size - 1) {
        long sum = 0;
        double product = 1;
        short bits = 0;
        for (int r = 0; r < size; r++) sum += 1000000007L * (r + 1), product *= r + 2, bits |= (short)(r + 1);
        CHECK(base->sum == sum && base->product == product && base->small == bits);
        CHECK(base->most.v == size - 1 && base->most.i == 10 * (size - 1));
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    /* A counter that all advance by swaps alone. */
    for (int t = 0; t < 2; t++) {
        MPI_Aint at = (char *)&base->swapped - (char *)base;
        OK(MPI_Win_lock_all(0, win));
        for (int i = 0; i < 20; i++) {
            long old = 0, new, was = -1;
            while (1) {
                new = old + 0x100000001L;
                OK(MPI_Compare_and_swap(&new, &old, &was, MPI_LONG, targets[t], at, win));
                OK(MPI_Win_flush(targets[t], win));
                if (was == old) break;
                old = was;
            }
        }
        OK(MPI_Win_unlock_all(win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    long swapped = -1;
    for (int t = 0; t < 2; t++) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, targets[t], 0, win));
        OK(MPI_Get(&swapped, 1, MPI_LONG, targets[t], (char *)&base->swapped - (char *)base, 1, MPI_LONG, win));
        OK(MPI_Win_unlock(targets[t], win));
        CHECK(swapped == 20L * size * 0x100000001L);
    }
    OK(MPI_Win_free(&win));
}

/* Structures in two shapes, and data that come in many pieces. */
static void long_ones(void)
{
    struct mixed *base, *mine = calloc(LONG, sizeof *mine), *got = calloc(LONG, sizeof *got);
    CHECK(mine && got);
    int lengths[4] = {1, 1, 3, 1}, other = (rank + size / 2) % size, from = other;
    MPI_Aint places[4] = {offsetof(struct mixed, c), offsetof(struct mixed, d), offsetof(struct mixed, s), offsetof(struct mixed, l)};
    MPI_Datatype types[4] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT, MPI_LONG}, bare, type, every_second;
    OK(MPI_Type_create_struct(4, lengths, places, types, &bare));
    OK(MPI_Type_create_resized(bare, 0, sizeof *mine, &type));
    OK(MPI_Type_vector(LONG / 2, 1, 2, type, &every_second));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_commit(&every_second));
    MPI_Win win = window(LONG * sizeof *base, 1, &base);
    for (int i = 0; i < LONG; i++)
        mine[i] = (struct mixed){(char)(i % 100), i * 1.5 + rank, {(short)i, (short)(i + 1), (short)-i}, i * 3000000019L + rank};
    OK(MPI_Put(mine, LONG, type, other, 0, LONG, type, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < LONG; i++) {
        CHECK(base[i].c == i % 100 && base[i].d == i * 1.5 + from && base[i].l == i * 3000000019L + from);
        CHECK(base[i].s[0] == (short)i && base[i].s[1] == (short)(i + 1) && base[i].s[2] == (short)-i);
    }
    OK(MPI_Get(got, LONG / 2, type, other, 0, 1, every_second, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < LONG / 2; i++) CHECK(got[i].d == 2 * i * 1.5 + rank && got[i].l == 2 * i * 3000000019L + rank && got[i].s[1] == (short)(2 * i + 1));
    OK(MPI_Win_free(&win));
    free(mine);
    free(got);

    long double *numbers, *more = calloc(LONG, sizeof *more), *before = calloc(LONG, sizeof *before);
    CHECK(more && before);
    win = window(LONG * sizeof *numbers, sizeof *numbers, &numbers);
    for (int i = 0; i < LONG; i++) more[i] = i + 0.25L;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, win));
    OK(MPI_Accumulate(more, LONG, MPI_LONG_DOUBLE, other, 0, LONG, MPI_LONG_DOUBLE, MPI_SUM, win));
    OK(MPI_Get_accumulate(more, LONG, MPI_LONG_DOUBLE, before, LONG, MPI_LONG_DOUBLE, other, 0, LONG, MPI_LONG_DOUBLE, MPI_SUM, win));
    OK(MPI_Win_unlock(other, win));
    for (int i = 0; i < LONG; i++) CHECK(before[i] == i + 0.25L);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, win));
    OK(MPI_Get_accumulate(NULL, 0, MPI_BYTE, before, LONG, MPI_LONG_DOUBLE, other, 0, LONG, MPI_LONG_DOUBLE, MPI_NO_OP, win));
    OK(MPI_Win_unlock(other, win));
    for (int i = 0; i < LONG; i++) CHECK(before[i] == 2 * (i + 0.25L));
    OK(MPI_Win_free(&win));
    free(more);
    free(before);
}

/* Memory that is attached later, its address in a message; and epochs of groups. */
static void others(void)
{
    long here[8] = {0}, seen = 0;
    int other = (rank + size / 2) % size;
    MPI_Aint mine, there;
    MPI_Win win;
    MPI_Group world, group;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_attach(win, here, sizeof here));
    OK(MPI_Get_address(here, &mine));
    OK(MPI_Sendrecv(&mine, 1, MPI_AINT, other, 0, &there, 1, MPI_AINT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    long value = 0x0102030405060708L + rank;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, win));
    OK(MPI_Put(&value, 1, MPI_LONG, other, there, 1, MPI_LONG, win));
    OK(MPI_Win_flush(other, win));
    OK(MPI_Get(&seen, 1, MPI_LONG, other, there, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(other, win));
    CHECK(seen == value);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &other, &group));
    OK(MPI_Win_post(group, 0, win));
    OK(MPI_Win_start(group, 0, win));
    OK(MPI_Accumulate(&value, 1, MPI_LONG, other, MPI_Aint_add(there, 8), 1, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    CHECK(here[1] == 0x0102030405060708L + other);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&world));
    OK(MPI_Win_detach(win, here));
    OK(MPI_Win_free(&win));
}

/* What leads out of the window only its owner can tell; the window stays good. */
static void mistakes(void)
{
    long *base, value = 5, seen = 0;
    int other = (rank + size / 2) % size, class;
    MPI_Win win = window(8 * sizeof *base, sizeof *base, &base);
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win));
    int put = MPI_Put(&value, 1, MPI_LONG, other, 8, 1, MPI_LONG, win);
    int ended = MPI_Win_unlock(other, win);
    CHECK(put != MPI_SUCCESS || ended != MPI_SUCCESS);
    MPI_Error_class(put != MPI_SUCCESS ? put : ended, &class);
    CHECK(class == MPI_ERR_RMA_RANGE);
    OK(MPI_Win_fence(0, win));
    put = MPI_Get(&seen, 1, MPI_LONG, other, 8, 1, MPI_LONG, win);
    ended = MPI_Win_fence(0, win);
    CHECK(put != MPI_SUCCESS || ended != MPI_SUCCESS);
    OK(MPI_Put(&value, 1, MPI_LONG, other, 7, 1, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    CHECK(base[7] == 5);
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int takes = 0;
    for (int t = 0; t < KINDS; t++) {
        moved(&kinds[t]);
        takes++;
    }
    computed();
    long_ones();
    others();
    mistakes();
    MPI_Finalize();
    if (rank == 0) printf("windows of %d datatypes are the same on both machines\n", takes);
    return 0;
}
