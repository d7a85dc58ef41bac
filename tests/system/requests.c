/* SPDX-License-Identifier: Apache-2.0 */
/* A process that dies in a handler, of which all hear who wait for it: one for a reply, one for a flush, one for any request. */
#include <isthmus.h>
#include <signal.h>
#include <stdio.h>

static void die(isthmus_call *call, const void *data, MPI_Count bytes, void *user)
{
    (void)call, (void)data, (void)bytes, (void)user;
    raise(SIGKILL);
}

static void say(int rank, const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "fine";
    int length;
    if (code != MPI_SUCCESS)
        MPI_Error_string(code, text, &length);
    printf("rank %d: %s: %s\n", rank, what, text);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    isthmus_handler handler;
    MPI_Request request = MPI_REQUEST_NULL;
    char reply[8];
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    isthmus_handler_register("die", die, NULL, 0, &handler);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        isthmus_request_ask(NULL, 0, reply, sizeof reply, size - 1, handler, MPI_COMM_WORLD, 0, &request);
        say(rank, "reply", MPI_Wait(&request, MPI_STATUS_IGNORE));
        say(rank, "send", isthmus_request_send(NULL, 0, size - 1, handler, MPI_COMM_WORLD, 0));
    } else if (rank == 1 && size > 2) {
        say(rank, "flush", isthmus_request_flush(size - 1, MPI_COMM_WORLD) != MPI_SUCCESS
                               ? MPI_SUCCESS
                               : isthmus_handlers_run(1, NULL));
    } else if (rank == size - 1) {
        while (isthmus_handlers_run(1, NULL) == MPI_SUCCESS)
            ;
    } else {
        say(rank, "any", isthmus_handlers_run(1, NULL));
    }
    MPI_Finalize();
    return 0;
}
