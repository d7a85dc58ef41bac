/* SPDX-License-Identifier: Apache-2.0 */
/* Agreement and shrinking where nobody fails: AND over all members, on both kinds of communicators, revoked or not, at once and with
   requests; acknowledgement of nothing.
   ranks: 1 2 4 */
#include "check.h"

#include <mpi-ext.h>

static int rank, size;

#if !(OMPI_HAVE_MPIX_COMM_GET_FAILED && OMPI_HAVE_MPIX_COMM_ACK_FAILED && OMPI_HAVE_MPIX_COMM_ISHRINK)
#error "what is there has no name"
#endif

static void agreements(MPI_Comm comm)
{
    int flags[3], all, me, n, groups = 0, remote = 0;
    MPI_Request requests[3];
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Comm_size(comm, &n));
    MPI_Comm_test_inter(comm, &groups);
    if (groups)
        MPI_Comm_remote_size(comm, &remote);
    all = ~(1 << rank);
    OK(MPIX_Comm_agree(comm, &all));
    for (int bit = 0; bit < size; bit++)
        CHECK((all >> bit & 1) == (n + remote < size && bit % 2 != rank % 2));
    all = -1;
    OK(PMPIX_Comm_agree(comm, &all));
    CHECK(all == -1);
    /* Several at a time, that end in any order. */
    for (int i = 0; i < 3; i++) {
        flags[i] = rank == 0 ? 7 << i : -1;
        OK(MPIX_Comm_iagree(comm, &flags[i], &requests[i]));
    }
    OK(MPI_Wait(&requests[2], MPI_STATUS_IGNORE));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 3; i++)
        CHECK(flags[i] == (n + remote < size && rank % 2 ? -1 : 7 << i));
}

static void nobody_failed(MPI_Comm comm)
{
    MPI_Group group;
    int n;
    OK(MPIX_Comm_get_failed(comm, &group));
    CHECK(group == MPI_GROUP_EMPTY);
    OK(MPIX_Comm_failure_get_acked(comm, &group));
    CHECK(group == MPI_GROUP_EMPTY);
    OK(MPIX_Comm_failure_ack(comm));
    OK(MPIX_Comm_ack_failed(comm, 3, &n));
    CHECK(n == 0);
}

static void shrunk(MPI_Comm comm)
{
    MPI_Comm made[2];
    MPI_Request request;
    int result, sum, me;
    OK(MPI_Comm_rank(comm, &me));
    OK(MPIX_Comm_shrink(comm, &made[0]));
    OK(MPIX_Comm_ishrink(comm, &made[1], &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < 2; i++) {
        OK(MPI_Comm_compare(comm, made[i], &result));
        CHECK(result == MPI_CONGRUENT);
        int one = 1, inter;
        MPI_Comm_test_inter(made[i], &inter);
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made[i]));
        int others;
        inter ? MPI_Comm_remote_size(made[i], &others) : MPI_Comm_size(made[i], &others);
        CHECK(sum == others);
        OK(MPI_Comm_free(&made[i]));
    }
}

static int copies;
static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)key, (void)extra, (void)in, (void)out;
    copies++;
    *flag = 0;
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    MPI_Comm halves, inter, dup, made;
    MPI_Errhandler handler;
    int key, flag, class, length;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);

    agreements(MPI_COMM_WORLD);
    nobody_failed(MPI_COMM_WORLD);
    shrunk(MPI_COMM_WORLD);
    agreements(MPI_COMM_WORLD);
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &halves));
    agreements(halves);
    shrunk(halves);
    if (size > 1) {
        OK(MPI_Intercomm_create(halves, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &inter));
        agreements(inter);
        nobody_failed(inter);
        shrunk(inter);
        MPI_Comm_free(&inter);
    }
    MPI_Comm_free(&halves);

    /* The handler is inherited, attributes are not, and no callback is called. */
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Comm_set_attr(dup, key, &key));
    OK(MPIX_Comm_shrink(dup, &made));
    CHECK(copies == 0);
    void *value;
    OK(MPI_Comm_get_attr(made, key, &value, &flag));
    CHECK(!flag);
    OK(MPI_Comm_get_errhandler(made, &handler));
    CHECK(handler == MPI_ERRORS_RETURN);
    OK(MPI_Comm_free_keyval(&key));
    MPI_Comm_free(&made);
    MPI_Comm_free(&dup);

    CHECK(MPIX_Comm_ack_failed(MPI_COMM_WORLD, -1, &flag) == MPI_ERR_ARG);
    int numbers[3] = {MPIX_ERR_PROC_FAILED, MPIX_ERR_PROC_FAILED_PENDING, MPIX_ERR_REVOKED};
    const char *names[3] = {"MPIX_ERR_PROC_FAILED:", "MPIX_ERR_PROC_FAILED_PENDING:", "MPIX_ERR_REVOKED:"};
    for (int i = 0; i < 3; i++) {
        CHECK(numbers[i] == 16001 + i);
        OK(MPI_Error_class(numbers[i], &class));
        OK(MPI_Error_string(numbers[i], text, &length));
        CHECK(class == numbers[i] && strncmp(text, names[i], strlen(names[i])) == 0);
    }
    MPI_Finalize();
    return 0;
}
