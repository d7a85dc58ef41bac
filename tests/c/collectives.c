/* SPDX-License-Identifier: Apache-2.0 */
/* Every collective operation, blocking and nonblocking, in place or not, for all roots, with and without data, against
   plain arithmetic; operations of the program, commutative or not.
   ranks: 1 2 3 4 7 */
#include "check.h"

static int rank, size, nonblocking;
static MPI_Comm comm;

/* Either the blocking call, or the nonblocking one and waiting for it. */
#define RUN(name, iname, ...) \
    do { \
        if (nonblocking) { \
            MPI_Request request_; \
            OK(MPI_##iname(__VA_ARGS__, &request_)); \
            OK(MPI_Wait(&request_, MPI_STATUS_IGNORE)); \
            CHECK(request_ == MPI_REQUEST_NULL); \
        } else { \
            OK(MPI_##name(__VA_ARGS__)); \
        } \
    } while (0)

static int *ints(size_t n)
{
    int *array = malloc((n + 1) * sizeof(int));
    CHECK(array);
    for (size_t i = 0; i <= n; i++)
        array[i] = -999;
    return array;
}

/* Item i of what process from has for process to. */
static int item(int from, int to, int i)
{
    return from * 100003 + to * 1009 + i;
}

static void rooted(int root, int n)
{
    int at_root = rank == root, i, r;
    int *one = ints(n), *all = ints((size_t)n * size);
    for (i = 0; i < n; i++)
        one[i] = at_root ? item(root, 0, i) : -1;
    RUN(Bcast, Ibcast, one, n, MPI_INT, root, comm);
    for (i = 0; i < n; i++)
        CHECK(one[i] == item(root, 0, i));
    for (int in_place = 0; in_place < 2; in_place++) {
        for (i = 0; i < n; i++) {
            one[i] = item(rank, root, i);
            all[(size_t)rank * n + i] = item(rank, root, i);
        }
        RUN(Gather, Igather, in_place && at_root ? MPI_IN_PLACE : one, n, MPI_INT, at_root ? all : NULL, n, MPI_INT, root, comm);
        for (r = 0; at_root && r < size; r++)
            for (i = 0; i < n; i++)
                CHECK(all[(size_t)r * n + i] == item(r, root, i));
        for (r = 0; at_root && r < size; r++)
            for (i = 0; i < n; i++)
                all[(size_t)r * n + i] = item(root, r, i);
        for (i = 0; i < n; i++)
            one[i] = -1;
        RUN(Scatter, Iscatter, at_root ? all : NULL, n, MPI_INT, in_place && at_root ? MPI_IN_PLACE : one, n, MPI_INT, root, comm);
        for (i = 0; i < n && !(in_place && at_root); i++)
            CHECK(one[i] == item(root, rank, i));
        for (i = 0; i < n; i++) {
            one[i] = rank + i;
            all[i] = in_place ? rank + i : -1;
        }
        RUN(Reduce, Ireduce, in_place && at_root ? MPI_IN_PLACE : one, at_root ? all : NULL, n, MPI_INT, MPI_SUM, root, comm);
        for (i = 0; at_root && i < n; i++)
            CHECK(all[i] == size * i + size * (size - 1) / 2);
    }
    CHECK(one[n] == -999);
    free(one);
    free(all);
}

/* Process r has r % 3 * n + r items; some have none when n is 0. */
static void unequal(int root, int n)
{
    int *counts = ints(size), *places = ints(size), total = 0, r, i, at_root = rank == root;
    for (r = 0; r < size; r++) {
        counts[r] = r % 3 * n + (n ? r : 0);
        places[r] = total + r; /* a gap of one before each block but the first */
        total = places[r] + counts[r];
    }
    int mine = counts[rank], *one = ints(mine), *all = ints(total);
    for (i = 0; i < mine; i++)
        one[i] = item(rank, root, i);
    RUN(Gatherv, Igatherv, one, mine, MPI_INT, all, counts, places, MPI_INT, root, comm);
    for (r = 0; at_root && r < size; r++) {
        CHECK(r == 0 || all[places[r] - 1] == -999);
        for (i = 0; i < counts[r]; i++)
            CHECK(all[places[r] + i] == item(r, root, i));
    }
    for (r = 0; at_root && r < size; r++)
        for (i = 0; i < counts[r]; i++)
            all[places[r] + i] = item(root, r, i);
    for (i = 0; i < mine; i++)
        one[i] = -1;
    RUN(Scatterv, Iscatterv, all, counts, places, MPI_INT, one, mine, MPI_INT, root, comm);
    for (i = 0; i < mine; i++)
        CHECK(one[i] == item(root, rank, i));
    for (int in_place = 0; in_place < 2; in_place++) {
        for (r = 0; r < size; r++)
            for (i = 0; i < counts[r]; i++)
                all[places[r] + i] = r == rank && in_place ? item(rank, 0, i) : -1;
        for (i = 0; i < mine; i++)
            one[i] = item(rank, 0, i);
        RUN(Allgatherv, Iallgatherv, in_place ? MPI_IN_PLACE : one, mine, MPI_INT, all, counts, places, MPI_INT, comm);
        for (r = 0; r < size; r++)
            for (i = 0; i < counts[r]; i++)
                CHECK(all[places[r] + i] == item(r, 0, i));
    }
    free(one);
    free(all);
    free(counts);
    free(places);
}

static void everybody(int n)
{
    int *out = ints((size_t)n * size), *in = ints((size_t)n * size), r, i;
    for (int in_place = 0; in_place < 2; in_place++) {
        for (i = 0; i < n; i++)
            out[i] = in[(size_t)rank * n + i] = item(rank, 0, i);
        RUN(Allgather, Iallgather, in_place ? MPI_IN_PLACE : out, n, MPI_INT, in, n, MPI_INT, comm);
        for (r = 0; r < size; r++)
            for (i = 0; i < n; i++)
                CHECK(in[(size_t)r * n + i] == item(r, 0, i));
        for (r = 0; r < size; r++)
            for (i = 0; i < n; i++)
                out[(size_t)r * n + i] = in[(size_t)r * n + i] = item(rank, r, i);
        RUN(Alltoall, Ialltoall, in_place ? MPI_IN_PLACE : out, n, MPI_INT, in, n, MPI_INT, comm);
        for (r = 0; r < size; r++)
            for (i = 0; i < n; i++)
                CHECK(in[(size_t)r * n + i] == item(r, rank, i));
        for (i = 0; i < n; i++)
            out[i] = in[i] = rank + i;
        RUN(Allreduce, Iallreduce, in_place ? MPI_IN_PLACE : out, in, n, MPI_INT, MPI_SUM, comm);
        for (i = 0; i < n; i++)
            CHECK(in[i] == size * i + size * (size - 1) / 2);
        for (i = 0; i < n; i++)
            out[i] = in[i] = rank + i;
        RUN(Scan, Iscan, in_place ? MPI_IN_PLACE : out, in, n, MPI_INT, MPI_SUM, comm);
        for (i = 0; i < n; i++)
            CHECK(in[i] == (rank + 1) * i + rank * (rank + 1) / 2);
        for (i = 0; i < n; i++)
            out[i] = in[i] = rank + i;
        RUN(Exscan, Iexscan, in_place ? MPI_IN_PLACE : out, in, n, MPI_INT, MPI_SUM, comm);
        for (i = 0; rank > 0 && i < n; i++)
            CHECK(in[i] == rank * i + rank * (rank - 1) / 2);
        for (i = 0; i < n * size; i++)
            out[i] = in[i] = rank + i;
        RUN(Reduce_scatter_block, Ireduce_scatter_block, in_place ? MPI_IN_PLACE : out, in, n, MPI_INT, MPI_SUM, comm);
        for (i = 0; i < n; i++)
            CHECK(in[i] == size * (rank * n + i) + size * (size - 1) / 2);
    }
    free(out);
    free(in);
}

/* What r sends to t: (r + t) % 3 * n items. */
static void unequal_everybody(int n)
{
    int *sends = ints(size), *receives = ints(size), *from = ints(size), *to = ints(size), s = 0, t = 0, r, i;
    for (r = 0; r < size; r++) {
        sends[r] = receives[r] = (rank + r) % 3 * n;
        from[r] = s++, to[r] = t;
        s += sends[r], t += receives[r];
    }
    int *out = ints(s), *in = ints(t);
    for (r = 0; r < size; r++)
        for (i = 0; i < sends[r]; i++)
            out[from[r] + i] = item(rank, r, i);
    RUN(Alltoallv, Ialltoallv, out, sends, from, MPI_INT, in, receives, to, MPI_INT, comm);
    for (r = 0; r < size; r++)
        for (i = 0; i < receives[r]; i++)
            CHECK(in[to[r] + i] == item(r, rank, i));
    for (r = 0; r < size; r++)
        for (i = 0; i < sends[r]; i++)
            in[to[r] + i] = item(rank, r, i);
    RUN(Alltoallv, Ialltoallv, MPI_IN_PLACE, NULL, NULL, MPI_INT, in, receives, to, MPI_INT, comm);
    for (r = 0; r < size; r++)
        for (i = 0; i < receives[r]; i++)
            CHECK(in[to[r] + i] == item(r, rank, i));
    free(out);
    free(in);
    int *counts = sends, total = 0, mine = 0;
    for (r = 0; r < size; r++) {
        counts[r] = r % 2 * n + n;
        mine = r == rank ? total : mine;
        total += counts[r];
    }
    out = ints(total), in = ints(total);
    for (int in_place = 0; in_place < 2; in_place++) {
        for (i = 0; i < total; i++)
            out[i] = in[i] = rank + i;
        RUN(Reduce_scatter, Ireduce_scatter, in_place ? MPI_IN_PLACE : out, in, counts, MPI_INT, MPI_SUM, comm);
        for (i = 0; i < counts[rank]; i++)
            CHECK(in[i] == size * (mine + i) + size * (size - 1) / 2);
    }
    free(out);
    free(in);
    free(sends);
    free(receives);
    free(from);
    free(to);
}

/* Affine maps x -> a x + b modulo 2^32 under composition: associative, not commutative. */
static void compose(void *in, void *inout, int *n, MPI_Datatype *type)
{
    unsigned *f = in, *g = inout;
    (void)type;
    for (int i = 0; i < *n; i++) {
        g[2 * i + 1] += f[2 * i + 1] * g[2 * i];
        g[2 * i] *= f[2 * i];
    }
}

static void map_of(int r, int i, unsigned *map)
{
    map[0] = 2 * (unsigned)(r + i) + 3, map[1] = (unsigned)(r * r + i + 1);
}

/* Result of processes first to last, in order. */
static void composed(int first, int last, int i, unsigned *result)
{
    unsigned next[2];
    int one = 1;
    MPI_Datatype none = MPI_DATATYPE_NULL;
    map_of(first, i, result);
    for (int r = first + 1; r <= last; r++) {
        unsigned left[2] = {result[0], result[1]};
        map_of(r, i, next);
        compose(left, next, &one, &none);
        result[0] = next[0], result[1] = next[1];
    }
}

static void own_operations(int n)
{
    MPI_Datatype map;
    MPI_Op op;
    unsigned *out = (unsigned *)ints(2 * (size_t)n), *in = (unsigned *)ints(2 * (size_t)n), wanted[2];
    int i;
    OK(MPI_Type_contiguous(2, MPI_UNSIGNED, &map));
    OK(MPI_Type_commit(&map));
    OK(MPI_Op_create(compose, 0, &op));
    for (i = 0; i < n; i++)
        map_of(rank, i, out + 2 * i);
    for (int root = -1; root < size; root++) {
        if (root < 0)
            RUN(Allreduce, Iallreduce, out, in, n, map, op, comm);
        else
            RUN(Reduce, Ireduce, out, in, n, map, op, root, comm);
        for (i = 0; (root < 0 || root == rank) && i < n; i++) {
            composed(0, size - 1, i, wanted);
            CHECK(memcmp(wanted, in + 2 * i, sizeof wanted) == 0);
        }
    }
    RUN(Scan, Iscan, out, in, n, map, op, comm);
    for (i = 0; i < n; i++) {
        composed(0, rank, i, wanted);
        CHECK(memcmp(wanted, in + 2 * i, sizeof wanted) == 0);
    }
    RUN(Exscan, Iexscan, out, in, n, map, op, comm);
    for (i = 0; rank > 0 && i < n; i++) {
        composed(0, rank - 1, i, wanted);
        CHECK(memcmp(wanted, in + 2 * i, sizeof wanted) == 0);
    }
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&map));
    free(out);
    free(in);
}

/* An operation of the program may have MPI do its work, also by another one of the program. */
static MPI_Op inner;

static void by_sum(void *in, void *inout, int *n, MPI_Datatype *type)
{
    OK(MPI_Reduce_local(in, inout, *n, *type, MPI_SUM));
}

static void by_inner(void *in, void *inout, int *n, MPI_Datatype *type)
{
    OK(MPI_Reduce_local(in, inout, *n, *type, inner));
}

static void operations_in_operations(int n)
{
    MPI_User_function *functions[] = {by_sum, by_inner};
    int *out = ints((size_t)n), *in = ints((size_t)n);
    OK(MPI_Op_create(by_sum, 1, &inner));
    for (int which = 0; which < 2; which++) {
        MPI_Op op;
        OK(MPI_Op_create(functions[which], which, &op));
        for (int i = 0; i < n; i++)
            out[i] = rank + i;
        RUN(Allreduce, Iallreduce, out, in, n, MPI_INT, op, comm);
        for (int i = 0; i < n; i++)
            CHECK(in[i] == size * (size - 1) / 2 + size * i);
        OK(MPI_Reduce_local(out, in, n, MPI_INT, op));
        for (int i = 0; i < n; i++)
            CHECK(in[i] == size * (size - 1) / 2 + size * i + rank + i);
        OK(MPI_Op_free(&op));
    }
    OK(MPI_Op_free(&inner));
    free(out);
    free(in);
}

static void predefined_operations(void)
{
    double x = rank + 0.5, y;
    struct { double value; int index; } mine = {(rank * 7) % 5, rank}, best;
    int bits = 1 << rank % 30, all;
    RUN(Allreduce, Iallreduce, &x, &y, 1, MPI_DOUBLE, MPI_MAX, comm);
    CHECK(y == size - 0.5);
    RUN(Allreduce, Iallreduce, &x, &y, 1, MPI_DOUBLE, MPI_MIN, comm);
    CHECK(y == 0.5);
    RUN(Allreduce, Iallreduce, &bits, &all, 1, MPI_INT, MPI_BOR, comm);
    CHECK(size > 30 || all == (int)((1u << size) - 1));
    RUN(Allreduce, Iallreduce, &mine, &best, 1, MPI_DOUBLE_INT, MPI_MINLOC, comm);
    CHECK(best.value == 0 && best.index == 0);
    CHECK(MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_BAND, comm) == MPI_ERR_OP);
}

/* Many operations at once, completed in the opposite order. */
static void at_once(void)
{
    enum { N = 16 };
    int out[N], in[N];
    MPI_Request requests[N];
    for (int i = 0; i < N; i++) {
        out[i] = rank + i;
        if (i % 2)
            OK(MPI_Iallreduce(&out[i], &in[i], 1, MPI_INT, MPI_SUM, comm, &requests[i]));
        else
            OK(MPI_Ibcast(&out[i], 1, MPI_INT, i % size, comm, &requests[i]));
    }
    for (int i = N - 1; i >= 0; i--)
        OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    for (int i = 0; i < N; i++)
        CHECK(i % 2 ? in[i] == size * i + size * (size - 1) / 2 : out[i] == i % size + i);
}

int main(int argc, char **argv)
{
    static const int counts[] = {0, 1, 5, 1000, 30000};
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (nonblocking = 0; nonblocking < 2; nonblocking++) {
        MPI_Request request;
        OK(MPI_Barrier(comm));
        OK(MPI_Ibarrier(comm, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int i = 0; i < (int)(sizeof counts / sizeof *counts); i++) {
            for (int root = 0; root < size; root++) {
                rooted(root, counts[i]);
                unequal(root, counts[i]);
            }
            everybody(counts[i]);
            unequal_everybody(counts[i]);
            own_operations(counts[i]);
            operations_in_operations(counts[i]);
        }
        predefined_operations();
    }
    at_once();
    CHECK(MPI_Bcast(&rank, 1, MPI_INT, size, comm) == MPI_ERR_ROOT);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    return 0;
}
