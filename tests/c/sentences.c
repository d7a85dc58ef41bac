/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences of the standard that programs rarely try: objects that are freed while in use, callbacks that fail, what names and
   error strings are cut to, counts that are undefined, MPI_PROC_NULL, degenerate topologies. See conformance/semantics.md.
   ranks: 1 */
#include "check.h"

#include <limits.h>

#define SELF MPI_COMM_SELF
#define FAILS(class, call) CHECK(class_of(call) == (class))

static int class_of(int code)
{
    int class = MPI_SUCCESS;
    OK(MPI_Error_class(code, &class));
    return class;
}

/* Section 3.2.5, 5.1.11: how many elements there were. */
static void counts(void)
{
    int data[4] = {1, 2, 3, 4}, in[4], n, flag;
    MPI_Count many;
    MPI_Request request;
    MPI_Status status;
    MPI_Datatype pair, nothing;
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_contiguous(0, MPI_INT, &nothing));
    OK(MPI_Type_commit(&pair));
    OK(MPI_Type_commit(&nothing));
    OK(MPI_Isend(data, 3, MPI_INT, 0, 1, SELF, &request));
    OK(MPI_Recv(in, 4, MPI_INT, 0, 1, SELF, &status));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Get_count(&status, pair, &n));
    CHECK(n == MPI_UNDEFINED);
    OK(MPI_Get_elements(&status, pair, &n));
    CHECK(n == 3);
    OK(MPI_Get_count(&status, nothing, &n));
    CHECK(n == MPI_UNDEFINED);
    OK(MPI_Isend(data, 0, MPI_INT, 0, 1, SELF, &request));
    OK(MPI_Recv(in, 4, MPI_INT, 0, 1, SELF, &status));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Get_count(&status, nothing, &n));
    CHECK(n == 0);
    OK(MPI_Status_set_elements_x(&status, MPI_INT, (MPI_Count)1 << 34));
    OK(MPI_Get_count(&status, MPI_INT, &n));
    CHECK(n == MPI_UNDEFINED);
    OK(MPI_Get_elements_x(&status, MPI_INT, &many));
    CHECK(many == (MPI_Count)1 << 34);
    OK(MPI_Status_set_cancelled(&status, 1));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
    OK(MPI_Type_free(&pair));
    OK(MPI_Type_free(&nothing));
}

/* Sections 3.5, 3.10: the largest tag, nobody as a partner, and what is wrong all the same. */
static void partners(void)
{
    int word = 5, in = 0, flag, *most;
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &flag));
    CHECK(flag && *most >= 32767);
    OK(MPI_Isend(&word, 1, MPI_INT, 0, *most, SELF, &request));
    OK(MPI_Recv(&in, 1, MPI_INT, 0, *most, SELF, &status));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(in == 5 && status.MPI_TAG == *most);
    if (*most < INT_MAX)
        FAILS(MPI_ERR_TAG, MPI_Send(&word, 1, MPI_INT, 0, *most + 1, SELF));
    OK(MPI_Send_init(&word, 1, MPI_INT, MPI_PROC_NULL, 0, SELF, &request));
    OK(MPI_Start(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));
    OK(MPI_Bsend(&word, 1, MPI_INT, MPI_PROC_NULL, 0, SELF));
    FAILS(MPI_ERR_TAG, MPI_Send(&word, 1, MPI_INT, MPI_PROC_NULL, -5, SELF));
    FAILS(MPI_ERR_COUNT, MPI_Send(&word, -1, MPI_INT, MPI_PROC_NULL, 0, SELF));
    OK(MPI_Startall(0, NULL));
}

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static int heard;

static void hear(MPI_Comm *comm, int *code, ...)
{
    int rank, class;
    heard++;
    /* A handler may call MPI. */
    OK(MPI_Comm_rank(*comm, &rank));
    OK(MPI_Error_class(*code, &class));
}

/* Freed objects live until what uses them is over. */
static void freed_in_use(void)
{
    int data[2] = {3, 4}, in[2] = {0, 0};
    MPI_Request requests[2];
    MPI_Comm comm, copy;
    MPI_Op op;
    MPI_Errhandler handler;
    OK(MPI_Comm_dup(SELF, &comm));
    OK(MPI_Send_init(data, 1, MPI_INT, 0, 2, comm, &requests[0]));
    OK(MPI_Recv_init(in, 1, MPI_INT, 0, 2, comm, &requests[1]));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Startall(2, requests));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(in[0] == 3);
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    OK(MPI_Op_create(add, 1, &op));
    OK(MPI_Iallreduce(data, in, 2, MPI_INT, op, SELF, &requests[0]));
    OK(MPI_Op_free(&op));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    CHECK(in[1] == 4);
    OK(MPI_Comm_dup(SELF, &comm));
    OK(MPI_Comm_create_errhandler(hear, &handler));
    OK(MPI_Comm_set_errhandler(comm, handler));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Comm_dup(comm, &copy));
    FAILS(MPI_ERR_COUNT, MPI_Send(data, -1, MPI_INT, 0, 0, comm));
    FAILS(MPI_ERR_COUNT, MPI_Send(data, -1, MPI_INT, 0, 0, copy));
    CHECK(heard == 2);
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&comm));
}

static int copies, deletions;

static int copy_fails(MPI_Comm comm, int key, void *extra, void *value, void *copied, int *flag)
{
    (void)comm, (void)key, (void)extra, (void)value, (void)copied;
    *flag = 0;
    return MPI_ERR_OTHER;
}

static int copy_counts(MPI_Comm comm, int key, void *extra, void *value, void *copied, int *flag)
{
    (void)comm, (void)key, (void)extra;
    copies++;
    *(void **)copied = value;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_counts(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    deletions++;
    return MPI_SUCCESS;
}

/* Section 7.7: callbacks that fail, and keys that are freed while values are cached. */
static void attributes(void)
{
    int key, kept;
    MPI_Comm comm, copy = MPI_COMM_WORLD;
    MPI_Request request = MPI_REQUEST_NULL;
    OK(MPI_Comm_dup(SELF, &comm));
    OK(MPI_Comm_create_keyval(copy_fails, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Comm_set_attr(comm, key, &kept));
    FAILS(MPI_ERR_OTHER, MPI_Comm_dup(comm, &copy));
    CHECK(copy == MPI_COMM_NULL);
    FAILS(MPI_ERR_OTHER, MPI_Comm_idup(comm, &copy, &request));
    CHECK(request == MPI_REQUEST_NULL);
    OK(MPI_Comm_delete_attr(comm, key));
    OK(MPI_Comm_free_keyval(&key));
    OK(MPI_Comm_create_keyval(copy_counts, delete_counts, &key, NULL));
    kept = key;
    OK(MPI_Comm_set_attr(comm, key, &kept));
    OK(MPI_Comm_free_keyval(&key));
    CHECK(key == MPI_KEYVAL_INVALID);
    OK(MPI_Comm_dup(comm, &copy));
    CHECK(copies == 1 && deletions == 0);
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&comm));
    CHECK(deletions == 2);
}

/* Sections 7.8, 9.4, 9.5, 10: what does not fit is cut or refused. */
static void texts(void)
{
    char long_name[3 * MPI_MAX_OBJECT_NAME], name[MPI_MAX_OBJECT_NAME], text[MPI_MAX_ERROR_STRING], value[8] = "x";
    char long_text[2 * MPI_MAX_ERROR_STRING];
    int length, class, code, flag;
    MPI_Comm comm;
    MPI_Info info;
    memset(long_name, 'n', sizeof long_name);
    memset(long_text, 't', sizeof long_text);
    long_name[sizeof long_name - 1] = long_text[sizeof long_text - 1] = 0;
    OK(MPI_Comm_dup(SELF, &comm));
    OK(MPI_Comm_set_name(comm, long_name));
    OK(MPI_Comm_get_name(comm, name, &length));
    CHECK(length == MPI_MAX_OBJECT_NAME - 1 && name[length] == 0);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Add_error_class(&class));
    FAILS(MPI_ERR_ARG, MPI_Add_error_string(class, long_text));
    FAILS(MPI_ERR_ARG, MPI_Add_error_string(MPI_ERR_COMM, "mine"));
    OK(MPI_Add_error_code(class, &code));
    OK(MPI_Error_string(code, text, &length));
    CHECK(length == (int)strlen(text));
    OK(MPI_Error_class(code, &length));
    CHECK(length == class);
    FAILS(MPI_ERR_ARG, MPI_Error_string(123456789, text, &length));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "nothing", ""));
    OK(MPI_Info_get_valuelen(info, "nothing", &length, &flag));
    CHECK(flag && length == 0);
    length = sizeof value;
    OK(MPI_Info_get_string(info, "nothing", &length, value, &flag));
    CHECK(flag && length == 1 && value[0] == 0);
    OK(MPI_Info_free(&info));
}

/* Section 8: grids of no dimensions, of one process, and that do not fit. */
static void topologies(void)
{
    int dims[3] = {0, 0, 5}, periods[2] = {0, 1}, coordinates[2] = {0, -3}, rank, from, to, weighted;
    MPI_Comm grid, point;
    FAILS(MPI_ERR_DIMS, MPI_Dims_create(12, 3, dims));
    dims[2] = -1;
    FAILS(MPI_ERR_DIMS, MPI_Dims_create(12, 3, dims));
    OK(MPI_Dims_create(1, 0, NULL));
    dims[0] = dims[1] = 1;
    OK(MPI_Cart_create(SELF, 2, dims, periods, 0, &grid));
    OK(MPI_Cart_rank(grid, coordinates, &rank));
    CHECK(rank == 0);
    coordinates[0] = 5;
    FAILS(MPI_ERR_ARG, MPI_Cart_rank(grid, coordinates, &rank));
    OK(MPI_Cart_shift(grid, 0, 1, &from, &to));
    CHECK(from == MPI_PROC_NULL && to == MPI_PROC_NULL);
    OK(MPI_Cart_shift(grid, 1, 3, &from, &to));
    CHECK(from == 0 && to == 0);
    OK(MPI_Cart_create(SELF, 0, NULL, NULL, 0, &point));
    OK(MPI_Cart_rank(point, NULL, &rank));
    CHECK(rank == 0);
    OK(MPI_Comm_free(&point));
    OK(MPI_Graph_create(SELF, 0, NULL, NULL, 0, &point));
    CHECK(point == MPI_COMM_NULL);
    OK(MPI_Dist_graph_create_adjacent(SELF, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &point));
    OK(MPI_Dist_graph_neighbors_count(point, &from, &to, &weighted));
    CHECK(from == 0 && to == 0 && weighted);
    OK(MPI_Comm_free(&point));
    OK(MPI_Comm_free(&grid));
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(SELF, MPI_ERRORS_RETURN));
    counts();
    partners();
    freed_in_use();
    attributes();
    texts();
    topologies();
    OK(MPI_Finalize());
    return 0;
}
