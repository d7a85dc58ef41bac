/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a communicator that do not call the same: nobody waits for ever, and the error says who did what.
   ranks: 2 4 */
#include "disagree.h"
#include <unistd.h>

static char data[1 << 20], more[1 << 20];

enum { FIRST_SHORT = 8, SAME_WAY = 12, AHEAD = 14, FIRST_KEPT = 15, FIRST_MADE = 19, PIECES = 27, CASES = 28 };

static int unequal(int what, int odd, MPI_Comm comm)
{
    static const int given[] = {4, 100, 1000, 100, 3, 4}, expected[] = {100, 4, 100, 1000, 8, 100};
    int bytes = (odd ? expected : given)[what - FIRST_SHORT];
    MPI_Request request;
    if (what < FIRST_SHORT + 5)
        return MPI_Bcast(data, bytes, MPI_BYTE, 0, comm);
    OK(MPI_Ibcast(data, bytes, MPI_BYTE, 0, comm, &request));
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static int pieces(int odd, MPI_Comm comm)
{
    return MPI_Scan(data, more, odd ? 8000 : 5000, MPI_INT, MPI_SUM, comm);
}

/* A persistent operation, once. */
static int started(MPI_Request request)
{
    int code = MPI_Start(&request);
    if (code == MPI_SUCCESS)
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    OK(MPI_Request_free(&request));
    return code;
}

static int persistent(int what, int odd, MPI_Comm comm)
{
    MPI_Request request, first;
    int code, after;
    if (what == 0) { /* An operation, and the same as a persistent one. */
        if (!odd)
            return MPI_Barrier(comm);
        code = MPI_Barrier_init(comm, MPI_INFO_NULL, &request);
        return code ? code : started(request);
    }
    if (what == 1) { /* Another operation than the persistent one. */
        if (!odd)
            return MPI_Allgather(more, 8, MPI_BYTE, data, 8, MPI_BYTE, comm);
        code = MPI_Bcast_init(data, 8, MPI_BYTE, 0, comm, MPI_INFO_NULL, &request);
        return code ? code : started(request);
    }
    if (what == 3) { /* The first rank alone makes a persistent one. */
        if (rank > 0)
            return MPI_Barrier(comm);
        code = MPI_Barrier_init(comm, MPI_INFO_NULL, &request);
        return code ? code : started(request);
    }
    /* Two persistent ones, of which one is started when the other one has been made. */
    OK(MPI_Barrier_init(comm, MPI_INFO_NULL, &first));
    if (odd)
        code = MPI_Barrier_init(comm, MPI_INFO_NULL, &request);
    else
        code = MPI_Bcast_init(data, 8, MPI_BYTE, size - 1, comm, MPI_INFO_NULL, &request);
    if (code) {
        OK(MPI_Request_free(&first));
        return code;
    }
    OK(MPI_Start(&first));
    code = started(request);
    after = MPI_Wait(&first, MPI_STATUS_IGNORE);
    OK(MPI_Request_free(&first));
    return code ? code : after;
}

/* Calls that make communicators. */
static int made(int how, MPI_Comm comm)
{
    int dims[1] = {size}, periods[1] = {0}, code;
    MPI_Comm comm_made = MPI_COMM_NULL;
    MPI_Request request;
    switch (how) {
    case 0:
        code = MPI_Comm_dup(comm, &comm_made);
        break;
    case 1:
        code = MPI_Comm_split(comm, 0, 0, &comm_made);
        break;
    case 2:
        code = MPI_Cart_create(comm, 1, dims, periods, 0, &comm_made);
        break;
    default:
        code = MPI_Comm_idup(comm, &comm_made, &request);
        code = code ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (code == MPI_SUCCESS && comm_made != MPI_COMM_NULL)
        OK(MPI_Comm_free(&comm_made));
    return code;
}

/* Members of which one makes a communicator, or makes another one. */
static int making(int what, int odd, MPI_Comm comm)
{
    switch (what) {
    case 0:
        return odd ? made(0, comm) : MPI_Barrier(comm);
    case 1:
        return odd ? MPI_Barrier(comm) : made(1, comm);
    case 2:
        return odd ? made(2, comm) : MPI_Allreduce(data, more, 2, MPI_INT, MPI_SUM, comm);
    case 3:
        return odd ? made(3, comm) : MPI_Bcast(data, 8, MPI_BYTE, size - 1, comm);
    case 4:
        return made(odd ? 0 : 1, comm);
    case 5:
        return odd ? MPI_Allgather(more, 8, MPI_BYTE, data, 8, MPI_BYTE, comm) : made(0, comm);
    /* As many bytes as the calls tell each other. */
    case 6:
        return odd ? MPI_Bcast(data, 16, MPI_BYTE, 0, comm) : made(0, comm);
    default:
        return odd ? made(1, comm) : MPI_Allgather(more, 24, MPI_BYTE, data, 24, MPI_BYTE, comm);
    }
}

/* The last rank calls something else. Whoever notices has an error; afterwards the communicator is of no use, others are. */
static void mismatch(int what, MPI_Comm world)
{
    MPI_Comm comm;
    char result[1 << 8];
    int odd = rank == size - 1, code = MPI_SUCCESS, after, failed, any = 0;
    OK(MPI_Comm_dup(world, &comm));
    switch (what) {
    case 0: /* A broadcast of one cell, expected in several rounds. */
        code = MPI_Bcast(data, odd ? 1 << 19 : 8, MPI_BYTE, 0, comm);
        break;
    case 1: /* And the other way round. */
        code = MPI_Bcast(data, odd ? 8 : 1 << 20, MPI_BYTE, 0, comm);
        break;
    case 2: /* Other operations. */
        code = odd ? MPI_Barrier(comm) : MPI_Bcast(data, 1 << 16, MPI_BYTE, size - 1, comm);
        break;
    case 3: /* Other lengths of what all give. */
        code = MPI_Allgather(result, odd ? 4 : 8, MPI_BYTE, data, odd ? 4 : 8, MPI_BYTE, comm);
        break;
    case 4:
        code = MPI_Allgather(data, odd ? 4 : 1024, MPI_BYTE, data + (1 << 19), odd ? 4 : 1024, MPI_BYTE, comm);
        break;
    case 5: /* Other lengths of what all may copy from each other. */
        code = MPI_Alltoall(data, odd ? 40000 : 50000, MPI_BYTE, more, odd ? 40000 : 50000, MPI_BYTE, comm);
        break;
    case 6:
        for (int i = 0; i < 3 && code == MPI_SUCCESS; i++)
            code = MPI_Bcast(data, odd ? 200000 : 40000, MPI_BYTE, 0, comm);
        break;
    case 7: /* Other roots; or messages in pieces, of which the last one does not come. */
    case PIECES:
        code = what == PIECES ? pieces(odd, comm) : MPI_Bcast(data, 1 << 16, MPI_BYTE, odd ? 0 : size - 1, comm);
        code = code ? code : MPI_Barrier(comm);
        break;
    case AHEAD: /* The root is as far ahead as it gets, and waits, when the others come. */
        if (rank > 0)
            usleep(20000);
        for (int i = 0; i < 300 && code == MPI_SUCCESS; i++)
            code = MPI_Bcast(data, odd ? 100 : 4, MPI_BYTE, 0, comm);
        code = code ? code : MPI_Barrier(comm);
        break;
    case FIRST_KEPT:
    case FIRST_KEPT + 1:
    case FIRST_KEPT + 2:
    case FIRST_KEPT + 3:
        code = persistent(what - FIRST_KEPT, odd, comm);
        break;
    case FIRST_MADE:
    case FIRST_MADE + 1:
    case FIRST_MADE + 2:
    case FIRST_MADE + 3:
    case FIRST_MADE + 4:
    case FIRST_MADE + 5:
    case FIRST_MADE + 6:
    case FIRST_MADE + 7: /* The first rank is not held up when its part is to say something to all. */
        code = making(what - FIRST_MADE, odd, comm);
        code = code ? code : MPI_Barrier(comm);
        break;
    default: /* Short lengths that go different ways; what comes next is no part of it, and nobody waits for it for ever. */
        code = unequal(what, odd, comm);
        after = MPI_Barrier(comm);
        CHECK(!after == (what == SAME_WAY));
        code = code ? code : after;
    }
    failed = code != MPI_SUCCESS;
    if (failed) {
        char text[MPI_MAX_ERROR_STRING];
        int length;
        OK(MPI_Error_string(code, text, &length));
        CHECK(length > 0);
    }
    OK(MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, world));
    CHECK(any);
    if (what == 3) {
        int class;
        OK(MPI_Error_class(code, &class));
        CHECK(class == MPI_ERR_TRUNCATE);
    }
    OK(MPI_Comm_free(&comm));
}

int main(void)
{
    MPI_Comm world = begin();
    for (int what = 0; what < CASES; what++)
        mismatch(what, world);
    end_with(world, "members that disagree are told so");
    return 0;
}
