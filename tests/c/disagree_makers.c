/* SPDX-License-Identifier: Apache-2.0 */
/* Members that make communicators together and do not say the same: another order of the group, another function with the same tag, a leader of the
   own group as the remote one, other roots. Whoever can notice has an error, and what it has got from others does not become a communicator.
   ranks: 2 4 */
#include "disagree.h"

static int class_of(int code)
{
    int class;
    OK(MPI_Error_class(code, &class));
    return class;
}

/* The last rank has the first two the other way round, and is told by one that both of them put before it. */
static void orders(MPI_Comm world, MPI_Group all)
{
    int ranks[] = {1, 0, 2, 3}, odd = rank == size - 1, class;
    MPI_Group other;
    MPI_Comm made = MPI_COMM_NULL;
    if (size < 4)
        return;
    OK(MPI_Group_incl(all, size, ranks, &other));
    class = class_of(MPI_Comm_create_group(world, odd ? other : all, 1, &made));
    CHECK(class == (odd ? MPI_ERR_NOT_SAME : MPI_SUCCESS) && odd == (made == MPI_COMM_NULL));
    if (made != MPI_COMM_NULL)
        OK(MPI_Comm_free(&made));
    OK(MPI_Group_free(&other));
}

/* One makes an intercommunicator with the other one, which makes a communicator of both. */
static void functions(MPI_Comm world, MPI_Group all)
{
    int first_two[] = {0, 1};
    MPI_Group two;
    MPI_Comm self, made = MPI_COMM_NULL;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &self));
    OK(MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN));
    OK(MPI_Group_incl(all, 2, first_two, &two));
    if (rank == 0)
        OK(MPI_Comm_create_group(world, two, 2, &made));
    if (rank == 1)
        CHECK(class_of(MPI_Intercomm_create(self, 0, world, 0, 2, &made)) == MPI_ERR_OTHER && made == MPI_COMM_NULL);
    if (made != MPI_COMM_NULL)
        OK(MPI_Comm_free(&made));
    OK(MPI_Group_free(&two));
    OK(MPI_Comm_free(&self));
}

int main(void)
{
    MPI_Comm world = begin(), made = MPI_COMM_NULL;
    MPI_Group all;
    int codes[1];
    OK(MPI_Comm_group(world, &all));
    orders(world, all);
    functions(world, all);
    CHECK(class_of(MPI_Intercomm_create(world, 0, world, 1, 3, &made)) == (rank == 0 ? MPI_ERR_RANK : MPI_ERR_OTHER));
    CHECK(made == MPI_COMM_NULL);
    CHECK(class_of(MPI_Comm_connect("none", MPI_INFO_NULL, rank % 2, world, &made)) == MPI_ERR_ROOT && made == MPI_COMM_NULL);
    /* What is wrong at the root has one class at all. */
    CHECK(class_of(MPI_Comm_connect("none", MPI_INFO_NULL, 0, world, &made)) == MPI_ERR_PORT && made == MPI_COMM_NULL);
    CHECK(class_of(MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, rank % 2, world, &made, codes)) != MPI_SUCCESS);
    CHECK(made == MPI_COMM_NULL);
    OK(MPI_Barrier(world));
    OK(MPI_Group_free(&all));
    end_with(world, "members that do not make the same communicator are told so");
    return 0;
}
