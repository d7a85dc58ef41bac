/* SPDX-License-Identifier: Apache-2.0 */
/* Collective operations in memory that the processes of a node share: blocks of all lengths from one element to many rounds, all
   roots, in place or not, data with gaps, many operations at once, many communicators one after the other and at once.
   ranks: 1 2 3 8 */
#include "values.h"

static void rooted(int n, int root, int salt, int *a, int *b)
{
    fill(a, n, rank == root ? root : -1, salt);
    OK(MPI_Bcast(a, n, MPI_INT, root, comm));
    for (long i = 0; i < n; i++)
        CHECK(a[i] == value(root, i, salt));
    fill(a, n, rank, salt);
    OK(MPI_Reduce(a, b, n, MPI_INT, MPI_SUM, root, comm));
    for (long i = 0; rank == root && i < n; i++)
        CHECK(b[i] == total(i, salt));
    OK(MPI_Gather(a, n, MPI_INT, b, n, MPI_INT, root, comm));
    for (int r = 0; rank == root && r < size; r++)
        for (long i = 0; i < n; i++)
            CHECK(b[r * (long)n + i] == value(r, i, salt));
    for (int r = 0; rank == root && r < size; r++)
        fill(a + r * (long)n, n, r, salt + 1);
    void *into = rank == root && salt % 2 ? MPI_IN_PLACE : b;
    OK(MPI_Scatter(a, n, MPI_INT, into, n, MPI_INT, root, comm));
    for (long i = 0; into == b && i < n; i++)
        CHECK(b[i] == value(rank, i, salt + 1));
}

static void symmetric(int n, int salt, int *a, int *b)
{
    fill(a, n, rank, salt);
    OK(MPI_Allreduce(a, b, n, MPI_INT, MPI_SUM, comm));
    OK(MPI_Allreduce(MPI_IN_PLACE, a, n, MPI_INT, MPI_SUM, comm));
    for (long i = 0; i < n; i++)
        CHECK(a[i] == b[i] && b[i] == total(i, salt));
    fill(a, n, rank, salt);
    OK(MPI_Allgather(a, n, MPI_INT, b, n, MPI_INT, comm));
    for (int r = 0; r < size; r++)
        for (long i = 0; i < n; i++)
            CHECK(b[r * (long)n + i] == value(r, i, salt));
    for (int r = 0; r < size; r++)
        fill(a + r * (long)n, n, rank * 64 + r, salt);
    OK(MPI_Alltoall(a, n, MPI_INT, b, n, MPI_INT, comm));
    OK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, a, n, MPI_INT, comm));
    for (int r = 0; r < size; r++)
        for (long i = 0; i < n; i++)
            CHECK(a[r * (long)n + i] == b[r * (long)n + i] && b[r * (long)n + i] == value(r * 64 + rank, i, salt));
}

static void lengths(void)
{
    static const int all[] = {1, 2, 3, 13, 14, 25, 26, 27, 28, 29, 100, 1024, 2048, 2049, 5000, 16384, 17403, 40000, 150001};
    for (int k = 0; k < (int)(sizeof all / sizeof *all); k++) {
        int n = all[k];
        int *a = malloc(sizeof(int) * (size_t)n * (size_t)size), *b = malloc(sizeof(int) * (size_t)n * (size_t)size);
        CHECK(a && b);
        for (int root = 0; root < size; root += n > 1000 && size > 2 ? size - 1 : 1)
            rooted(n, root, k, a, b);
        symmetric(n, k, a, b);
        free(a);
        free(b);
    }
}

/* More than there are rounds in memory, completed from the last to the first. */
static void many_at_once(void)
{
    enum { MANY = 90, LONGEST = 3000 };
    static int x[MANY][LONGEST], y[MANY][LONGEST];
    MPI_Request request[MANY];
    for (int m = 0; m < MANY; m++) {
        int n = m % 3 ? m % 7 + 1 : LONGEST, root = m % size;
        fill(x[m], n, m % 4 == 1 && rank != root ? -1 : rank, m);
        switch (m % 4) {
        case 0: OK(MPI_Iallreduce(x[m], y[m], n, MPI_INT, MPI_MAX, comm, &request[m])); break;
        case 1: OK(MPI_Ibcast(x[m], n, MPI_INT, root, comm, &request[m])); break;
        case 2: OK(MPI_Ireduce(x[m], y[m], n, MPI_INT, MPI_SUM, root, comm, &request[m])); break;
        default: OK(MPI_Ibarrier(comm, &request[m]));
        }
    }
    for (int m = MANY - 1; m >= 0; m--) {
        int n = m % 3 ? m % 7 + 1 : LONGEST, root = m % size;
        OK(MPI_Wait(&request[m], MPI_STATUS_IGNORE));
        for (int i = 0; i < n; i++) {
            CHECK(m % 4 != 0 || y[m][i] == value(size - 1, i, m));
            CHECK(m % 4 != 1 || x[m][i] == value(root, i, m));
            CHECK(m % 4 != 2 || rank != root || y[m][i] == total(i, m));
        }
    }
}

/* Long ones that begin while others are under way, and between short ones. */
static void long_at_once(void)
{
    enum { MANY = 8, LONG = 40000 };
    int *x[MANY], *y[MANY];
    MPI_Request request[2 * MANY];
    for (int m = 0; m < MANY; m++) {
        x[m] = malloc(sizeof(int) * LONG * (size_t)size);
        y[m] = malloc(sizeof(int) * LONG * (size_t)size);
        CHECK(x[m] && y[m]);
        for (int r = 0; r < size; r++)
            fill(x[m] + r * (long)LONG, LONG, rank * 64 + r, m);
        switch (m % 3) {
        case 0: OK(MPI_Iallreduce(x[m], y[m], LONG, MPI_INT, MPI_MIN, comm, &request[2 * m])); break;
        case 1: OK(MPI_Iallgather(x[m], LONG, MPI_INT, y[m], LONG, MPI_INT, comm, &request[2 * m])); break;
        default: OK(MPI_Ialltoall(x[m], LONG, MPI_INT, y[m], LONG, MPI_INT, comm, &request[2 * m]));
        }
        OK(MPI_Ibarrier(comm, &request[2 * m + 1]));
    }
    OK(MPI_Waitall(2 * MANY, request, MPI_STATUSES_IGNORE));
    for (int m = 0; m < MANY; m++) {
        for (long i = 0; i < LONG; i++) {
            int least = value(0, i, m);
            for (int r = 1; r < size; r++)
                if (value(r * 64, i, m) < least)
                    least = value(r * 64, i, m);
            CHECK(m % 3 != 0 || y[m][i] == least);
            for (int r = 0; r < size; r++) {
                CHECK(m % 3 != 1 || y[m][r * (long)LONG + i] == value(r * 64, i, m));
                CHECK(m % 3 != 2 || y[m][r * (long)LONG + i] == value(r * 64 + rank, i, m));
            }
        }
        free(x[m]);
        free(y[m]);
    }
}

/* The same elements with and without gaps between them. */
static void long_gaps(void)
{
    enum { N = 40000 };
    MPI_Datatype every_second;
    int *from = malloc(sizeof(int) * 2 * N * (size_t)size), *into = malloc(sizeof(int) * 2 * N * (size_t)size);
    CHECK(from && into);
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &every_second));
    OK(MPI_Type_commit(&every_second));
    for (long i = 0; i < (long)N * size; i++) {
        from[2 * i] = value(rank * 64 + (int)(i / N), i % N, 9);
        from[2 * i + 1] = into[2 * i] = into[2 * i + 1] = -7;
    }
    OK(MPI_Alltoall(from, N, every_second, into, N, every_second, comm));
    for (long i = 0; i < (long)N * size; i++)
        CHECK(into[2 * i] == value((int)(i / N) * 64 + rank, i % N, 9) && into[2 * i + 1] == -7);
    OK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, from, N, every_second, comm));
    for (long i = 0; i < (long)N * size; i++)
        CHECK(from[2 * i] == into[2 * i] && from[2 * i + 1] == -7);
    OK(MPI_Allgather(from + rank * 2L * N, N, every_second, into, N, MPI_INT, comm));
    for (long i = 0; i < (long)N * size; i++)
        CHECK(into[i] == value((int)(i / N) * 64 + (int)(i / N), i % N, 9));
    OK(MPI_Type_free(&every_second));
    free(from);
    free(into);
}

static void gaps(void)
{
    enum { N = 3000 };
    static int from[2 * N], into[2 * N];
    MPI_Datatype pairs;
    OK(MPI_Type_vector(N, 1, 2, MPI_INT, &pairs));
    OK(MPI_Type_commit(&pairs));
    for (int i = 0; i < 2 * N; i++) {
        from[i] = i % 2 ? -5 : value(0, i, 3);
        into[i] = -7;
    }
    OK(MPI_Bcast(rank == 0 ? from : into, 1, pairs, 0, comm));
    for (int i = 0; rank != 0 && i < 2 * N; i++)
        CHECK(into[i] == (i % 2 ? -7 : value(0, i, 3)));
    struct {
        double value;
        int rank;
    } mine = {(double)((rank + 1) % size), rank}, best;
    OK(MPI_Allreduce(&mine, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm));
    CHECK((int)best.value == size - 1 && best.rank == (size + size - 2) % size);
    OK(MPI_Type_free(&pairs));
}

/* Broadcasts of a few bytes, of which many share a cache line: all lengths around a word, each member as root, more at once than there are rounds. */
static void words(void)
{
    enum { MANY = 200, LONGEST = 17 };
    static unsigned char at_once[MANY][LONGEST + 1];
    MPI_Request request[MANY];
    for (int k = 0; k < MANY; k++) {
        int length = k % (LONGEST + 1), root = k / 3 % size;
        unsigned char one[LONGEST + 1];
        for (int i = 0; i <= LONGEST; i++) {
            one[i] = (unsigned char)(i < length && rank == root ? 7 * k + i + 1 : 200);
            at_once[k][i] = one[i];
        }
        OK(MPI_Ibcast(at_once[k], length, MPI_BYTE, root, comm, &request[k]));
        if (k % 5 != 0)
            OK(MPI_Bcast(one, length, MPI_BYTE, root, comm));
        for (int i = 0; k % 5 != 0 && i <= LONGEST; i++)
            CHECK(one[i] == (unsigned char)(i < length ? 7 * k + i + 1 : 200));
    }
    OK(MPI_Waitall(MANY, request, MPI_STATUSES_IGNORE));
    for (int k = 0; k < MANY; k++)
        for (int i = 0; i <= LONGEST; i++)
            CHECK(at_once[k][i] == (unsigned char)(i < k % (LONGEST + 1) ? 7 * k + i + 1 : 200));
    /* A root that runs ahead as far as it can, between members that are late. */
    for (int k = 0; k < 1000; k++) {
        long told = rank == k / 100 % size ? 3L * k : -1;
        OK(MPI_Bcast(&told, 1, MPI_LONG, k / 100 % size, comm));
        CHECK(told == 3L * k);
    }
}

/* Persistent operations may be started in any order, between others. */
static void persistent(void)
{
    int a = rank + 1, b = 0, c = rank == 0 ? 17 : 0;
    MPI_Request request[2];
    MPI_Status statuses[2];
    OK(MPI_Allreduce_init(&a, &b, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request[0]));
    OK(MPI_Bcast_init(&c, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &request[1]));
    for (int round = 0; round < 5; round++) {
        OK(MPI_Start(&request[rank % 2]));
        OK(MPI_Barrier(comm));
        OK(MPI_Start(&request[1 - rank % 2]));
        OK(MPI_Waitall(2, request, statuses));
        CHECK(b == size * (size + 1) / 2 && c == 17);
    }
    OK(MPI_Request_free(&request[0]));
    OK(MPI_Request_free(&request[1]));
}

static void use(MPI_Comm which)
{
    int me, n, sum;
    OK(MPI_Comm_rank(which, &me));
    OK(MPI_Comm_size(which, &n));
    for (int round = 0; round < 3; round++) {
        OK(MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, which));
        CHECK(sum == n * (n - 1) / 2);
        OK(MPI_Barrier(which));
    }
}

static void communicators(void)
{
    enum { MANY = 80 }; /* More than a node has slabs for. */
    MPI_Comm all[MANY], half;
    for (int i = 0; i < 2 * MANY; i++) {
        OK(MPI_Comm_split(comm, rank % (i % 3 + 1), -rank, &half));
        use(half);
        OK(MPI_Comm_free(&half));
    }
    for (int i = 0; i < MANY; i++)
        OK(MPI_Comm_dup(comm, &all[i]));
    for (int i = 0; i < MANY; i++)
        use(all[i]);
    for (int i = 0; i < MANY; i++)
        OK(MPI_Comm_free(&all[i]));
}

int main(void)
{
    OK(MPI_Init(NULL, NULL));
    comm = MPI_COMM_WORLD;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    lengths();
    many_at_once();
    long_at_once();
    long_gaps();
    gaps();
    words();
    persistent();
    communicators();
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    many_at_once();
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    return 0;
}
