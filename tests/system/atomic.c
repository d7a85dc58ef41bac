/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic mode at two sites: an access in many pieces, of a process that reaches the file and of one that does not, is never mixed with another
   one. Four processes. See mpi-io.sh. */
#include "files.h"
/* More than one piece of what travels. */
enum { BYTES = 3 << 20, ROUNDS = 3, BLOCK = 1 << 15 };
static int rank, size;
static char *data;
static MPI_File file;
static MPI_Status status;
static MPI_Request request;

static void whole(const char *what)
{
    for (int i = 1; i < BYTES; i++) {
        if (data[i] == data[0]) continue;
        printf("rank %d: %s: byte 0 is %d, byte %d is %d\n", rank, what, data[0], i, data[i]);
        exit(1);
    }
}

static void independent(int form)
{
    switch (form % 3) {
    case 0: OK(MPI_File_write_at(file, 0, data, BYTES, MPI_BYTE, &status)); break;
    case 1:
        OK(MPI_File_iwrite_at(file, 0, data, BYTES, MPI_BYTE, &request));
        OK(MPI_Wait(&request, &status));
        break;
    default:
        OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
        OK(MPI_File_write(file, data, BYTES, MPI_BYTE, &status));
    }
}

static void together(int form)
{
    switch (form % 3) {
    case 0: OK(MPI_File_write_at_all(file, 0, data, BYTES, MPI_BYTE, &status)); break;
    case 1:
        OK(MPI_File_iwrite_at_all(file, 0, data, BYTES, MPI_BYTE, &request));
        OK(MPI_Wait(&request, &status));
        break;
    default:
        OK(MPI_File_write_at_all_begin(file, 0, data, BYTES, MPI_BYTE));
        OK(MPI_File_write_at_all_end(file, data, &status));
    }
}

/* One reads while another one writes: it sees all of a write or nothing of it. */
static void reading(int writer, int reader)
{
    memset(data, 0, BYTES);
    if (rank == writer) independent(0);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 1; rank == writer && round <= ROUNDS; round++) {
        memset(data, round, BYTES);
        independent(round);
    }
    for (data[0] = 0; rank == reader && data[0] != ROUNDS; usleep(1000)) {
        OK(MPI_File_read_at(file, 0, data, BYTES, MPI_BYTE, &status));
        whole("a reader");
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* All write the same bytes at once: those of one of them stay. */
static void writing(void (*write)(int))
{
    for (int round = 0; round < 3; round++) {
        memset(data, 'A' + rank, BYTES);
        MPI_Barrier(MPI_COMM_WORLD);
        write(round);
        MPI_Barrier(MPI_COMM_WORLD);
        OK(MPI_File_read_at(file, 0, data, BYTES, MPI_BYTE, &status));
        whole("writers");
    }
}

/* Whose record it is, which is all there. */
static int record(MPI_Offset at)
{
    OK(MPI_File_read_at(file, at, data, BYTES, MPI_BYTE, &status));
    whole("a record");
    return data[0];
}

/* Records of all processes through the pointer that they share: in any order, each once in each round, and in order of ranks. */
static void pointers(void)
{
    int seen[ROUNDS + 1] = {0}, all[ROUNDS + 1], i;
    MPI_Offset end;
    OK(MPI_File_set_size(file, 0));
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    for (int round = 0; round < ROUNDS; round++) {
        memset(data, size * round + rank, BYTES);
        OK(MPI_File_write_shared(file, data, BYTES, MPI_BYTE, &status));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_get_size(file, &end));
    CHECK(end == (MPI_Offset)BYTES * size * ROUNDS);
    for (i = 0; i < size * ROUNDS; i++) {
        int who = record((MPI_Offset)BYTES * i);
        if (who % size == rank) seen[who / size]++;
    }
    for (i = 0; i < ROUNDS; i++) CHECK(seen[i] == 1);
    /* Together they read each record once. */
    memset(seen, 0, sizeof seen);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    for (int round = 0; round < ROUNDS; round++) {
        OK(MPI_File_read_shared(file, data, BYTES, MPI_BYTE, &status));
        whole("read_shared");
        seen[data[0] / size] += 1 << (4 * (data[0] % size));
    }
    MPI_Allreduce(seen, all, ROUNDS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (i = 0; i < ROUNDS; i++) CHECK(all[i] == 0x1111 >> 4 * (4 - size));
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    for (int round = 0; round < ROUNDS; round++) {
        memset(data, size * round + rank, BYTES);
        OK(MPI_File_write_ordered(file, data, BYTES, MPI_BYTE, &status));
    }
    for (i = 0; i < size * ROUNDS; i++) CHECK(record((MPI_Offset)BYTES * i) == i);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    for (int round = 0; round < ROUNDS; round++) {
        OK(MPI_File_read_ordered(file, data, BYTES, MPI_BYTE, &status));
        whole("read_ordered");
        CHECK(data[0] == size * round + rank);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void opened(MPI_Comm comm, const char *name)
{
    OK(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_set_atomicity(file, 1));
}

/* atomic NAME: of a file of the job. */
int main(int argc, char **argv)
{
    MPI_Datatype strided;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    data = malloc(BYTES);
    OK(MPI_Type_vector(BYTES / BLOCK, BLOCK, 2 * BLOCK, MPI_BYTE, &strided));
    OK(MPI_Type_commit(&strided));
    opened(MPI_COMM_WORLD, argv[1]);
    pointers();
    for (int view = 0; view < 2; view++) {
        reading(size - 1, view);
        reading(view, size - 1);
        writing(independent);
        writing(together);
        OK(MPI_File_set_view(file, 0, MPI_BYTE, strided, "native", MPI_INFO_NULL));
    }
    OK(MPI_File_close(&file));
    /* Each by itself, and with the same file: at the other site one process has it open for all of them. */
    opened(MPI_COMM_SELF, argv[1]);
    writing(independent);
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&strided));
    free(data);
    MPI_Finalize();
    return 0;
}
