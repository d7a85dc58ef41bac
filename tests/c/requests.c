/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of every kind: cancelled, generalized, persistent after their objects were freed, combined, asked without ending.
   ranks: 1 2 3 */
#include "check.h"

static int rank, size, next, before;

/* A message that nobody has matched is taken back, whatever its length; then the receiver finds nothing. One whose
   receiver got no processor for so long that it could not answer is delivered instead. */
static void cancelled_sends(void)
{
    enum { LONG = 1 << 20 };
    char *data = malloc(LONG);
    int lengths[] = {0, 16, 5000, LONG}, taken_back = 0, gone_there, there, gone;
    memset(data, rank + 1, LONG);
    for (int i = 0; i < 4; i++) {
        for (int mode = 0; mode < 3; mode++) {
            MPI_Request request;
            MPI_Status status;
            if (mode == 0)
                OK(MPI_Isend(data, lengths[i], MPI_CHAR, next, 5, MPI_COMM_WORLD, &request));
            else if (mode == 1)
                OK(MPI_Issend(data, lengths[i], MPI_CHAR, next, 5, MPI_COMM_WORLD, &request));
            else {
                OK(MPI_Send_init(data, lengths[i], MPI_CHAR, next, 5, MPI_COMM_WORLD, &request));
                OK(MPI_Start(&request));
            }
            OK(MPI_Cancel(&request));
            OK(MPI_Wait(&request, &status));
            OK(MPI_Test_cancelled(&status, &gone));
            taken_back += gone;
            OK(MPI_Sendrecv(&gone, 1, MPI_INT, next, 4, &gone_there, 1, MPI_INT, before, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            if (!gone_there)
                OK(MPI_Recv(data, lengths[i], MPI_CHAR, before, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            memset(data, rank + 1, LONG);
            OK(MPI_Barrier(MPI_COMM_WORLD));
            OK(MPI_Iprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE));
            CHECK(!there);
            if (mode == 2)
                OK(MPI_Request_free(&request));
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
        /* What has matched is not taken back. */
        MPI_Request both[2];
        MPI_Status statuses[2];
        char *in = malloc(LONG);
        OK(MPI_Irecv(in, LONG, MPI_CHAR, before, 6, MPI_COMM_WORLD, &both[0]));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Isend(data, lengths[i], MPI_CHAR, next, 6, MPI_COMM_WORLD, &both[1]));
        OK(MPI_Cancel(&both[1]));
        OK(MPI_Waitall(1, &both[1], &statuses[1]));
        OK(MPI_Test_cancelled(&statuses[1], &gone));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (gone) /* it had not left yet */
            OK(MPI_Send(data, lengths[i], MPI_CHAR, next, 6, MPI_COMM_WORLD));
        OK(MPI_Wait(&both[0], &statuses[0]));
        for (int k = 0; k < lengths[i]; k++)
            CHECK(in[k] == (char)(before + 1));
        free(in);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    CHECK(taken_back > 0);
    free(data);
}

struct operation {
    int queried, freed, cancelled, fails;
};

static int query(void *extra, MPI_Status *status)
{
    struct operation *operation = extra;
    operation->queried++;
    status->MPI_SOURCE = 7;
    status->MPI_TAG = 11;
    MPI_Status_set_elements(status, MPI_INT, 3);
    MPI_Status_set_cancelled(status, operation->cancelled > 0);
    return operation->fails ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int release(void *extra)
{
    ((struct operation *)extra)->freed++;
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
    CHECK(!complete);
    ((struct operation *)extra)->cancelled++;
    return MPI_SUCCESS;
}

static void generalized(void)
{
    struct operation operation[4];
    MPI_Request request[4];
    MPI_Status status, statuses[4];
    int flag, index, count, indices[4];
    memset(operation, 0, sizeof operation);
    for (int i = 0; i < 4; i++)
        OK(MPI_Grequest_start(query, release, cancel, &operation[i], &request[i]));
    OK(MPI_Test(&request[0], &flag, &status));
    CHECK(!flag && operation[0].queried == 0);
    OK(MPI_Cancel(&request[0]));
    OK(MPI_Grequest_complete(request[0]));
    CHECK(MPI_Grequest_complete(request[0]) == MPI_ERR_REQUEST);
    OK(MPI_Request_get_status(request[0], &flag, &status));
    CHECK(flag && operation[0].queried == 1 && operation[0].freed == 0);
    OK(MPI_Wait(&request[0], &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(status.MPI_SOURCE == 7 && status.MPI_TAG == 11 && count == 3 && flag);
    CHECK(operation[0].queried == 2 && operation[0].freed == 1 && request[0] == MPI_REQUEST_NULL);
    /* Freed before complete. */
    MPI_Request copy = request[1];
    OK(MPI_Request_free(&request[1]));
    CHECK(operation[1].freed == 0);
    OK(MPI_Grequest_complete(copy));
    CHECK(operation[1].freed == 1 && operation[1].queried == 0);
    OK(MPI_Grequest_complete(request[3]));
    OK(MPI_Waitany(4, request, &index, &status));
    CHECK(index == 3 && operation[3].freed == 1);
    operation[2].fails = 1;
    OK(MPI_Grequest_complete(request[2]));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    CHECK(MPI_Waitsome(4, request, &count, indices, statuses) == MPI_ERR_IN_STATUS);
    CHECK(count == 1 && indices[0] == 2 && statuses[0].MPI_ERROR == MPI_ERR_OTHER && operation[2].freed == 1);
}

/* Communicator and datatype are freed before the first start. */
static void persistent(void)
{
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Request requests[2];
    int out[20], in[20];
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Type_vector(5, 1, 2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Recv_init(in, 2, type, before, 1, comm, &requests[0]));
    OK(MPI_Ssend_init(out, 2, type, next, 1, comm, &requests[1]));
    OK(MPI_Type_free(&type));
    OK(MPI_Comm_free(&comm));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 20; i++) {
            out[i] = 1000 * rank + 100 * round + i;
            in[i] = -1;
        }
        OK(MPI_Startall(2, requests));
        CHECK(MPI_Start(&requests[0]) == MPI_ERR_REQUEST);
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < 20; i++) {
            int sent = (i < 9 && i % 2 == 0) || (i >= 9 && i < 18 && i % 2 == 1);
            CHECK(in[i] == (sent ? 1000 * before + 100 * round + i : -1));
        }
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
}

static void combined(void)
{
    enum { N = 30000 };
    static int out[N], in[N];
    MPI_Request requests[3];
    MPI_Status status;
    int flag, index, count, indices[3];
    for (int i = 0; i < N; i++)
        out[i] = in[i] = rank + i;
    OK(MPI_Isendrecv(out, N, MPI_INT, next, 2, in, N, MPI_INT, before, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Wait(&requests[0], &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == N && status.MPI_TAG == 2 && status.MPI_SOURCE == before);
    for (int i = 0; i < N; i++)
        CHECK(in[i] == before + i);
    OK(MPI_Isendrecv_replace_c(out, N, MPI_INT, next, 3, before, 3, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isendrecv(NULL, 0, MPI_INT, MPI_PROC_NULL, 2, NULL, 0, MPI_INT, MPI_PROC_NULL, 2, MPI_COMM_WORLD, &requests[1]));
    requests[2] = MPI_REQUEST_NULL;
    do
        OK(MPI_Request_get_status_all(3, requests, &flag, MPI_STATUSES_IGNORE));
    while (!flag);
    /* Nothing to ask about: the empty status, with its error. */
    MPI_Request none = MPI_REQUEST_NULL;
    status.MPI_ERROR = MPI_ERR_OTHER;
    OK(MPI_Request_get_status_any(1, &none, &index, &flag, &status));
    CHECK(flag && index == MPI_UNDEFINED && status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_ERROR == MPI_SUCCESS);
    status.MPI_ERROR = MPI_ERR_OTHER;
    OK(MPI_Wait(&none, &status));
    CHECK(status.MPI_TAG == MPI_ANY_TAG && status.MPI_ERROR == MPI_SUCCESS);
    OK(MPI_Request_get_status_any(3, requests, &index, &flag, &status));
    CHECK(flag && index == 0 && status.MPI_SOURCE == before);
    OK(MPI_Request_get_status_some(3, requests, &count, indices, MPI_STATUSES_IGNORE));
    CHECK(count == 2 && indices[0] == 0 && indices[1] == 1);
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < N; i++)
        CHECK(out[i] == before + i);
    OK(MPI_Request_get_status_any(3, requests, &index, &flag, &status));
    CHECK(flag && index == MPI_UNDEFINED && status.MPI_SOURCE == MPI_ANY_SOURCE);
}

/* MPI_ERROR is set if, and only if, one of several has failed. */
static void errors_of_several(void)
{
    MPI_Request requests[3];
    MPI_Status statuses[3];
    int in[3][2], out[2] = {1, 2};
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++) {
            statuses[i].MPI_ERROR = 4711;
            OK(MPI_Irecv(in[i], round == 1 && i == 1 ? 1 : 2, MPI_INT, before, i, MPI_COMM_WORLD, &requests[i]));
        }
        for (int i = 0; i < 3; i++)
            OK(MPI_Send(out, 2, MPI_INT, next, i, MPI_COMM_WORLD));
        int code = MPI_Waitall(3, requests, statuses);
        CHECK(code == (round == 0 ? MPI_SUCCESS : MPI_ERR_IN_STATUS));
        for (int i = 0; i < 3; i++)
            CHECK(statuses[i].MPI_ERROR == (round == 0 ? 4711 : i == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
    }
}

/* Collective and partitioned operations are waited for before they are freed, and partitions are marked all or none. */
static void freed_too_early(void)
{
    MPI_Request requests[2], kept;
    int out[4] = {rank, rank, rank, rank}, in[4], sum = -1, wrong[] = {0, 4}, flag;
    /* The others begin when rank 0 has looked: until then its operation cannot be complete. */
    if (rank != 0)
        OK(MPI_Recv(&flag, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Iallreduce(&size, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]));
    kept = requests[0];
    if (rank == 0 && size > 1) {
        CHECK(MPI_Cancel(&requests[0]) == MPI_ERR_REQUEST);
        CHECK(MPI_Request_free(&requests[0]) == MPI_ERR_REQUEST && requests[0] == kept);
        for (int other = 1; other < size; other++)
            OK(MPI_Send(&size, 1, MPI_INT, other, 0, MPI_COMM_WORLD));
    }
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    CHECK(sum == size * size);
    OK(MPI_Psend_init(out, 4, 1, MPI_INT, next, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(in, 2, 2, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    OK(MPI_Startall(2, requests));
    kept = requests[0];
    CHECK(MPI_Request_free(&requests[0]) == MPI_ERR_REQUEST && requests[0] == kept);
    CHECK(MPI_Request_free(&requests[1]) == MPI_ERR_REQUEST);
    CHECK(MPI_Pready_list(2, wrong, requests[0]) == MPI_ERR_ARG);
    CHECK(MPI_Pready_range(2, 4, requests[0]) == MPI_ERR_ARG);
    OK(MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    /* No partition is sent before all have looked. */
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Pready_range(0, 3, requests[0]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(in[0] == before && in[3] == before);
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    next = (rank + 1) % size;
    before = (rank + size - 1) % size;
    cancelled_sends();
    generalized();
    persistent();
    combined();
    errors_of_several();
    freed_too_early();
    if (rank == 0)
        printf("cancelled, generalized, persistent, combined requests and their statuses are right\n");
    OK(MPI_Finalize());
    return 0;
}
