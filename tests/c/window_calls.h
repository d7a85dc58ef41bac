/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on windows for the programs that make mistakes in them: all operations, with arguments of which one may be changed, and all calls that
   synchronise. */
#ifndef WINDOW_CALLS_H
#define WINDOW_CALLS_H

#include "erroneous.h"

static MPI_Win win;
/* Displacement 0 of the target, and who that is. */
static MPI_Aint first_place;
static int to;

/* --- operations ---------------------------------------------------------------------------------------------- */

/* Arguments of an operation; each test changes some. */
struct arguments {
    void *origin;
    MPI_Count n;
    MPI_Datatype type;
    void *result;
    MPI_Count results;
    MPI_Datatype result_type;
    void *compare;
    int rank;
    MPI_Aint disp;
    MPI_Count there;
    MPI_Datatype type_there;
    MPI_Op op;
};

/* What an operation has. */
enum { COUNTS = 1, RESULT = 2, OPERATOR = 4, REQUEST = 8, COMPARE = 16, READS = 32, LARGE = 64 };

static MPI_Request request;

#define ORIGIN(kind) a->origin, (kind)a->n, a->type
#define INTO(kind) a->result, (kind)a->results, a->result_type
#define THERE(kind) a->rank, a->disp, (kind)a->there, a->type_there

#define BOTH(X) \
    X(Put, COUNTS, ORIGIN(K), THERE(K), win) \
    X(Get, COUNTS | READS, ORIGIN(K), THERE(K), win) \
    X(Accumulate, COUNTS | OPERATOR, ORIGIN(K), THERE(K), a->op, win) \
    X(Get_accumulate, COUNTS | OPERATOR | RESULT, ORIGIN(K), INTO(K), THERE(K), a->op, win) \
    X(Rput, COUNTS | REQUEST, ORIGIN(K), THERE(K), win, &request) \
    X(Rget, COUNTS | READS | REQUEST, ORIGIN(K), THERE(K), win, &request) \
    X(Raccumulate, COUNTS | OPERATOR | REQUEST, ORIGIN(K), THERE(K), a->op, win, &request) \
    X(Rget_accumulate, COUNTS | OPERATOR | RESULT | REQUEST, ORIGIN(K), INTO(K), THERE(K), a->op, win, &request)

#define FUNCTION(name, has, ...) \
    static int call_##name(const struct arguments *a) { return MPI_##name(__VA_ARGS__); }
#define FUNCTION_C(name, has, ...) \
    static int call_##name##_c(const struct arguments *a) { return MPI_##name##_c(__VA_ARGS__); }
#define K int
BOTH(FUNCTION)
#undef K
#define K MPI_Count
BOTH(FUNCTION_C)
#undef K
static int call_Fetch_and_op(const struct arguments *a)
{
    return MPI_Fetch_and_op(a->origin, a->result, a->type, a->rank, a->disp, a->op, win);
}
static int call_Compare_and_swap(const struct arguments *a)
{
    return MPI_Compare_and_swap(a->origin, a->compare, a->result, a->type, a->rank, a->disp, win);
}

#define ROW(name, has, ...) {"MPI_" #name, call_##name, has},
#define ROW_C(name, has, ...) {"MPI_" #name "_c", call_##name##_c, (has) | LARGE},
static const struct operation {
    const char *name;
    int (*call)(const struct arguments *);
    int has;
} operations[] = {
    BOTH(ROW) BOTH(ROW_C){"MPI_Fetch_and_op", call_Fetch_and_op, RESULT | OPERATOR},
    {"MPI_Compare_and_swap", call_Compare_and_swap, RESULT | COMPARE},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static long value = 4711, old = 4712, expected = 4713;

__attribute__((unused)) static struct arguments right(void)
{
    struct arguments a = {&value, 1, MPI_LONG, &old, 1, MPI_LONG, &expected, to, first_place, 1, MPI_LONG, MPI_SUM};
    return a;
}

/* The last state is the one in which a window is exposed, and accesses nobody. */
enum { NOTHING, FENCED, USED, STARTED, LOCKED, ALL, EXPOSED, STATES };
#define IN(state) (1 << (state))

/* Calls, and the states in which they are right. Those of PSCW are with all processes. */
#define CALLS(X) \
    X(MPI_Win_fence(0, win), IN(NOTHING) | IN(FENCED) | IN(USED)) \
    X(MPI_Win_start(all, 0, win), IN(NOTHING) | IN(FENCED) | IN(EXPOSED)) \
    X(MPI_Win_complete(win), IN(STARTED)) \
    X(MPI_Win_post(all, 0, win), IN(NOTHING) | IN(FENCED) | IN(LOCKED) | IN(ALL)) \
    X(MPI_Win_wait(win), IN(STARTED) | IN(EXPOSED)) \
    X(MPI_Win_test(win, &ended), IN(STARTED) | IN(EXPOSED)) \
    X(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win), IN(NOTHING) | IN(FENCED) | IN(EXPOSED)) \
    X(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, MPI_MODE_NOCHECK, win), IN(NOTHING) | IN(FENCED) | IN(EXPOSED)) \
    X(MPI_Win_unlock(to, win), IN(LOCKED)) \
    X(MPI_Win_lock_all(0, win), IN(NOTHING) | IN(FENCED) | IN(EXPOSED)) \
    X(MPI_Win_unlock_all(win), IN(ALL)) \
    X(MPI_Win_flush(to, win), IN(LOCKED) | IN(ALL)) \
    X(MPI_Win_flush_local(to, win), IN(LOCKED) | IN(ALL)) \
    X(MPI_Win_flush_all(win), IN(LOCKED) | IN(ALL)) \
    X(MPI_Win_flush_local_all(win), IN(LOCKED) | IN(ALL)) \
    X(MPI_Win_free(&win), IN(NOTHING) | IN(FENCED))

#endif
