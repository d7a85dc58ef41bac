/* SPDX-License-Identifier: Apache-2.0
 *
 * The broadcast timing application of the multilevel paper (its figure 7): for each size every rank in turn is the root,
 * and after each broadcast all ranks acknowledge to rank 0 and wait for its word, so that broadcasts do not overlap.
 *
 *   roots -p PLACES SHAPE:BYTES...
 *
 * Shapes of one size that follow each other are measured in turns, each of them first for as many roots: connections have carried as much for
 * all of them. One after the other, the later ones find what the earlier ones have opened.
 *
 * SHAPE is `library` for MPI_Bcast or a tree of trees.h; PLACES says where ranks are: "16/16,16". Rank 0 prints
 *   LOOP SHAPE BYTES MICROSECONDS       for one root, with the acknowledgement, as the paper has it
 *   BCAST SHAPE BYTES US,US,...         for each root from its call until the last rank is done, by the hosts' common clock
 *   WIDE SHAPE BYTES N,N,...            for each root messages between sites: of the library's counters, or edges of the tree
 *   LOCAL SHAPE BYTES N,N,...           the same between machines of a site; -1 where the library does not count
 */
#include "counters.h"
#include "fill.h"
#include "trees.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ACK = 78, GO = 79 };

static int rank, size;
static struct counter wide_counter, local_counter;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *what, const char *name)
{
    if (rank == 0)
        fprintf(stderr, "roots: %s: %s\n", what, name);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

/* How many edges of the tree join sites, and how many only machines. */
static void tree_crossings(const char *shape, int root, int ranks, int *wide, int *local)
{
    *wide = *local = 0;
    for (int rank = 0; rank < ranks; rank++) {
        struct tree t;
        tree_make(&t, shape, root, rank, ranks);
        if (t.parent < 0)
            continue;
        if (place_site[t.parent] != place_site[rank])
            ++*wide;
        else if (place_machine[t.parent] != place_machine[rank])
            ++*local;
    }
}

static void ack_barrier(void)
{
    char none = 0;
    if (rank != 0) {
        MPI_Send(&none, 0, MPI_BYTE, 0, ACK, MPI_COMM_WORLD);
        MPI_Recv(&none, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    for (int i = 1; i < size; i++)
        MPI_Recv(&none, 0, MPI_BYTE, MPI_ANY_SOURCE, ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 1; i < size; i++)
        MPI_Send(&none, 0, MPI_BYTE, i, GO, MPI_COMM_WORLD);
}

/* What one rank saw, for each root. */
struct seen {
    double start, end, wide, local;
};

static void broadcast(const char *shape, int root, char *data, int bytes, const struct tree *tree, struct seen *seen)
{
    int library = !strcmp(shape, "library");
    double wide = (double)counter_read(&wide_counter), local = (double)counter_read(&local_counter);
    seen->start = now();
    if (library)
        MPI_Bcast(data, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    else
        tree_bcast(tree, data, bytes);
    seen->end = now();
    int counted = library && wide >= 0;
    seen->wide = counted ? (double)counter_read(&wide_counter) - wide : -1;
    seen->local = counted ? (double)counter_read(&local_counter) - local : -1;
}

/* On rank 0: for each root what `value` makes of all ranks' views. */
static void show(const char *what, const char *shape, int bytes, const struct seen *all, double (*value)(const struct seen *, int))
{
    printf("%s %s %d", what, shape, bytes);
    for (int root = 0; root < size; root++)
        printf("%s%.0f", root ? "," : " ", value(all, root));
    printf("\n");
}

static double completion(const struct seen *all, int root)
{
    double end = 0;
    for (int i = 0; i < size; i++) {
        double one = all[i * size + root].end;
        end = one > end ? one : end;
    }
    return (end - all[root * size + root].start) * 1e6;
}

static double crossed_wide(const struct seen *all, int root)
{
    double sum = 0;
    for (int i = 0; i < size; i++)
        sum += all[i * size + root].wide;
    return sum < 0 ? -1 : sum;
}

static double crossed_local(const struct seen *all, int root)
{
    double sum = 0;
    for (int i = 0; i < size; i++)
        sum += all[i * size + root].local;
    return sum < 0 ? -1 : sum;
}

static void report(const char *shape, int bytes, double seconds, const struct seen *mine)
{
    struct seen *all = rank == 0 ? malloc((size_t)size * (size_t)size * sizeof *all) : NULL;
    if (rank == 0 && !all)
        fail("no memory", shape);
    MPI_Gather(mine, 4 * size, MPI_DOUBLE, all, 4 * size, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank != 0)
        return;
    int is_tree = strcmp(shape, "library") != 0;
    for (int root = 0; is_tree && root < size; root++) {
        int wide, local;
        tree_crossings(shape, root, size, &wide, &local);
        for (int i = 0; i < size; i++) {
            all[i * size + root].wide = i ? 0 : wide;
            all[i * size + root].local = i ? 0 : local;
        }
    }
    printf("LOOP %s %d %.1f\n", shape, bytes, seconds * 1e6 / size);
    show("BCAST", shape, bytes, all, completion);
    show("WIDE", shape, bytes, all, crossed_wide);
    show("LOCAL", shape, bytes, all, crossed_local);
    fflush(stdout);
    free(all);
}

/* A shape under way. */
struct test {
    const char *shape;
    /* For each root. */
    struct tree *trees;
    struct seen *seen;
    double seconds;
};

static void prepare(struct test *test, const char *shape)
{
    test->shape = shape;
    test->trees = calloc((size_t)size, sizeof *test->trees);
    test->seen = calloc((size_t)size, sizeof *test->seen);
    if (!test->trees || !test->seen)
        fail("no memory", shape);
    for (int root = 0; root < size; root++)
        if (strcmp(shape, "library") && !tree_make(&test->trees[root], shape, root, rank, size))
            fail("no such shape", shape);
}

/* All shapes for one root. */
static void in_turns(struct test *tests, int count, int root, char *data, int bytes)
{
    for (int turn = 0; turn < count; turn++) {
        struct test *test = &tests[(root + turn) % count];
        double start = now();
        broadcast(test->shape, root, data, bytes, &test->trees[root], &test->seen[root]);
        ack_barrier();
        test->seconds += now() - start;
    }
}

static void run(const char *const *shapes, int count, int bytes)
{
    struct test *tests = calloc((size_t)count, sizeof *tests);
    char *data = calloc((size_t)bytes + 1, 1);
    if (!tests || !data)
        fail("no memory", shapes[0]);
    for (int i = 0; i < count; i++)
        prepare(&tests[i], shapes[i]);
    fill(data, (size_t)bytes, rank);
    /* Once without being measured: connections are made, and none has carried less than others just before. */
    for (int root = 0; root < size; root++)
        in_turns(tests, count, root, data, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < count; i++)
        tests[i].seconds = 0;
    for (int root = 0; root < size; root++)
        in_turns(tests, count, root, data, bytes);
    for (int i = 0; i < count; i++) {
        report(tests[i].shape, bytes, tests[i].seconds, tests[i].seen);
        free(tests[i].trees);
        free(tests[i].seen);
    }
    free(tests);
    free(data);
}

/* Cuts off BYTES. */
static int bytes_of(char *test)
{
    char *colon = strchr(test, ':');
    int bytes = colon ? atoi(colon + 1) : -1;
    if (bytes < 0)
        fail("not SHAPE:BYTES", test);
    *colon = 0;
    return bytes;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    wide_counter = counter_open("bcast", "wide");
    local_counter = counter_open("bcast", "local");
    if (argc < 4 || strcmp(argv[1], "-p"))
        fail("-p PLACES must come first", argc > 1 ? argv[1] : "nothing");
    if (places_read(argv[2]) != size)
        fail("-p does not fit the number of ranks", argv[2]);
    if (!places_are_right(rank))
        fail("ranks are not on the hosts that -p tells", argv[2]);
    int *bytes = calloc((size_t)argc, sizeof *bytes);
    if (!bytes)
        fail("no memory", argv[3]);
    for (int i = 3; i < argc; i++)
        bytes[i] = bytes_of(argv[i]);
    for (int first = 3, end; first < argc; first = end) {
        for (end = first + 1; end < argc && bytes[end] == bytes[first];)
            end++;
        run((const char *const *)&argv[first], end - first, bytes[first]);
    }
    free(bytes);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
