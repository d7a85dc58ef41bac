/* SPDX-License-Identifier: Apache-2.0 */
/* Collective operations of no elements: arguments are checked all the same, in each form; in place, with an operation of the program, on
   intercommunicators; a revoked communicator; between others that have data.
   ranks: 1 2 3 4 10 */
#include "check.h"
#include <sys/mman.h>
#include <unistd.h>
#include <mpi-ext.h>

enum { MOST = 16 };

static int rank, size, a[MOST], b[MOST], zeros[MOST], displs[MOST], negative[MOST];
static MPI_Comm comm;
static MPI_Request request;

static void class_of(int code, int expected, int line)
{
    int class;
    OK(MPI_Error_class(code, &class));
    if (class != expected)
        printf("line %d: class %d, not %d\n", line, class, expected);
    CHECK(class == expected);
}

#define REFUSED(class, call) class_of(call, class, __LINE__)
/* A blocking call and its sister that does not block. */
#define BOTH(class, name, ...) \
    do { \
        REFUSED(class, MPI_##name(__VA_ARGS__)); \
        request = MPI_REQUEST_NULL; \
        REFUSED(class, MPI_I##name##_(__VA_ARGS__, &request)); \
        CHECK(request == MPI_REQUEST_NULL); \
    } while (0)
#define MPI_IBcast_ MPI_Ibcast
#define MPI_IGather_ MPI_Igather
#define MPI_IScatter_ MPI_Iscatter
#define MPI_IAllgather_ MPI_Iallgather
#define MPI_IAlltoall_ MPI_Ialltoall
#define MPI_IGatherv_ MPI_Igatherv
#define MPI_IScatterv_ MPI_Iscatterv
#define MPI_IAllgatherv_ MPI_Iallgatherv
#define MPI_IAlltoallv_ MPI_Ialltoallv
#define MPI_IReduce_ MPI_Ireduce
#define MPI_IAllreduce_ MPI_Iallreduce
#define MPI_IReduce_scatter_ MPI_Ireduce_scatter
#define MPI_IReduce_scatter_block_ MPI_Ireduce_scatter_block
#define MPI_IScan_ MPI_Iscan
#define MPI_IExscan_ MPI_Iexscan

static void wrong_moves(void)
{
    MPI_Datatype none = MPI_DATATYPE_NULL, raw;
    OK(MPI_Type_contiguous(2, MPI_INT, &raw));
    BOTH(MPI_ERR_ROOT, Bcast, a, 0, MPI_INT, size, comm);
    BOTH(MPI_ERR_TYPE, Bcast, a, 0, none, 0, comm);
    BOTH(MPI_ERR_TYPE, Bcast, a, 0, raw, 0, comm);
    BOTH(MPI_ERR_COMM, Bcast, a, 0, MPI_INT, 0, MPI_COMM_NULL);
    BOTH(MPI_ERR_BUFFER, Bcast, MPI_IN_PLACE, 0, MPI_INT, 0, comm);
    BOTH(MPI_ERR_ROOT, Gather, a, 0, MPI_INT, b, 0, MPI_INT, -7, comm);
    BOTH(MPI_ERR_TYPE, Gather, a, 0, none, b, 0, MPI_INT, 0, comm);
    BOTH(MPI_ERR_ROOT, Scatter, a, 0, MPI_INT, b, 0, MPI_INT, -7, comm);
    BOTH(MPI_ERR_TYPE, Scatter, a, 0, MPI_INT, b, 0, none, 0, comm);
    BOTH(MPI_ERR_TYPE, Allgather, a, 0, MPI_INT, b, 0, none, comm);
    BOTH(MPI_ERR_TYPE, Allgather, a, 0, raw, b, 0, MPI_INT, comm);
    BOTH(MPI_ERR_TYPE, Alltoall, a, 0, none, b, 0, MPI_INT, comm);
    BOTH(MPI_ERR_ROOT, Gatherv, a, 0, MPI_INT, b, zeros, displs, MPI_INT, size, comm);
    BOTH(MPI_ERR_ROOT, Scatterv, a, zeros, displs, MPI_INT, b, 0, MPI_INT, size, comm);
    BOTH(MPI_ERR_TYPE, Allgatherv, a, 0, MPI_INT, b, zeros, displs, none, comm);
    BOTH(MPI_ERR_COUNT, Allgatherv, a, 0, MPI_INT, b, negative, displs, MPI_INT, comm);
    BOTH(MPI_ERR_ARG, Allgatherv, a, 0, MPI_INT, b, zeros, NULL, MPI_INT, comm);
    BOTH(MPI_ERR_ARG, Allgatherv, a, 0, MPI_INT, b, NULL, displs, MPI_INT, comm);
    BOTH(MPI_ERR_TYPE, Alltoallv, a, zeros, displs, none, b, zeros, displs, MPI_INT, comm);
    BOTH(MPI_ERR_COUNT, Alltoallv, a, zeros, displs, MPI_INT, b, negative, displs, MPI_INT, comm);
    BOTH(MPI_ERR_ARG, Alltoallv, a, zeros, NULL, MPI_INT, b, zeros, displs, MPI_INT, comm);
    if (rank == 0) {
        /* Only the root's arguments are looked at. */
        BOTH(MPI_ERR_COUNT, Gatherv, a, 0, MPI_INT, b, negative, displs, MPI_INT, 0, comm);
        BOTH(MPI_ERR_COUNT, Scatterv, a, negative, displs, MPI_INT, b, 0, MPI_INT, 0, comm);
        BOTH(MPI_ERR_TYPE, Gather, a, 0, MPI_INT, b, 0, none, 0, comm);
        BOTH(MPI_ERR_TYPE, Scatter, a, 0, none, b, 0, MPI_INT, 0, comm);
    }
    OK(MPI_Type_free(&raw));
}

static void wrong_reductions(void)
{
    MPI_Datatype none = MPI_DATATYPE_NULL;
    BOTH(MPI_ERR_OP, Allreduce, a, b, 0, MPI_INT, MPI_OP_NULL, comm);
    BOTH(MPI_ERR_OP, Allreduce, a, b, 0, MPI_FLOAT, MPI_BAND, comm);
    BOTH(MPI_ERR_OP, Allreduce, a, b, 0, MPI_INT, MPI_REPLACE, comm);
    BOTH(MPI_ERR_TYPE, Allreduce, a, b, 0, none, MPI_SUM, comm);
    BOTH(MPI_ERR_OP, Reduce, a, b, 0, MPI_INT, MPI_MINLOC, 0, comm);
    BOTH(MPI_ERR_ROOT, Reduce, a, b, 0, MPI_INT, MPI_SUM, size, comm);
    BOTH(MPI_ERR_OP, Scan, a, b, 0, MPI_DOUBLE, MPI_BXOR, comm);
    BOTH(MPI_ERR_OP, Exscan, a, b, 0, MPI_DOUBLE, MPI_BXOR, comm);
    BOTH(MPI_ERR_OP, Reduce_scatter, a, b, zeros, MPI_DOUBLE, MPI_BXOR, comm);
    BOTH(MPI_ERR_COUNT, Reduce_scatter, a, b, negative, MPI_INT, MPI_SUM, comm);
    BOTH(MPI_ERR_OP, Reduce_scatter_block, a, b, 0, MPI_DOUBLE, MPI_BXOR, comm);
    REFUSED(MPI_ERR_OP, MPI_Reduce_local(a, b, 0, MPI_DOUBLE, MPI_BXOR));
    REFUSED(MPI_ERR_OP, MPI_Reduce_local(a, b, 0, MPI_INT, MPI_REPLACE));
    REFUSED(MPI_ERR_TYPE, MPI_Reduce_local(a, b, 0, none, MPI_SUM));
    REFUSED(MPI_ERR_COUNT, MPI_Reduce_local(a, b, -1, MPI_INT, MPI_SUM));
    if (rank > 0)
        BOTH(MPI_ERR_BUFFER, Reduce, MPI_IN_PLACE, b, 0, MPI_INT, MPI_SUM, 0, comm);
}

static void own_sum(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)type;
    CHECK(*n == 0);
}

/* Nothing is wrong with these, and nobody waits. */
static void unusual(MPI_Comm other)
{
    MPI_Op op;
    MPI_Request requests[4];
    OK(MPI_Op_create(own_sum, 1, &op));
    OK(MPI_Allreduce(a, b, 0, MPI_INT, op, other));
    OK(MPI_Op_free(&op));
    OK(MPI_Allreduce(MPI_IN_PLACE, b, 0, MPI_INT, MPI_SUM, other));
    OK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 0, MPI_INT, other));
    OK(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, zeros, displs, MPI_INT, other));
    OK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 0, MPI_INT, other));
    OK(MPI_Gather(rank ? a : MPI_IN_PLACE, 0, MPI_INT, b, 0, MPI_INT, 0, other));
    OK(MPI_Bcast(NULL, 0, MPI_INT, 0, other));
    OK(MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, other));
    /* Each kind of request that is over at once, by each function that ends one. */
    OK(MPI_Ibcast(a, 0, MPI_INT, 0, other, &requests[0]));
    OK(MPI_Iallreduce(a, b, 0, MPI_INT, MPI_SUM, other, &requests[1]));
    OK(MPI_Ialltoallv(a, zeros, displs, MPI_INT, b, zeros, displs, MPI_INT, other, &requests[2]));
    OK(MPI_Igatherv(a, 0, MPI_INT, b, zeros, displs, MPI_INT, 0, other, &requests[3]));
    int flag, index;
    MPI_Status status;
    CHECK(requests[0] != MPI_REQUEST_NULL && requests[0] != requests[1]);
    OK(MPI_Request_get_status(requests[0], &flag, &status));
    CHECK(flag && status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
    OK(MPI_Test(&requests[0], &flag, &status));
    CHECK(flag && requests[0] == MPI_REQUEST_NULL && status.MPI_SOURCE == MPI_ANY_SOURCE);
    OK(MPI_Waitany(2, requests, &index, &status));
    CHECK(index == 1 && requests[1] == MPI_REQUEST_NULL);
    OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
    CHECK(requests[2] == MPI_REQUEST_NULL && requests[3] == MPI_REQUEST_NULL);
}

/* Operations with data before and after come in their turn. */
static void between_others(void)
{
    for (int i = 0; i < 100; i++) {
        int sum, all[MOST];
        OK(MPI_Bcast(a, 0, MPI_INT, i % size, comm));
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
        CHECK(sum == size * (size - 1) / 2);
        OK(MPI_Allgatherv(a, 0, MPI_INT, b, zeros, displs, MPI_INT, comm));
        OK(MPI_Gatherv(a, 0, MPI_INT, b, zeros, displs, MPI_INT, i % size, comm));
        OK(MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, comm));
        for (int r = 0; r < size; r++)
            CHECK(all[r] == r);
        OK(MPI_Reduce_scatter(a, b, zeros, MPI_INT, MPI_SUM, comm));
        OK(MPI_Alltoallv(a, zeros, displs, MPI_INT, b, zeros, displs, MPI_INT, comm));
    }
}

/* As many of the list as there are, at the end of memory behind which nobody can look. */
static int *exactly(int count)
{
    long page = sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
    return (int *)(pages + page) - count;
}

/* A group of all but one, and that one: the longer side has more members than counts. */
static void with_few_counts(void)
{
    MPI_Comm half, inter;
    int is_last = rank == size - 1, remote, *counts, *nowhere = exactly(0);
    OK(MPI_Comm_split(comm, is_last, rank, &half));
    OK(MPI_Intercomm_create(half, 0, comm, is_last ? 0 : size - 1, 1, &inter));
    OK(MPI_Comm_remote_size(inter, &remote));
    counts = exactly(remote);
    OK(MPI_Allgatherv(a, 0, MPI_INT, b, counts, counts, MPI_INT, inter));
    OK(MPI_Alltoallv(a, counts, counts, MPI_INT, b, counts, counts, MPI_INT, inter));
    /* The root is rank 0 of those who are not the last: arguments that only a root has are not looked at elsewhere. */
    int root = is_last ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    int *at_root = root == MPI_ROOT ? counts : nowhere;
    OK(MPI_Gatherv(a, 0, MPI_INT, b, at_root, at_root, MPI_INT, root, inter));
    OK(MPI_Scatterv(a, at_root, at_root, MPI_INT, b, 0, MPI_INT, root, inter));
    OK(MPI_Barrier(comm));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
}

static void between_groups(void)
{
    MPI_Comm half, inter;
    int odd = rank % 2, root = odd ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    if (size < 2)
        return;
    OK(MPI_Comm_split(comm, odd, rank, &half));
    OK(MPI_Intercomm_create(half, 0, comm, !odd, 0, &inter));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    OK(MPI_Bcast(a, 0, MPI_INT, root, inter));
    OK(MPI_Reduce(a, b, 0, MPI_INT, MPI_SUM, root, inter));
    OK(MPI_Allreduce(a, b, 0, MPI_INT, MPI_SUM, inter));
    OK(MPI_Gatherv(a, 0, MPI_INT, b, zeros, displs, MPI_INT, root, inter));
    OK(MPI_Allgatherv(a, 0, MPI_INT, b, zeros, displs, MPI_INT, inter));
    OK(MPI_Alltoallv(a, zeros, displs, MPI_INT, b, zeros, displs, MPI_INT, inter));
    REFUSED(MPI_ERR_BUFFER, MPI_Allreduce(MPI_IN_PLACE, b, 0, MPI_INT, MPI_SUM, inter));
    REFUSED(MPI_ERR_COMM, MPI_Scan(a, b, 0, MPI_INT, MPI_SUM, inter));
    OK(MPI_Barrier(comm));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
}

static void revoked(void)
{
    MPI_Comm gone;
    OK(MPI_Comm_dup(comm, &gone));
    OK(MPI_Comm_set_errhandler(gone, MPI_ERRORS_RETURN));
    OK(MPI_Bcast(a, 0, MPI_INT, 0, gone));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* One of another MPI underneath cannot be. */
    if (MPIX_Comm_revoke(gone) != MPI_SUCCESS) {
        OK(MPI_Comm_free(&gone));
        return;
    }
    BOTH(MPIX_ERR_REVOKED, Bcast, a, 0, MPI_INT, 0, gone);
    BOTH(MPIX_ERR_REVOKED, Allreduce, a, b, 0, MPI_INT, MPI_SUM, gone);
    BOTH(MPIX_ERR_REVOKED, Allgatherv, a, 0, MPI_INT, b, zeros, displs, MPI_INT, gone);
    BOTH(MPIX_ERR_REVOKED, Gatherv, a, 0, MPI_INT, b, zeros, displs, MPI_INT, 0, gone);
    OK(MPI_Comm_free(&gone));
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    for (int i = 0; i < MOST; i++)
        negative[i] = -1;
    wrong_moves();
    wrong_reductions();
    unusual(comm);
    unusual(MPI_COMM_WORLD);
    between_others();
    between_groups();
    if (size > 1)
        with_few_counts();
    revoked();
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    if (rank == 0)
        printf("operations of no elements are checked as all others\n");
    return 0;
}
