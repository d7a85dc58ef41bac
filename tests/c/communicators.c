/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators and groups: duplicating, splitting, creating, comparing, names, attributes, separate contexts.
   ranks: 1 2 3 4 */
#include "check.h"

static int rank, size, copied, deleted;

static int copy(MPI_Comm comm, int key, void *extra, void *value, void *new_value, int *keep)
{
    (void)comm, (void)key;
    copied++;
    *(void **)new_value = value;
    *keep = *(int *)extra;
    return MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    deleted++;
    return *(int *)value < 0 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static void duplicating(void)
{
    MPI_Comm copy_of_world;
    int result, x = rank, y = -1, own = -1;
    MPI_Request requests[2];
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy_of_world));
    OK(MPI_Comm_compare(MPI_COMM_WORLD, copy_of_world, &result));
    CHECK(result == MPI_CONGRUENT);
    OK(MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &result));
    CHECK(result == MPI_IDENT);
    /* A message in one communicator is not seen in the other. */
    OK(MPI_Irecv(&y, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, copy_of_world, &requests[0]));
    OK(MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
    OK(MPI_Isend(&x, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Recv(&own, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(own == rank);
    OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    int z = rank + 100;
    OK(MPI_Isend(&z, 1, MPI_INT, (rank + 1) % size, 2, copy_of_world, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(y == 100 + (rank + size - 1) % size);
    OK(MPI_Comm_free(&copy_of_world));
    CHECK(copy_of_world == MPI_COMM_NULL);
}

static void splitting(void)
{
    MPI_Comm part;
    int n, r, sum;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2 ? -1 : 3, -rank, &part));
    OK(MPI_Comm_size(part, &n));
    OK(MPI_Comm_rank(part, &r));
    CHECK(n == (size + 1 - rank % 2) / 2);
    CHECK(r == n - 1 - rank / 2); /* the keys turn the order around */
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, part));
    CHECK(sum == n * (n - 1) + rank % 2 * n);
    OK(MPI_Comm_free(&part));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 0, 0, &part));
    CHECK((part == MPI_COMM_NULL) == (rank == 0));
    if (part != MPI_COMM_NULL) {
        OK(MPI_Comm_rank(part, &r));
        CHECK(r == rank - 1);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &part));
    OK(MPI_Comm_size(part, &n));
    CHECK(n >= 1 && n <= size);
    OK(MPI_Comm_free(&part));
}

static void groups(void)
{
    MPI_Group world, evens, odds, all, none;
    MPI_Comm comm;
    int members[64], n = 0, result, from[2] = {0, 0}, to[2];
    for (int r = 0; r < size; r += 2)
        members[n++] = r;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, n, members, &evens));
    OK(MPI_Group_excl(world, n, members, &odds));
    OK(MPI_Group_union(odds, evens, &all));
    OK(MPI_Group_intersection(odds, evens, &none));
    CHECK(none == MPI_GROUP_EMPTY);
    OK(MPI_Group_compare(all, world, &result));
    CHECK(result == (size > 1 ? MPI_SIMILAR : MPI_IDENT));
    OK(MPI_Group_rank(evens, &result));
    CHECK(result == (rank % 2 ? MPI_UNDEFINED : rank / 2));
    from[1] = n - 1;
    OK(MPI_Group_translate_ranks(evens, 2, from, world, to));
    CHECK(to[0] == 0 && to[1] == 2 * (n - 1));
    OK(MPI_Comm_create(MPI_COMM_WORLD, evens, &comm));
    CHECK((comm == MPI_COMM_NULL) == (rank % 2 == 1));
    if (comm != MPI_COMM_NULL) {
        OK(MPI_Comm_size(comm, &result));
        CHECK(result == n);
        OK(MPI_Barrier(comm));
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&evens));
    OK(MPI_Group_free(&odds));
    OK(MPI_Group_free(&all));
}

static void caching(void)
{
    MPI_Comm a, b;
    int yes = 1, no = 0, key, lost, value = 5, bad = -1, *found, flag;
    char name[MPI_MAX_OBJECT_NAME];
    OK(MPI_Comm_create_keyval(copy, delete, &key, &yes));
    OK(MPI_Comm_create_keyval(copy, delete, &lost, &no));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &a));
    OK(MPI_Comm_set_attr(a, key, &value));
    OK(MPI_Comm_set_attr(a, lost, &value));
    OK(MPI_Comm_dup(a, &b));
    CHECK(copied == 2);
    OK(MPI_Comm_get_attr(b, key, &found, &flag));
    CHECK(flag && found == &value);
    OK(MPI_Comm_get_attr(b, lost, &found, &flag));
    CHECK(!flag);
    OK(MPI_Comm_free(&b));
    CHECK(deleted == 1);
    OK(MPI_Comm_set_attr(a, key, &bad));
    CHECK(deleted == 2);
    CHECK(MPI_Comm_delete_attr(a, key) != MPI_SUCCESS);
    bad = 0;
    OK(MPI_Comm_free(&a));
    CHECK(deleted == 5);
    OK(MPI_Comm_free_keyval(&key));
    OK(MPI_Comm_free_keyval(&lost));
    OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &flag));
    CHECK(strcmp(name, "MPI_COMM_WORLD") == 0);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &a));
    OK(MPI_Comm_get_name(a, name, &flag));
    CHECK(flag == 0);
    OK(MPI_Comm_set_name(a, "copy"));
    OK(MPI_Comm_get_name(a, name, &flag));
    CHECK(strcmp(name, "copy") == 0 && flag == 4);
    OK(MPI_Comm_free(&a));
    a = MPI_COMM_WORLD;
    CHECK(MPI_Comm_free(&a) == MPI_ERR_COMM);
    CHECK(MPI_Comm_rank(MPI_COMM_NULL, &flag) == MPI_ERR_COMM);
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    duplicating();
    splitting();
    groups();
    caching();
    OK(MPI_Finalize());
    return 0;
}
