/* SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>

int main(int argc, char **argv)
{
    int size{};
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Finalize();
    return size == 1 ? 0 : 1;
}
