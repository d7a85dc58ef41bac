/* SPDX-License-Identifier: Apache-2.0 */
/* A send and a receive in one call: with and without a partner on either side, from anybody, with any tag, of every length, out of the
   buffer that is received into. Sends and receives with nobody at the other end. Wrong arguments, of which nothing may be sent; a revoked
   communicator.
   ranks: 1 2 3 4 */
#include "check.h"
#include <mpi-ext.h>

enum { LONGEST = 3 << 20, WAYS = 4 };

static int rank, size, next, before;
static unsigned char out[LONGEST], in[LONGEST];

static unsigned char byte(int from, int at, int salt) { return (unsigned char)(from * 31 + at * 7 + at / 251 + salt); }

/* One exchange; afterwards the buffer that was received into is looked at. */
static void exchange(int way, int length, int to, int from, int tag, MPI_Status *status)
{
    MPI_Request request;
    unsigned char *target = way % 2 ? out : in;
    for (int i = 0; i < length; i++)
        out[i] = byte(rank, i, length), in[i] = 1;
    switch (way) {
    case 0: OK(MPI_Sendrecv(out, length, MPI_BYTE, to, 5, in, length, MPI_BYTE, from, tag, MPI_COMM_WORLD, status)); break;
    case 1: OK(MPI_Sendrecv_replace(out, length, MPI_BYTE, to, 5, from, tag, MPI_COMM_WORLD, status)); break;
    case 2: OK(MPI_Isendrecv(out, length, MPI_BYTE, to, 5, in, length, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request)); break;
    default: OK(MPI_Isendrecv_replace(out, length, MPI_BYTE, to, 5, from, tag, MPI_COMM_WORLD, &request)); break;
    }
    if (way > 1)
        OK(MPI_Wait(&request, status));
    for (int i = 0; i < length; i++) {
        unsigned char untouched = way % 2 ? byte(rank, i, length) : 1;
        CHECK(target[i] == (from == MPI_PROC_NULL ? untouched : byte(before, i, length)));
    }
}

static void judge(const MPI_Status *status, int from, int length)
{
    int count;
    OK(MPI_Get_count(status, MPI_BYTE, &count));
    if (from == MPI_PROC_NULL)
        CHECK(status->MPI_SOURCE == MPI_PROC_NULL && status->MPI_TAG == MPI_ANY_TAG && count == 0);
    else
        CHECK(status->MPI_SOURCE == before && status->MPI_TAG == 5 && count == length);
}

/* A ring, and a line, whose ends have no partner on one side. */
static void all_ways(void)
{
    static const int lengths[] = {0, 1, 8, 64, 1000, 20000, 100001, 1 << 20, LONGEST};
    for (int way = 0; way < WAYS; way++)
        for (int l = 0; l < (int)(sizeof lengths / sizeof *lengths); l++)
            for (int wild = 0; wild < 4; wild++)
                for (int line = 0; line < 2; line++) {
                    MPI_Status status;
                    int to = line && rank == size - 1 ? MPI_PROC_NULL : next;
                    int from = line && rank == 0 ? MPI_PROC_NULL : before;
                    int asked = from != MPI_PROC_NULL && wild % 2 ? MPI_ANY_SOURCE : from;
                    exchange(way, lengths[l], to, asked, wild / 2 ? MPI_ANY_TAG : 5, &status);
                    judge(&status, from, lengths[l]);
                    exchange(way, lengths[l], to, asked, wild / 2 ? MPI_ANY_TAG : 5, MPI_STATUS_IGNORE);
                    OK(MPI_Barrier(MPI_COMM_WORLD));
                }
}

/* Each function alone, with nobody at the other end; by each function that ends a request. */
static void nobody(void)
{
    MPI_Request requests[8];
    MPI_Status status;
    int flag, none = MPI_PROC_NULL;
    OK(MPI_Send(out, 8, MPI_BYTE, none, 5, MPI_COMM_WORLD));
    OK(MPI_Ssend(out, 8, MPI_BYTE, none, 5, MPI_COMM_WORLD));
    OK(MPI_Bsend(out, 8, MPI_BYTE, none, 5, MPI_COMM_WORLD));
    OK(MPI_Recv(in, 8, MPI_BYTE, none, 5, MPI_COMM_WORLD, &status));
    judge(&status, none, 0);
    OK(MPI_Recv(in, 8, MPI_BYTE, none, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int how = 0; how < 5; how++) {
        int index, which[8];
        MPI_Status all[2];
        in[0] = 77;
        OK(MPI_Irecv(in, 8, MPI_BYTE, none, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Isend(out, 8, MPI_BYTE, none, 5, MPI_COMM_WORLD, &requests[1]));
        CHECK(requests[0] != MPI_REQUEST_NULL && requests[1] != MPI_REQUEST_NULL);
        OK(MPI_Request_get_status(requests[0], &flag, &status));
        CHECK(flag);
        judge(&status, none, 0);
        switch (how) {
        case 0: OK(MPI_Wait(&requests[0], &all[0])); break;
        case 1:
            OK(MPI_Test(&requests[0], &flag, &all[0]));
            CHECK(flag);
            break;
        case 2:
            OK(MPI_Waitany(1, requests, &index, &all[0]));
            CHECK(index == 0);
            break;
        case 3:
            OK(MPI_Testsome(1, requests, &index, which, all));
            CHECK(index == 1 && which[0] == 0);
            break;
        default: OK(MPI_Waitall(2, requests, all));
        }
        judge(&all[0], none, 0);
        OK(MPI_Wait(&requests[1], &status));
        CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL && in[0] == 77);
        CHECK(status.MPI_TAG == MPI_ANY_TAG && status.MPI_SOURCE == MPI_ANY_SOURCE);
    }
    /* Started again and again, freed before it has been ended. */
    OK(MPI_Recv_init(in, 8, MPI_BYTE, none, 5, MPI_COMM_WORLD, &requests[0]));
    for (int n = 0; n < 3; n++) {
        OK(MPI_Start(&requests[0]));
        OK(MPI_Wait(&requests[0], &status));
        judge(&status, none, 0);
        CHECK(requests[0] != MPI_REQUEST_NULL);
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Irecv(in, 8, MPI_BYTE, none, 5, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Request_free(&requests[0]));
}

/* Many copies are under way at once: none is used again before it has left. */
static void many_at_once(void)
{
    enum { MANY = 12, LENGTH = 80000 };
    static unsigned char blocks[MANY][LENGTH];
    MPI_Request requests[MANY];
    for (int n = 0; n < MANY; n++)
        for (int i = 0; i < LENGTH; i++)
            blocks[n][i] = byte(rank, i, n);
    for (int n = 0; n < MANY; n++)
        OK(MPI_Isendrecv_replace(blocks[n], LENGTH, MPI_BYTE, next, n, before, n, MPI_COMM_WORLD, &requests[n]));
    OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
    for (int n = 0; n < MANY; n++)
        for (int i = 0; i < LENGTH; i++)
            CHECK(blocks[n][i] == byte(before, i, n));
}

/* What has gaps is packed. */
static void in_pieces(void)
{
    enum { ROWS = 30000 };
    static int column[2 * ROWS];
    MPI_Datatype every_second;
    OK(MPI_Type_vector(ROWS, 1, 2, MPI_INT, &every_second));
    OK(MPI_Type_commit(&every_second));
    for (int i = 0; i < 2 * ROWS; i++)
        column[i] = rank * 2 * ROWS + i;
    OK(MPI_Sendrecv_replace(column, 1, every_second, next, 0, before, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < 2 * ROWS; i++)
        CHECK(column[i] == (i % 2 ? rank : before) * 2 * ROWS + i);
    OK(MPI_Type_free(&every_second));
}

static void refused(int code, int expected)
{
    int class;
    OK(MPI_Error_class(code, &class));
    CHECK(class == expected);
}

/* Each is wrong in one argument, and of none is anything sent: what comes next is what is sent afterwards. */
static void wrong(MPI_Comm comm, int n)
{
    MPI_Status s;
    int no = MPI_PROC_NULL;
    refused(MPI_Sendrecv(out, n, MPI_BYTE, next, -7, in, n, MPI_BYTE, before, 0, comm, &s), MPI_ERR_TAG);
    refused(MPI_Sendrecv(out, n, MPI_BYTE, next, 0, in, n, MPI_BYTE, before, -7, comm, &s), MPI_ERR_TAG);
    refused(MPI_Sendrecv(out, n, MPI_BYTE, no, -7, in, n, MPI_BYTE, no, 0, comm, &s), MPI_ERR_TAG);
    refused(MPI_Sendrecv(out, n, MPI_BYTE, no, 0, in, n, MPI_BYTE, no, -7, comm, &s), MPI_ERR_TAG);
    refused(MPI_Sendrecv(out, n, MPI_BYTE, size, 0, in, n, MPI_BYTE, before, 0, comm, &s), MPI_ERR_RANK);
    refused(MPI_Sendrecv(out, n, MPI_BYTE, next, 0, in, n, MPI_BYTE, size, 0, comm, &s), MPI_ERR_RANK);
    refused(MPI_Sendrecv(out, n, MPI_BYTE, MPI_ANY_SOURCE, 0, in, n, MPI_BYTE, no, 0, comm, &s), MPI_ERR_RANK);
    refused(MPI_Sendrecv(out, n, MPI_DATATYPE_NULL, no, 0, in, n, MPI_BYTE, no, 0, comm, &s), MPI_ERR_TYPE);
    refused(MPI_Sendrecv(out, n, MPI_BYTE, next, 0, in, n, MPI_DATATYPE_NULL, no, 0, comm, &s), MPI_ERR_TYPE);
    refused(MPI_Sendrecv(out, -1, MPI_BYTE, no, 0, in, n, MPI_BYTE, no, 0, comm, &s), MPI_ERR_COUNT);
    refused(MPI_Sendrecv(out, n, MPI_BYTE, next, 0, in, -1, MPI_BYTE, no, 0, comm, &s), MPI_ERR_COUNT);
    refused(MPI_Sendrecv(out, n, MPI_BYTE, next, 0, in, n, MPI_BYTE, no, 0, MPI_COMM_NULL, &s), MPI_ERR_COMM);
    MPI_Request request;
    refused(MPI_Send(out, n, MPI_BYTE, no, -7, comm), MPI_ERR_TAG);
    refused(MPI_Recv(in, n, MPI_BYTE, no, -7, comm, &s), MPI_ERR_TAG);
    refused(MPI_Isend(out, n, MPI_BYTE, no, -7, comm, &request), MPI_ERR_TAG);
    refused(MPI_Irecv(in, n, MPI_BYTE, no, -7, comm, &request), MPI_ERR_TAG);
    refused(MPI_Isend(out, n, MPI_DATATYPE_NULL, no, 0, comm, &request), MPI_ERR_TYPE);
    refused(MPI_Irecv(in, -1, MPI_BYTE, no, 0, comm, &request), MPI_ERR_COUNT);
    refused(MPI_Isend(out, n, MPI_BYTE, no, 0, comm, NULL), MPI_ERR_ARG);
    refused(MPI_Irecv(in, n, MPI_BYTE, no, 0, comm, NULL), MPI_ERR_ARG);
    refused(MPI_Sendrecv_replace(out, n, MPI_BYTE, next, -7, before, 0, comm, &s), MPI_ERR_TAG);
    refused(MPI_Sendrecv_replace(out, n, MPI_BYTE, next, 0, before, -7, comm, &s), MPI_ERR_TAG);
    refused(MPI_Sendrecv_replace(out, n, MPI_BYTE, size, 0, before, 0, comm, &s), MPI_ERR_RANK);
    refused(MPI_Sendrecv_replace(out, n, MPI_BYTE, next, 0, size, 0, comm, &s), MPI_ERR_RANK);
    refused(MPI_Sendrecv_replace(out, n, MPI_DATATYPE_NULL, no, 0, no, 0, comm, &s), MPI_ERR_TYPE);
    refused(MPI_Sendrecv_replace(out, -1, MPI_BYTE, no, 0, no, 0, comm, &s), MPI_ERR_COUNT);
    if (n > 0) {
        refused(MPI_Sendrecv(NULL, n, MPI_BYTE, no, 0, in, n, MPI_BYTE, no, 0, comm, &s), MPI_ERR_BUFFER);
        refused(MPI_Sendrecv(out, n, MPI_BYTE, next, 0, NULL, n, MPI_BYTE, no, 0, comm, &s), MPI_ERR_BUFFER);
        refused(MPI_Sendrecv_replace(NULL, n, MPI_BYTE, next, 0, before, 0, comm, &s), MPI_ERR_BUFFER);
    }
}

/* A message that is too long for its room, and one that is shorter. */
static void other_lengths(MPI_Comm comm)
{
    MPI_Status status;
    int count, from = size > 1 ? MPI_ANY_SOURCE : before;
    refused(MPI_Sendrecv(out, 16, MPI_BYTE, next, 1, in, 8, MPI_BYTE, from, MPI_ANY_TAG, comm, &status), MPI_ERR_TRUNCATE);
    OK(MPI_Sendrecv(out, 8, MPI_BYTE, next, 2, in, 16, MPI_BYTE, from, MPI_ANY_TAG, comm, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK(count == 8 && status.MPI_TAG == 2 && status.MPI_SOURCE == before);
}

static void revoked(void)
{
    MPI_Comm comm;
    int no = MPI_PROC_NULL;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* One of another MPI underneath cannot be. */
    if (MPIX_Comm_revoke(comm) != MPI_SUCCESS) {
        OK(MPI_Comm_free(&comm));
        return;
    }
    for (int n = 0; n < 9; n += 8) {
        refused(MPI_Sendrecv(out, n, MPI_BYTE, no, 0, in, n, MPI_BYTE, no, 0, comm, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
        refused(MPI_Sendrecv(out, n, MPI_BYTE, next, 0, in, n, MPI_BYTE, no, 0, comm, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
        refused(MPI_Sendrecv(out, n, MPI_BYTE, no, 0, in, n, MPI_BYTE, before, 0, comm, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
        MPI_Request request;
        refused(MPI_Send(out, n, MPI_BYTE, no, 0, comm), MPIX_ERR_REVOKED);
        refused(MPI_Recv(in, n, MPI_BYTE, no, 0, comm, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
        refused(MPI_Isend(out, n, MPI_BYTE, no, 0, comm, &request), MPIX_ERR_REVOKED);
        refused(MPI_Irecv(in, n, MPI_BYTE, no, 0, comm, &request), MPIX_ERR_REVOKED);
        refused(MPI_Sendrecv_replace(out, n, MPI_BYTE, no, 0, no, 0, comm, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
    }
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    next = (rank + 1) % size, before = (rank + size - 1) % size;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    all_ways();
    nobody();
    many_at_once();
    in_pieces();
    wrong(comm, 0);
    wrong(comm, 8);
    other_lengths(comm);
    OK(MPI_Barrier(comm));
    OK(MPI_Comm_free(&comm));
    revoked();
    OK(MPI_Finalize());
    if (rank == 0)
        printf("sends and receives in one call\n");
    return 0;
}
