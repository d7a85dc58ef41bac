/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of MPICH-G2: every communicator says for each of its ranks how many levels it has and its colour
   at each (wide area, local area, machine). On one machine all ranks have depth 3 and the same colours.
   ranks: 1 2 4 */
#include "check.h"

static void check_attributes(MPI_Comm comm)
{
    int size, flag = 0;
    int *depths = NULL, **colors = NULL;
    OK(MPI_Comm_size(comm, &size));
    OK(MPI_Comm_get_attr(comm, MPICHX_TOPOLOGY_DEPTHS, &depths, &flag));
    CHECK(flag && depths);
    flag = 0;
    OK(MPI_Attr_get(comm, MPICHX_TOPOLOGY_COLORS, &colors, &flag));
    CHECK(flag && colors);
    for (int rank = 0; rank < size; rank++) {
        CHECK(depths[rank] >= 3);
        for (int level = 0; level < 3; level++)
            CHECK(colors[rank][level] == colors[0][level]);
    }
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Comm half, copy;
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    check_attributes(MPI_COMM_WORLD);
    check_attributes(MPI_COMM_SELF);
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half));
    check_attributes(half);
    OK(MPI_Comm_dup(half, &copy));
    check_attributes(copy);
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&half));
    OK(MPI_Finalize());
    return 0;
}
