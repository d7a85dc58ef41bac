/* SPDX-License-Identifier: Apache-2.0 */
/* A program may put its own MPI_X in front of the library's; PMPI_X is the library's (section 15.2).
   ranks: 1 2 */
#include "check.h"

static int barriers, sends;

int MPI_Barrier(MPI_Comm comm)
{
    barriers++;
    return PMPI_Barrier(comm);
}

int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    sends++;
    return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

int main(int argc, char **argv)
{
    int rank, size, value = 0;
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (size > 1 && rank == 0)
        OK(MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD));
    else if (rank == 1)
        OK(MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Pcontrol(1));
    OK(MPI_Pcontrol(2, "level", 3));
    OK(MPI_Finalize());
    CHECK(barriers == 1);
    CHECK(sends == (size > 1 && rank == 0));
    return 0;
}
