/* SPDX-License-Identifier: Apache-2.0 */
/* A file at a site where none of the processes is that open it: everything that is done to a file, through a process there. See mpi-io.sh. */
#include "files.h"
static int rank, size;

static int count_of(MPI_Status *status)
{
    int n;
    OK(MPI_Get_count(status, MPI_INT, &n));
    return n;
}

/* By the processes of one site together. */
static void together(MPI_Comm comm, const char *name)
{
    int me, members, value[4], at, flag;
    MPI_Offset bytes;
    MPI_Status status;
    MPI_Request request;
    MPI_File file;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &members);
    OK(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (at = 0; at < 4; at++) value[at] = 100 * me + at;
    OK(MPI_File_write_at_all(file, 4 * me, value, 4, MPI_INT, &status));
    CHECK(count_of(&status) == 4);
    OK(MPI_File_sync(file));
    MPI_Barrier(comm);
    OK(MPI_File_iread_at(file, 4 * (members - 1 - me), value, 4, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    CHECK(count_of(&status) == 4 && value[3] == 100 * (members - 1 - me) + 3);
    OK(MPI_File_seek_shared(file, -4, MPI_SEEK_END));
    OK(MPI_File_read_ordered(file, value, 1, MPI_INT, &status));
    CHECK(count_of(&status) == 1 && value[0] == 100 * (members - 1) + me);
    OK(MPI_File_get_position_shared(file, &bytes));
    CHECK(bytes == 4 * members - 4 + members);
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_get_atomicity(file, &flag));
    CHECK(flag);
    OK(MPI_File_write_at(file, me, &me, 1, MPI_INT, &status));
    OK(MPI_File_set_atomicity(file, 0));
    OK(MPI_File_preallocate(file, 1000));
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == 1000);
    OK(MPI_File_set_size(file, 8 * members));
    OK(MPI_File_close(&file));
    ERROR(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_FILE_EXISTS);
    OK(MPI_File_open(comm, name, MPI_MODE_RDWR | MPI_MODE_APPEND | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_get_position_shared(file, &bytes));
    CHECK(bytes == 8 * members);
    OK(MPI_File_read_at_all(file, 0, value, 1, MPI_INT, &status));
    CHECK(value[0] == 0);
    OK(MPI_File_close(&file));
    ERROR(MPI_File_open(comm, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
}

/* By each process alone, all at the same time: the same file for all. */
static void alone(const char *name)
{
    int value = rank;
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_write_at(file, (MPI_Offset)sizeof value * rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int other = 0; other < size; other++) {
        OK(MPI_File_read_at(file, (MPI_Offset)sizeof value * other, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
        CHECK(value == other);
    }
    OK(MPI_File_close(&file));
}

/* guests SITE...: files at each of these sites, opened by the first half of the processes, by the second, and by each alone. */
int main(int argc, char **argv)
{
    char name[200];
    MPI_Comm half;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, 0, &half);
    for (int i = 1; i < argc; i++) {
        snprintf(name, sizeof name, "isthmus://%s/tmp/half %d", argv[i], rank < size / 2);
        together(half, name);
        snprintf(name, sizeof name, "isthmus://%s/tmp/each alone", argv[i]);
        alone(name);
    }
    MPI_Comm_free(&half);
    MPI_Finalize();
    return 0;
}
