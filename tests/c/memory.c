/* SPDX-License-Identifier: Apache-2.0 */
/* No memory grows: objects of every kind are made and freed many times; after a warm-up the resident size stays where it is.
   `memory TIMES` makes TIMES of each (the default is short).
   ranks: 1 2 */
#include "check.h"
#include <time.h>
#include <unistd.h>

static int rank, size, other;

static long resident_kib(void)
{
    long pages = 0, all = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld %ld", &all, &pages) == 2);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void requests(void)
{
    static char data[5000], in[5000];
    MPI_Request r[6];
    int n = rand() % 5000;
    OK(MPI_Irecv(in, 5000, MPI_CHAR, other, 0, MPI_COMM_WORLD, &r[0]));
    OK(MPI_Isend(data, n, MPI_CHAR, other, 0, MPI_COMM_WORLD, &r[1]));
    OK(MPI_Recv_init(in, 10, MPI_CHAR, other, 9, MPI_COMM_WORLD, &r[2]));
    OK(MPI_Start(&r[2]));
    OK(MPI_Cancel(&r[2]));
    OK(MPI_Ibsend(data, 10, MPI_CHAR, other, 1, MPI_COMM_WORLD, &r[3]));
    OK(MPI_Request_free(&r[3]));
    OK(MPI_Irecv(in, 10, MPI_CHAR, other, 1, MPI_COMM_WORLD, &r[3]));
    OK(MPI_Issend(data, 10, MPI_CHAR, MPI_PROC_NULL, 2, MPI_COMM_WORLD, &r[4]));
    OK(MPI_Isend(data, 10, MPI_CHAR, other, 77, MPI_COMM_WORLD, &r[5]));
    OK(MPI_Cancel(&r[5]));
    OK(MPI_Waitall(6, r, MPI_STATUSES_IGNORE));
    OK(MPI_Request_free(&r[2]));
}

static int nothing(void *extra, MPI_Status *status)
{
    (void)extra;
    MPI_Status_set_elements(status, MPI_INT, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int free_nothing(void *extra)
{
    (void)extra;
    return MPI_SUCCESS;
}

static int cancel_nothing(void *extra, int complete)
{
    (void)extra;
    (void)complete;
    return MPI_SUCCESS;
}

static void rare_requests(void)
{
    static char data[64], in[64];
    MPI_Request r[3];
    OK(MPI_Grequest_start(nothing, free_nothing, cancel_nothing, NULL, &r[0]));
    OK(MPI_Grequest_complete(r[0]));
    OK(MPI_Psend_init(data, 4, 16, MPI_CHAR, other, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]));
    OK(MPI_Precv_init(in, 2, 32, MPI_CHAR, other, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r[2]));
    OK(MPI_Startall(2, r + 1));
    OK(MPI_Pready_range(0, 3, r[1]));
    OK(MPI_Waitall(3, r, MPI_STATUSES_IGNORE));
    OK(MPI_Request_free(&r[1]));
    OK(MPI_Request_free(&r[2]));
}

static void communicators(void)
{
    MPI_Comm comm, half;
    MPI_Group group;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_name(comm, "one of many"));
    OK(MPI_Comm_split(comm, rank, 0, &half));
    OK(MPI_Comm_group(half, &group));
    OK(MPI_Group_free(&group));
    OK(MPI_Barrier(comm));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free(&half));
}

static void types(void)
{
    MPI_Datatype vector, indexed, pair, made, copy;
    int lengths[] = {1, 2, 3}, places[] = {0, 4, 9};
    MPI_Aint at[] = {0, 16};
    OK(MPI_Type_vector(3, 2, 4, MPI_INT, &vector));
    OK(MPI_Type_indexed(3, lengths, places, vector, &indexed));
    OK(MPI_Type_create_struct(2, lengths, at, (MPI_Datatype[]){MPI_CHAR, MPI_DOUBLE}, &pair));
    OK(MPI_Type_contiguous(2, pair, &made));
    OK(MPI_Type_commit(&made));
    OK(MPI_Type_dup(made, &copy));
    OK(MPI_Type_free(&vector));
    OK(MPI_Type_free(&indexed));
    OK(MPI_Type_free(&pair));
    OK(MPI_Type_free(&made));
    OK(MPI_Type_free(&copy));
}

static void groups(void)
{
    MPI_Group all, some, none;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 1, &rank, &some));
    OK(MPI_Group_difference(some, all, &none));
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&some));
    if (none != MPI_GROUP_EMPTY)
        OK(MPI_Group_free(&none));
}

static void attributes(void)
{
    int key, flag;
    void *value;
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, &key));
    OK(MPI_Comm_get_attr(MPI_COMM_SELF, key, &value, &flag));
    CHECK(flag && value == &key);
    OK(MPI_Comm_delete_attr(MPI_COMM_SELF, key));
    OK(MPI_Comm_free_keyval(&key));
}

static void infos(void)
{
    MPI_Info info, copy;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "key", "value"));
    OK(MPI_Info_dup(info, &copy));
    OK(MPI_Info_free(&info));
    OK(MPI_Info_free(&copy));
}

static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
}

static void operators(void *in, void *out, int *n, MPI_Datatype *type)
{
    (void)in;
    (void)out;
    (void)n;
    (void)type;
}

static void callbacks(void)
{
    MPI_Errhandler errors, got;
    MPI_Op op;
    OK(MPI_Comm_create_errhandler(handler, &errors));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, errors));
    OK(MPI_Comm_get_errhandler(MPI_COMM_SELF, &got));
    OK(MPI_Errhandler_free(&got));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Errhandler_free(&errors));
    OK(MPI_Op_create(operators, 1, &op));
    OK(MPI_Op_free(&op));
}

static void measure(const char *what, void (*once)(void), long times)
{
    srand(1); /* the same for all ranks, and in the warm-up */
    for (long i = 0; i < times / 4 + 200; i++)
        once();
    long before = resident_kib();
    for (long i = 0; i < times; i++)
        once();
    long grown = resident_kib() - before;
    if (rank == 0 && times > 10000)
        printf("%ld times %s: resident size changed by %ld KiB\n", times, what, grown);
    /* Pages come in chunks; one byte in ten lost objects would be seen. */
    if (grown > 256 + times / 10000) {
        fprintf(stderr, "rank %d: %ld times %s: the resident size grew by %ld KiB\n", rank, times, what, grown);
        CHECK(!"memory grows");
    }
}

int main(int argc, char **argv)
{
    long times = argc > 1 ? atol(argv[1]) : 4000;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(size <= 2);
    other = size - 1 - rank;
    OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
    measure("requests", requests, times);
    measure("generalized and partitioned requests", rare_requests, times);
    measure("communicators", communicators, times);
    measure("datatypes", types, times);
    measure("groups", groups, times);
    measure("attributes", attributes, times);
    measure("infos", infos, times);
    measure("error handlers and operations", callbacks, times);
    if (rank == 0)
        printf("no memory grows\n");
    OK(MPI_Finalize());
    return 0;
}
