/* SPDX-License-Identifier: Apache-2.0 */
/* Figure 4 of Karonis, Toonen, Foster: "MPICH-G2: A Grid-Enabled Implementation of the Message Passing Interface"
   (2003), as printed: communicators that follow the network. examples/topology-show.c prints what they hold. */
#include <mpi.h>

int main(int argc, char *argv[])
{
    int me, flag;
    int *depths;
    int **colors;
    MPI_Comm LANcomm, VcommA, VcommB;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Attr_get(MPI_COMM_WORLD, MPICHX_TOPOLOGY_DEPTHS, &depths, &flag);
    MPI_Attr_get(MPI_COMM_WORLD, MPICHX_TOPOLOGY_COLORS, &colors, &flag);

    MPI_Comm_split(MPI_COMM_WORLD, colors[me][1], 0, &LANcomm);
    MPI_Comm_split(MPI_COMM_WORLD, (depths[me] == 4 ? colors[me][3] : -1),
                   0, &VcommA);
    MPI_Comm_split(MPI_COMM_WORLD,
                   (depths[me] == 4 ? colors[me][3] : MPI_UNDEFINED),
                   0, &VcommB);

    MPI_Finalize();
}
