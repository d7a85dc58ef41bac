/* SPDX-License-Identifier: Apache-2.0 */
/* Collective operations that another MPI may do underneath, mixed with those that it does not, with buffers of which no two members have the same kind:
   elements with gaps at some, one piece at others, blocks in another order than the ranks, before the buffer and in place, far apart; blocking and
   nonblocking ones, operations of the program and messages in between; communicators that are freed while something is under way.
   ranks: 1 2 3 4 */
#include "check.h"
#include <sys/mman.h>

enum { N = 50 };
static int rank, size;
static MPI_Comm comm;
static MPI_Datatype gaps; /* an int in the middle of three */

/* Item i of what process from has for process to. */
static int item(int from, int to, int i)
{
    return from * 100003 + to * 1009 + i;
}

/* Every second process, counted from `turn`, has its data with gaps. */
static int with_gaps(int turn)
{
    return (rank + turn) % 2;
}

static int stride(int turn)
{
    return with_gaps(turn) ? 3 : 1;
}

static MPI_Datatype type(int turn)
{
    return with_gaps(turn) ? gaps : MPI_INT;
}

static int *room(int turn, int n)
{
    int *array = malloc((size_t)stride(turn) * (n + 1) * sizeof(int));
    CHECK(array);
    for (int i = 0; i < stride(turn) * (n + 1); i++)
        array[i] = -999;
    return array;
}

/* Item i of an array with or without gaps. */
static int *at(int *array, int turn, int i)
{
    return array + stride(turn) * i + (with_gaps(turn) ? 1 : 0);
}

static void gaps_are_kept(const int *array, int turn, int n)
{
    for (int i = 0; with_gaps(turn) && i < n; i++)
        CHECK(array[3 * i] == -999 && array[3 * i + 2] == -999);
}

static void end(MPI_Request *request, int nonblocking)
{
    if (nonblocking)
        OK(MPI_Wait(request, MPI_STATUS_IGNORE));
}

#define RUN(name, iname, ...) \
    do { \
        MPI_Request request_; \
        OK(nonblocking ? MPI_##iname(__VA_ARGS__, &request_) : MPI_##name(__VA_ARGS__)); \
        end(&request_, nonblocking); \
    } while (0)

static void kinds(int turn, int n, int nonblocking)
{
    int *one = room(turn, n), *all = room(turn + 1, n * size), r, i, root = turn % size, at_root = rank == root;
    for (i = 0; i < n; i++)
        *at(one, turn, i) = at_root ? item(root, 0, i) : -1;
    RUN(Bcast, Ibcast, one, n, type(turn), root, comm);
    for (i = 0; i < n; i++)
        CHECK(*at(one, turn, i) == item(root, 0, i));
    for (i = 0; i < n; i++)
        *at(one, turn, i) = item(rank, root, i);
    RUN(Gather, Igather, one, n, type(turn), all, n, type(turn + 1), root, comm);
    for (r = 0; at_root && r < size; r++)
        for (i = 0; i < n; i++)
            CHECK(*at(all, turn + 1, r * n + i) == item(r, root, i));
    for (r = 0; at_root && r < size; r++)
        for (i = 0; i < n; i++)
            *at(all, turn + 1, r * n + i) = item(root, r, i);
    RUN(Scatter, Iscatter, all, n, type(turn + 1), at_root && turn % 3 == 0 ? MPI_IN_PLACE : one, n, type(turn), root, comm);
    for (i = 0; i < n && !(at_root && turn % 3 == 0); i++)
        CHECK(*at(one, turn, i) == item(root, rank, i));
    for (i = 0; i < n; i++)
        *at(one, turn, i) = *at(all, turn + 1, rank * n + i) = item(rank, 0, i);
    RUN(Allgather, Iallgather, turn % 3 ? (void *)one : MPI_IN_PLACE, n, type(turn), all, n, type(turn + 1), comm);
    for (r = 0; r < size; r++)
        for (i = 0; i < n; i++)
            CHECK(*at(all, turn + 1, r * n + i) == item(r, 0, i));
    for (r = 0; r < size; r++)
        for (i = 0; i < n; i++)
            *at(all, turn + 1, r * n + i) = item(rank, r, i);
    RUN(Alltoall, Ialltoall, MPI_IN_PLACE, 0, MPI_INT, all, n, type(turn + 1), comm);
    for (r = 0; r < size; r++)
        for (i = 0; i < n; i++)
            CHECK(*at(all, turn + 1, r * n + i) == item(r, rank, i));
    gaps_are_kept(one, turn, n);
    gaps_are_kept(all, turn + 1, n * size);
    free(one);
    free(all);
}

/* Blocks of r + n items, at the root in the opposite order, the first before the buffer. */
static void places(int turn, int n, int nonblocking)
{
    int counts[16], displs[16], total = 0, r, i, root = (turn + 1) % size, at_root = rank == root, mine = rank + n;
    for (r = size - 1; r >= 0; r--) {
        counts[r] = r + n;
        displs[r] = total;
        total += counts[r] + 2;
    }
    int shift = total / 2;
    for (r = 0; r < size; r++)
        displs[r] -= shift;
    int *one = room(turn, mine), *whole = room(turn + 1, total), *all = whole + stride(turn + 1) * shift, in_place;
    for (in_place = 0; in_place < 2; in_place++) {
        for (i = 0; i < mine; i++)
            *at(one, turn, i) = *at(all, turn + 1, displs[rank] + i) = item(rank, root, i);
        RUN(Gatherv, Igatherv, in_place && at_root ? MPI_IN_PLACE : one, mine, type(turn), all, counts, displs, type(turn + 1), root, comm);
        for (r = 0; at_root && r < size; r++)
            for (i = 0; i < counts[r]; i++)
                CHECK(*at(all, turn + 1, displs[r] + i) == item(r, root, i));
        for (r = 0; at_root && r < size; r++)
            for (i = 0; i < counts[r]; i++)
                *at(all, turn + 1, displs[r] + i) = item(root, r, i);
        RUN(Scatterv, Iscatterv, all, counts, displs, type(turn + 1), in_place && at_root ? MPI_IN_PLACE : one, mine, type(turn), root, comm);
        for (i = 0; i < mine && !(in_place && at_root); i++)
            CHECK(*at(one, turn, i) == item(root, rank, i));
        for (i = 0; i < mine; i++)
            *at(one, turn, i) = *at(all, turn + 1, displs[rank] + i) = item(rank, 0, i);
        RUN(Allgatherv, Iallgatherv, in_place ? MPI_IN_PLACE : one, mine, type(turn), all, counts, displs, type(turn + 1), comm);
        for (r = 0; r < size; r++)
            for (i = 0; i < counts[r]; i++)
                CHECK(*at(all, turn + 1, displs[r] + i) == item(r, 0, i));
    }
    for (r = 0; r < size; r++) {
        CHECK(*at(all, turn + 1, displs[r] + counts[r]) == -999);
        CHECK(*at(all, turn + 1, displs[r] + counts[r] + 1) == -999);
    }
    gaps_are_kept(whole, turn + 1, total);
    free(one);
    free(whole);
}

/* (r + t) % 3 * n items from r to t, a datatype for each block. */
static void types(int turn, int n, int nonblocking)
{
    int counts[16], displs[16], bytes[16], r, i, total = 0;
    MPI_Datatype each[16];
    for (r = 0; r < size; r++) {
        counts[r] = (rank + r) % 3 * n;
        displs[r] = total;
        bytes[r] = total * 3 * (int)sizeof(int);
        /* None of nothing. */
        each[r] = counts[r] == 0 ? MPI_DATATYPE_NULL : r % 2 ? gaps : MPI_INT;
        total += counts[r];
    }
    int *out = malloc((total + 1) * 3 * sizeof(int)), *in = malloc((total + 1) * 3 * sizeof(int));
    CHECK(out && in);
    for (int in_place = 0; in_place < 2; in_place++) {
        for (i = 0; i < 3 * total; i++)
            out[i] = in[i] = -999;
        for (r = 0; r < size; r++)
            for (i = 0; i < counts[r]; i++) {
                int *to = (in_place ? in : out) + 3 * displs[r];
                to[r % 2 ? 3 * i + 1 : i] = item(rank, r, i);
            }
        RUN(Alltoallw, Ialltoallw, in_place ? MPI_IN_PLACE : out, counts, bytes, each, in, counts, bytes, each, comm);
        for (r = 0; r < size; r++)
            for (i = 0; i < counts[r]; i++)
                CHECK(in[3 * displs[r] + (r % 2 ? 3 * i + 1 : i)] == item(r, rank, i));
        for (r = 0; r < size; r++)
            for (i = 0; i < counts[r]; i++)
                CHECK(r % 2 == 0 || (in[3 * (displs[r] + i)] == -999 && in[3 * (displs[r] + i) + 2] == -999));
    }
    free(out);
    free(in);
    out = room(turn, total), in = room(turn + 1, total);
    for (r = 0; r < size; r++)
        for (i = 0; i < counts[r]; i++)
            *at(out, turn, displs[r] + i) = item(rank, r, i);
    RUN(Alltoallv, Ialltoallv, out, counts, displs, type(turn), in, counts, displs, type(turn + 1), comm);
    for (r = 0; r < size; r++)
        for (i = 0; i < counts[r]; i++)
            CHECK(*at(in, turn + 1, displs[r] + i) == item(r, rank, i));
    gaps_are_kept(in, turn + 1, total);
    free(out);
    free(in);
}

static void larger(void *in, void *inout, int *n, MPI_Datatype *of)
{
    int *a = in, *b = inout;
    (void)of;
    for (int i = 0; i < *n; i++)
        b[i] = a[i] > b[i] ? a[i] : b[i];
}

#define ALIKE(type, of, value, wanted) \
    do { \
        type mine_ = (type)(value), result_ = 0; \
        RUN(Exscan, Iexscan, &mine_, &result_, 1, of, MPI_SUM, comm); \
        CHECK(rank == 0 || result_ == (type)(wanted)); \
    } while (0)

/* Prefixes of every type, and operators. */
static void prefixes(int nonblocking)
{
    int before = rank * (rank + 1) / 2;
    ALIKE(signed char, MPI_SIGNED_CHAR, rank + 1, before);
    ALIKE(short, MPI_SHORT, rank + 1, before);
    ALIKE(int, MPI_INT, rank + 1, before);
    ALIKE(long long, MPI_LONG_LONG, rank + 1, before);
    ALIKE(unsigned char, MPI_UNSIGNED_CHAR, rank + 1, before);
    ALIKE(unsigned short, MPI_UNSIGNED_SHORT, rank + 1, before);
    ALIKE(unsigned, MPI_UNSIGNED, rank + 1, before);
    ALIKE(unsigned long long, MPI_UNSIGNED_LONG_LONG, rank + 1, before);
    ALIKE(float, MPI_FLOAT, rank + 1, before);
    ALIKE(double, MPI_DOUBLE, rank + 1, before);
    int mine = 1 << rank, result = -1;
    RUN(Scan, Iscan, &mine, &result, 1, MPI_INT, MPI_BXOR, comm);
    CHECK(result == (2 << rank) - 1);
    RUN(Scan, Iscan, &mine, &result, 1, MPI_INT, MPI_LOR, comm);
    CHECK(result == 1);
    RUN(Scan, Iscan, &mine, &result, 0, MPI_INT, MPI_SUM, comm);
    CHECK(result == 1);
    double x = rank - 1.5, y;
    RUN(Scan, Iscan, &x, &y, 1, MPI_DOUBLE, MPI_MAX, comm);
    CHECK(y == x);
    RUN(Scan, Iscan, &x, &y, 1, MPI_DOUBLE, MPI_MIN, comm);
    CHECK(y == -1.5);
}

/* Blocks further from each other than an int counts bytes. */
static void far(int nonblocking)
{
    size_t apart = (size_t)700 << 20;
    int counts[16], displs[16], mine[2] = {item(rank, 0, 0), item(rank, 0, 1)}, got[2] = {-1, -1};
    int *all = mmap(NULL, (apart + 2) * sizeof(int) + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(all != MAP_FAILED);
    for (int r = 0; r < size; r++) {
        counts[r] = 2;
        displs[r] = r == size - 1 ? (int)apart : 2 * r;
    }
    for (int root = 0; root < size; root++) {
        RUN(Gatherv, Igatherv, mine, 2, MPI_INT, all, counts, displs, MPI_INT, root, comm);
        for (int r = 0; rank == root && r < size; r++)
            CHECK(all[displs[r]] == item(r, 0, 0) && all[displs[r] + 1] == item(r, 0, 1));
        RUN(Scatterv, Iscatterv, all, counts, displs, MPI_INT, got, 2, MPI_INT, root, comm);
        CHECK(got[0] == mine[0] && got[1] == mine[1]);
    }
    for (int r = 0; r < size; r++)
        all[displs[r]] = all[displs[r] + 1] = -1;
    RUN(Allgatherv, Iallgatherv, mine, 2, MPI_INT, all, counts, displs, MPI_INT, comm);
    for (int r = 0; r < size; r++)
        CHECK(all[displs[r]] == item(r, 0, 0) && all[displs[r] + 1] == item(r, 0, 1));
    RUN(Alltoallv, Ialltoallv, MPI_IN_PLACE, NULL, NULL, MPI_INT, all, counts, displs, MPI_INT, comm);
    for (int r = 0; r < size; r++)
        CHECK(all[displs[r]] == item(rank, 0, 0) && all[displs[r] + 1] == item(rank, 0, 1));
    munmap(all, (apart + 2) * sizeof(int) + 4096);
}

/* Many under way, some of ours among them, and blocking ones between, in the same order everywhere. */
static void in_order(void)
{
    enum { MANY = 24 };
    int out[MANY], in[MANY][4], sum, r;
    MPI_Request requests[MANY];
    MPI_Op op;
    OK(MPI_Op_create(larger, 1, &op));
    for (int i = 0; i < MANY; i++) {
        out[i] = rank + i;
        switch (i % 6) {
        case 0: OK(MPI_Iallreduce(&out[i], in[i], 1, MPI_INT, MPI_SUM, comm, &requests[i])); break;
        case 1: OK(MPI_Iallreduce(&out[i], in[i], 1, MPI_INT, op, comm, &requests[i])); break;
        case 2: OK(MPI_Iallgather(&out[i], 1, MPI_INT, in[i], 1, MPI_INT, comm, &requests[i])); break;
        case 3: OK(MPI_Ibarrier(comm, &requests[i])); break;
        case 4: OK(MPI_Ibcast(&out[i], 1, MPI_INT, i % size, comm, &requests[i])); break;
        default:
            OK(MPI_Irecv(in[i], 1, MPI_INT, (rank + 1) % size, i, comm, &requests[i]));
            OK(MPI_Allreduce(&out[i], &sum, 1, MPI_INT, MPI_SUM, comm));
            CHECK(sum == size * i + size * (size - 1) / 2);
            OK(MPI_Allreduce(&out[i], &sum, 1, MPI_INT, op, comm));
            CHECK(sum == size - 1 + i);
            OK(MPI_Exscan(&out[i], &sum, 1, MPI_INT, MPI_SUM, comm));
            CHECK(rank == 0 || sum == rank * i + rank * (rank - 1) / 2);
            OK(MPI_Send(&out[i], 1, MPI_INT, (rank + size - 1) % size, i, comm));
        }
    }
    /* Each waits in an order of its own. */
    for (int i = 0; i < MANY; i++)
        OK(MPI_Wait(&requests[(i * 5 + rank) % MANY], MPI_STATUS_IGNORE));
    for (int i = 0; i < MANY; i++) {
        switch (i % 6) {
        case 0: CHECK(in[i][0] == size * i + size * (size - 1) / 2); break;
        case 1: CHECK(in[i][0] == size - 1 + i); break;
        case 2:
            for (r = 0; r < size; r++)
                CHECK(in[i][r] == r + i);
            break;
        case 4: CHECK(out[i] == i % size + i); break;
        case 5: CHECK(in[i][0] == (rank + 1) % size + i); break;
        default: break;
        }
    }
    OK(MPI_Op_free(&op));
}

/* What is under way on a communicator that is freed ends. */
static void freed(void)
{
    MPI_Comm copy[4];
    MPI_Request requests[4];
    int one = 1, sums[4] = {0, 0, 0, 0};
    for (int i = 0; i < 4; i++) {
        OK(MPI_Comm_dup(comm, &copy[i]));
        OK(MPI_Iallreduce(&one, &sums[i], 1, MPI_INT, MPI_SUM, copy[i], &requests[i]));
        OK(MPI_Comm_free(&copy[i]));
    }
    OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 4; i++)
        CHECK(sums[i] == size);
}

int main(int argc, char **argv)
{
    int whole[3] = {0, 1, 0};
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Datatype middle;
    OK(MPI_Type_indexed(1, &whole[1], &whole[1], MPI_INT, &middle));
    OK(MPI_Type_create_resized(middle, 0, 3 * sizeof(int), &gaps));
    OK(MPI_Type_free(&middle));
    OK(MPI_Type_commit(&gaps));
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        for (int turn = 0; turn < 3; turn++) {
            for (int n = 0; n <= 20000; n = n ? 400 * n : N) {
                kinds(turn, n, nonblocking);
                places(turn, n, nonblocking);
                types(turn, n, nonblocking);
            }
        }
        prefixes(nonblocking);
        far(nonblocking);
    }
    in_order();
    freed();
    OK(MPI_Type_free(&gaps));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    return 0;
}
