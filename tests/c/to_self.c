/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a process to itself: received before they are sent, and afterwards, in order; too long, probed, cancelled; more than may be kept.
   ranks: 1 2 */
#include "check.h"

static int rank;

enum { LONGEST = 80, EDGE = 24 };

static char out[LONGEST], room[LONGEST + EDGE];

static void judge(int length, int salt)
{
    for (int i = 0; i < (int)sizeof room; i++)
        CHECK(room[i] == (i < length ? (char)(i * 7 + salt + rank) : 0x55));
}

static void sent_to_self(int length, int tag)
{
    MPI_Request request;
    for (int i = 0; i < length; i++)
        out[i] = (char)(i * 7 + tag + rank);
    OK(MPI_Isend(out, length, MPI_BYTE, rank, tag, MPI_COMM_WORLD, &request));
    /* What has been sent is not looked at again, received or not. */
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    memset(out, 0, sizeof out);
}

static void to_self(void)
{
    MPI_Request request;
    MPI_Status status;
    int flag, count, class;
    for (int length = 0; length <= LONGEST; length++)
        for (int first = 0; first < 2; first++) {
            memset(room, 0x55, sizeof room);
            if (first)
                OK(MPI_Irecv(room, LONGEST, MPI_BYTE, MPI_ANY_SOURCE, 40, MPI_COMM_WORLD, &request));
            sent_to_self(length, 40);
            if (!first)
                OK(MPI_Irecv(room, LONGEST, MPI_BYTE, rank, MPI_ANY_TAG, MPI_COMM_WORLD, &request));
            OK(MPI_Wait(&request, &status));
            OK(MPI_Get_count(&status, MPI_BYTE, &count));
            CHECK(count == length && status.MPI_SOURCE == rank && status.MPI_TAG == 40);
            judge(length, 40);
        }
    for (int tag = 0; tag < 3; tag++)
        sent_to_self(8, tag);
    OK(MPI_Iprobe(rank, 1, MPI_COMM_WORLD, &flag, &status));
    CHECK(flag && status.MPI_TAG == 1);
    for (int tag = 0; tag < 3; tag++) {
        memset(room, 0x55, sizeof room);
        OK(MPI_Recv(room, 8, MPI_BYTE, rank, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        CHECK(status.MPI_TAG == tag);
        judge(8, tag);
    }
    memset(room, 0x55, sizeof room);
    OK(MPI_Irecv(room, 8, MPI_BYTE, rank, 0, MPI_COMM_WORLD, &request));
    sent_to_self(16, 0);
    OK(MPI_Error_class(MPI_Wait(&request, &status), &class));
    CHECK(class == MPI_ERR_TRUNCATE);
    judge(8, 0);
    OK(MPI_Isend(out, 8, MPI_BYTE, rank, 41, MPI_COMM_WORLD, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
    OK(MPI_Iprobe(rank, 41, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    /* So many that no copy may be kept any more: whatever is not posted waits at its sender. */
    enum { MANY = 3000, LONG = 50000 };
    static char many[LONG], taken[LONG];
    static MPI_Request requests[MANY];
    for (int n = 0; n < MANY; n++) {
        memset(many, n, 100);
        OK(MPI_Isend(many, n % 10 ? 100 : LONG, MPI_BYTE, rank, n, MPI_COMM_WORLD, &requests[n]));
        OK(MPI_Test(&requests[n], &flag, MPI_STATUS_IGNORE));
        if (!flag)
            break;
    }
    for (int n = 0; n < MANY && (n == 0 || requests[n - 1] == MPI_REQUEST_NULL); n++) {
        OK(MPI_Iprobe(rank, n, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        if (!flag)
            break;
        OK(MPI_Recv(taken, LONG, MPI_BYTE, rank, n, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(taken[0] == (char)n && taken[99] == (char)n);
        OK(MPI_Wait(&requests[n], MPI_STATUS_IGNORE));
    }
    OK(MPI_Iprobe(rank, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    to_self();
    OK(MPI_Finalize());
    return 0;
}
