/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on windows (MPI 5.0 section 12.3) with right values: every way to memory, derived datatypes on both sides,
   all operations and types, MPI_PROC_NULL, atomicity, ranges.
   ranks: 1 2 4 */
#include "check.h"

static int rank, size;

#define ERROR(call, expected) \
    do { \
        int class_, returned_ = (call); \
        OK(MPI_Error_class(returned_, &class_)); \
        CHECK(class_ == (expected)); \
    } while (0)

/* Another node may find the error: then the flush has it. */
#define LATE(call, expected) \
    do { \
        int code_ = (call); \
        ERROR(code_ != MPI_SUCCESS ? code_ : MPI_Win_flush(0, win), expected); \
    } while (0)

enum { CELLS = 4096 };

/* How the memory of a window comes about. */
enum { CREATE, ALLOCATE, SHARED, DYNAMIC, WAYS };

static MPI_Win make(int way, long **memory, MPI_Aint *bases)
{
    MPI_Win win;
    MPI_Aint bytes = CELLS * sizeof(long), base = 0;
    if (way == ALLOCATE) {
        OK(MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, memory, &win));
    } else if (way == SHARED) {
        OK(MPI_Win_allocate_shared(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, memory, &win));
    } else {
        *memory = malloc(bytes);
        if (way == CREATE) {
            OK(MPI_Win_create(*memory, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        } else {
            OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
            OK(MPI_Win_attach(win, *memory, bytes));
            OK(MPI_Get_address(*memory, &base));
        }
    }
    OK(MPI_Allgather(&base, 1, MPI_AINT, bases, 1, MPI_AINT, MPI_COMM_WORLD));
    memset(*memory, 0, bytes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    return win;
}

/* The displacement of a cell. */
static MPI_Aint cell(int way, const MPI_Aint *bases, int at, int index)
{
    return way == DYNAMIC ? MPI_Aint_add(bases[at], index * sizeof(long)) : index;
}

static void put_and_get(int way, MPI_Win win, long *memory, const MPI_Aint *bases)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size, i;
    long data[100], got[100], nine = 9;
    MPI_Datatype column, pairs;
    for (i = 0; i < 100; i++)
        data[i] = rank * 1000 + i;
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    OK(MPI_Put(data, 100, MPI_LONG, next, cell(way, bases, next, 7), 100, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    for (i = 0; i < 100; i++)
        CHECK(memory[7 + i] == before * 1000 + i);
    CHECK(memory[6] == 0 && memory[107] == 0);
    memset(got, 0xff, sizeof got);
    OK(MPI_Get(got, 100, MPI_LONG, next, cell(way, bases, next, 7), 100, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    for (i = 0; i < 100; i++)
        CHECK(got[i] == data[i]);
    /* Nothing is moved, and nothing has to be there. */
    OK(MPI_Put(NULL, 0, MPI_LONG, next, cell(way, bases, next, 7), 0, MPI_LONG, win));
    OK(MPI_Get(NULL, 0, MPI_LONG, next, cell(way, bases, next, CELLS), 0, MPI_LONG, win));
    OK(MPI_Accumulate(NULL, 0, MPI_LONG, next, cell(way, bases, next, 7), 0, MPI_LONG, MPI_SUM, win));
    /* Every third cell there, pairs with gaps here. */
    OK(MPI_Type_vector(20, 1, 3, MPI_LONG, &column));
    OK(MPI_Type_commit(&column));
    OK(MPI_Type_vector(10, 2, 5, MPI_LONG, &pairs));
    OK(MPI_Type_commit(&pairs));
    OK(MPI_Put(data, 1, pairs, next, cell(way, bases, next, 200), 1, column, win));
    OK(MPI_Type_free(&column));
    OK(MPI_Win_fence(0, win));
    for (i = 0; i < 20; i++) {
        CHECK(memory[200 + 3 * i] == before * 1000 + i / 2 * 5 + i % 2);
        CHECK(memory[201 + 3 * i] == 0);
    }
    OK(MPI_Type_vector(20, 1, 3, MPI_LONG, &column));
    OK(MPI_Type_commit(&column));
    memset(got, 0xff, sizeof got);
    OK(MPI_Get(got, 1, pairs, next, cell(way, bases, next, 200), 1, column, win));
    OK(MPI_Win_fence(0, win));
    for (i = 0; i < 50; i++)
        CHECK(got[i] == (i % 5 < 2 ? data[i] : -1));
    OK(MPI_Type_free(&column));
    OK(MPI_Type_free(&pairs));
    /* Nobody. */
    OK(MPI_Put(&nine, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win));
    OK(MPI_Get(&nine, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(nine == 9);
}

static void accumulate(int way, MPI_Win win, long *memory, const MPI_Aint *bases)
{
    int k, i, at = size - 1;
    long one = 1, old, seven = 7, got[50], add[50];
    OK(MPI_Barrier(MPI_COMM_WORLD));
    memset(memory, 0, CELLS * sizeof(long));
    OK(MPI_Win_fence(0, win));
    for (i = 0; i < 50; i++)
        add[i] = i + 1;
    for (k = 0; k < 20; k++)
        OK(MPI_Accumulate(add, 50, MPI_LONG, at, cell(way, bases, at, 10), 50, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    if (rank == at)
        for (i = 0; i < 50; i++)
            CHECK(memory[10 + i] == 20L * size * (i + 1));
    OK(MPI_Win_fence(0, win));
    /* All processes count in one cell: each sees each number once. */
    OK(MPI_Win_lock_all(0, win));
    for (k = 0; k < 100; k++) {
        OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, at, cell(way, bases, at, 0), MPI_SUM, win));
        OK(MPI_Win_flush(at, win));
        CHECK(old >= 0 && old < 100L * size);
        OK(MPI_Accumulate(&one, 1, MPI_LONG, at, cell(way, bases, at, 1 + (int)(old % 5)), 1, MPI_LONG, MPI_SUM, win));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_fence(0, win));
    if (rank == at) {
        CHECK(memory[0] == 100L * size);
        for (i = 1; i <= 5; i++)
            CHECK(memory[i] == 20L * size);
    }
    OK(MPI_Win_fence(0, win));
    /* Results are there after a flush. */
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, got, 50, MPI_LONG, at, cell(way, bases, at, 10), 50, MPI_LONG,
                          MPI_NO_OP, win));
    OK(MPI_Fetch_and_op(NULL, &old, MPI_LONG, at, cell(way, bases, at, 0), MPI_NO_OP, win));
    OK(MPI_Win_flush(at, win));
    for (i = 0; i < 50; i++)
        CHECK(got[i] == 20L * size * (i + 1));
    CHECK(old == 100L * size);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_lock_all(0, win));
    if (rank == 0) {
        OK(MPI_Get_accumulate(add, 50, MPI_LONG, got, 50, MPI_LONG, at, cell(way, bases, at, 10), 50, MPI_LONG,
                              MPI_REPLACE, win));
        OK(MPI_Win_flush(at, win));
        CHECK(got[49] == 1000L * size);
        OK(MPI_Compare_and_swap(&seven, &one, &old, MPI_LONG, at, cell(way, bases, at, 10), win));
        OK(MPI_Win_flush(at, win));
        CHECK(old == 1);
        OK(MPI_Compare_and_swap(&one, &one, &old, MPI_LONG, at, cell(way, bases, at, 10), win));
        OK(MPI_Win_flush(at, win));
        CHECK(old == 7);
        OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, at, cell(way, bases, at, 10), MPI_MAX, win));
        OK(MPI_Win_flush(at, win));
        CHECK(old == 7);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_fence(0, win));
    if (rank == at)
        CHECK(memory[10] == 7 && memory[11] == 2 && memory[59] == 50);
    OK(MPI_Accumulate(&one, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, MPI_SUM, win));
    old = 3;
    OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, MPI_PROC_NULL, 0, MPI_SUM, win));
    OK(MPI_Compare_and_swap(&one, &one, &old, MPI_LONG, MPI_PROC_NULL, 0, win));
    OK(MPI_Get_accumulate(&one, 1, MPI_LONG, &old, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, MPI_SUM, win));
    CHECK(old == 3);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

/* Pairs: the gap of an element stays as it was. */
static void gaps(int way, MPI_Win win, long *memory, const MPI_Aint *bases)
{
    struct { double value; int index; } pair, best[3];
    struct { short value; int index; } low;
    long double big = 1.5L, sum;
    int i, at = size - 1;
    memset(&memory[100], 0x5a, 100 * sizeof(long));
    if (rank == at) {
        double *value = (double *)&memory[100];
        for (i = 0; i < 3; i++) {
            value[2 * i] = -1;
            ((int *)&memory[100])[4 * i + 2] = -1;
        }
        *(short *)&memory[120] = 100;
        ((int *)&memory[120])[1] = 100;
        *(long double *)&memory[140] = 0;
    }
    OK(MPI_Win_fence(0, win));
    for (i = 0; i < 3; i++)
        best[i].value = rank + i, best[i].index = rank;
    OK(MPI_Accumulate(best, 3, MPI_DOUBLE_INT, at, cell(way, bases, at, 100), 3, MPI_DOUBLE_INT, MPI_MAXLOC, win));
    low.value = (short)(rank + 5), low.index = rank;
    OK(MPI_Accumulate(&low, 1, MPI_SHORT_INT, at, cell(way, bases, at, 120), 1, MPI_SHORT_INT, MPI_MINLOC, win));
    OK(MPI_Accumulate(&big, 1, MPI_LONG_DOUBLE, at, cell(way, bases, at, 140), 1, MPI_LONG_DOUBLE, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get(&pair, 1, MPI_DOUBLE_INT, at, cell(way, bases, at, 104), 1, MPI_DOUBLE_INT, win));
    OK(MPI_Fetch_and_op(NULL, &sum, MPI_LONG_DOUBLE, at, cell(way, bases, at, 140), MPI_NO_OP, win));
    OK(MPI_Win_fence(0, win));
    CHECK(pair.value == size + 1 && pair.index == size - 1);
    CHECK(sum == 1.5L * size);
    if (rank == at) {
        CHECK(((int *)&memory[100])[3] == 0x5a5a5a5a && ((int *)&memory[100])[7] == 0x5a5a5a5a);
        CHECK(*(short *)&memory[120] == 5 && ((short *)&memory[120])[1] == 0x5a5a && ((int *)&memory[120])[1] == 0);
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

/* Each operation on a type of each size, in a strided layout at the target. */
static void operations(int way, MPI_Win win, long *memory, const MPI_Aint *bases)
{
    static const struct { MPI_Op op; int one, other, result; } all[] = {
        {MPI_SUM, 12, 10, 22}, {MPI_PROD, 12, 10, 120}, {MPI_MIN, 12, 10, 10}, {MPI_MAX, 12, 10, 12},
        {MPI_BAND, 12, 10, 8}, {MPI_BOR, 12, 10, 14}, {MPI_BXOR, 12, 10, 6}, {MPI_LAND, 12, 0, 0},
        {MPI_LOR, 12, 0, 1}, {MPI_LXOR, 12, 10, 0}, {MPI_REPLACE, 12, 10, 10}};
    size_t k;
    int i;
    MPI_Datatype column;
    OK(MPI_Type_vector(3, 1, 4, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    for (k = 0; k < sizeof all / sizeof all[0]; k++) {
        int *cells = (int *)&memory[300], others[3], before[3];
        signed char byte = (signed char)all[k].other;
        for (i = 0; i < 12; i++)
            cells[i] = all[k].one;
        *(signed char *)&memory[320] = (signed char)all[k].one;
        OK(MPI_Win_fence(0, win));
        for (i = 0; i < 3; i++)
            others[i] = all[k].other;
        OK(MPI_Get_accumulate(others, 3, MPI_INT, before, 3, MPI_INT, rank, cell(way, bases, rank, 300), 1, column,
                              all[k].op, win));
        OK(MPI_Accumulate(&byte, 1, MPI_INT8_T, rank, cell(way, bases, rank, 320), 1, MPI_INT8_T, all[k].op, win));
        OK(MPI_Win_fence(0, win));
        for (i = 0; i < 12; i++)
            CHECK(cells[i] == (i % 4 == 0 && i < 12 ? all[k].result : all[k].one));
        CHECK(before[0] == all[k].one && before[2] == all[k].one);
        CHECK(*(signed char *)&memory[320] == (signed char)all[k].result);
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Type_free(&column));
}

static void locks(int way, MPI_Win win, long *memory, const MPI_Aint *bases)
{
    int k, at = 0;
    long value, all = -1;
    MPI_Request requests[2];
    OK(MPI_Barrier(MPI_COMM_WORLD));
    memory[500] = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* Not atomic: the lock must keep the others out. */
    for (k = 0; k < 50; k++) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, at, 0, win));
        OK(MPI_Get(&value, 1, MPI_LONG, at, cell(way, bases, at, 500), 1, MPI_LONG, win));
        OK(MPI_Win_flush(at, win));
        value++;
        OK(MPI_Put(&value, 1, MPI_LONG, at, cell(way, bases, at, 500), 1, MPI_LONG, win));
        OK(MPI_Win_unlock(at, win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    value = 1;
    OK(MPI_Rget(&all, 1, MPI_LONG, at, cell(way, bases, at, 500), 1, MPI_LONG, win, &requests[0]));
    OK(MPI_Raccumulate(&value, 1, MPI_LONG, at, cell(way, bases, at, 501), 1, MPI_LONG, MPI_SUM, win, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(all == 50L * size);
    OK(MPI_Rput(&value, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win, &requests[0]));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    OK(MPI_Win_flush_local(at, win));
    OK(MPI_Win_flush_all(win));
    OK(MPI_Win_flush_local_all(win));
    OK(MPI_Win_sync(win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL, 0, win));
    OK(MPI_Win_unlock(MPI_PROC_NULL, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void posts(int way, MPI_Win win, long *memory, const MPI_Aint *bases)
{
    int k, next = (rank + 1) % size, before = (rank + size - 1) % size, over;
    MPI_Group all, to, from;
    long value;
    OK(MPI_Win_get_group(win, &all));
    OK(MPI_Group_incl(all, 1, &next, &to));
    OK(MPI_Group_incl(all, 1, &before, &from));
    for (k = 0; k < 20; k++) {
        value = 100L * k + rank;
        OK(MPI_Win_post(from, 0, win));
        OK(MPI_Win_start(to, 0, win));
        OK(MPI_Put(&value, 1, MPI_LONG, next, cell(way, bases, next, 600), 1, MPI_LONG, win));
        OK(MPI_Win_complete(win));
        if (k % 2)
            OK(MPI_Win_wait(win));
        else
            do
                OK(MPI_Win_test(win, &over));
            while (!over);
        CHECK(memory[600] == 100L * k + before);
    }
    OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
    OK(MPI_Win_start(MPI_GROUP_EMPTY, 0, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&to));
    OK(MPI_Group_free(&from));
}

static void errors(int way, MPI_Win win, const MPI_Aint *bases)
{
    long value = 1, old;
    double number = 1;
    MPI_Request request;
    MPI_Aint end = cell(way, bases, 0, CELLS);
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    ERROR(MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win), MPI_ERR_RMA_SYNC);
    ERROR(MPI_Put(&value, 0, MPI_LONG, 0, 0, 0, MPI_LONG, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_lock_all(0, win));
    ERROR(MPI_Put(&value, 0, MPI_LONG, size, 0, 0, MPI_LONG, win), MPI_ERR_RANK);
    ERROR(MPI_Put(&value, 1, MPI_LONG, size, 0, 1, MPI_LONG, win), MPI_ERR_RANK);
    LATE(MPI_Put(&value, 1, MPI_LONG, 0, end, 1, MPI_LONG, win), MPI_ERR_RMA_RANGE);
    LATE(MPI_Get(&value, 1, MPI_LONG, 0, end, 1, MPI_LONG, win), MPI_ERR_RMA_RANGE);
    LATE(MPI_Put(&value, 1, MPI_LONG, 0, cell(way, bases, 0, CELLS - 1), 2, MPI_LONG, win), MPI_ERR_RMA_RANGE);
    OK(MPI_Put(&value, 1, MPI_LONG, 0, cell(way, bases, 0, CELLS - 1), 1, MPI_LONG, win));
    ERROR(MPI_Put(&value, 1, MPI_LONG, 0, cell(way, bases, 0, 0), 0, MPI_LONG, win), MPI_ERR_TRUNCATE);
    ERROR(MPI_Put(&value, -1, MPI_LONG, 0, 0, 1, MPI_LONG, win), MPI_ERR_COUNT);
    ERROR(MPI_Put(&value, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_LONG, win), MPI_ERR_TYPE);
    ERROR(MPI_Accumulate(&value, 1, MPI_LONG, 0, cell(way, bases, 0, 0), 1, MPI_DOUBLE, MPI_SUM, win), MPI_ERR_TYPE);
    ERROR(MPI_Accumulate(&number, 1, MPI_DOUBLE, 0, cell(way, bases, 0, 0), 1, MPI_DOUBLE, MPI_BAND, win), MPI_ERR_OP);
    ERROR(MPI_Accumulate(&value, 1, MPI_LONG, 0, cell(way, bases, 0, 0), 1, MPI_LONG, MPI_OP_NULL, win), MPI_ERR_OP);
    ERROR(MPI_Compare_and_swap(&number, &number, &number, MPI_DOUBLE, 0, cell(way, bases, 0, 0), win), MPI_ERR_TYPE);
    ERROR(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    ERROR(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
    if (way != DYNAMIC) {
        ERROR(MPI_Put(&value, 1, MPI_LONG, 0, -1, 1, MPI_LONG, win), MPI_ERR_DISP);
        ERROR(MPI_Win_attach(win, &value, sizeof value), MPI_ERR_RMA_FLAVOR);
    } else {
        ERROR(MPI_Win_detach(win, &value), MPI_ERR_RMA_ATTACH);
        ERROR(MPI_Win_shared_query(win, 0, &end, &way, &old), MPI_ERR_RMA_FLAVOR);
    }
    OK(MPI_Win_unlock_all(win));
    ERROR(MPI_Win_lock(4711, 0, 0, win), MPI_ERR_LOCKTYPE);
    ERROR(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win), MPI_ERR_RANK);
    ERROR(MPI_Win_fence(1 << 30, win), MPI_ERR_ASSERT);
    OK(MPI_Win_fence(0, win));
    ERROR(MPI_Rput(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win, &request), MPI_ERR_RMA_SYNC);
    CHECK(request == MPI_REQUEST_NULL);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

/* Pieces of memory that were attached one after the other and touch each other are one. */
static void touching(void)
{
    static long memory[300], got[300], ones[300];
    MPI_Aint *bases = malloc(size * sizeof *bases), base;
    MPI_Win win;
    int next = (rank + 1) % size, k;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    for (k = 0; k < 3; k++)
        OK(MPI_Win_attach(win, memory + 100 * k, 100 * sizeof *memory));
    OK(MPI_Get_address(memory, &base));
    OK(MPI_Allgather(&base, 1, MPI_AINT, bases, 1, MPI_AINT, MPI_COMM_WORLD));
    for (k = 0; k < 300; k++)
        ones[k] = 1 + k;
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Put(ones, 300, MPI_LONG, next, bases[next], 300, MPI_LONG, win));
    OK(MPI_Win_flush(next, win));
    OK(MPI_Accumulate(ones, 150, MPI_LONG, next, MPI_Aint_add(bases[next], 80 * sizeof *memory), 150, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_flush(next, win));
    OK(MPI_Get(got, 300, MPI_LONG, next, bases[next], 300, MPI_LONG, win));
    OK(MPI_Win_unlock_all(win));
    for (k = 0; k < 300; k++)
        CHECK(got[k] == 1 + k + (k >= 80 && k < 230 ? k - 79 : 0));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (k = 0; k < 3; k++)
        OK(MPI_Win_detach(win, memory + 100 * k));
    OK(MPI_Win_free(&win));
    free(bases);
}

/* What was there comes back, in the order of the calls, also where it is long: operations are done in pieces. */
static void long_fetches(int way, MPI_Win win, long *memory, const MPI_Aint *bases)
{
    enum { LONG = CELLS - 1 };
    static long given[LONG], before[3][LONG];
    int next = (rank + 1) % size, from = (rank + size - 1) % size, i;
    OK(MPI_Win_fence(0, win));
    for (i = 0; i < LONG; i++)
        memory[i] = i, given[i] = 10000L * rank + 2 * i;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    MPI_Aint at = cell(way, bases, next, 0);
    OK(MPI_Get_accumulate(given, LONG, MPI_LONG, before[0], LONG, MPI_LONG, next, at, LONG, MPI_LONG, MPI_SUM, win));
    OK(MPI_Get_accumulate(given, LONG, MPI_LONG, before[1], LONG, MPI_LONG, next, at, LONG, MPI_LONG, MPI_REPLACE, win));
    OK(MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, before[2], LONG, MPI_LONG, next, at, LONG, MPI_LONG, MPI_NO_OP, win));
    OK(MPI_Win_unlock(next, win));
    for (i = 0; i < LONG; i++)
        CHECK(before[0][i] == i && before[1][i] == i + given[i] && before[2][i] == given[i]);
    OK(MPI_Win_fence(0, win));
    for (i = 0; i < LONG; i++)
        CHECK(memory[i] == 10000L * from + 2 * i);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

int main(int argc, char **argv)
{
    int way, together;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    together = are_together();
    touching();
    for (way = 0; way < WAYS; way++) {
        /* Processes of several nodes share no memory. */
        if (way == SHARED && !together)
            continue;
        MPI_Aint *bases = malloc(size * sizeof *bases);
        long *memory;
        MPI_Win win = make(way, &memory, bases);
        put_and_get(way, win, memory, bases);
        accumulate(way, win, memory, bases);
        gaps(way, win, memory, bases);
        operations(way, win, memory, bases);
        locks(way, win, memory, bases);
        long_fetches(way, win, memory, bases);
        posts(way, win, memory, bases);
        errors(way, win, bases);
        if (way == DYNAMIC)
            OK(MPI_Win_detach(win, memory));
        OK(MPI_Win_free(&win));
        if (way == CREATE || way == DYNAMIC)
            free(memory);
        free(bases);
    }
    OK(MPI_Finalize());
    return 0;
}
