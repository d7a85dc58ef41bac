/* SPDX-License-Identifier: Apache-2.0 */
/* What applications do with MPI, as loops of their own: microseconds a step at the slowest process, in tables as IMB prints them.
 *
 *   kernels SECONDS [KERNEL...]
 *
 * Each kernel takes about so many seconds. What comes is checked where a wrong value would be seen at little cost.
 */
#include <math.h>
#include <omp.h>
#include "steps.h"

enum { FACE = 512, BLOCK = 4096, TASKS = 64 };

static double out[6 * BLOCK], in[6 * BLOCK], wide_out[MOST * BLOCK], wide_in[MOST * BLOCK];
static MPI_Comm grid2, grid3;

/* Faces of a grid with so many dimensions to all neighbours and back. */
static void halo(MPI_Comm grid, int dimensions, int doubles)
{
    MPI_Request requests[12];
    int n = 0;
    for (int d = 0; d < dimensions; d++) {
        int low, high;
        MPI_Cart_shift(grid, d, 1, &low, &high);
        MPI_Irecv(in + 2 * d * doubles, doubles, MPI_DOUBLE, low, 2 * d, grid, &requests[n++]);
        MPI_Irecv(in + (2 * d + 1) * doubles, doubles, MPI_DOUBLE, high, 2 * d + 1, grid, &requests[n++]);
        MPI_Isend(out + 2 * d * doubles, doubles, MPI_DOUBLE, high, 2 * d, grid, &requests[n++]);
        MPI_Isend(out + (2 * d + 1) * doubles, doubles, MPI_DOUBLE, low, 2 * d + 1, grid, &requests[n++]);
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

static void halo_2d(void) { halo(grid2, 2, FACE); }
static void halo_3d(void) { halo(grid3, 3, BLOCK); }
static void neighbours_2d(void) { MPI_Neighbor_alltoall(out, FACE, MPI_DOUBLE, in, FACE, MPI_DOUBLE, grid2); }
static void neighbours_3d(void) { MPI_Neighbor_alltoall(out, BLOCK, MPI_DOUBLE, in, BLOCK, MPI_DOUBLE, grid3); }

/* A step of conjugate gradients: a halo, a product of a matrix, two sums. */
static void conjugate_gradients(void)
{
    static double x[BLOCK], y[BLOCK];
    double sums[2] = {0, 1}, all[2];
    halo(grid2, 2, 64);
    for (int i = 1; i < BLOCK - 1; i++)
        y[i] = 2 * x[i] - x[i - 1] - x[i + 1] + in[i % 64];
    for (int i = 0; i < BLOCK; i++)
        sums[0] += x[i] * y[i];
    MPI_Allreduce(&sums[0], &all[0], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < BLOCK; i++)
        x[i] = 0.5 * x[i] + 1e-3 * y[i];
    MPI_Allreduce(&sums[1], &all[1], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (all[1] != size)
        fail("conjugate_gradients");
}

static void transpose_short(void) { MPI_Alltoall(wide_out, 16, MPI_DOUBLE, wide_in, 16, MPI_DOUBLE, MPI_COMM_WORLD); }
static void transpose_long(void) { MPI_Alltoall(wide_out, BLOCK, MPI_DOUBLE, wide_in, BLOCK, MPI_DOUBLE, MPI_COMM_WORLD); }

/* A master gives tasks to whoever asks. */
static void farm(void)
{
    double task[16] = {0};
    if (rank > 0) {
        MPI_Status status;
        for (;;) {
            MPI_Send(task, 16, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
            MPI_Recv(task, 16, MPI_DOUBLE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            if (status.MPI_TAG == 3)
                return;
        }
    }
    for (int given = 0, ended = 0; ended < size - 1; given++) {
        MPI_Status status;
        MPI_Recv(task, 16, MPI_DOUBLE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
        ended += given >= TASKS;
        MPI_Send(task, 16, MPI_DOUBLE, status.MPI_SOURCE, given < TASKS ? 2 : 3, MPI_COMM_WORLD);
    }
}

/* Around a ring, with a test after each bit of work, or a probe. */
static void test_loop(void)
{
    MPI_Request requests[2];
    int done = 0;
    MPI_Irecv(in, 128, MPI_DOUBLE, (rank + size - 1) % size, 5, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 128, MPI_DOUBLE, (rank + 1) % size, 5, MPI_COMM_WORLD, &requests[1]);
    while (!done)
        MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
}

static void probe_loop(void)
{
    MPI_Request request;
    MPI_Status status;
    int there = 0;
    MPI_Isend(out, 128, MPI_DOUBLE, (rank + 1) % size, 6, MPI_COMM_WORLD, &request);
    while (!there)
        MPI_Iprobe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &there, &status);
    MPI_Recv(in, 128, MPI_DOUBLE, status.MPI_SOURCE, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Short collective operations in an order that nobody expects, the same at all processes. */
static void mixture(void)
{
    static unsigned state = 12345;
    for (int n = 0; n < 8; n++) {
        state = state * 1664525u + 1013904223u;
        int root = (int)(state >> 20) % size, doubles = 1 << (state >> 16) % 6;
        switch ((state >> 8) % 7) {
        case 0: MPI_Bcast(in, doubles, MPI_DOUBLE, root, MPI_COMM_WORLD); break;
        case 1: MPI_Reduce(out, in, doubles, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD); break;
        case 2: MPI_Allreduce(out, in, doubles, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD); break;
        case 3: MPI_Gather(out, doubles, MPI_DOUBLE, wide_in, doubles, MPI_DOUBLE, root, MPI_COMM_WORLD); break;
        case 4: MPI_Allgather(out, doubles, MPI_DOUBLE, wide_in, doubles, MPI_DOUBLE, MPI_COMM_WORLD); break;
        case 5: MPI_Scan(out, in, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); break;
        default: MPI_Barrier(MPI_COMM_WORLD);
        }
    }
}

/* Many messages of everybody to everybody, taken as they come. */
static void some(void)
{
    enum { EACH = 8 };
    MPI_Request requests[2 * EACH * MOST];
    int which[2 * EACH * MOST], n = 0, done = 0;
    for (int r = 0; r < size; r++)
        for (int k = 0; k < EACH; k++)
            MPI_Irecv(wide_in + (r * EACH + k) * 32, 32, MPI_DOUBLE, r, k, MPI_COMM_WORLD, &requests[n++]);
    for (int r = 0; r < size; r++)
        for (int k = 0; k < EACH; k++)
            MPI_Isend(out, 32, MPI_DOUBLE, (rank + r) % size, k, MPI_COMM_WORLD, &requests[n++]);
    while (done < n) {
        int count;
        MPI_Testsome(n, requests, &count, which, MPI_STATUSES_IGNORE);
        done += count;
    }
}

/* Threads compute, one of them communicates; the number of threads is what the launcher or the runtime makes of it. */
static void hybrid(void)
{
    double sum = 0, all;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < 6 * BLOCK; i++)
        sum += sqrt(1.0 + out[i]);
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (all < size * 6.0 * BLOCK - 1)
        fail("hybrid");
}

static const struct step kernels[] = {
    {"halo_2d", halo_2d}, {"halo_3d", halo_3d}, {"neighbours_2d", neighbours_2d}, {"neighbours_3d", neighbours_3d},
    {"conjugate_gradients", conjugate_gradients}, {"transpose_short", transpose_short}, {"transpose_long", transpose_long}, {"farm", farm},
    {"test_loop", test_loop}, {"probe_loop", probe_loop}, {"mixture", mixture}, {"testsome", some}, {"hybrid", hybrid},
};

int main(int argc, char **argv)
{
    int provided, two[2] = {0, 0}, three[3] = {0, 0, 0}, around[3] = {1, 1, 1};
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    double seconds = begin_steps(argc, argv);
    MPI_Dims_create(size, 2, two);
    MPI_Dims_create(size, 3, three);
    MPI_Cart_create(MPI_COMM_WORLD, 2, two, around, 0, &grid2);
    MPI_Cart_create(MPI_COMM_WORLD, 3, three, around, 0, &grid3);
    measure(kernels, sizeof kernels / sizeof *kernels, seconds, argc, argv);
    MPI_Comm_free(&grid2);
    MPI_Comm_free(&grid3);
    MPI_Finalize();
    return 0;
}
