/* SPDX-License-Identifier: Apache-2.0 */
/* Null and inactive requests, requests that are complete but not freed, calls that are local, the handler of a communicator
   from groups, collective operations of nothing. conformance/semantics.md says which sentence of the standard each is about. */
/* ranks: 1 2 4 */
#include "check.h"

#ifndef MPI_H_ABI
#error "mpi.h of the Standard ABI defines MPI_H_ABI"
#endif

static int rank, size, next, before;

static int is_empty(const MPI_Status *status)
{
    int count, cancelled;
    OK(MPI_Get_count(status, MPI_BYTE, &count));
    OK(MPI_Test_cancelled(status, &cancelled));
    return status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && count == 0 && !cancelled;
}

/* Every way to ask about a request that is null, or inactive: it is complete, with an empty status. */
static void nothing_to_wait_for(MPI_Request request)
{
    MPI_Request array[2] = {request, request};
    MPI_Status status, statuses[2];
    int flag = 0, index = 0, indices[2], n = 0;
    OK(MPI_Wait(&array[0], &status));
    CHECK(is_empty(&status));
    OK(MPI_Test(&array[0], &flag, &status));
    CHECK(flag && is_empty(&status));
    flag = 0;
    OK(MPI_Request_get_status(array[0], &flag, &status));
    CHECK(flag && is_empty(&status));
    OK(MPI_Waitany(2, array, &index, &status));
    CHECK(index == MPI_UNDEFINED && is_empty(&status));
    flag = index = 0;
    OK(MPI_Testany(2, array, &index, &flag, &status));
    CHECK(flag && index == MPI_UNDEFINED && is_empty(&status));
    flag = index = 0;
    OK(MPI_Request_get_status_any(2, array, &index, &flag, &status));
    CHECK(flag && index == MPI_UNDEFINED && is_empty(&status));
    OK(MPI_Waitall(2, array, statuses));
    CHECK(is_empty(&statuses[0]) && is_empty(&statuses[1]));
    flag = 0;
    OK(MPI_Testall(2, array, &flag, statuses));
    CHECK(flag && is_empty(&statuses[0]) && is_empty(&statuses[1]));
    flag = 0;
    OK(MPI_Request_get_status_all(2, array, &flag, statuses));
    CHECK(flag && is_empty(&statuses[0]) && is_empty(&statuses[1]));
    OK(MPI_Waitsome(2, array, &n, indices, statuses));
    CHECK(n == MPI_UNDEFINED);
    n = 0;
    OK(MPI_Testsome(2, array, &n, indices, statuses));
    CHECK(n == MPI_UNDEFINED);
    n = 0;
    OK(MPI_Request_get_status_some(2, array, &n, indices, statuses));
    CHECK(n == MPI_UNDEFINED);
    CHECK(array[0] == request && array[1] == request);
}

static void null_and_inactive(void)
{
    int data[2] = {1, 2}, in[2] = {0, 0}, flag;
    MPI_Request kinds[6], request;
    nothing_to_wait_for(MPI_REQUEST_NULL);
    OK(MPI_Send_init(data, 2, MPI_INT, next, 1, MPI_COMM_WORLD, &kinds[0]));
    OK(MPI_Recv_init(in, 2, MPI_INT, before, 1, MPI_COMM_WORLD, &kinds[1]));
    OK(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &kinds[2]));
    OK(MPI_Psend_init(data, 2, 1, MPI_INT, next, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &kinds[3]));
    OK(MPI_Precv_init(in, 2, 1, MPI_INT, before, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &kinds[4]));
    OK(MPI_Recv_init(in, 2, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &kinds[5]));
    for (int i = 0; i < 6; i++)
        nothing_to_wait_for(kinds[i]);
    flag = 0;
    OK(MPI_Parrived(MPI_REQUEST_NULL, 0, &flag));
    CHECK(flag);
    flag = 0;
    OK(MPI_Parrived(kinds[4], 1, &flag));
    CHECK(flag);
    /* Active, waited for, and inactive again. */
    OK(MPI_Startall(6, kinds));
    OK(MPI_Pready_range(0, 1, kinds[3]));
    OK(MPI_Waitall(6, kinds, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 6; i++)
        nothing_to_wait_for(kinds[i]);
    flag = 0;
    OK(MPI_Parrived(kinds[4], 0, &flag));
    CHECK(flag && in[0] == 1 && in[1] == 2);
    /* Inactive ones of every kind can be freed. */
    for (int i = 0; i < 6; i++) {
        OK(MPI_Request_free(&kinds[i]));
        CHECK(kinds[i] == MPI_REQUEST_NULL);
    }
    request = MPI_REQUEST_NULL;
    CHECK(MPI_Request_free(&request) == MPI_ERR_REQUEST);
    CHECK(MPI_Start(&request) == MPI_ERR_REQUEST);
    CHECK(MPI_Cancel(&request) == MPI_ERR_REQUEST);
}

/* A request whose operation is complete can be freed, whatever it was; the operation has taken place. */
static void free_complete(MPI_Request *request)
{
    int flag = 0;
    while (!flag)
        OK(MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(request));
    CHECK(*request == MPI_REQUEST_NULL);
}

static void complete_but_not_freed(void)
{
    int data[2] = {3, 4}, in[2] = {0, 0}, sum = 0;
    MPI_Comm copy;
    MPI_Request request, parts[2];
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    free_complete(&request);
    OK(MPI_Iallreduce(&data[0], &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
    free_complete(&request);
    CHECK(sum == 3 * size);
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &copy, &request));
    free_complete(&request);
    sum = 0;
    OK(MPI_Allreduce_init(&data[1], &sum, 1, MPI_INT, MPI_SUM, copy, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    free_complete(&request);
    CHECK(sum == 4 * size);
    OK(MPI_Psend_init(data, 2, 1, MPI_INT, next, 2, copy, MPI_INFO_NULL, &parts[0]));
    OK(MPI_Precv_init(in, 2, 1, MPI_INT, before, 2, copy, MPI_INFO_NULL, &parts[1]));
    OK(MPI_Startall(2, parts));
    CHECK(MPI_Request_free(&parts[0]) == MPI_ERR_REQUEST);
    OK(MPI_Pready_range(0, 1, parts[0]));
    free_complete(&parts[1]);
    free_complete(&parts[0]);
    CHECK(in[0] == 3 && in[1] == 4);
    OK(MPI_Irecv(in, 1, MPI_INT, before, 3, copy, &parts[1]));
    OK(MPI_Isend(data, 1, MPI_INT, next, 3, copy, &parts[0]));
    free_complete(&parts[1]);
    free_complete(&parts[0]);
    OK(MPI_Comm_free(&copy));
}

static int handled;

static void handler(MPI_Comm *comm, int *code, ...)
{
    CHECK(*comm == MPI_COMM_NULL);
    handled = *code;
}

/* Errors of a call that makes a communicator from groups go to the handler that this was to have. */
static void handler_of_what_is_made(void)
{
    MPI_Errhandler mine;
    MPI_Group world;
    MPI_Comm comm = MPI_COMM_SELF;
    OK(MPI_Comm_create_errhandler(handler, &mine));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ABORT));
    CHECK(MPI_Comm_create_from_group(MPI_GROUP_NULL, "a", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) == MPI_ERR_GROUP);
    CHECK(MPI_Comm_create_from_group(MPI_GROUP_NULL, "a", MPI_INFO_NULL, mine, &comm) == MPI_ERR_GROUP);
    CHECK(handled == MPI_ERR_GROUP);
    handled = 0;
    CHECK(MPI_Intercomm_create_from_groups(MPI_GROUP_NULL, 0, world, 0, "b", MPI_INFO_NULL, mine, &comm) == MPI_ERR_GROUP);
    CHECK(handled == MPI_ERR_GROUP);
    CHECK(MPI_Intercomm_create_from_groups(MPI_GROUP_NULL, 0, world, 0, "b", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) ==
          MPI_ERR_GROUP);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    CHECK(MPI_Comm_create_from_group(world, "c", MPI_INFO_NULL, MPI_ERRHANDLER_NULL, &comm) != MPI_SUCCESS);
    OK(MPI_Group_free(&world));
    OK(MPI_Errhandler_free(&mine));
}

/* The handler of an object has the handle with which it was set, and each handle that was given is freed once. */
static void same_handler(void)
{
    MPI_Errhandler mine, got, again;
    OK(MPI_Comm_create_errhandler(handler, &mine));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, mine));
    OK(MPI_Comm_get_errhandler(MPI_COMM_SELF, &got));
    OK(MPI_Comm_get_errhandler(MPI_COMM_SELF, &again));
    CHECK(got == mine && again == mine);
    OK(MPI_Errhandler_free(&mine));
    OK(MPI_Errhandler_free(&again));
    CHECK(mine == MPI_ERRHANDLER_NULL);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, got));
    OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &again));
    CHECK(again == got);
    OK(MPI_Errhandler_free(&again));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    again = got;
    OK(MPI_Errhandler_free(&got));
    CHECK(MPI_Errhandler_free(&again) == MPI_ERR_ERRHANDLER);
}

static MPI_Comm told_comm;
static int told_code, told_often, other_code;

static void tell(MPI_Comm *comm, int *code, ...)
{
    told_comm = *comm;
    told_code = *code;
    told_often++;
    if (other_code)
        *code = other_code;
}

static int wait_or_test(int what, MPI_Request *requests, MPI_Status *statuses)
{
    int flag = 0, count = 0, indices[2], code = MPI_SUCCESS;
    switch (what) {
    case 0: return MPI_Waitall(2, requests, statuses);
    case 1:
        while (!flag && code == MPI_SUCCESS)
            code = MPI_Testall(2, requests, &flag, statuses);
        return code;
    case 2: return MPI_Waitsome(2, requests, &count, indices, statuses);
    default:
        while (!count && code == MPI_SUCCESS)
            code = MPI_Testsome(2, requests, &count, indices, statuses);
        return code;
    }
}

/* Where several requests end in MPI_ERR_IN_STATUS, the handler is told the error of the request (section 9.3.1), and the
   program gets what it leaves there. */
static void handler_of_several(void)
{
    MPI_Errhandler mine;
    MPI_Comm dup;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_create_errhandler(tell, &mine));
    OK(MPI_Comm_set_errhandler(dup, mine));
    for (int what = 0; what < 4; what++)
        for (other_code = 0; other_code <= MPI_ERR_OTHER; other_code += MPI_ERR_OTHER) {
            int in[2], out[2] = {1, 2};
            MPI_Request requests[2];
            MPI_Status statuses[2];
            OK(MPI_Irecv(in, 1, MPI_INT, before, 1, dup, &requests[0]));
            requests[1] = MPI_REQUEST_NULL;
            OK(MPI_Barrier(dup));
            OK(MPI_Send(out, 2, MPI_INT, next, 1, dup));
            told_often = 0;
            int code = wait_or_test(what, requests, statuses);
            CHECK(told_often == 1 && told_comm == dup && told_code == MPI_ERR_TRUNCATE);
            CHECK(code == (other_code ? other_code : MPI_ERR_IN_STATUS));
            CHECK(statuses[0].MPI_ERROR == MPI_ERR_TRUNCATE && requests[0] == MPI_REQUEST_NULL);
        }
    OK(MPI_Errhandler_free(&mine));
    OK(MPI_Comm_free(&dup));
}

/* Nobody waits for others where there is nothing to move: the last rank is busy until all others have told it that they are through. */
static void nothing_to_move(void)
{
    int counts[size], displacements[size], data[1] = {7}, in[1] = {8};
    memset(counts, 0, sizeof counts);
    memset(displacements, 0, sizeof displacements);
    if (rank == size - 1)
        for (int i = 0; i < size - 1; i++)
            OK(MPI_Recv(NULL, 0, MPI_INT, i, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Bcast(data, 0, MPI_INT, 0, MPI_COMM_WORLD));
    OK(MPI_Gather(data, 0, MPI_INT, in, 0, MPI_INT, 0, MPI_COMM_WORLD));
    OK(MPI_Scatter(data, 0, MPI_INT, in, 0, MPI_INT, 0, MPI_COMM_WORLD));
    OK(MPI_Allgather(data, 0, MPI_INT, in, 0, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Allgatherv(data, 0, MPI_INT, in, counts, displacements, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Alltoall(data, 0, MPI_INT, in, 0, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Reduce(data, in, 0, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
    OK(MPI_Allreduce(data, in, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Reduce_scatter_block(data, in, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Reduce_scatter(data, in, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Scan(data, in, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Exscan(data, in, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(data[0] == 7 && in[0] == 8);
    /* Wrong arguments are found all the same. */
    CHECK(MPI_Bcast(data, 0, MPI_INT, size, MPI_COMM_WORLD) == MPI_ERR_ROOT);
    CHECK(MPI_Allreduce(data, in, 0, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD) == MPI_ERR_OP);
    CHECK(MPI_Reduce(data, in, 0, MPI_DATATYPE_NULL, MPI_SUM, 0, MPI_COMM_WORLD) == MPI_ERR_TYPE);
    if (rank < size - 1)
        OK(MPI_Send(NULL, 0, MPI_INT, size - 1, 4, MPI_COMM_WORLD));
    /* And the next operation is the same one at all. */
    OK(MPI_Bcast(data, 1, MPI_INT, 0, MPI_COMM_WORLD));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    next = (rank + 1) % size;
    before = (rank + size - 1) % size;
    null_and_inactive();
    complete_but_not_freed();
    handler_of_what_is_made();
    same_handler();
    handler_of_several();
    nothing_to_move();
    if (rank == 0)
        printf("requests, handlers and operations of nothing are as the standard has them\n");
    OK(MPI_Finalize());
    return 0;
}
