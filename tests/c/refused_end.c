/* SPDX-License-Identifier: Apache-2.0 */
/* A callback that refuses while MPI_Finalize deletes what is cached: the other callbacks run, the error is told, and the process has
   left the job.
   ranks: 1 2 */
#include "check.h"

static int ran, refused;

static int deletes(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    ++*(int *)value;
    return MPI_SUCCESS;
}

static int refuses(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    ++*(int *)value;
    return MPI_ERR_OTHER;
}

int main(int argc, char **argv)
{
    int first, second, over = 0;
    MPI_Init(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deletes, &first, NULL));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuses, &second, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, first, &ran));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, second, &refused));
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, first, &ran));
    int code = MPI_Finalize();
    OK(MPI_Finalized(&over));
    return !(code != MPI_SUCCESS && over && refused == 1 && ran == 2);
}
