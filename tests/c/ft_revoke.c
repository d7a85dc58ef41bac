/* SPDX-License-Identifier: Apache-2.0 */
/* Revoking where nobody fails: what is pending ends with an error everywhere, also collective operations that wait in shared memory;
   what comes later too, with MPI_PROC_NULL as well; what helps to go on works, and so do other communicators.
   ranks: 1 2 4 */
#include "check.h"

#include <mpi-ext.h>
#include <unistd.h>

enum { LONG = 4 << 20 };

static int rank, size;
static char big[LONG];

static void is_revoked_error(int code, int line)
{
    int class = -1;
    MPI_Error_class(code, &class);
    if (class != MPIX_ERR_REVOKED) {
        char text[MPI_MAX_ERROR_STRING];
        int length;
        MPI_Error_string(code, text, &length);
        fprintf(stderr, "line %d: %s\n", line, text);
        check_failed(__FILE__, line, "MPIX_ERR_REVOKED");
    }
}
#define REVOKED(call) is_revoked_error((call), __LINE__)

/* Everything that is started later. */
static void later(MPI_Comm comm)
{
    int flag, value = 1, all, counts[64] = {0}, one[64], n, inter;
    MPI_Request request;
    MPI_Comm made;
    MPI_Message message;
    MPI_Win win;
    MPI_File file;
    MPI_Comm_test_inter(comm, &inter);
    OK(MPIX_Comm_is_revoked(comm, &flag));
    CHECK(flag);
    for (int i = 0; i < 64; i++)
        one[i] = 1;
    for (int to = 0; to < 2; to++) {
        int other = to ? MPI_PROC_NULL : 0;
        REVOKED(MPI_Send(&value, 1, MPI_INT, other, 1, comm));
        REVOKED(MPI_Ssend(&value, 1, MPI_INT, other, 1, comm));
        REVOKED(MPI_Recv(&value, 1, MPI_INT, other, 1, comm, MPI_STATUS_IGNORE));
        REVOKED(MPI_Sendrecv(&value, 1, MPI_INT, other, 1, &all, 1, MPI_INT, other, 1, comm, MPI_STATUS_IGNORE));
        REVOKED(MPI_Probe(other, 1, comm, MPI_STATUS_IGNORE));
        REVOKED(MPI_Iprobe(other, 1, comm, &flag, MPI_STATUS_IGNORE));
        REVOKED(MPI_Mprobe(other, 1, comm, &message, MPI_STATUS_IGNORE));
    }
    REVOKED(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE));
    REVOKED(MPI_Send(big, LONG, MPI_CHAR, 0, 1, comm));
    if (MPI_Isend(&value, 1, MPI_INT, 0, 1, comm, &request) == MPI_SUCCESS)
        REVOKED(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (MPI_Irecv(&value, 1, MPI_INT, 0, 1, comm, &request) == MPI_SUCCESS)
        REVOKED(MPI_Wait(&request, MPI_STATUS_IGNORE));
    REVOKED(MPI_Barrier(comm));
    REVOKED(MPI_Bcast(&value, 1, MPI_INT, inter ? MPI_PROC_NULL : 0, comm));
    REVOKED(MPI_Bcast(&value, 0, MPI_INT, inter ? MPI_PROC_NULL : 0, comm));
    REVOKED(MPI_Bcast(big, LONG, MPI_CHAR, inter ? MPI_PROC_NULL : 0, comm));
    REVOKED(MPI_Allreduce(&value, &all, 1, MPI_INT, MPI_SUM, comm));
    REVOKED(MPI_Allgather(&value, 1, MPI_INT, one, 1, MPI_INT, comm));
    REVOKED(MPI_Alltoallv(one, counts, counts, MPI_INT, one, counts, counts, MPI_INT, comm));
    if (MPI_Ibarrier(comm, &request) == MPI_SUCCESS)
        REVOKED(MPI_Wait(&request, MPI_STATUS_IGNORE));
    REVOKED(MPI_Comm_dup(comm, &made));
    REVOKED(MPI_Comm_split(comm, 0, 0, &made));
    if (MPI_Comm_idup(comm, &made, &request) == MPI_SUCCESS)
        REVOKED(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (!inter) {
        REVOKED(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, comm, &win));
        REVOKED(MPI_Win_allocate(8, 1, MPI_INFO_NULL, comm, &value, &win));
        REVOKED(MPI_File_open(comm, "nowhere", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
        REVOKED(MPI_Scan(&value, &all, 1, MPI_INT, MPI_SUM, comm));
    }
    /* Questions about it. */
    OK(MPI_Comm_size(comm, &n));
    OK(MPI_Comm_rank(comm, &n));
    OK(MPI_Comm_compare(comm, comm, &n));
    MPI_Group group;
    OK(MPI_Comm_group(comm, &group));
    OK(MPI_Group_free(&group));
    OK(MPIX_Comm_get_failed(comm, &group));
    OK(MPIX_Comm_failure_ack(comm));
    /* What helps to go on. */
    OK(MPIX_Comm_revoke(comm));
    flag = rank ? -1 : 6;
    OK(MPIX_Comm_agree(comm, &flag));
    CHECK(flag == 6);
    OK(MPIX_Comm_shrink(comm, &made));
    OK(MPIX_Comm_is_revoked(made, &flag));
    CHECK(!flag);
    OK(MPI_Barrier(made));
    value = 1;
    OK(MPI_Allreduce(&value, &all, 1, MPI_INT, MPI_SUM, made));
    inter ? MPI_Comm_remote_size(made, &n) : MPI_Comm_size(made, &n);
    CHECK(all == n);
    OK(MPI_Comm_free(&made));
}

/* The last rank revokes while all others wait for something that does not come. */
static void pending(MPI_Comm comm, int what)
{
    int value = 0, all, flag;
    MPI_Request requests[3];
    MPI_Status statuses[3];
    if (rank == size - 1) {
        usleep(20000);
        if (what == 11) {
            CHECK(MPI_Bcast(big, -1, MPI_CHAR, size - 1, comm) != MPI_SUCCESS);
            CHECK(MPI_Bcast(big, LONG, MPI_DATATYPE_NULL, size - 1, comm) != MPI_SUCCESS);
        }
        OK(MPIX_Comm_revoke(comm));
        later(comm);
        OK(MPI_Comm_free(&comm));
        return;
    }
    switch (what) {
    case 0:
        REVOKED(MPI_Recv(&value, 1, MPI_INT, size - 1, 1, comm, MPI_STATUS_IGNORE));
        break;
    case 1:
        REVOKED(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, MPI_STATUS_IGNORE));
        break;
    case 2:
        REVOKED(MPI_Ssend(&value, 1, MPI_INT, size - 1, 1, comm));
        break;
    case 3:
        REVOKED(MPI_Send(big, LONG, MPI_CHAR, size - 1, 1, comm));
        break;
    case 4:
        REVOKED(MPI_Barrier(comm));
        break;
    case 5:
        REVOKED(MPI_Allreduce(MPI_IN_PLACE, big, LONG / 4, MPI_INT, MPI_SUM, comm));
        break;
    case 6:
        REVOKED(MPI_Probe(size - 1, 1, comm, MPI_STATUS_IGNORE));
        break;
    case 7:
        OK(MPI_Irecv(&value, 1, MPI_INT, size - 1, 1, comm, &requests[0]));
        OK(MPI_Isend(big, LONG, MPI_CHAR, size - 1, 2, comm, &requests[1]));
        OK(MPI_Iallreduce(&value, &all, 1, MPI_INT, MPI_SUM, comm, &requests[2]));
        CHECK(MPI_Waitall(3, requests, statuses) == MPI_ERR_IN_STATUS);
        for (int i = 0; i < 3; i++)
            REVOKED(statuses[i].MPI_ERROR);
        break;
    case 8:
        do
            OK(MPIX_Comm_is_revoked(comm, &flag));
        while (!flag);
        break;
    case 9:
        {
            int counts[64], places[64];
            for (int i = 0; i < 64; i++)
                counts[i] = 1, places[i] = i;
            REVOKED(MPI_Alltoallv(big, counts, places, MPI_CHAR, big + 64, counts, places, MPI_CHAR, comm));
        }
        break;
    case 10:
        /* Partitioned messages whose other end never comes: one of which all parts are ready, one of which one is, and receives. */
        OK(MPI_Psend_init(big, 4, LONG / 4, MPI_CHAR, size - 1, 3, comm, MPI_INFO_NULL, &requests[0]));
        OK(MPI_Psend_init(big, 4, 2, MPI_CHAR, size - 1, 4, comm, MPI_INFO_NULL, &requests[1]));
        OK(MPI_Precv_init(big + LONG / 2, 4, 2, MPI_CHAR, size - 1, 5, comm, MPI_INFO_NULL, &requests[2]));
        OK(MPI_Startall(3, requests));
        OK(MPI_Pready_range(0, 3, requests[0]));
        OK(MPI_Pready(2, requests[1]));
        for (int i = 0; i < 3; i++) {
            REVOKED(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
            OK(MPI_Request_free(&requests[i]));
        }
        break;
    case 11:
        /* The last one has begun nothing: it gives wrong arguments, which it sees, and lets the others go. */
        REVOKED(MPI_Bcast(big, LONG, MPI_CHAR, size - 1, comm));
        break;
    }
    later(comm);
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
    MPI_Comm dup, halves, inter, cart;
    MPI_Request request;
    int sum, one = 1, flag;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int what = 0; what < 12; what++) {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
        /* The cells are in use. */
        for (int i = 0; i < 5; i++)
            OK(MPI_Barrier(dup));
        pending(dup, what);
    }

    /* A persistent operation, and messages to itself. */
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Barrier_init(dup, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    /* Nobody is in it any more when the first one revokes. */
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Request own;
    OK(MPI_Issend(&one, 1, MPI_INT, rank, 9, dup, &own));
    OK(MPIX_Comm_revoke(dup));
    REVOKED(MPI_Wait(&own, MPI_STATUS_IGNORE));
    if (MPI_Start(&request) == MPI_SUCCESS)
        REVOKED(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));
    later(dup);
    OK(MPI_Comm_free(&dup));

    /* Topologies and intercommunicators. */
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, (int[]){1}, 0, &cart));
    OK(MPIX_Comm_revoke(cart));
    int near[2];
    REVOKED(MPI_Neighbor_allgather(&one, 1, MPI_INT, near, 1, MPI_INT, cart));
    later(cart);
    OK(MPI_Comm_free(&cart));
    if (size > 1) {
        OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &halves));
        OK(MPI_Intercomm_create(halves, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &inter));
        if (rank == 0)
            OK(MPIX_Comm_revoke(inter));
        else
            REVOKED(MPI_Barrier(inter));
        later(inter);
        OK(MPI_Comm_free(&inter));
        /* What it was made of is not revoked. */
        OK(MPI_Barrier(halves));
        OK(MPI_Comm_free(&halves));
    }
    OK(MPIX_Comm_is_revoked(MPI_COMM_WORLD, &flag));
    CHECK(!flag);
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == size);

    /* MPI_COMM_WORLD too, at the end; MPI_Finalize does not need it. */
    if (rank == 0)
        OK(MPIX_Comm_revoke(MPI_COMM_WORLD));
    else
        REVOKED(MPI_Barrier(MPI_COMM_WORLD));
    later(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
