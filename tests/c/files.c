/* SPDX-License-Identifier: Apache-2.0 */
/* Files (MPI 5.0 chapter 14): opening, views, every way to read and write, pointers, and the classes of errors. */
#include "files.h"

static int rank, size;

static int count_of(MPI_Status *status, MPI_Datatype type)
{
    int n;
    OK(MPI_Get_count(status, type, &n));
    return n;
}

static MPI_File opened(int amode)
{
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, file_name(), amode, MPI_INFO_NULL, &file));
    return file;
}

static void error_classes(void)
{
    const char *name = file_name();
    char text[MPI_MAX_ERROR_STRING];
    int length, error, value = 7;
    MPI_File file;
    MPI_Datatype back;
    MPI_Status status;
    MPI_Request request;
    int lengths[] = {1, 1}, displacements[] = {4, 0};
    error = MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    ERROR(error, MPI_ERR_NO_SUCH_FILE);
    CHECK(file == MPI_FILE_NULL);
    OK(MPI_Error_string(error, text, &length));
    CHECK(strstr(text, "isthmus test\\n") && strstr(text, "rank 0") && strstr(text, "No such file"));
    ERROR(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    ERROR(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    ERROR(MPI_File_open(MPI_COMM_WORLD, "", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_BAD_FILE);
    ERROR(MPI_File_open(MPI_COMM_WORLD, "/", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_BAD_FILE);
    ERROR(MPI_File_open(MPI_COMM_WORLD, "isthmus://nowhere/x", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_BAD_FILE);
    if (size > 1)
        ERROR(MPI_File_open(MPI_COMM_WORLD, name, rank ? MPI_MODE_RDWR : MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
              MPI_ERR_NOT_SAME);
    ERROR(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    ERROR(MPI_File_close(&file), MPI_ERR_FILE);

    file = opened(MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL);
    {
        MPI_File second;
        ERROR(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_INFO_NULL, &second),
              MPI_ERR_FILE_EXISTS);
    }
    ERROR(MPI_File_set_size(file, -1), MPI_ERR_ARG);
    ERROR(MPI_File_write_at(file, -1, &value, 1, MPI_INT, &status), MPI_ERR_ARG);
    ERROR(MPI_File_write_at(file, 0, &value, -1, MPI_INT, &status), MPI_ERR_COUNT);
    ERROR(MPI_File_write_at(file, 0, &value, 1, MPI_DATATYPE_NULL, &status), MPI_ERR_TYPE);
    ERROR(MPI_File_write_at(file, 0, NULL, 1, MPI_INT, &status), MPI_ERR_BUFFER);
    ERROR(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    ERROR(MPI_File_seek(file, 0, 77), MPI_ERR_ARG);
    ERROR(MPI_File_set_view(file, -5, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), MPI_ERR_DISP);
    ERROR(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), MPI_ERR_DISP);
    ERROR(MPI_File_set_view(file, 0, MPI_INT, MPI_BYTE, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    ERROR(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "sumerian", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
    OK(MPI_Type_indexed(2, lengths, displacements, MPI_INT, &back));
    OK(MPI_Type_commit(&back));
    ERROR(MPI_File_set_view(file, 0, MPI_INT, back, "native", MPI_INFO_NULL), MPI_ERR_IO);
    OK(MPI_Type_free(&back));
    ERROR(MPI_File_read_all_end(file, &value, &status), MPI_ERR_OTHER);
    OK(MPI_File_close(&file));

    file = opened(MPI_MODE_RDONLY);
    ERROR(MPI_File_write_at(file, 0, &value, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
    ERROR(MPI_File_set_size(file, 0), MPI_ERR_READ_ONLY);
    OK(MPI_File_close(&file));
    file = opened(MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
    ERROR(MPI_File_write(file, &value, 1, MPI_INT, &status), MPI_ERR_UNSUPPORTED_OPERATION);
    ERROR(MPI_File_read_shared(file, &value, 1, MPI_INT, &status), MPI_ERR_ACCESS);
    ERROR(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), MPI_ERR_DISP);
    OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        OK(MPI_File_delete(name, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    if (access("/dev/full", W_OK) == 0) {
        OK(MPI_File_open(MPI_COMM_SELF, "/dev/full", MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
        ERROR(MPI_File_write(file, &value, 1, MPI_INT, &status), MPI_ERR_NO_SPACE);
        OK(MPI_File_iwrite(file, &value, 1, MPI_INT, &request));
        ERROR(MPI_Wait(&request, &status), MPI_ERR_NO_SPACE);
        CHECK(request == MPI_REQUEST_NULL);
        OK(MPI_File_close(&file));
    }
}

static int heard, forgives;

/* What a handler makes of the code is what the call returns. */
static void hear(MPI_File *file, int *error, ...)
{
    heard += *error == MPI_ERR_ARG || *file == MPI_FILE_NULL;
    if (forgives)
        *error = MPI_SUCCESS;
}

static void handlers(void)
{
    MPI_Errhandler handler, now;
    MPI_File file;
    MPI_Request request;
    int value = 0;
    OK(MPI_File_get_errhandler(MPI_FILE_NULL, &now));
    CHECK(now == MPI_ERRORS_RETURN);
    OK(MPI_File_create_errhandler(hear, &handler));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, handler));
    ERROR(MPI_File_open(MPI_COMM_WORLD, "/nowhere/at all", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    CHECK(heard == 1);
    file = opened(MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    ERROR(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    CHECK(heard == 2);
    forgives = 1;
    OK(MPI_File_seek(file, -1, MPI_SEEK_SET));
    heard--;
    forgives = 0;
    OK(MPI_File_call_errhandler(file, MPI_ERR_ARG));
    CHECK(heard == 3);
    OK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
    ERROR(MPI_File_iread_at(file, -1, &value, 1, MPI_INT, &request), MPI_ERR_ARG);
    CHECK(heard == 3);
    OK(MPI_File_close(&file));
    OK(MPI_Errhandler_free(&handler));
}

/* Each process sees every size-th block of 3 ints. */
static void views(void)
{
    enum { BLOCK = 3, BLOCKS = 50, ALL = BLOCK * BLOCKS };
    int mine[ALL], back[ALL], n, i, flag;
    MPI_Datatype block, tile, etype, filetype;
    MPI_Offset offset, bytes;
    MPI_Status status;
    MPI_Request requests[2];
    char name[MPI_MAX_DATAREP_STRING];
    MPI_Aint extent;
    MPI_File file = opened(MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_Type_contiguous(BLOCK, MPI_INT, &block));
    OK(MPI_Type_create_resized(block, 0, (MPI_Aint)(size * BLOCK * sizeof(int)), &tile));
    OK(MPI_Type_commit(&tile));
    OK(MPI_File_set_view(file, 8 + (MPI_Offset)(rank * BLOCK * sizeof(int)), MPI_INT, tile, "native", MPI_INFO_NULL));
    for (i = 0; i < ALL; i++)
        mine[i] = rank * 100000 + i;
    OK(MPI_File_write_all(file, mine, ALL, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT) == ALL);
    OK(MPI_File_get_position(file, &offset));
    CHECK(offset == ALL);
    OK(MPI_File_sync(file));
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == 8 + (MPI_Offset)sizeof(int) * ALL * size);
    OK(MPI_File_get_byte_offset(file, BLOCK, &bytes));
    CHECK(bytes == 8 + (MPI_Offset)sizeof(int) * (size + rank) * BLOCK);

    memset(back, 0, sizeof back);
    OK(MPI_File_read_at(file, 1, back, ALL, MPI_INT, &status));
    n = count_of(&status, MPI_INT);
    CHECK(n == ALL - 1 && memcmp(back, mine + 1, n * sizeof(int)) == 0);
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    OK(MPI_File_iread(file, back, 7, MPI_INT, &requests[0]));
    OK(MPI_File_iread(file, back + 7, 5, MPI_INT, &requests[1]));
    OK(MPI_File_get_position(file, &offset));
    CHECK(offset == 12);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(memcmp(back, mine, 12 * sizeof(int)) == 0);
    OK(MPI_File_seek(file, -2, MPI_SEEK_CUR));
    OK(MPI_File_read(file, back, 2, MPI_INT, &status));
    CHECK(back[1] == mine[11]);
    OK(MPI_File_seek(file, 0, MPI_SEEK_END));
    OK(MPI_File_read(file, back, 1, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT) == 0);

    memset(back, 0, sizeof back);
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    OK(MPI_File_iread_all(file, back, ALL / 2, MPI_INT, &requests[0]));
    OK(MPI_File_iread_all(file, back + ALL / 2, ALL - ALL / 2, MPI_INT, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(memcmp(back, mine, sizeof back) == 0);
    memset(back, 0, sizeof back);
    OK(MPI_File_read_at_all_begin(file, 0, back, ALL, MPI_INT));
    ERROR(MPI_File_read_at_all_begin(file, 0, back, ALL, MPI_INT), MPI_ERR_OTHER);
    ERROR(MPI_File_read_all_end(file, back, &status), MPI_ERR_OTHER);
    OK(MPI_File_read_at_all_end(file, back, &status));
    CHECK(count_of(&status, MPI_INT) == ALL && memcmp(back, mine, sizeof back) == 0);

    OK(MPI_File_get_view(file, &offset, &etype, &filetype, name));
    CHECK(offset == 8 + (MPI_Offset)(rank * BLOCK * sizeof(int)) && etype == MPI_INT && strcmp(name, "native") == 0);
    CHECK(filetype != tile);
    OK(MPI_Type_free(&filetype));
    OK(MPI_File_get_type_extent(file, tile, &extent));
    CHECK(extent == (MPI_Aint)(size * BLOCK * sizeof(int)));
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_get_atomicity(file, &flag));
    CHECK(flag);
    OK(MPI_File_write_at_all(file, 0, mine, ALL, MPI_INT, &status));
    OK(MPI_File_read_at_all(file, 0, back, ALL, MPI_INT, &status));
    CHECK(memcmp(back, mine, sizeof back) == 0);
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&block));
    OK(MPI_Type_free(&tile));
}

static void shared_pointer(void)
{
    int values[8], sum = 0, all, i;
    MPI_Offset at;
    MPI_Status status;
    MPI_Request request;
    MPI_File file = opened(MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    /* In order of rank, rank r writes r + 1 ints. */
    for (i = 0; i < 8; i++)
        values[i] = rank;
    OK(MPI_File_write_ordered(file, values, rank + 1, MPI_INT, &status));
    OK(MPI_File_get_position_shared(file, &at));
    CHECK(at == size * (size + 1) / 2);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_read_at(file, rank * (rank + 1) / 2, values, rank + 1, MPI_INT, &status));
    CHECK(values[0] == rank && values[rank] == rank);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    /* Each int is read by exactly one process. */
    for (;;) {
        OK(MPI_File_read_shared(file, values, 1, MPI_INT, &status));
        if (count_of(&status, MPI_INT) == 0)
            break;
        sum += values[0] + 1;
    }
    OK(MPI_Allreduce(&sum, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(all == size * (size + 1) * (2 * size + 1) / 6);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    values[0] = 1000 + rank;
    OK(MPI_File_iwrite_shared(file, values, 1, MPI_INT, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_ordered_begin(file, values, 1, MPI_INT));
    OK(MPI_File_read_ordered_end(file, values, &status));
    OK(MPI_Allreduce(values, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(all == 1000 * size + size * (size - 1) / 2);
    OK(MPI_File_close(&file));
}

static void hints_and_modes(void)
{
    MPI_Info info, used;
    MPI_File file;
    MPI_Group group, world;
    char value[32];
    int flag, amode, same, n = 7;
    MPI_Offset bytes;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "cb_buffer_size", "65536"));
    OK(MPI_Info_set(info, "romio_cb_write", "enable"));
    OK(MPI_Info_set(info, "unheard_of", "yes"));
    amode = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_APPEND;
    OK(MPI_File_open(MPI_COMM_WORLD, file_name(), amode, info, &file));
    OK(MPI_Info_free(&info));
    OK(MPI_File_get_info(file, &used));
    OK(MPI_Info_get(used, "cb_buffer_size", 31, value, &flag));
    CHECK(flag && strcmp(value, "65536") == 0);
    OK(MPI_Info_get(used, "romio_cb_write", 31, value, &flag));
    CHECK(flag && strcmp(value, "enable") == 0);
    OK(MPI_Info_get(used, "unheard_of", 31, value, &flag));
    CHECK(!flag);
    OK(MPI_Info_free(&used));
    OK(MPI_File_get_amode(file, &n));
    CHECK(n == amode);
    OK(MPI_File_get_group(file, &group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_compare(group, world, &same));
    CHECK(same == MPI_IDENT);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&world));
    OK(MPI_File_preallocate(file, 1000));
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == 1000);
    OK(MPI_File_set_size(file, 10));
    OK(MPI_File_close(&file));
    file = opened(MPI_MODE_RDWR | MPI_MODE_APPEND | MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_File_get_position(file, &bytes));
    CHECK(bytes == 10);
    OK(MPI_File_get_position_shared(file, &bytes));
    CHECK(bytes == 10);
    OK(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL && access(file_name(), F_OK) != 0);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    error_classes();
    handlers();
    views();
    shared_pointer();
    hints_and_modes();
    MPI_Finalize();
    return 0;
}
