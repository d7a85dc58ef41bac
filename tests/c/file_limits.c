/* SPDX-License-Identifier: Apache-2.0 */
/* Files at their limits: offsets that no file has, counts that no memory has, views without data, files that are closed too early, two files at
   once, files and shared memory that may not be so long (ulimit -f). */
/* ranks: 1 4 */
#include "files.h"
#include <limits.h>
#include <stdint.h>
#include <sys/resource.h>

static int rank, size;

static MPI_File opened(int amode)
{
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, file_name(), amode, MPI_INFO_NULL, &file));
    return file;
}

static void offsets(void)
{
    const MPI_Offset last = INT64_MAX;
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    MPI_Offset at;
    MPI_Status status;
    MPI_Request request;
    long value = 1;
    int n;
    ERROR(MPI_File_write_at(file, last, &value, 1, MPI_LONG, &status), MPI_ERR_ARG);
    ERROR(MPI_File_write_at_all(file, last - 7, &value, 1, MPI_LONG, &status), MPI_ERR_ARG);
    ERROR(MPI_File_iwrite_at(file, last, &value, 1, MPI_LONG, &request), MPI_ERR_ARG);
    CHECK(request == MPI_REQUEST_NULL);
    ERROR(MPI_File_read_at(file, INT64_MIN, &value, 1, MPI_LONG, &status), MPI_ERR_ARG);
    OK(MPI_File_read_at(file, last - 8, &value, 1, MPI_LONG, &status));
    OK(MPI_Get_count(&status, MPI_LONG, &n));
    CHECK(n == 0 && value == 1);
    OK(MPI_File_seek(file, last, MPI_SEEK_SET));
    ERROR(MPI_File_seek(file, 1, MPI_SEEK_CUR), MPI_ERR_ARG);
    ERROR(MPI_File_seek(file, INT64_MIN, MPI_SEEK_CUR), MPI_ERR_ARG);
    ERROR(MPI_File_seek(file, INT64_MIN, MPI_SEEK_END), MPI_ERR_ARG);
    OK(MPI_File_get_position(file, &at));
    CHECK(at == last);
    ERROR(MPI_File_write(file, &value, 1, MPI_LONG, &status), MPI_ERR_ARG);
    ERROR(MPI_File_seek_shared(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    OK(MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "native", MPI_INFO_NULL));
    ERROR(MPI_File_write_at(file, last / 4, &value, 1, MPI_LONG, &status), MPI_ERR_ARG);
    ERROR(MPI_File_get_byte_offset(file, last / 4, &at), MPI_ERR_ARG);
    ERROR(MPI_File_set_view(file, last, MPI_LONG, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    OK(MPI_File_get_size(file, &at));
    CHECK(at == 0);
    OK(MPI_File_close(&file));
}

static void counts(void)
{
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    MPI_Status status;
    MPI_Offset bytes;
    char value = 1;
    ERROR(MPI_File_write_at_c(file, 0, &value, INT64_MAX, MPI_LONG, &status), MPI_ERR_TYPE);
    ERROR(MPI_File_write_at_c(file, 0, &value, -1, MPI_BYTE, &status), MPI_ERR_COUNT);
    ERROR(MPI_File_read_at_c(file, 0, &value, INT64_MAX, MPI_LONG, &status), MPI_ERR_TYPE);
    OK(MPI_File_write_at(file, 5, NULL, 0, MPI_BYTE, &status));
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == 0);
    /* What is accessed must be whole etypes. */
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    ERROR(MPI_File_write_at(file, 0, &value, 1, MPI_BYTE, &status), MPI_ERR_TYPE);
    ERROR(MPI_File_read_at(file, 0, &value, 1, MPI_BYTE, &status), MPI_ERR_TYPE);
    OK(MPI_File_close(&file));
}

/* A filetype without data has room for no data. */
static void nothing(void)
{
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    MPI_Datatype none;
    MPI_Status status;
    MPI_Offset at;
    int value = 3;
    OK(MPI_Type_contiguous(0, MPI_INT, &none));
    OK(MPI_Type_commit(&none));
    ERROR(MPI_File_set_view(file, 0, none, none, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    OK(MPI_File_set_view(file, 0, MPI_INT, rank ? none : MPI_INT, "native", MPI_INFO_NULL));
    if (rank)
        ERROR(MPI_File_write_at(file, 0, &value, 1, MPI_INT, &status), MPI_ERR_ARG);
    OK(MPI_File_write_at_all(file, 0, &value, rank == 0, MPI_INT, &status));
    OK(MPI_File_seek(file, 0, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &at));
    CHECK(at == (rank == 0));
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&none));
}

static void unfinished(void)
{
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE), kept = file;
    MPI_Status status;
    int values[2] = {rank, 0};
    OK(MPI_File_write_at_all_begin(file, 4 * rank, values, 1, MPI_INT));
    ERROR(MPI_File_close(&file), MPI_ERR_OTHER);
    CHECK(file == kept);
    OK(MPI_File_write_at_all_end(file, values, &status));
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_read_at_all_begin(file, 4 * (size - 1 - rank), values + 1, 1, MPI_INT));
    OK(MPI_File_read_at_all_end(file, values + 1, &status));
    CHECK(values[1] == size - 1 - rank);
    OK(MPI_File_close(&file));
}

/* Data that are far apart in the file cost no more than others: with little memory, and in the time that a test has. */
static void apart(void)
{
    enum { BLOCKS = 500 };
    static long blocks[BLOCKS];
    const MPI_Offset stride = 1 << 30;
    struct rlimit limit, little;
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    MPI_Datatype long_one, view, pair;
    MPI_Status status;
    int n, lengths[2] = {1, 1};
    MPI_Aint places[2] = {0, (MPI_Aint)1 << 42};
    OK(MPI_File_set_size(file, 10));
    getrlimit(RLIMIT_AS, &limit);
    little = limit;
    if (limit.rlim_max >= (rlim_t)6 << 30) little.rlim_cur = (rlim_t)6 << 30;
    setrlimit(RLIMIT_AS, &little);
    /* Behind the end, one far behind the others. */
    for (int power = 46; power <= 62; power += 16) {
        OK(MPI_File_read_at_all(file, rank == 0 ? (MPI_Offset)1 << power : 0, blocks, 8, MPI_BYTE, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &n));
        CHECK(n == (rank == 0 ? 0 : 8));
        OK(MPI_File_read_at_all(file, rank == size - 1 ? (MPI_Offset)1 << power : 0, blocks, 8, MPI_BYTE, &status));
    }
    /* One writes at both ends, the others between. */
    OK(MPI_Type_create_hindexed(2, lengths, places, MPI_LONG, &pair));
    OK(MPI_Type_commit(&pair));
    OK(MPI_File_set_view(file, 0, MPI_LONG, rank == 0 ? pair : MPI_LONG, "native", MPI_INFO_NULL));
    blocks[0] = rank, blocks[1] = 100 + rank;
    OK(MPI_File_write_at_all(file, rank == 0 ? 0 : 2 * rank, blocks, 2, MPI_LONG, &status));
    OK(MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at_all(file, 0, blocks, 2 * size, MPI_LONG, &status));
    for (int i = 2; i < 2 * size; i++) CHECK(blocks[i] == 100 * (i % 2) + i / 2);
    CHECK(blocks[0] == 0);
    OK(MPI_File_read_at(file, (1LL << 42) / 8, blocks, 1, MPI_LONG, &status));
    CHECK(blocks[0] == 100);
    /* Blocks of all processes side by side, with wide holes between them, more than there are messages about holes. */
    OK(MPI_File_set_size(file, 0));
    OK(MPI_Type_create_resized(MPI_LONG, 0, stride, &long_one));
    OK(MPI_Type_contiguous(1, long_one, &view));
    OK(MPI_Type_commit(&view));
    OK(MPI_File_set_view(file, 8 * rank, MPI_LONG, view, "native", MPI_INFO_NULL));
    for (int i = 0; i < BLOCKS; i++) blocks[i] = 1000 * rank + i;
    OK(MPI_File_write_all(file, blocks, BLOCKS, MPI_LONG, &status));
    OK(MPI_File_set_view(file, 8 * (size - 1 - rank), MPI_LONG, view, "native", MPI_INFO_NULL));
    OK(MPI_File_read_all(file, blocks, BLOCKS, MPI_LONG, &status));
    OK(MPI_Get_count(&status, MPI_LONG, &n));
    CHECK(n == BLOCKS);
    for (int i = 0; i < BLOCKS; i++) CHECK(blocks[i] == 1000 * (size - 1 - rank) + i);
    OK(MPI_File_read_all(file, blocks, BLOCKS, MPI_LONG, &status));
    OK(MPI_Get_count(&status, MPI_LONG, &n));
    CHECK(n == 0);
    setrlimit(RLIMIT_AS, &limit);
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&pair));
    OK(MPI_Type_free(&view));
    OK(MPI_Type_free(&long_one));
}

/* Two files at once, whose collective operations are under way together. */
static void two(void)
{
    char name[1100];
    MPI_File files[2];
    MPI_Request requests[2];
    int value[2] = {rank, -rank}, back[2];
    snprintf(name, sizeof name, "%s second", file_name());
    files[0] = opened(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &files[1]));
    for (int i = 0; i < 2; i++)
        OK(MPI_File_iwrite_at_all(files[i], 4 * rank, &value[i], 1, MPI_INT, &requests[i]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++)
        OK(MPI_File_iread_at_all(files[i], 4 * (size - 1 - rank), &back[i], 1, MPI_INT, &requests[i]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(back[0] == size - 1 - rank && back[1] == -back[0]);
    OK(MPI_File_close(&files[1]));
    OK(MPI_File_close(&files[0]));
}

/* A window that could be made is freed; that of which there is no memory is such an error. */
static void no_memory_or(int code, MPI_Win *window)
{
    if (code == MPI_SUCCESS)
        OK(MPI_Win_free(window));
    else
        ERROR(code, MPI_ERR_NO_MEM);
}

/* What a process may not make so long (ulimit -f) is an error, and no signal. */
static void not_allowed(void)
{
    enum { ALLOWED = 1 << 20 };
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    MPI_Offset bytes;
    MPI_Status status;
    MPI_Win window;
    struct rlimit before, lower;
    char *data = calloc(2, ALLOWED), *memory;
    CHECK(data && getrlimit(RLIMIT_FSIZE, &before) == 0);
    lower = before;
    lower.rlim_cur = ALLOWED;
    CHECK(setrlimit(RLIMIT_FSIZE, &lower) == 0);
    OK(MPI_File_write_at_all(file, ALLOWED - 1, data, rank == 0, MPI_BYTE, &status));
    ERROR(MPI_File_write_at(file, ALLOWED, data, 1, MPI_BYTE, &status), MPI_ERR_NO_SPACE);
    ERROR(MPI_File_write_at(file, 1, data, 2 * ALLOWED, MPI_BYTE, &status), MPI_ERR_NO_SPACE);
    ERROR(MPI_File_set_size(file, ALLOWED + 1), MPI_ERR_NO_SPACE);
    ERROR(MPI_File_preallocate(file, ALLOWED + 1), MPI_ERR_NO_SPACE);
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == ALLOWED);
    OK(MPI_File_set_size(file, ALLOWED / 2));
    OK(MPI_File_close(&file));
    /* Memory that a node shares is a file too. */
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int code = MPI_Win_allocate(4 * ALLOWED, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    no_memory_or(code, &window);
    code = MPI_Win_allocate_shared(4 * ALLOWED, 1, MPI_INFO_NULL, MPI_COMM_SELF, &memory, &window);
    no_memory_or(code, &window);
    OK(MPI_Alloc_mem(4 * ALLOWED, MPI_INFO_NULL, &memory));
    OK(MPI_Free_mem(memory));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    free(data);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    offsets();
    counts();
    nothing();
    unfinished();
    apart();
    two();
    not_allowed();
    MPI_Finalize();
    return 0;
}
