/* SPDX-License-Identifier: Apache-2.0 */
/* Representations of data in files (MPI 5.0 section 14.5): the bytes of external32, and conversions of the program. */
/* ranks: 1 3 */
#include "files.h"
#include <stdint.h>

static int rank, size, conversions;

static void external(void)
{
    struct {
        long l;
        short s;
    } mine = {-3, 0x1234}, back = {0, 0};
    static const unsigned char wanted[] = {0xff, 0xff, 0xff, 0xfd, 0x12, 0x34};
    unsigned char bytes[6];
    int lengths[] = {1, 1};
    MPI_Aint places[] = {0, sizeof(long)}, extent;
    MPI_Datatype types[] = {MPI_LONG, MPI_SHORT}, type, filetypes[] = {MPI_LONG, MPI_SHORT}, filetype;
    MPI_File file;
    MPI_Status status;
    MPI_Offset at;
    int n;
    OK(MPI_File_open(MPI_COMM_WORLD, file_name(), MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                     &file));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "external32", MPI_INFO_NULL));
    OK(MPI_File_get_type_extent(file, MPI_LONG, &extent));
    CHECK(extent == 4);
    OK(MPI_Type_create_struct(2, lengths, places, types, &type));
    OK(MPI_Type_commit(&type));
    /* In the file displacements are those of the file. */
    places[1] = extent;
    OK(MPI_Type_create_struct(2, lengths, places, filetypes, &filetype));
    OK(MPI_Type_commit(&filetype));
    OK(MPI_File_set_view(file, 0, filetype, filetype, "external32", MPI_INFO_NULL));
    OK(MPI_File_write_at_all(file, rank, &mine, 1, type, &status));
    OK(MPI_Get_count(&status, type, &n));
    CHECK(n == 1);
    OK(MPI_File_get_byte_offset(file, 1, &at));
    CHECK(at == 6);
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_read_at(file, (rank + 1) % size, &back, 1, type, &status));
    OK(MPI_Get_count(&status, type, &n));
    CHECK(n == 1 && back.l == mine.l && back.s == mine.s);
    OK(MPI_File_read_at(file, size, &back, 1, type, &status));
    OK(MPI_Get_count(&status, type, &n));
    CHECK(n == 0);
    OK(MPI_File_set_view(file, 6 * rank, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_all(file, bytes, 6, MPI_BYTE, &status));
    CHECK(memcmp(bytes, wanted, 6) == 0);
    OK(MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "internal", MPI_INFO_NULL));
    OK(MPI_File_write_at_all(file, rank, &mine.l, 1, MPI_LONG, &status));
    OK(MPI_File_read_at_all(file, rank, &back.l, 1, MPI_LONG, &status));
    CHECK(back.l == mine.l);
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&filetype));
    OK(MPI_File_close(&file));
}

/* In the file an int has 8 bytes: its digits. */
static int extent_of(MPI_Datatype type, MPI_Aint *extent, void *extra)
{
    (void)type;
    *extent = *(int *)extra;
    return MPI_SUCCESS;
}

static int to_file(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra)
{
    int i;
    char digits[9];
    (void)type;
    (void)extra;
    for (i = 0; i < count; i++) {
        snprintf(digits, sizeof digits, "%8d", ((int *)user)[position + i]);
        memcpy((char *)file + 8 * i, digits, 8);
    }
    conversions++;
    return MPI_SUCCESS;
}

static int from_file(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra)
{
    int i;
    char digits[9] = "";
    (void)type;
    (void)extra;
    for (i = 0; i < count; i++) {
        memcpy(digits, (char *)file + 8 * i, 8);
        ((int *)user)[position + i] = atoi(digits);
    }
    conversions++;
    return MPI_SUCCESS;
}

static int refuse(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra)
{
    (void)user, (void)type, (void)count, (void)file, (void)position, (void)extra;
    return MPI_ERR_OTHER;
}

static void of_the_program(void)
{
    static int eight = 8, four = 4;
    int mine[3], back[3] = {0, 0, 0}, n, i;
    char text[25] = "";
    MPI_Request request;
    MPI_Status status;
    MPI_Aint extent;
    MPI_File file;
    OK(MPI_Register_datarep("digits", from_file, to_file, extent_of, &eight));
    ERROR(MPI_Register_datarep("digits", from_file, to_file, extent_of, &eight), MPI_ERR_DUP_DATAREP);
    ERROR(MPI_Register_datarep("native", from_file, to_file, extent_of, &eight), MPI_ERR_DUP_DATAREP);
    OK(MPI_Register_datarep("plain", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_of, &four));
    OK(MPI_Register_datarep("refusing", refuse, refuse, extent_of, &four));
    OK(MPI_File_open(MPI_COMM_WORLD, file_name(), MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                     &file));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "digits", MPI_INFO_NULL));
    OK(MPI_File_get_type_extent(file, MPI_INT, &extent));
    CHECK(extent == 8);
    for (i = 0; i < 3; i++)
        mine[i] = 10 * rank + i;
    OK(MPI_File_write_at_all(file, 3 * rank, mine, 3, MPI_INT, &status));
    CHECK(conversions == 1);
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_iread_at(file, 3 * rank, back, 3, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Get_count(&status, MPI_INT, &n));
    CHECK(n == 3 && conversions == 2 && memcmp(back, mine, sizeof mine) == 0);
    memset(back, 0, sizeof back);
    OK(MPI_File_iread_at_all(file, 3 * rank, back, 3, MPI_INT, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(memcmp(back, mine, sizeof mine) == 0);
    OK(MPI_File_set_view(file, 24 * rank, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read(file, text, 24, MPI_BYTE, &status));
    CHECK(atoi(text + 8) == mine[1]);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "plain", MPI_INFO_NULL));
    OK(MPI_File_write_at_all(file, rank, mine, 1, MPI_INT, &status));
    OK(MPI_File_read_at_all(file, rank, back, 1, MPI_INT, &status));
    CHECK(back[0] == mine[0]);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "refusing", MPI_INFO_NULL));
    ERROR(MPI_File_write_at(file, rank, mine, 1, MPI_INT, &status), MPI_ERR_CONVERSION);
    ERROR(MPI_File_read_at(file, rank, mine, 1, MPI_INT, &status), MPI_ERR_CONVERSION);
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    external();
    of_the_program();
    MPI_Finalize();
    return 0;
}
