/* SPDX-License-Identifier: Apache-2.0 */
/* Random operations of several threads at once, MPI_THREAD_MULTIPLE, against an oracle.

   Thread t of rank 0 and thread t of rank 1 are partners. Both draw the same random numbers, so each knows what the other
   does: who sends, how long, which type, what the content is. Everything that arrives is compared with what must arrive. Messages of
   the `pool` belong to nobody: any thread takes them with a matched probe; each must be taken exactly once.

   usage: stress [THREADS [SECONDS [SEED]]]      ends with "stress: N rounds ..." and 0 if all was right */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 300000, BATCH = 20, TAGS = 64, NEVER = 1 << 20, POOL_ROUNDS = 1 << 16, MOST_THREADS = 64 };

static int rank, size, partner, threads = 8;
static double seconds = 10;
static uint64_t seed = 1;
static MPI_Comm pool, shared;
static atomic_long rounds_done, messages_done, cancels_done, cancelled_sends;
static atomic_uchar *taken; /* of the partner's pool messages: thread * POOL_ROUNDS + round */

typedef struct {
    int number;
    uint64_t both;   /* state that the partners share */
    uint64_t alone;  /* state of this thread: only for what the partner need not know */
    long round;
    int operation;
    int pooled;
    MPI_Comm own;
    unsigned char *out, *in;
} Thread;

static uint64_t draw(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *state = x;
    return x * 0x2545f4914f6cdd1dULL >> 11;
}

static int below(uint64_t *state, int n)
{
    return (int)(draw(state) % (uint64_t)n);
}

static void fail(const Thread *t, const char *format, ...)
{
    char text[500];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "stress: rank %d thread %d round %ld operation %d seed %llu: %s\n", rank, t->number, t->round, t->operation,
            (unsigned long long)seed, text);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

#define OK(call) \
    do { \
        int code_ = (call); \
        if (code_ != MPI_SUCCESS) \
            fail(t, "%s returned %d", #call, code_); \
    } while (0)
#define CHECK(condition) \
    do { \
        if (!(condition)) \
            fail(t, "not true: %s", #condition); \
    } while (0)

static unsigned char content(uint64_t key, long at)
{
    return (unsigned char)((key + (uint64_t)at * 2654435761u) >> 7);
}

static void fill(unsigned char *data, uint64_t key, long bytes)
{
    for (long i = 0; i < bytes; i++)
        data[i] = content(key, i);
}

static void compare(const Thread *t, const unsigned char *data, uint64_t key, long bytes)
{
    for (long i = 0; i < bytes; i++)
        if (data[i] != content(key, i))
            fail(t, "byte %ld of %ld is %d, should be %d", i, bytes, data[i], content(key, i));
}

static int length(Thread *t)
{
    static const int upto[] = {1, 16, 100, 2000, 20000, MOST};
    return below(&t->both, upto[below(&t->both, 6)]);
}

/* Does this rank do the first part of the round? */
static int mine(Thread *t)
{
    return below(&t->both, 2) == rank;
}

static void send_somehow(Thread *t, const void *data, int n, int tag, MPI_Comm comm)
{
    MPI_Request request;
    int done = 0;
    switch (below(&t->alone, 8)) {
    case 0: OK(MPI_Send(data, n, MPI_BYTE, partner, tag, comm)); return;
    case 1: OK(MPI_Ssend(data, n, MPI_BYTE, partner, tag, comm)); return;
    case 2: OK(MPI_Bsend(data, n, MPI_BYTE, partner, tag, comm)); return;
    case 3: OK(MPI_Isend(data, n, MPI_BYTE, partner, tag, comm, &request)); break;
    case 4: OK(MPI_Issend_c(data, n, MPI_BYTE, partner, tag, comm, &request)); break;
    case 5: OK(MPI_Ibsend(data, n, MPI_BYTE, partner, tag, comm, &request)); break;
    case 6:
        OK(MPI_Send_init(data, n, MPI_BYTE, partner, tag, comm, &request));
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&request));
        return;
    default:
        OK(MPI_Isend(data, n, MPI_BYTE, partner, tag, comm, &request));
        while (!done)
            OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        return;
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void receive_somehow(Thread *t, void *data, int n, int tag, MPI_Comm comm, int alone_there)
{
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    int done = 0, got, wild = alone_there && below(&t->alone, 2);
    int source = wild ? MPI_ANY_SOURCE : partner, any = wild ? MPI_ANY_TAG : tag;
    switch (below(&t->alone, 7)) {
    case 0: OK(MPI_Recv(data, MOST, MPI_BYTE, source, any, comm, &status)); break;
    case 1:
        OK(MPI_Irecv(data, MOST, MPI_BYTE, source, any, comm, &request));
        OK(MPI_Wait(&request, &status));
        break;
    case 2:
        OK(MPI_Irecv(data, MOST, MPI_BYTE, source, any, comm, &request));
        while (!done)
            OK(MPI_Test(&request, &done, &status));
        break;
    case 3:
        OK(MPI_Probe(source, any, comm, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &got));
        CHECK(got == n);
        OK(MPI_Recv(data, got, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comm, &status));
        break;
    case 4:
        while (!done)
            OK(MPI_Iprobe(source, any, comm, &done, &status));
        OK(MPI_Recv(data, MOST, MPI_BYTE, source, any, comm, &status));
        break;
    case 5:
        OK(MPI_Mprobe(source, any, comm, &message, &status));
        OK(MPI_Mrecv(data, MOST, MPI_BYTE, &message, &status));
        break;
    default:
        while (!done)
            OK(MPI_Improbe(source, any, comm, &done, &message, &status));
        OK(MPI_Imrecv(data, MOST, MPI_BYTE, &message, &request));
        OK(MPI_Wait(&request, &status));
    }
    OK(MPI_Get_count(&status, MPI_BYTE, &got));
    if (got != n || status.MPI_TAG != tag || status.MPI_SOURCE != partner)
        fail(t, "status says %d bytes, tag %d, source %d; should be %d, %d, %d", got, status.MPI_TAG, status.MPI_SOURCE, n, tag,
             partner);
}

static void one_message(Thread *t)
{
    int n = length(t), own = below(&t->both, 2), tag = t->number * TAGS + below(&t->both, TAGS);
    uint64_t key = draw(&t->both);
    MPI_Comm comm = own ? t->own : shared;
    if (mine(t)) {
        fill(t->out, key, n);
        send_somehow(t, t->out, n, tag, comm);
    } else {
        receive_somehow(t, t->in, n, tag, comm, own);
        compare(t, t->in, key, n);
    }
    messages_done++;
}

static void shuffle(Thread *t, int *order, int n)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int k = below(&t->both, i + 1), old = order[i];
        order[i] = order[k];
        order[k] = old;
    }
}

/* Several at once, in another order at the receiver; the receiver completes them in one of the ways that there are. */
static void burst(Thread *t)
{
    enum { N = 12 };
    MPI_Request requests[N];
    MPI_Status statuses[N];
    uint64_t keys[N];
    int lengths[N], at[N + 1], order[N], indices[N], left = N, found, flag = 0, how = below(&t->alone, 5);
    at[0] = 0;
    for (int i = 0; i < N; i++) {
        lengths[i] = length(t) / N;
        keys[i] = draw(&t->both);
        at[i + 1] = at[i] + lengths[i];
    }
    shuffle(t, order, N);
    int sends = mine(t);
    for (int i = 0; i < N; i++) {
        int m = sends ? i : order[i], tag = t->number * TAGS + m;
        if (sends) {
            fill(t->out + at[m], keys[m], lengths[m]);
            OK(MPI_Isend(t->out + at[m], lengths[m], MPI_BYTE, partner, tag, shared, &requests[m]));
        } else
            OK(MPI_Irecv(t->in + at[m], lengths[m], MPI_BYTE, partner, tag, shared, &requests[m]));
    }
    while (left > 0) {
        if (how == 0) {
            OK(MPI_Waitall(N, requests, statuses));
            left = 0;
        } else if (how == 1) {
            OK(MPI_Waitany(N, requests, &found, statuses));
            CHECK(found >= 0 && found < N);
            CHECK(sends || statuses[0].MPI_TAG == t->number * TAGS + found);
            left--;
        } else if (how == 2) {
            OK(MPI_Waitsome(N, requests, &found, indices, statuses));
            CHECK(found > 0);
            left -= found;
        } else if (how == 3) {
            OK(MPI_Testsome(N, requests, &found, indices, statuses));
            left -= found;
        } else {
            OK(MPI_Testall(N, requests, &flag, statuses));
            left = flag ? 0 : N;
        }
    }
    for (int i = 0; i < N && !sends; i++)
        compare(t, t->in + at[i], keys[i], lengths[i]);
    messages_done += N;
}

/* Both cancel a receive and a send that nothing matches. The receive is withdrawn; the send is too, or it is
   delivered: a partner that gets no processor for long says nothing about it in time. */
static void cancel(Thread *t)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    uint64_t key = draw(&t->both);
    int n = length(t), tag = NEVER + MOST_THREADS + t->number, gone, delivered, comes, got;
    OK(MPI_Irecv(t->in, 1, MPI_BYTE, partner, NEVER + t->number, shared, &requests[0]));
    fill(t->out, key + (uint64_t)rank, n);
    if (below(&t->alone, 2))
        OK(MPI_Isend(t->out, n, MPI_BYTE, partner, tag, shared, &requests[1]));
    else
        OK(MPI_Issend(t->out, n, MPI_BYTE, partner, tag, shared, &requests[1]));
    OK(MPI_Cancel(&requests[0]));
    OK(MPI_Cancel(&requests[1]));
    OK(MPI_Waitall(2, requests, statuses));
    OK(MPI_Test_cancelled(&statuses[0], &gone));
    CHECK(gone);
    OK(MPI_Test_cancelled(&statuses[1], &gone));
    memset(t->out, 0, (size_t)n);
    delivered = !gone;
    OK(MPI_Sendrecv(&delivered, 1, MPI_INT, partner, 4, &comes, 1, MPI_INT, partner, 4, t->own, MPI_STATUS_IGNORE));
    if (comes) {
        OK(MPI_Recv(t->in, MOST, MPI_BYTE, partner, tag, shared, &statuses[0]));
        OK(MPI_Get_count(&statuses[0], MPI_BYTE, &got));
        CHECK(got == n);
        compare(t, t->in, key + (uint64_t)partner, n);
    }
    cancels_done++;
    cancelled_sends += gone;
}

static void collective(Thread *t)
{
    int n = 1 + length(t) / 64, root = below(&t->both, size), me, all;
    uint64_t key = draw(&t->both);
    long *out = (long *)t->out, *in = (long *)t->in;
    MPI_Request request = MPI_REQUEST_NULL;
    OK(MPI_Comm_rank(t->own, &me));
    OK(MPI_Comm_size(t->own, &all));
    root %= all;
    for (int i = 0; i < n * all && i < MOST / 8; i++)
        out[i] = (long)(key % 1000) + me * 7 + i;
    switch (below(&t->both, 6)) {
    case 0: OK(MPI_Barrier(t->own)); break;
    case 1:
    case 2:
        OK(below(&t->both, 2) ? MPI_Allreduce(out, in, n, MPI_LONG, MPI_SUM, t->own)
                              : MPI_Iallreduce(out, in, n, MPI_LONG, MPI_SUM, t->own, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int i = 0; i < n; i++)
            CHECK(in[i] == all * ((long)(key % 1000) + i) + 7 * (all * (all - 1) / 2));
        break;
    case 3:
        if (me == root)
            fill(t->in, key, n);
        OK(MPI_Bcast(t->in, n, MPI_BYTE, root, t->own));
        compare(t, t->in, key, n);
        break;
    case 4:
        n = n > 1000 ? 1000 : n;
        OK(MPI_Allgather(out, n, MPI_LONG, in, n, MPI_LONG, t->own));
        for (int r = 0; r < all; r++)
            CHECK(in[r * n] == (long)(key % 1000) + r * 7 && in[r * n + n - 1] == (long)(key % 1000) + r * 7 + n - 1);
        break;
    default:
        n = n > 1000 ? 1000 : n;
        OK(MPI_Alltoall(out, n, MPI_LONG, in, n, MPI_LONG, t->own));
        for (int r = 0; r < all; r++)
            CHECK(in[r * n] == (long)(key % 1000) + r * 7 + me * n);
    }
}

static void duplicate(Thread *t)
{
    MPI_Comm fresh;
    MPI_Request request;
    uint64_t key = draw(&t->both);
    int n = length(t);
    OK(MPI_Comm_dup(t->own, &fresh));
    fill(t->out, key + (uint64_t)rank, n);
    OK(MPI_Irecv(t->in, n, MPI_BYTE, partner, 3, fresh, &request));
    OK(MPI_Send(t->out, n, MPI_BYTE, partner, 3, fresh));
    OK(MPI_Comm_free(&fresh));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    compare(t, t->in, key + (uint64_t)partner, n);
}

static void typed(Thread *t)
{
    MPI_Datatype type;
    MPI_Request request = MPI_REQUEST_NULL;
    uint64_t key = draw(&t->both);
    int blocks = 1 + length(t) / 40, block = 1 + below(&t->both, 9), stride = block + below(&t->both, 9);
    OK(MPI_Type_vector(blocks, block, stride, MPI_BYTE, &type));
    OK(MPI_Type_commit(&type));
    int extent = (blocks - 1) * stride + block, sends = mine(t);
    if (sends) {
        fill(t->out, key, extent);
        OK(MPI_Isend(t->out, 1, type, partner, t->number * TAGS, shared, &request));
    } else {
        memset(t->in, 0xa5, (size_t)extent);
        OK(MPI_Irecv(t->in, 1, type, partner, t->number * TAGS, shared, &request));
    }
    OK(MPI_Type_free(&type));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < extent && !sends; i++)
        CHECK(t->in[i] == (i % stride < block ? content(key, i) : 0xa5));
    messages_done++;
}

static void both_ways(Thread *t)
{
    uint64_t key = draw(&t->both);
    int n = length(t), how = below(&t->both, 3);
    MPI_Request request;
    MPI_Status status;
    int tag = t->number * TAGS + 1;
    fill(how == 0 ? t->out : t->in, key + (uint64_t)rank, n);
    if (how == 0)
        OK(MPI_Sendrecv(t->out, n, MPI_BYTE, partner, tag, t->in, n, MPI_BYTE, partner, tag, shared, &status));
    else if (how == 1)
        OK(MPI_Sendrecv_replace(t->in, n, MPI_BYTE, partner, tag, partner, tag, shared, &status));
    else {
        OK(MPI_Isendrecv_replace(t->in, n, MPI_BYTE, partner, tag, partner, tag, shared, &request));
        OK(MPI_Wait(&request, &status));
    }
    compare(t, t->in, key + (uint64_t)partner, n);
    messages_done += 2;
}

static void partitioned(Thread *t)
{
    uint64_t key = draw(&t->both);
    int parts = 1 + below(&t->both, 16), n = parts * (1 + length(t) / parts), order[16], flag = 0;
    n = n > MOST ? parts : n;
    MPI_Request request;
    int sends = mine(t), tag = t->number;
    shuffle(t, order, parts);
    if (sends) {
        OK(MPI_Psend_init(t->out, parts, n / parts, MPI_BYTE, partner, tag, shared, MPI_INFO_NULL, &request));
        OK(MPI_Start(&request));
        fill(t->out, key, n);
        for (int i = 0; i < parts; i++)
            OK(MPI_Pready(order[i], request));
    } else {
        OK(MPI_Precv_init(t->in, 1, n, MPI_BYTE, partner, tag, shared, MPI_INFO_NULL, &request));
        OK(MPI_Start(&request));
        while (!flag)
            OK(MPI_Parrived(request, 0, &flag));
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));
    if (!sends)
        compare(t, t->in, key, n);
}

static int query(void *extra, MPI_Status *status)
{
    MPI_Status_set_elements(status, MPI_BYTE, *(int *)extra);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int release(void *extra)
{
    *(int *)extra = -1;
    return MPI_SUCCESS;
}

static int ignore(void *extra, int complete)
{
    (void)extra;
    (void)complete;
    return MPI_SUCCESS;
}

static void generalized(Thread *t)
{
    MPI_Request request;
    MPI_Status status;
    int value = 1 + below(&t->alone, 100), expected = value, got;
    OK(MPI_Grequest_start(query, release, ignore, &value, &request));
    OK(MPI_Grequest_complete(request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &got));
    CHECK(got == expected && value == -1);
}

/* One message into the pool of the partner's rank, one out of the own one, whoever sent it. */
static void from_pool(Thread *t)
{
    struct head {
        uint64_t key;
        int thread, number, bytes, check;
    } head, got;
    MPI_Request request;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    int n = length(t), found = 0, bytes;
    if (t->pooled == POOL_ROUNDS)
        return;
    head = (struct head){draw(&t->both), t->number, t->pooled++, n, 4711};
    memcpy(t->out, &head, sizeof head);
    n = n + (int)sizeof head > MOST ? 0 : n;
    ((struct head *)t->out)->bytes = n;
    fill(t->out + sizeof head, head.key + (uint64_t)rank, n);
    OK(MPI_Isend(t->out, n + (int)sizeof head, MPI_BYTE, partner, below(&t->alone, 5), pool, &request));
    if (below(&t->alone, 2))
        OK(MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, pool, &message, &status));
    else
        while (!found)
            OK(MPI_Improbe(partner, MPI_ANY_TAG, pool, &found, &message, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &bytes));
    OK(MPI_Mrecv(t->in, bytes, MPI_BYTE, &message, &status));
    memcpy(&got, t->in, sizeof got);
    CHECK(got.check == 4711 && bytes == got.bytes + (int)sizeof got && got.thread < threads);
    compare(t, t->in + sizeof got, got.key + (uint64_t)partner, got.bytes);
    if (atomic_exchange(&taken[got.thread * POOL_ROUNDS + got.number], 1))
        fail(t, "message %d of thread %d came twice", got.number, got.thread);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    messages_done++;
}

static void one_round(Thread *t)
{
    static void (*const operations[])(Thread *) = {one_message, one_message, one_message, burst,       cancel,      collective,
                                                   duplicate,   typed,       both_ways,   partitioned, generalized, from_pool,
                                                   from_pool};
    t->operation = below(&t->both, (int)(sizeof operations / sizeof *operations));
    operations[t->operation](t);
    t->round++;
    rounds_done++;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double start;

static void *work(void *argument)
{
    Thread *t = argument;
    int again = 1;
    while (again) {
        for (int i = 0; i < BATCH; i++)
            one_round(t);
        again = now() - start < seconds;
        /* One of the two decides. */
        OK(MPI_Bcast(&again, 1, MPI_INT, 0, t->own));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static Thread all[MOST_THREADS];
    pthread_t handles[MOST_THREADS];
    int provided, there;
    long missing = 0;
    Thread *t = &all[0];
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS || provided != MPI_THREAD_MULTIPLE)
        return 1;
    threads = argc > 1 ? atoi(argv[1]) : threads;
    seconds = argc > 2 ? atof(argv[2]) : seconds;
    seed = argc > 3 ? strtoull(argv[3], NULL, 10) : seed;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (threads < 1 || threads > MOST_THREADS || size != 2) {
        fprintf(stderr, "stress: 1 to %d threads a rank, 2 ranks\n", MOST_THREADS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    partner = rank ^ 1;
    taken = calloc((size_t)threads * POOL_ROUNDS, 1);
    OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &pool));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &shared));
    start = now();
    for (int i = 0; i < threads; i++) {
        all[i].number = i;
        all[i].both = seed * 0x9e3779b97f4a7c15ULL + (uint64_t)(i + 1) * 0xd1342543de82ef95ULL;
        all[i].alone = all[i].both ^ (uint64_t)(rank + 1) << 40;
        all[i].out = malloc(MOST + 64);
        all[i].in = malloc(MOST + 64);
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &all[i].own));
    }
    for (int i = 0; i < threads; i++)
        if (pthread_create(&handles[i], NULL, work, &all[i]) != 0)
            fail(t, "no thread");
    for (int i = 0; i < threads; i++)
        pthread_join(handles[i], NULL);
    /* Every message of the pool was taken, and nothing is left anywhere. */
    for (int i = 0; i < threads; i++)
        for (int k = 0; k < all[i].pooled; k++)
            missing += !taken[i * POOL_ROUNDS + k];
    CHECK(missing == 0);
    /* On a machine that has time for both most are cancelled; that none ever is would be a fault. */
    CHECK(cancelled_sends > 0 || cancels_done < 100);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, shared, &there, MPI_STATUS_IGNORE));
    CHECK(!there);
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, pool, &there, MPI_STATUS_IGNORE));
    CHECK(!there);
    for (int i = 0; i < threads; i++) {
        OK(MPI_Comm_free(&all[i].own));
        free(all[i].out);
        free(all[i].in);
    }
    OK(MPI_Comm_free(&pool));
    OK(MPI_Comm_free(&shared));
    free(taken);
    if (rank == 0)
        printf("stress: %ld rounds, %ld messages, %ld of %ld sends cancelled, %d threads a rank, seed %llu: all was right\n",
               (long)rounds_done, (long)messages_done, (long)cancelled_sends, (long)cancels_done, threads, (unsigned long long)seed);
    OK(MPI_Finalize());
    return 0;
}
