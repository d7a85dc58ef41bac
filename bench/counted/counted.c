/* SPDX-License-Identifier: Apache-2.0 */
/* What operations cost that can be counted: instructions (callgrind) and system calls (strace) of one process.
 *
 *   counted ROUNDS
 *
 * Two processes. Rank 1 is counted: it runs under valgrind or strace, and pauses before each call, so that it finds
 * everything there that it would otherwise wait for. What the fewest of ROUNDS calls took is what a call costs, because
 * waiting, and waking a process that has gone to sleep, only add to it.
 *
 * The list is in chapters, a header each.
 *
 * Under valgrind (with --collect-atstart=no) each call has a dump of its own, named like its operation. Elsewhere two
 * marks are written to where nothing is open, which strace shows: "mark NAME" before a call, "mark -" after it.
 */
#include "collectives.h"
#include "communicators.h"
#include "local.h"
#include "messages.h"
#include "requests.h"
#include "windows.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

/* Long enough for rank 0 to have done its part, and mostly too short for it to go to sleep. */
static void let_the_other_go(int turn)
{
    struct timespec pause = {0, 10000L << turn % 6};
    nanosleep(&pause, NULL);
}

static void begin(const char *name)
{
    if (RUNNING_ON_VALGRIND) {
        CALLGRIND_ZERO_STATS;
        CALLGRIND_TOGGLE_COLLECT;
    } else {
        char mark[64];
        int length = snprintf(mark, sizeof mark, "mark %s", name);
        if (write(-1, mark, (size_t)length) < 0)
            return;
    }
}

static void end(const char *name)
{
    if (RUNNING_ON_VALGRIND) {
        CALLGRIND_TOGGLE_COLLECT;
        CALLGRIND_DUMP_STATS_AT(name);
    } else if (write(-1, "mark -", 6) < 0) {
        return;
    }
}

#define CHAPTER(operations) {operations, sizeof operations / sizeof *operations}

static const struct {
    const struct operation *operations;
    size_t count;
} chapters[] = {
    CHAPTER(messages), CHAPTER(requests), CHAPTER(collectives),        CHAPTER(communicators),
    CHAPTER(windows),  CHAPTER(local),    CHAPTER(many_communicators),
};

static void run(const struct operation *operation)
{
    int bytes = operation->bytes, counts = operation->name[0] != '\0';
    /* The first round fills what is remembered from then on. */
    for (int turn = -1; turn < (counts ? rounds : 0); turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            operation->ahead(bytes);
            operation->after(bytes);
            continue;
        }
        let_the_other_go(turn + 1);
        if (turn >= 0)
            begin(operation->name);
        operation->counted(bytes);
        if (turn >= 0)
            end(operation->name);
    }
}

int main(int argc, char **argv)
{
    int two = 2, round = 1, size;
    long *memory;
    rounds = argc > 1 ? atoi(argv[1]) : 5;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2 || rounds < 1) {
        fprintf(stderr, "usage: counted ROUNDS, by two processes\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    other = 1 - rank;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &two, &round, 0, &grid);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    MPI_Win_allocate(1024, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_allocate(1024, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &locked);
    MPI_Win_lock_all(0, window);
    MPI_Type_vector(100, 3, 4, MPI_FLOAT, &vector);
    MPI_Type_commit(&vector);
    for (size_t which = 0; which < sizeof chapters / sizeof *chapters; which++)
        for (size_t at = 0; at < chapters[which].count; at++)
            run(&chapters[which].operations[at]);
    if (rank == 1) {
        MPI_Request_free(&started);
        MPI_Cancel(&idle);
        MPI_Wait(&idle, MPI_STATUS_IGNORE);
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Win_free(&locked);
    MPI_Type_free(&vector);
    MPI_Comm_free(&grid);
    MPI_Comm_free(&reversed);
    MPI_Finalize();
    return 0;
}
