/* SPDX-License-Identifier: Apache-2.0 */
/* Long blocks that the processes of a node may copy from and to each other, and long results, over and over, so that all ways are tried: everything is right whether the system
   lets all of them copy, all but one, or none; and where a buffer lies in pieces at some of them only.
   ranks: 2 3 5 */
#include "values.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { N = 9000, TIMES = 24 };
static int *from, *into;

static void bcasts(int n, int root, int salt)
{
    fill(from, n, rank == root ? root : -1, salt);
    OK(MPI_Bcast(from, n, MPI_INT, root, comm));
    for (int i = 0; i < n; i++)
        CHECK(from[i] == value(root, i, salt));
}

static void alltoalls(int n, int salt)
{
    for (int r = 0; r < size; r++)
        fill(from + r * (long)n, n, rank * 64 + r, salt);
    fill(into, n * size, -1, salt);
    OK(MPI_Alltoall(from, n, MPI_INT, into, n, MPI_INT, comm));
    for (int r = 0; r < size; r++)
        for (int i = 0; i < n; i++)
            CHECK(into[r * (long)n + i] == value(r * 64 + rank, i, salt));
}

/* Long enough to be stored past the caches, or through them. */
static void results(int n, int salt)
{
    int root = salt % 2 % size, each = n / size;
    fill(from, n, rank, salt);
    OK(MPI_Allreduce(from, into, n, MPI_INT, MPI_SUM, comm));
    for (int i = 0; i < n; i++)
        CHECK(into[i] == total(i, salt));
    fill(into, n, -1, salt);
    OK(MPI_Reduce(from, into, n, MPI_INT, MPI_SUM, root, comm));
    for (int i = 0; i < n; i++)
        CHECK(into[i] == (rank == root ? total(i, salt) : value(-1, i, salt)));
    OK(MPI_Allgather(from, each, MPI_INT, into, each, MPI_INT, comm));
    for (int i = 0; i < each * size; i++)
        CHECK(into[i] == value(i / each, i % each, salt));
    fill(into, n, -1, salt);
    OK(MPI_Gather(from, each, MPI_INT, into, each, MPI_INT, root, comm));
    for (int i = 0; i < each * size; i++)
        CHECK(into[i] == (rank == root ? value(i / each, i % each, salt) : value(-1, i, salt)));
    for (int r = 0; r < size && rank == root; r++)
        fill(from + r * (long)n, n, r, salt);
    OK(MPI_Scatter(from, n, MPI_INT, into, n, MPI_INT, root, comm));
    for (int i = 0; i < n; i++)
        CHECK(into[i] == value(rank, i, salt));
}

/* Blocks that go to one process or come from one, and those of all, in place too; none is much longer than what may be copied. */
static void rooted(int n, int salt)
{
    int root = salt % size;
    for (int in_place = 0; in_place < 2; in_place++) {
        int *own = in_place ? into + rank * (long)n : from;
        fill(into, (long)n * size, -1, salt);
        fill(own, n, rank, salt);
        OK(MPI_Gather(in_place && rank == root ? MPI_IN_PLACE : own, n, MPI_INT, into, n, MPI_INT, root, comm));
        for (int r = 0; r < size && rank == root; r++)
            for (int i = 0; i < n; i++)
                CHECK(into[r * (long)n + i] == value(r, i, salt));
        fill(into, (long)n * size, -1, salt);
        fill(own, n, rank, salt);
        OK(MPI_Allgather(in_place ? MPI_IN_PLACE : own, n, MPI_INT, into, n, MPI_INT, comm));
        for (int r = 0; r < size; r++)
            for (int i = 0; i < n; i++)
                CHECK(into[r * (long)n + i] == value(r, i, salt));
        fill(into, n, -1, salt);
        for (int r = 0; r < size; r++)
            fill(from + r * (long)n, n, rank == root ? r : -1, salt);
        OK(MPI_Scatter(from, n, MPI_INT, in_place && rank == root ? MPI_IN_PLACE : into, n, MPI_INT, root, comm));
        for (int i = 0; i < n && !(in_place && rank == root); i++)
            CHECK(into[i] == value(rank, i, salt));
    }
}

/* Blocks of n elements and fewer with gaps between them, of which the root may take those of the last process in pieces; two at once, so that those
   who go on may be in the second while others are in the first. */
static void unequal_rows(int n, int salt)
{
    int counts[64], starts[64], root = salt % size, pieces = salt % 2;
    MPI_Datatype spread, taken;
    MPI_Request request[2];
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread));
    OK(MPI_Type_commit(&spread));
    taken = pieces ? spread : MPI_INT;
    for (int r = 0; r < size; r++) {
        /* Some that are copied at once, and short ones. */
        counts[r] = salt % 3 == 0 && r % 2 ? r : n - 100 * r;
        starts[r] = r * (n + 1);
    }
    for (int in_place = 0; in_place < 2; in_place++) {
        int *own = in_place && rank == root ? into + starts[rank] : from;
        void *give = in_place && rank == root ? MPI_IN_PLACE : own;
        fill(into, (long)size * (n + 1), -1, salt);
        fill(own, counts[rank], rank, salt);
        OK(MPI_Gatherv(give, counts[rank], MPI_INT, into, counts, starts, MPI_INT, root, comm));
        for (int r = 0; r < size && rank == root; r++) {
            for (int i = 0; i < counts[r]; i++)
                CHECK(into[starts[r] + i] == value(r, i, salt));
            CHECK(into[starts[r] + n] == value(-1, starts[r] + n, salt));
        }
    }
    fill(from, counts[rank], rank, salt);
    fill(into, 2L * size * (n + 1), -1, salt);
    OK(MPI_Igatherv(from, counts[rank], MPI_INT, into, counts, starts, taken, root, comm, &request[0]));
    int *second = into + 2L * size * (n + 1);
    OK(MPI_Igatherv(from, counts[rank], MPI_INT, second, counts, starts, MPI_INT, root, comm, &request[1]));
    OK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
    for (int r = 0; r < size && rank == root; r++)
        for (int i = 0; i < counts[r]; i++) {
            CHECK(into[(pieces ? 2L : 1L) * starts[r] + (pieces ? 2L : 1L) * i] == value(r, i, salt));
            CHECK(second[starts[r] + i] == value(r, i, salt));
        }
    OK(MPI_Type_free(&spread));
}

/* Elements of the block from one process to another: long ones and others in any mixture. */
static int elements(int n, int giver, int taker, int salt)
{
    const int all[] = {n, n - 100, 20, 0, 500, 5000};
    return all[(giver * 3 + taker + salt) % 6];
}

/* Such blocks from each to each and from a root, two operations at once; the last process has some in pieces. */
static void unequal_pairs(int n, int salt)
{
    int gives[64], takes[64], starts[64], root = salt % size, odd = rank == size - 1;
    int give = odd && salt % 2 ? 2 : 1, take = odd && salt % 3 ? 2 : 1;
    long all = (long)size * (n + 1), second = 2 * all;
    MPI_Datatype spread;
    MPI_Request request[2];
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread));
    OK(MPI_Type_commit(&spread));
    for (int r = 0; r < size; r++) {
        gives[r] = elements(n, rank, r, salt);
        takes[r] = elements(n, r, rank, salt);
        starts[r] = r * (n + 1);
    }
    for (int form = 0; form < 2; form++) {
        for (int r = 0; r < size; r++)
            for (int i = 0; i < gives[r]; i++)
                from[give * (starts[r] + i)] = value(rank * 64 + r, i, salt);
        fill(into, second + 2 * all, -1, salt);
        MPI_Datatype given = give > 1 ? spread : MPI_INT, taken = take > 1 ? spread : MPI_INT;
        if (form == 0) {
            OK(MPI_Alltoallv(from, gives, starts, given, into, takes, starts, taken, comm));
            OK(MPI_Scatterv(from, gives, starts, given, into + second, takes[root], taken, root, comm));
        } else {
            OK(MPI_Ialltoallv(from, gives, starts, given, into, takes, starts, taken, comm, &request[0]));
            OK(MPI_Iscatterv(from, gives, starts, given, into + second, takes[root], taken, root, comm, &request[1]));
            OK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
        }
        for (int r = 0; r < size; r++) {
            for (int i = 0; i < takes[r]; i++)
                CHECK(into[take * (starts[r] + i)] == value(r * 64 + rank, i, salt));
            long end = take * ((long)starts[r] + takes[r]);
            CHECK(into[end] == value(-1, end, salt));
        }
        for (int i = 0; i < takes[root]; i++)
            CHECK(into[second + take * i] == value(root * 64 + rank, i, salt));
    }
    OK(MPI_Type_free(&spread));
}

/* A number whose sums depend on the order. */
static float fraction(int from, long i, int salt)
{
    return 1.0f / (float)(1 + (unsigned)value(from, i, salt) % 1009);
}

static void fractions(float *a, long n, int salt)
{
    for (long i = 0; i < n; i++)
        a[i] = fraction(rank, i, salt);
}

/* Sums of which each is that of all processes in their order, to the last bit. */
static void sums(const float *a, long first, long n, int salt)
{
    for (long i = 0; i < n; i++) {
        float sum = fraction(0, first + i, salt);
        for (int r = 1; r < size; r++)
            sum += fraction(r, first + i, salt);
        CHECK(memcmp(a + i, &sum, sizeof sum) == 0);
    }
}

static void reductions(int n, int salt)
{
    float *give = (float *)from, *take = (float *)into;
    MPI_Request request;
    int root = salt % size;
    for (int in_place = 0; in_place < 2; in_place++) {
        int is_in_place = in_place && rank == root;
        fractions(is_in_place ? take : give, n, salt);
        OK(MPI_Reduce(is_in_place ? MPI_IN_PLACE : give, take, n, MPI_FLOAT, MPI_SUM, root, comm));
        if (rank == root)
            sums(take, 0, n, salt);
        fractions(in_place ? take : give, (long)n * size, salt);
        OK(MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : give, take, n, MPI_FLOAT, MPI_SUM, comm));
        sums(take, (long)n * rank, n, salt);
    }
    int counts[64], starts[64];
    for (int r = 0; r < size; r++)
        counts[r] = n, starts[r] = r * n + r;
    fractions(give, (long)n * size, salt);
    OK(MPI_Reduce_scatter(give, take, counts, MPI_FLOAT, MPI_SUM, comm));
    sums(take, (long)n * rank, n, salt);
    /* With gaps between the blocks. */
    fill(from, n, rank, salt);
    fill(into, (long)n * size + size, -1, salt);
    OK(MPI_Allgatherv(from, n, MPI_INT, into, counts, starts, MPI_INT, comm));
    for (int r = 0; r < size; r++) {
        CHECK(into[starts[r] + n] == value(-1, starts[r] + n, salt));
        for (int i = 0; i < n; i++)
            CHECK(into[starts[r] + i] == value(r, i, salt));
    }
    fractions(give, (long)n * size, salt);
    OK(MPI_Ireduce_scatter_block(give, take, n, MPI_FLOAT, MPI_SUM, comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    sums(take, (long)n * rank, n, salt);
}

/* From each to the next, with sends that wait: of long ones the sender may copy a part. */
static void messages(int n, int salt)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    fill(from, n, rank, salt);
    fill(into, n, -1, salt);
    for (int turn = 0; turn < 2; turn++)
        if ((rank % 2 == 0) == (turn == 0))
            OK(MPI_Send(from, n, MPI_INT, next, salt, comm));
        else if (size % 2 == 0 || rank > 0)
            OK(MPI_Recv(into, n, MPI_INT, before, salt, comm, MPI_STATUS_IGNORE));
    /* In a ring of odd length the last one and the first both send first. */
    if (size % 2 == 1 && rank == 0)
        OK(MPI_Recv(into, n, MPI_INT, before, salt, comm, MPI_STATUS_IGNORE));
    for (int i = 0; i < n; i++)
        CHECK(into[i] == value(before, i, salt));
}

/* The last process gives, takes or does both in pieces. */
static void in_pieces(int salt)
{
    int odd = rank == size - 1;
    MPI_Datatype spread;
    MPI_Request request[3];
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread));
    OK(MPI_Type_commit(&spread));
    int give = odd && salt % 2 ? 2 : 1, take = odd && salt % 3 ? 2 : 1;
    for (long i = 0; i < (long)N * size; i++)
        from[give * i] = value(rank * 64 + (int)(i / N), i % N, salt);
    OK(MPI_Alltoall(from, N, give > 1 ? spread : MPI_INT, into, N, take > 1 ? spread : MPI_INT, comm));
    for (long i = 0; i < (long)N * size; i++)
        CHECK(into[take * i] == value((int)(i / N) * 64 + rank, i % N, salt));
    /* Some at once, completed in another order. */
    for (int i = 0; i < N; i++) {
        from[take * i] = rank == 0 ? value(0, i, salt) : -1;
        into[i] = rank == size - 1 ? value(1, i, salt) : -1;
    }
    OK(MPI_Ibcast(from, N, take > 1 ? spread : MPI_INT, 0, comm, &request[0]));
    OK(MPI_Ibarrier(comm, &request[1]));
    OK(MPI_Ibcast(into, N, MPI_INT, size - 1, comm, &request[2]));
    for (int r = 2; r >= 0; r--)
        OK(MPI_Wait(&request[r], MPI_STATUS_IGNORE));
    for (int i = 0; i < N; i++)
        CHECK(from[take * i] == value(0, i, salt) && into[i] == value(1, i, salt));
    for (int i = 0; i < N; i++)
        from[give * i] = value(rank, i, salt);
    OK(MPI_Allgather(from, N, give > 1 ? spread : MPI_INT, into, N, take > 1 ? spread : MPI_INT, comm));
    for (long i = 0; i < (long)N * size; i++)
        CHECK(into[take * i] == value((int)(i / N), i % N, salt));
    OK(MPI_Gather(from, N, give > 1 ? spread : MPI_INT, into, N, take > 1 ? spread : MPI_INT, salt % size, comm));
    for (long i = 0; i < (long)N * size && rank == salt % size; i++)
        CHECK(into[take * i] == value((int)(i / N), i % N, salt));
    for (long i = 0; i < (long)N * size; i++)
        from[give * i] = value((int)(i / N), i % N, salt);
    OK(MPI_Scatter(from, N, give > 1 ? spread : MPI_INT, into, N, take > 1 ? spread : MPI_INT, salt % size, comm));
    for (long i = 0; i < N; i++)
        CHECK(into[take * i] == value(rank, i, salt));
    OK(MPI_Type_free(&spread));
}

static void work(int salt)
{
    for (int i = 0; i < TIMES; i++, salt++) {
        bcasts(N, i % 3 % size, salt);
        /* Of these a trial takes 128. */
        for (int again = 0; again < 6; again++)
            bcasts(N, 0, salt + again);
        alltoalls(N, salt);
        results(30 * N, salt);
        in_pieces(salt);
        if (i % 2 == 0) {
            rooted(N, salt);
            reductions(N - salt % 3, salt);
        }
        unequal_rows(N + 400, salt);
        unequal_pairs(N + 400, salt);
        if (i == 0) {
            rooted(8 * N, salt);
            reductions(8 * N, salt);
        }
        messages(N, salt);
        messages(40 * N - i, salt);
        messages(40 * N * size - 7 * i, salt);
        bcasts(40 * N, 0, salt);
        alltoalls(3 * N, salt);
    }
}

/* From now on this process must not copy from others (SYS_process_vm_readv), or to them (SYS_process_vm_writev). False: the system has no such
   filters. */
static int forbid(unsigned call)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    char byte = 0;
    struct iovec one = {&byte, 1};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
           syscall(call, (long)getpid(), &one, 1L, &one, 1L, 0L) < 0;
}

int main(void)
{
    int can = 1;
    OK(MPI_Init(NULL, NULL));
    comm = MPI_COMM_WORLD;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    from = malloc(sizeof(int) * 40 * N * (size_t)size);
    into = malloc(sizeof(int) * 40 * N * (size_t)size);
    CHECK(from && into);
    work(1);
    if (rank == 0)
        can = forbid(SYS_process_vm_writev);
    OK(MPI_Allreduce(MPI_IN_PLACE, &can, 1, MPI_INT, MPI_MIN, comm));
    if (can)
        work(100);
    if (rank == 1)
        can = forbid(SYS_process_vm_readv);
    OK(MPI_Allreduce(MPI_IN_PLACE, &can, 1, MPI_INT, MPI_MIN, comm));
    if (can) {
        work(200);
        if (rank != 1)
            forbid(SYS_process_vm_readv);
        work(400);
        MPI_Comm again;
        OK(MPI_Comm_dup(comm, &again));
        comm = again;
        work(600);
        OK(MPI_Comm_free(&again));
    } else if (rank == 0) {
        printf("skipped: no system call filters here, so copies could not be forbidden\n");
    }
    free(from);
    free(into);
    OK(MPI_Finalize());
    return 0;
}
