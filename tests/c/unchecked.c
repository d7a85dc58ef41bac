/* SPDX-License-Identifier: Apache-2.0 */
/* ISTHMUS_CHECK=0 leaves out the checks that protect the program from itself, and keeps those on which the library's own safety
   rests: handles, ranks, negative counts, null pointers for results.
   ranks: 1 */
#include "check.h"

static int class_of(int code)
{
    int class;
    OK(MPI_Error_class(code, &class));
    return class;
}

int main(int argc, char **argv)
{
    int value = 0, other = 0;
    MPI_Datatype uncommitted;
    OK(setenv("ISTHMUS_CHECK", "0", 1));
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Type_contiguous(1, MPI_INT, &uncommitted));
    OK(MPI_Sendrecv(&value, 1, uncommitted, 0, 0, &other, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    OK(MPI_Type_free(&uncommitted));
    OK(MPI_Allreduce(&value, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF));
    CHECK(class_of(MPI_Send(&value, 1, MPI_INT, 7, 0, MPI_COMM_SELF)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Send(&value, -1, MPI_INT, 0, 0, MPI_COMM_SELF)) == MPI_ERR_COUNT);
    CHECK(class_of(MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_SELF)) == MPI_ERR_TYPE);
    CHECK(class_of(MPI_Comm_size(MPI_COMM_SELF, NULL)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Comm_size(MPI_COMM_NULL, &value)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Wait(NULL, MPI_STATUS_IGNORE)) == MPI_ERR_ARG);
    OK(MPI_Finalize());
    return 0;
}
