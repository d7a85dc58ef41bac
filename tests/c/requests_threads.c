/* SPDX-License-Identifier: Apache-2.0 */
/* Remote service requests of several threads at once (MPI_THREAD_MULTIPLE): handlers run one at a time, requests of one
   thread in order, and each has its own reply.
   ranks: 1 2 3 */
#include "check.h"
#include <isthmus.h>
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 300, DEPTH = 8 };

struct message {
    int rank, thread, round;
};

static int rank, size;
static isthmus_handler echo, note;
/* Of handlers. */
static int inside, notes, last[8][THREADS];

static void enter(void) { CHECK(inside++ == 0); }
static void leave(void) { CHECK(--inside == 0); }

static void do_echo(isthmus_call *call, const void *data, MPI_Count bytes, void *user)
{
    (void)user;
    enter();
    OK(isthmus_call_reply(call, data, bytes));
    leave();
}

static void do_note(isthmus_call *call, const void *data, MPI_Count bytes, void *user)
{
    struct message message;
    (void)call, (void)user;
    enter();
    CHECK(bytes == sizeof message);
    memcpy(&message, data, sizeof message);
    CHECK(message.round == last[message.rank][message.thread]++);
    notes++;
    leave();
}

static void *work(void *argument)
{
    struct message mine = {rank, (int)(size_t)argument, 0}, replies[DEPTH];
    MPI_Request requests[DEPTH];
    int i, to, noted[8] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        for (i = 0; i < DEPTH; i++) {
            mine.round = round * DEPTH + i;
            OK(isthmus_request_ask(&mine, sizeof mine, &replies[i], sizeof mine, (rank + i) % size, echo, MPI_COMM_WORLD, 0,
                                   &requests[i]));
        }
        to = (rank + round) % size;
        mine.round = noted[to]++;
        OK(isthmus_request_send(&mine, sizeof mine, to, note, MPI_COMM_WORLD, 0));
        OK(MPI_Waitall(DEPTH, requests, MPI_STATUSES_IGNORE));
        for (i = 0; i < DEPTH; i++)
            CHECK(replies[i].rank == rank && replies[i].thread == mine.thread && replies[i].round == round * DEPTH + i);
    }
    for (to = 0; to < size; to++)
        OK(isthmus_request_flush(to, MPI_COMM_WORLD));
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int provided, sum;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(isthmus_handler_register("echo", do_echo, NULL, ISTHMUS_SHORT, &echo));
    OK(isthmus_handler_register("note", do_note, NULL, 0, &note));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (size_t i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, work, (void *)i));
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(threads[i], NULL));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Allreduce(&notes, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == size * THREADS * ROUNDS);
    MPI_Finalize();
    return 0;
}
