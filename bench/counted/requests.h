/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: one for which nothing comes, and many. */
#ifndef COUNTED_REQUESTS_H
#define COUNTED_REQUESTS_H

#include "messages.h"

static MPI_Request idle = MPI_REQUEST_NULL, idle_many[MANY];

static void send_many(int bytes)
{
    for (int n = 0; n < MANY; n++)
        send(bytes);
}

static void post(int bytes, int tag, MPI_Request *requests)
{
    for (int n = 0; n < MANY; n++)
        MPI_Irecv(in + n * bytes, bytes, MPI_BYTE, other, tag, MPI_COMM_WORLD, &requests[n]);
}

static void waitall(int bytes)
{
    MPI_Request requests[MANY];
    post(bytes, 0, requests);
    MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
}

static void waitany(int bytes)
{
    MPI_Request requests[MANY];
    int which;
    post(bytes, 0, requests);
    for (int n = 0; n < MANY; n++)
        MPI_Waitany(MANY, requests, &which, MPI_STATUS_IGNORE);
}

static void testsome(int bytes)
{
    MPI_Request requests[MANY];
    int which[MANY], done = 0;
    post(bytes, 0, requests);
    while (done < MANY) {
        int some;
        MPI_Testsome(MANY, requests, &some, which, MPI_STATUSES_IGNORE);
        done += some;
    }
}

static void waitsome(int bytes)
{
    MPI_Request requests[MANY];
    int which[MANY], done = 0;
    post(bytes, 0, requests);
    while (done < MANY) {
        int some;
        MPI_Waitsome(MANY, requests, &some, which, MPI_STATUSES_IGNORE);
        done += some;
    }
}

static void testany(int bytes)
{
    MPI_Request requests[MANY];
    post(bytes, 0, requests);
    for (int done = 0; done < MANY;) {
        int which, flag;
        MPI_Testany(MANY, requests, &which, &flag, MPI_STATUS_IGNORE);
        done += flag;
    }
}

static void isend_many(int bytes)
{
    MPI_Request requests[MANY];
    for (int n = 0; n < MANY; n++)
        MPI_Isend(out + n * bytes, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[n]);
    MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
}

static void receive_many(int bytes)
{
    for (int n = 0; n < MANY; n++)
        receive(bytes);
}

static void test(int bytes)
{
    int flag;
    if (idle == MPI_REQUEST_NULL)
        MPI_Irecv(in, bytes, MPI_BYTE, other, 2, MPI_COMM_WORLD, &idle);
    MPI_Test(&idle, &flag, MPI_STATUS_IGNORE);
}

static void testsome_of_many(int bytes)
{
    int which[MANY], some;
    (void)bytes;
    MPI_Testsome(MANY, idle_many, &some, which, MPI_STATUSES_IGNORE);
}

static void testany_of_many(int flag)
{
    int which;
    MPI_Testany(MANY, idle_many, &which, &flag, MPI_STATUS_IGNORE);
}

static void begin_many(int bytes) { post(bytes, 2, idle_many); }
static void end_many(int bytes)
{
    (void)bytes;
    for (int n = 0; n < MANY; n++)
        MPI_Cancel(&idle_many[n]);
    MPI_Waitall(MANY, idle_many, MPI_STATUSES_IGNORE);
}

static const struct operation requests[] = {
    {"test-nothing", nothing, test, nothing, 8},
    {"32-irecv+waitall", send_many, waitall, nothing, 8},
    {"32-irecv+32-waitany", send_many, waitany, nothing, 8},
    {"32-irecv+testsome", send_many, testsome, nothing, 8},
    {"32-irecv+waitsome", send_many, waitsome, nothing, 8},
    {"32-irecv+testany", send_many, testany, nothing, 8},
    {"32-isend+waitall", nothing, isend_many, receive_many, 8},
    {"", nothing, begin_many, nothing, 8},
    {"32-testsome-nothing", nothing, testsome_of_many, nothing, 8},
    {"32-testany-nothing", nothing, testany_of_many, nothing, 8},
    {"", nothing, end_many, nothing, 8},
};

#endif
