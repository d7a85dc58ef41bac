/* SPDX-License-Identifier: Apache-2.0 */
/* Every accumulate operation on every type, from all processes at once on the same cells of all processes, by memory, by copying and in
   messages, in epochs of all targets and of some of them: what is there in the end is exact. Meanwhile processes hold random locks of several
   targets of another window.   usage: stress SECONDS */
#include <complex.h>
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 4    /* elements of a case */
#define STRIDE 128 /* bytes of a case */
#define WINDOWS 3 /* of memory that they bring, of malloc, and of MPI_Alloc_mem at every second process */

enum { INTEGER, FLOAT, DOUBLE, LONG_DOUBLE, FLOAT_COMPLEX, DOUBLE_COMPLEX, LONG_COMPLEX, PAIR };

static const struct {
    const char *name;
    MPI_Datatype type;
    int kind;
} types[] = {
    {"int8_t", MPI_INT8_T, INTEGER}, {"int16_t", MPI_INT16_T, INTEGER}, {"int32_t", MPI_INT32_T, INTEGER},
    {"int64_t", MPI_INT64_T, INTEGER}, {"uint8_t", MPI_UINT8_T, INTEGER}, {"uint16_t", MPI_UINT16_T, INTEGER},
    {"uint32_t", MPI_UINT32_T, INTEGER}, {"uint64_t", MPI_UINT64_T, INTEGER}, {"char", MPI_SIGNED_CHAR, INTEGER},
    {"long", MPI_LONG, INTEGER}, {"Aint", MPI_AINT, INTEGER}, {"byte", MPI_BYTE, INTEGER}, {"bool", MPI_C_BOOL, INTEGER},
    {"float", MPI_FLOAT, FLOAT}, {"double", MPI_DOUBLE, DOUBLE}, {"long double", MPI_LONG_DOUBLE, LONG_DOUBLE},
    {"float complex", MPI_C_FLOAT_COMPLEX, FLOAT_COMPLEX}, {"double complex", MPI_C_DOUBLE_COMPLEX, DOUBLE_COMPLEX},
    {"long double complex", MPI_C_LONG_DOUBLE_COMPLEX, LONG_COMPLEX}, {"short_int", MPI_SHORT_INT, PAIR},
    {"2int", MPI_2INT, PAIR}, {"long_int", MPI_LONG_INT, PAIR}, {"float_int", MPI_FLOAT_INT, PAIR},
    {"double_int", MPI_DOUBLE_INT, PAIR}, {"long_double_int", MPI_LONG_DOUBLE_INT, PAIR},
};
static const struct {
    const char *name;
    MPI_Op op;
} ops[] = {
    {"sum", MPI_SUM}, {"prod", MPI_PROD}, {"min", MPI_MIN}, {"max", MPI_MAX}, {"land", MPI_LAND}, {"lor", MPI_LOR}, {"lxor", MPI_LXOR},
    {"band", MPI_BAND}, {"bor", MPI_BOR}, {"bxor", MPI_BXOR}, {"minloc", MPI_MINLOC}, {"maxloc", MPI_MAXLOC},
};
#define TYPES (sizeof types / sizeof *types)
#define OPS (sizeof ops / sizeof *ops)

static struct {
    unsigned type, op;
    int size;
    MPI_Datatype gaps; /* the first and the third element */
} cases[TYPES * OPS];
static int rank, size, count, bad;
static uint64_t seed;

static unsigned any(unsigned below)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (unsigned)(seed >> 20) % below;
}

/* A value with which every order of operations gives the same. */
static void value(int which, void *at)
{
    static const float complex units[] = {1, -1, I, -I};
    int prod = ops[cases[which].op].op == MPI_PROD, k = prod ? (int)any(2) * 2 - 1 : (int)any(5) - 2;
    memset(at, 0, STRIDE / MOST);
    switch (types[cases[which].type].kind) {
    case INTEGER: {
        int64_t number = prod ? (int64_t)any(64) * 2 + 1 : types[cases[which].type].type == MPI_C_BOOL ? any(2) : any(100);
        memcpy(at, &number, (size_t)cases[which].size);
        break;
    }
    case FLOAT: *(float *)at = (float)k; break;
    case DOUBLE: *(double *)at = k; break;
    case LONG_DOUBLE: *(long double *)at = k; break;
    case FLOAT_COMPLEX: *(float complex *)at = prod ? units[any(4)] : (float)k - (float)k * I; break;
    case DOUBLE_COMPLEX: *(double complex *)at = prod ? units[any(4)] : k - k * (double complex)I; break;
    case LONG_COMPLEX: *(long double complex *)at = prod ? units[any(4)] : k - k * (long double complex)I; break;
    default: {
        struct { short value; int at; } s = {(short)any(1000), (int)any(1000)};
        struct { long value; int at; } l = {s.value, s.at};
        struct { float value; int at; } f = {s.value, s.at};
        struct { double value; int at; } d = {s.value, s.at};
        struct { long double value; int at; } e = {s.value, s.at};
        int i[2] = {s.value, s.at};
        MPI_Datatype type = types[cases[which].type].type;
        const void *from = type == MPI_SHORT_INT ? (void *)&s : type == MPI_LONG_INT ? (void *)&l : type == MPI_FLOAT_INT ? (void *)&f
            : type == MPI_DOUBLE_INT ? (void *)&d : type == MPI_LONG_DOUBLE_INT ? (void *)&e : (void *)i;
        MPI_Aint low, extent;
        MPI_Type_get_extent(type, &low, &extent);
        memcpy(at, from, (size_t)extent);
    }
    }
}

static int equal(int which, const void *a, const void *b)
{
    char left[STRIDE], right[STRIDE];
    int at = 0;
    switch (types[cases[which].type].kind) {
    case FLOAT: return *(const float *)a == *(const float *)b;
    case DOUBLE: return *(const double *)a == *(const double *)b;
    case LONG_DOUBLE: return *(const long double *)a == *(const long double *)b;
    case FLOAT_COMPLEX: return *(const float complex *)a == *(const float complex *)b;
    case DOUBLE_COMPLEX: return *(const double complex *)a == *(const double complex *)b;
    case LONG_COMPLEX: return *(const long double complex *)a == *(const long double complex *)b;
    default: /* without padding */
        memset(left, 0, sizeof left), memset(right, 0, sizeof right);
        MPI_Pack(a, 1, types[cases[which].type].type, left, sizeof left, &at, MPI_COMM_SELF);
        if (types[cases[which].type].type == MPI_LONG_DOUBLE_INT)
            memset(left + 10, 0, 6);
        at = 0;
        MPI_Pack(b, 1, types[cases[which].type].type, right, sizeof right, &at, MPI_COMM_SELF);
        if (types[cases[which].type].type == MPI_LONG_DOUBLE_INT)
            memset(right + 10, 0, 6);
        return memcmp(left, right, sizeof left) == 0;
    }
}

/* All pairs of a type and an operation that there are. */
static void find_cases(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (unsigned t = 0; t < TYPES; t++)
        for (unsigned o = 0; o < OPS; o++) {
            char a[STRIDE] = {0}, b[STRIDE] = {0};
            MPI_Aint low, extent;
            if (MPI_Reduce_local(a, b, 1, types[t].type, ops[o].op) != MPI_SUCCESS)
                continue;
            MPI_Type_get_extent(types[t].type, &low, &extent);
            cases[count].type = t, cases[count].op = o, cases[count].size = (int)extent;
            MPI_Type_vector(2, 1, 2, types[t].type, &cases[count].gaps);
            MPI_Type_commit(&cases[count].gaps);
            count++;
        }
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* Cells of their own behind the cases: tickets, a chain of values, a counter that three kinds of calls raise, two halves that belong together. */
struct special {
    int64_t ticket, chain, counter, unused;
    double complex halves;
};
struct sums {
    uint64_t tickets, taken, squares, given, found, raised;
};

static MPI_Win wins[WINDOWS];
static char *base[WINDOWS];
static char *mine; /* what this process gave: window, target, case */
static struct sums *sums;
/* Bits of the targets that are locked; all: by MPI_Win_lock_all. */
static unsigned reached[WINDOWS];
/* A window whose locks are exclusive, or not: a number at each process that is read and written, and how often this process has raised that of each. */
static MPI_Win guards;
static int64_t *number, *raises;

static char *given(int win, int target, int which) { return mine + ((size_t)(win * size + target) * (size_t)count + (size_t)which) * STRIDE; }

static void on_case(int win, int target)
{
    int which = (int)any((unsigned)count), n = 1 + (int)any(MOST), first = (int)any((unsigned)(MOST - n + 1)), k, gaps = any(5) == 0;
    char data[STRIDE] __attribute__((aligned(16))), before[STRIDE] __attribute__((aligned(16)));
    MPI_Datatype type = types[cases[which].type].type;
    MPI_Op op = ops[cases[which].op].op;
    MPI_Aint disp;
    MPI_Request request = MPI_REQUEST_NULL;
    int form = (int)any(6), there = 1;
    MPI_Datatype target_type;
    if (form == 2)
        n = 1, gaps = 0;
    if (gaps)
        n = 2, first = (int)any(2);
    disp = which * STRIDE + first * cases[which].size;
    for (k = 0; k < n; k++)
        value(which, data + k * cases[which].size);
    if (form == 5) {
        MPI_Get_accumulate(NULL, 0, type, before, n, type, target, disp, gaps ? 1 : n, gaps ? cases[which].gaps : type, MPI_NO_OP, wins[win]);
        MPI_Win_flush(target, wins[win]);
        return;
    }
    there = gaps ? 1 : n, target_type = gaps ? cases[which].gaps : type;
    switch (form) {
    case 0: MPI_Accumulate(data, n, type, target, disp, there, target_type, op, wins[win]); break;
    case 1: MPI_Get_accumulate(data, n, type, before, n, type, target, disp, there, target_type, op, wins[win]); break;
    case 2: MPI_Fetch_and_op(data, before, type, target, disp, op, wins[win]); break;
    case 3: MPI_Raccumulate(data, n, type, target, disp, there, target_type, op, wins[win], &request); break;
    default: MPI_Rget_accumulate(data, n, type, before, n, type, target, disp, there, target_type, op, wins[win], &request); break;
    }
    for (k = 0; k < n; k++)
        MPI_Reduce_local(data + k * cases[which].size, given(win, target, which) + (first + k * (gaps ? 2 : 1)) * cases[which].size, 1, type, op);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_flush_local(target, wins[win]);
}

static void on_special(int win, int target)
{
    MPI_Aint at = (MPI_Aint)count * STRIDE;
    struct sums *sum = &sums[win * size + target];
    static uint64_t unique;
    int64_t one = 1, before = -1, next, found;
    double complex halves, half = any(9) - 3.0;
    switch (any(6)) {
    case 0:
        MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, at + (MPI_Aint)offsetof(struct special, ticket), MPI_SUM, wins[win]);
        MPI_Win_flush(target, wins[win]);
        sum->tickets++, sum->taken += (uint64_t)before, sum->squares += (uint64_t)before * (uint64_t)before;
        break;
    case 1:
        next = (int64_t)((uint64_t)(rank + 1) << 40 | ++unique);
        MPI_Fetch_and_op(&next, &before, MPI_INT64_T, target, at + (MPI_Aint)offsetof(struct special, chain), MPI_REPLACE, wins[win]);
        MPI_Win_flush(target, wins[win]);
        sum->given += (uint64_t)next, sum->found += (uint64_t)before;
        break;
    case 2:
        MPI_Accumulate(&one, 1, MPI_INT64_T, target, at + (MPI_Aint)offsetof(struct special, counter), 1, MPI_INT64_T, MPI_SUM, wins[win]);
        MPI_Win_flush_local(target, wins[win]);
        sum->raised++;
        break;
    case 3:
        MPI_Fetch_and_op(NULL, &before, MPI_INT64_T, target, at + (MPI_Aint)offsetof(struct special, counter), MPI_NO_OP, wins[win]);
        MPI_Win_flush(target, wins[win]);
        next = before + 1;
        MPI_Compare_and_swap(&next, &before, &found, MPI_INT64_T, target, at + (MPI_Aint)offsetof(struct special, counter), wins[win]);
        MPI_Win_flush(target, wins[win]);
        sum->raised += found == before;
        break;
    case 4:
        half -= half * (double complex)I;
        MPI_Accumulate(&half, 1, MPI_C_DOUBLE_COMPLEX, target, at + (MPI_Aint)offsetof(struct special, halves), 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM, wins[win]);
        MPI_Win_flush_local(target, wins[win]);
        break;
    default:
        MPI_Get_accumulate(NULL, 0, MPI_C_DOUBLE_COMPLEX, &halves, 1, MPI_C_DOUBLE_COMPLEX, target, at + (MPI_Aint)offsetof(struct special, halves), 1, MPI_C_DOUBLE_COMPLEX, MPI_NO_OP, wins[win]);
        MPI_Win_flush(target, wins[win]);
        if (creal(halves) != -cimag(halves))
            bad++, printf("rank %d: read %g + %g i at rank %d, two halves of different values\n", rank, creal(halves), cimag(halves), target);
    }
}

static void judge(int win, int target)
{
    char sum[STRIDE] __attribute__((aligned(16)));
    struct sums all;
    int which, k;
    for (which = 0; which < count; which++) {
        memset(sum, 0, sizeof sum);
        MPI_Reduce(given(win, target, which), sum, MOST, types[cases[which].type].type, ops[cases[which].op].op, target, MPI_COMM_WORLD);
        for (k = 0; rank == target && k < MOST; k++)
            if (!equal(which, sum + k * cases[which].size, base[win] + which * STRIDE + k * cases[which].size))
                bad++, printf("rank %d: window %d: %s of %s, element %d is wrong\n", rank, win, ops[cases[which].op].name, types[cases[which].type].name, k);
    }
    MPI_Reduce(&sums[win * size + target], &all, sizeof all / 8, MPI_UINT64_T, MPI_SUM, target, MPI_COMM_WORLD);
    if (rank == target) {
        struct special *special = (struct special *)(base[win] + count * STRIDE);
        uint64_t n = all.tickets;
        unsigned __int128 squares = n ? (unsigned __int128)(n - 1) * n * (2 * n - 1) / 6 : 0;
        if ((uint64_t)special->ticket != n || all.taken != (n ? n * (n - 1) / 2 : 0) || all.squares != (uint64_t)squares)
            bad++, printf("rank %d: window %d: tickets were given twice or not at all\n", rank, win);
        if (all.found + (uint64_t)special->chain != all.given)
            bad++, printf("rank %d: window %d: a value that was replaced is lost\n", rank, win);
        if ((uint64_t)special->counter != all.raised)
            bad++, printf("rank %d: window %d: a counter is %lld, raised %llu times\n", rank, win, (long long)special->counter, (unsigned long long)all.raised);
        if (creal(special->halves) != -cimag(special->halves))
            bad++, printf("rank %d: window %d: two halves of different values\n", rank, win);
    }
}

static unsigned everybody(void) { return (1u << size) - 1; }

static void open_epoch(int win)
{
    reached[win] = any(2) ? everybody() : 1 + any(everybody());
    if (reached[win] == everybody() && any(2)) {
        MPI_Win_lock_all(0, wins[win]);
        return;
    }
    reached[win] |= 1u << 31;
    for (int target = 0; target < size; target++)
        if (reached[win] >> target & 1)
            MPI_Win_lock(MPI_LOCK_SHARED, target, 0, wins[win]);
}

static void close_epoch(int win)
{
    if (!(reached[win] >> 31))
        MPI_Win_unlock_all(wins[win]);
    for (int target = 0; reached[win] >> 31 && target < size; target++)
        if (reached[win] >> target & 1)
            MPI_Win_unlock(target, wins[win]);
}

static void on_cells(void)
{
    int win = (int)any(WINDOWS), target = (int)any((unsigned)size);
    if (!(reached[win] >> target & 1))
        return;
    if (any(4) == 0)
        on_special(win, target);
    else
        on_case(win, target);
    if (any(100) == 0)
        close_epoch(win), open_epoch(win);
}

/* Locks of several targets, in the order of their ranks, and operations on cells while they are held. Numbers under exclusive locks are raised. */
static void with_locks(void)
{
    unsigned set = 1 + any(everybody());
    int alone = any(3) > 0, target;
    int64_t all[32];
    for (target = 0; target < size; target++)
        if (set >> target & 1) {
            MPI_Win_lock(alone ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, guards);
            if (any(4) == 0)
                on_cells();
        }
    for (target = 0; target < size; target++)
        if (set >> target & 1)
            MPI_Get(&all[target], 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, guards);
    MPI_Win_flush_local_all(guards);
    for (int i = (int)any(4); i > 0; i--)
        on_cells();
    for (target = 0; alone && target < size; target++)
        if (set >> target & 1) {
            all[target]++, raises[target]++;
            MPI_Put(&all[target], 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, guards);
        }
    if (any(2))
        MPI_Win_flush_all(guards);
    for (target = size - 1; target >= 0; target--)
        if (set >> target & 1)
            MPI_Win_unlock(target, guards);
}

/* All cells begin with what their owner gave first; the others give something to each. */
static void begin(int win)
{
    char first[STRIDE] __attribute__((aligned(16)));
    memset(base[win] + count * STRIDE, 0, sizeof(struct special));
    for (int target = 0; target < size; target++)
        for (int which = 0; which < count; which++) {
            for (int k = 0; k < MOST; k++)
                value(which, given(win, target, which) + k * cases[which].size);
            if (target == rank)
                memcpy(base[win] + which * STRIDE, given(win, target, which), (size_t)(MOST * cases[which].size));
        }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, wins[win]);
    for (int target = 0; target < size; target++)
        for (int which = 0; target != rank && which < count; which++) {
            memcpy(first, given(win, target, which), STRIDE);
            MPI_Accumulate(first, MOST, types[cases[which].type].type, target, which * STRIDE, MOST, types[cases[which].type].type, ops[cases[which].op].op, wins[win]);
            MPI_Win_flush_local(target, wins[win]);
        }
    MPI_Win_unlock_all(wins[win]);
    open_epoch(win);
}

int main(int argc, char **argv)
{
    double end, seconds = argc > 1 ? atof(argv[1]) : 2;
    unsigned long operations = 0, all;
    int win, target, sum;
    MPI_Aint bytes;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    seed = 0x9e3779b97f4a7c15u * (uint64_t)(rank + 1);
    if (size > 20) {
        fprintf(stderr, "at most 20 processes\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    find_cases();
    bytes = (MPI_Aint)count * STRIDE + (MPI_Aint)sizeof(struct special);
    mine = calloc((size_t)(WINDOWS * size * count), STRIDE);
    sums = calloc((size_t)(WINDOWS * size), sizeof *sums);
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base[0], &wins[0]);
    base[1] = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
    MPI_Win_create(base[1], bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[1]);
    if (rank % 2)
        base[2] = malloc((size_t)bytes);
    else
        MPI_Alloc_mem(bytes, MPI_INFO_NULL, &base[2]);
    MPI_Win_create(base[2], bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[2]);
    for (win = 0; win < WINDOWS; win++)
        begin(win);
    MPI_Win_allocate(sizeof *number, sizeof *number, MPI_INFO_NULL, MPI_COMM_WORLD, &number, &guards);
    raises = calloc((size_t)size, sizeof *raises);
    *number = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    end = MPI_Wtime() + seconds;
    while (MPI_Wtime() < end) {
        if (any(20) == 0)
            with_locks();
        else
            on_cells();
        operations++;
    }
    for (win = 0; win < WINDOWS; win++)
        close_epoch(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, guards);
    MPI_Allreduce(MPI_IN_PLACE, raises, size, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (*number != raises[rank])
        bad++, printf("rank %d: a number under locks is %lld, raised %lld times\n", rank, (long long)*number, (long long)raises[rank]);
    MPI_Win_unlock(rank, guards);
    MPI_Win_free(&guards);
    for (win = 0; win < WINDOWS; win++) {
        MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, wins[win]);
        for (target = 0; target < size; target++)
            judge(win, target);
        MPI_Win_unlock(rank, wins[win]);
        MPI_Win_free(&wins[win]);
    }
    MPI_Reduce(&operations, &all, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&bad, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%lu operations of %d processes on %d kinds of cells, %d mistakes\n", all, size, count, sum);
    MPI_Finalize();
    return sum != 0;
}
