/* SPDX-License-Identifier: Apache-2.0 */
/* Remote service requests and global pointers (isthmus.h): replies, order, room, errors, handlers that run beside the
   program.
   ranks: 1 2 4 */
#include "check.h"
#include <isthmus.h>
#include <unistd.h>

enum { MANY = 2000 };

static int rank, size, next, before;
static isthmus_handler echo, count, relay, arrived, wake, add, nobody, wrong;
static int counted, in_order = 1, relayed;
static volatile int woken;

#define ERROR(call, expected) \
    do { \
        int class_, returned_ = (call); \
        OK(MPI_Error_class(returned_, &class_)); \
        CHECK(class_ == (expected)); \
    } while (0)

/* The same, and the sentence has these words. */
#define SAYS(call, expected, words) \
    do { \
        char text_[MPI_MAX_ERROR_STRING]; \
        int length_, code_ = (call); \
        ERROR(code_, expected); \
        OK(MPI_Error_string(code_, text_, &length_)); \
        CHECK(strstr(text_, words)); \
    } while (0)

static void do_echo(isthmus_call *call, const void *data, MPI_Count bytes, void *user)
{
    CHECK(user == &echo);
    OK(isthmus_call_reply(call, data, bytes));
}

static void do_count(isthmus_call *call, const void *data, MPI_Count bytes, void *user)
{
    int from, value;
    (void)user;
    CHECK(bytes == sizeof value);
    memcpy(&value, data, sizeof value);
    OK(isthmus_call_rank(call, MPI_COMM_WORLD, &from));
    CHECK(from == before);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &from));
    CHECK(from == rank);
    in_order &= value == counted;
    counted++;
}

/* Sends the request on, to the one behind the pointer, who counts it. */
static void do_relay(isthmus_call *call, const void *data, MPI_Count bytes, void *user)
{
    isthmus_pointer sender;
    (void)user;
    OK(isthmus_call_sender(call, &sender));
    OK(isthmus_request_send_to(data, bytes, &sender, arrived, 0));
}

static void do_arrived(isthmus_call *call, const void *data, MPI_Count bytes, void *user)
{
    (void)call, (void)user;
    CHECK(bytes == 5 && !memcmp(data, "there", 5));
    relayed++;
}

static void do_wake(isthmus_call *call, const void *data, MPI_Count bytes, void *user)
{
    (void)data, (void)bytes, (void)user;
    OK(isthmus_call_reply(call, "awake", 5));
    woken = 1;
}

/* Adds to the memory that the request is about. */
static void do_add(isthmus_call *call, const void *data, MPI_Count bytes, void *user)
{
    long *memory, value;
    MPI_Count room;
    (void)user;
    CHECK(bytes == sizeof value);
    memcpy(&value, data, sizeof value);
    OK(isthmus_call_memory(call, &memory, &room));
    CHECK(room == sizeof value);
    *memory += value;
}

/* Calls what it must not. */
static void do_wrong(isthmus_call *call, const void *data, MPI_Count bytes, void *user)
{
    int ran, last, codes[3];
    MPI_Request request;
    (void)data, (void)bytes, (void)user;
    codes[0] = MPI_Barrier(MPI_COMM_SELF);
    codes[1] = isthmus_handlers_run(0, &ran);
    codes[2] = isthmus_request_ask(NULL, 0, NULL, 0, 0, echo, MPI_COMM_WORLD, 0, &request);
    last = isthmus_call_reply((isthmus_call *)&ran, NULL, 0);
    CHECK(codes[0] == MPI_ERR_OTHER && codes[1] == MPI_ERR_OTHER && codes[2] == MPI_ERR_OTHER && last == MPI_ERR_ARG);
    OK(isthmus_call_reply(call, codes, sizeof codes));
}

static void replies(void)
{
    static char reply[MANY][16];
    MPI_Request requests[MANY];
    MPI_Status status;
    int i, n, flag = 0;
    for (i = 0; i < MANY; i++)
        OK(isthmus_request_ask(&i, sizeof i, reply[i], 16, i % size, echo, MPI_COMM_WORLD, 0, &requests[i]));
    OK(MPI_Wait(&requests[0], &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &n));
    CHECK(n == sizeof i && status.MPI_SOURCE == 0 && requests[0] == MPI_REQUEST_NULL);
    OK(MPI_Waitany(MANY, requests, &i, &status));
    CHECK(status.MPI_SOURCE == i % size);
    while (!flag)
        OK(MPI_Test(&requests[MANY - 1], &flag, MPI_STATUS_IGNORE));
    OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
    for (i = 0; i < MANY; i++)
        CHECK(!memcmp(reply[i], &i, sizeof i));
    OK(isthmus_request_ask(&i, 4, reply[0], 16, MPI_PROC_NULL, echo, MPI_COMM_WORLD, 0, &requests[0]));
    OK(MPI_Wait(&requests[0], &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
    OK(isthmus_request_send(&i, 4, MPI_PROC_NULL, echo, MPI_COMM_WORLD, 0));
    OK(isthmus_request_flush(MPI_PROC_NULL, MPI_COMM_WORLD));
}

static void long_ones(void)
{
    char *data = malloc(ISTHMUS_MAX_BYTES), *reply = malloc(ISTHMUS_MAX_BYTES);
    MPI_Request requests[4];
    int i;
    for (i = 0; i < ISTHMUS_MAX_BYTES; i++)
        data[i] = (char)(i * 7 + i / 1000);
    for (i = 0; i < 4; i++)
        OK(isthmus_request_ask(data, ISTHMUS_MAX_BYTES, reply, i ? 1000 : ISTHMUS_MAX_BYTES, next, echo, MPI_COMM_WORLD, 0,
                               &requests[i]));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    CHECK(!memcmp(data, reply, ISTHMUS_MAX_BYTES));
    for (i = 1; i < 4; i++)
        ERROR(MPI_Wait(&requests[i], MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    ERROR(isthmus_request_send(data, ISTHMUS_MAX_BYTES + 1, next, echo, MPI_COMM_WORLD, 0), MPI_ERR_COUNT);
    free(data);
    free(reply);
}

static void order(void)
{
    int i;
    for (i = 0; i < MANY; i++)
        OK(isthmus_request_send(&i, sizeof i, next, count, MPI_COMM_WORLD, 0));
    OK(isthmus_request_flush(next, MPI_COMM_WORLD));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(counted == MANY && in_order);
    OK(isthmus_request_send("there", 5, next, relay, MPI_COMM_WORLD, 0));
    while (!relayed)
        OK(isthmus_handlers_run(1, NULL));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* The process behind this one does not call MPI until its handler has run beside it. */
static void beside(void)
{
    MPI_Request request;
    char reply[8];
    if (rank % 2 && before == rank - 1) {
        while (!woken)
            usleep(1000);
    } else if (size > 1 && next == rank + 1) {
        OK(isthmus_request_ask(NULL, 0, reply, 8, next, wake, MPI_COMM_WORLD, 0, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(!memcmp(reply, "awake", 5));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* A receiver that does not call MPI: a sender that will not wait is told so. Then a third process wakes the receiver. */
static void room(void)
{
    static char data[10000];
    int code, sent = 0;
    woken = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (size > 2 && rank == 1) {
        while (!woken)
            usleep(1000);
    } else if (size > 2 && rank == 2) {
        OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(isthmus_request_send(NULL, 0, 1, wake, MPI_COMM_WORLD, 0));
    } else if (size > 2 && rank == 0) {
        while ((code = isthmus_request_send(data, sizeof data, 1, echo, MPI_COMM_WORLD, ISTHMUS_NOWAIT)) == MPI_SUCCESS)
            sent++;
        CHECK(code == ISTHMUS_WOULD_BLOCK && sent > 100 && sent < 2000);
        OK(MPI_Send(NULL, 0, MPI_BYTE, 2, 0, MPI_COMM_WORLD));
        for (; sent < 3000; sent++)
            OK(isthmus_request_send(data, sizeof data, 1, echo, MPI_COMM_WORLD, 0));
        OK(isthmus_request_flush(1, MPI_COMM_WORLD));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void pointers(void)
{
    long own = 0, one = 1, *part;
    isthmus_memory memory;
    isthmus_pointer mine, theirs, window, process;
    char text[200];
    MPI_Win win;
    OK(isthmus_memory_register(&own, sizeof own, &memory));
    OK(isthmus_pointer_to_memory(memory, 0, sizeof own, &mine));
    ERROR(isthmus_pointer_to_memory(memory, 1, sizeof own, &mine), MPI_ERR_RMA_RANGE);
    OK(isthmus_pointer_text(&mine, text, sizeof text));
    CHECK(strstr(text, "8 bytes at 0x") && strstr(text, "of rank"));
    OK(MPI_Sendrecv(&mine, ISTHMUS_POINTER_BYTES, MPI_BYTE, before, 0, &theirs, ISTHMUS_POINTER_BYTES, MPI_BYTE, next, 0,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(isthmus_request_send_to(&one, sizeof one, &theirs, add, 0));
    OK(isthmus_request_flush_to(&theirs));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(own == 1);
    OK(isthmus_memory_unregister(&memory));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(isthmus_request_send_to(&one, sizeof one, &theirs, add, 0));
    ERROR(isthmus_request_flush_to(&theirs), MPI_ERR_RMA_RANGE);
    theirs.bytes[20] ^= 1;
    ERROR(isthmus_request_send_to(&one, sizeof one, &theirs, add, 0), MPI_ERR_ARG);
    OK(MPI_Win_allocate(4 * sizeof own, sizeof own, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win));
    part[3] = 0;
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    ERROR(isthmus_pointer_to_window(win, 4, 1, &window), MPI_ERR_RMA_RANGE);
    OK(isthmus_pointer_to_window(win, 3, sizeof own, &window));
    OK(isthmus_pointer_to_process(rank, MPI_COMM_WORLD, &process));
    OK(isthmus_request_send_to(&one, sizeof one, &window, add, 0));
    OK(isthmus_request_flush_to(&process));
    CHECK(part[3] == 1);
    OK(MPI_Win_free(&win));
    OK(isthmus_request_send_to(&one, sizeof one, &window, add, 0));
    ERROR(isthmus_request_flush_to(&process), MPI_ERR_RMA_RANGE);
}

static void mistakes(void)
{
    MPI_Request request;
    isthmus_handler again, other = 77;
    isthmus_memory memory;
    isthmus_pointer pointer;
    char text[MPI_MAX_ERROR_STRING];
    int code, n, codes[3];
    OK(isthmus_request_ask(NULL, 0, NULL, 0, next, nobody, MPI_COMM_WORLD, 0, &request));
    code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    ERROR(code, MPI_ERR_NAME);
    OK(MPI_Error_string(code, text, &n));
    CHECK(strstr(text, "has no handler \"nobody\"") && strstr(text, "in MPI_COMM_WORLD"));
    OK(isthmus_request_send(NULL, 0, next, nobody, MPI_COMM_WORLD, 0));
    ERROR(isthmus_request_flush(next, MPI_COMM_WORLD), MPI_ERR_NAME);
    OK(isthmus_request_flush(next, MPI_COMM_WORLD));
    ERROR(isthmus_handler_register("echo", do_echo, &echo, 0, &again), MPI_ERR_ARG);
    ERROR(isthmus_handler_register("", do_echo, &echo, 0, &again), MPI_ERR_ARG);
    ERROR(isthmus_handler_register("flags", do_echo, &echo, 64, &again), MPI_ERR_ARG);
    SAYS(isthmus_request_send(NULL, 0, size, echo, MPI_COMM_WORLD, 0), MPI_ERR_RANK, "argument rank is");
    SAYS(isthmus_request_flush(size, MPI_COMM_WORLD), MPI_ERR_RANK, "argument rank is");
    SAYS(isthmus_pointer_to_process(size, MPI_COMM_WORLD, &pointer), MPI_ERR_RANK, "argument rank is");
    SAYS(isthmus_request_send(NULL, 4, next, echo, MPI_COMM_WORLD, 0), MPI_ERR_BUFFER, "data is a null pointer, expected 4 bytes");
    SAYS(isthmus_memory_register(NULL, 8, &memory), MPI_ERR_BASE, "base is a null pointer");
    SAYS(isthmus_memory_register(MPI_IN_PLACE, 8, &memory), MPI_ERR_BASE, "base is MPI_IN_PLACE");
    ERROR(isthmus_request_send(NULL, 0, next, other, MPI_COMM_WORLD, 0), MPI_ERR_ARG);
    ERROR(isthmus_request_send(NULL, 0, next, echo, MPI_COMM_WORLD, ISTHMUS_SHORT), MPI_ERR_ARG);
    ERROR(isthmus_call_reply(NULL, NULL, 0), MPI_ERR_ARG);
    OK(isthmus_request_ask(NULL, 0, codes, sizeof codes, next, wrong, MPI_COMM_WORLD, 0, &request));
    ERROR(MPI_Cancel(&request), MPI_ERR_REQUEST);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(isthmus_handler_unregister(&wrong));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(isthmus_handler_register("wrong", NULL, NULL, 0, &wrong));
    OK(isthmus_request_send(NULL, 0, next, wrong, MPI_COMM_WORLD, 0));
    ERROR(isthmus_request_flush(next, MPI_COMM_WORLD), MPI_ERR_NAME);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size, before = (rank + size - 1) % size;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(isthmus_handler_register("nobody", NULL, NULL, 0, &nobody));
    OK(isthmus_handler_register("echo", do_echo, &echo, 0, &echo));
    OK(isthmus_handler_register("count", do_count, NULL, 0, &count));
    OK(isthmus_handler_register("relay", do_relay, NULL, 0, &relay));
    OK(isthmus_handler_register("arrived", do_arrived, NULL, 0, &arrived));
    OK(isthmus_handler_register("wake", do_wake, NULL, ISTHMUS_SHORT, &wake));
    OK(isthmus_handler_register("add", do_add, NULL, 0, &add));
    OK(isthmus_handler_register("wrong", do_wrong, NULL, 0, &wrong));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    replies();
    long_ones();
    order();
    beside();
    room();
    pointers();
    mistakes();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Finalize();
    return 0;
}
