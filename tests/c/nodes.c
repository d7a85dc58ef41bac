/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking collective operations over several nodes, whose processes take steps together in their memory: all lengths, all roots, in place
   or not, types with gaps, operators of the program, between nonblocking and persistent ones, on many communicators one after the other and
   at once, whose members are in any order. tests/system/nodes.sh runs it on two machines.
   ranks: 1 4 */
#include "values.h"

static void once(int n, int root, int salt, int *a, int *b)
{
    fill(a, n, rank == root ? root : -1, salt);
    OK(MPI_Bcast(a, n, MPI_INT, root, comm));
    for (long i = 0; i < n; i++)
        CHECK(a[i] == value(root, i, salt));
    fill(a, n, rank, salt);
    OK(MPI_Reduce(a, b, n, MPI_INT, MPI_SUM, root, comm));
    for (long i = 0; rank == root && i < n; i++)
        CHECK(b[i] == total(i, salt));
    if (rank == root)
        OK(MPI_Reduce(MPI_IN_PLACE, a, n, MPI_INT, MPI_SUM, root, comm));
    else
        OK(MPI_Reduce(a, NULL, n, MPI_INT, MPI_SUM, root, comm));
    for (long i = 0; i < n; i++)
        CHECK(a[i] == (rank == root ? total(i, salt) : value(rank, i, salt)));
    fill(a, n, rank, salt);
    OK(MPI_Allreduce(a, b, n, MPI_INT, MPI_SUM, comm));
    OK(MPI_Allreduce(MPI_IN_PLACE, a, n, MPI_INT, MPI_SUM, comm));
    for (long i = 0; i < n; i++)
        CHECK(a[i] == b[i] && b[i] == total(i, salt));
    OK(MPI_Barrier(comm));
}

/* Blocks of n: put together, dealt out, brought to all. */
static void blocks(int n, int root, int salt, int *mine, int *all)
{
    fill(mine, n, rank, salt);
    OK(MPI_Gather(mine, n, MPI_INT, all, n, MPI_INT, root, comm));
    for (int round = 0; round < 2; round++) {
        for (int r = 0; rank == root && r < size; r++)
            for (long i = 0; i < n; i++)
                CHECK(all[(long)r * n + i] == value(r, i, salt));
        if (round)
            break;
        fill(all, n * size, -1, salt);
        if (rank == root) {
            fill(all + (long)rank * n, n, rank, salt);
            OK(MPI_Gather(MPI_IN_PLACE, 0, MPI_INT, all, n, MPI_INT, root, comm));
        } else
            OK(MPI_Gather(mine, n, MPI_INT, NULL, 0, MPI_INT, root, comm));
    }
    for (int r = 0; rank == root && r < size; r++)
        fill(all + (long)r * n, n, r, salt + 1);
    fill(mine, n, -1, salt);
    OK(MPI_Scatter(all, n, MPI_INT, mine, n, MPI_INT, root, comm));
    for (long i = 0; i < n; i++)
        CHECK(mine[i] == value(rank, i, salt + 1));
    fill(mine, n, -1, salt);
    if (rank == root)
        OK(MPI_Scatter(all, n, MPI_INT, MPI_IN_PLACE, 0, MPI_INT, root, comm));
    else
        OK(MPI_Scatter(NULL, 0, MPI_INT, mine, n, MPI_INT, root, comm));
    for (long i = 0; rank != root && i < n; i++)
        CHECK(mine[i] == value(rank, i, salt + 1));
    fill(mine, n, rank, salt + 2);
    fill(all, n * size, -1, salt);
    OK(MPI_Allgather(mine, n, MPI_INT, all, n, MPI_INT, comm));
    for (int round = 0; round < 2; round++) {
        for (int r = 0; r < size; r++)
            for (long i = 0; i < n; i++)
                CHECK(all[(long)r * n + i] == value(r, i, salt + 2));
        if (round)
            break;
        fill(all, n * size, -1, salt);
        fill(all + (long)rank * n, n, rank, salt + 2);
        OK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, all, n, MPI_INT, comm));
    }
}

static void lengths(void)
{
    static const int all[] = {0, 1, 2, 3, 27, 28, 29, 100, 2047, 2048, 2049, 5000, 16384, 17403, 100001, 600011};
    for (int k = 0; k < (int)(sizeof all / sizeof *all); k++) {
        int n = all[k];
        int *a = malloc(sizeof(int) * (size_t)n + 1), *b = malloc(sizeof(int) * (size_t)n + 1);
        CHECK(a && b);
        for (int root = 0; root < size; root += n > 20000 && size > 2 ? size / 2 + 1 : 1)
            once(n, root, k, a, b);
        int part = n / (size > 1 ? 3 : 1);
        b = realloc(b, sizeof(int) * (size_t)part * (size_t)size + 1);
        CHECK(b);
        for (int root = 0; root < size; root += n > 20000 && size > 2 ? size / 2 + 1 : 1)
            blocks(part, root, k, a, b);
        free(a);
        free(b);
    }
}

/* 2 x 2 matrices: associative, not commutative. */
static void multiply(void *left, void *right, int *length, MPI_Datatype *type)
{
    unsigned(*a)[4] = left, (*b)[4] = right;
    (void)type;
    for (int i = 0; i < *length; i++) {
        unsigned c[4] = {a[i][0] * b[i][0] + a[i][1] * b[i][2], a[i][0] * b[i][1] + a[i][1] * b[i][3],
                         a[i][2] * b[i][0] + a[i][3] * b[i][2], a[i][2] * b[i][1] + a[i][3] * b[i][3]};
        for (int k = 0; k < 4; k++)
            b[i][k] = c[k];
    }
}

static void own_operator(void)
{
    MPI_Op op;
    MPI_Datatype matrix;
    unsigned mine[4] = {1, (unsigned)rank + 1, (unsigned)rank, 3}, got[4], want[4] = {1, 1, 0, 3};
    OK(MPI_Op_create(multiply, 0, &op));
    OK(MPI_Type_contiguous(4, MPI_UNSIGNED, &matrix));
    OK(MPI_Type_commit(&matrix));
    for (int r = 1; r < size; r++) {
        unsigned next[4] = {1, (unsigned)r + 1, (unsigned)r, 3};
        int one = 1;
        multiply(want, next, &one, &matrix);
        for (int k = 0; k < 4; k++)
            want[k] = next[k];
    }
    for (int round = 0; round < 4; round++) {
        OK(MPI_Allreduce(mine, got, 1, matrix, op, comm));
        for (int k = 0; k < 4; k++)
            CHECK(got[k] == want[k]);
        OK(MPI_Barrier(comm));
    }
    OK(MPI_Type_free(&matrix));
    OK(MPI_Op_free(&op));
}

static void gaps(void)
{
    enum { N = 30000 };
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

/* Blocking ones between others that are under way. */
static void among_others(void)
{
    enum { MANY = 24, LONG = 30000 };
    static int x[MANY][LONG], y[MANY][LONG], a[LONG], b[LONG];
    MPI_Request request[MANY], again;
    int one = rank + 1, sum = 0;
    OK(MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &again));
    OK(MPI_Start(&again));
    for (int m = 0; m < MANY; m++) {
        int n = m % 3 ? m + 1 : LONG, root = m % size;
        fill(x[m], n, m % 4 == 1 && rank != root ? -1 : rank, m);
        switch (m % 4) {
        case 0: OK(MPI_Iallreduce(x[m], y[m], n, MPI_INT, MPI_SUM, comm, &request[m])); break;
        case 1: OK(MPI_Ibcast(x[m], n, MPI_INT, root, comm, &request[m])); break;
        case 2: OK(MPI_Ireduce(x[m], y[m], n, MPI_INT, MPI_SUM, root, comm, &request[m])); break;
        default: OK(MPI_Ibarrier(comm, &request[m]));
        }
        once(m % 2 ? 5 : LONG, (m + 1) % size, m, a, b);
    }
    for (int m = MANY - 1; m >= 0; m--) {
        int n = m % 3 ? m + 1 : LONG, root = m % size;
        OK(MPI_Wait(&request[m], MPI_STATUS_IGNORE));
        for (int i = 0; i < n; i++) {
            CHECK(m % 4 != 0 || y[m][i] == total(i, m));
            CHECK(m % 4 != 1 || x[m][i] == value(root, i, m));
            CHECK(m % 4 != 2 || rank != root || y[m][i] == total(i, m));
        }
    }
    OK(MPI_Wait(&again, MPI_STATUS_IGNORE));
    CHECK(sum == size * (size + 1) / 2);
    OK(MPI_Request_free(&again));
}

static void use(MPI_Comm which, int rounds)
{
    int me, n, sum;
    OK(MPI_Comm_rank(which, &me));
    OK(MPI_Comm_size(which, &n));
    for (int round = 0; round < rounds; round++) {
        int root = round % n, told = me == root ? 17 * round : -1;
        OK(MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, which));
        CHECK(sum == n * (n - 1) / 2);
        OK(MPI_Barrier(which));
        OK(MPI_Bcast(&told, 1, MPI_INT, root, which));
        CHECK(told == 17 * round);
    }
}

static void communicators(void)
{
    enum { MANY = 24 };
    MPI_Comm all[MANY], part;
    for (int i = 0; i < 2 * MANY; i++) {
        OK(MPI_Comm_split(comm, rank % (i % 3 + 1), i % 2 ? -rank : rank, &part));
        use(part, i % 4);
        OK(MPI_Comm_free(&part));
    }
    for (int i = 0; i < MANY; i++)
        OK(MPI_Comm_dup(comm, &all[i]));
    for (int i = 0; i < MANY; i++)
        use(all[i], 2);
    for (int i = 0; i < MANY; i++)
        OK(MPI_Comm_free(&all[i]));
    /* With the order of ranks turned round, and without the first process. */
    MPI_Comm world = comm;
    OK(MPI_Comm_split(world, rank > 0, -rank, &comm));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    lengths();
    own_operator();
    OK(MPI_Comm_free(&comm));
    comm = world;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
}

int main(void)
{
    OK(MPI_Init(NULL, NULL));
    comm = MPI_COMM_WORLD;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    lengths();
    own_operator();
    gaps();
    among_others();
    communicators();
    OK(MPI_Finalize());
    if (rank == 0)
        printf("%d processes take steps together on their nodes\n", size);
    return 0;
}
