/* SPDX-License-Identifier: Apache-2.0 */
/* For midway.sh: all processes do the same again and again, each time until all have done it, and one of them is killed in the midst of that. The others get
   an error, revoke the communicators, and end as usual.
   Arguments: WHAT RANK MILLISECONDS: what they do, and who is killed (-1: the last one) so long after all have begun. */
#include <mpi-ext.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* The first call that fails ends what a function does. */
#define TRY(call) \
    do { \
        int code_ = (call); \
        if (code_ != MPI_SUCCESS) \
            return code_; \
    } while (0)

static int rank, size;
static MPI_Comm world, half, node;
static MPI_Win kept = MPI_WIN_NULL;
static char *program;
static long memory[64];

static void returns(MPI_Comm comm)
{
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
}

static int makes(const char *what)
{
    MPI_Comm made = MPI_COMM_NULL, between;
    MPI_Request request;
    MPI_Group all;
    if (!strcmp(what, "dup")) {
        TRY(MPI_Comm_dup(world, &made));
    } else if (!strcmp(what, "idup")) {
        TRY(MPI_Comm_idup(world, &made, &request));
        TRY(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else if (!strcmp(what, "split")) {
        TRY(MPI_Comm_split(world, rank % 2, 0, &made));
    } else if (!strcmp(what, "group")) {
        MPI_Comm_group(world, &all);
        TRY(MPI_Comm_create_group(world, all, 3, &made));
        MPI_Group_free(&all);
    } else if (!strcmp(what, "groups")) {
        MPI_Comm_group(world, &all);
        TRY(MPI_Comm_create_from_group(all, "tag", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made));
        MPI_Group_free(&all);
    } else { /* merge */
        TRY(MPI_Intercomm_create(half, 0, world, rank < size / 2 ? size / 2 : 0, 1, &between));
        returns(between);
        TRY(MPI_Intercomm_merge(between, 0, &made));
        MPI_Comm_free(&between);
    }
    return MPI_Comm_free(&made);
}

static int window(const char *what)
{
    MPI_Win win;
    long *base;
    if (!strcmp(what, "create"))
        TRY(MPI_Win_create(memory, sizeof memory, 8, MPI_INFO_NULL, world, &win));
    else if (!strcmp(what, "allocate"))
        TRY(MPI_Win_allocate(sizeof memory, 8, MPI_INFO_NULL, world, &base, &win));
    else if (!strcmp(what, "shared"))
        TRY(MPI_Win_allocate_shared(sizeof memory, 8, MPI_INFO_NULL, node, &base, &win));
    else
        TRY(MPI_Win_create_dynamic(MPI_INFO_NULL, world, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    TRY(MPI_Win_free(&win));
    return MPI_Barrier(world);
}

static int epoch(const char *what)
{
    static long got;
    long *base;
    int next = (rank + 1) % size;
    if (kept == MPI_WIN_NULL) {
        TRY(MPI_Win_allocate(sizeof memory, 8, MPI_INFO_NULL, world, &base, &kept));
        MPI_Win_set_errhandler(kept, MPI_ERRORS_RETURN);
    }
    if (!strcmp(what, "fence")) {
        TRY(MPI_Win_fence(0, kept));
        TRY(MPI_Put(&got, 1, MPI_LONG, next, 0, 1, MPI_LONG, kept));
        return MPI_Win_fence(0, kept);
    }
    if (!strcmp(what, "lock-all")) {
        TRY(MPI_Win_lock_all(0, kept));
        TRY(MPI_Get(&got, 1, MPI_LONG, next, 0, 1, MPI_LONG, kept));
        TRY(MPI_Win_flush_all(kept));
        TRY(MPI_Win_unlock_all(kept));
    } else { /* lock: all of one */
        TRY(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size / 2, 0, kept));
        TRY(MPI_Accumulate(&got, 1, MPI_LONG, size / 2, 0, 1, MPI_LONG, MPI_SUM, kept));
        TRY(MPI_Win_unlock(size / 2, kept));
    }
    return MPI_Barrier(world);
}

static int file(const char *what)
{
    MPI_File file;
    TRY(MPI_File_open(world, "midway.data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    if (!strcmp(what, "file")) {
        TRY(MPI_File_write_at_all(file, rank * 512, memory, 512, MPI_CHAR, MPI_STATUS_IGNORE));
    } else { /* pointer */
        TRY(MPI_File_write_ordered(file, memory, 512, MPI_CHAR, MPI_STATUS_IGNORE));
        TRY(MPI_File_write_shared(file, memory, 512, MPI_CHAR, MPI_STATUS_IGNORE));
        TRY(MPI_File_set_size(file, 0));
    }
    return MPI_File_close(&file);
}

static int others(const char *what)
{
    MPI_Comm between;
    char port[MPI_MAX_PORT_NAME] = "", *arguments[] = {"child", NULL};
    if (!strcmp(what, "spawn")) {
        TRY(MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, world, &between, MPI_ERRCODES_IGNORE));
        returns(between);
        return MPI_Comm_disconnect(&between);
    }
    /* accept */
    if (rank == 0) {
        TRY(MPI_Open_port(MPI_INFO_NULL, port));
        TRY(MPI_Publish_name("midway", MPI_INFO_NULL, port));
    }
    TRY(MPI_Barrier(world));
    if (rank == size / 2)
        TRY(MPI_Lookup_name("midway", MPI_INFO_NULL, port));
    if (rank < size / 2)
        TRY(MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &between));
    else
        TRY(MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &between));
    returns(between);
    if (rank == 0) {
        TRY(MPI_Unpublish_name("midway", MPI_INFO_NULL, port));
        TRY(MPI_Close_port(port));
    }
    return MPI_Comm_disconnect(&between);
}

static const struct {
    const char *what;
    int (*does)(const char *what);
} all[] = {
    {"dup", makes},       {"idup", makes},      {"split", makes},    {"group", makes},    {"groups", makes}, {"merge", makes},
    {"create", window},   {"allocate", window}, {"shared", window},  {"dynamic", window}, {"fence", epoch},  {"lock-all", epoch},
    {"lock", epoch},      {"file", file},       {"pointer", file},   {"spawn", others},   {"accept", others},
};

static int child(void)
{
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    returns(parent);
    MPI_Comm_disconnect(&parent);
    return MPI_Finalize();
}

int main(int argc, char **argv)
{
    int class = MPI_SUCCESS, code = MPI_SUCCESS;
    size_t at = 0;
    program = argv[0];
    MPI_Init(&argc, &argv);
    if (argc > 1 && !strcmp(argv[1], "child"))
        return child();
    while (argc > 1 && at < sizeof all / sizeof *all && strcmp(argv[1], all[at].what))
        at++;
    if (argc != 4 || at == sizeof all / sizeof *all)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    MPI_Comm_split(world, rank < size / 2, 0, &half);
    MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    returns(MPI_COMM_WORLD);
    returns(MPI_COMM_SELF);
    returns(world);
    returns(half);
    returns(node);
    MPI_Barrier(world);
    int milliseconds = atoi(argv[3]);
    struct itimerval timer = {.it_value = {milliseconds / 1000, milliseconds % 1000 * 1000}};
    /* The signal ends it, whatever it does then. */
    if (rank == (atoi(argv[2]) + size) % size && setitimer(ITIMER_REAL, &timer, NULL))
        MPI_Abort(MPI_COMM_WORLD, 1);
    while (code == MPI_SUCCESS)
        code = all[at].does(all[at].what);
    MPI_Error_class(code, &class);
    printf("rank %d: class %d\n", rank, class);
    fflush(stdout);
    MPIX_Comm_revoke(world);
    MPIX_Comm_revoke(half);
    MPI_Finalize();
    printf("rank %d went on as one of %d\n", rank, size - 1);
    return 0;
}
