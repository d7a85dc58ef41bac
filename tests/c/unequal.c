/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that differ in length, and are each as long as some limit of shared memory or a byte longer: blocking operations and several at once
   that do not block, in place or not, data with gaps, reductions whose result differs with the order of contributions.
   ranks: 1 2 4 7 */
#include "check.h"

enum { MOST = 9000, ROUNDS = 60 };

static int rank, size;
static MPI_Comm comm;

static const int lengths[] = {0,   1,    8,    12,   24,   27,   32,   33,   52,   53,   64,   108,  109,
                              111, 112,  113,  580,  1018, 1019, 1400, 1401, 2036, 2037, 4072, 4073, 4096, 4208, 4209, 9000};

/* Bytes that `from` gives `to`: known to all. */
static int length(int from, int to, int round)
{
    unsigned hash = (unsigned)(from * 7919 + to * 104729 + round * 1299709);
    hash ^= hash >> 7;
    int count = sizeof lengths / sizeof *lengths;
    /* Every other round has short ones only. */
    return lengths[hash % (unsigned)(round % 2 ? count : 8)];
}

static unsigned char byte(int from, int to, int i, int round)
{
    return (unsigned char)(from * 31 + to * 17 + i * 7 + round);
}

static void write_block(unsigned char *at, int from, int to, int round)
{
    for (int i = 0; i < length(from, to, round); i++)
        at[i] = byte(from, to, i, round);
}

static void check_block(const unsigned char *at, int from, int to, int round)
{
    int n = length(from, to, round);
    for (int i = 0; i < n; i++)
        CHECK(at[i] == byte(from, to, i, round));
    CHECK(at[n] == 0xee);
}

/* A row of blocks, each with a byte behind it that nobody may write. */
struct row {
    unsigned char *memory;
    int *counts, *starts;
};

static struct row new_row(void)
{
    struct row row = {malloc((size_t)size * (MOST + 1)), calloc((size_t)size, sizeof(int)), calloc((size_t)size, sizeof(int))};
    memset(row.memory, 0xee, (size_t)size * (MOST + 1));
    for (int r = 0; r < size; r++)
        row.starts[r] = r * (MOST + 1);
    return row;
}

static void free_row(struct row row)
{
    free(row.memory);
    free(row.counts);
    free(row.starts);
}

/* What a rank that is nobody's number gets is the same for all: gatherv and allgatherv. */
static void gather(int round, int in_place, int nonblocking)
{
    struct row all = new_row();
    unsigned char own[MOST + 1];
    int root = round % size;
    for (int r = 0; r < size; r++)
        all.counts[r] = length(r, root, round);
    write_block(own, rank, root, round);
    MPI_Request request = MPI_REQUEST_NULL;
    void *from = own;
    if (in_place && rank == root) {
        write_block(all.memory + all.starts[rank], rank, root, round);
        from = MPI_IN_PLACE;
    }
    int n = length(rank, root, round);
    if (nonblocking)
        OK(MPI_Igatherv(from, n, MPI_BYTE, all.memory, all.counts, all.starts, MPI_BYTE, root, comm, &request));
    else
        OK(MPI_Gatherv(from, n, MPI_BYTE, all.memory, all.counts, all.starts, MPI_BYTE, root, comm));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int r = 0; rank == root && r < size; r++)
        check_block(all.memory + all.starts[r], r, root, round);
    free_row(all);

    all = new_row();
    for (int r = 0; r < size; r++)
        all.counts[r] = length(r, 0, round);
    write_block(in_place ? all.memory + all.starts[rank] : own, rank, 0, round);
    n = length(rank, 0, round);
    from = in_place ? MPI_IN_PLACE : own;
    if (nonblocking)
        OK(MPI_Iallgatherv(from, n, MPI_BYTE, all.memory, all.counts, all.starts, MPI_BYTE, comm, &request));
    else
        OK(MPI_Allgatherv(from, n, MPI_BYTE, all.memory, all.counts, all.starts, MPI_BYTE, comm));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int r = 0; r < size; r++)
        check_block(all.memory + all.starts[r], r, 0, round);
    free_row(all);
}

static void scatter(int round, int in_place, int nonblocking)
{
    struct row all = new_row();
    unsigned char own[MOST + 1];
    memset(own, 0xee, sizeof own);
    int root = (round + 1) % size;
    for (int r = 0; r < size; r++) {
        all.counts[r] = length(root, r, round);
        write_block(all.memory + all.starts[r], root, r, round);
    }
    void *into = in_place && rank == root ? MPI_IN_PLACE : own;
    int n = length(root, rank, round);
    MPI_Request request = MPI_REQUEST_NULL;
    if (nonblocking)
        OK(MPI_Iscatterv(all.memory, all.counts, all.starts, MPI_BYTE, into, n, MPI_BYTE, root, comm, &request));
    else
        OK(MPI_Scatterv(all.memory, all.counts, all.starts, MPI_BYTE, into, n, MPI_BYTE, root, comm));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (into == own)
        check_block(own, root, rank, round);
    free_row(all);
}

/* Three at a time, which end in another order than they began. */
static void exchange(int round, int nonblocking)
{
    enum { AT_ONCE = 3 };
    struct row give[AT_ONCE], take[AT_ONCE];
    MPI_Request requests[AT_ONCE];
    for (int k = 0; k < AT_ONCE; k++) {
        give[k] = new_row();
        take[k] = new_row();
        for (int r = 0; r < size; r++) {
            give[k].counts[r] = length(rank, r, round + k);
            write_block(give[k].memory + give[k].starts[r], rank, r, round + k);
            take[k].counts[r] = length(r, rank, round + k);
        }
        requests[k] = MPI_REQUEST_NULL;
        if (nonblocking)
            OK(MPI_Ialltoallv(give[k].memory, give[k].counts, give[k].starts, MPI_BYTE, take[k].memory, take[k].counts,
                take[k].starts, MPI_BYTE, comm, &requests[k]));
        else
            OK(MPI_Alltoallv(give[k].memory, give[k].counts, give[k].starts, MPI_BYTE, take[k].memory, take[k].counts,
                take[k].starts, MPI_BYTE, comm));
    }
    for (int k = AT_ONCE - 1; k >= 0; k--) {
        OK(MPI_Wait(&requests[k], MPI_STATUS_IGNORE));
        for (int r = 0; r < size; r++)
            check_block(take[k].memory + take[k].starts[r], r, rank, round + k);
        free_row(give[k]);
        free_row(take[k]);
    }
}

/* Every other byte of the memory, by alltoallw. */
static void with_gaps(int round)
{
    struct row give = new_row(), take = new_row();
    MPI_Datatype *types = malloc((size_t)size * sizeof *types), *into = malloc((size_t)size * sizeof *into);
    unsigned char *wide = malloc((size_t)size * 2 * MOST);
    int *ones = malloc((size_t)size * sizeof *ones), *places = malloc((size_t)size * sizeof *places);
    for (int r = 0; r < size; r++) {
        OK(MPI_Type_vector(length(rank, r, round), 1, 2, MPI_BYTE, &types[r]));
        OK(MPI_Type_commit(&types[r]));
        into[r] = MPI_BYTE;
        ones[r] = 1;
        places[r] = r * 2 * MOST;
        for (int i = 0; i < length(rank, r, round); i++)
            wide[places[r] + 2 * i] = byte(rank, r, i, round);
        take.counts[r] = length(r, rank, round);
    }
    OK(MPI_Alltoallw(wide, ones, places, types, take.memory, take.counts, take.starts, into, comm));
    for (int r = 0; r < size; r++) {
        check_block(take.memory + take.starts[r], r, rank, round);
        OK(MPI_Type_free(&types[r]));
    }
    free(types);
    free(into);
    free(wide);
    free(ones);
    free(places);
    free_row(give);
    free_row(take);
}

/* Keeps the right operand: what comes of contributions in order of rank is that of the last. */
static void last(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)n, (void)type;
}

static int element(int from, int i, int round)
{
    return from * 1001 + i * 3 + round;
}

static void reduce(int round, int in_place, int nonblocking)
{
    int counts[64], own = 0, before = 0, all = 0;
    for (int r = 0; r < size; r++) {
        counts[r] = (length(r, 1, round) / (round % 4 == 1 ? 40 : 12)) % 300;
        before = r == rank ? all : before;
        all += counts[r];
    }
    own = counts[rank];
    int *give = malloc(((size_t)all + 1) * sizeof *give), *take = malloc(((size_t)all + 1) * sizeof *take);
    for (int i = 0; i < all; i++)
        give[i] = take[i] = element(rank, i, round);
    MPI_Request request = MPI_REQUEST_NULL;
    const void *from = in_place ? MPI_IN_PLACE : give;
    if (nonblocking)
        OK(MPI_Ireduce_scatter(from, take, counts, MPI_INT, MPI_SUM, comm, &request));
    else
        OK(MPI_Reduce_scatter(from, take, counts, MPI_INT, MPI_SUM, comm));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < own; i++) {
        int sum = 0;
        for (int r = 0; r < size; r++)
            sum += element(r, before + i, round);
        CHECK(take[i] == sum);
    }
    free(give);
    free(take);
}

static void prefix(int n, int round, int in_place, int nonblocking)
{
    int *give = malloc(((size_t)n * size + 1) * sizeof *give), *take = malloc(((size_t)n * size + 1) * sizeof *take);
    MPI_Request request = MPI_REQUEST_NULL;
    const void *from = in_place ? MPI_IN_PLACE : (const void *)give;
    for (int exclusive = 0; exclusive < 2; exclusive++) {
        for (int i = 0; i < n; i++)
            give[i] = take[i] = element(rank, i, round);
        if (nonblocking && exclusive)
            OK(MPI_Iexscan(from, take, n, MPI_INT, MPI_SUM, comm, &request));
        else if (nonblocking)
            OK(MPI_Iscan(from, take, n, MPI_INT, MPI_SUM, comm, &request));
        else if (exclusive)
            OK(MPI_Exscan(from, take, n, MPI_INT, MPI_SUM, comm));
        else
            OK(MPI_Scan(from, take, n, MPI_INT, MPI_SUM, comm));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int i = 0; i < n && (!exclusive || rank > 0); i++) {
            int sum = 0;
            for (int r = 0; r < rank + !exclusive; r++)
                sum += element(r, i, round);
            CHECK(take[i] == sum);
        }
    }
    for (int i = 0; i < n * size; i++)
        give[i] = take[i] = element(rank, i, round);
    if (nonblocking)
        OK(MPI_Ireduce_scatter_block(from, take, n, MPI_INT, MPI_SUM, comm, &request));
    else
        OK(MPI_Reduce_scatter_block(from, take, n, MPI_INT, MPI_SUM, comm));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < n; i++) {
        int sum = 0;
        for (int r = 0; r < size; r++)
            sum += element(r, rank * n + i, round);
        CHECK(take[i] == sum);
    }
    free(give);
    free(take);
}

/* An operator that must be applied in order of rank, in a result of the library's and of the program's own elements. */
static void in_order(void)
{
    MPI_Op op;
    OK(MPI_Op_create(last, 0, &op));
    int mine = 100 + rank, got = -1;
    OK(MPI_Scan(&mine, &got, 1, MPI_INT, op, comm));
    CHECK(got == mine);
    got = -1;
    OK(MPI_Exscan(&mine, &got, 1, MPI_INT, op, comm));
    CHECK(got == (rank > 0 ? mine - 1 : -1));
    OK(MPI_Op_free(&op));
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    static const int counts[] = {0, 1, 2, 13, 14, 27, 28, 29, 300, 1018, 1019, 5000};
    for (int round = 0; round < ROUNDS; round++) {
        int in_place = round / 2 % 2, nonblocking = round / 4 % 2;
        gather(round, in_place, nonblocking);
        scatter(round, in_place, nonblocking);
        exchange(round, nonblocking);
        with_gaps(round);
        reduce(round, in_place, nonblocking);
        prefix(counts[round % (int)(sizeof counts / sizeof *counts)], round, in_place, nonblocking);
    }
    in_order();
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    return 0;
}
