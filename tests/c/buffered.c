/* SPDX-License-Identifier: Apache-2.0 */
/* Buffered mode: which buffer a message uses, when it is full, what detaching and flushing wait for.
   ranks: 2 3 */
#include "check.h"

enum { N = 1 << 18, BYTES = N * (int)sizeof(int) };

static int rank, size;

static void receive(MPI_Comm comm, int tag, int *in)
{
    OK(MPI_Recv(in, N, MPI_INT, 0, tag, comm, MPI_STATUS_IGNORE));
    for (int i = 0; i < N; i++)
        CHECK(in[i] == tag + i);
}

/* A communicator of a session uses the buffer of the first that has one: itself, its session, the process. */
static void session_buffer(void)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm, copy;
    MPI_Request request;
    char space[64 + MPI_BSEND_OVERHEAD];
    int value = 5, got = 0, room;
    void *address;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://SELF", &group));
    OK(MPI_Comm_create_from_group(group, "buffers", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Comm_dup(comm, &copy));
    CHECK(MPI_Bsend(&value, 1, MPI_INT, 0, 0, copy) == MPI_ERR_BUFFER);
    OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
    OK(MPI_Bsend(&value, 1, MPI_INT, 0, 0, copy));
    OK(MPI_Recv(&got, 1, MPI_INT, 0, 0, copy, MPI_STATUS_IGNORE));
    CHECK(got == 5);
    got = 0;
    /* The session has one now, which is full before that of the process is. */
    OK(MPI_Session_attach_buffer(session, space, sizeof space));
    OK(MPI_Bsend(&value, 1, MPI_INT, 0, 0, copy));
    CHECK(MPI_Bsend(space, sizeof space, MPI_CHAR, 0, 0, comm) == MPI_ERR_BUFFER);
    OK(MPI_Recv(&got, 1, MPI_INT, 0, 0, copy, MPI_STATUS_IGNORE));
    CHECK(got == 5);
    OK(MPI_Session_flush_buffer(session));
    OK(MPI_Session_iflush_buffer(session, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Session_detach_buffer(session, &address, &room));
    CHECK(address == space && room == (int)sizeof space);
    OK(MPI_Buffer_detach(&address, &room));
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Session_finalize(&session));
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    MPI_Request request;
    int room = BYTES + MPI_BSEND_OVERHEAD, got, flag, token = 0;
    MPI_Count large;
    int *data = malloc(BYTES), *space = malloc(room), *own = malloc(2 * room);
    void *address;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    if (rank == 0) {
        for (int i = 0; i < N; i++)
            data[i] = 1 + i;
        CHECK(MPI_Bsend(data, N, MPI_INT, 1, 1, MPI_COMM_WORLD) == MPI_ERR_BUFFER);
        CHECK(MPI_Buffer_detach(&address, &got) == MPI_ERR_BUFFER);
        OK(MPI_Buffer_attach(space, room));
        CHECK(MPI_Buffer_attach(space, room) == MPI_ERR_BUFFER);
        OK(MPI_Comm_attach_buffer_c(comm, own, 2 * room));
        /* The message is too long to leave unasked: the buffer is full until it is received. */
        OK(MPI_Bsend(data, N, MPI_INT, 1, 1, MPI_COMM_WORLD));
        memset(data, 0, BYTES);
        CHECK(MPI_Bsend(data, 1, MPI_INT, 1, 1, MPI_COMM_WORLD) == MPI_ERR_BUFFER);
        OK(MPI_Buffer_iflush(&request));
        OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
        /* The communicator has its own. */
        for (int i = 0; i < N; i++)
            data[i] = 2 + i;
        OK(MPI_Bsend(data, N, MPI_INT, 1, 2, comm));
        OK(MPI_Ibsend(data, N, MPI_INT, 1, 2, comm, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(MPI_Bsend(data, N, MPI_INT, 1, 2, comm) == MPI_ERR_BUFFER);
        OK(MPI_Send(&token, 1, MPI_INT, 1, 9, MPI_COMM_WORLD));
        OK(MPI_Buffer_flush());
        for (int i = 0; i < N; i++)
            data[i] = 3 + i;
        OK(MPI_Bsend(data, N, MPI_INT, 1, 3, MPI_COMM_WORLD));
        OK(MPI_Send(&token, 1, MPI_INT, 1, 9, MPI_COMM_WORLD));
        OK(MPI_Comm_flush_buffer(comm));
        OK(MPI_Comm_detach_buffer_c(comm, &address, &large));
        CHECK(address == own && large == 2 * room);
        OK(MPI_Buffer_detach(&address, &got));
        CHECK(address == space && got == room);
        /* As much as there is. */
        OK(MPI_Comm_attach_buffer(comm, MPI_BUFFER_AUTOMATIC, 0));
        for (int m = 0; m < 5; m++) {
            for (int i = 0; i < N; i++)
                data[i] = 4 + m + i;
            OK(MPI_Bsend(data, N, MPI_INT, 1, 4 + m, comm));
        }
        OK(MPI_Comm_detach_buffer(comm, &address, &got));
        CHECK(address == MPI_BUFFER_AUTOMATIC);
    } else if (rank == 1) {
        OK(MPI_Recv(&token, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        receive(MPI_COMM_WORLD, 1, data);
        OK(MPI_Recv(&token, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        receive(comm, 2, data);
        receive(comm, 2, data);
        receive(MPI_COMM_WORLD, 3, data);
        for (int m = 4; m >= 0; m--)
            receive(comm, 4 + m, data);
    }
    OK(MPI_Comm_free(&comm));
    session_buffer();
    if (rank == 0)
        printf("messages use the right buffer, which is full and empty when it should be\n");
    OK(MPI_Finalize());
    return 0;
}
