/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between machines that represent data differently: every predefined datatype, derived ones, counts of probes and
   truncated messages, packed data. */
#include "types.h"

/* From everybody to everybody, so that like and unlike machines talk. */
static void every_type(void)
{
    static const int lengths[] = {0, 1, 7, 1500};
    for (int t = 0; t < KINDS; t++)
        for (int l = 0; l < 4; l++)
            for (int shift = 1; shift < size; shift++) {
                const struct kind *k = &kinds[t];
                int n = lengths[l], to = (rank + shift) % size, from = (rank + size - shift) % size, count;
                char *out = memory((size_t)n * k->extent), *in = memory((size_t)n * k->extent);
                MPI_Status status;
                make(k, out, n, 1000 * rank + t);
                OK(MPI_Sendrecv(out, n, k->type, to, t, in, n, k->type, from, t, MPI_COMM_WORLD, &status));
                must_be(k, in, n, 1000 * from + t, "a message");
                OK(MPI_Get_count(&status, k->type, &count));
                CHECK(count == n);
                free(out);
                free(in);
            }
}

static void long_messages(void)
{
    static const MPI_Datatype long_ones[] = {MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_SHORT_INT, MPI_BYTE};
    for (int t = 0; t < KINDS; t++)
        for (int l = 0; l < 4; l++) {
            const struct kind *k = &kinds[t];
            if (k->type != long_ones[l]) continue;
            int n = 100000, other = size - 1 - rank;
            char *out = memory((size_t)n * k->extent), *in = memory((size_t)n * k->extent);
            make(k, out, n, rank);
            MPI_Request requests[2];
            OK(MPI_Irecv(in, n, k->type, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &requests[0]));
            OK(MPI_Issend(out, n, k->type, other, 7, MPI_COMM_WORLD, &requests[1]));
            OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
            must_be(k, in, n, other, "a long message");
            free(out);
            free(in);
            MPI_Barrier(MPI_COMM_WORLD);
        }
}

struct mixed {
    char c;
    double d[2];
    int i[3];
    long double l;
    short s;
};

static MPI_Datatype mixed_type(void)
{
    int lengths[] = {1, 2, 3, 1, 1};
    MPI_Aint places[] = {offsetof(struct mixed, c), offsetof(struct mixed, d), offsetof(struct mixed, i), offsetof(struct mixed, l), offsetof(struct mixed, s)};
    MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_INT, MPI_LONG_DOUBLE, MPI_SHORT}, plain, type;
    OK(MPI_Type_create_struct(5, lengths, places, types, &plain));
    OK(MPI_Type_create_resized(plain, 0, sizeof(struct mixed), &type));
    OK(MPI_Type_free(&plain));
    OK(MPI_Type_commit(&type));
    return type;
}

static struct mixed mixed(int i)
{
    struct mixed m = {(char)('a' + i % 26), {i * 1.5, -i}, {i, i * 65537, -i}, i + 0.25L, (short)(i * 3)};
    return m;
}

static int equal(const struct mixed *a, int i)
{
    struct mixed b = mixed(i);
    return a->c == b.c && a->d[0] == b.d[0] && a->d[1] == b.d[1] && !memcmp(a->i, b.i, sizeof a->i) && a->l == b.l && a->s == b.s;
}

static void derived(void)
{
    enum { N = 300 };
    MPI_Datatype type = mixed_type(), column;
    static struct mixed out[N], in[2 * N];
    int other = size - 1 - rank, count;
    MPI_Status status;
    for (int i = 0; i < N; i++) out[i] = mixed(i + rank);
    memset(in, 0x5a, sizeof in);
    /* More room than data: counts of whole elements and of basics. */
    OK(MPI_Sendrecv(out, N, type, other, 1, in, 2 * N, type, other, 1, MPI_COMM_WORLD, &status));
    for (int i = 0; i < N; i++) CHECK(equal(&in[i], i + other));
    CHECK(in[N].c == 0x5a);
    OK(MPI_Get_count(&status, type, &count));
    CHECK(count == N);
    OK(MPI_Get_elements(&status, type, &count));
    CHECK(count == 8 * N);
    /* A part of an element: three doubles where elements have two. */
    double three[3] = {1, 2, 3}, got[4] = {0, 0, 0, 0};
    MPI_Datatype two;
    OK(MPI_Type_contiguous(2, MPI_DOUBLE, &two));
    OK(MPI_Type_commit(&two));
    OK(MPI_Sendrecv(three, 3, MPI_DOUBLE, other, 2, got, 2, two, other, 2, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, two, &count));
    CHECK(count == MPI_UNDEFINED);
    OK(MPI_Get_elements(&status, two, &count));
    CHECK(count == 3 && got[2] == 3 && got[3] == 0);
    /* Columns of a matrix from rows of one. */
    static int rows[40][30], columns[30][40];
    for (int i = 0; i < 40; i++)
        for (int j = 0; j < 30; j++) rows[i][j] = rank * 100000 + i * 100 + j;
    MPI_Datatype one;
    OK(MPI_Type_vector(30, 1, 40, MPI_INT, &one));
    OK(MPI_Type_create_resized(one, 0, sizeof(int), &column));
    OK(MPI_Type_commit(&column));
    OK(MPI_Sendrecv(rows, 1200, MPI_INT, other, 3, columns, 40, column, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < 40; i++)
        for (int j = 0; j < 30; j++) CHECK(columns[j][i] == other * 100000 + i * 100 + j);
    OK(MPI_Type_free(&one));
    OK(MPI_Type_free(&column));
    OK(MPI_Type_free(&two));
    OK(MPI_Type_free(&type));
}

static void probes(void)
{
    int other = size - 1 - rank, count;
    long double out[50], in[50];
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    for (int i = 0; i < 50; i++) out[i] = i * 0.5L + rank, in[i] = 0;
    OK(MPI_Isend(out, 50, MPI_LONG_DOUBLE, other, 4, MPI_COMM_WORLD, &request));
    OK(MPI_Probe(other, 4, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_LONG_DOUBLE, &count));
    CHECK(count == 50);
    OK(MPI_Get_elements(&status, MPI_LONG_DOUBLE, &count));
    CHECK(count == 50);
    OK(MPI_Mprobe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &message, &status));
    OK(MPI_Mrecv(in, 50, MPI_LONG_DOUBLE, &message, &status));
    OK(MPI_Get_count(&status, MPI_LONG_DOUBLE, &count));
    CHECK(count == 50 && status.MPI_SOURCE == other && in[49] == 24.5L + other);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static int class_of(int error)
{
    int class;
    MPI_Error_class(error, &class);
    return class;
}

static void truncation(void)
{
    int other = size - 1 - rank, count;
    int out[20000], in[20000];
    MPI_Status status;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int n = 10; n <= 20000; n += 19990) {
        MPI_Request request;
        for (int i = 0; i < n; i++) out[i] = rank * 1000 + i, in[i] = -1;
        OK(MPI_Isend(out, n, MPI_INT, other, 5, MPI_COMM_WORLD, &request));
        CHECK(class_of(MPI_Recv(in, n - 3, MPI_INT, other, 5, MPI_COMM_WORLD, &status)) == MPI_ERR_TRUNCATE);
        OK(MPI_Get_count(&status, MPI_INT, &count));
        CHECK(count == n - 3 && in[n - 4] == other * 1000 + n - 4 && in[n - 3] == -1);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void packed(void)
{
    int other = size - 1 - rank, bytes, more, position = 0, n[3] = {rank, rank + 1, 77}, m[3];
    long double l = rank + 0.125L, k;
    char *buffer, *arrived;
    OK(MPI_Pack_size(3, MPI_INT, MPI_COMM_WORLD, &bytes));
    OK(MPI_Pack_size(1, MPI_LONG_DOUBLE, MPI_COMM_WORLD, &more));
    bytes += more;
    buffer = memory((size_t)bytes);
    arrived = memory((size_t)bytes);
    OK(MPI_Pack(n, 3, MPI_INT, buffer, bytes, &position, MPI_COMM_WORLD));
    OK(MPI_Pack(&l, 1, MPI_LONG_DOUBLE, buffer, bytes, &position, MPI_COMM_WORLD));
    OK(MPI_Sendrecv(buffer, position, MPI_PACKED, other, 6, arrived, bytes, MPI_PACKED, other, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    position = 0;
    OK(MPI_Unpack(arrived, bytes, &position, m, 3, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Unpack(arrived, bytes, &position, &k, 1, MPI_LONG_DOUBLE, MPI_COMM_WORLD));
    CHECK(m[0] == other && m[1] == other + 1 && m[2] == 77 && k == other + 0.125L);
    /* Packed data may be received with the types that they were made of; here by everybody, like or unlike. */
    for (int shift = 0; shift < size; shift++) {
        int to = (rank + shift) % size, from = (rank + size - shift) % size;
        m[0] = m[1] = m[2] = -1;
        OK(MPI_Sendrecv(buffer, 12, MPI_PACKED, to, 7, m, 3, MPI_INT, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(m[0] == from && m[1] == from + 1 && m[2] == 77);
    }
    /* The other way round is refused rather than misunderstood. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Request request;
    OK(MPI_Isend(n, 3, MPI_INT, other, 8, MPI_COMM_WORLD, &request));
    int error = MPI_Recv(arrived, bytes, MPI_PACKED, other, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(class_of(error) == MPI_ERR_TYPE);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    free(buffer);
    free(arrived);
}

static void partitioned(void)
{
    enum { PARTS = 4, EACH = 500 };
    static double out[PARTS * EACH], in[PARTS * EACH];
    int other = size - 1 - rank, there;
    MPI_Request requests[2];
    OK(MPI_Psend_init(out, PARTS, EACH, MPI_DOUBLE, other, 11, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(in, PARTS, EACH, MPI_DOUBLE, other, 11, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    for (int round = 0; round < 2; round++) {
        OK(MPI_Startall(2, requests));
        for (int p = PARTS - 1; p >= 0; p--) {
            for (int i = p * EACH; i < (p + 1) * EACH; i++) out[i] = rank * 1e5 + i + round;
            OK(MPI_Pready(p, requests[0]));
            OK(MPI_Parrived(requests[1], p, &there));
            /* What has arrived has been converted. */
            for (int i = p * EACH; there && i < (p + 1) * EACH; i++) CHECK(in[i] == other * 1e5 + i + round);
        }
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < PARTS * EACH; i++) CHECK(in[i] == other * 1e5 + i + round);
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
}

/* The same bytes on every machine. */
static void external32(void)
{
    for (int t = 0; t < KINDS; t++) {
        const struct kind *k = &kinds[t];
        enum { N = 9 };
        MPI_Aint bytes, position = 0;
        long first = k->type == MPI_LONG || k->type == MPI_UNSIGNED_LONG || k->type == MPI_WCHAR ? -1 : t;
        char *values = memory(N * k->extent), *back = memory(N * k->extent), *mine, *theirs;
        if (first < 0) {
            /* Types that are shorter there: values that fit. */
            for (int i = 0; i < N; i++)
                if (k->type == MPI_WCHAR) ((wchar_t *)(void *)values)[i] = 300 + i;
                else ((long *)(void *)values)[i] = 100 + i;
        } else {
            make(k, values, N, first);
        }
        OK(MPI_Pack_external_size("external32", N, k->type, &bytes));
        mine = memory((size_t)bytes);
        theirs = memory((size_t)bytes);
        OK(MPI_Pack_external("external32", values, N, k->type, mine, bytes, &position));
        CHECK(position == bytes);
        int other = size - 1 - rank;
        OK(MPI_Sendrecv(mine, (int)bytes, MPI_BYTE, other, 9, theirs, (int)bytes, MPI_BYTE, other, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        if (memcmp(mine, theirs, (size_t)bytes)) {
            fprintf(stderr, "external32 of %s differs\n", k->name);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        position = 0;
        OK(MPI_Unpack_external("external32", theirs, bytes, &position, back, N, k->type));
        if (first >= 0) must_be(k, back, N, first, "external32");
        free(values);
        free(back);
        free(mine);
        free(theirs);
    }
    long large[2] = {1, 1L << 40};
    char room[16];
    MPI_Aint position = 0;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int error = MPI_Pack_external("external32", large, 2, MPI_LONG, room, 16, &position);
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(error, text, &length);
    CHECK(class_of(error) == MPI_ERR_TRUNCATE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    every_type();
    long_messages();
    derived();
    probes();
    truncation();
    packed();
    partitioned();
    external32();
    MPI_Finalize();
    if (rank == 0) printf("messages of %d datatypes arrive as they were sent\n", KINDS);
    return 0;
}
