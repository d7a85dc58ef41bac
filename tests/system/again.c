/* SPDX-License-Identifier: Apache-2.0 */
/* A name that all have opened is one file for whoever opens it again, or deletes it, alone or in part. See mpi-io.sh. */
#include "files.h"
static int rank, size;

static int value_at(MPI_File file, int at)
{
    int value = -1;
    OK(MPI_File_read_at(file, (MPI_Offset)sizeof value * at, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    return value;
}

static MPI_File opened(MPI_Comm comm, const char *name, int amode)
{
    MPI_File file;
    OK(MPI_File_open(comm, name, amode, MPI_INFO_NULL, &file));
    return file;
}

/* again HOME NAME: the site where the first half of the processes is; both halves are at sites of their own. */
int main(int argc, char **argv)
{
    char named[200], dotted[200];
    const char *name = argv[2];
    int me, i, half;
    MPI_Comm part;
    MPI_Info info;
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    half = rank < size / 2;
    MPI_Comm_split(MPI_COMM_WORLD, half, 0, &part);
    MPI_Comm_rank(part, &me);
    snprintf(named, sizeof named, "isthmus://%s%s", argv[1], name);
    snprintf(dotted, sizeof dotted, "ufs:/.%s", name);

    /* Each process writes alone, under another spelling, what it opened with all. */
    file = opened(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR);
    OK(MPI_File_close(&file));
    file = opened(MPI_COMM_SELF, dotted, MPI_MODE_WRONLY);
    OK(MPI_File_write_at(file, (MPI_Offset)sizeof rank * rank, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    file = opened(MPI_COMM_WORLD, named, MPI_MODE_RDONLY);
    for (i = 0; i < size; i++) CHECK(value_at(file, i) == i);
    OK(MPI_File_close(&file));
    /* Each site by itself, and all with rank 0 at the other site. */
    file = opened(part, name, MPI_MODE_RDONLY);
    for (i = 0; i < size; i++) CHECK(value_at(file, i) == i);
    OK(MPI_File_close(&file));
    MPI_Comm reversed;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    file = opened(reversed, name, MPI_MODE_RDONLY);
    CHECK(value_at(file, size - 1) == size - 1);
    OK(MPI_File_close(&file));
    /* What is deleted where all opened it is gone for all; it is deleted by the last process, at the other site. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) OK(MPI_File_delete(name, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    ERROR(MPI_File_open(MPI_COMM_SELF, named, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    ERROR(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);

    /* A file that one process at the other site has made is what all find; the site in a name goes before. */
    snprintf(dotted, sizeof dotted, "%s 2", name);
    snprintf(named, sizeof named, "isthmus://%s%s 2", argv[1], name);
    if (rank == size - 1) {
        file = opened(MPI_COMM_SELF, dotted, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR);
        OK(MPI_File_write_at(file, 0, &size, 1, MPI_INT, MPI_STATUS_IGNORE));
        OK(MPI_File_close(&file));
    }
    ERROR(MPI_File_open(MPI_COMM_WORLD, named, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    file = opened(MPI_COMM_WORLD, dotted, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    CHECK(value_at(file, 0) == size);
    OK(MPI_File_close(&file));
    if (rank == size - 1) ERROR(MPI_File_delete(dotted, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);

    /* A hint says it for the name, too. */
    snprintf(dotted, sizeof dotted, "%s 3", name);
    MPI_Info_create(&info);
    MPI_Info_set(info, "isthmus_site", argv[1]);
    OK(MPI_File_open(reversed, dotted, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
    MPI_Info_free(&info);
    OK(MPI_File_close(&file));
    file = opened(MPI_COMM_SELF, dotted, MPI_MODE_RDWR);
    OK(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) OK(MPI_File_delete(dotted, MPI_INFO_NULL));
    MPI_Comm_free(&reversed);
    MPI_Comm_free(&part);
    MPI_Finalize();
    return 0;
}
