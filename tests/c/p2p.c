/* SPDX-License-Identifier: Apache-2.0 */
/* Point-to-point: modes, wildcards, probes, completion of several, persistent requests, cancelling, truncation, sizes.
   ranks: 1 2 3 5 */
#include "check.h"

static int rank, size, next, before;

static void modes(void)
{
    enum { N = 1000 };
    static int out[N], in[N];
    char *buffer = malloc(4 * N * sizeof(int) + 8 * MPI_BSEND_OVERHEAD);
    int used;
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Buffer_attach(buffer, (int)(4 * N * sizeof(int)) + 8 * MPI_BSEND_OVERHEAD));
    for (int mode = 0; mode < 8; mode++) {
        for (int i = 0; i < N; i++)
            out[i] = rank * 10000 + mode * 1000 + i;
        OK(MPI_Irecv(in, N, MPI_INT, before, mode, MPI_COMM_WORLD, &request));
        OK(MPI_Barrier(MPI_COMM_WORLD)); /* ready mode needs the receive */
        MPI_Request sent = MPI_REQUEST_NULL;
        switch (mode) {
        case 0: OK(MPI_Send(out, N, MPI_INT, next, mode, MPI_COMM_WORLD)); break;
        case 1: OK(MPI_Ssend(out, N, MPI_INT, next, mode, MPI_COMM_WORLD)); break;
        case 2: OK(MPI_Rsend(out, N, MPI_INT, next, mode, MPI_COMM_WORLD)); break;
        case 3: OK(MPI_Bsend(out, N, MPI_INT, next, mode, MPI_COMM_WORLD)); break;
        case 4: OK(MPI_Isend(out, N, MPI_INT, next, mode, MPI_COMM_WORLD, &sent)); break;
        case 5: OK(MPI_Issend(out, N, MPI_INT, next, mode, MPI_COMM_WORLD, &sent)); break;
        case 6: OK(MPI_Irsend(out, N, MPI_INT, next, mode, MPI_COMM_WORLD, &sent)); break;
        case 7: OK(MPI_Ibsend(out, N, MPI_INT, next, mode, MPI_COMM_WORLD, &sent)); break;
        }
        OK(MPI_Wait(&request, &status));
        OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));
        CHECK(status.MPI_SOURCE == before && status.MPI_TAG == mode);
        for (int i = 0; i < N; i++)
            CHECK(in[i] == before * 10000 + mode * 1000 + i);
    }
    OK(MPI_Buffer_detach(&buffer, &used));
    free(buffer);
}

/* Everybody sends numbered messages to rank 0, which takes them in any order: those of one sender come in order. */
static void wildcards(void)
{
    enum { EACH = 50 };
    int got[64] = {0}, value, n;
    MPI_Request requests[EACH];
    MPI_Status status;
    int values[EACH];
    for (int i = 0; i < EACH; i++) {
        values[i] = i;
        OK(MPI_Isend(&values[i], 1, MPI_INT, 0, i % 7, MPI_COMM_WORLD, &requests[i]));
    }
    if (rank == 0) {
        for (int i = 0; i < EACH * size; i++) {
            OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
            OK(MPI_Get_count(&status, MPI_INT, &n));
            CHECK(n == 1 && status.MPI_TAG == value % 7 && value == got[status.MPI_SOURCE]++);
        }
    }
    OK(MPI_Waitall(EACH, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* Tags choose. */
    for (int tag = 0; tag < 3; tag++)
        OK(MPI_Isend(&values[tag], 1, MPI_INT, next, tag, MPI_COMM_WORLD, &requests[tag]));
    for (int tag = 2; tag >= 0; tag--) {
        OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &status));
        CHECK(value == tag && status.MPI_SOURCE == before);
    }
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
}

static void probes(void)
{
    int out[5] = {1, 2, 3, 4, 5}, in[5], n, flag = 0;
    MPI_Request request;
    MPI_Status status;
    MPI_Message message;
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status));
    CHECK(!flag);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Isend(out, 5, MPI_INT, next, 11, MPI_COMM_WORLD, &request));
    OK(MPI_Probe(MPI_ANY_SOURCE, 11, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_INT, &n));
    CHECK(n == 5 && status.MPI_SOURCE == before);
    OK(MPI_Mprobe(before, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status));
    CHECK(status.MPI_TAG == 11 && message != MPI_MESSAGE_NULL);
    OK(MPI_Iprobe(before, 11, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag); /* a matched message is not found again */
    OK(MPI_Mrecv(in, 5, MPI_INT, &message, &status));
    CHECK(message == MPI_MESSAGE_NULL && in[4] == 5);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Isend(out, 3, MPI_INT, next, 12, MPI_COMM_WORLD, &request));
    for (flag = 0; !flag;)
        OK(MPI_Improbe(MPI_ANY_SOURCE, 12, MPI_COMM_WORLD, &flag, &message, &status));
    MPI_Request receive;
    OK(MPI_Imrecv(in, 5, MPI_INT, &message, &receive));
    OK(MPI_Wait(&receive, &status));
    OK(MPI_Get_count(&status, MPI_INT, &n));
    CHECK(n == 3);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, &status));
    CHECK(message == MPI_MESSAGE_NO_PROC && status.MPI_SOURCE == MPI_PROC_NULL);
    OK(MPI_Mrecv(in, 5, MPI_INT, &message, &status));
}

static void several(void)
{
    enum { N = 6 };
    int out[N], in[N], index, found, indices[N], flag, left;
    MPI_Request sends[N], receives[N];
    MPI_Status statuses[N];
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < N; i++) {
            out[i] = 100 * rank + i;
            in[i] = -1;
            OK(MPI_Irecv(&in[i], 1, MPI_INT, before, 20 + i, MPI_COMM_WORLD, &receives[i]));
        }
        for (int i = N - 1; i >= 0; i--)
            OK(MPI_Isend(&out[i], 1, MPI_INT, next, 20 + i, MPI_COMM_WORLD, &sends[i]));
        for (left = N; left > 0;) {
            if (round == 0) {
                OK(MPI_Waitany(N, receives, &index, statuses));
                CHECK(receives[index] == MPI_REQUEST_NULL && statuses[0].MPI_TAG == 20 + index);
                left--;
            } else if (round == 1) {
                OK(MPI_Waitsome(N, receives, &found, indices, statuses));
                CHECK(found >= 1);
                for (int i = 0; i < found; i++)
                    CHECK(statuses[i].MPI_TAG == 20 + indices[i]);
                left -= found;
            } else if (round == 2) {
                OK(MPI_Testany(N, receives, &index, &flag, statuses));
                left -= flag;
            } else {
                OK(MPI_Testsome(N, receives, &found, indices, statuses));
                left -= found;
            }
        }
        OK(MPI_Waitany(N, receives, &index, statuses));
        CHECK(index == MPI_UNDEFINED);
        for (flag = 0; !flag;)
            OK(MPI_Testall(N, sends, &flag, statuses));
        for (int i = 0; i < N; i++)
            CHECK(in[i] == 100 * before + i);
    }
}

static void persistent(void)
{
    int out = 0, in = -1, flag;
    MPI_Request requests[2];
    MPI_Status status;
    OK(MPI_Recv_init(&in, 1, MPI_INT, before, 30, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Ssend_init(&out, 1, MPI_INT, next, 30, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Test(&requests[0], &flag, &status));
    CHECK(flag && status.MPI_SOURCE == MPI_ANY_SOURCE);
    for (int round = 0; round < 20; round++) {
        out = rank + round;
        OK(MPI_Startall(2, requests));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK(in == before + round && requests[0] != MPI_REQUEST_NULL);
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
}

/* Requests of several kinds together: what has come before it was asked for, persistent ones, none at all. */
static void kinds(void)
{
    enum { N = 6 };
    int in[N], index, found, indices[N], flag, seen;
    MPI_Request requests[N];
    MPI_Status statuses[N];
    for (int i = 0; i < N; i++)
        requests[i] = MPI_REQUEST_NULL;
    OK(MPI_Recv_init(&in[1], 1, MPI_INT, before, 41, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Recv_init(&in[2], 1, MPI_INT, before, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[2]));
    for (int round = 0; round < 8; round++) {
        int out[N];
        OK(MPI_Waitany(N, requests, &index, statuses));
        CHECK(index == MPI_UNDEFINED);
        OK(MPI_Testsome(N, requests, &found, indices, statuses));
        CHECK(found == MPI_UNDEFINED);
        for (int i = 1; i < N; i++) {
            out[i] = 100 * round + i;
            in[i] = -1;
        }
        for (int i = 1; i < N; i++)
            OK(MPI_Send(&out[i], 1, MPI_INT, next, 40 + i, MPI_COMM_WORLD));
        if (round % 2 == 0)
            OK(MPI_Probe(before, 40 + N - 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Start(&requests[1]));
        for (int i = 3; i < N; i++) {
            int from = i == 3 ? MPI_ANY_SOURCE : before;
            OK(MPI_Irecv(&in[i], 1, MPI_INT, from, 40 + i, MPI_COMM_WORLD, &requests[i]));
        }
        OK(MPI_Start(&requests[2]));
        for (seen = 0; seen != (1 << N) - 2;) {
            found = 1;
            indices[0] = MPI_UNDEFINED;
            flag = 1;
            if (round / 2 == 0)
                OK(MPI_Waitany(N, requests, indices, statuses));
            else if (round / 2 == 1)
                OK(MPI_Waitsome(N, requests, &found, indices, statuses));
            else if (round / 2 == 2)
                OK(MPI_Testany(N, requests, indices, &flag, statuses));
            else
                OK(MPI_Testsome(N, requests, &found, indices, statuses));
            for (int k = 0; k < (flag ? found : 0); k++) {
                int which = indices[k], n;
                CHECK(which > 0 && which < N && !(seen & 1 << which) && in[which] == 100 * round + which);
                CHECK(statuses[k].MPI_TAG == 40 + which && statuses[k].MPI_SOURCE == before);
                OK(MPI_Get_count(&statuses[k], MPI_INT, &n));
                CHECK(n == 1 && (requests[which] == MPI_REQUEST_NULL) == (which > 2));
                seen |= 1 << which;
            }
        }
    }
    OK(MPI_Start(&requests[1]));
    CHECK(MPI_Testsome(N, requests, &found, NULL, statuses) != MPI_SUCCESS);
    OK(MPI_Send(in, 1, MPI_INT, next, 41, MPI_COMM_WORLD));
    OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&requests[1]));
    OK(MPI_Request_free(&requests[2]));
}

static void mistakes(void)
{
    int out[10] = {1, 2, 3}, in[12], flag, code;
    MPI_Request request;
    MPI_Status status;
    for (int i = 0; i < 12; i++)
        in[i] = -7;
    OK(MPI_Isend(out, 10, MPI_INT, next, 40, MPI_COMM_WORLD, &request));
    code = MPI_Recv(in, 2, MPI_INT, before, 40, MPI_COMM_WORLD, &status);
    MPI_Error_class(code, &code);
    CHECK(code == MPI_ERR_TRUNCATE && in[2] == -7);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(MPI_Send(out, 1, MPI_INT, size, 0, MPI_COMM_WORLD) == MPI_ERR_RANK);
    CHECK(MPI_Send(out, 1, MPI_INT, 0, -5, MPI_COMM_WORLD) == MPI_ERR_TAG);
    CHECK(MPI_Send(out, -1, MPI_INT, 0, 0, MPI_COMM_WORLD) == MPI_ERR_COUNT);
    CHECK(MPI_Send(out, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD) == MPI_ERR_TYPE);
    OK(MPI_Irecv(in, 1, MPI_INT, before, 41, MPI_COMM_WORLD, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
    OK(MPI_Recv(in, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_INT, &code));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG && code == 0);
}

static void exchange(void)
{
    int out = rank, in = -1;
    MPI_Status status;
    OK(MPI_Sendrecv(&out, 1, MPI_INT, next, 50, &in, 1, MPI_INT, before, 50, MPI_COMM_WORLD, &status));
    CHECK(in == before);
    OK(MPI_Sendrecv_replace(&in, 1, MPI_INT, before, 51, next, 51, MPI_COMM_WORLD, &status));
    CHECK(in == rank && status.MPI_SOURCE == next);
    OK(MPI_Sendrecv(&out, 1, MPI_INT, MPI_PROC_NULL, 50, &in, 1, MPI_INT, MPI_PROC_NULL, 50, MPI_COMM_WORLD, &status));
    CHECK(in == rank);
    OK(MPI_Sendrecv(NULL, 0, MPI_INT, next, 52, NULL, 0, MPI_INT, before, 52, MPI_COMM_WORLD, &status));
}

/* Lengths around every limit that the transports may have, contiguous and every second int. */
static void lengths(void)
{
    static const int all[] = {1, 15, 16, 1000, 16383, 16384, 16385, 65536, 262144, 2097152};
    int most = 2097152;
    int *out = malloc(2 * (size_t)most * sizeof *out), *in = malloc(2 * (size_t)most * sizeof *in);
    MPI_Request requests[2];
    CHECK(out && in);
    for (int which = 0; which < (int)(sizeof all / sizeof *all); which++) {
        for (int strided = 0; strided < 2; strided++) {
            int n = all[which], step = 1 + strided, m;
            MPI_Datatype type;
            MPI_Status statuses[2];
            OK(MPI_Type_vector(n, 1, step, MPI_INT, &type));
            OK(MPI_Type_commit(&type));
            for (int i = 0; i < n * step; i++)
                out[i] = i ^ rank ^ n, in[i] = -1;
            OK(MPI_Irecv(in, 1, type, before, 60, MPI_COMM_WORLD, &requests[0]));
            OK(MPI_Isend(out, 1, type, next, 60, MPI_COMM_WORLD, &requests[1]));
            OK(MPI_Waitall(2, requests, statuses));
            OK(MPI_Get_elements(&statuses[0], type, &m));
            CHECK(m == n);
            for (int i = 0; i < n; i++)
                CHECK(in[i * step] == ((i * step) ^ before ^ n));
            for (int i = 1; strided && i < n * step; i += 2)
                CHECK(in[i] == -1);
            OK(MPI_Type_free(&type));
        }
    }
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size;
    before = (rank + size - 1) % size;
    modes();
    wildcards();
    probes();
    several();
    persistent();
    kinds();
    mistakes();
    exchange();
    lengths();
    OK(MPI_Finalize());
    return 0;
}
