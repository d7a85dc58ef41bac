/* SPDX-License-Identifier: Apache-2.0 */
/* Several requests that are waited for or tested together: what was asked in vain is asked again, and what has changed
   meanwhile is found. With four processes as a program whose threads all call MPI.
   ranks: 2 4 */
#include "check.h"

enum { MANY = 21 };

static int rank, partner, values[MANY], out[MANY], which[MANY];
static MPI_Request requests[MANY];
static MPI_Status statuses[MANY];

/* Receives of all tags, of which none comes before it is asked for. */
static void post(void)
{
    for (int n = 0; n < MANY; n++)
        OK(MPI_Irecv(&values[n], 1, MPI_INT, partner, n, MPI_COMM_WORLD, &requests[n]));
}

/* Lets the partner send this tag, which it does when it gets here too. */
static void send(int tag)
{
    out[tag] = 100 * rank + tag;
    OK(MPI_Send(&out[tag], 1, MPI_INT, partner, tag, MPI_COMM_WORLD));
}

static void nothing_comes(void)
{
    int some, index, flag;
    for (int n = 0; n < 20; n++) {
        OK(MPI_Testsome(MANY, requests, &some, which, statuses));
        CHECK(some == 0);
        OK(MPI_Testany(MANY, requests, &index, &flag, statuses));
        CHECK(!flag && index == MPI_UNDEFINED);
        OK(MPI_Test(&requests[MANY - 1], &flag, statuses));
        CHECK(!flag);
    }
    OK(MPI_Testall(MANY, requests, &flag, MPI_STATUSES_IGNORE));
    CHECK(!flag);
}

/* Nobody sends anything before all have seen that nothing comes. */
static void together(void)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void check(int tag, const MPI_Status *status)
{
    int count;
    OK(MPI_Get_count(status, MPI_INT, &count));
    CHECK(status->MPI_SOURCE == partner && status->MPI_TAG == tag && count == 1 && values[tag] == 100 * partner + tag);
}

/* Each message alone, found in turn by all functions. */
static void one_after_the_other(void)
{
    post();
    for (int n = 0; n < MANY; n++) {
        int tag = n * 8 % MANY, found = 0, index = -1;
        if (n < MANY / 2)
            nothing_comes();
        together();
        send(tag);
        while (!found) {
            switch (n % 4) {
            case 0: OK(MPI_Testsome(MANY, requests, &found, which, statuses)); index = which[0]; break;
            case 1: OK(MPI_Testany(MANY, requests, &index, &found, statuses)); break;
            case 2: OK(MPI_Waitany(MANY, requests, &index, statuses)); found = 1; break;
            default: OK(MPI_Waitsome(MANY, requests, &found, which, statuses)); index = which[0];
            }
        }
        CHECK(found == 1 && index == tag && requests[tag] == MPI_REQUEST_NULL);
        check(tag, &statuses[0]);
    }
    int some, index, flag;
    OK(MPI_Testsome(MANY, requests, &some, which, statuses));
    CHECK(some == MPI_UNDEFINED);
    OK(MPI_Testany(MANY, requests, &index, &flag, statuses));
    CHECK(flag && index == MPI_UNDEFINED);
    OK(MPI_Waitany(MANY, requests, &index, statuses));
    CHECK(index == MPI_UNDEFINED);
    OK(MPI_Waitany(0, requests, &index, statuses));
    CHECK(index == MPI_UNDEFINED);
    OK(MPI_Testany(0, requests, &index, &flag, statuses));
    CHECK(flag && index == MPI_UNDEFINED);
    OK(MPI_Test(&requests[0], &flag, statuses));
    CHECK(flag);
}

/* Other requests in the same array, of which the engine hears nothing. */
static void in_the_same_array(void)
{
    int some, index, flag, number;
    post();
    nothing_comes();
    /* One that is over at once. */
    MPI_Request receive = requests[3], answer;
    OK(MPI_Irecv(&number, 1, MPI_INT, partner, MANY, MPI_COMM_WORLD, &answer));
    OK(MPI_Isend(&rank, 1, MPI_INT, partner, MANY, MPI_COMM_WORLD, &requests[3]));
    OK(MPI_Testsome(MANY, requests, &some, which, statuses));
    CHECK(some == 1 && which[0] == 3 && requests[3] == MPI_REQUEST_NULL);
    OK(MPI_Wait(&answer, MPI_STATUS_IGNORE));
    CHECK(number == partner);
    requests[3] = receive;
    nothing_comes();
    /* The same, found by the other functions. */
    for (int n = 0; n < 2; n++) {
        OK(MPI_Isend(&rank, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[3]));
        flag = 1;
        if (n == 0)
            OK(MPI_Testany(MANY, requests, &index, &flag, statuses));
        else
            OK(MPI_Waitany(MANY, requests, &index, statuses));
        CHECK(flag && index == 3 && requests[3] == MPI_REQUEST_NULL);
        requests[3] = receive;
        nothing_comes();
    }
    /* One with the handle of another that is forgotten, and over at once. */
    OK(MPI_Request_free(&requests[9]));
    OK(MPI_Isend(&rank, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[9]));
    OK(MPI_Testsome(MANY, requests, &some, which, statuses));
    CHECK(some == 1 && which[0] == 9);
    nothing_comes();
    together();
    send(9);
    together();
    /* In another order. */
    requests[3] = requests[7];
    requests[7] = receive;
    nothing_comes();
    together();
    send(3);
    for (some = 0; some == 0;)
        OK(MPI_Testsome(MANY, requests, &some, which, statuses));
    CHECK(some == 1 && which[0] == 7);
    check(3, &statuses[0]);
    nothing_comes();
    /* A new one in the place of the one that has ended, perhaps with its handle. */
    OK(MPI_Irecv(&values[7], 1, MPI_INT, partner, MANY + 1, MPI_COMM_WORLD, &requests[7]));
    nothing_comes();
    /* One that is cancelled. */
    OK(MPI_Cancel(&requests[7]));
    for (some = 0; some == 0;)
        OK(MPI_Testsome(MANY, requests, &some, which, statuses));
    CHECK(some == 1 && which[0] == 7);
    OK(MPI_Test_cancelled(&statuses[0], &flag));
    CHECK(flag);
    nothing_comes();
    for (int n = 0; n < MANY; n++)
        if (requests[n] != MPI_REQUEST_NULL)
            OK(MPI_Cancel(&requests[n]));
    OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
}

static int query(void *state, MPI_Status *status)
{
    (void)state;
    OK(MPI_Status_set_elements(status, MPI_INT, 1));
    OK(MPI_Status_set_cancelled(status, 0));
    status->MPI_SOURCE = status->MPI_TAG = 0;
    return MPI_SUCCESS;
}

static int let_go(void *state)
{
    (void)state;
    return MPI_SUCCESS;
}

static int cancelled(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

/* Operations of the program, and what is started again and again. */
static void other_kinds(void)
{
    int some, index, flag;
    MPI_Request own, receive;
    post();
    nothing_comes();
    receive = requests[5];
    OK(MPI_Grequest_start(query, let_go, cancelled, NULL, &own));
    requests[5] = own;
    nothing_comes();
    OK(MPI_Grequest_complete(own));
    OK(MPI_Testsome(MANY, requests, &some, which, statuses));
    CHECK(some == 1 && which[0] == 5 && requests[5] == MPI_REQUEST_NULL);
    OK(MPI_Send_init(&rank, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[5]));
    nothing_comes();
    OK(MPI_Start(&requests[5]));
    OK(MPI_Testany(MANY, requests, &index, &flag, statuses));
    CHECK(flag && index == 5 && requests[5] != MPI_REQUEST_NULL);
    nothing_comes();
    OK(MPI_Request_free(&requests[5]));
    requests[5] = receive;
    together();
    for (int n = 0; n < MANY; n++)
        send(n);
    for (int done = 0; done < MANY; done += some) {
        OK(MPI_Testsome(MANY, requests, &some, which, statuses));
        for (int n = 0; n < some; n++)
            check(which[n], &statuses[n]);
    }
}

/* A message that is too long, among others. */
static void errors(void)
{
    int index, flag = 0, code, class, two[2] = {1, 2};
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int n = 0; n < 3; n++) {
        post();
        together();
        OK(MPI_Send(two, 2, MPI_INT, partner, 18, MPI_COMM_WORLD));
        switch (n) {
        case 0: code = MPI_Waitany(MANY, requests, &index, statuses); break;
        case 1:
            do
                code = MPI_Testany(MANY, requests, &index, &flag, statuses);
            while (code == MPI_SUCCESS && !flag);
            break;
        default:
            index = 18;
            do
                code = MPI_Test(&requests[18], &flag, statuses);
            while (code == MPI_SUCCESS && !flag);
        }
        OK(MPI_Error_class(code, &class));
        CHECK(class == MPI_ERR_TRUNCATE && index == 18 && requests[18] == MPI_REQUEST_NULL);
        for (int m = 0; m < MANY; m++)
            if (requests[m] != MPI_REQUEST_NULL)
                OK(MPI_Cancel(&requests[m]));
        OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
    }
}

int main(int argc, char **argv)
{
    int size, provided, wanted = MPI_THREAD_SINGLE;
    const char *ranks = getenv("PMI_SIZE");
    if (ranks != NULL && atoi(ranks) == 4)
        wanted = MPI_THREAD_MULTIPLE;
    OK(MPI_Init_thread(&argc, &argv, wanted, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(size != 4 || ranks == NULL || provided == MPI_THREAD_MULTIPLE);
    partner = rank ^ 1;
    one_after_the_other();
    in_the_same_array();
    other_kinds();
    errors();
    OK(MPI_Finalize());
    return 0;
}
