/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of every kind of memory, made and freed in random order, with random operations against a model of what each process has written
   at each other one. Memory of MPI_Alloc_mem, of malloc, of the window itself and memory attached in one or two pieces, which change between
   epochs, mix, and come back as another window's.
   usage: model SECONDS [SEED]   (the seed is printed) */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Each process has these places at each target for itself, so it knows what is there. Some operations on them are short, some long. */
static const int lengths[] = {8, 8, 64, 64, 256, 1000, 1000, 4096, 8192, 8208, 20000, 70000};
#define SLOTS ((int)(sizeof lengths / sizeof *lengths))
#define OPEN 400 /* operations before a flush, at most */
#define MOST 64  /* processes, at most */

enum { NOTHING, READ, WRITTEN, ADDED };
enum { LOCK_ALL, LOCK, FENCE, START, MODES };

struct operation {
    int target, slot, offset, length;
    char *memory, *expected; /* what a get has to find */
    MPI_Request request;
};

static int rank, size, column, starts[SLOTS], bad;
static uint64_t common, own; /* seeds: of what all do, and of what each does */
static char *model;          /* by target: what this process's places there contain */
static int *states;          /* by target and place: what was done since the last flush */
static struct operation all[OPEN];
static int opened;
static MPI_Win win;
static MPI_Aint *origins;
static MPI_Datatype sparse;
static unsigned long operations;

static unsigned next(uint64_t *seed, unsigned below)
{
    *seed ^= *seed << 13, *seed ^= *seed >> 7, *seed ^= *seed << 17;
    return (unsigned)(*seed >> 20) % below;
}
static unsigned any(unsigned below) { return next(&own, below); }

static char *known(int target, int slot) { return model + (size_t)target * (size_t)column + starts[slot]; }
static MPI_Aint place(int target, int slot) { return origins[target] + (MPI_Aint)rank * column + starts[slot]; }

/* What was done at this target (-1: at all) is over. */
static void over(int target)
{
    int left = 0;
    for (int i = 0; i < opened; i++) {
        struct operation *one = &all[i];
        if (target >= 0 && one->target != target) {
            all[left++] = *one;
            continue;
        }
        MPI_Wait(&one->request, MPI_STATUS_IGNORE);
        if (one->expected && memcmp(one->memory, one->expected, (size_t)one->length)) {
            bad++;
            printf("rank %d: %d bytes of place %d at rank %d are not what was there\n", rank, one->length, one->slot, target);
        }
        free(one->memory), free(one->expected);
    }
    opened = left;
    for (int i = 0; i < size; i++)
        if (target < 0 || target == i)
            memset(states + i * SLOTS, 0, SLOTS * sizeof *states);
}

static void fill(char *memory, int length)
{
    for (int i = 0; i < length; i++)
        memory[i] = (char)any(256);
}

/* Something at one of this process's places at the target; false: it would have to wait for what was done there. */
static int operate(int target, int requests)
{
    int slot = (int)any(SLOTS), what = (int)any(8), most = lengths[slot], *state = &states[target * SLOTS + slot];
    int wanted = what < 3 ? WRITTEN : what < 5 ? READ : ADDED, longs = 1 + (int)any((unsigned)most / 8), gaps = any(4) == 0;
    struct operation *one = &all[opened];
    char *there = known(target, slot);
    if (opened == OPEN || (*state != NOTHING && (*state != wanted || wanted == WRITTEN)))
        return 0;
    *state = wanted;
    *one = (struct operation){.target = target, .slot = slot, .request = MPI_REQUEST_NULL};
    one->offset = what < 5 && !gaps ? (int)any((unsigned)most) : 0;
    one->length = what < 5 && !gaps ? 1 + (int)any((unsigned)(most - one->offset)) : 8 * longs;
    if (gaps && what < 5)
        longs = (longs + 1) / 2, one->length = 8 * longs;
    one->memory = malloc((size_t)one->length);
    MPI_Aint at = place(target, slot) + one->offset;
    int count = gaps && what < 5 ? longs : one->length;
    MPI_Datatype here = gaps && what < 5 ? MPI_INT64_T : MPI_BYTE, type = gaps && what < 5 ? sparse : MPI_BYTE;
    requests = requests && any(5) == 0;
    if (wanted == WRITTEN) {
        fill(one->memory, one->length);
        if (requests)
            MPI_Rput(one->memory, count, here, target, at, count, type, win, &one->request);
        else
            MPI_Put(one->memory, count, here, target, at, count, type, win);
        for (int i = 0; i < one->length; i++)
            there[one->offset + (gaps ? i / 8 * 16 + i % 8 : i)] = one->memory[i];
    } else if (wanted == READ) {
        one->expected = malloc((size_t)one->length);
        for (int i = 0; i < one->length; i++)
            one->expected[i] = there[one->offset + (gaps ? i / 8 * 16 + i % 8 : i)];
        if (requests)
            MPI_Rget(one->memory, count, here, target, at, count, type, win, &one->request);
        else
            MPI_Get(one->memory, count, here, target, at, count, type, win);
    } else {
        char *given = malloc((size_t)one->length);
        int replaces = any(4) == 0;
        fill(given, one->length);
        if (what == 5) {
            free(one->memory), one->memory = given;
            MPI_Accumulate(given, longs, MPI_INT64_T, target, at, longs, MPI_INT64_T, replaces ? MPI_REPLACE : MPI_SUM, win);
        } else {
            one->expected = malloc((size_t)one->length);
            memcpy(one->expected, there, (size_t)one->length);
            MPI_Get_accumulate(given, longs, MPI_INT64_T, one->memory, longs, MPI_INT64_T, target, at, longs, MPI_INT64_T,
                               replaces ? MPI_REPLACE : MPI_SUM, win);
        }
        for (int i = 0; i < longs; i++) {
            uint64_t before, with;
            memcpy(&before, there + 8 * i, 8), memcpy(&with, given + 8 * i, 8);
            with += replaces ? 0 : before;
            memcpy(there + 8 * i, &with, 8);
        }
        if (what != 5) {
            /* It is read until the flush: another operation of no length keeps it. */
            opened++;
            all[opened] = (struct operation){.target = target, .slot = slot, .memory = given, .request = MPI_REQUEST_NULL};
        }
    }
    opened++;
    operations++;
    return 1;
}

/* Random operations at one target, or at all. */
static void row(int target, int flushes)
{
    for (int left = (int)any(120); left > 0; left--) {
        int at = target < 0 ? (int)any((unsigned)size) : target;
        if (opened < OPEN - 1 && operate(at, flushes))
            continue;
        if (!flushes)
            continue;
        if (any(3)) {
            MPI_Win_flush(at, win);
            over(at);
        } else {
            MPI_Win_flush_all(win);
            over(-1);
        }
    }
}

static void phase(int mode, MPI_Group everybody)
{
    switch (mode) {
    case LOCK_ALL:
        MPI_Win_lock_all(any(2) ? MPI_MODE_NOCHECK : 0, win);
        row(-1, 1);
        MPI_Win_unlock_all(win);
        over(-1);
        break;
    case LOCK:
        for (int i = 0; i < size; i++) {
            int target = (rank + i) % size;
            MPI_Win_lock(any(2) ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, win);
            row(target, 1);
            MPI_Win_unlock(target, win);
            over(target);
        }
        break;
    case FENCE:
        MPI_Win_fence(0, win);
        for (int fences = 1 + (int)next(&common, 4); fences > 0; fences--) {
            row(-1, 0);
            MPI_Win_fence(fences == 1 ? MPI_MODE_NOSUCCEED : 0, win);
            over(-1);
        }
        break;
    default:
        MPI_Win_post(everybody, 0, win);
        MPI_Win_start(everybody, 0, win);
        row(-1, 0);
        MPI_Win_complete(win);
        over(-1);
        MPI_Win_wait(win);
    }
}

static uint64_t weighed(const char *bytes, int length)
{
    uint64_t sum = 0;
    for (int i = 0; i < length; i++)
        sum += (uint64_t)(unsigned char)bytes[i] * (uint64_t)(2 * i + 1);
    return sum;
}

/* Owners look at their memory, and hear from the others what should be there. */
static void judge(const char *base)
{
    for (int target = 0; target < size; target++) {
        uint64_t sum = weighed(model + (size_t)target * (size_t)column, column), sums[MOST];
        MPI_Gather(&sum, 1, MPI_UINT64_T, sums, 1, MPI_UINT64_T, target, MPI_COMM_WORLD);
        for (int origin = 0; rank == target && origin < size; origin++)
            if (weighed(base + (size_t)origin * (size_t)column, column) != sums[origin])
                bad++, printf("rank %d: what rank %d has written is not here\n", rank, origin);
    }
}

/* Memory of a dynamic window, in two pieces, each with whole places; in one, if half is 0. */
static void attach(char *base, MPI_Aint half, MPI_Aint bytes)
{
    if (half)
        MPI_Win_attach(win, base, half);
    MPI_Win_attach(win, base + half, bytes - half);
}

static void detach(char *base, MPI_Aint half)
{
    if (half)
        MPI_Win_detach(win, base);
    MPI_Win_detach(win, base + half);
}

static void one_window(MPI_Group everybody)
{
    enum { BROUGHT, GIVEN, DYNAMIC };
    int flavor = (int)next(&common, 3), kind = (int)any(3), phases = 1 + (int)next(&common, 4);
    MPI_Aint bytes = (MPI_Aint)size * column, front = kind == 2 ? 8 * (1 + (MPI_Aint)any(700)) : 0, origin = 0, half = 0;
    char *piece = NULL, *base;
    if (flavor == BROUGHT) {
        MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    } else {
        if (kind == 0)
            piece = malloc((size_t)bytes);
        else
            MPI_Alloc_mem(front + bytes + (MPI_Aint)any(5000), MPI_INFO_NULL, &piece);
        base = piece + front;
        if (flavor == GIVEN) {
            MPI_Win_create(base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        } else {
            MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
            attach(base, half, bytes);
            MPI_Get_address(base, &origin);
        }
    }
    MPI_Allgather(&origin, 1, MPI_AINT, origins, 1, MPI_AINT, MPI_COMM_WORLD);
    memset(base, 0, (size_t)bytes);
    memset(model, 0, (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    for (; phases > 0; phases--) {
        phase((int)next(&common, MODES), everybody);
        MPI_Barrier(MPI_COMM_WORLD);
        if (flavor == DYNAMIC && any(2)) {
            detach(base, half);
            half = column * (MPI_Aint)any((unsigned)size);
            attach(base, half, bytes);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    judge(base);
    MPI_Win_unlock(rank, win);
    if (flavor == DYNAMIC)
        detach(base, half);
    MPI_Win_free(&win);
    if (flavor != BROUGHT && kind == 0)
        free(piece);
    else if (flavor != BROUGHT)
        MPI_Free_mem(piece);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 2, end;
    unsigned long windows = 0, sum;
    int more = 1, mistakes;
    char *kept[8] = {NULL};
    MPI_Group everybody;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > MOST) {
        fprintf(stderr, "%d processes are more than %d\n", size, MOST);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    common = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
    MPI_Bcast(&common, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("seed %llu\n", (unsigned long long)common);
    common = common * 0x9e3779b97f4a7c15u | 1;
    own = common * (uint64_t)(2 * rank + 3) | 1;
    for (int i = 0; i < SLOTS; i++)
        starts[i] = column, column += (lengths[i] + 8 + 7) / 8 * 8;
    model = malloc((size_t)size * (size_t)column);
    states = calloc((size_t)(size * SLOTS), sizeof *states);
    origins = malloc((size_t)size * sizeof *origins);
    /* Every other one of the longs at the target. */
    MPI_Type_create_resized(MPI_INT64_T, 0, 16, &sparse);
    MPI_Type_commit(&sparse);
    MPI_Comm_group(MPI_COMM_WORLD, &everybody);
    end = MPI_Wtime() + seconds;
    while (more) {
        one_window(everybody);
        windows++;
        /* Memory comes and goes between windows. */
        int which = (int)any(8);
        if (kept[which])
            MPI_Free_mem(kept[which]), kept[which] = NULL;
        else
            MPI_Alloc_mem((MPI_Aint)(1 + any(300000)), MPI_INFO_NULL, &kept[which]);
        more = MPI_Wtime() < end;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    for (int i = 0; i < 8; i++)
        if (kept[i])
            MPI_Free_mem(kept[i]);
    MPI_Type_free(&sparse);
    MPI_Group_free(&everybody);
    MPI_Reduce(&operations, &sum, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&bad, &mistakes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%lu windows of %d processes, %lu operations, %d mistakes\n", windows, size, sum, mistakes);
    MPI_Finalize();
    return mistakes != 0;
}
