/* SPDX-License-Identifier: Apache-2.0 */
/* Memory stays as it is however often communicators, groups, keys, attributes, infos and handlers are made and freed. */
/* ranks: 1 2 */

#include "check.h"
#include <unistd.h>

enum { ROUNDS = 4, TIMES = 500, ALLOWED = 256 };

static long resident_kibibytes(void)
{
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld %ld", &pages, &resident) == 2);
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static int keep(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)comm, (void)key, (void)extra;
    *(void **)copy = value;
    *flag = 1;
    return MPI_SUCCESS;
}

static void ignore(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
}

static void once(int i)
{
    MPI_Comm dup, later, part, cart;
    MPI_Group group, other;
    MPI_Info info;
    MPI_Errhandler handler;
    MPI_Request request;
    int key, first = 0, size, dims[1] = {0}, periods[1] = {1};
    OK(MPI_Comm_create_keyval(keep, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Comm_create_errhandler(ignore, &handler));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_set_attr(dup, key, &size));
    OK(MPI_Comm_set_errhandler(dup, handler));
    OK(MPI_Comm_idup(dup, &later, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_split(dup, 0, i, &part));
    OK(MPI_Comm_size(dup, &size));
    OK(MPI_Dims_create(size, 1, dims));
    OK(MPI_Cart_create(dup, 1, dims, periods, 1, &cart));
    OK(MPI_Comm_group(dup, &group));
    OK(MPI_Group_incl(group, 1, &first, &other));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "isthmus_reduction", "fixed"));
    OK(MPI_Comm_set_info(dup, info));
    OK(MPI_Barrier(later));
    OK(MPI_Info_free(&info));
    OK(MPI_Group_free(&other));
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_free(&cart));
    OK(MPI_Comm_free(&part));
    OK(MPI_Comm_free(&later));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Comm_free_keyval(&key));
}

/* Touches the memory that messages travel through, which the system gives when it is used for the first time. */
static void warm_up(void)
{
    static char out[1024], in[1024];
    int rank, size;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    for (int i = 0; i < 5000; i++)
        OK(MPI_Sendrecv(out, sizeof out, MPI_CHAR, (rank + 1) % size, 0, in, sizeof in, MPI_CHAR,
                        (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

int main(int argc, char **argv)
{
    long before = 0, after = 0;
    MPI_Init(&argc, &argv);
    warm_up();
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < TIMES; i++)
            once(i);
        after = resident_kibibytes();
        if (round <= 1)
            before = after;
    }
    printf("resident: %ld KiB after %d, %ld KiB after %d of everything\n", before, 2 * TIMES, after, ROUNDS * TIMES);
    CHECK(after - before <= ALLOWED);
    MPI_Finalize();
    return 0;
}
