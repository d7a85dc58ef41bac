/* SPDX-License-Identifier: Apache-2.0 */
/* Derived datatypes: bounds, contents, messages between different layouts, packing, counting, names, attributes.
   ranks: 1 2 3 */
#include "check.h"
#include <stddef.h>

static int rank, size;

/* Sends to the next process and receives from the previous one. */
static MPI_Status around(const void *from, int n, MPI_Datatype sent, void *into, int m, MPI_Datatype received)
{
    MPI_Status status;
    OK(MPI_Sendrecv(from, n, sent, (rank + 1) % size, 7, into, m, received, (rank + size - 1) % size, 7,
                    MPI_COMM_WORLD, &status));
    return status;
}

static void bounds(void)
{
    struct mixed { char c; double d; int i[3]; };
    MPI_Aint places[3] = {offsetof(struct mixed, c), offsetof(struct mixed, d), offsetof(struct mixed, i)};
    int lengths[3] = {1, 1, 3}, bytes;
    MPI_Datatype types[3] = {MPI_CHAR, MPI_DOUBLE, MPI_INT}, mixed, moved;
    MPI_Aint lower, extent;
    MPI_Count large;
    OK(MPI_Type_create_struct(3, lengths, places, types, &mixed));
    OK(MPI_Type_get_extent(mixed, &lower, &extent));
    CHECK(lower == 0 && extent == (MPI_Aint)sizeof(struct mixed));
    OK(MPI_Type_size(mixed, &bytes));
    CHECK(bytes == 1 + 8 + 12);
    OK(MPI_Type_create_resized(mixed, -8, 64, &moved));
    OK(MPI_Type_get_extent(moved, &lower, &extent));
    CHECK(lower == -8 && extent == 64);
    OK(MPI_Type_get_true_extent(moved, &lower, &extent));
    CHECK(lower == 0 && extent == (MPI_Aint)(offsetof(struct mixed, i) + 12));
    OK(MPI_Type_size_c(moved, &large));
    CHECK(large == 21);
    OK(MPI_Type_commit(&mixed));
    struct mixed out[2], in[2];
    memset(out, 0, sizeof out);
    memset(in, 0x55, sizeof in);
    out[1] = (struct mixed){'x', 2.5 + rank, {1, 2, rank}};
    around(out, 2, mixed, in, 2, mixed);
    CHECK(in[1].c == 'x' && in[1].d == 2.5 + (rank + size - 1) % size && in[1].i[2] == (rank + size - 1) % size);
    CHECK(((unsigned char *)&in[0])[1] == 0x55);
    OK(MPI_Type_free(&moved));
    OK(MPI_Type_free(&mixed));
    CHECK(mixed == MPI_DATATYPE_NULL);
}

static void layouts(void)
{
    int matrix[6][8], got[48], i, j, lengths[3] = {1, 2, 3}, places[3] = {0, 5, 20};
    int sizes[2] = {6, 8}, sub[2] = {3, 2}, starts[2] = {1, 4};
    MPI_Datatype column, list, part;
    MPI_Status status;
    for (i = 0; i < 6; i++)
        for (j = 0; j < 8; j++)
            matrix[i][j] = 10 * i + j;
    OK(MPI_Type_vector(6, 1, 8, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    status = around(&matrix[0][3], 1, column, got, 48, MPI_INT);
    OK(MPI_Get_count(&status, MPI_INT, &i));
    CHECK(i == 6);
    for (i = 0; i < 6; i++)
        CHECK(got[i] == 10 * i + 3);
    OK(MPI_Type_indexed(3, lengths, places, MPI_INT, &list));
    OK(MPI_Type_commit(&list));
    memset(got, 0xff, sizeof got);
    int six[6] = {1, 2, 3, 4, 5, 6};
    around(six, 6, MPI_INT, got, 1, list);
    CHECK(got[0] == 1 && got[1] == -1 && got[5] == 2 && got[6] == 3 && got[7] == -1);
    CHECK(got[20] == 4 && got[21] == 5 && got[22] == 6 && got[23] == -1);
    OK(MPI_Type_create_subarray(2, sizes, sub, starts, MPI_ORDER_C, MPI_INT, &part));
    OK(MPI_Type_commit(&part));
    around(matrix, 1, part, got, 6, MPI_INT);
    CHECK(got[0] == 14 && got[1] == 15 && got[2] == 24 && got[5] == 35);
    OK(MPI_Type_free(&part));
    OK(MPI_Type_free(&list));
    OK(MPI_Type_free(&column));
}

static void counting(void)
{
    MPI_Datatype pair;
    MPI_Status status;
    int n, out[6] = {0}, in[6];
    MPI_Count large;
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    status = around(out, 3, MPI_INT, in, 3, pair);
    OK(MPI_Get_count(&status, pair, &n));
    CHECK(n == MPI_UNDEFINED);
    OK(MPI_Get_elements(&status, pair, &n));
    CHECK(n == 3);
    OK(MPI_Get_elements_c(&status, pair, &large));
    CHECK(large == 3);
    OK(MPI_Status_set_elements(&status, MPI_SHORT_INT, 3));
    OK(MPI_Get_elements(&status, MPI_SHORT_INT, &n));
    CHECK(n == 3);
    OK(MPI_Get_count(&status, MPI_BYTE, &n));
    CHECK(n == 2 + 4 + 2);
    OK(MPI_Type_free(&pair));
}

static void packing(void)
{
    char buffer[64];
    int position = 0, size_needed, numbers[4] = {1, 2, 3, 4}, back[4] = {0};
    double d = 1.5, e = 0;
    MPI_Datatype odd;
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &odd));
    OK(MPI_Type_commit(&odd));
    OK(MPI_Pack(numbers, 1, odd, buffer, sizeof buffer, &position, MPI_COMM_WORLD));
    OK(MPI_Pack(&d, 1, MPI_DOUBLE, buffer, sizeof buffer, &position, MPI_COMM_WORLD));
    CHECK(position == 16);
    OK(MPI_Pack_size(1, odd, MPI_COMM_WORLD, &size_needed));
    CHECK(size_needed >= 8);
    char other[64];
    MPI_Status status = around(buffer, position, MPI_PACKED, other, sizeof other, MPI_PACKED);
    OK(MPI_Get_count(&status, MPI_PACKED, &size_needed));
    CHECK(size_needed == 16);
    position = 0;
    OK(MPI_Unpack(other, 16, &position, back, 1, odd, MPI_COMM_WORLD));
    OK(MPI_Unpack(other, 16, &position, &e, 1, MPI_DOUBLE, MPI_COMM_WORLD));
    CHECK(back[0] == 1 && back[1] == 0 && back[2] == 3 && back[3] == 0 && e == 1.5 && position == 16);
    CHECK(MPI_Unpack(other, 16, &position, &e, 1, MPI_DOUBLE, MPI_COMM_WORLD) == MPI_ERR_TRUNCATE);
    /* Packed data may be received as what they are. */
    struct { int a, b; double c; } whole;
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, record;
    int lengths[2] = {2, 1};
    MPI_Aint places[2] = {0, 8};
    OK(MPI_Type_create_struct(2, lengths, places, types, &record));
    OK(MPI_Type_commit(&record));
    around(buffer, 16, MPI_PACKED, &whole, 1, record);
    CHECK(whole.a == 1 && whole.b == 3 && whole.c == 1.5);
    OK(MPI_Type_free(&record));
    OK(MPI_Type_free(&odd));
}

static void making(void)
{
    MPI_Datatype vector, outer, inner[1];
    int integers, addresses, types, combiner, numbers[3];
    MPI_Aint strides[1];
    MPI_Count n[4], counts[3];
    OK(MPI_Type_vector(2, 3, 4, MPI_FLOAT, &vector));
    OK(MPI_Type_create_hvector(5, 1, 100, vector, &outer));
    OK(MPI_Type_get_envelope(outer, &integers, &addresses, &types, &combiner));
    CHECK(integers == 2 && addresses == 1 && types == 1 && combiner == MPI_COMBINER_HVECTOR);
    OK(MPI_Type_get_contents(outer, 3, 1, 1, numbers, strides, inner));
    CHECK(numbers[0] == 5 && numbers[1] == 1 && strides[0] == 100 && inner[0] != MPI_FLOAT);
    OK(MPI_Type_free(&outer));
    OK(MPI_Type_free(&vector));
    OK(MPI_Type_get_contents(inner[0], 3, 0, 1, numbers, NULL, &vector));
    CHECK(numbers[0] == 2 && numbers[1] == 3 && numbers[2] == 4 && vector == MPI_FLOAT);
    OK(MPI_Type_free(&inner[0]));
    OK(MPI_Type_vector_c(2, 3, 4, MPI_FLOAT, &vector));
    OK(MPI_Type_get_envelope_c(vector, &n[0], &n[1], &n[2], &n[3], &combiner));
    CHECK(n[0] == 0 && n[1] == 0 && n[2] == 3 && n[3] == 1 && combiner == MPI_COMBINER_VECTOR);
    OK(MPI_Type_get_contents_c(vector, 0, 0, 3, 1, NULL, NULL, counts, inner));
    CHECK(counts[2] == 4 && inner[0] == MPI_FLOAT);
    CHECK(MPI_Type_get_envelope(vector, &integers, &addresses, &types, &combiner) == MPI_ERR_TYPE);
    OK(MPI_Type_free(&vector));
    OK(MPI_Type_get_envelope(MPI_INT, &integers, &addresses, &types, &combiner));
    CHECK(combiner == MPI_COMBINER_NAMED && types == 0);
}

static int deleted;

static int count_deletion(MPI_Datatype datatype, int key, void *value, void *extra)
{
    (void)datatype, (void)key, (void)extra;
    deleted += *(int *)value;
    return MPI_SUCCESS;
}

static void caching(void)
{
    MPI_Datatype type, copy;
    char name[MPI_MAX_OBJECT_NAME];
    int length, key, flag, value = 5, *found;
    OK(MPI_Type_get_name(MPI_DOUBLE, name, &length));
    CHECK(strcmp(name, "MPI_DOUBLE") == 0 && length == 10);
    OK(MPI_Type_contiguous(3, MPI_INT, &type));
    OK(MPI_Type_get_name(type, name, &length));
    CHECK(length == 0 && name[0] == 0);
    OK(MPI_Type_set_name(type, "triple"));
    OK(MPI_Type_get_name(type, name, &length));
    CHECK(strcmp(name, "triple") == 0);
    OK(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, count_deletion, &key, NULL));
    OK(MPI_Type_set_attr(type, key, &value));
    OK(MPI_Type_dup(type, &copy));
    OK(MPI_Type_get_attr(copy, key, &found, &flag));
    CHECK(flag && found == &value);
    OK(MPI_Type_delete_attr(copy, key));
    OK(MPI_Type_get_attr(copy, key, &found, &flag));
    CHECK(!flag && deleted == 5);
    OK(MPI_Type_free(&copy));
    OK(MPI_Type_free_keyval(&key));
    OK(MPI_Type_free(&type));
    CHECK(deleted == 10);
}

static void mistakes(void)
{
    MPI_Datatype type = MPI_INT;
    int x = 0;
    CHECK(MPI_Type_contiguous(-1, MPI_INT, &type) == MPI_ERR_COUNT && type == MPI_DATATYPE_NULL);
    CHECK(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type) == MPI_ERR_TYPE);
    OK(MPI_Type_contiguous(1, MPI_INT, &type));
    CHECK(MPI_Send(&x, 1, type, MPI_PROC_NULL, 0, MPI_COMM_WORLD) == MPI_ERR_TYPE);
    OK(MPI_Type_commit(&type));
    OK(MPI_Send(&x, 1, type, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Type_free(&type));
    type = MPI_INT;
    CHECK(MPI_Type_free(&type) == MPI_ERR_TYPE);
    OK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &type));
    CHECK(type == MPI_REAL8);
    OK(MPI_Type_get_value_index(MPI_FLOAT, MPI_INT, &type));
    CHECK(type == MPI_FLOAT_INT);
}

static void freed_in_use(void)
{
    int from[4] = {1, 2, 3, 4}, into[4] = {0};
    MPI_Datatype type;
    MPI_Request requests[2];
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Recv_init(into, 1, type, (rank + size - 1) % size, 9, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Send_init(from, 1, type, (rank + 1) % size, 9, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Type_free(&type));
    for (int i = 0; i < 3; i++) {
        from[2] = 3 + i;
        OK(MPI_Startall(2, requests));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK(into[0] == 1 && into[1] == 0 && into[2] == 3 + i && into[3] == 0);
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
}

static void add_pairs(void *in, void *inout, int *n, MPI_Datatype *type)
{
    struct gapped { char c; double d; } *a = in, *b = inout;
    int bytes;
    OK(MPI_Type_size(*type, &bytes));
    CHECK(bytes == 9);
    for (int i = 0; i < *n; i++) {
        b[i].c = (char)(a[i].c + b[i].c);
        b[i].d += a[i].d;
    }
}

static void gaps_stay(void)
{
    struct gapped { char c; double d; } mine[3], sum[3];
    MPI_Aint places[2] = {0, offsetof(struct gapped, d)};
    int lengths[2] = {1, 1};
    MPI_Datatype types[2] = {MPI_CHAR, MPI_DOUBLE}, type;
    MPI_Op ops[2];
    OK(MPI_Type_create_struct(2, lengths, places, types, &type));
    OK(MPI_Type_commit(&type));
    for (int commutes = 0; commutes < 2; commutes++) {
        OK(MPI_Op_create(add_pairs, commutes, &ops[commutes]));
        memset(mine, 0x11, sizeof mine);
        memset(sum, 0x77, sizeof sum);
        for (int i = 0; i < 3; i++)
            mine[i] = (struct gapped){1, rank + i}, ((unsigned char *)&mine[i])[3] = 0x11;
        OK(MPI_Allreduce(mine, sum, 3, type, ops[commutes], MPI_COMM_WORLD));
        for (int i = 0; i < 3; i++) {
            CHECK(sum[i].c == size && sum[i].d == size * i + size * (size - 1) / 2);
            for (int at = 1; at < (int)offsetof(struct gapped, d); at++)
                CHECK(((unsigned char *)&sum[i])[at] == 0x77);
        }
        OK(MPI_Op_free(&ops[commutes]));
    }
    OK(MPI_Type_free(&type));
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bounds();
    layouts();
    counting();
    packing();
    making();
    caching();
    mistakes();
    freed_in_use();
    gaps_stay();
    OK(MPI_Finalize());
    return 0;
}
