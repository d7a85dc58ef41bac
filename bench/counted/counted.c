/* SPDX-License-Identifier: Apache-2.0 */
/* What operations cost that can be counted: instructions (callgrind) and system calls (strace) of one process.
 *
 *   counted ROUNDS
 *
 * Two processes. Rank 1 is counted: it runs under valgrind or strace, and pauses before each call, so that it finds
 * everything there that it would otherwise wait for. What the fewest of ROUNDS calls took is what a call costs, because
 * waiting, and waking a process that has gone to sleep, only add to it.
 *
 * Under valgrind (with --collect-atstart=no) each call has a dump of its own, named like its operation. Elsewhere two
 * marks are written to where nothing is open, which strace shows: "mark NAME" before a call, "mark -" after it.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

enum { MANY = 32, LONGEST = 1 << 16 };

static int rank, other, rounds;
static char in[2 * LONGEST], out[2 * LONGEST];
/* The same processes with a topology, and in the other order. */
static MPI_Comm grid, reversed;
/* So many more communicators than there is shared memory for on a node. */
enum { ALIVE = 500 };
static MPI_Comm alive[ALIVE];
static MPI_Win window, locked;
static MPI_Datatype vector;
/* Receives: one that is started again and again, and one for which nothing comes. */
static MPI_Request started = MPI_REQUEST_NULL, idle = MPI_REQUEST_NULL, idle_many[MANY];

/* Long enough for rank 0 to have done its part, and mostly too short for it to go to sleep. */
static void let_the_other_go(int turn)
{
    struct timespec pause = {0, 10000L << turn % 6};
    nanosleep(&pause, NULL);
}

static void begin(const char *name)
{
    if (RUNNING_ON_VALGRIND) {
        CALLGRIND_ZERO_STATS;
        CALLGRIND_TOGGLE_COLLECT;
    } else {
        char mark[64];
        int length = snprintf(mark, sizeof mark, "mark %s", name);
        if (write(-1, mark, (size_t)length) < 0)
            return;
    }
}

static void end(const char *name)
{
    if (RUNNING_ON_VALGRIND) {
        CALLGRIND_TOGGLE_COLLECT;
        CALLGRIND_DUMP_STATS_AT(name);
    } else if (write(-1, "mark -", 6) < 0) {
        return;
    }
}

/* Of every operation rank 0 does `ahead` while rank 1 pauses, then rank 1 what is counted, and rank 0 `after`. */
typedef void part(int bytes);

static void nothing(int bytes)
{
    (void)bytes;
}

static void send(int bytes)
{
    MPI_Send(out, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
}

static void receive(int bytes)
{
    MPI_Recv(in, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void isend(int bytes)
{
    MPI_Request request;
    MPI_Isend(out, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void irecv(int bytes)
{
    MPI_Request request;
    MPI_Irecv(in, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void sendrecv(int bytes)
{
    MPI_Sendrecv(out, bytes, MPI_BYTE, other, 0, in, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void from_any(int bytes)
{
    MPI_Recv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void probed(int bytes)
{
    int there = 0;
    while (!there)
        MPI_Iprobe(other, 0, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    receive(bytes);
}

static void improbed(int bytes)
{
    MPI_Message message;
    int there = 0;
    while (!there)
        MPI_Improbe(other, 0, MPI_COMM_WORLD, &there, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(in, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
}

static void persistent(int bytes)
{
    if (started == MPI_REQUEST_NULL)
        MPI_Recv_init(in, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &started);
    MPI_Start(&started);
    MPI_Wait(&started, MPI_STATUS_IGNORE);
}

static void iprobe(int bytes)
{
    int there;
    (void)bytes;
    MPI_Iprobe(other, 1, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
}

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

static void barrier(int bytes)
{
    (void)bytes;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast_from_0(int bytes)
{
    MPI_Bcast(in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void bcast_from_1(int bytes)
{
    MPI_Bcast(in, bytes, MPI_BYTE, 1, MPI_COMM_WORLD);
}

static void ibcast(int bytes)
{
    MPI_Request request;
    MPI_Ibcast(in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void reduce(int bytes)
{
    MPI_Reduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, 1, MPI_COMM_WORLD);
}

static void allreduce(int bytes)
{
    MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void iallreduce(int bytes)
{
    MPI_Request request;
    MPI_Iallreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void scan(int bytes)
{
    MPI_Scan(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce_scatter_block(int bytes)
{
    MPI_Reduce_scatter_block(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void gather(int bytes)
{
    MPI_Gather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, 1, MPI_COMM_WORLD);
}

static void scatter(int bytes)
{
    MPI_Scatter(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void scatterv_from_1(int bytes)
{
    int counts[2] = {bytes, bytes}, from[2] = {0, bytes};
    MPI_Scatterv(out, counts, from, MPI_BYTE, in, bytes, MPI_BYTE, 1, MPI_COMM_WORLD);
}

static void allgather(int bytes)
{
    MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void allgatherv(int bytes)
{
    int counts[2] = {bytes, bytes}, from[2] = {0, bytes};
    MPI_Allgatherv(out, bytes, MPI_BYTE, in, counts, from, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoall(int bytes)
{
    MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoallv(int bytes)
{
    int counts[2] = {bytes, bytes}, from[2] = {0, bytes};
    MPI_Alltoallv(out, counts, from, MPI_BYTE, in, counts, from, MPI_BYTE, MPI_COMM_WORLD);
}

static void neighbor_alltoall(int bytes)
{
    MPI_Neighbor_alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, grid);
}

static void dup_and_free(int bytes)
{
    MPI_Comm copy;
    (void)bytes;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_free(&copy);
}

/* The counted process is the one that takes numbers and memory for all. */
static void dup_first_and_free(int bytes)
{
    MPI_Comm copy;
    (void)bytes;
    MPI_Comm_dup(reversed, &copy);
    MPI_Comm_free(&copy);
}

static void dup_and_use(int bytes)
{
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, copy);
    MPI_Comm_free(&copy);
}

static void keep_alive(int bytes)
{
    (void)bytes;
    for (int n = 0; n < ALIVE; n++)
        MPI_Comm_dup(MPI_COMM_WORLD, &alive[n]);
}

static void allreduce_of_many(int bytes) { MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, alive[ALIVE - 1]); }

static void free_alive(int bytes)
{
    (void)bytes;
    for (int n = 0; n < ALIVE; n++)
        MPI_Comm_free(&alive[n]);
}

static void split_and_free(int bytes)
{
    MPI_Comm part;
    (void)bytes;
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &part);
    MPI_Comm_free(&part);
}

static void cart_and_free(int bytes)
{
    MPI_Comm cart;
    int two = 2, round = 1;
    (void)bytes;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &two, &round, 0, &cart);
    MPI_Comm_free(&cart);
}

static void put(int bytes)
{
    MPI_Put(out, bytes, MPI_BYTE, other, 0, bytes, MPI_BYTE, window);
    MPI_Win_flush(other, window);
}

static void get(int bytes)
{
    MPI_Get(in, bytes, MPI_BYTE, other, 0, bytes, MPI_BYTE, window);
    MPI_Win_flush(other, window);
}

static void fetch_and_op(int bytes)
{
    long one = 1, before;
    (void)bytes;
    MPI_Fetch_and_op(&one, &before, MPI_LONG, other, 0, MPI_SUM, window);
    MPI_Win_flush(other, window);
}

static void accumulate(int bytes)
{
    MPI_Accumulate(out, bytes / 8, MPI_LONG, other, 0, bytes / 8, MPI_LONG, MPI_SUM, window);
    MPI_Win_flush(other, window);
}

static void get_accumulate(int bytes)
{
    MPI_Get_accumulate(out, bytes / 8, MPI_LONG, in, bytes / 8, MPI_LONG, other, 0, bytes / 8, MPI_LONG, MPI_SUM, window);
    MPI_Win_flush(other, window);
}

static void compare_and_swap(int bytes)
{
    long new = 1, old = 2, before;
    (void)bytes;
    MPI_Compare_and_swap(&new, &old, &before, MPI_LONG, other, 0, window);
    MPI_Win_flush(other, window);
}

static void lock_put_unlock(int bytes)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, locked);
    MPI_Put(out, bytes, MPI_BYTE, other, 0, bytes, MPI_BYTE, locked);
    MPI_Win_unlock(other, locked);
}

static void comm_rank(int bytes)
{
    int me;
    (void)bytes;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
}

static void reduce_local(int bytes)
{
    MPI_Reduce_local(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM);
}

static void pack(int bytes)
{
    int at = 0;
    (void)bytes;
    MPI_Pack(out, 1, vector, in, sizeof in, &at, MPI_COMM_SELF);
}

static void contiguous(int bytes)
{
    MPI_Datatype type;
    (void)bytes;
    MPI_Type_contiguous(4, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&type);
}

static const struct {
    const char *name;
    part *ahead, *counted, *after;
    int bytes;
} operations[] = {
    {"send-8", nothing, send, receive, 8},
    {"send-1024", nothing, send, receive, 1024},
    {"isend+wait-8", nothing, isend, receive, 8},
    {"recv-8", send, receive, nothing, 8},
    {"recv-1024", send, receive, nothing, 1024},
    {"irecv+wait-8", send, irecv, nothing, 8},
    {"recv-any-8", send, from_any, nothing, 8},
    {"iprobe+recv-8", send, probed, nothing, 8},
    {"improbe+mrecv-8", send, improbed, nothing, 8},
    {"start+wait-8", send, persistent, nothing, 8},
    {"sendrecv-8", sendrecv, sendrecv, nothing, 8},
    {"iprobe-nothing", nothing, iprobe, nothing, 8},
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
    {"barrier", barrier, barrier, nothing, 0},
    {"bcast-0", bcast_from_0, bcast_from_0, nothing, 0},
    {"bcast-8", bcast_from_0, bcast_from_0, nothing, 8},
    {"bcast-1024", bcast_from_0, bcast_from_0, nothing, 1024},
    {"bcast-root-8", bcast_from_1, bcast_from_1, nothing, 8},
    {"ibcast-8", ibcast, ibcast, nothing, 8},
    {"reduce-8", reduce, reduce, nothing, 8},
    {"allreduce-8", allreduce, allreduce, nothing, 8},
    {"allreduce-1024", allreduce, allreduce, nothing, 1024},
    {"iallreduce-8", iallreduce, iallreduce, nothing, 8},
    {"scan-8", scan, scan, nothing, 8},
    {"reduce_scatter_block-64", reduce_scatter_block, reduce_scatter_block, nothing, 64},
    {"gather-8", gather, gather, nothing, 8},
    {"scatter-8", scatter, scatter, nothing, 8},
    {"scatterv-root-8", scatterv_from_1, scatterv_from_1, nothing, 8},
    {"allgather-8", allgather, allgather, nothing, 8},
    {"allgather-1024", allgather, allgather, nothing, 1024},
    {"allgatherv-8", allgatherv, allgatherv, nothing, 8},
    {"alltoall-8", alltoall, alltoall, nothing, 8},
    {"alltoall-64", alltoall, alltoall, nothing, 64},
    {"alltoallv-8", alltoallv, alltoallv, nothing, 8},
    {"neighbor_alltoall-64", neighbor_alltoall, neighbor_alltoall, nothing, 64},
    {"comm_dup+free", dup_and_free, dup_and_free, nothing, 0},
    {"comm_dup-first+free", dup_first_and_free, dup_first_and_free, nothing, 0},
    {"comm_dup+allreduce+free", dup_and_use, dup_and_use, nothing, 8},
    {"comm_split+free", split_and_free, split_and_free, nothing, 0},
    {"cart_create+free", cart_and_free, cart_and_free, nothing, 0},
    {"put+flush-8", nothing, put, nothing, 8},
    {"get+flush-8", nothing, get, nothing, 8},
    {"fetch_and_op+flush", nothing, fetch_and_op, nothing, 8},
    {"accumulate+flush-8", nothing, accumulate, nothing, 8},
    {"get_accumulate+flush-8", nothing, get_accumulate, nothing, 8},
    {"compare_and_swap+flush", nothing, compare_and_swap, nothing, 8},
    {"lock+put+unlock-8", nothing, lock_put_unlock, nothing, 8},
    {"comm_rank", nothing, comm_rank, nothing, 0},
    {"reduce_local-64", nothing, reduce_local, nothing, 64},
    {"pack-vector", nothing, pack, nothing, 0},
    {"type+commit+free", nothing, contiguous, nothing, 0},
    /* The rest with many communicators. */
    {"", keep_alive, keep_alive, nothing, 0},
    {"500-comm_dup+free", dup_and_free, dup_and_free, nothing, 0},
    {"500-comm_dup-first+free", dup_first_and_free, dup_first_and_free, nothing, 0},
    {"500-allreduce-8", allreduce_of_many, allreduce_of_many, nothing, 8},
    {"", free_alive, free_alive, nothing, 0},
};

int main(int argc, char **argv)
{
    int two = 2, round = 1, size;
    long *memory;
    rounds = argc > 1 ? atoi(argv[1]) : 5;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2 || rounds < 1) {
        fprintf(stderr, "usage: counted ROUNDS, by two processes\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    other = 1 - rank;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &two, &round, 0, &grid);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    MPI_Win_allocate(1024, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_allocate(1024, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &locked);
    MPI_Win_lock_all(0, window);
    MPI_Type_vector(100, 3, 4, MPI_FLOAT, &vector);
    MPI_Type_commit(&vector);
    for (size_t which = 0; which < sizeof operations / sizeof *operations; which++) {
        /* The first round fills what is remembered from then on. */
        for (int turn = -1; turn < rounds; turn++) {
            int bytes = operations[which].bytes, counts = operations[which].name[0] != '\0';
            /* What is not counted is done once. */
            if (!counts && turn >= 0)
                break;
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank == 0) {
                operations[which].ahead(bytes);
                operations[which].after(bytes);
                continue;
            }
            let_the_other_go(turn + 1);
            if (turn >= 0)
                begin(operations[which].name);
            operations[which].counted(bytes);
            if (turn >= 0)
                end(operations[which].name);
        }
    }
    if (rank == 1) {
        MPI_Request_free(&started);
        MPI_Cancel(&idle);
        MPI_Wait(&idle, MPI_STATUS_IGNORE);
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Win_free(&locked);
    MPI_Type_free(&vector);
    MPI_Comm_free(&grid);
    MPI_Comm_free(&reversed);
    MPI_Finalize();
    return 0;
}
