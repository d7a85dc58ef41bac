/* SPDX-License-Identifier: Apache-2.0 */
/* MPI_Pack_external: the bytes that the standard names (section 14.5.2), sizes, what cannot be packed. */
/* ranks: 1 */
#include "check.h"

static int class_of(int error)
{
    int class;
    MPI_Error_class(error, &class);
    return class;
}

int main(int argc, char **argv)
{
    struct {
        short s;
        double d;
        long l;
        long double x;
    } in = {-2, 1.5, -3, -2.5L}, out = {0, 0, 0, 0};
    static const unsigned char wanted[] = {0xff, 0xfe, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xfd,
                                           0xc0, 0x00, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    int lengths[] = {1, 1, 1, 1};
    MPI_Aint places[4], size, position = 0;
    MPI_Count large, at = 0;
    MPI_Datatype types[] = {MPI_SHORT, MPI_DOUBLE, MPI_LONG, MPI_LONG_DOUBLE}, type;
    unsigned char bytes[64], again[64];
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Get_address(&in.s, &places[0]);
    MPI_Get_address(&in.d, &places[1]);
    MPI_Get_address(&in.l, &places[2]);
    MPI_Get_address(&in.x, &places[3]);
    for (int i = 3; i >= 0; i--) places[i] -= places[0];
    OK(MPI_Type_create_struct(4, lengths, places, types, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Pack_external_size("external32", 1, type, &size));
    CHECK(size == 30);
    OK(MPI_Pack_external_size_c("external32", 3, type, &large));
    CHECK(large == 90);
    OK(MPI_Pack_external("external32", &in, 1, type, bytes, sizeof bytes, &position));
    CHECK(position == 30 && memcmp(bytes, wanted, 30) == 0);
    OK(MPI_Pack_external_c("external32", &in, 1, type, again, sizeof again, &at));
    CHECK(at == 30 && memcmp(again, wanted, 30) == 0);
    position = 0;
    OK(MPI_Unpack_external("external32", bytes, sizeof bytes, &position, &out, 1, type));
    CHECK(position == 30 && out.s == -2 && out.d == 1.5 && out.l == -3 && out.x == -2.5L);
    at = 0;
    out.l = 0;
    OK(MPI_Unpack_external_c("external32", bytes, sizeof bytes, &at, &out, 1, type));
    CHECK(at == 30 && out.l == -3);
    /* Too little room, a value that has no place in four bytes, a representation that does not exist. */
    position = 0;
    CHECK(class_of(MPI_Pack_external("external32", &in, 1, type, bytes, 29, &position)) == MPI_ERR_TRUNCATE && position == 0);
    if (sizeof(long) == 8) {
        long far = (long)1 << (sizeof(long) * 8 - 2);
        int error = MPI_Pack_external("external32", &far, 1, MPI_LONG, bytes, sizeof bytes, &position);
        CHECK(class_of(error) == MPI_ERR_TRUNCATE && position == 0);
    }
    CHECK(class_of(MPI_Pack_external_size("native", 1, type, &size)) == MPI_ERR_UNSUPPORTED_DATAREP);
    OK(MPI_Type_free(&type));
    MPI_Finalize();
    return 0;
}
