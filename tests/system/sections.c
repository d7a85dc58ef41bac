/* SPDX-License-Identifier: Apache-2.0 */
/* For sections.sh: one of several programs in one MPI_COMM_WORLD. Arguments: the number of the program (MPI_APPNUM), how many processes share
   memory with this one, how many there are. `spawn PROGRAM`: starts two commands at once, whose processes share memory. Each process says
   which program it is, where it works and what its variable GRID is. */
#include "check.h"
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int number(void)
{
    int *value, found;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &found));
    CHECK(found);
    return *value;
}

/* Whoever has memory with us sees what we write there. */
static void share(int expected)
{
    MPI_Comm node;
    MPI_Win window;
    MPI_Aint bytes;
    int *own, *first, unit, rank, size;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Comm_size(node, &size));
    OK(MPI_Comm_rank(node, &rank));
    CHECK(size == expected);
    OK(MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, node, &own, &window));
    OK(MPI_Win_fence(0, window));
    *own = 100 + rank;
    OK(MPI_Win_fence(0, window));
    OK(MPI_Win_shared_query(window, 0, &bytes, &unit, &first));
    CHECK(*first == 100);
    OK(MPI_Win_free(&window));
    OK(MPI_Comm_free(&node));
}

/* Numbers of the programs rise with the ranks. */
static void in_order(int appnum)
{
    int rank, size, before, all[64];
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(size <= 64);
    OK(MPI_Allgather(&appnum, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD));
    for (before = 0; before + 1 < size; before++)
        CHECK(all[before] <= all[before + 1]);
}

static void spawn(char *program)
{
    char *first[] = {"0", "3", "3", NULL}, *second[] = {"1", "3", "3", NULL}, **arguments[] = {first, second};
    char *programs[] = {program, program};
    int most[] = {2, 1}, codes[3], many;
    MPI_Info hints[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm children;
    OK(MPI_Info_create(&hints[1]));
    OK(MPI_Info_set(hints[1], "env", "GRID=T42"));
    OK(MPI_Comm_spawn_multiple(2, programs, arguments, most, hints, 0, MPI_COMM_WORLD, &children, codes));
    OK(MPI_Info_free(&hints[1]));
    OK(MPI_Comm_remote_size(children, &many));
    CHECK(many == 3);
    OK(MPI_Comm_disconnect(&children));
}

int main(int argc, char **argv)
{
    char where[4096];
    MPI_Comm above;
    int rank, size;
    OK(MPI_Init(&argc, &argv));
    if (argc > 2 && strcmp(argv[1], "spawn") == 0) {
        spawn(argv[2]);
        OK(MPI_Finalize());
        return 0;
    }
    CHECK(argc > 3 && number() == atoi(argv[1]));
    share(atoi(argv[2]));
    in_order(number());
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(size == atoi(argv[3]));
    OK(MPI_Comm_get_parent(&above));
    if (above != MPI_COMM_NULL)
        OK(MPI_Comm_disconnect(&above));
    CHECK(getcwd(where, sizeof where));
    printf("%s %d in %s with %s\n", basename(argv[0]), rank, basename(where), getenv("GRID") ? getenv("GRID") : "none");
    OK(MPI_Finalize());
    return 0;
}
