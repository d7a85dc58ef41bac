/* SPDX-License-Identifier: Apache-2.0 */
/* For windows.sh. `held`: the last process dies while it holds locks of others; these go on to those who wait, and what needs the
   dead one itself is an error.
   `nodes`: shared memory over several nodes is refused, other windows work. `large`: more memory than
   there is. `refused`: the system does not let processes copy each other's memory, and messages go. `many`: what 1,000 windows take of
   each process's memory. */
#include <malloc.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static void say(const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int length, class;
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    printf("rank %d: %s: %s\n", rank, call, class == MPI_SUCCESS ? "fine" : text);
    fflush(stdout);
}

static int held(void)
{
    MPI_Win win;
    long *memory;
    MPI_Win_allocate(1 << 16, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Group all, dead;
    int last = size - 1, code;
    long one = 1;
    if (rank == last) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == last)
        raise(SIGKILL);
    for (int target = 0; target < 2; target++) {
        code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
        if (code == MPI_SUCCESS)
            code = MPI_Accumulate(&one, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, win);
        if (code == MPI_SUCCESS)
            code = MPI_Win_unlock(target, win);
        say(target ? "reader" : "writer", code);
    }
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &last, &dead);
    MPI_Win_start(dead, 0, win);
    say("complete", MPI_Win_complete(win));
    say("fence", MPI_Win_fence(0, win));
    /* The job is being ended. */
    pause();
    return 1;
}

static int nodes(void)
{
    MPI_Comm node;
    MPI_Win win;
    int *memory, mine = 7;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    say("create", MPI_Win_create(&mine, sizeof mine, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_free(&win);
    say("shared", MPI_Win_allocate_shared(4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Win_allocate_shared(4, 1, MPI_INFO_NULL, node, &memory, &win);
    MPI_Win_fence(0, win);
    *memory = rank;
    MPI_Win_fence(0, win);
    if (*memory != rank)
        return 1;
    MPI_Win_free(&win);
    MPI_Win_create(&mine, sizeof mine, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return mine != rank;
}

/* Memory of the program, which processes may not copy here. */
static int refused(void)
{
    MPI_Win win;
    int mine = 1, value = 7;
    MPI_Win_create(&mine, sizeof mine, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_fence(0, win);
    say("refused", MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win));
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return mine != 7;
}

static int large(void)
{
    MPI_Win win;
    char *memory;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    say("large", MPI_Win_allocate_shared((MPI_Aint)1 << 45, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    MPI_Finalize();
    return 0;
}

static size_t allocated(void)
{
    struct mallinfo2 now = mallinfo2();
    return now.uordblks + now.hblkhd;
}

static int many(void)
{
    enum { WINDOWS = 1000 };
    static MPI_Win windows[WINDOWS], first;
    static char memory[64];
    /* What all windows have together is made with the first one. */
    MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &first);
    size_t before = allocated();
    for (int i = 0; i < WINDOWS; i++)
        MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &windows[i]);
    size_t bytes = allocated() - before;
    for (int i = 0; i < WINDOWS; i++)
        MPI_Win_free(&windows[i]);
    MPI_Win_free(&first);
    printf("rank %d: many: %s, %zu bytes\n", rank, bytes < 1 << 20 ? "fine" : "too much", bytes);
    MPI_Finalize();
    return 0;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1 && !strcmp(argv[1], "held"))
        return held();
    if (argc > 1 && !strcmp(argv[1], "many"))
        return many();
    if (argc > 1 && !strcmp(argv[1], "refused"))
        return refused();
    return argc > 1 && !strcmp(argv[1], "nodes") ? nodes() : large();
}
