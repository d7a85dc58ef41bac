/* SPDX-License-Identifier: Apache-2.0 */
/* Spawning: children have their own world, find their parents, talk to them, and leave; what cannot start is told. */
/* ranks: 1 2 3 */

#include "connect.h"
#include <limits.h>
#include <sys/resource.h>

static int rank, size;

/* Parents and children have files together. */
static void together(MPI_Comm inter, int high)
{
    MPI_Comm all;
    OK(MPI_Intercomm_merge(inter, high, &all));
    stored(all, "family");
    OK(MPI_Comm_free(&all));
}

static void child(MPI_Comm parents)
{
    int remote, appnum = -1, *value, found, got = -1, all;
    OK(MPI_Comm_remote_size(parents, &remote));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &found));
    if (found)
        appnum = *value;
    OK(MPI_Bcast(&got, 1, MPI_INT, 0, parents));
    CHECK(got == 4711);
    int mine = 100 * appnum + rank;
    OK(MPI_Send(&mine, 1, MPI_INT, 0, 5, parents));
    OK(MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(all == size * (size - 1) / 2);
    together(parents, 1);
    MPI_Comm again;
    OK(MPI_Comm_get_parent(&again));
    CHECK(again == parents && remote > 0);
    OK(MPI_Comm_disconnect(&parents));
    OK(MPI_Comm_get_parent(&again));
    CHECK(again == MPI_COMM_NULL);
}

/* What the parents do with their children. */
static void parents(MPI_Comm children, int expected, int sum)
{
    int remote, got = 4711;
    OK(MPI_Comm_remote_size(children, &remote));
    CHECK(remote == expected);
    OK(MPI_Bcast(&got, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, children));
    if (rank == 0) {
        for (int i = 0; i < remote; i++) {
            int value;
            MPI_Status status;
            OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 5, children, &status));
            CHECK(value % 100 == status.MPI_SOURCE);
            sum -= value;
        }
        CHECK(sum == 0);
    }
    together(children, 0);
    OK(MPI_Comm_disconnect(&children));
    CHECK(children == MPI_COMM_NULL);
}

/* The limit on virtual memory, so much above what this process has. */
static struct rlimit limited(long more)
{
    long pages = 0;
    struct rlimit before, little;
    FILE *own = fopen("/proc/self/statm", "r");
    CHECK(own && fscanf(own, "%ld", &pages) == 1);
    if (own)
        fclose(own);
    getrlimit(RLIMIT_AS, &before);
    little = before;
    little.rlim_cur = pages * sysconf(_SC_PAGESIZE) + more;
    setrlimit(RLIMIT_AS, &little);
    return before;
}

/* Where nobody asks for codes, a great count of processes takes no memory. */
static void many(char *program, MPI_Info wrong)
{
    char *commands[] = {program, program};
    int most[] = {INT_MAX, INT_MAX}, code, class;
    MPI_Info infos[] = {MPI_INFO_NULL, wrong};
    MPI_Comm children;
    struct rlimit before = limited(1L << 30);
    code = MPI_Comm_spawn(program, MPI_ARGV_NULL, INT_MAX, wrong, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_SPAWN && children == MPI_COMM_NULL);
    code = MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, most, infos, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_SPAWN && children == MPI_COMM_NULL);
    setrlimit(RLIMIT_AS, &before);
}

int main(int argc, char **argv)
{
    MPI_Comm parent, children;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        CHECK(argc == 3 && !strcmp(argv[1], "a child") && !strcmp(argv[2], ""));
        char name[MPI_MAX_OBJECT_NAME];
        int length;
        OK(MPI_Comm_get_name(parent, name, &length));
        CHECK(length == 15 && !strcmp(name, "MPI_COMM_PARENT"));
        /* They are no more than the processes that there are. */
        int *all, more, spawning;
        OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &all, &more));
        OK(MPI_Comm_remote_size(parent, &spawning));
        CHECK(more && *all >= size + spawning);
        child(parent);
        OK(MPI_Finalize());
        return 0;
    }
    int *universe, known;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &known));
    CHECK(known && *universe >= size);
    char *words[] = {"a child", "", NULL};
    int codes[3] = {-1, -1, -1}, class;
    /* Arguments of others are not looked at. */
    OK(MPI_Comm_spawn(rank == 0 ? argv[0] : NULL, rank == 0 ? words : NULL, rank == 0 ? 2 : -7, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes));
    CHECK(codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS && codes[2] == -1);
    parents(children, 2, 1);
    char *commands[] = {argv[0], argv[0]}, **arguments[] = {words, words};
    int most[] = {1, 2};
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    OK(MPI_Comm_spawn_multiple(2, commands, arguments, most, infos, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
    parents(children, 3, 0 + 101 + 102);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    codes[0] = codes[1] = -1;
    int code = MPI_Comm_spawn("/nowhere/program", MPI_ARGV_NULL, 2, MPI_INFO_NULL, size - 1, MPI_COMM_WORLD, &children, codes);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_SPAWN && children == MPI_COMM_NULL);
    CHECK(codes[0] == MPI_ERR_SPAWN && codes[1] == MPI_ERR_SPAWN);
    /* More than a question to the launcher may have: an error, and the next call works. */
    static char longest[64 << 10];
    char *too_many[33] = {NULL};
    memset(longest, 'x', sizeof longest - 1);
    for (int i = 0; i < 32; i++)
        too_many[i] = longest;
    code = MPI_Comm_spawn(argv[0], too_many, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_SPAWN && codes[0] == MPI_ERR_SPAWN);
    /* Where the root's own arguments are wrong, all get a code for each process too. */
    MPI_Info wrong;
    OK(MPI_Info_create(&wrong));
    OK(MPI_Info_set(wrong, "file", "/nowhere/keys"));
    codes[0] = codes[1] = -1;
    code = MPI_Comm_spawn(argv[0], words, 2, wrong, 0, MPI_COMM_WORLD, &children, codes);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_SPAWN && codes[0] == MPI_ERR_SPAWN && codes[1] == MPI_ERR_SPAWN);
    MPI_Info both[] = {MPI_INFO_NULL, wrong};
    codes[0] = codes[1] = codes[2] = -1;
    code = MPI_Comm_spawn_multiple(2, commands, arguments, most, both, 0, MPI_COMM_WORLD, &children, codes);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_SPAWN && codes[0] == MPI_ERR_SPAWN && codes[1] == MPI_ERR_SPAWN && codes[2] == MPI_ERR_SPAWN);
    many(argv[0], wrong);
    OK(MPI_Info_delete(wrong, "file"));
    OK(MPI_Info_set(wrong, "env", "=nothing"));
    code = MPI_Comm_spawn(argv[0], words, 1, wrong, 0, MPI_COMM_WORLD, &children, codes);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_SPAWN && codes[0] == MPI_ERR_SPAWN);
    OK(MPI_Info_free(&wrong));
    OK(MPI_Comm_spawn(argv[0], words, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes));
    parents(children, 2, 1);
    OK(MPI_Finalize());
    return 0;
}
