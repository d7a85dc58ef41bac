/* SPDX-License-Identifier: Apache-2.0 */
/* Intercommunicators: construction, questions, messages by remote rank, what is made of them. */
/* ranks: 2 3 5 */

#include "check.h"

static int rank, size;

/* Even ranks on one side, odd ones on the other; leaders meet in MPI_COMM_WORLD. */
static MPI_Comm evens_and_odds(MPI_Comm *half)
{
    MPI_Comm inter;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, half));
    /* The last rank of a half is the lowest of the world. */
    int last;
    OK(MPI_Comm_size(*half, &last));
    OK(MPI_Intercomm_create(*half, last - 1, MPI_COMM_WORLD, 1 - rank % 2, 17, &inter));
    return inter;
}

static void check_questions(MPI_Comm inter)
{
    int flag, local, remote, own, mine, result;
    MPI_Group group;
    int theirs[size], world[size];
    OK(MPI_Comm_test_inter(inter, &flag));
    CHECK(flag);
    OK(MPI_Comm_test_inter(MPI_COMM_WORLD, &flag));
    CHECK(!flag);
    OK(MPI_Comm_size(inter, &local));
    OK(MPI_Comm_remote_size(inter, &remote));
    CHECK(local == (rank % 2 ? size / 2 : (size + 1) / 2));
    CHECK(local + remote == size);
    OK(MPI_Comm_rank(inter, &own));
    mine = local - 1 - rank / 2;
    CHECK(own == mine);
    OK(MPI_Comm_remote_group(inter, &group));
    MPI_Group all;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    for (int i = 0; i < remote; i++)
        theirs[i] = i;
    OK(MPI_Group_translate_ranks(group, remote, theirs, all, world));
    for (int i = 0; i < remote; i++)
        CHECK(world[i] % 2 != rank % 2 && world[i] / 2 == remote - 1 - i);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&all));
    OK(MPI_Comm_compare(inter, inter, &result));
    CHECK(result == MPI_IDENT);
    OK(MPI_Comm_compare(inter, MPI_COMM_WORLD, &result));
    CHECK(result == MPI_UNEQUAL);
}

/* Everybody sends to everybody on the other side, with the same number as tag and content. */
static void check_messages(MPI_Comm inter)
{
    int own, remote;
    OK(MPI_Comm_rank(inter, &own));
    OK(MPI_Comm_remote_size(inter, &remote));
    MPI_Request requests[2 * remote];
    int out[remote], in[remote];
    for (int i = 0; i < remote; i++) {
        out[i] = 100 * own + i;
        OK(MPI_Irecv(&in[i], 1, MPI_INT, i, i, inter, &requests[i]));
        OK(MPI_Isend(&out[i], 1, MPI_INT, i, own, inter, &requests[remote + i]));
    }
    MPI_Status statuses[2 * remote];
    OK(MPI_Waitall(2 * remote, requests, statuses));
    for (int i = 0; i < remote; i++) {
        CHECK(in[i] == 100 * i + own);
        CHECK(statuses[i].MPI_SOURCE == i);
    }
    OK(MPI_Barrier(inter));
    /* A rank that the remote group does not have is an error, also if the local group has it. */
    int local;
    OK(MPI_Comm_size(inter, &local));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    CHECK(MPI_Send(out, 1, MPI_INT, remote, 0, inter) == MPI_ERR_RANK);
    OK(MPI_Send(out, 1, MPI_INT, MPI_PROC_NULL, 0, inter));
}

static void check_merge(MPI_Comm inter, int evens_high, int odds_high)
{
    MPI_Comm merged;
    int new_rank, new_size, own, flag;
    OK(MPI_Intercomm_merge(inter, rank % 2 ? odds_high : evens_high, &merged));
    OK(MPI_Comm_test_inter(merged, &flag));
    CHECK(!flag);
    OK(MPI_Comm_size(merged, &new_size));
    CHECK(new_size == size);
    OK(MPI_Comm_rank(merged, &new_rank));
    OK(MPI_Comm_rank(inter, &own));
    int evens = (size + 1) / 2, odds = size / 2;
    if (evens_high != odds_high)
        CHECK(new_rank == own + (rank % 2 ? (odds_high ? evens : 0) : (evens_high ? odds : 0)));
    int sum;
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, merged));
    CHECK(sum == size * (size - 1) / 2);
    OK(MPI_Comm_free(&merged));
}

static void check_offspring(MPI_Comm inter)
{
    MPI_Comm dup, later, part;
    MPI_Request request;
    int result, remote;
    OK(MPI_Comm_dup(inter, &dup));
    OK(MPI_Comm_compare(inter, dup, &result));
    CHECK(result == MPI_CONGRUENT);
    OK(MPI_Comm_idup(dup, &later, &request));
    /* Programs do so before the communicator is complete; it keeps the handler. */
    OK(MPI_Comm_set_errhandler(later, MPI_ERRORS_RETURN));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Errhandler handler;
    OK(MPI_Comm_get_errhandler(later, &handler));
    CHECK(handler == MPI_ERRORS_RETURN);
    check_messages(later);
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_free(&later));

    /* By node: the same again if all are on one; nothing for those whose node has nobody of the other side. */
    MPI_Comm node;
    int here, all;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Comm_size(node, &here));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &all));
    OK(MPI_Comm_free(&node));
    OK(MPI_Comm_split_type(inter, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part));
    if (here == all) {
        OK(MPI_Comm_compare(inter, part, &result));
        CHECK(result == MPI_CONGRUENT);
    }
    if (part != MPI_COMM_NULL) {
        check_messages(part);
        OK(MPI_Comm_free(&part));
    }

    /* The lowest of each side only. */
    int own, local;
    OK(MPI_Comm_rank(inter, &own));
    OK(MPI_Comm_size(inter, &local));
    OK(MPI_Comm_split(inter, own == local - 1 ? 0 : MPI_UNDEFINED, 0, &part));
    CHECK((part != MPI_COMM_NULL) == (rank < 2));
    if (part != MPI_COMM_NULL) {
        OK(MPI_Comm_remote_size(part, &remote));
        CHECK(remote == 1);
        check_messages(part);
        OK(MPI_Comm_free(&part));
    }
    /* A colour that only one side has. */
    OK(MPI_Comm_split(inter, rank % 2, 0, &part));
    CHECK(part == MPI_COMM_NULL);

    MPI_Group group, first;
    int zero = 0;
    OK(MPI_Comm_group(inter, &group));
    OK(MPI_Group_incl(group, 1, &zero, &first));
    OK(MPI_Comm_create(inter, first, &part));
    CHECK((part != MPI_COMM_NULL) == (own == 0));
    if (part != MPI_COMM_NULL) {
        check_messages(part);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Group_free(&first));
    OK(MPI_Comm_create(inter, rank % 2 ? MPI_GROUP_EMPTY : group, &part));
    CHECK(part == MPI_COMM_NULL);
    OK(MPI_Group_free(&group));
}

/* What is pending when a communicator is freed goes on. */
static void check_early_free(MPI_Comm inter)
{
    MPI_Comm dup;
    int own, remote, in = -1;
    OK(MPI_Comm_dup(inter, &dup));
    OK(MPI_Comm_rank(dup, &own));
    OK(MPI_Comm_remote_size(dup, &remote));
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    if (own < remote) {
        OK(MPI_Irecv(&in, 1, MPI_INT, own, 0, dup, &requests[0]));
        OK(MPI_Issend(&rank, 1, MPI_INT, own, 0, dup, &requests[1]));
    }
    OK(MPI_Comm_free(&dup));
    CHECK(dup == MPI_COMM_NULL);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(own >= remote || in % 2 != rank % 2);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm half, inter = evens_and_odds(&half);
    check_questions(inter);
    check_messages(inter);
    check_merge(inter, 0, 1);
    check_merge(inter, 1, 0);
    check_merge(inter, 0, 0);
    check_offspring(inter);
    check_early_free(inter);
    OK(MPI_Comm_disconnect(&inter));
    CHECK(inter == MPI_COMM_NULL);
    OK(MPI_Comm_free(&half));

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int remote;
    CHECK(MPI_Comm_remote_size(MPI_COMM_WORLD, &remote) == MPI_ERR_COMM);
    MPI_Comm parent = MPI_COMM_WORLD;
    OK(MPI_Comm_get_parent(&parent));
    CHECK(parent == MPI_COMM_NULL);
    MPI_Finalize();
    return 0;
}
