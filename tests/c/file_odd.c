/* SPDX-License-Identifier: Apache-2.0 */
/* What few programs do with files: a thousand opens, types of 2^31 blocks and more, arguments that differ, garbage as hints, two files in another
   order at each process. */
/* ranks: 1 4 */
#include "files.h"
#include <dirent.h>
#include <limits.h>

static int rank, size;
static const char *base;

static MPI_File opened(const char *name, int amode)
{
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &file));
    return file;
}

static int entries(const char *directory)
{
    int count = 0;
    DIR *all = opendir(directory);
    while (all && readdir(all)) count++;
    if (all) closedir(all);
    return count;
}

/* Neither descriptors nor contexts of communicators are used up. */
static void again_and_again(void)
{
    enum { TIMES = 400 };
    int descriptors = 0, value;
    for (int i = 0; i < TIMES; i++) {
        if (i == TIMES / 4) descriptors = entries("/proc/self/fd");
        MPI_File file = opened(base, MPI_MODE_CREATE | MPI_MODE_RDWR | (i % 2 ? MPI_MODE_DELETE_ON_CLOSE : 0));
        if (i % 50 == 0) {
            OK(MPI_File_write_ordered(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
            OK(MPI_File_read_at_all(file, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
        }
        OK(MPI_File_close(&file));
    }
    /* The library's threads open some for a moment; 300 files that stay open are more. */
    CHECK(entries("/proc/self/fd") < descriptors + 50);
}

/* Hints that are garbage are as none; a site that the job does not have is an error. */
static void hints(void)
{
    static const char *const keys[] = {"cb_nodes", "cb_buffer_size", "romio_cb_write", "romio_ds_read", "striping_unit", "file_perm", "access_style", "nobody knows this"};
    static const char *const values[] = {"-1", "99999999999999999999", "maybe", "0x", " ", "8 8", "0", "\xff"};
    MPI_Info info;
    MPI_File file;
    int value = rank, all[64] = {0};
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
        OK(MPI_Info_create(&info));
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            if (strcmp(keys[k], "file_perm") || strcmp(values[v], "0")) OK(MPI_Info_set(info, keys[k], values[v]));
        OK(MPI_File_open(MPI_COMM_WORLD, base, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &file));
        OK(MPI_File_write_at_all(file, 4 * rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
        OK(MPI_File_sync(file));
        OK(MPI_File_read_at_all(file, 0, all, size, MPI_INT, MPI_STATUS_IGNORE));
        for (int i = 0; i < size; i++) CHECK(all[i] == i);
        OK(MPI_File_close(&file));
        OK(MPI_Info_free(&info));
    }
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "isthmus_site", "no such site"));
    ERROR(MPI_File_open(MPI_COMM_WORLD, base, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file), MPI_ERR_BAD_FILE);
    CHECK(file == MPI_FILE_NULL);
    ERROR(MPI_File_delete(base, info), MPI_ERR_BAD_FILE);
    OK(MPI_Info_free(&info));
}

/* Names of different files are no names of one file; different names of one file are. */
static void different_names(void)
{
    char name[1100];
    MPI_File file;
    if (size == 1) return;
    file = opened(base, MPI_MODE_CREATE | MPI_MODE_RDWR);
    OK(MPI_File_close(&file));
    snprintf(name, sizeof name, "%s of %d", base, rank);
    ERROR(MPI_File_open(MPI_COMM_WORLD, rank == 1 ? name : base, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_NOT_SAME);
    CHECK(file == MPI_FILE_NULL && access(name, F_OK) != 0);
    if (rank == 1) CHECK(link(base, name) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_open(MPI_COMM_WORLD, rank == 1 ? name : base, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_close(&file));
    if (rank == 1) CHECK(unlink(name) == 0);
}

/* Every second byte of a file of 4 GiB, and of one of 16 GiB; little of it is written. */
static void many_blocks(void)
{
    const MPI_Count counts[2] = {INT_MAX, (MPI_Count)1 << 33};
    for (int i = 0; i < 2; i++) {
        MPI_File file = opened(base, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
        MPI_Datatype type;
        MPI_Status status;
        MPI_Offset place, bytes, at = counts[i] - 4 * size + 4 * rank;
        char data[4] = {'a', (char)rank, 'c', 'd'}, back[4];
        int n;
        OK(MPI_Type_vector_c(counts[i], 1, 2, MPI_BYTE, &type));
        OK(MPI_Type_commit(&type));
        OK(MPI_File_set_view(file, 0, MPI_BYTE, type, "native", MPI_INFO_NULL));
        OK(MPI_File_get_byte_offset(file, at, &place));
        CHECK(place == 2 * at);
        OK(MPI_File_write_at_all(file, at, data, 4, MPI_BYTE, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &n));
        CHECK(n == 4);
        OK(MPI_File_sync(file));
        MPI_Barrier(MPI_COMM_WORLD);
        OK(MPI_File_read_at(file, counts[i] - 4 * size + 4 * ((rank + 1) % size), back, 4, MPI_BYTE, &status));
        CHECK(back[0] == 'a' && back[1] == (rank + 1) % size && back[3] == 'd');
        /* The next tile begins where this one ends, without a hole. */
        OK(MPI_File_get_byte_offset(file, counts[i], &place));
        CHECK(place == 2 * counts[i] - 1);
        OK(MPI_File_get_size(file, &bytes));
        CHECK(bytes == 2 * counts[i] - 1);
        OK(MPI_File_close(&file));
        OK(MPI_Type_free(&type));
    }
}

static void different_views(void)
{
    MPI_File file = opened(base, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    if (size > 1) {
        ERROR(MPI_File_set_view(file, 0, rank ? MPI_INT : MPI_SHORT, rank ? MPI_INT : MPI_SHORT, "native", MPI_INFO_NULL), MPI_ERR_NOT_SAME);
        ERROR(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, rank ? "native" : "external32", MPI_INFO_NULL), MPI_ERR_NOT_SAME);
    }
    /* Types of equal extent, and displacements, may differ. */
    OK(MPI_File_set_view(file, 4 * rank, rank % 2 ? MPI_INT : MPI_FLOAT, rank % 2 ? MPI_INT : MPI_FLOAT, "native", MPI_INFO_NULL));
    OK(MPI_File_write_at_all(file, 0, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    int all[64] = {0};
    OK(MPI_File_read_at_all(file, 0, all, size, MPI_INT, MPI_STATUS_IGNORE));
    for (int i = 0; i < size; i++) CHECK(all[i] == i);
    OK(MPI_File_close(&file));
}

static void in_another_order(void)
{
    char name[1100];
    int data[2] = {rank, -rank}, back[2] = {0, 0};
    MPI_File files[2];
    MPI_Request requests[2];
    snprintf(name, sizeof name, "%s other", base);
    files[0] = opened(base, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    files[1] = opened(name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    for (int i = 0; i < 2; i++) {
        int which = (i + rank) % 2;
        OK(MPI_File_iwrite_at_all(files[which], 4 * rank, &data[which], 1, MPI_INT, &requests[i]));
    }
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 2; i++) OK(MPI_File_sync(files[i]));
    for (int i = 0; i < 2; i++) {
        int which = (i + rank / 2) % 2;
        OK(MPI_File_iread_at_all(files[which], 4 * ((rank + 1) % size), &back[which], 1, MPI_INT, &requests[i]));
    }
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(back[0] == (rank + 1) % size && back[1] == -back[0]);
    for (int i = 0; i < 2; i++) OK(MPI_File_close(&files[i]));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    base = file_name();
    again_and_again();
    hints();
    different_names();
    many_blocks();
    different_views();
    in_another_order();
    MPI_Finalize();
    return 0;
}
