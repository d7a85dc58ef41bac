// SPDX-License-Identifier: Apache-2.0
// All floating-point exceptions trap: inexact results and numbers below the smallest normal one, too. The program's own numbers are exact, so that
// it is the library if one traps, in its own threads or in the program's. tests/system/traps.sh runs it over two sites.
/* ranks: 1 2 4 */
#include <fenv.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "check.h"

enum { LONG = 200000 };
static double in[LONG], out[LONG];

int main(int argc, char **argv) {
#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__s390x__))
    int wanted = FE_ALL_EXCEPT;
    feenableexcept(wanted);
#ifdef __x86_64__
    // Denormal operands, which C has no name for.
    uint32_t state;
    __asm__ volatile("stmxcsr %0" : "=m"(state));
    state &= ~0x1f80u;
    __asm__ volatile("ldmxcsr %0" : : "m"(state));
#endif
#else
    int wanted = 0;
#endif
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double begin = MPI_Wtime();
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < LONG; i++) in[i] = rank + 1;
        MPI_Allreduce(in, out, LONG, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < LONG; i++) CHECK(out[i] == size * (size + 1) / 2);
        MPI_Bcast(in, LONG, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        CHECK(in[LONG - 1] == 1);
        MPI_Request requests[2];
        MPI_Irecv(out, LONG, MPI_DOUBLE, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(in, LONG, MPI_DOUBLE, (rank + 1) % size, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(out[0] == 1);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    CHECK(MPI_Wtime() > begin);
    int dims[3] = {0, 0, 0};
    MPI_Dims_create(60, 3, dims);
    CHECK(dims[0] * dims[1] * dims[2] == 60);
    MPI_Info info;
    MPI_Comm_get_info(MPI_COMM_WORLD, &info);
    MPI_Info_free(&info);
#if defined(__GLIBC__)
    // What the program asked for is still so.
    CHECK(fegetexcept() == wanted);
#endif
    MPI_Finalize();
    return 0;
}
