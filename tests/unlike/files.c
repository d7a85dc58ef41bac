/* SPDX-License-Identifier: Apache-2.0 */
/* Files among machines that represent data differently: external32 has the same bytes whoever wrote it, and everybody reads what it means;
   so does internal. */
#include "types.h"
#include <unistd.h>

#define N 29

static int rank, size;

static MPI_File open_as(const char *name, MPI_Datatype type, const char *form)
{
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, 0, type, type, form, MPI_INFO_NULL));
    return file;
}

/* One writes, independently or with all others; all read. */
static void written_by(int writer, const struct kind *k, const char *name, const char *form, int together)
{
    char *data = memory((size_t)N * k->extent);
    MPI_File file = open_as(name, k->type, form);
    int mine = rank == writer ? N : 0;
    make(k, data, N, 7);
    if (together) OK(MPI_File_write_at_all(file, 0, data, mine, k->type, MPI_STATUS_IGNORE));
    else OK(MPI_File_write_at(file, 0, data, mine, k->type, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_sync(file));
    memset(data, 0, (size_t)N * k->extent);
    MPI_Status status;
    int count;
    OK(MPI_File_read_at(file, 0, data, N, k->type, &status));
    MPI_Get_count(&status, k->type, &count);
    CHECK(count == N);
    must_be(k, data, N, 7, form);
    OK(MPI_File_close(&file));
    free(data);
}

/* The bytes of the file, and how many. */
static int bytes_of(const char *name, unsigned char *bytes, int room)
{
    MPI_Status status;
    int count;
    MPI_File file = open_as(name, MPI_BYTE, "native");
    OK(MPI_File_read_at(file, 0, bytes, room, MPI_BYTE, &status));
    MPI_Get_count(&status, MPI_BYTE, &count);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_close(&file));
    return count;
}

int main(int argc, char **argv)
{
    char name[256];
    static unsigned char first[N * 64], other[N * 64];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
    if (rank == 0) snprintf(name, sizeof name, "/tmp/isthmus-unlike.%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int t = 0; t < KINDS; t++) {
        const struct kind *k = &kinds[t];
        int length = 0;
        for (int machine = 0; machine < 2; machine++) {
            int writer = machine * (size - 1);
            /* external32 has 4 and 2 bytes for these, and they have more to say. */
            if (k->type == MPI_LONG || k->type == MPI_UNSIGNED_LONG || k->type == MPI_WCHAR) continue;
            written_by(writer, k, name, "external32", t % 2);
            int got = bytes_of(name, machine ? other : first, sizeof first);
            if (machine) CHECK(got == length && memcmp(first, other, (size_t)got) == 0);
            length = got;
            if (rank == 0) OK(MPI_File_delete(name, MPI_INFO_NULL));
            MPI_Barrier(MPI_COMM_WORLD);
            written_by(writer, k, name, "internal", t % 2);
            if (rank == 0) OK(MPI_File_delete(name, MPI_INFO_NULL));
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    /* The bytes that the standard says. */
    const int number = 0x01020304;
    MPI_File file = open_as(name, MPI_INT, "external32");
    OK(MPI_File_write_at_all(file, rank, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    CHECK(bytes_of(name, first, sizeof first) == 4 * size);
    for (int i = 0; i < 4 * size; i++) CHECK(first[i] == i % 4 + 1);
    if (rank == 0) OK(MPI_File_delete(name, MPI_INFO_NULL));
    MPI_Finalize();
    if (rank == 0) printf("files of %d datatypes are the same on both machines\n", KINDS);
    return 0;
}
