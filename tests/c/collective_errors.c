/* SPDX-License-Identifier: Apache-2.0 */
/* Erroneous collective calls give the class that the standard names, at every process that errs, and leave the communicator usable.
   ranks: 2 3 */
#include "check.h"

static int rank, size;

static int class_of(int code)
{
    int class;
    OK(MPI_Error_class(code, &class));
    return class;
}

#define FAILS(class, call) CHECK(class_of(call) == (class))

/* Only one of them errs, sees it and calls again: it has begun nothing before, and the others have waited. */
static void one_errs(MPI_Comm world, int *a, int *b)
{
    for (int i = 0; i < 3; i++) {
        if (rank == i % size) {
            FAILS(MPI_ERR_COUNT, MPI_Allreduce(a, b, -1, MPI_INT, MPI_SUM, world));
            FAILS(MPI_ERR_ROOT, MPI_Bcast(a, 1, MPI_INT, size, world));
            FAILS(MPI_ERR_TYPE, MPI_Allreduce(a, b, 8, MPI_DATATYPE_NULL, MPI_SUM, world));
        }
        OK(MPI_Allreduce(a, b, 8, MPI_INT, MPI_SUM, world));
        for (int k = 0; k < 8; k++)
            CHECK(b[k] == (k + 1) * size);
    }
}

/* A block of another length is an error at whoever takes it, which says whose it is. */
static void names_giver(int code, int giver)
{
    char text[MPI_MAX_ERROR_STRING], name[32];
    int length;
    FAILS(MPI_ERR_TRUNCATE, code);
    OK(MPI_Error_string(code, text, &length));
    snprintf(name, sizeof name, "rank %d", giver);
    CHECK(strstr(text, name));
}

/* Long blocks are written straight to the root's memory. One that is shorter or longer than the root expects is the root's error, which
   names its giver; nobody else errs, and the communicator stays usable. */
static void one_gives_another_length(MPI_Comm world)
{
    enum { LONG = 1 << 20, LESS = LONG - 4096 };
    char *give = calloc(LONG, 1), *take = malloc((size_t)size * LONG);
    CHECK(give && take);
    for (int longer = 0; longer < 2; longer++) {
        int usual = longer ? LESS : LONG, other = longer ? LONG : LESS, wrong = size - 1;
        for (int blocking = 0; blocking < 2; blocking++) {
            MPI_Request request = MPI_REQUEST_NULL;
            int count = rank == wrong ? other : usual;
            int code = blocking ? MPI_Gather(give, count, MPI_BYTE, take, usual, MPI_BYTE, 0, world)
                                : MPI_Igather(give, count, MPI_BYTE, take, usual, MPI_BYTE, 0, world, &request);
            if (code == MPI_SUCCESS)
                code = MPI_Wait(&request, MPI_STATUS_IGNORE);
            if (rank == 0) {
                names_giver(code, wrong);
            } else {
                OK(code);
            }
            int sum = 0;
            OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, world));
            CHECK(sum == size * (size - 1) / 2);
            OK(MPI_Gather(give, usual, MPI_BYTE, take, usual, MPI_BYTE, 0, world));
        }
    }
    free(give);
    free(take);
}

/* The same of blocks that go in other ways, each with each: through cells of two sizes, in a message, written to the root's memory. The root
   may expect nothing of any of them. */
static void rows_of_other_lengths(MPI_Comm world)
{
    static const int lengths[] = {0, 8, 1000, 6000, 20000, 65536, 100000};
    enum { LENGTHS = sizeof lengths / sizeof *lengths, LONGEST = 100000 };
    char *give = calloc(LONGEST, 1), *take = malloc((size_t)size * LONGEST);
    int counts[4], starts[4], wrong = size - 1;
    CHECK(give && take);
    for (int expected = 0; expected < LENGTHS; expected++)
        for (int given = 0; given < LENGTHS; given++)
            for (int usual = 0; usual < LENGTHS; usual += 5) {
                /* Of two the root would wait for nobody, and the other one could not know. */
                if (lengths[expected] == 0 && lengths[given] > 0 && usual > 0)
                    continue;
                /* A message that waits for its receiver, and has none. */
                if (lengths[given] == 20000 && lengths[expected] == 0)
                    continue;
                MPI_Request request = MPI_REQUEST_NULL;
                int blocking = (expected + given + usual) % 2;
                for (int r = 0; r < size; r++) {
                    counts[r] = lengths[r == wrong ? expected : usual];
                    starts[r] = r * LONGEST;
                }
                int count = rank == wrong ? lengths[given] : counts[rank];
                int code = blocking ? MPI_Gatherv(give, count, MPI_BYTE, take, counts, starts, MPI_BYTE, 0, world)
                                    : MPI_Igatherv(give, count, MPI_BYTE, take, counts, starts, MPI_BYTE, 0, world, &request);
                if (code == MPI_SUCCESS)
                    code = MPI_Wait(&request, MPI_STATUS_IGNORE);
                if (rank == 0 && expected != given && expected > 0) {
                    names_giver(code, wrong);
                } else {
                    OK(code);
                }
                int sum = 0;
                OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, world));
                CHECK(sum == size * (size - 1) / 2);
            }
    free(give);
    free(take);
}

/* Two share a long reduction: each computes a part. Who has nothing of the result is told what both have called. */
static void two_reduce_different_lengths(MPI_Comm world)
{
    enum { LONG = 1 << 18, LESS = LONG - 1024 };
    int *give = calloc(LONG, sizeof(int)), *take = malloc(LONG * sizeof(int));
    MPI_Comm comm;
    CHECK(give && take);
    OK(MPI_Comm_dup(world, &comm));
    int code = MPI_Reduce(give, take, rank ? LESS : LONG, MPI_INT, MPI_SUM, 0, comm);
    char text[MPI_MAX_ERROR_STRING];
    int length;
    FAILS(MPI_ERR_TRUNCATE, code);
    OK(MPI_Error_string(code, text, &length));
    CHECK(strstr(text, rank == 0 ? "rank 1" : "rank 0"));
    CHECK(rank == 0 || !strstr(text, "room for"));
    OK(MPI_Comm_free(&comm));
    free(give);
    free(take);
}

int main(int argc, char **argv)
{
    int a[8] = {1, 2, 3, 4, 5, 6, 7, 8}, b[8], counts[4] = {1, 1, 1, 1}, negative[4] = {-1, -1, -1, -1}, displs[4] = {0, 1, 2, 3};
    double d = 1, e;
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request request;
    MPI_Datatype derived;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(world, &rank));
    OK(MPI_Comm_size(world, &size));
    OK(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Type_contiguous(2, MPI_INT, &derived));
    OK(MPI_Type_commit(&derived));

    one_errs(world, a, b);
    one_gives_another_length(world);
    rows_of_other_lengths(world);
    if (size == 2)
        two_reduce_different_lengths(world);
    FAILS(MPI_ERR_ROOT, MPI_Bcast(a, 1, MPI_INT, size, world));
    FAILS(MPI_ERR_ROOT, MPI_Bcast(a, 1, MPI_INT, -1, world));
    FAILS(MPI_ERR_ROOT, MPI_Reduce(a, b, 1, MPI_INT, MPI_SUM, MPI_ROOT, world));
    FAILS(MPI_ERR_COUNT, MPI_Bcast(a, -1, MPI_INT, 0, world));
    FAILS(MPI_ERR_COUNT, MPI_Allgatherv(a, 1, MPI_INT, b, negative, displs, MPI_INT, world));
    FAILS(MPI_ERR_COMM, MPI_Barrier(MPI_COMM_NULL));
    FAILS(MPI_ERR_TYPE, MPI_Bcast(a, 1, MPI_DATATYPE_NULL, 0, world));
    FAILS(MPI_ERR_OP, MPI_Allreduce(a, b, 1, MPI_INT, MPI_OP_NULL, world));
    FAILS(MPI_ERR_OP, MPI_Allreduce(&d, &e, 1, MPI_DOUBLE, MPI_BAND, world));
    FAILS(MPI_ERR_OP, MPI_Allreduce(a, b, 1, MPI_INT, MPI_MAXLOC, world));
    FAILS(MPI_ERR_OP, MPI_Allreduce(a, b, 1, derived, MPI_SUM, world));
    FAILS(MPI_ERR_OP, MPI_Allreduce(a, b, 1, MPI_INT, MPI_REPLACE, world));
    FAILS(MPI_ERR_OP, MPI_Allreduce(a, b, 1, MPI_INT, MPI_NO_OP, world));
    FAILS(MPI_ERR_OP, MPI_Allreduce_init(a, b, 1, MPI_2INT, MPI_SUM, world, MPI_INFO_NULL, &request));
    FAILS(MPI_ERR_BUFFER, MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, world));
    FAILS(MPI_ERR_BUFFER, MPI_Allgather(a, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, world));
    FAILS(MPI_ERR_BUFFER, MPI_Alltoall(a, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, world));
    if (rank != 0) {
        FAILS(MPI_ERR_BUFFER, MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, b, 1, MPI_INT, 0, world));
        FAILS(MPI_ERR_BUFFER, MPI_Scatter(a, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, world));
        FAILS(MPI_ERR_BUFFER, MPI_Reduce(MPI_IN_PLACE, b, 1, MPI_INT, MPI_SUM, 0, world));
    }
    FAILS(MPI_ERR_BUFFER, MPI_Allreduce(a, a, 1, MPI_INT, MPI_SUM, world));
    FAILS(MPI_ERR_BUFFER, MPI_Exscan(a, a, 1, MPI_INT, MPI_SUM, world));
    FAILS(MPI_ERR_BUFFER, MPI_Iscan(a, a, 1, MPI_INT, MPI_SUM, world, &request));
    FAILS(MPI_ERR_BUFFER, MPI_Alltoallv(a, counts, displs, MPI_INT, a, counts, displs, MPI_INT, world));
    FAILS(MPI_ERR_BUFFER, MPI_Reduce_local(a, a, 1, MPI_INT, MPI_SUM));
    FAILS(MPI_ERR_TOPOLOGY, MPI_Neighbor_allgather(a, 1, MPI_INT, b, 1, MPI_INT, world));
    FAILS(MPI_ERR_INFO, MPI_Barrier_init(world, (MPI_Info)&request, &request));

    /* Nothing of all that was sent: the next operation is in step. */
    OK(MPI_Allreduce(&rank, a, 1, MPI_INT, MPI_SUM, world));
    CHECK(a[0] == size * (size - 1) / 2);

    /* The receive buffer of the first process of an exscan and datatypes of empty blocks mean nothing. */
    OK(MPI_Exscan(&rank, rank ? b : NULL, 1, MPI_INT, MPI_SUM, world));
    MPI_Datatype none[4] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL, MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
    int zeros[4] = {0, 0, 0, 0};
    OK(MPI_Alltoallw(NULL, zeros, zeros, none, NULL, zeros, zeros, none, world));

    /* A block that is larger than its place. */
    int two = 2, one = 1, zero = 0;
    FAILS(MPI_ERR_TRUNCATE, MPI_Alltoallv(a, &two, &zero, MPI_INT, b, &one, &zero, MPI_INT, MPI_COMM_SELF));
    memset(b, 0, sizeof b);
    if (rank == 0)
        OK(MPI_Bcast(a, 2, MPI_INT, 0, world));
    else if (size == 2)
        FAILS(MPI_ERR_TRUNCATE, MPI_Bcast(b, 1, MPI_INT, 0, world));
    else
        class_of(MPI_Bcast(b, 2, MPI_INT, 0, world));
    OK(MPI_Type_free(&derived));
    OK(MPI_Finalize());
    if (rank == 0)
        printf("erroneous collective calls are found\n");
    return 0;
}
