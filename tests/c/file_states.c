/* SPDX-License-Identifier: Apache-2.0 */
/* Files in unusual states: many open at once, open twice, deleted or cut while open, empty, opened once only, read in sequence alone; views that are no
   views. */
/* ranks: 1 4 */
#include "files.h"
#include <sys/resource.h>

#define MANY 300

static int rank, size;
static const char *base;

static MPI_File opened(const char *name, int amode)
{
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &file));
    return file;
}

static int value_at(MPI_File file, int at)
{
    int value = -1, n;
    MPI_Status status;
    OK(MPI_File_read_at(file, (MPI_Offset)sizeof value * at, &value, 1, MPI_INT, &status));
    OK(MPI_Get_count(&status, MPI_INT, &n));
    return n ? value : -2;
}

static void put(MPI_File file, int at, int value)
{
    OK(MPI_File_write_at(file, (MPI_Offset)sizeof value * at, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
}

/* After this whoever writes has written, and whoever reads sees it. */
static void settle(MPI_File file)
{
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_sync(file));
}

static void many(void)
{
    static MPI_File files[MANY];
    char name[1100];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "%s.%d", base, i);
        files[i] = opened(name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
        put(files[i], rank, 1000 * i + rank);
    }
    for (int i = 0; i < MANY; i += 100) {
        settle(files[i]);
        CHECK(value_at(files[i], (rank + 1) % size) == 1000 * i + (rank + 1) % size);
    }
    for (int i = 0; i < MANY; i++) OK(MPI_File_close(&files[(7 * i) % MANY]));
    CHECK(access(name, F_OK) != 0);
}

/* More files than the system lets a process open: an error that says so, at all processes, and what is open works. */
static void too_many(void)
{
    static MPI_File files[MANY];
    struct rlimit limit, less;
    int opens = 0, error = MPI_SUCCESS;
    getrlimit(RLIMIT_NOFILE, &limit);
    less = limit;
    less.rlim_cur = 64;
    setrlimit(RLIMIT_NOFILE, &less);
    while (opens < MANY) {
        error = MPI_File_open(MPI_COMM_SELF, base, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &files[opens]);
        if (error) break;
        opens++;
    }
    setrlimit(RLIMIT_NOFILE, &limit);
    CHECK(opens > 10 && opens < 64);
    CHECK(class_of(error) == MPI_ERR_NO_MEM);
    CHECK(files[opens] == MPI_FILE_NULL);
    for (int i = 0; i < opens; i++) {
        put(files[i], rank, i);
        OK(MPI_File_close(&files[i]));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    /* Processes of other sites have made one there. */
    error = class_of(MPI_File_delete(base, MPI_INFO_NULL));
    CHECK(error == MPI_SUCCESS || error == MPI_ERR_NO_SUCH_FILE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void twice(void)
{
    MPI_File one = opened(base, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_UNIQUE_OPEN);
    MPI_File other = opened(base, MPI_MODE_RDWR);
    int amode;
    OK(MPI_File_get_amode(one, &amode));
    CHECK(amode == (MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_UNIQUE_OPEN));
    put(one, rank, rank + 5);
    settle(one);
    CHECK(value_at(other, (rank + 1) % size) == (rank + 1) % size + 5);
    /* Deleted while it is open: who has it open uses it, and the name is free. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) OK(MPI_File_delete(base, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    ERROR(MPI_File_delete(base, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    put(one, size + rank, 7);
    settle(one);
    CHECK(value_at(other, 2 * size - 1) == 7);
    MPI_File fresh = opened(base, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    CHECK(value_at(fresh, 0) == -2);
    OK(MPI_File_close(&other));
    OK(MPI_File_close(&one));
    /* Deleted before the close that shall delete it: nobody minds. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) OK(MPI_File_delete(base, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    int error = class_of(MPI_File_close(&fresh));
    CHECK(error == MPI_SUCCESS || error == MPI_ERR_NO_SUCH_FILE);
    CHECK(fresh == MPI_FILE_NULL);
}

/* Operations under way while the size changes, and at the moment of the close. */
static void sizes(void)
{
    enum { COUNT = 1 << 16 };
    static int data[COUNT], back[COUNT];
    MPI_File file = opened(base, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    MPI_Request request;
    MPI_Status status;
    MPI_Offset bytes;
    int n;
    for (int i = 0; i < COUNT; i++) data[i] = rank + i;
    OK(MPI_File_iwrite_at(file, (MPI_Offset)rank * sizeof data, data, COUNT, MPI_INT, &request));
    OK(MPI_File_preallocate(file, (MPI_Offset)size * sizeof data));
    OK(MPI_Wait(&request, &status));
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == (MPI_Offset)size * (MPI_Offset)sizeof data);
    settle(file);
    OK(MPI_File_iread_at(file, (MPI_Offset)((rank + 1) % size) * sizeof data, back, COUNT, MPI_INT, &request));
    OK(MPI_File_set_size(file, 0));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Get_count(&status, MPI_INT, &n));
    CHECK(n >= 0 && n <= COUNT);
    for (int i = 0; i < n; i++) CHECK(back[i] == (rank + 1) % size + i);
    CHECK(value_at(file, 0) == -2);
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == 0);
    OK(MPI_File_read_all(file, back, COUNT, MPI_INT, &status));
    OK(MPI_Get_count(&status, MPI_INT, &n));
    CHECK(n == 0);
    OK(MPI_File_read_ordered(file, back, 1, MPI_INT, &status));
    OK(MPI_Get_count(&status, MPI_INT, &n));
    CHECK(n == 0);
    OK(MPI_File_seek(file, 0, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &bytes));
    CHECK(bytes == 0);
    ERROR(MPI_File_set_size(file, -1), MPI_ERR_ARG);
    OK(MPI_File_close(&file));
}

/* Two files with split collective operations that overlap; others of a file are refused meanwhile. */
static void split(void)
{
    MPI_File one = opened(base, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    char name[1100];
    snprintf(name, sizeof name, "%s other", base);
    MPI_File two = opened(name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    MPI_Status status;
    int first = rank, second = -rank, back = 0;
    const MPI_Offset at = (MPI_Offset)sizeof(int) * rank;
    OK(MPI_File_write_at_all_begin(one, at, &first, 1, MPI_INT));
    OK(MPI_File_write_ordered_begin(two, &second, 1, MPI_INT));
    ERROR(MPI_File_write_at_all_begin(one, at, &first, 1, MPI_INT), MPI_ERR_OTHER);
    ERROR(MPI_File_write_at_all_end(two, &second, &status), MPI_ERR_OTHER);
    OK(MPI_File_write_ordered_end(two, &second, &status));
    OK(MPI_File_write_at_all_end(one, &first, &status));
    ERROR(MPI_File_write_at_all_end(one, &first, &status), MPI_ERR_OTHER);
    settle(one);
    settle(two);
    OK(MPI_File_read_at_all_begin(two, at, &back, 1, MPI_INT));
    CHECK(value_at(one, size - 1) == size - 1);
    OK(MPI_File_read_at_all_end(two, &back, &status));
    CHECK(back == -rank);
    OK(MPI_File_close(&one));
    OK(MPI_File_close(&two));
}

static void no_views(void)
{
    MPI_File file = opened(base, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    MPI_Datatype type;
    const int ones[2] = {1, 1};
    const int below[2] = {-1, 1}, falling[2] = {2, 0};
    OK(MPI_Type_indexed(2, ones, below, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    ERROR(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL), MPI_ERR_IO);
    OK(MPI_Type_free(&type));
    OK(MPI_Type_indexed(2, ones, falling, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    ERROR(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL), MPI_ERR_IO);
    OK(MPI_Type_free(&type));
    /* Not committed; an etype without bytes; a filetype of something else. */
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    ERROR(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    OK(MPI_Type_free(&type));
    OK(MPI_Type_contiguous(0, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    ERROR(MPI_File_set_view(file, 0, type, type, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    OK(MPI_Type_free(&type));
    ERROR(MPI_File_set_view(file, 0, MPI_INT, MPI_SHORT, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    /* The view is the one from before. */
    put(file, rank, rank);
    settle(file);
    CHECK(value_at(file, size - 1) == size - 1);
    OK(MPI_File_close(&file));
}

static void in_sequence(void)
{
    MPI_File file = opened(base, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
    MPI_Status status;
    int value = rank, sum = 0, n;
    OK(MPI_File_write_ordered(file, &value, 1, MPI_INT, &status));
    OK(MPI_File_write_shared(file, &value, 1, MPI_INT, &status));
    ERROR(MPI_File_write(file, &value, 1, MPI_INT, &status), MPI_ERR_UNSUPPORTED_OPERATION);
    ERROR(MPI_File_write_at_all(file, 0, &value, 1, MPI_INT, &status), MPI_ERR_UNSUPPORTED_OPERATION);
    ERROR(MPI_File_seek(file, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
    OK(MPI_File_close(&file));
    file = opened(base, MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_read_ordered(file, &value, 1, MPI_INT, &status));
    CHECK(value == rank);
    OK(MPI_File_read_shared(file, &value, 1, MPI_INT, &status));
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2);
    OK(MPI_File_read_shared(file, &value, 1, MPI_INT, &status));
    OK(MPI_Get_count(&status, MPI_INT, &n));
    CHECK(n == 0);
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    base = file_name();
    many();
    too_many();
    twice();
    sizes();
    split();
    no_views();
    in_sequence();
    MPI_Finalize();
    return 0;
}
