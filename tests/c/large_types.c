/* SPDX-License-Identifier: Apache-2.0 */
/* Datatypes whose counts, sizes and displacements do not fit an int; their contents; types without data; far and
   negative places. Touches next to no memory.
   ranks: 1 2 */
#include "check.h"
#include <limits.h>
#include <stdint.h>

static const MPI_Count MANY = (MPI_Count)3 << 30;

static MPI_Count sizes_c(MPI_Datatype type, MPI_Count *lower, MPI_Count *extent)
{
    MPI_Count size, other;
    OK(MPI_Type_size_c(type, &size));
    OK(MPI_Type_size_x(type, &other));
    CHECK(size == other);
    OK(MPI_Type_get_extent_c(type, lower, extent));
    OK(MPI_Type_get_extent_x(type, &other, &other));
    CHECK(other == *extent);
    return size;
}

static void sizes(void)
{
    MPI_Datatype run, comb, list, moved;
    MPI_Count lower, extent, places[2] = {-MANY, MANY}, lengths[2] = {1, MANY};
    int small;
    MPI_Aint address, length;
    OK(MPI_Type_contiguous_c(MANY, MPI_INT, &run));
    CHECK(sizes_c(run, &lower, &extent) == 4 * MANY && extent == 4 * MANY);
    OK(MPI_Type_size(run, &small));
    CHECK(small == MPI_UNDEFINED);
    OK(MPI_Type_get_extent(run, &address, &length));
    CHECK(length == 4 * MANY);
    OK(MPI_Pack_size(1, run, MPI_COMM_WORLD, &small));
    CHECK(small == MPI_UNDEFINED);
    OK(MPI_Pack_size_c(2, run, MPI_COMM_WORLD, &extent));
    CHECK(extent == 8 * MANY);
    OK(MPI_Type_vector_c(1000000, 1, 2, run, &comb));
    CHECK(sizes_c(comb, &lower, &extent) == 4000000 * MANY && extent == 1999999 * 4 * MANY);
    OK(MPI_Type_create_hindexed_c(2, lengths, places, MPI_CHAR, &list));
    CHECK(sizes_c(list, &lower, &extent) == 1 + MANY && lower == -MANY && extent == 3 * MANY);
    OK(MPI_Type_create_resized_c(list, -2 * MANY, 16 * MANY, &moved));
    CHECK(sizes_c(moved, &lower, &extent) == 1 + MANY && lower == -2 * MANY && extent == 16 * MANY);
    OK(MPI_Type_get_true_extent_c(moved, &lower, &extent));
    CHECK(lower == -MANY && extent == 3 * MANY);
    OK(MPI_Type_get_true_extent_x(moved, &lower, &extent));
    CHECK(lower == -MANY && extent == 3 * MANY);
    OK(MPI_Type_free(&moved));
    OK(MPI_Type_free(&list));
    OK(MPI_Type_free(&comb));
    OK(MPI_Type_free(&run));
}

/* What a type was made of. */
static struct {
    MPI_Count integers, addresses, counts, types;
    int combiner, integer[16];
    MPI_Count count[16];
    MPI_Datatype type[4];
} made;

/* Reads the contents and frees the type. */
static void contents_of(MPI_Datatype *type)
{
    int n;
    OK(MPI_Type_get_envelope_c(*type, &made.integers, &made.addresses, &made.counts, &made.types, &made.combiner));
    CHECK(made.addresses == 0);
    CHECK(MPI_Type_get_envelope(*type, &n, &n, &n, &n) == MPI_ERR_TYPE);
    OK(MPI_Type_get_contents_c(*type, made.integers, 0, made.counts, made.types, made.integer, NULL, made.count,
                               made.type));
    OK(MPI_Type_free(type));
}

static void contents(void)
{
    MPI_Datatype type, inner;
    MPI_Count counts[2] = {2, MANY}, places[2] = {0, 8 * MANY}, extent, lower;
    MPI_Count sizes[2] = {MANY, 8}, part[2] = {5, 4}, starts[2] = {1, 2};
    MPI_Datatype types[2] = {MPI_INT, MPI_DATATYPE_NULL};
    int cyclic[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, dargs[2] = {3, MPI_DISTRIBUTE_DFLT_DARG}, grid[2] = {2, 1};
    OK(MPI_Type_contiguous_c(7, MPI_DOUBLE, &inner));
    OK(MPI_Type_create_hvector_c(2, 3, MANY, inner, &type));
    contents_of(&type);
    CHECK(made.combiner == MPI_COMBINER_HVECTOR && made.integers == 0 && made.counts == 3 && made.types == 1);
    CHECK(made.count[0] == 2 && made.count[1] == 3 && made.count[2] == MANY);
    /* The inner type is a handle of its own. */
    CHECK(made.type[0] != inner && made.type[0] != MPI_DATATYPE_NULL);
    CHECK(sizes_c(made.type[0], &lower, &extent) == 56);
    OK(MPI_Type_free(&made.type[0]));

    types[1] = inner;
    OK(MPI_Type_create_struct_c(2, counts, places, types, &type));
    contents_of(&type);
    CHECK(made.combiner == MPI_COMBINER_STRUCT && made.integers == 0 && made.counts == 5 && made.types == 2);
    CHECK(made.count[0] == 2 && made.count[2] == MANY && made.count[4] == 8 * MANY && made.type[0] == MPI_INT);
    OK(MPI_Type_free(&made.type[1]));
    OK(MPI_Type_free(&inner));

    OK(MPI_Type_indexed_c(2, counts, counts, MPI_CHAR, &type));
    contents_of(&type);
    CHECK(made.combiner == MPI_COMBINER_INDEXED && made.counts == 5 && made.count[4] == MANY);
    OK(MPI_Type_create_indexed_block_c(2, 4, counts, MPI_CHAR, &type));
    contents_of(&type);
    CHECK(made.combiner == MPI_COMBINER_INDEXED_BLOCK && made.counts == 4 && made.count[1] == 4);
    OK(MPI_Type_create_hindexed_block_c(2, 4, counts, MPI_CHAR, &type));
    contents_of(&type);
    CHECK(made.combiner == MPI_COMBINER_HINDEXED_BLOCK && made.counts == 4 && made.count[3] == MANY);
    OK(MPI_Type_create_resized_c(MPI_CHAR, -MANY, 2 * MANY, &type));
    contents_of(&type);
    CHECK(made.combiner == MPI_COMBINER_RESIZED && made.counts == 2 && made.count[0] == -MANY);

    OK(MPI_Type_create_subarray_c(2, sizes, part, starts, MPI_ORDER_FORTRAN, MPI_FLOAT, &type));
    CHECK(sizes_c(type, &lower, &extent) == 80 && extent == 32 * MANY);
    contents_of(&type);
    CHECK(made.combiner == MPI_COMBINER_SUBARRAY && made.integers == 2 && made.counts == 6);
    CHECK(made.integer[0] == 2 && made.integer[1] == MPI_ORDER_FORTRAN && made.count[0] == MANY && made.count[5] == 2);

    OK(MPI_Type_create_darray_c(2, 1, 2, sizes, cyclic, dargs, grid, MPI_ORDER_C, MPI_FLOAT, &type));
    CHECK(sizes_c(type, &lower, &extent) == MANY / 2 * 8 * 4);
    contents_of(&type);
    CHECK(made.combiner == MPI_COMBINER_DARRAY && made.integers == 10 && made.counts == 2);
    CHECK(made.integer[1] == 1 && made.integer[3] == MPI_DISTRIBUTE_CYCLIC && made.integer[5] == 3 && made.integer[7] == 2);
    CHECK(made.integer[9] == MPI_ORDER_C && made.count[0] == MANY && made.count[1] == 8);
}

static void counting(void)
{
    MPI_Datatype run;
    MPI_Status status;
    MPI_Count large;
    int small;
    memset(&status, 0, sizeof status);
    OK(MPI_Type_contiguous_c(MANY, MPI_INT, &run));
    OK(MPI_Status_set_elements_c(&status, MPI_INT, MANY));
    OK(MPI_Get_count(&status, MPI_INT, &small));
    CHECK(small == MPI_UNDEFINED);
    OK(MPI_Get_elements(&status, MPI_INT, &small));
    CHECK(small == MPI_UNDEFINED);
    OK(MPI_Get_count_c(&status, MPI_INT, &large));
    CHECK(large == MANY);
    OK(MPI_Get_elements_x(&status, run, &large));
    CHECK(large == MANY);
    OK(MPI_Get_count(&status, run, &small));
    CHECK(small == 1);
    OK(MPI_Get_count_c(&status, MPI_LONG_DOUBLE, &large));
    CHECK(large == 4 * MANY / (MPI_Count)sizeof(long double));
    OK(MPI_Status_set_elements_x(&status, MPI_INT, MANY - 1));
    OK(MPI_Get_count_c(&status, run, &large));
    CHECK(large == MPI_UNDEFINED);
    OK(MPI_Get_elements_c(&status, run, &large));
    CHECK(large == MANY - 1);
    OK(MPI_Type_free(&run));
}

static void nothing(void)
{
    MPI_Datatype empty, many;
    MPI_Count lower, extent;
    MPI_Status status;
    int rank, size, n;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Type_contiguous(0, MPI_INT, &empty));
    CHECK(sizes_c(empty, &lower, &extent) == 0 && lower == 0 && extent == 0);
    OK(MPI_Type_contiguous_c(INT64_MAX, empty, &many));
    CHECK(sizes_c(many, &lower, &extent) == 0 && extent == 0);
    OK(MPI_Type_commit(&many));
    OK(MPI_Sendrecv_c(NULL, MANY, many, (rank + 1) % size, 0, NULL, MANY, many, (rank + size - 1) % size, 0,
                      MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, many, &n));
    CHECK(n == 0);
    OK(MPI_Type_free(&many));
    OK(MPI_Type_free(&empty));
}

/* Two bytes at places that have nothing to do with each other, taken from the end of memory to its beginning. */
static void far_places(void)
{
    static char first = 'a';
    char *second = malloc(1), into[2] = {0, 0}, from[2] = {'x', 'y'};
    MPI_Aint places[2];
    MPI_Datatype both, backwards;
    int position = 0;
    CHECK(second);
    *second = 'b';
    OK(MPI_Get_address(second, &places[0]));
    OK(MPI_Get_address(&first, &places[1]));
    OK(MPI_Type_create_hindexed_block(2, 1, places, MPI_CHAR, &both));
    OK(MPI_Type_commit(&both));
    OK(MPI_Sendrecv(MPI_BOTTOM, 1, both, 0, 1, into, 2, MPI_CHAR, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    CHECK(into[0] == 'b' && into[1] == 'a');
    OK(MPI_Unpack(from, 2, &position, MPI_BOTTOM, 1, both, MPI_COMM_SELF));
    CHECK(*second == 'x' && first == 'y');
    /* One element after the other goes down. */
    OK(MPI_Type_create_resized(MPI_CHAR, 0, -1, &backwards));
    OK(MPI_Type_commit(&backwards));
    OK(MPI_Sendrecv(&into[1], 2, backwards, 0, 1, from, 2, MPI_CHAR, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    CHECK(from[0] == 'a' && from[1] == 'b');
    OK(MPI_Type_free(&backwards));
    OK(MPI_Type_free(&both));
    free(second);
}

static void deep(void)
{
    MPI_Datatype type = MPI_CHAR, next;
    MPI_Count lower, extent;
    char from[4] = "abc", into[4] = "";
    for (int i = 0; i < 10000; i++) {
        if (i % 2)
            OK(MPI_Type_create_resized(type, 0, 2, &next));
        else
            OK(MPI_Type_contiguous(1, type, &next));
        if (type != MPI_CHAR)
            OK(MPI_Type_free(&type));
        type = next;
    }
    CHECK(sizes_c(type, &lower, &extent) == 1 && extent == 2);
    OK(MPI_Type_commit(&type));
    OK(MPI_Sendrecv(from, 2, type, 0, 1, into, 2, MPI_CHAR, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    CHECK(into[0] == 'a' && into[1] == 'c');
    OK(MPI_Type_free(&type));
}

static void mistakes(void)
{
    MPI_Datatype type = MPI_INT;
    MPI_Count one = 1, place = INT64_MAX, zero = 0;
    int n;
    CHECK(MPI_Type_contiguous_c(INT64_MAX, MPI_DOUBLE, &type) == MPI_ERR_ARG && type == MPI_DATATYPE_NULL);
    CHECK(MPI_Type_contiguous_c(-MANY, MPI_DOUBLE, &type) == MPI_ERR_COUNT);
    CHECK(MPI_Type_vector_c(2, -1, 1, MPI_DOUBLE, &type) == MPI_ERR_ARG);
    CHECK(MPI_Type_create_hindexed_c(1, &one, &place, MPI_DOUBLE, &type) == MPI_ERR_ARG);
    CHECK(MPI_Type_create_subarray_c(1, &one, &one, &one, MPI_ORDER_C, MPI_INT, &type) == MPI_ERR_ARG);
    CHECK(MPI_Type_create_subarray_c(1, &one, &zero, &zero, MPI_ORDER_C, MPI_INT, &type) == MPI_ERR_ARG);
    CHECK(MPI_Type_create_subarray_c(1, &one, &one, &zero, 77, MPI_INT, &type) == MPI_ERR_ARG);
    CHECK(MPI_Type_get_contents(MPI_INT, 0, 0, 0, NULL, NULL, NULL) == MPI_ERR_TYPE);
    CHECK(MPI_Type_size(MPI_DATATYPE_NULL, &n) == MPI_ERR_TYPE);
    CHECK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, &type) == MPI_ERR_ARG);
}

#define REFUSED(call, wanted) \
    do { \
        int class; \
        OK(MPI_Error_class(call, &class)); \
        CHECK(class == (wanted)); \
    } while (0)

/* Sizes of exactly 2^63 bytes, the first that fit no MPI_Count, in every call that takes a count; and blocks that reach it together. */
static void too_long_messages(MPI_Datatype type)
{
    static char from[64], into[64];
    const MPI_Count n = (MPI_Count)1 << 23;
    MPI_Comm self = MPI_COMM_SELF;
    MPI_Request request;
    MPI_Count size, position = 0;
    REFUSED(MPI_Send_c(from, n, type, 0, 1, self), MPI_ERR_TYPE);
    REFUSED(MPI_Ssend_c(from, n, type, 0, 1, self), MPI_ERR_TYPE);
    REFUSED(MPI_Rsend_c(from, n, type, 0, 1, self), MPI_ERR_TYPE);
    REFUSED(MPI_Bsend_c(from, n, type, 0, 1, self), MPI_ERR_TYPE);
    REFUSED(MPI_Isend_c(from, n, type, 0, 1, self, &request), MPI_ERR_TYPE);
    REFUSED(MPI_Issend_c(from, n, type, 0, 1, self, &request), MPI_ERR_TYPE);
    REFUSED(MPI_Recv_c(into, n, type, 0, 1, self, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
    REFUSED(MPI_Irecv_c(into, n, type, 0, 1, self, &request), MPI_ERR_TYPE);
    REFUSED(MPI_Sendrecv_c(from, n, type, 0, 1, into, 1, MPI_CHAR, 0, 1, self, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
    REFUSED(MPI_Sendrecv_c(from, 1, MPI_CHAR, 0, 1, into, n, type, 0, 1, self, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
    REFUSED(MPI_Sendrecv_replace_c(into, n, type, 0, 1, 0, 1, self, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
    REFUSED(MPI_Send_init_c(from, n, type, 0, 1, self, &request), MPI_ERR_TYPE);
    REFUSED(MPI_Recv_init_c(into, n, type, 0, 1, self, &request), MPI_ERR_TYPE);
    REFUSED(MPI_Psend_init(from, 1 << 11, n >> 11, type, 0, 1, self, MPI_INFO_NULL, &request), MPI_ERR_TYPE);
    REFUSED(MPI_Precv_init(into, 1 << 11, n >> 11, type, 0, 1, self, MPI_INFO_NULL, &request), MPI_ERR_TYPE);
    REFUSED(MPI_Pack_c(from, n, type, into, sizeof into, &position, self), MPI_ERR_TYPE);
    REFUSED(MPI_Unpack_c(from, sizeof from, &position, into, n, type, self), MPI_ERR_TYPE);
    REFUSED(MPI_Pack_size_c(n, type, self, &size), MPI_ERR_TYPE);
    REFUSED(MPI_Pack_external_size_c("external32", n, type, &size), MPI_ERR_TYPE);
}

static void too_long_collectives(MPI_Datatype type)
{
    static char from[64], into[64];
    const MPI_Count n = (MPI_Count)1 << 23;
    MPI_Comm self = MPI_COMM_SELF;
    MPI_Request request;
    MPI_Count counts[] = {n};
    MPI_Aint zero[] = {0};
    REFUSED(MPI_Bcast_c(into, n, type, 0, self), MPI_ERR_TYPE);
    REFUSED(MPI_Gather_c(from, n, type, into, n, type, 0, self), MPI_ERR_TYPE);
    REFUSED(MPI_Gatherv_c(from, n, type, into, counts, zero, type, 0, self), MPI_ERR_TYPE);
    REFUSED(MPI_Scatter_c(from, n, type, into, n, type, 0, self), MPI_ERR_TYPE);
    REFUSED(MPI_Scatterv_c(from, counts, zero, type, into, n, type, 0, self), MPI_ERR_TYPE);
    REFUSED(MPI_Allgather_c(from, n, type, into, n, type, self), MPI_ERR_TYPE);
    REFUSED(MPI_Allgatherv_c(from, n, type, into, counts, zero, type, self), MPI_ERR_TYPE);
    REFUSED(MPI_Alltoall_c(from, n, type, into, n, type, self), MPI_ERR_TYPE);
    REFUSED(MPI_Alltoallv_c(from, counts, zero, type, into, counts, zero, type, self), MPI_ERR_TYPE);
    REFUSED(MPI_Alltoallw_c(from, counts, zero, &type, into, counts, zero, &type, self), MPI_ERR_TYPE);
    REFUSED(MPI_Ibcast_c(into, n, type, 0, self, &request), MPI_ERR_TYPE);
    REFUSED(MPI_Bcast_init_c(into, n, type, 0, self, MPI_INFO_NULL, &request), MPI_ERR_TYPE);
    MPI_Count doubles = (MPI_Count)1 << 60;
    REFUSED(MPI_Reduce_c(from, into, doubles, MPI_DOUBLE, MPI_SUM, 0, self), MPI_ERR_TYPE);
    REFUSED(MPI_Allreduce_c(from, into, doubles, MPI_DOUBLE, MPI_SUM, self), MPI_ERR_TYPE);
    REFUSED(MPI_Scan_c(from, into, doubles, MPI_DOUBLE, MPI_SUM, self), MPI_ERR_TYPE);
    REFUSED(MPI_Exscan_c(from, into, doubles, MPI_DOUBLE, MPI_SUM, self), MPI_ERR_TYPE);
    REFUSED(MPI_Reduce_scatter_c(from, into, &doubles, MPI_DOUBLE, MPI_SUM, self), MPI_ERR_TYPE);
    REFUSED(MPI_Reduce_scatter_block_c(from, into, doubles, MPI_DOUBLE, MPI_SUM, self), MPI_ERR_TYPE);
    REFUSED(MPI_Reduce_local_c(from, into, doubles, MPI_DOUBLE, MPI_SUM), MPI_ERR_TYPE);
}

static void too_long_accesses(MPI_Datatype type)
{
    static char from[64], into[64];
    const MPI_Count n = (MPI_Count)1 << 23;
    MPI_Comm self = MPI_COMM_SELF;
    MPI_File file;
    char name[] = "large_typesXXXXXX";
    CHECK(mkstemp(name) >= 0);
    OK(MPI_File_open(self, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    for (int form = 0; form < 2; form++) {
        OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, form ? "external32" : "native", MPI_INFO_NULL));
        REFUSED(MPI_File_write_at_c(file, 0, from, n, type, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
        REFUSED(MPI_File_read_at_c(file, 0, into, n, type, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
        REFUSED(MPI_File_write_all_c(file, from, n, type, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
    }
    /* Converted in memory that there is not. */
    REFUSED(MPI_File_write_at_c(file, 0, from, (MPI_Count)1 << 58, MPI_LONG, MPI_STATUS_IGNORE), MPI_ERR_NO_MEM);
    REFUSED(MPI_File_read_at_c(file, 0, into, (MPI_Count)1 << 58, MPI_LONG, MPI_STATUS_IGNORE), MPI_ERR_NO_MEM);
    OK(MPI_File_close(&file));
}

static void too_long(void)
{
    static char from[64], into[64];
    MPI_Datatype type;
    OK(MPI_Type_contiguous_c((MPI_Count)1 << 40, MPI_CHAR, &type));
    OK(MPI_Type_commit(&type));
    too_long_messages(type);
    too_long_collectives(type);
    too_long_accesses(type);
    OK(MPI_Type_free(&type));

    /* Half as long, for two or more: within each block, not all together. */
    int ranks;
    OK(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
    if (ranks > 1) {
        MPI_Count half = (MPI_Count)1 << 59;
        REFUSED(MPI_Allgather_c(from, half, MPI_DOUBLE, into, half, MPI_DOUBLE, MPI_COMM_WORLD), MPI_ERR_COUNT);
        REFUSED(MPI_Gather_c(from, half, MPI_DOUBLE, into, half, MPI_DOUBLE, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
        REFUSED(MPI_Alltoall_c(from, half, MPI_DOUBLE, into, half, MPI_DOUBLE, MPI_COMM_WORLD), MPI_ERR_COUNT);
        REFUSED(MPI_Scatter_c(from, half, MPI_DOUBLE, into, half, MPI_DOUBLE, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
        REFUSED(MPI_Allreduce_c(MPI_IN_PLACE, into, half, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_COUNT);
        REFUSED(MPI_Reduce_scatter_block_c(MPI_IN_PLACE, into, half, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_TYPE);
    }

    /* A true extent that does not fit, of places that do: bounds of the program hide it. */
    MPI_Count one[] = {1, 1}, far[] = {0, INT64_MAX - 10}, back[] = {0, -100};
    MPI_Datatype wide, hidden, both;
    OK(MPI_Type_create_hindexed_c(2, one, far, MPI_CHAR, &wide));
    OK(MPI_Type_create_resized_c(wide, 0, 4, &hidden));
    CHECK(MPI_Type_create_hindexed_c(2, one, back, hidden, &both) == MPI_ERR_ARG);
    OK(MPI_Type_free(&wide));
    OK(MPI_Type_free(&hidden));
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    sizes();
    contents();
    counting();
    nothing();
    far_places();
    deep();
    mistakes();
    too_long();
    OK(MPI_Finalize());
    return 0;
}
