/* SPDX-License-Identifier: Apache-2.0 */
/* A group that grows and shrinks at random: children come, some of them leave before the others, halves part and meet
   again by a port, and in between all that communicators do is tried on whoever is there. Prints its seed. */
/* ranks: 2 3 */

#include <time.h>

#include "check.h"

enum { STEPS = 24, MOST = 8 };

static unsigned long long state;
static int step, rank, size;
/* All that are there. */
static MPI_Comm group;

/* The same number at all members, who have the same state. */
static int chance(int below)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)((state >> 33) % (unsigned)below);
}

static void become(MPI_Comm next)
{
    group = next;
    OK(MPI_Comm_rank(group, &rank));
    OK(MPI_Comm_size(group, &size));
    unsigned long long now[2] = {state, (unsigned long long)step};
    OK(MPI_Bcast(now, 2, MPI_UNSIGNED_LONG_LONG, 0, group));
    state = now[0];
    step = (int)now[1];
}

static void grow(char *self)
{
    int more = 1 + chance(2), root = chance(size), codes[2] = {1, 1};
    MPI_Comm children, all;
    OK(MPI_Comm_spawn(self, MPI_ARGV_NULL, more, MPI_INFO_NULL, root, group, &children, codes));
    CHECK(codes[0] == MPI_SUCCESS && (more == 1 || codes[1] == MPI_SUCCESS));
    OK(MPI_Intercomm_merge(children, 0, &all));
    OK(MPI_Comm_disconnect(&children));
    OK(MPI_Comm_disconnect(&group));
    become(all);
}

/* Some of the children leave; whether this process has. */
static int shrink(int child)
{
    int leavers = chance(1 << MOST), leaves = child && (leavers >> rank & 1);
    MPI_Comm others;
    OK(MPI_Comm_split(group, leaves, rank, &others));
    OK(MPI_Comm_disconnect(&group));
    if (leaves)
        OK(MPI_Comm_disconnect(&others));
    else
        become(others);
    return leaves;
}

static void meet_again(void)
{
    int cut = 1 + chance(size - 1), high = rank >= cut, same, sum;
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm half, other, all;
    OK(MPI_Comm_split(group, high, rank, &half));
    if (rank == 0)
        OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, group));
    if (high)
        OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &other));
    else
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &other));
    if (rank == 0)
        OK(MPI_Close_port(port));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, other));
    int low = cut * (cut - 1) / 2;
    CHECK(sum == (high ? low : size * (size - 1) / 2 - low));
    OK(MPI_Intercomm_merge(other, high, &all));
    OK(MPI_Comm_compare(all, group, &same));
    CHECK(same == MPI_CONGRUENT);
    OK(MPI_Comm_disconnect(&other));
    OK(MPI_Comm_disconnect(&half));
    OK(MPI_Comm_disconnect(&group));
    become(all);
}

/* A grid in which processes may have other ranks: all agree on who is where. */
static void try_grid(void)
{
    int dims[2] = {0, 0}, periods[2] = {1, 0}, mine, around[4] = {-1, -1, -1, -1}, before, behind;
    MPI_Comm grid;
    OK(MPI_Dims_create(size, 2, dims));
    OK(MPI_Cart_create(group, 2, dims, periods, 1, &grid));
    OK(MPI_Comm_rank(grid, &mine));
    OK(MPI_Neighbor_allgather(&mine, 1, MPI_INT, around, 1, MPI_INT, grid));
    for (int dimension = 0; dimension < 2; dimension++) {
        OK(MPI_Cart_shift(grid, dimension, 1, &before, &behind));
        CHECK(before == MPI_PROC_NULL || around[2 * dimension] == before);
        CHECK(behind == MPI_PROC_NULL || around[2 * dimension + 1] == behind);
    }
    OK(MPI_Comm_free(&grid));
}

static void try_window(void)
{
    int *mine, one = 1, old;
    MPI_Win win;
    OK(MPI_Win_allocate((MPI_Aint)sizeof(int) * size, sizeof(int), MPI_INFO_NULL, group, &mine, &win));
    OK(MPI_Win_fence(0, win));
    for (int to = 0; to < size; to++)
        OK(MPI_Put(&rank, 1, MPI_INT, to, rank, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    for (int from = 0; from < size; from++)
        CHECK(mine[from] == from);
    OK(MPI_Barrier(group));
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Fetch_and_op(&one, &old, MPI_INT, (rank + 1) % size, 0, MPI_SUM, win));
    OK(MPI_Win_unlock_all(win));
    CHECK(old == 0);
    OK(MPI_Win_free(&win));
}

static void try_node(void)
{
    int one = 1, sum, members;
    MPI_Comm node;
    OK(MPI_Comm_split_type(group, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Comm_size(node, &members));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, node));
    CHECK(sum == members);
    OK(MPI_Comm_free(&node));
}

static void try_some(void)
{
    int first = chance(size), count = 1 + chance(size), by_group = chance(2), ranks[2 * MOST], place, sum;
    MPI_Group all, some;
    MPI_Comm made;
    for (int i = 0; i < count; i++)
        ranks[i] = (first + i) % size;
    OK(MPI_Comm_group(group, &all));
    OK(MPI_Group_incl(all, count, ranks, &some));
    OK(MPI_Group_rank(some, &place));
    if (place != MPI_UNDEFINED) {
        if (by_group)
            OK(MPI_Comm_create_from_group(some, "some", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &made));
        else
            OK(MPI_Comm_create_group(group, some, 7, &made));
        OK(MPI_Scan(&place, &sum, 1, MPI_INT, MPI_SUM, made));
        CHECK(sum == place * (place + 1) / 2);
        OK(MPI_Comm_disconnect(&made));
    }
    OK(MPI_Group_free(&some));
    OK(MPI_Group_free(&all));
}

/* Two halves, as groups, become an intercommunicator. */
static void try_halves(void)
{
    int cut = 1 + chance(size - 1), high = rank >= cut, low[3] = {0, cut - 1, 1}, behind[3] = {cut, size - 1, 1}, sum;
    MPI_Group all, halves[2];
    MPI_Comm inter;
    OK(MPI_Comm_group(group, &all));
    OK(MPI_Group_range_incl(all, 1, &low, &halves[0]));
    OK(MPI_Group_range_incl(all, 1, &behind, &halves[1]));
    OK(MPI_Intercomm_create_from_groups(halves[high], 0, halves[!high], 0, "halves", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &inter));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter));
    int below = cut * (cut - 1) / 2;
    CHECK(sum == (high ? below : size * (size - 1) / 2 - below));
    OK(MPI_Comm_disconnect(&inter));
    OK(MPI_Group_free(&halves[0]));
    OK(MPI_Group_free(&halves[1]));
    OK(MPI_Group_free(&all));
}

static void try_ring(void)
{
    int length = 1 + chance(200000), to = (rank + 1) % size, from = (rank + size - 1) % size;
    char *out = malloc(length), *in = malloc(length);
    MPI_Status status;
    memset(out, rank + 1, length);
    OK(MPI_Sendrecv(out, length, MPI_CHAR, to, 1, in, length, MPI_CHAR, MPI_ANY_SOURCE, 1, group, &status));
    CHECK(status.MPI_SOURCE == from && in[0] == from + 1 && in[length - 1] == from + 1);
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    MPI_Comm parents, all;
    OK(MPI_Comm_get_parent(&parents));
    int child = parents != MPI_COMM_NULL;
    if (child) {
        OK(MPI_Intercomm_merge(parents, 1, &all));
        OK(MPI_Comm_disconnect(&parents));
        become(all);
        step++;
    } else {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &all));
        state = argc > 1 ? strtoull(argv[1], NULL, 10) : (unsigned long long)time(NULL);
        become(all);
        if (rank == 0)
            printf("seed %llu\n", state), fflush(stdout);
    }
    for (; step < STEPS; step++) {
        int what = chance(12);
        if (what < 2 && size <= MOST - 2)
            grow(argv[0]);
        else if (what == 2 && shrink(child)) {
            OK(MPI_Finalize());
            return 0;
        } else if (what == 3 && size > 1)
            meet_again();
        else if (what < 6)
            try_grid();
        else if (what < 8)
            try_window();
        else if (what == 8)
            try_node();
        else if (what == 9)
            try_some();
        else if (what == 10 && size > 1)
            try_halves();
        else
            try_ring();
    }
    OK(MPI_Comm_disconnect(&group));
    OK(MPI_Finalize());
    return 0;
}
