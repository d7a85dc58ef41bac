/* SPDX-License-Identifier: Apache-2.0 */
/* One member calls every collective operation with another number of elements than the others: none, few, or so many
   that they go another way. Nobody waits for ever, and no operation that follows gives a wrong result: it is right, or
   an error.
   ranks: 2 3 */
#include "disagree.h"

enum { LONG = 30000, OPERATIONS = 16, FORMS = 2, AFTER = 6 };
static const int numbers[][2] = {{1, 5000}, {5000, 1}, {0, 1}, {1, 0}, {1, 20}, {300, 20}, {300, LONG}, {LONG, 5000}};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static int from[MOST * LONG], into[MOST * LONG];

#define CALL(Name, name, ...)                                                                                          \
    (form == 0 ? MPI_##Name(__VA_ARGS__) : MPI_I##name(__VA_ARGS__, &request))

/* Blocking, nonblocking. */
static int operation(int what, int form, int n, MPI_Comm comm)
{
    struct blocks of = blocks_of(n, LONG);
    int *counts = of.counts, *starts = of.starts, *bytes = of.bytes, code;
    MPI_Datatype *types = of.types, t = MPI_INT;
    MPI_Request request = MPI_REQUEST_NULL;
    switch (what) {
    case 0:
        code = CALL(Gather, gather, from, n, t, into, n, t, 0, comm);
        break;
    case 1:
        code = CALL(Scatter, scatter, from, n, t, into, n, t, 0, comm);
        break;
    case 2:
        code = CALL(Bcast, bcast, into, n, t, 0, comm);
        break;
    case 3:
        code = CALL(Reduce, reduce, from, into, n, t, MPI_SUM, 0, comm);
        break;
    case 4:
        code = CALL(Allreduce, allreduce, from, into, n, t, MPI_SUM, comm);
        break;
    case 5:
        code = CALL(Allgather, allgather, from, n, t, into, n, t, comm);
        break;
    case 6:
        code = CALL(Alltoall, alltoall, from, n, t, into, n, t, comm);
        break;
    case 7:
        code = CALL(Reduce_scatter_block, reduce_scatter_block, from, into, n, t, MPI_SUM, comm);
        break;
    case 8:
        code = CALL(Reduce_scatter, reduce_scatter, from, into, counts, t, MPI_SUM, comm);
        break;
    case 9:
        code = CALL(Scan, scan, from, into, n, t, MPI_SUM, comm);
        break;
    case 10:
        code = CALL(Exscan, exscan, from, into, n, t, MPI_SUM, comm);
        break;
    case 11:
        code = CALL(Gatherv, gatherv, from, n, t, into, counts, starts, t, 0, comm);
        break;
    case 12:
        code = CALL(Scatterv, scatterv, from, counts, starts, t, into, n, t, 0, comm);
        break;
    case 13:
        code = CALL(Allgatherv, allgatherv, from, n, t, into, counts, starts, t, comm);
        break;
    case 14:
        code = CALL(Alltoallv, alltoallv, from, counts, starts, t, into, counts, starts, t, comm);
        break;
    default:
        code = CALL(Alltoallw, alltoallw, from, counts, bytes, types, into, counts, bytes, types, comm);
    }
    return code ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void disagreement(int what, int form, const int n[2], int odd, MPI_Comm world)
{
    MPI_Comm comm;
    OK(MPI_Comm_dup(world, &comm));
    operation(what, form, n[rank == odd], comm);
    for (int i = 0; i < AFTER; i++) {
        int mine = rank + i, sum = -1, all = size * (size - 1) / 2 + size * i, many[300], sums[300], told = rank == 0 ? i : -1;
        for (int k = 0; k < 300; k++)
            many[k] = mine;
        if (MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && sum != all) {
            printf("operation %d, form %d, %d and %d elements: allreduce %d is %d\n", what, form, n[0], n[1], i, sum);
            CHECK(sum == all);
        }
        if (i % 2 && MPI_Bcast(&told, 1, MPI_INT, 0, comm) == MPI_SUCCESS)
            CHECK(told == i);
        if (i % 3 == 2 && MPI_Allreduce(many, sums, 300, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS)
            CHECK(sums[0] == all && sums[299] == all);
        MPI_Barrier(comm);
    }
    OK(MPI_Comm_free(&comm));
}

int main(void)
{
    MPI_Comm world = begin();
    for (int what = 0; what < OPERATIONS; what++)
        for (int i = 0; i < NUMBERS; i++)
            disagreement(what, (what + i) % FORMS, numbers[i], (what + i) % 2 ? size - 1 : 0, world);
    end_with(world, "nobody takes what belongs to another operation");
    return 0;
}
