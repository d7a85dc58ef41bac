/* SPDX-License-Identifier: Apache-2.0 */
/* Erroneous calls that make windows, every call with what is no window, and operators that only windows take (MPI 5.0 chapter 12): each has
   the right class, and the sentence names the argument.
   ranks: 1 2 4 */
#include "window_calls.h"

static int rank, size, together;
static MPI_Group all, other;
static MPI_Info freed_info;
static MPI_Comm between;

/* Every function, with what is no window. */
static void no_window(MPI_Win what)
{
    struct arguments a;
    MPI_Aint bytes;
    MPI_Info info;
    MPI_Group group;
    MPI_Errhandler handler;
    int k, ended, unit, flag;
    char name[MPI_MAX_OBJECT_NAME];
    void *base;
#define NO(call, in) ERR(MPI_ERR_WIN, "win", call);
    win = what;
    CALLS(NO)
    CHECK(win == what);
    for (k = 0; k < OPERATIONS; k++) {
        a = right();
        request = MPI_REQUEST_NULL;
        verify(__LINE__, operations[k].name, operations[k].call(&a), MPI_ERR_WIN, "win");
        CHECK(win == what);
    }
    ERR(MPI_ERR_WIN, "win", MPI_Win_sync(win));
    ERR(MPI_ERR_WIN, "win", MPI_Win_attach(win, &value, 8));
    ERR(MPI_ERR_WIN, "win", MPI_Win_detach(win, &value));
    ERR(MPI_ERR_WIN, "win", MPI_Win_shared_query(win, 0, &bytes, &unit, &base));
    ERR(MPI_ERR_WIN, "win", MPI_Win_get_group(win, &group));
    ERR(MPI_ERR_WIN, "win", MPI_Win_set_info(win, MPI_INFO_NULL));
    ERR(MPI_ERR_WIN, "win", MPI_Win_get_info(win, &info));
    ERR(MPI_ERR_WIN, "win", MPI_Win_set_name(win, "x"));
    if (win != MPI_WIN_NULL)
        ERR(MPI_ERR_WIN, "win", MPI_Win_get_name(win, name, &unit));
    ERR(MPI_ERR_WIN, "win", MPI_Win_get_attr(win, MPI_WIN_SIZE, &base, &flag));
    ERR(MPI_ERR_WIN, "win", MPI_Win_get_errhandler(win, &handler));
    ERR(MPI_ERR_WIN, "win", MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    ERR(MPI_ERR_WIN, "win", MPI_Win_call_errhandler(win, MPI_ERR_OTHER));
}

/* --- making windows ------------------------------------------------------------------------------------------ */

static void making(void)
{
    static const char *const alignments[] = {"100", "8192"};
    MPI_Win made;
    MPI_Info info;
    char *base;
    unsigned i;
    MPI_Aint quarter = (MPI_Aint)1 << 61;
#define MADE(class, words, call) \
    do { \
        made = win; \
        ERR(class, words, call); \
        CHECK(made == MPI_WIN_NULL); \
    } while (0)
#define EVERY(class, words, size, unit, info, comm) \
    MADE(class, words, MPI_Win_create(&value, size, unit, info, comm, &made)); \
    MADE(class, words, MPI_Win_create_c(&value, size, unit, info, comm, &made)); \
    MADE(class, words, MPI_Win_allocate(size, unit, info, comm, &base, &made)); \
    MADE(class, words, MPI_Win_allocate_c(size, unit, info, comm, &base, &made)); \
    if (together) { \
        MADE(class, words, MPI_Win_allocate_shared(size, unit, info, comm, &base, &made)); \
        MADE(class, words, MPI_Win_allocate_shared_c(size, unit, info, comm, &base, &made)); \
    }
    EVERY(MPI_ERR_SIZE, "size is -1", -1, 1, MPI_INFO_NULL, MPI_COMM_WORLD);
    EVERY(MPI_ERR_DISP, "disp_unit is 0", 8, 0, MPI_INFO_NULL, MPI_COMM_WORLD);
    EVERY(MPI_ERR_DISP, "disp_unit is -4", 8, -4, MPI_INFO_NULL, MPI_COMM_WORLD);
    EVERY(MPI_ERR_INFO, "info", 8, 1, freed_info, MPI_COMM_WORLD);
    EVERY(MPI_ERR_COMM, "comm", 8, 1, MPI_INFO_NULL, MPI_COMM_NULL);
    if (between != MPI_COMM_NULL) {
        EVERY(MPI_ERR_COMM, "comm", 8, 1, MPI_INFO_NULL, between);
        MADE(MPI_ERR_COMM, "comm", MPI_Win_create_dynamic(MPI_INFO_NULL, between, &made));
    }
    MADE(MPI_ERR_INFO, "info", MPI_Win_create_dynamic(freed_info, MPI_COMM_WORLD, &made));
    MADE(MPI_ERR_COMM, "comm", MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_NULL, &made));
    MADE(MPI_ERR_BASE, "base", MPI_Win_create(NULL, 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &made));
    MADE(MPI_ERR_BASE, "base is MPI_IN_PLACE", MPI_Win_create(MPI_IN_PLACE, 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &made));
    MADE(MPI_ERR_BASE, "base is 0x10", MPI_Win_create_c((void *)16, 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &made));
    for (i = 0; i < sizeof alignments / sizeof *alignments; i++) {
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", alignments[i]));
        MADE(MPI_ERR_INFO_VALUE, alignments[i], MPI_Win_allocate(8, 1, info, MPI_COMM_WORLD, &base, &made));
        OK(MPI_Info_free(&info));
    }
    ERR(MPI_ERR_ARG, "win", MPI_Win_create(&value, 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, NULL));
    ERR(MPI_ERR_ARG, "win", MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, NULL));
    ERR(MPI_ERR_ARG, "win", MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, NULL));
    ERR(MPI_ERR_ARG, "baseptr", MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, NULL, &made));
    ERR(MPI_ERR_ARG, "win", MPI_Win_free(NULL));
    /* More than there is, alone and in all. */
    MADE(MPI_ERR_NO_MEM, NULL, MPI_Win_allocate((MPI_Aint)1 << 52, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &made));
    ERR(-1, NULL, MPI_Win_allocate(4 * quarter - 1 + 4 * quarter, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &made));
    /* A unit that the function without _c cannot tell. */
    {
        MPI_Aint bytes, unit, large = (MPI_Aint)1 << 33;
        int narrow = -1;
        OK(MPI_Win_create_c(&value, sizeof value, large, MPI_INFO_NULL, MPI_COMM_SELF, &made));
        OK(MPI_Win_set_errhandler(made, MPI_ERRORS_RETURN));
        ERR(MPI_ERR_VALUE_TOO_LARGE, "disp_unit", MPI_Win_shared_query(made, 0, &bytes, &narrow, &base));
        CHECK(narrow == -1);
        OK(MPI_Win_shared_query_c(made, 0, &bytes, &unit, &base));
        CHECK(unit == large && bytes == sizeof value);
        OK(MPI_Win_free(&made));
    }
    /* A group with a process that the window has not. */
    if (size > 1) {
        OK(MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, MPI_COMM_SELF, &made));
        OK(MPI_Win_set_errhandler(made, MPI_ERRORS_RETURN));
        ERR(MPI_ERR_GROUP, "group", MPI_Win_start(other, 0, made));
        ERR(MPI_ERR_GROUP, "group", MPI_Win_post(other, 0, made));
        OK(MPI_Win_free(&made));
    }
}

/* Operators that only windows take. */
static void reductions(void)
{
    static const struct { MPI_Op op; const char *name; } ops[] = {{MPI_REPLACE, "MPI_REPLACE"}, {MPI_NO_OP, "MPI_NO_OP"}};
    long in = 1, out = 2;
    int one = 1;
    unsigned i;
    for (i = 0; i < 2; i++) {
        MPI_Op op = ops[i].op;
        MPI_Request r = MPI_REQUEST_NULL;
        ERR(MPI_ERR_OP, ops[i].name, MPI_Reduce(&in, &out, 1, MPI_LONG, op, 0, MPI_COMM_WORLD));
        ERR(MPI_ERR_OP, ops[i].name, MPI_Allreduce(&in, &out, 1, MPI_LONG, op, MPI_COMM_WORLD));
        ERR(MPI_ERR_OP, ops[i].name, MPI_Scan(&in, &out, 1, MPI_LONG, op, MPI_COMM_WORLD));
        ERR(MPI_ERR_OP, ops[i].name, MPI_Exscan(&in, &out, 1, MPI_LONG, op, MPI_COMM_WORLD));
        ERR(MPI_ERR_OP, ops[i].name, MPI_Reduce_scatter_block(&in, &out, 1, MPI_LONG, op, MPI_COMM_SELF));
        ERR(MPI_ERR_OP, ops[i].name, MPI_Reduce_scatter(&in, &out, &one, MPI_LONG, op, MPI_COMM_SELF));
        ERR(MPI_ERR_OP, ops[i].name, MPI_Iallreduce(&in, &out, 1, MPI_LONG, op, MPI_COMM_WORLD, &r));
        ERR(MPI_ERR_OP, ops[i].name, MPI_Allreduce_init(&in, &out, 1, MPI_LONG, op, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
        ERR(MPI_ERR_OP, ops[i].name, MPI_Reduce_local(&in, &out, 1, MPI_LONG, op));
        CHECK(in == 1 && out == 2 && r == MPI_REQUEST_NULL);
    }
}


int main(int argc, char **argv)
{
    MPI_Win freed;
    MPI_Info info;
    int next;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    together = are_together();
    next = (rank + 1) % size;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 1, &next, &other));
    OK(MPI_Info_create(&freed_info));
    info = freed_info;
    OK(MPI_Info_free(&info));
    between = MPI_COMM_NULL;
    if (size > 1) {
        MPI_Comm half;
        OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
        OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &between));
        OK(MPI_Comm_free(&half));
        OK(MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN));
    }
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    making();
    reductions();
    no_window(MPI_WIN_NULL);
    no_window((MPI_Win)MPI_COMM_WORLD);
    OK(MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    freed = win;
    OK(MPI_Win_free(&win));
    no_window(freed);
    OK(MPI_Finalize());
    return verdict(rank);
}
