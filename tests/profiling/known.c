/* SPDX-License-Identifier: Apache-2.0 */
/* A program whose MPI calls are known: a profiling library must see these and no others. Operations that the library makes of
   others inside (communicators, collectives, attributes, errors) are among them. */
#include <mpi.h>
#include <stddef.h>

static int copy(MPI_Comm old, int key, void *extra, void *in, void *out, int *flag)
{
    (void)old, (void)key, (void)extra;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    int rank, size, sum, key, numbers[64];
    MPI_Comm comm;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &sum);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Send(&rank, 1, MPI_INT, size, 0, comm);
    MPI_Barrier(comm);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Allgather(&rank, 1, MPI_INT, numbers, 1, MPI_INT, comm);
    MPI_Ibarrier(comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
    MPI_Pcontrol(1, "any", 2);
    MPI_Finalize();
    return 0;
}
