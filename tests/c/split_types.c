/* SPDX-License-Identifier: Apache-2.0 */
/* MPI_Comm_split_type: shared memory, levels of the network, process sets; info hints of communicators. */
/* ranks: 1 2 4 */

#include "check.h"

static int rank, size;

static MPI_Comm split(int type, const char *key, const char *value)
{
    MPI_Info info = MPI_INFO_NULL;
    MPI_Comm comm;
    if (key) {
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, key, value));
    }
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, type, rank, info, &comm));
    if (key)
        OK(MPI_Info_free(&info));
    return comm;
}

static int size_of(MPI_Comm comm)
{
    int n = 0;
    if (comm != MPI_COMM_NULL)
        OK(MPI_Comm_size(comm, &n));
    return n;
}

static void has(MPI_Comm comm, const char *key, const char *value)
{
    MPI_Info info;
    char text[64] = "";
    int length = sizeof text, found;
    OK(MPI_Comm_get_info(comm, &info));
    OK(MPI_Info_get_string(info, key, &length, text, &found));
    CHECK(found == (value != NULL));
    CHECK(!value || !strcmp(text, value));
    OK(MPI_Info_free(&info));
}

/* Nodes lie in machines, machines at sites. */
static void check_levels(void)
{
    const char *names[] = {"site", "machine", "node", "mpi_shared_memory"};
    int before = size;
    for (int i = 0; i < 4; i++) {
        MPI_Comm guided = split(MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", names[i]);
        MPI_Comm resource = split(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_hw_resource_type", names[i]);
        CHECK(guided != MPI_COMM_NULL && size_of(guided) <= before && size_of(guided) == size_of(resource));
        has(guided, "mpi_hw_resource_type", i < 3 ? names[i] : "node");
        before = size_of(guided);
        int sum, one = 1;
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, guided));
        CHECK(sum == before);
        OK(MPI_Comm_free(&guided));
        OK(MPI_Comm_free(&resource));
    }
    MPI_Comm shared = split(MPI_COMM_TYPE_SHARED, NULL, NULL);
    CHECK(size_of(shared) == before);
    OK(MPI_Comm_free(&shared));
}

/* Level by level down to one node, where there is nothing below. */
static void check_unguided(void)
{
    MPI_Comm comm = MPI_COMM_WORLD, next;
    for (int level = 0;; level++) {
        MPI_Info info;
        char text[64];
        int length = sizeof text, found;
        CHECK(level < 4);
        OK(MPI_Info_create(&info));
        OK(MPI_Comm_split_type(comm, MPI_COMM_TYPE_HW_UNGUIDED, 0, info, &next));
        OK(MPI_Info_get_string(info, "mpi_hw_resource_type", &length, text, &found));
        OK(MPI_Info_free(&info));
        CHECK(found == (next != MPI_COMM_NULL));
        CHECK(size_of(next) < size_of(comm));
        if (found)
            has(next, "mpi_hw_resource_type", text);
        if (comm != MPI_COMM_WORLD)
            OK(MPI_Comm_free(&comm));
        if (next == MPI_COMM_NULL)
            break;
        comm = next;
    }
}

static void check_sets(void)
{
    MPI_Comm comm = split(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://WORLD");
    CHECK(size_of(comm) == size);
    OK(MPI_Comm_free(&comm));
    /* A set that is another one at each process: each is alone. */
    comm = split(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://SELF");
    int result;
    OK(MPI_Comm_compare(comm, MPI_COMM_SELF, &result));
    CHECK(result == MPI_CONGRUENT);
    OK(MPI_Comm_free(&comm));
    comm = split(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "node");
    CHECK(comm != MPI_COMM_NULL);
    OK(MPI_Comm_free(&comm));
    CHECK(split(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "isthmus://site/nowhere") == MPI_COMM_NULL);
    CHECK(split(MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", "abacus") == MPI_COMM_NULL);
    CHECK(split(MPI_COMM_TYPE_HW_GUIDED, "colour", "node") == MPI_COMM_NULL);
    CHECK(split(MPI_COMM_TYPE_HW_GUIDED, NULL, NULL) == MPI_COMM_NULL);
    CHECK(split(MPI_UNDEFINED, NULL, NULL) == MPI_COMM_NULL);
    MPI_Info kinds;
    char text[8];
    int length = sizeof text, found;
    OK(MPI_Get_hw_resource_info(&kinds));
    OK(MPI_Info_get_string(kinds, "isthmus://site", &length, text, &found));
    CHECK(found && !strcmp(text, "true"));
    OK(MPI_Info_free(&kinds));
}

static void check_hints(void)
{
    MPI_Info info;
    MPI_Comm with, without;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
    OK(MPI_Info_set(info, "isthmus_reduction", "fixed"));
    OK(MPI_Info_set(info, "colour", "blue"));
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &with));
    has(with, "mpi_assert_no_any_tag", "true");
    has(with, "mpi_assert_no_any_source", "false");
    has(with, "isthmus_reduction", "fixed");
    has(with, "colour", NULL);
    OK(MPI_Comm_dup(with, &without));
    has(without, "mpi_assert_no_any_tag", "false");
    has(without, "isthmus_reduction", NULL);
    OK(MPI_Comm_set_info(without, info));
    has(without, "isthmus_reduction", "fixed");
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_free(&with));
    OK(MPI_Comm_free(&without));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check_levels();
    check_unguided();
    check_sets();
    check_hints();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm comm;
    CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, 12345, 0, MPI_INFO_NULL, &comm) == MPI_ERR_ARG);
    MPI_Finalize();
    return 0;
}
