/* SPDX-License-Identifier: Apache-2.0 */
/* Collective operations among machines that represent data differently: data of every datatype, reductions of every datatype
   and operation, operations of the program, groups of like and unlike members. */
#include "types.h"

static const struct kind *of(MPI_Datatype type)
{
    for (int t = 0; t < KINDS; t++)
        if (kinds[t].type == type) return &kinds[t];
    CHECK(!"a known datatype");
    return NULL;
}

/* Block of rank r in a table of all: values from 100 r on. */
static void move(MPI_Comm comm, const struct kind *k, int n)
{
    int me, all, counts[8], places[8], total = 0;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &all);
    size_t bytes = (size_t)(n + all) * (size_t)all * k->extent;
    char *out = memory(bytes), *in = memory(bytes);
    for (int root = 0; root < all; root++) {
        make(k, out, n, me == root ? 5 : 77);
        OK(MPI_Bcast(out, n, k->type, root, comm));
        must_be(k, out, n, 5, "MPI_Bcast");
    }
    int root = all - 1;
    make(k, out, n, 100 * me);
    memset(in, 0, bytes);
    OK(MPI_Gather(out, n, k->type, in, n, k->type, root, comm));
    for (int r = 0; r < all && me == root; r++) must_be(k, in + (size_t)r * (size_t)n * k->extent, n, 100 * r, "MPI_Gather");
    memset(in, 0, bytes);
    OK(MPI_Allgather(out, n, k->type, in, n, k->type, comm));
    for (int r = 0; r < all; r++) must_be(k, in + (size_t)r * (size_t)n * k->extent, n, 100 * r, "MPI_Allgather");
    /* In place. */
    memset(in, 0, bytes);
    make(k, in + (size_t)me * (size_t)n * k->extent, n, 100 * me);
    OK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, n, k->type, comm));
    for (int r = 0; r < all; r++) must_be(k, in + (size_t)r * (size_t)n * k->extent, n, 100 * r, "MPI_Allgather in place");
    /* Scatter what was gathered. */
    memset(out, 0, bytes);
    OK(MPI_Scatter(in, n, k->type, out, n, k->type, 0, comm));
    must_be(k, out, n, 100 * me, "MPI_Scatter");
    /* Unequal blocks: n + r values of rank r. */
    for (int r = 0; r < all; r++) {
        counts[r] = n + r;
        places[r] = total;
        total += n + r;
    }
    make(k, out, n + me, 100 * me);
    memset(in, 0, bytes);
    OK(MPI_Gatherv(out, n + me, k->type, in, counts, places, k->type, root, comm));
    for (int r = 0; r < all && me == root; r++) must_be(k, in + (size_t)places[r] * k->extent, counts[r], 100 * r, "MPI_Gatherv");
    memset(in, 0, bytes);
    OK(MPI_Allgatherv(out, n + me, k->type, in, counts, places, k->type, comm));
    for (int r = 0; r < all; r++) must_be(k, in + (size_t)places[r] * k->extent, counts[r], 100 * r, "MPI_Allgatherv");
    memset(out, 0, bytes);
    OK(MPI_Scatterv(in, counts, places, k->type, out, n + me, k->type, root, comm));
    must_be(k, out, n + me, 100 * me, "MPI_Scatterv");
    for (int r = 0; r < all; r++) make(k, out + (size_t)r * (size_t)n * k->extent, n, 100 * me + 10 * r);
    memset(in, 0, bytes);
    OK(MPI_Alltoall(out, n, k->type, in, n, k->type, comm));
    for (int r = 0; r < all; r++) must_be(k, in + (size_t)r * (size_t)n * k->extent, n, 100 * r + 10 * me, "MPI_Alltoall");
    OK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, n, k->type, comm));
    for (int r = 0; r < all; r++) must_be(k, in + (size_t)r * (size_t)n * k->extent, n, 100 * me + 10 * r, "MPI_Alltoall in place");
    /* Rank a sends n + b values to rank b. */
    for (int r = 0; r < all; r++) make(k, out + (size_t)places[r] * k->extent, counts[r], 100 * me + 10 * r);
    int expected[8], at[8];
    for (int r = 0; r < all; r++) expected[r] = n + me, at[r] = r * (n + me);
    memset(in, 0, bytes);
    OK(MPI_Alltoallv(out, counts, places, k->type, in, expected, at, k->type, comm));
    for (int r = 0; r < all; r++) must_be(k, in + (size_t)at[r] * k->extent, n + me, 100 * r + 10 * me, "MPI_Alltoallv");
    free(out);
    free(in);
}

/* Small integers of the type, so that every order of operations gives the same. */
static void put(const struct kind *k, void *place, int value)
{
    memset(place, 0, k->extent);
    union { int8_t a; int16_t b; int32_t c; int64_t d; __int128 e; } u;
    memset(&u, 0, sizeof u);
    switch (k->group) {
    case 's':
    case 'l':
        switch (k->extent) {
        case 1: u.a = (int8_t)value; break;
        case 2: u.b = (int16_t)value; break;
        case 4: u.c = value; break;
        case 8: u.d = value; break;
        default: u.e = value; break;
        }
        memcpy(place, &u, k->extent);
        break;
    default: CHECK(0);
    }
}

static void put_floating(const struct kind *k, void *place, int value)
{
    size_t part = k->group == 'c' ? k->extent / 2 : k->extent;
    char *p = place;
    for (size_t i = 0; i < k->extent / part; i++, p += part) {
        float f = (float)value;
        double d = value;
        if (part == 2) {
            uint32_t bits;
            memcpy(&bits, &f, 4);
            uint16_t h = value ? (uint16_t)((bits >> 16 & 0x8000) | (((bits >> 23 & 0xff) - 112) << 10) | (bits >> 13 & 0x3ff)) : 0;
            memcpy(p, &h, 2);
        } else if (part == 4) {
            memcpy(p, &f, 4);
        } else if (part == 8) {
            memcpy(p, &d, 8);
        } else if (k->type == MPI_REAL16 || k->type == MPI_COMPLEX32) {
            quad q = value;
            memcpy(p, &q, sizeof q);
        } else {
            long double l = value;
            memset(p, 0, sizeof l);
            memcpy(p, &l, __LDBL_MANT_DIG__ == 64 ? 10 : sizeof l);
        }
    }
}

static void fill(const struct kind *k, char *buffer, int n, const int *values)
{
    for (int i = 0; i < n; i++)
        if (k->group == 'f' || k->group == 'c') put_floating(k, buffer + (size_t)i * k->extent, values[i]);
        else put(k, buffer + (size_t)i * k->extent, values[i]);
}

static void must_equal(const struct kind *k, const char *got, int n, const int *values, const char *what)
{
    char *wanted = memory((size_t)n * k->extent), *seen = memory((size_t)n * k->extent);
    fill(k, wanted, n, values);
    memcpy(seen, got, (size_t)n * k->extent);
    int extended = __LDBL_MANT_DIG__ == 64 && (k->type == MPI_LONG_DOUBLE || k->type == MPI_C_LONG_DOUBLE_COMPLEX || k->type == MPI_CXX_LONG_DOUBLE_COMPLEX);
    for (size_t i = 0; extended && i < (size_t)n * k->extent; i++)
        if (i % 16 >= 10) seen[i] = 0;
    if (memcmp(wanted, seen, (size_t)n * k->extent)) {
        fprintf(stderr, "rank %d: %s of %s is wrong\n", rank, what, k->name);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    free(wanted);
    free(seen);
}

static int contribution(int r, int i) { return (r + 2 * i) % 3 + 1; }

static void reduce(MPI_Comm comm, const struct kind *k, MPI_Op op, int n)
{
    int me, all, mine[40], total[40], before[40];
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &all);
    CHECK(n * all <= 40);
    for (int i = 0; i < n * all; i++) {
        mine[i] = contribution(me, i);
        for (int r = 0; r < all; r++) {
            int v = contribution(r, i), l = k->group == 'l';
            if (l) v = v > 1;
            if (r == me) mine[i] = v, before[i] = r ? total[i] : 0;
            if (r == 0) total[i] = v;
            else if (op == MPI_SUM) total[i] += v;
            else if (op == MPI_MAX) total[i] = v > total[i] ? v : total[i];
            else if (op == MPI_BXOR) total[i] ^= v;
            else if (op == MPI_LAND) total[i] = total[i] && v;
        }
    }
    /* The sum of (v + v i) is that of its parts. */
    char *out = memory((size_t)n * (size_t)all * k->extent), *in = memory((size_t)n * (size_t)all * k->extent);
    fill(k, out, n * all, mine);
    OK(MPI_Allreduce(out, in, n, k->type, op, comm));
    must_equal(k, in, n, total, "MPI_Allreduce");
    OK(MPI_Reduce(out, in, n, k->type, op, all - 1, comm));
    if (me == all - 1) must_equal(k, in, n, total, "MPI_Reduce");
    OK(MPI_Exscan(out, in, n, k->type, op, comm));
    if (me) must_equal(k, in, n, before, "MPI_Exscan");
    OK(MPI_Scan(out, in, n, k->type, op, comm));
    if (me == all - 1) must_equal(k, in, n, total, "MPI_Scan");
    OK(MPI_Reduce_scatter_block(out, in, n, k->type, op, comm));
    must_equal(k, in, n, total + me * n, "MPI_Reduce_scatter_block");
    memcpy(in, out, (size_t)n * k->extent);
    OK(MPI_Allreduce(MPI_IN_PLACE, in, n, k->type, op, comm));
    must_equal(k, in, n, total, "MPI_Allreduce in place");
    free(out);
    free(in);
}

static void located(void)
{
    struct { double v; int i; } d = {rank == 2 ? 9.5 : rank, 10 + rank}, e;
    struct { long double v; int i; } l = {rank == 1 ? -3.25L : rank, 20 + rank}, m;
    struct { short v; int i; } s = {(short)(rank % 2 ? 300 : 5), 30 + rank}, t;
    OK(MPI_Allreduce(&d, &e, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD));
    CHECK(e.v == 9.5 && e.i == 12);
    OK(MPI_Allreduce(&l, &m, 1, MPI_LONG_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD));
    CHECK(m.v == -3.25L && m.i == 21);
    OK(MPI_Allreduce(&s, &t, 1, MPI_SHORT_INT, MPI_MAXLOC, MPI_COMM_WORLD));
    CHECK(t.v == 300 && t.i == 31);
}

/* An operation of the program on a structure with gaps: 2 by 2 matrices, whose product does not commute. */
struct matrix {
    char name;
    long m[4];
    short count;
};

static void multiply(void *in, void *inout, int *n, MPI_Datatype *type)
{
    struct matrix *a = in, *b = inout;
    (void)type;
    for (int i = 0; i < *n; i++, a++, b++) {
        long c[4] = {a->m[0] * b->m[0] + a->m[1] * b->m[2], a->m[0] * b->m[1] + a->m[1] * b->m[3],
                     a->m[2] * b->m[0] + a->m[3] * b->m[2], a->m[2] * b->m[1] + a->m[3] * b->m[3]};
        memcpy(b->m, c, sizeof c);
        b->count = (short)(b->count + a->count);
    }
}

static void of_the_program(void)
{
    enum { N = 50 };
    int lengths[] = {1, 4, 1};
    MPI_Aint places[] = {offsetof(struct matrix, name), offsetof(struct matrix, m), offsetof(struct matrix, count)};
    MPI_Datatype types[] = {MPI_CHAR, MPI_LONG, MPI_SHORT}, plain, type;
    MPI_Op op;
    static struct matrix mine[N], all[N];
    OK(MPI_Type_create_struct(3, lengths, places, types, &plain));
    OK(MPI_Type_create_resized(plain, 0, sizeof(struct matrix), &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Op_create(multiply, 0, &op));
    long wanted[4] = {1, 0, 0, 1};
    for (int r = 0; r < size; r++) {
        long m[4] = {r + 1, 2, r, 1};
        long c[4] = {wanted[0] * m[0] + wanted[1] * m[2], wanted[0] * m[1] + wanted[1] * m[3],
                     wanted[2] * m[0] + wanted[3] * m[2], wanted[2] * m[1] + wanted[3] * m[3]};
        memcpy(wanted, c, sizeof c);
        for (int i = 0; i < N && r == rank; i++) {
            mine[i].name = 'm';
            memcpy(mine[i].m, m, sizeof m);
            mine[i].count = (short)(i + r);
        }
    }
    OK(MPI_Allreduce(mine, all, N, type, op, MPI_COMM_WORLD));
    for (int i = 0; i < N; i++) CHECK(!memcmp(all[i].m, wanted, sizeof wanted) && all[i].count == size * i + size * (size - 1) / 2 && all[i].name == 'm');
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&plain));
    OK(MPI_Type_free(&type));
}

/* Columns on one side, rows on the other; types that differ by rank (alltoallw). */
static void derived(void)
{
    MPI_Datatype row, column, one;
    double matrix[12][8], got[12][8];
    OK(MPI_Type_vector(12, 1, 8, MPI_DOUBLE, &one));
    OK(MPI_Type_create_resized(one, 0, sizeof(double), &column));
    OK(MPI_Type_contiguous(12, MPI_DOUBLE, &row));
    OK(MPI_Type_commit(&column));
    OK(MPI_Type_commit(&row));
    for (int i = 0; i < 12; i++)
        for (int j = 0; j < 8; j++) matrix[i][j] = rank * 1000 + i * 10 + j, got[i][j] = -1;
    /* Two columns for each of four processes; they come as rows. */
    OK(MPI_Alltoall(matrix, 8 / size, column, got, 8 / size, row, MPI_COMM_WORLD));
    for (int r = 0; r < size; r++)
        for (int c = 0; c < 8 / size; c++)
            for (int i = 0; i < 12; i++)
                CHECK((&got[0][0])[(r * (8 / size) + c) * 12 + i] == r * 1000 + i * 10 + rank * (8 / size) + c);
    MPI_Datatype types[8], back[8];
    int counts[8], places[8], zero[8];
    char bytes[8][8];
    short shorts[8];
    memset(bytes, 0, sizeof bytes);
    /* What rank r gets has a type that depends on r: an int or a short. */
    int ints[8];
    for (int r = 0; r < size; r++) {
        ints[r] = rank * 100 + r;
        shorts[r] = (short)(rank * 100 + r);
        types[r] = r % 2 ? MPI_SHORT : MPI_INT;
        back[r] = rank % 2 ? MPI_SHORT : MPI_INT;
        counts[r] = 1;
        places[r] = 8 * r;
        zero[r] = 8 * r;
        if (r % 2) memcpy(bytes[r], &shorts[r], 2);
        else memcpy(bytes[r], &ints[r], 4);
    }
    char in[8][8];
    OK(MPI_Alltoallw(bytes, counts, zero, types, in, counts, places, back, MPI_COMM_WORLD));
    for (int r = 0; r < size; r++) {
        int i;
        short s;
        memcpy(&i, in[r], 4);
        memcpy(&s, in[r], 2);
        CHECK((rank % 2 ? s : i) == r * 100 + rank);
    }
    OK(MPI_Type_free(&one));
    OK(MPI_Type_free(&row));
    OK(MPI_Type_free(&column));
}

/* Nonblocking, persistent, along a topology, large. */
static void other_forms(void)
{
    enum { N = 60000 };
    static int big[N], sums[N];
    MPI_Request request;
    for (int i = 0; i < N; i++) big[i] = rank == 1 ? i * 3 : -1;
    OK(MPI_Ibcast(big, N, MPI_INT, 1, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < N; i++) CHECK(big[i] == i * 3);
    OK(MPI_Allreduce(big, sums, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < N; i++) CHECK(sums[i] == size * i * 3);
    OK(MPI_Allreduce_init(big, sums, 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++) big[i] = i + rank + round;
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int i = 0; i < 100; i++) CHECK(sums[i] == size * (i + round) + size * (size - 1) / 2);
    }
    OK(MPI_Request_free(&request));
    MPI_Comm ring;
    int periodic = 1;
    long double mine = rank + 0.5L, around[2];
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring));
    OK(MPI_Neighbor_allgather(&mine, 1, MPI_LONG_DOUBLE, around, 1, MPI_LONG_DOUBLE, ring));
    CHECK(around[0] == (rank + size - 1) % size + 0.5L && around[1] == (rank + 1) % size + 0.5L);
    OK(MPI_Comm_free(&ring));
}

int main(int argc, char **argv)
{
    MPI_Comm pairs, copy, side, between;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int t = 0; t < KINDS; t++) move(MPI_COMM_WORLD, &kinds[t], 6);
    move(MPI_COMM_WORLD, of(MPI_LONG_DOUBLE), 3000);
    for (int t = 0; t < KINDS; t++) {
        const struct kind *k = &kinds[t];
        if (strchr("sfc", k->group)) reduce(MPI_COMM_WORLD, k, MPI_SUM, 5);
        if (strchr("sf", k->group)) reduce(MPI_COMM_WORLD, k, MPI_MAX, 5);
        if (k->group == 's') reduce(MPI_COMM_WORLD, k, MPI_BXOR, 5);
        if (k->group == 'l') reduce(MPI_COMM_WORLD, k, MPI_LAND, 5);
    }
    located();
    of_the_program();
    derived();
    other_forms();
    /* Groups: unlike pairs, like pairs, duplicates, and like ones with unlike ones. */
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &pairs));
    move(pairs, of(MPI_LONG), 6);
    reduce(pairs, of(MPI_REAL16), MPI_SUM, 5);
    OK(MPI_Comm_dup(pairs, &copy));
    move(copy, of(MPI_DOUBLE_INT), 6);
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &side));
    move(side, of(MPI_INT), 6);
    reduce(side, of(MPI_LONG_DOUBLE), MPI_SUM, 5);
    OK(MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, rank < 2 ? 2 : 0, 3, &between));
    int theirs[2] = {-1, -1};
    OK(MPI_Allgather(&rank, 1, MPI_INT, theirs, 1, MPI_INT, between));
    CHECK(theirs[0] == (rank < 2 ? 2 : 0) && theirs[1] == theirs[0] + 1);
    OK(MPI_Comm_free(&between));
    OK(MPI_Comm_free(&side));
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&pairs));
    MPI_Finalize();
    if (rank == 0) printf("collective operations on %d datatypes give what they give on one machine\n", KINDS);
    return 0;
}
