/* SPDX-License-Identifier: Apache-2.0 */
/* A function that is not implemented says so through the error handler: a class, a text, and its name.
   It must have no other effect. `isthmus info --functions` lists them.
   ranks: 1 2 */
#include "check.h"

static int called;

static void handler(MPI_Comm *comm, int *code, ...)
{
    int class;
    (void)comm;
    MPI_Error_class(*code, &class);
    CHECK(class == MPI_ERR_UNSUPPORTED_OPERATION);
    called++;
}

int main(int argc, char **argv)
{
    MPI_Errhandler own;
    MPI_Comm other = MPI_COMM_NULL;
    int class, length, code;
    char text[MPI_MAX_ERROR_STRING];

    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_create_errhandler(handler, &own));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, own));
    code = MPI_Comm_spawn("program", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
    CHECK(code != MPI_SUCCESS);
    CHECK(called == 1);
    CHECK(other == MPI_COMM_NULL);

    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    code = MPI_Comm_spawn("program", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_UNSUPPORTED_OPERATION);
    OK(MPI_Error_string(code, text, &length));
    CHECK(length > 0 && (size_t)length == strlen(text));
    CHECK(called == 1);
    OK(MPI_Errhandler_free(&own));
    OK(MPI_Finalize());
    return 0;
}
