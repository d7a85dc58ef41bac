/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that take the shortest way, and those that nearly do: every length about a word, types whose elements follow each other
   and types that only look like it, wrong arguments, messages that are too long or too short for their room. Operations of groups that
   are over when they begin, and others, ended by each function.
   ranks: 2 3 */
#include "check.h"

static int rank, size, next, before;

enum { LONGEST = 80, EDGE = 24 };

static char out[LONGEST], room[LONGEST + 2 * EDGE];

static void fill(int length, int salt)
{
    for (int i = 0; i < length; i++)
        out[i] = (char)(i * 7 + salt + rank);
    memset(room, 0x55, sizeof room);
}

static void judge(int at, int length, int salt)
{
    for (int i = 0; i < (int)sizeof room; i++) {
        int inside = i >= at && i < at + length;
        CHECK(room[i] == (inside ? (char)((i - at) * 7 + salt + before) : 0x55));
    }
}

/* Sends to the next process and receives from the one before it, by each pair of functions. */
static void ring(int way, int at, int length, MPI_Status *status)
{
    MPI_Request requests[2];
    char *in = room + at;
    switch (way) {
    case 0: /* short enough to leave before it is received */
        OK(MPI_Send(out, length, MPI_BYTE, next, way, MPI_COMM_WORLD));
        OK(MPI_Recv(in, length, MPI_BYTE, before, way, MPI_COMM_WORLD, status));
        break;
    case 1: OK(MPI_Sendrecv(out, length, MPI_BYTE, next, way, in, length, MPI_BYTE, before, way, MPI_COMM_WORLD, status)); break;
    case 2:
        OK(MPI_Irecv(in, length, MPI_BYTE, before, way, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Isend(out, length, MPI_BYTE, next, way, MPI_COMM_WORLD, &requests[1]));
        OK(MPI_Wait(&requests[0], status));
        OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
        CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
        break;
    case 3:
        OK(MPI_Isend(out, length, MPI_BYTE, next, way, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Barrier(MPI_COMM_WORLD)); /* it may be here before it is asked for */
        OK(MPI_Recv(in, length, MPI_BYTE, before, way, MPI_COMM_WORLD, status));
        OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        break;
    }
}

static void lengths(void)
{
    for (int way = 0; way < 4; way++)
        for (int length = 0; length <= LONGEST; length++) {
            MPI_Status status;
            int at = length % EDGE, count;
            fill(length, way + length);
            status.MPI_ERROR = 4711;
            ring(way, at, length, &status);
            judge(at, length, way + length);
            OK(MPI_Get_count(&status, MPI_BYTE, &count));
            CHECK(count == length && status.MPI_SOURCE == before && status.MPI_TAG == way && status.MPI_ERROR == 4711);
        }
}

/* Of each type: two elements, which do not follow each other where it has a gap, or begins elsewhere than the buffer. */
static void types(void)
{
    MPI_Datatype made[6];
    int one = 1, four = 4, lengths[2] = {1, 1};
    MPI_Aint places[2] = {0, 4};
    MPI_Datatype ints[2] = {MPI_INT, MPI_INT};
    OK(MPI_Type_contiguous(2, MPI_INT, &made[0]));
    OK(MPI_Type_create_resized(MPI_INT, 0, 12, &made[1]));
    OK(MPI_Type_create_hindexed(1, &one, (MPI_Aint[]){8}, MPI_INT, &made[2]));
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &made[3]));
    OK(MPI_Type_create_struct(2, lengths, places, ints, &made[4]));
    OK(MPI_Type_indexed(1, &one, &four, MPI_INT, &made[5]));
    for (int n = 0; n < 6; n++) {
        int values[32], got[32], want[32];
        MPI_Datatype copy;
        OK(MPI_Type_commit(&made[n]));
        OK(MPI_Type_dup(made[n], &copy));
        for (int i = 0; i < 32; i++) {
            values[i] = rank * 100 + i;
            got[i] = want[i] = -1;
        }
        int used[][5] = {{4, 0, 1, 2, 3}, {2, 0, 3}, {2, 2, 3}, {4, 0, 2, 3, 5}, {4, 0, 1, 2, 3}, {2, 4, 5}};
        for (int i = 1; i <= used[n][0]; i++)
            want[used[n][i]] = before * 100 + used[n][i];
        OK(MPI_Send(values, 2, made[n], next, n, MPI_COMM_WORLD));
        OK(MPI_Recv(got, 2, copy, before, n, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(memcmp(got, want, sizeof got) == 0);
        memset(got, 0xff, sizeof got);
        OK(MPI_Sendrecv(values, 2, copy, next, n, got, 2, made[n], before, n, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(memcmp(got, want, sizeof got) == 0);
        OK(MPI_Type_free(&copy));
        OK(MPI_Type_free(&made[n]));
    }
}

static int class_of(int code)
{
    int class;
    OK(MPI_Error_class(code, &class));
    return class;
}

#define FAILS(expected, call) CHECK(class_of(call) == (expected))

static void mistakes(void)
{
    MPI_Datatype raw;
    MPI_Request request;
    int there;
    OK(MPI_Type_contiguous(8, MPI_BYTE, &raw));
    FAILS(MPI_ERR_TYPE, MPI_Send(out, 1, raw, next, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TYPE, MPI_Recv(room, 1, raw, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_TYPE, MPI_Send(out, 1, MPI_DATATYPE_NULL, next, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_COUNT, MPI_Send(out, -1, MPI_BYTE, next, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TAG, MPI_Send(out, 1, MPI_BYTE, next, -7, MPI_COMM_WORLD));
    FAILS(MPI_ERR_RANK, MPI_Send(out, 1, MPI_BYTE, size, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_RANK, MPI_Recv(room, 1, MPI_BYTE, size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_BUFFER, MPI_Send(NULL, 1, MPI_BYTE, next, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_BUFFER, MPI_Recv(NULL, 1, MPI_BYTE, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_BUFFER, MPI_Irecv(NULL, 1, MPI_BYTE, before, 0, MPI_COMM_WORLD, &request));
    FAILS(MPI_ERR_ARG, MPI_Isend(out, 1, MPI_BYTE, next, 0, MPI_COMM_WORLD, NULL));
    /* Of a call with a wrong half the right one is not done either. */
    FAILS(MPI_ERR_TAG, MPI_Sendrecv(out, 1, MPI_BYTE, next, 0, room, 1, MPI_BYTE, before, -7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE));
    CHECK(!there);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Send(NULL, 0, MPI_BYTE, next, 0, MPI_COMM_WORLD));
    OK(MPI_Recv(NULL, 0, MPI_BYTE, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Send(out, 1, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Recv(room, 1, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Type_commit(&raw));
    OK(MPI_Sendrecv(out, 1, raw, next, 0, room, 1, raw, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Type_free(&raw));
}

/* Messages of 24 bytes into room for 16 and for 40. */
static void other_room(void)
{
    for (int way = 0; way < 3; way++)
        for (int bytes = 16; bytes <= 40; bytes += 24) {
            MPI_Status status = {0};
            MPI_Request request;
            int count, code;
            fill(24, way);
            if (way == 0) {
                OK(MPI_Send(out, 24, MPI_BYTE, next, way, MPI_COMM_WORLD));
                code = MPI_Recv(room, bytes, MPI_BYTE, before, way, MPI_COMM_WORLD, &status);
            } else if (way == 1) {
                code = MPI_Sendrecv(out, 24, MPI_BYTE, next, way, room, bytes, MPI_BYTE, before, way, MPI_COMM_WORLD, &status);
            } else {
                OK(MPI_Irecv(room, bytes, MPI_BYTE, before, way, MPI_COMM_WORLD, &request));
                OK(MPI_Send(out, 24, MPI_BYTE, next, way, MPI_COMM_WORLD));
                code = MPI_Wait(&request, &status);
            }
            CHECK(class_of(code) == (bytes < 24 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
            judge(0, bytes < 24 ? bytes : 24, way);
            OK(MPI_Get_count(&status, MPI_BYTE, &count));
            CHECK(status.MPI_SOURCE == before && status.MPI_TAG == way && count == (bytes < 24 ? bytes : 24));
        }
}

static void end(int how, MPI_Request *request)
{
    MPI_Status status = {0};
    int flag = 0, which, count;
    if (how % 2) {
        OK(MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE));
        CHECK(*request != MPI_REQUEST_NULL);
    }
    switch (how / 2) {
    case 0: OK(MPI_Wait(request, &status)); break;
    case 1:
        for (flag = 0; !flag;)
            OK(MPI_Test(request, &flag, &status));
        break;
    case 2: OK(MPI_Waitall(1, request, &status)); break;
    case 3: OK(MPI_Waitany(1, request, &which, &status)); break;
    case 4: OK(MPI_Waitsome(1, request, &count, &which, &status)); break;
    case 5:
        for (flag = 0; !flag;)
            OK(MPI_Testall(1, request, &flag, &status));
        break;
    }
    CHECK(*request == MPI_REQUEST_NULL);
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(count == 0 && !flag);
}

/* The root's are over at once, those of others mostly not; of nothing all are. */
static void groups(void)
{
    for (int how = 0; how < 12; how++)
        for (int root = 0; root < size; root++) {
            MPI_Request requests[4];
            int mine = rank + how, sum = 0, told = rank == root ? how * 7 : -1, none;
            OK(MPI_Ibcast(&told, 1, MPI_INT, root, MPI_COMM_WORLD, &requests[0]));
            OK(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]));
            OK(MPI_Ibcast(&none, 0, MPI_INT, root, MPI_COMM_WORLD, &requests[2]));
            OK(MPI_Ibarrier(MPI_COMM_WORLD, &requests[3]));
            for (int n = 0; n < 4; n++)
                end(how, &requests[(n + rank) % 4]);
            CHECK(told == how * 7 && sum == size * (size - 1) / 2 + size * how);
        }
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    next = (rank + 1) % size;
    before = (rank + size - 1) % size;
    lengths();
    types();
    mistakes();
    other_room();
    groups();
    OK(MPI_Finalize());
    return 0;
}
