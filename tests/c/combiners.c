/* SPDX-License-Identifier: Apache-2.0 */
/* Datatypes of every combiner, made by the calls with int and those with MPI_Count, and of two of them: as what they tell of themselves, as
   filetypes in each representation, packed in external32, and as messages.
   ranks: 1 */
#include "check.h"

enum { ALL = 30, ROOM = 1 << 14 };

static MPI_Datatype types[ALL];
static int made;

static void add(MPI_Datatype type)
{
    OK(MPI_Type_commit(&type));
    types[made++] = type;
}

/* All with displacements that do not decrease, so that they make filetypes; `far`: where second blocks are that lie apart. */
static void make(MPI_Datatype old, int far)
{
    int lengths[] = {1, 2}, places[] = {0, 3}, sizes[] = {4, 3}, parts[] = {2, 2}, starts[] = {1, 1}, grid[] = {2, 1};
    int kinds[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, how[] = {1, MPI_DISTRIBUTE_DFLT_DARG};
    MPI_Aint bytes[] = {8, far};
    MPI_Count lengths_c[] = {1, 2}, places_c[] = {0, 3}, bytes_c[] = {8, far}, sizes_c[] = {4, 3}, parts_c[] = {2, 2}, starts_c[] = {1, 1};
    MPI_Datatype two[] = {old, MPI_INT}, type;
    OK(MPI_Type_dup(old, &type)); add(type);
    OK(MPI_Type_contiguous(3, old, &type)); add(type);
    OK(MPI_Type_contiguous_c(3, old, &type)); add(type);
    OK(MPI_Type_vector(2, 1, 2, old, &type)); add(type);
    OK(MPI_Type_vector_c(2, 1, 2, old, &type)); add(type);
    OK(MPI_Type_create_hvector(2, 1, far, old, &type)); add(type);
    OK(MPI_Type_create_hvector_c(2, 1, far, old, &type)); add(type);
    OK(MPI_Type_indexed(2, lengths, places, old, &type)); add(type);
    OK(MPI_Type_indexed_c(2, lengths_c, places_c, old, &type)); add(type);
    OK(MPI_Type_create_hindexed(2, lengths, bytes, old, &type)); add(type);
    OK(MPI_Type_create_hindexed_c(2, lengths_c, bytes_c, old, &type)); add(type);
    OK(MPI_Type_create_indexed_block(2, 2, places, old, &type)); add(type);
    OK(MPI_Type_create_indexed_block_c(2, 2, places_c, old, &type)); add(type);
    OK(MPI_Type_create_hindexed_block(2, 1, bytes, old, &type)); add(type);
    OK(MPI_Type_create_hindexed_block_c(2, 1, bytes_c, old, &type)); add(type);
    OK(MPI_Type_create_struct(2, lengths, bytes, two, &type)); add(type);
    OK(MPI_Type_create_struct_c(2, lengths_c, bytes_c, two, &type)); add(type);
    OK(MPI_Type_create_resized(old, 0, far + 104, &type)); add(type);
    OK(MPI_Type_create_resized_c(old, 0, far + 104, &type)); add(type);
    OK(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, old, &type)); add(type);
    OK(MPI_Type_create_subarray_c(2, sizes_c, parts_c, starts_c, MPI_ORDER_FORTRAN, old, &type)); add(type);
    OK(MPI_Type_create_darray(2, 1, 2, sizes, kinds, how, grid, MPI_ORDER_C, old, &type)); add(type);
    OK(MPI_Type_create_darray_c(2, 0, 2, sizes_c, kinds, how, grid, MPI_ORDER_FORTRAN, old, &type)); add(type);
}

/* Bytes in external32. */
static long there(MPI_Datatype type)
{
    MPI_Count size;
    OK(MPI_Pack_external_size_c("external32", 1, type, &size));
    return (long)size;
}

/* Goes down to the predefined types. */
static int depth(MPI_Datatype type)
{
    MPI_Count integers, addresses, counts, datatypes, larges[64];
    int combiner, numbers[64], below = 0;
    MPI_Aint places[64];
    MPI_Datatype inner[8];
    OK(MPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &datatypes, &combiner));
    if (combiner == MPI_COMBINER_NAMED)
        return 0;
    CHECK(integers <= 64 && addresses <= 64 && counts <= 64 && datatypes >= 1 && datatypes <= 8);
    OK(MPI_Type_get_contents_c(type, integers, addresses, counts, datatypes, numbers, places, larges, inner));
    for (int i = 0; i < datatypes; i++) {
        int here = depth(inner[i]);
        below = here > below ? here : below;
        MPI_Count n[4];
        int one;
        OK(MPI_Type_get_envelope_c(inner[i], n, n + 1, n + 2, n + 3, &one));
        if (one != MPI_COMBINER_NAMED)
            OK(MPI_Type_free(&inner[i]));
    }
    return below + 1;
}

static _Alignas(16) unsigned char memory[ROOM], again[ROOM], packed[ROOM], data[ROOM], back[ROOM];

/* Two elements, in external32 and as a message. */
static void in_memory(MPI_Datatype type)
{
    MPI_Aint at = 0, size = 2 * there(type);
    int own, bytes, place = 0;
    OK(MPI_Type_size(type, &own));
    /* Longs that fit four bytes, ints: small numbers wherever they lie. */
    for (int i = 0; i < ROOM; i += 4)
        memory[i] = (unsigned char)(1 + i / 4 % 100);
    for (int i = 4; i < ROOM; i += 8)
        memset(memory + i, 0, 4);
    OK(MPI_Pack_external("external32", memory, 2, type, packed, ROOM, &at));
    CHECK(at == size);
    memset(again, 0, ROOM);
    at = 0;
    OK(MPI_Unpack_external("external32", packed, ROOM, &at, again, 2, type));
    CHECK(at == size);
    place = 0;
    OK(MPI_Pack(memory, 2, type, data, ROOM, &place, MPI_COMM_SELF));
    CHECK(place == 2 * own);
    bytes = place;
    place = 0;
    OK(MPI_Pack(again, 2, type, back, ROOM, &place, MPI_COMM_SELF));
    CHECK(memcmp(data, back, bytes) == 0);
    memset(again, 0, ROOM);
    OK(MPI_Sendrecv(memory, 2, type, 0, 1, again, 2, type, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    place = 0;
    OK(MPI_Pack(again, 2, type, back, ROOM, &place, MPI_COMM_SELF));
    CHECK(memcmp(data, back, bytes) == 0);
}

/* Bytes through a filetype: what is written comes back, and the second tile lies an extent behind the first one. */
static void as_filetype(MPI_File file, MPI_Datatype type, MPI_Datatype etype, const char *form)
{
    MPI_Count size;
    MPI_Offset first, next, length;
    MPI_Aint lower, extent;
    int n;
    OK(MPI_Type_size_c(type, &size));
    OK(MPI_Type_get_extent(type, &lower, &extent));
    n = 2 * (int)size;
    OK(MPI_File_set_size(file, 0));
    OK(MPI_File_set_view(file, 16, etype, type, form, MPI_INFO_NULL));
    for (int i = 0; i < n; i++)
        data[i] = (unsigned char)(i + 1);
    OK(MPI_File_write_at(file, 0, data, n, MPI_BYTE, MPI_STATUS_IGNORE));
    memset(back, 0, sizeof back);
    OK(MPI_File_read_at(file, 0, back, n, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(memcmp(data, back, n) == 0);
    OK(MPI_File_get_byte_offset(file, 0, &first));
    OK(MPI_File_get_byte_offset(file, size, &next));
    CHECK(next - first == extent);
    OK(MPI_File_get_size(file, &length));
    CHECK(length > first + extent && first >= 16);
}

/* Longs through a filetype of longs: of four bytes in external32. */
static void of_longs(MPI_File file, MPI_Datatype type, const char *form)
{
    MPI_Count size, unit = strcmp(form, "external32") == 0 ? 4 : sizeof(long);
    MPI_Offset before, after;
    MPI_Offset at;
    long longs[128], came[128];
    OK(MPI_Type_size_c(type, &size));
    int n = (int)(size / (MPI_Count)sizeof(long));
    CHECK(n <= 64 && there(type) == n * 4);
    OK(MPI_File_set_size(file, 0));
    OK(MPI_File_set_view(file, 0, MPI_LONG, type, form, MPI_INFO_NULL));
    for (int i = 0; i < 2 * n; i++)
        longs[i] = -i - 1, came[i] = 0;
    OK(MPI_File_write_at_all(file, 0, longs, 2 * n, MPI_LONG, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at_all(file, 0, came, 2 * n, MPI_LONG, MPI_STATUS_IGNORE));
    CHECK(memcmp(longs, came, 2 * n * sizeof(long)) == 0);
    OK(MPI_File_get_byte_offset(file, 2 * n - 1, &at));
    OK(MPI_File_get_size(file, &after));
    CHECK(after == at + unit);
    OK(MPI_File_get_byte_offset(file, 0, &before));
    CHECK(before < at);
    /* The first one where its place is. */
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    unsigned char found[sizeof(long)];
    OK(MPI_File_read_at(file, before, found, (int)unit, MPI_BYTE, MPI_STATUS_IGNORE));
    if (unit == 4)
        CHECK(found[0] == 0xff && found[1] == 0xff && found[2] == 0xff && found[3] == 0xff);
}

int main(int argc, char **argv)
{
    const char *forms[] = {"native", "internal", "external32"};
    MPI_File file;
    char name[] = "combinersXXXXXX";
    OK(MPI_Init(&argc, &argv));
    CHECK(mkstemp(name) >= 0);
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    make(MPI_LONG, 600);
    int simple = made;
    for (int i = 0; i < simple; i++) {
        CHECK(depth(types[i]) == 1);
        in_memory(types[i]);
    }
    for (int form = 0; form < 3; form++)
        for (int i = 0; i < simple; i++)
            if (i != 15 && i != 16) /* Structures have ints too. */
                of_longs(file, types[i], forms[form]);
    /* Bytes have the same size everywhere: each type of a type of bytes. */
    made = 0;
    make(MPI_BYTE, 600);
    MPI_Datatype inner[ALL];
    memcpy(inner, types, sizeof inner);
    for (int of = 0; of < simple; of++) {
        made = 0;
        make(inner[of], 20000);
        for (int i = 0; i < simple; i++) {
            CHECK(depth(types[i]) == 2);
            if (i != 15 && i != 16 && of != 15 && of != 16)
                for (int form = 0; form < 3; form++)
                    as_filetype(file, types[i], MPI_BYTE, forms[form]);
            OK(MPI_Type_free(&types[i]));
        }
    }
    /* A view without a byte has one place, where it begins. */
    MPI_Datatype nothing;
    MPI_Offset place = -1;
    OK(MPI_Type_contiguous(0, MPI_INT, &nothing));
    OK(MPI_Type_commit(&nothing));
    for (int form = 0; form < 3; form++) {
        OK(MPI_File_set_view(file, 40, MPI_INT, nothing, forms[form], MPI_INFO_NULL));
        OK(MPI_File_get_byte_offset(file, 0, &place));
        CHECK(place == 40);
        CHECK(MPI_File_get_byte_offset(file, 1, &place) != MPI_SUCCESS && place == 40);
    }
    OK(MPI_File_close(&file));
    OK(MPI_Finalize());
    printf("every combiner in every representation\n");
    return 0;
}
