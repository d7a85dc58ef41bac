/* SPDX-License-Identifier: Apache-2.0 */
/* isthmus_reduction=fixed: sums have the bits of one order of association, which depends on ranks only: ranks [a, b) are
   combined as [a, m) and [m, b), m - a being the greatest power of two below b - a. Prints a sum of all bits, which is the same
   wherever the processes are.
   ranks: 1 2 3 4 6 */
#include "check.h"

#include <stdint.h>

enum { COUNT = 37, MOST = 64 };
static int rank, size;
static uint64_t seen;

/* Numbers whose sum depends on the order. */
static double number(int of, int i)
{
    uint64_t x = (uint64_t)(of + 1) * 0x9e3779b97f4a7c15u + (uint64_t)i * 0xbf58476d1ce4e5b9u;
    x ^= x >> 31;
    x *= 0x94d049bb133111ebu;
    x ^= x >> 29;
    return ((double)(x >> 11) - 4503599627370496.0) * (1 << (of * 7 + i) % 30);
}

static double in_order(int low, int high, int i)
{
    int half = 1;
    if (high - low == 1)
        return number(low, i);
    while (2 * half < high - low)
        half *= 2;
    return in_order(low, low + half, i) + in_order(low + half, high, i);
}

static void same(double got, int high, int i)
{
    double wanted = in_order(0, high, i);
    uint64_t bits;
    CHECK(memcmp(&got, &wanted, sizeof got) == 0);
    memcpy(&bits, &got, sizeof bits);
    seen = seen * 31 + bits;
}

static void sums(MPI_Comm comm, int n)
{
    static double in[COUNT * MOST], out[COUNT * MOST];
    int counts[MOST], at = 0;
    for (int i = 0; i < n * size; i++)
        in[i] = number(rank, i);
    OK(MPI_Allreduce(in, out, n, MPI_DOUBLE, MPI_SUM, comm));
    for (int i = 0; i < n; i++)
        same(out[i], size, i);
    for (int root = 0; root < size; root++) {
        OK(MPI_Reduce(in, out, n, MPI_DOUBLE, MPI_SUM, root, comm));
        for (int i = 0; root == rank && i < n; i++)
            same(out[i], size, i);
    }
    OK(MPI_Scan(in, out, n, MPI_DOUBLE, MPI_SUM, comm));
    for (int i = 0; i < n; i++)
        same(out[i], rank + 1, i);
    memcpy(out, in, sizeof in);
    OK(MPI_Exscan(MPI_IN_PLACE, out, n, MPI_DOUBLE, MPI_SUM, comm));
    for (int i = 0; rank && i < n; i++)
        same(out[i], rank, i);
    OK(MPI_Reduce_scatter_block(in, out, n, MPI_DOUBLE, MPI_SUM, comm));
    for (int i = 0; i < n; i++)
        same(out[i], size, rank * n + i);
    for (int r = 0; r < size; r++)
        counts[r] = r % 2 ? n : 0;
    for (int r = 0; r < rank; r++)
        at += counts[r];
    memcpy(out, in, sizeof in);
    OK(MPI_Reduce_scatter(MPI_IN_PLACE, out, counts, MPI_DOUBLE, MPI_SUM, comm));
    for (int i = 0; i < counts[rank]; i++)
        same(out[i], size, at + i);
}

int main(int argc, char **argv)
{
    uint64_t all;
    MPI_Info info;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK(size <= MOST);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "isthmus_reduction", "fixed"));
    int world = rank;
    /* Ranks as they are, backwards, and the even before the odd. */
    int keys[3] = {world, size - world, world % 2 * size + world};
    for (int i = 0; i < 3; i++) {
        MPI_Comm comm, fixed;
        OK(MPI_Comm_split(MPI_COMM_WORLD, 0, keys[i], &comm));
        OK(MPI_Comm_dup_with_info(comm, info, &fixed));
        OK(MPI_Comm_rank(fixed, &rank));
        sums(fixed, 1);
        sums(fixed, COUNT);
        OK(MPI_Comm_free(&fixed));
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Info_free(&info));
    /* What rank r of each communicator has seen is the same in every run, so its sum over all ranks is too. */
    OK(MPI_Allreduce(&seen, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD));
    if (world == 0)
        printf("%d processes: %016llx\n", size, (unsigned long long)all);
    OK(MPI_Finalize());
    return 0;
}
