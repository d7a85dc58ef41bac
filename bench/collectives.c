/* SPDX-License-Identifier: Apache-2.0
 *
 * How long collective operations take from the moment at which all ranks begin until the last one is done.
 *
 *   collectives [-r REPETITIONS] [-p PLACES] TEST[@ROOT]:BYTES...
 *
 * For hosts that share one clock (an emulated network): every repetition begins at a time agreed beforehand. When a rank
 * began more than three milliseconds after it (a busy machine), the repetition is done once more, at most as often again
 * as asked for; all are reported. Before a test everybody does it once, and before the first of a job two repetitions are not
 * reported: until then agents and launchers still have something to do on the processors that ranks share.
 *
 * TEST: barrier bcast reduce allreduce gather gatherv scatter scatterv allgather allgatherv alltoall alltoallv alltoallw scan
 * exscan reduce_scatter reduce_scatter_block; with an i in front the nonblocking form and MPI_Wait; incast: every other rank
 * sends to the root with MPI_Send; bcast/SHAPE and reduce/SHAPE: a tree of trees.h, for which -p says where ranks are. It is checked
 * that they are there.
 *
 * BYTES: of the vector for bcast, reduce, allreduce, scan, exscan; of what one rank contributes (gather, allgather), gets
 * (scatter), keeps (reduce_scatter) or sends to each (alltoall). The v-forms take one, two and three times as much by rank.
 *
 * Rank 0 prints a line for each repetition, in microseconds after the agreed time when each rank began and was done:
 *   TIME TEST ROOT BYTES START,START,... END,END,...
 */
#include "fill.h"
#include "trees.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LATE_US = 3000 };

static int rank, size, repetitions = 5;
/* From the agreement on a start to the start, seconds, on rank 0; grows when it turns out too short. */
static double slack = 0.1;
/* How long the last repetition of this test took, seconds; known to rank 0. */
static double last;

/* What a rank saw of a repetition: microseconds after the agreed start; whether it heard of the start too late. */
struct seen {
    double begin, end, missed;
};

struct test {
    /* As on the command line; the operation without i and shape; the shape. */
    char label[64], op[64];
    const char *tree;
    int nonblocking, root, bytes;
    char *out, *in;
    int *counts, *places, *counts_in, *places_in;
    MPI_Datatype *types;
    struct tree shape;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_until(double at)
{
    struct timespec t;
    t.tv_sec = (time_t)at;
    t.tv_nsec = (long)((at - (double)t.tv_sec) * 1e9);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        ;
}

static void fail(const char *what, const char *name)
{
    if (rank == 0)
        fprintf(stderr, "collectives: %s: %s\n", what, name);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

/* One, two, three times as much by rank. */
static int uneven(int number, int unit)
{
    return unit * (1 + number % 3);
}

/* Counts and places of blocks, one for each rank; the bytes of all. */
static size_t lay_out(int *counts, int *places, int unit, int is_uneven)
{
    size_t at = 0;
    for (int i = 0; i < size; i++) {
        counts[i] = is_uneven ? uneven(i, unit) : unit;
        places[i] = (int)at;
        at += (size_t)counts[i];
    }
    return at;
}

#define START(blocking, nonblock, ...) (t->nonblocking ? nonblock(__VA_ARGS__, &request) : blocking(__VA_ARGS__))

/* Operations on blocks of bytes; 0 when it is none. */
static int blocks(const struct test *t)
{
    const char *op = t->op;
    MPI_Request request = MPI_REQUEST_NULL;
    const MPI_Comm all = MPI_COMM_WORLD;
    const MPI_Datatype byte = MPI_BYTE;
    int n = t->bytes, own = t->counts[rank], root = t->root;
    if (!strcmp(op, "gather"))
        START(MPI_Gather, MPI_Igather, t->out, n, byte, t->in, n, byte, root, all);
    else if (!strcmp(op, "gatherv"))
        START(MPI_Gatherv, MPI_Igatherv, t->out, own, byte, t->in, t->counts, t->places, byte, root, all);
    else if (!strcmp(op, "scatter"))
        START(MPI_Scatter, MPI_Iscatter, t->out, n, byte, t->in, n, byte, root, all);
    else if (!strcmp(op, "scatterv"))
        START(MPI_Scatterv, MPI_Iscatterv, t->out, t->counts, t->places, byte, t->in, own, byte, root, all);
    else if (!strcmp(op, "allgather"))
        START(MPI_Allgather, MPI_Iallgather, t->out, n, byte, t->in, n, byte, all);
    else if (!strcmp(op, "allgatherv"))
        START(MPI_Allgatherv, MPI_Iallgatherv, t->out, own, byte, t->in, t->counts, t->places, byte, all);
    else if (!strcmp(op, "alltoall"))
        START(MPI_Alltoall, MPI_Ialltoall, t->out, n, byte, t->in, n, byte, all);
    else if (!strcmp(op, "alltoallv"))
        START(MPI_Alltoallv, MPI_Ialltoallv, t->out, t->counts, t->places, byte, t->in, t->counts_in, t->places_in, byte, all);
    else if (!strcmp(op, "alltoallw"))
        START(MPI_Alltoallw, MPI_Ialltoallw, t->out, t->counts, t->places, t->types, t->in, t->counts_in, t->places_in, t->types, all);
    else
        return 0;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return 1;
}

/* Operations on vectors of doubles or bytes; 0 when it is none. */
static int vectors(const struct test *t)
{
    const char *op = t->op;
    MPI_Request request = MPI_REQUEST_NULL;
    const MPI_Comm all = MPI_COMM_WORLD;
    const MPI_Datatype real = MPI_DOUBLE;
    int n = t->bytes / 8;
    if (!strcmp(op, "barrier"))
        START(MPI_Barrier, MPI_Ibarrier, all);
    else if (!strcmp(op, "bcast"))
        START(MPI_Bcast, MPI_Ibcast, t->out, t->bytes, MPI_BYTE, t->root, all);
    else if (!strcmp(op, "reduce"))
        START(MPI_Reduce, MPI_Ireduce, t->out, t->in, n, real, MPI_SUM, t->root, all);
    else if (!strcmp(op, "allreduce"))
        START(MPI_Allreduce, MPI_Iallreduce, t->out, t->in, n, real, MPI_SUM, all);
    else if (!strcmp(op, "scan"))
        START(MPI_Scan, MPI_Iscan, t->out, t->in, n, real, MPI_SUM, all);
    else if (!strcmp(op, "exscan"))
        START(MPI_Exscan, MPI_Iexscan, t->out, t->in, n, real, MPI_SUM, all);
    else if (!strcmp(op, "reduce_scatter"))
        START(MPI_Reduce_scatter, MPI_Ireduce_scatter, t->out, t->in, t->counts_in, real, MPI_SUM, all);
    else if (!strcmp(op, "reduce_scatter_block"))
        START(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, t->out, t->in, n, real, MPI_SUM, all);
    else
        return 0;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return 1;
}

/* Everybody to one, message by message. */
static void incast(const struct test *t)
{
    if (rank != t->root) {
        MPI_Send(t->out, t->bytes, MPI_BYTE, t->root, 5, MPI_COMM_WORLD);
        return;
    }
    for (int i = 1; i < size; i++)
        MPI_Recv(t->in, t->bytes, MPI_BYTE, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Sums of doubles; `in` is room for what comes. */
static void tree_reduce(const struct tree *t, double *sum, double *in, int count)
{
    for (int i = t->count - 1; i >= 0; i--) {
        MPI_Recv(in, count, MPI_DOUBLE, t->child[i], TREE_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int k = 0; k < count; k++)
            sum[k] += in[k];
    }
    if (t->parent >= 0)
        MPI_Send(sum, count, MPI_DOUBLE, t->parent, TREE_TAG, MPI_COMM_WORLD);
}

static void run_once(struct test *t)
{
    if (t->tree && !strcmp(t->op, "bcast"))
        tree_bcast(&t->shape, t->out, t->bytes);
    else if (t->tree && !strcmp(t->op, "reduce"))
        tree_reduce(&t->shape, (double *)t->out, (double *)t->in, t->bytes / 8);
    else if (!strcmp(t->op, "incast"))
        incast(t);
    else if (t->tree || (!blocks(t) && !vectors(t)))
        fail("no such test", t->label);
}

/* One of the values of all ranks. */
static void show(const struct seen *all, int ends)
{
    for (int i = 0; i < size; i++)
        printf("%s%.0f", i ? "," : " ", ends ? all[i].end : all[i].begin);
}

/* A repetition, reported or not; says whether all ranks were in time. */
static int repeat(struct test *t, int reported)
{
    double agreed[] = {now() + slack, last};
    struct seen own, *all = NULL;
    int in_time = 1;
    MPI_Bcast(agreed, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    double start = agreed[0];
    own.missed = now() > start;
    sleep_until(start);
    own.begin = (now() - start) * 1e6;
    run_once(t);
    own.end = (now() - start) * 1e6;
    /* What the early ones have seen should not share a slow line with what the late ones wait for. */
    sleep_until(start + agreed[1]);
    if (rank == 0 && !(all = malloc((size_t)size * sizeof own)))
        fail("no memory", t->label);
    MPI_Gather(&own, 3, MPI_DOUBLE, all, 3, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        if (reported) {
            printf("TIME %s %d %d", t->label, t->root, t->bytes);
            show(all, 0);
            show(all, 1);
            printf("\n");
        }
        int missed = 0;
        last = 0;
        for (int i = 0; i < size; i++) {
            last = all[i].end > 1e6 * last ? all[i].end / 1e6 : last;
            in_time = in_time && all[i].begin < LATE_US;
            missed = missed || all[i].missed > 0;
        }
        if (missed && slack < 0.5)
            slack *= 1.5;
        free(all);
    }
    /* Rank 0 alone knows. */
    MPI_Bcast(&in_time, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return in_time;
}

static void measure(struct test *t)
{
    static int begun;
    int good = 0;
    last = 0;
    run_once(t); /* connections and choices */
    for (; begun < 2; begun++)
        repeat(t, 0);
    for (int left = 2 * repetitions; left > 0 && good < repetitions; left--)
        good += repeat(t, 1);
    fflush(stdout);
}

static void *take(size_t bytes, const char *name)
{
    void *room = malloc(bytes + 64);
    if (!room)
        fail("no memory", name);
    memset(room, 0, bytes + 64);
    return room;
}

static int has(const char *name, const char *part)
{
    return strstr(name, part) != NULL;
}

static void prepare(struct test *t)
{
    size_t line = (size_t)size * sizeof(int);
    int is_v = has(t->op, "gatherv") || has(t->op, "scatterv") || has(t->op, "alltoallv") || has(t->op, "alltoallw");
    t->counts = take(line, t->label);
    t->places = take(line, t->label);
    t->counts_in = take(line, t->label);
    t->places_in = take(line, t->label);
    t->types = take((size_t)size * sizeof *t->types, t->label);
    size_t all = lay_out(t->counts, t->places, t->bytes, is_v);
    for (int i = 0; i < size; i++) {
        t->types[i] = MPI_BYTE;
        /* Everybody sends me as much as my rank says; for a reduction: elements that rank i keeps. */
        t->counts_in[i] = has(t->op, "alltoall") ? (is_v ? uneven(rank, t->bytes) : t->bytes) : t->bytes / 8;
        t->places_in[i] = i * t->counts_in[i];
    }
    int one_vector = has(t->op, "bcast") || has(t->op, "scan") || has(t->op, "allreduce") || !strcmp(t->op, "reduce");
    size_t room = one_vector || t->tree || has(t->op, "barrier") ? (size_t)t->bytes : all;
    t->out = take(room, t->label);
    fill(t->out, room, rank);
    t->in = take(has(t->op, "alltoall") ? 3 * room : room, t->label);
}

static void release(struct test *t)
{
    void *rooms[] = {t->counts, t->places, t->counts_in, t->places_in, t->types, t->out, t->in};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        free(rooms[i]);
}

/* TEST[/SHAPE][@ROOT][:BYTES] */
static void run(char *text)
{
    struct test t = {0};
    char *colon = strchr(text, ':');
    if (colon)
        *colon = 0;
    t.bytes = colon ? atoi(colon + 1) : 0;
    char *at = strchr(text, '@');
    if (at)
        *at = 0;
    t.root = at ? atoi(at + 1) : 0;
    snprintf(t.label, sizeof t.label, "%s", text);
    t.nonblocking = text[0] == 'i' && strncmp(text, "incast", 6) != 0;
    snprintf(t.op, sizeof t.op, "%s", text + t.nonblocking);
    char *slash = strchr(t.op, '/');
    if (slash) {
        *slash = 0;
        t.tree = slash + 1;
    }
    if (t.root < 0 || t.root >= size || t.bytes < 0)
        fail("no such rank or size", text);
    if (t.tree && (place_ranks != size || !tree_make(&t.shape, t.tree, t.root, rank, size)))
        fail("no such tree, or -p does not fit", text);
    prepare(&t);
    measure(&t);
    release(&t);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-r") && i + 1 < argc)
            repetitions = atoi(argv[++i]);
        else if (!strcmp(argv[i], "-p") && i + 1 < argc) {
            if (places_read(argv[++i]) != size)
                fail("-p does not fit the number of ranks", argv[i]);
            if (!places_are_right(rank))
                fail("ranks are not on the hosts that -p tells", argv[i]);
        } else
            run(argv[i]);
    }
    MPI_Finalize();
    return 0;
}
