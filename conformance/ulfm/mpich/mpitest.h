/* SPDX-License-Identifier: Apache-2.0
 * What the directory ft of the MPICH suite takes from that suite's own header, which is made by its configure script. */
#ifndef MPITEST_H
#define MPITEST_H
#include <mpi.h>
#include <mpi-ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MTestReturnValue(errors) ((errors) != 0)
#define MTest_Init(argc, argv) MPI_Init(argc, argv)

static inline void MTest_Finalize(int errors)
{
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && errors == 0)
        printf(" No Errors\n");
    MPI_Finalize();
}
#endif
