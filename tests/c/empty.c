/* SPDX-License-Identifier: Apache-2.0 */
/* Collective operations of no data: a process that neither gives nor takes anything waits for nobody. One process after the other calls more
   of each than any memory of a group holds rounds, and says so to the next, which has called none until then. That is more than MPI promises
   (any collective operation may wait for all members, MPI 5.0 section 6.14), and what this library promises inside a site only: over sites the
   root of MPI_Gatherv hears from each of them. There the program is run with an argument, and leaves this part out, and that about missing
   blocks, which only processes of one node tell (tests/system/collectives.sh).
   ranks: 1 2 4 9 */
#include "check.h"

enum { MOST = 16, TIMES = 300 };

static int rank, size, form, buf[MOST], got[MOST], zeros[MOST], displs[MOST];
static MPI_Aint bytes[MOST];
static MPI_Datatype types[MOST];
static MPI_Comm comm, ring;

static void nothing(int root)
{
    MPI_Request requests[16];
    if (form == 0) {
        OK(MPI_Bcast(buf, 0, MPI_INT, root, comm));
        OK(MPI_Reduce(buf, got, 0, MPI_INT, MPI_SUM, root, comm));
        OK(MPI_Allreduce(buf, got, 0, MPI_INT, MPI_SUM, comm));
        OK(MPI_Gatherv(buf, 0, MPI_INT, got, zeros, displs, MPI_INT, root, comm));
        OK(MPI_Scatterv(buf, zeros, displs, MPI_INT, got, 0, MPI_INT, root, comm));
        OK(MPI_Allgatherv(buf, 0, MPI_INT, got, zeros, displs, MPI_INT, comm));
        OK(MPI_Alltoallv(buf, zeros, displs, MPI_INT, got, zeros, displs, MPI_INT, comm));
        OK(MPI_Alltoallw(buf, zeros, displs, types, got, zeros, displs, types, comm));
        OK(MPI_Reduce_scatter(buf, got, zeros, MPI_INT, MPI_SUM, comm));
        OK(MPI_Neighbor_allgather(buf, 0, MPI_INT, got, 0, MPI_INT, ring));
        OK(MPI_Neighbor_allgatherv(buf, 0, MPI_INT, got, zeros, displs, MPI_INT, ring));
        OK(MPI_Neighbor_alltoall(buf, 0, MPI_INT, got, 0, MPI_INT, ring));
        OK(MPI_Neighbor_alltoallv(buf, zeros, displs, MPI_INT, got, zeros, displs, MPI_INT, ring));
        OK(MPI_Neighbor_alltoallw(buf, zeros, bytes, types, got, zeros, bytes, types, ring));
        return;
    }
    OK(MPI_Ibcast(buf, 0, MPI_INT, root, comm, requests));
    OK(MPI_Igatherv(buf, 0, MPI_INT, got, zeros, displs, MPI_INT, root, comm, requests + 1));
    OK(MPI_Iscatterv(buf, zeros, displs, MPI_INT, got, 0, MPI_INT, root, comm, requests + 2));
    OK(MPI_Iallgatherv(buf, 0, MPI_INT, got, zeros, displs, MPI_INT, comm, requests + 3));
    OK(MPI_Ialltoallv(buf, zeros, displs, MPI_INT, got, zeros, displs, MPI_INT, comm, requests + 4));
    OK(MPI_Ialltoallw(buf, zeros, displs, types, got, zeros, displs, types, comm, requests + 5));
    OK(MPI_Ireduce_scatter(buf, got, zeros, MPI_INT, MPI_SUM, comm, requests + 6));
    OK(MPI_Ineighbor_allgather(buf, 0, MPI_INT, got, 0, MPI_INT, ring, requests + 7));
    OK(MPI_Ineighbor_alltoallv(buf, zeros, displs, MPI_INT, got, zeros, displs, MPI_INT, ring, requests + 8));
    OK(MPI_Waitall(9, requests, MPI_STATUSES_IGNORE));
}

/* One process after the other. */
static void in_turn(void)
{
    int token = 0, root = form % size;
    if (rank > 0)
        OK(MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < TIMES; i++)
        nothing(root);
    if (rank + 1 < size)
        OK(MPI_Send(&token, 1, MPI_INT, rank + 1, 0, MPI_COMM_WORLD));
}

/* Who has no part goes on; the others' data come. */
static void some_have_data(void)
{
    int counts[MOST], mine = rank % 2, root = form % size, i;
    for (i = 0; i < size; i++)
        counts[i] = i % 2;
    for (i = 0; i < MOST; i++)
        buf[i] = 100 * rank + i;
    for (i = 0; i < TIMES; i++) {
        memset(got, -1, sizeof got);
        OK(MPI_Gatherv(buf, mine, MPI_INT, got, counts, displs, MPI_INT, root, comm));
        for (int r = 0; r < size; r++)
            CHECK(got[r] == (rank == root && r % 2 ? 100 * r : -1));
        memset(got, -1, sizeof got);
        OK(MPI_Scatterv(buf, counts, displs, MPI_INT, got, mine, MPI_INT, root, comm));
        CHECK(got[0] == (mine ? 100 * root + rank : -1));
        /* Everybody to those whose number is odd. */
        int give[MOST], take[MOST];
        for (int r = 0; r < size; r++) {
            give[r] = mine && r % 2;
            take[r] = mine && r % 2;
        }
        memset(got, -1, sizeof got);
        OK(MPI_Alltoallv(buf, give, displs, MPI_INT, got, take, displs, MPI_INT, comm));
        for (int r = 0; r < size; r++)
            CHECK(got[r] == (take[r] ? 100 * r + rank : -1));
    }
    int sum;
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size * (size - 1) / 2);
}

/* A block that is expected and never comes is an error of who expects it, however far the others have gone. */
static void missing(void)
{
    MPI_Comm own;
    int counts[MOST] = {0}, class, code, i;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &own));
    OK(MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN));
    for (int what = 0; what < 3; what++) {
        counts[size - 1] = rank == 0;
        int mine = what == 1 && rank == size - 1;
        code = MPI_SUCCESS;
        if (what == 0)
            code = MPI_Gatherv(buf, 0, MPI_INT, got, counts, displs, MPI_INT, 0, own);
        else if (what == 1)
            code = MPI_Scatterv(buf, zeros, displs, MPI_INT, got, mine, MPI_INT, 0, own);
        else
            code = MPI_Alltoallv(buf, zeros, displs, MPI_INT, got, counts, displs, MPI_INT, own);
        OK(MPI_Error_class(code, &class));
        CHECK(class == (rank == (what == 1 ? size - 1 : 0) ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
        for (i = 0; i < TIMES; i++)
            OK(MPI_Bcast(buf, 0, MPI_INT, 0, own));
        OK(MPI_Barrier(own));
    }
    OK(MPI_Comm_free(&own));
}

/* empty [together] */
int main(int argc, char **argv)
{
    int periodic = 1;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring));
    for (int i = 0; i < MOST; i++) {
        displs[i] = i;
        types[i] = MPI_INT;
    }
    for (form = 0; form < 2; form++) {
        if (argc < 2)
            in_turn();
        some_have_data();
    }
    /* Among more the blocks of MPI_Alltoallv go in messages. */
    if (size > 1 && size < 9 && argc < 2)
        missing();
    OK(MPI_Comm_free(&ring));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    if (rank == 0)
        printf("operations of no data wait for nobody\n");
    return 0;
}
