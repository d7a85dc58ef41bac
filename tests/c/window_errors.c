/* SPDX-License-Identifier: Apache-2.0 */
/* Erroneous calls on windows (MPI 5.0 chapter 12), for each kind of window and each state of its epochs: each has the right class and a
   sentence that names the call, the window, the rank and what is wrong; nothing is overwritten, and the window can be used afterwards.
   ranks: 1 2 4 */
#include "window_calls.h"

enum { CELLS = 64, GUARD = 16 };
enum { CREATE, ALLOCATE, SHARED, DYNAMIC, WAYS };

static int rank, size, together, way;
/* The window's memory here, and that with what is around it. */
static long *memory, *around;
static MPI_Datatype uncommitted, freed_type, pair;
static MPI_Group all, freed_group;
static MPI_Op own_op;
static MPI_Info freed_info;

/* What `verify` does, and the sentence names the function, this process and the window. */
static void verify_on_window(int line, const char *call, int code, int class, const char *words)
{
    char text[MPI_MAX_ERROR_STRING], named[80];
    int length;
    verify(line, call, code, class, words);
    if (code == MPI_SUCCESS)
        return;
    OK(MPI_Error_string(code, text, &length));
    snprintf(named, sizeof named, "%.*s failed: rank %d, window \"faulty\": ", (int)strcspn(call, "("), call, rank);
    if (!strstr(text, named)) {
        fprintf(stderr, "line %d: %s does not say \"%s\": %s\n", line, call, named, text);
        wrong++;
    }
}

#define WRONG(class, words, call) verify_on_window(__LINE__, #call, (call), class, words)

static MPI_Aint cell(MPI_Aint index)
{
    return way == DYNAMIC ? MPI_Aint_add(first_place, index * (MPI_Aint)sizeof(long)) : index;
}

/* An operation that must fail with this class; `late`: where only the target knows, the request or the flush may say so. */
static void refused(int line, const struct operation *o, const struct arguments *a, int class, const char *words, int late)
{
    int code;
    request = (MPI_Request)MPI_COMM_WORLD;
    code = o->call(a);
    if (code == MPI_SUCCESS && late) {
        const char *later = "MPI_Wait";
        if (o->has & REQUEST)
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS) {
            later = "MPI_Win_flush";
            code = MPI_Win_flush(a->rank, win);
        }
        verify_on_window(line, later, code, class, words);
    } else {
        verify_on_window(line, o->name, code, class, words);
        if (code != MPI_SUCCESS && (o->has & REQUEST))
            CHECK(request == MPI_REQUEST_NULL);
    }
    CHECK(value == 4711 && old == 4712 && expected == 4713);
}

/* All operations that have these things, with one argument that is wrong. */
#define EACH(needs, lacks, late, class, words, change) \
    for (int k_ = 0; k_ < OPERATIONS; k_++) { \
        const struct operation *o = &operations[k_]; \
        struct arguments a = right(); \
        if ((o->has & (needs)) != (needs) || (o->has & (lacks))) \
            continue; \
        change; \
        refused(__LINE__, o, &a, class, words, late); \
    }

/* While all processes are locked: what is wrong with arguments. */
static void arguments(void)
{
    static const int ranks[] = {-7, MPI_ANY_SOURCE, MPI_ROOT, 1 << 30};
    MPI_Count huge = (MPI_Count)1 << 62;
    unsigned i;
    EACH(0, 0, 0, MPI_ERR_RANK, "target_rank", a.rank = size);
    for (i = 0; i < sizeof ranks / sizeof *ranks; i++)
        EACH(0, 0, 0, MPI_ERR_RANK, "target_rank", a.rank = ranks[i]);
    EACH(COUNTS, 0, 0, MPI_ERR_COUNT, "origin_count is -1", a.n = -1);
    EACH(COUNTS, 0, 0, MPI_ERR_COUNT, "target_count is -1", a.there = -1);
    EACH(COUNTS | RESULT, 0, 0, MPI_ERR_COUNT, "result_count is -2", a.results = -2);
    EACH(0, 0, 0, MPI_ERR_TYPE, "datatype", a.type = MPI_DATATYPE_NULL);
    EACH(0, 0, 0, MPI_ERR_TYPE, "datatype", a.type = uncommitted);
    EACH(0, 0, 0, MPI_ERR_TYPE, "datatype", a.type = freed_type);
    EACH(0, 0, 0, MPI_ERR_TYPE, "datatype", a.type = (MPI_Datatype)MPI_COMM_WORLD);
    EACH(COUNTS, 0, 0, MPI_ERR_TYPE, "target_datatype", a.type_there = MPI_DATATYPE_NULL);
    EACH(COUNTS, 0, 0, MPI_ERR_TYPE, "target_datatype", a.type_there = uncommitted);
    EACH(COUNTS, 0, 0, MPI_ERR_TYPE, "target_datatype", a.type_there = freed_type);
    EACH(COUNTS, 0, 0, MPI_ERR_TYPE, "target_datatype", (a.there = 0, a.type_there = uncommitted));
    EACH(COUNTS | RESULT, 0, 0, MPI_ERR_TYPE, "result_datatype", a.result_type = MPI_DATATYPE_NULL);
    EACH(COUNTS | RESULT, 0, 0, MPI_ERR_TYPE, "result_datatype", a.result_type = uncommitted);
    EACH(COUNTS | RESULT, 0, 0, MPI_ERR_TYPE, "result_datatype", a.result_type = freed_type);
    EACH(0, 0, 0, MPI_ERR_BUFFER, "origin_addr", a.origin = NULL);
    EACH(0, 0, 0, MPI_ERR_BUFFER, "origin_addr", a.origin = MPI_IN_PLACE);
    EACH(RESULT, 0, 0, MPI_ERR_BUFFER, "result_addr", a.result = NULL);
    EACH(COMPARE, 0, 0, MPI_ERR_BUFFER, "compare_addr", a.compare = NULL);
    /* Data that do not fit. */
    EACH(COUNTS, READS, 0, MPI_ERR_TRUNCATE, NULL, a.there = a.results = 0);
    EACH(COUNTS | READS, 0, 0, MPI_ERR_TRUNCATE, NULL, a.n = 0);
    EACH(COUNTS | RESULT, 0, 0, MPI_ERR_TRUNCATE, NULL, a.results = 0);
    /* Operators. */
    EACH(OPERATOR, 0, 0, MPI_ERR_OP, "op", a.op = MPI_OP_NULL);
    EACH(OPERATOR, 0, 0, MPI_ERR_OP, "op", a.op = own_op);
    EACH(OPERATOR, 0, 0, MPI_ERR_OP, "op", a.op = (MPI_Op)MPI_LONG);
    EACH(OPERATOR, 0, 0, MPI_ERR_OP, "op", a.op = MPI_MINLOC);
    EACH(OPERATOR, 0, 0, MPI_ERR_OP, "op", (a.type = a.type_there = a.result_type = MPI_DOUBLE, a.op = MPI_BAND));
    EACH(OPERATOR, RESULT, 0, MPI_ERR_OP, "MPI_NO_OP", a.op = MPI_NO_OP);
    EACH(OPERATOR, RESULT, 0, MPI_ERR_OP, "MPI_NO_OP", (a.n = a.there = 0, a.op = MPI_NO_OP));
    /* Types that the operators do not have. */
    EACH(OPERATOR | COUNTS, 0, 0, MPI_ERR_TYPE, "datatype", a.type_there = MPI_DOUBLE);
    EACH(OPERATOR | COUNTS | RESULT, 0, 0, MPI_ERR_TYPE, "result_datatype", a.result_type = MPI_DOUBLE);
    EACH(OPERATOR, 0, 0, MPI_ERR_TYPE, "datatype", a.type = a.type_there = a.result_type = pair);
    EACH(0, COUNTS, 0, MPI_ERR_TYPE, "datatype", a.type = pair);
    EACH(COMPARE, 0, 0, MPI_ERR_TYPE, "datatype", a.type = MPI_DOUBLE);
    EACH(COMPARE, 0, 0, MPI_ERR_TYPE, "datatype", a.type = MPI_LONG_INT);
    /* Places. */
    if (way != DYNAMIC) {
        EACH(0, 0, 0, MPI_ERR_DISP, "target_disp is -1", a.disp = -1);
        EACH(0, 0, 0, MPI_ERR_RMA_RANGE, "leads beyond all memory", a.disp = (MPI_Aint)1 << 62);
        EACH(0, 0, 0, MPI_ERR_RMA_RANGE, "leads beyond all memory", a.disp = 0x7fffffffffffffff);
    }
    EACH(0, 0, 1, MPI_ERR_RMA_RANGE, "rank", a.disp = cell(CELLS));
    /* Bytes that begin at the end of all addresses and go on at the first one. */
    if (way == DYNAMIC)
        EACH(0, 0, 1, MPI_ERR_RMA_RANGE, "has not attached all", a.disp = -(MPI_Aint)sizeof(long));
    EACH(0, 0, 1, MPI_ERR_RMA_RANGE, "rank", a.disp = cell((MPI_Aint)1 << 58));
    EACH(COUNTS, 0, 1, MPI_ERR_RMA_RANGE, "rank", (a.disp = cell(CELLS - 1), a.n = a.there = a.results = 2,
                                                 a.origin = a.result = around));
    /* More than there is of anything. Of a window's size only its target knows where memory is attached. */
    EACH(COUNTS | LARGE, 0, 0, -1, NULL, a.n = a.there = a.results = huge);
    if (way != DYNAMIC)
        EACH(COUNTS | LARGE, 0, 0, -1, NULL, a.n = a.there = a.results = huge / 8);
    EACH(COUNTS | LARGE, READS, 0, -1, NULL, a.there = huge);
}

/* MPI_PROC_NULL is right everywhere, and MPI_NO_OP reads nothing. */
static void nobody(void)
{
    int k;
    for (k = 0; k < OPERATIONS; k++) {
        struct arguments a = right();
        a.rank = MPI_PROC_NULL;
        a.disp = (MPI_Aint)1 << 62;
        request = MPI_REQUEST_NULL;
        OK(operations[k].call(&a));
        if (operations[k].has & REQUEST)
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    OK(MPI_Win_flush(MPI_PROC_NULL, win));
    OK(MPI_Win_flush_local(MPI_PROC_NULL, win));
    CHECK(value == 4711 && old == 4712 && expected == 4713);
}

/* --- synchronisation ----------------------------------------------------------------------------------------- */

static void synchronise(int state)
{
    struct arguments a;
    int k, ended;
#define TRY(call, in) \
    if (!((in) & IN(state))) \
        WRONG(MPI_ERR_RMA_SYNC, NULL, call);
    CALLS(TRY)
    for (k = 0; k < OPERATIONS; k++) {
        int takes_requests = state == LOCKED || state == ALL;
        a = right();
        request = MPI_REQUEST_NULL;
        if (state == NOTHING || state == EXPOSED || (!takes_requests && (operations[k].has & REQUEST)))
            refused(__LINE__, &operations[k], &a, MPI_ERR_RMA_SYNC, NULL, 0);
    }
    if (state == STARTED || state == EXPOSED)
        WRONG(MPI_ERR_ARG, "flag", MPI_Win_test(win, NULL));
    if (state == LOCKED && size > 1) {
        /* Others are not locked. */
        int next = (to + 1) % size;
        for (k = 0; k < OPERATIONS; k++) {
            a = right();
            a.rank = next;
            refused(__LINE__, &operations[k], &a, MPI_ERR_RMA_SYNC, "is not locked", 0);
        }
        WRONG(MPI_ERR_RMA_SYNC, "is not locked", MPI_Win_unlock(next, win));
        WRONG(MPI_ERR_RMA_SYNC, "is not locked", MPI_Win_flush(next, win));
        WRONG(MPI_ERR_RMA_SYNC, "is not locked", MPI_Win_flush_local(next, win));
    }
}

/* What is wrong in every state, and in all of them for another reason than its order. */
static void asserts_and_groups(void)
{
    WRONG(MPI_ERR_ASSERT, "assert", MPI_Win_fence(1 << 30, win));
    WRONG(MPI_ERR_ASSERT, "assert", MPI_Win_fence(-1, win));
    WRONG(MPI_ERR_ASSERT, "assert", MPI_Win_fence(MPI_MODE_NOCHECK, win));
    WRONG(MPI_ERR_ASSERT, "assert", MPI_Win_post(all, MPI_MODE_NOSUCCEED, win));
    WRONG(MPI_ERR_ASSERT, "assert", MPI_Win_start(all, MPI_MODE_NOPUT, win));
    WRONG(MPI_ERR_ASSERT, "assert", MPI_Win_lock(MPI_LOCK_SHARED, to, MPI_MODE_NOPUT, win));
    WRONG(MPI_ERR_ASSERT, "assert", MPI_Win_lock_all(MPI_MODE_NOSTORE, win));
    WRONG(MPI_ERR_LOCKTYPE, "lock_type", MPI_Win_lock(4711, to, 0, win));
    WRONG(MPI_ERR_RANK, "rank", MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win));
    WRONG(MPI_ERR_RANK, "rank", MPI_Win_lock(MPI_LOCK_SHARED, -5, 0, win));
    WRONG(MPI_ERR_RANK, "rank", MPI_Win_unlock(size, win));
    WRONG(MPI_ERR_RANK, "rank", MPI_Win_flush(size, win));
    WRONG(MPI_ERR_RANK, "rank", MPI_Win_flush_local(MPI_ANY_SOURCE, win));
    WRONG(MPI_ERR_GROUP, "group", MPI_Win_start(MPI_GROUP_NULL, 0, win));
    WRONG(MPI_ERR_GROUP, "group", MPI_Win_post(MPI_GROUP_NULL, 0, win));
    WRONG(MPI_ERR_GROUP, "group", MPI_Win_start(freed_group, 0, win));
    WRONG(MPI_ERR_GROUP, "group", MPI_Win_post(freed_group, 0, win));
}

static void enter(int state)
{
    static long got;
    switch (state) {
    case FENCED: OK(MPI_Win_fence(0, win)); break;
    case USED:
        OK(MPI_Win_fence(0, win));
        OK(MPI_Get(&got, 1, MPI_LONG, to, cell(0), 1, MPI_LONG, win));
        break;
    case STARTED:
        OK(MPI_Win_post(all, 0, win));
        OK(MPI_Win_start(all, 0, win));
        break;
    case LOCKED: OK(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win)); break;
    case ALL: OK(MPI_Win_lock_all(0, win)); break;
    case EXPOSED: OK(MPI_Win_post(all, 0, win)); break;
    }
}

static void leave(int state)
{
    switch (state) {
    case FENCED:
    case USED:
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
        break;
    case STARTED:
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
        break;
    case LOCKED: OK(MPI_Win_unlock(to, win)); break;
    case ALL: OK(MPI_Win_unlock_all(win)); break;
    case EXPOSED:
        OK(MPI_Win_start(all, 0, win));
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
        break;
    }
}

/* Between MPI_Win_start and MPI_Win_complete: only those of the group. */
static void outside_of_the_group(void)
{
    int k, next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Group access, exposure;
    OK(MPI_Group_incl(all, 1, &next, &access));
    OK(MPI_Group_incl(all, 1, &before, &exposure));
    OK(MPI_Win_post(exposure, 0, win));
    OK(MPI_Win_start(access, 0, win));
    for (k = 0; k < OPERATIONS && size > 1; k++) {
        struct arguments a = right();
        a.rank = rank;
        if (!(operations[k].has & REQUEST))
            refused(__LINE__, &operations[k], &a, MPI_ERR_RMA_SYNC, "not in the group", 0);
    }
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    OK(MPI_Group_free(&access));
    OK(MPI_Group_free(&exposure));
    /* With nobody: nothing to wait for. */
    OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
    OK(MPI_Win_start(MPI_GROUP_EMPTY, 0, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
}

/* A mistake that only the target can see is told by whatever ends the epoch; the others do not wait, and the data around stay. */
static void told_at_the_end(void)
{
    MPI_Aint beyond = cell(CELLS);
    int code = MPI_SUCCESS;
    if (way != DYNAMIC)
        return;
    OK(MPI_Win_fence(0, win));
    if (rank == 0)
        code = MPI_Put(&value, 1, MPI_LONG, to, beyond, 1, MPI_LONG, win);
    if (code == MPI_SUCCESS)
        code = MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    else
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    if (rank == 0)
        verify(__LINE__, "a fence", code, MPI_ERR_RMA_RANGE, "rank");
    else
        CHECK(code == MPI_SUCCESS);
    OK(MPI_Win_post(all, 0, win));
    OK(MPI_Win_start(all, 0, win));
    code = MPI_Accumulate(&value, 1, MPI_LONG, to, beyond, 1, MPI_LONG, MPI_SUM, win);
    if (code == MPI_SUCCESS)
        code = MPI_Win_complete(win);
    else
        OK(MPI_Win_complete(win));
    verify(__LINE__, "MPI_Win_complete", code, MPI_ERR_RMA_RANGE, "rank");
    OK(MPI_Win_wait(win));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win));
    code = MPI_Put(&value, 1, MPI_LONG, to, beyond, 1, MPI_LONG, win);
    if (code == MPI_SUCCESS)
        code = MPI_Win_unlock(to, win);
    else
        OK(MPI_Win_unlock(to, win));
    verify(__LINE__, "MPI_Win_unlock", code, MPI_ERR_RMA_RANGE, "rank");
}

/* The request of an operation that is not over is neither freed nor cancelled (section 12.3.5), and the window's error handler hears of it.
   The target is not reached by memory, and keeps its lock. */
static void kept_requests(void)
{
    long got = -1;
    if (together || way == DYNAMIC)
        return;
    if (rank == 0)
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == size - 1) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        OK(MPI_Rget(&got, 1, MPI_LONG, 0, 1, 1, MPI_LONG, win, &request));
        WRONG(MPI_ERR_REQUEST, "operation on a window", MPI_Request_free(&request));
        WRONG(MPI_ERR_REQUEST, "cancelled", MPI_Cancel(&request));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0)
        OK(MPI_Win_unlock(0, win));
    if (rank == size - 1) {
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(got == 1);
        OK(MPI_Win_unlock(0, win));
    }
}

/* Attaching, asking for memory, attributes. */
static void memory_of_it(void)
{
    MPI_Aint bytes;
    int unit, flag, key = MPI_KEYVAL_INVALID, length;
    void *base;
    char name[MPI_MAX_OBJECT_NAME];
    if (way == DYNAMIC) {
        WRONG(MPI_ERR_RMA_ATTACH, NULL, MPI_Win_attach(win, memory, sizeof(long)));
        WRONG(MPI_ERR_RMA_ATTACH, NULL, MPI_Win_attach(win, memory + CELLS - 1, 2 * sizeof(long)));
        WRONG(MPI_ERR_RMA_ATTACH, NULL, MPI_Win_attach(win, memory - 1, 2 * sizeof(long)));
        WRONG(MPI_ERR_RMA_ATTACH, NULL, MPI_Win_attach(win, memory - 1, (CELLS + 2) * sizeof(long)));
        WRONG(MPI_ERR_SIZE, "size", MPI_Win_attach(win, memory, -1));
        WRONG(MPI_ERR_BASE, "base", MPI_Win_attach(win, NULL, 8));
        WRONG(MPI_ERR_BASE, "base is MPI_IN_PLACE", MPI_Win_attach(win, MPI_IN_PLACE, 8));
        WRONG(MPI_ERR_BASE, "base is 0x10", MPI_Win_attach(win, (void *)16, 8));
        OK(MPI_Win_attach(win, NULL, 0));
        WRONG(MPI_ERR_RMA_ATTACH, NULL, MPI_Win_detach(win, memory + 1));
        WRONG(MPI_ERR_RMA_ATTACH, NULL, MPI_Win_detach(win, &value));
        OK(MPI_Win_attach(win, &value, sizeof value));
        OK(MPI_Win_detach(win, &value));
        WRONG(MPI_ERR_RMA_ATTACH, NULL, MPI_Win_detach(win, &value));
        WRONG(MPI_ERR_RMA_FLAVOR, "MPI_Win_create_dynamic", MPI_Win_shared_query(win, 0, &bytes, &unit, &base));
    } else {
        WRONG(MPI_ERR_RMA_FLAVOR, NULL, MPI_Win_attach(win, &value, sizeof value));
        WRONG(MPI_ERR_RMA_FLAVOR, NULL, MPI_Win_detach(win, &value));
        WRONG(MPI_ERR_RANK, "rank", MPI_Win_shared_query(win, size, &bytes, &unit, &base));
        WRONG(MPI_ERR_RANK, "rank", MPI_Win_shared_query(win, -9, &bytes, &unit, &base));
        WRONG(MPI_ERR_ARG, "size", MPI_Win_shared_query(win, 0, NULL, &unit, &base));
        WRONG(MPI_ERR_ARG, "disp_unit", MPI_Win_shared_query(win, 0, &bytes, NULL, &base));
        WRONG(MPI_ERR_ARG, "baseptr", MPI_Win_shared_query(win, 0, &bytes, &unit, NULL));
    }
    WRONG(MPI_ERR_KEYVAL, NULL, MPI_Win_get_attr(win, key, &base, &flag));
    WRONG(MPI_ERR_KEYVAL, NULL, MPI_Win_set_attr(win, MPI_WIN_SIZE, &bytes));
    WRONG(MPI_ERR_KEYVAL, NULL, MPI_Win_delete_attr(win, MPI_WIN_BASE));
    WRONG(MPI_ERR_ARG, "flag", MPI_Win_get_attr(win, MPI_WIN_SIZE, &base, NULL));
    WRONG(MPI_ERR_ARG, NULL, MPI_Win_set_name(win, NULL));
    WRONG(MPI_ERR_ARG, NULL, MPI_Win_get_name(win, NULL, &length));
    WRONG(MPI_ERR_ARG, NULL, MPI_Win_get_name(win, name, NULL));
    WRONG(MPI_ERR_ARG, "group", MPI_Win_get_group(win, NULL));
    WRONG(MPI_ERR_INFO, "info", MPI_Win_set_info(win, freed_info));
    WRONG(MPI_ERR_ARG, "info", MPI_Win_get_info(win, NULL));
    WRONG(MPI_ERR_ERRHANDLER, "errhandler", MPI_Win_set_errhandler(win, MPI_ERRHANDLER_NULL));
    WRONG(MPI_ERR_ARG, "errhandler", MPI_Win_get_errhandler(win, NULL));
}

static void own_function(void *in, void *out, int *n, MPI_Datatype *type) { (void)in, (void)out, (void)n, (void)type; }

static void make(void)
{
    MPI_Aint bytes = CELLS * sizeof(long), base = 0, *bases = malloc(size * sizeof *bases);
    int i;
    around = malloc((CELLS + 2 * GUARD) * sizeof(long));
    memory = around + GUARD;
    if (way == CREATE)
        OK(MPI_Win_create(memory, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    else if (way == ALLOCATE)
        OK(MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    else if (way == SHARED)
        OK(MPI_Win_allocate_shared(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    else {
        OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        OK(MPI_Win_attach(win, memory, bytes));
        OK(MPI_Get_address(memory, &base));
    }
    for (i = 0; i < CELLS + 2 * GUARD; i++)
        around[i] = -1 - i;
    for (i = 0; i < CELLS; i++)
        memory[i] = 1000 * rank + i;
    OK(MPI_Allgather(&base, 1, MPI_AINT, bases, 1, MPI_AINT, MPI_COMM_WORLD));
    first_place = bases[to];
    free(bases);
    OK(MPI_Win_set_name(win, "faulty"));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
}

/* Nothing has changed, and the window works. */
static void verify_memory(void)
{
    long got = -1, mine = 17;
    int i;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (i = 0; i < CELLS; i++)
        CHECK(memory[i] == 1000 * rank + i);
    for (i = 0; i < CELLS + 2 * GUARD; i++)
        CHECK(around[i] == -1 - i || (i >= GUARD && i < GUARD + CELLS));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&mine, 1, MPI_LONG, to, cell(3), 1, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    CHECK(memory[3] == 17);
    OK(MPI_Get(&got, 1, MPI_LONG, to, cell(5), 1, MPI_LONG, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(got == 1000 * to + 5);
}

static void handles(void)
{
    int lengths[2] = {1, 1}, none = (rank + 1) % size;
    MPI_Aint places[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_LONG, MPI_DOUBLE}, type;
    MPI_Group group;
    MPI_Info info;
    OK(MPI_Type_contiguous(1, MPI_LONG, &uncommitted));
    OK(MPI_Type_create_struct(2, lengths, places, types, &pair));
    OK(MPI_Type_commit(&pair));
    /* Last, so that no other has their handles. */
    OK(MPI_Type_contiguous(1, MPI_LONG, &freed_type));
    type = freed_type;
    OK(MPI_Type_free(&type));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 1, &none, &freed_group));
    group = freed_group;
    OK(MPI_Group_free(&group));
    OK(MPI_Info_create(&freed_info));
    info = freed_info;
    OK(MPI_Info_free(&info));
    OK(MPI_Op_create(own_function, 1, &own_op));
}

int main(int argc, char **argv)
{
    int state;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    together = are_together();
    to = (rank + 1) % size;
    handles();
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    for (way = CREATE; way < WAYS; way++) {
        if (way == SHARED && !together)
            continue;
        make();
        for (state = NOTHING; state < STATES; state++) {
            enter(state);
            synchronise(state);
            asserts_and_groups();
            memory_of_it();
            if (state == ALL)
                arguments();
            if (state != NOTHING && state != EXPOSED && state != USED)
                nobody();
            leave(state);
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
        outside_of_the_group();
        told_at_the_end();
        kept_requests();
        verify_memory();
        if (way == DYNAMIC)
            OK(MPI_Win_detach(win, memory));
        OK(MPI_Win_free(&win));
        free(around);
    }
    OK(MPI_Finalize());
    return verdict(rank);
}
