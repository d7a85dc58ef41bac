/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of calls that make communicators which must be the same on all processes: whoever differs from the process that speaks for all is told,
   in the message that the call sends anyway, and the communicator from which it was made stays usable.
   ranks: 2 3 5 */
#include "check.h"

enum { DIMENSIONS, PERIODS, NUMBER, SMALLER, EDGES, GROUP, CASES };

static int rank, size;

static int make(int what, int odd, MPI_Comm comm, MPI_Comm *made)
{
    int dims[2] = {size, 1}, periods[2] = {0, 0}, index[8], edges[8], ranks[2] = {0, size - 1};
    switch (what) {
    case DIMENSIONS:
        dims[0] = odd ? 1 : size;
        dims[1] = odd ? size : 1;
        return MPI_Cart_create(comm, 2, dims, periods, 0, made);
    case PERIODS:
        periods[0] = odd;
        return MPI_Cart_create(comm, 1, dims, periods, 0, made);
    case NUMBER:
        return MPI_Cart_create(comm, odd ? 2 : 1, dims, periods, 0, made);
    case SMALLER:
        dims[0] = odd ? size : size - 1;
        return MPI_Cart_create(comm, 1, dims, periods, 0, made);
    case EDGES:
        for (int node = 0; node < size; node++) {
            index[node] = node + 1;
            edges[node] = odd ? node : (node + 1) % size;
        }
        return MPI_Graph_create(comm, size, index, edges, 0, made);
    default: {
        MPI_Group all, some;
        OK(MPI_Comm_group(comm, &all));
        OK(MPI_Group_incl(all, odd ? 1 : 2, odd ? ranks + 1 : ranks, &some));
        int code = MPI_Comm_create(comm, some, made);
        OK(MPI_Group_free(&all));
        OK(MPI_Group_free(&some));
        return code;
    }
    }
}

int main(int argc, char **argv)
{
    MPI_Comm world;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &world));
    OK(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN));
    OK(MPI_Comm_rank(world, &rank));
    OK(MPI_Comm_size(world, &size));
    for (int what = 0; what < CASES; what++) {
        int odd = rank == size - 1, class, failed, all, sum;
        MPI_Comm made = MPI_COMM_NULL;
        OK(MPI_Error_class(make(what, odd, world, &made), &class));
        CHECK(class == MPI_SUCCESS || class == MPI_ERR_NOT_SAME);
        CHECK(what == GROUP || (class != MPI_SUCCESS) == odd);
        CHECK(class == MPI_SUCCESS || made == MPI_COMM_NULL);
        failed = class != MPI_SUCCESS;
        OK(MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, world));
        CHECK(all > 0);
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, world));
        CHECK(sum == size * (size - 1) / 2);
        if (made != MPI_COMM_NULL && !failed && what != SMALLER)
            MPI_Comm_free(&made);
        /* With the same arguments all is well. */
        OK(make(what, 0, world, &made));
        if (made != MPI_COMM_NULL)
            OK(MPI_Comm_free(&made));
    }
    OK(MPI_Comm_free(&world));
    OK(MPI_Finalize());
    if (rank == 0)
        printf("arguments that must be the same are compared\n");
    return 0;
}
