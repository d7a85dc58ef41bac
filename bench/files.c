/* SPDX-License-Identifier: Apache-2.0 */
/* How quickly files are written and read, in plain MPI, so that every MPI can be asked.
   usage: files NAME MIBIBYTES WAY...
   A WAY is LAYOUT-ACCESS: all processes together move that many MiB.
     LAYOUT  contiguous  one piece for each process
             blocks      64 KiB of each process in turn
             strided     1 KiB of each process in turn
             segmented   1 MiB of each process in turn, one call for each
     ACCESS  alone       MPI_File_write_at, MPI_File_read_at
             all         MPI_File_write_all, MPI_File_read_all
   Prints a line for each: way, then seconds of writing and of reading, from a barrier until the last process has returned; then what has
   been read is compared. MPI_File_sync is not part of the time: disks are not what is measured. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

/* What belongs at a byte of the file: looks like chance, so that links cannot compress it. (Steele, Lea, Flood: SplitMix64.) */
static unsigned char content(long long at)
{
    unsigned long long z = (unsigned long long)at * 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (unsigned char)(z >> 56);
}

static void fail(const char *what, int error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (error)
        MPI_Error_string(error, text, &length);
    fprintf(stderr, "files: rank %d: %s %s\n", rank, what, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void ok(int error, const char *what)
{
    if (error)
        fail(what, error);
}

struct way {
    long long block; /* of one process in turn; 0: all at once */
    int together, calls;
};

static struct way named(const char *name)
{
    struct way way = {0, strstr(name, "-all") != NULL, 0};
    if (!way.together && !strstr(name, "-alone"))
        fail("a way is LAYOUT-alone or LAYOUT-all, not", 0);
    if (strncmp(name, "blocks", 6) == 0)
        way.block = 65536;
    else if (strncmp(name, "strided", 7) == 0)
        way.block = 1024;
    else if (strncmp(name, "segmented", 9) == 0)
        way.block = 1 << 20, way.calls = 1;
    else if (strncmp(name, "contiguous", 10) != 0)
        fail("unknown layout", 0);
    return way;
}

/* Byte of the file of a byte of this process's data. */
static long long place(struct way way, long long mine, long long at)
{
    if (!way.block)
        return rank * mine + at;
    return at / way.block * way.block * size + rank * way.block + at % way.block;
}

static void move(MPI_File file, struct way way, long long mine, char *data, int writes)
{
    long long step = way.calls ? way.block : mine;
    for (long long at = 0; at < mine; at += step) {
        /* Offsets count bytes of the view; calls of the segmented layout have none. */
        MPI_Offset offset = way.calls ? place(way, mine, at) : way.block ? 0 : rank * mine;
        int count = (int)step;
        if (way.together && writes)
            ok(MPI_File_write_at_all(file, offset, data + at, count, MPI_BYTE, MPI_STATUS_IGNORE), "write_at_all");
        else if (way.together)
            ok(MPI_File_read_at_all(file, offset, data + at, count, MPI_BYTE, MPI_STATUS_IGNORE), "read_at_all");
        else if (writes)
            ok(MPI_File_write_at(file, offset, data + at, count, MPI_BYTE, MPI_STATUS_IGNORE), "write_at");
        else
            ok(MPI_File_read_at(file, offset, data + at, count, MPI_BYTE, MPI_STATUS_IGNORE), "read_at");
    }
}

static double timed(MPI_File file, struct way way, long long mine, char *data, int writes)
{
    double begin, took, longest;
    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    move(file, way, mine, data, writes);
    /* Otherwise a process that got its processor late would hide that the others have waited for it. */
    MPI_Barrier(MPI_COMM_WORLD);
    took = MPI_Wtime() - begin;
    MPI_Allreduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longest;
}

static void measure(const char *file_name, long long mine, const char *name)
{
    struct way way = named(name);
    char *data = malloc(mine);
    double written, read;
    MPI_Datatype view;
    MPI_File file;
    if (!data)
        fail("no memory", 0);
    for (long long i = 0; i < mine; i++)
        data[i] = (char)content(place(way, mine, i));
    ok(MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), "open");
    if (way.block && !way.calls) {
        MPI_Type_vector((int)(mine / way.block), (int)way.block, (int)way.block * size, MPI_BYTE, &view);
        MPI_Type_commit(&view);
        ok(MPI_File_set_view(file, rank * way.block, MPI_BYTE, view, "native", MPI_INFO_NULL), "set_view");
        MPI_Type_free(&view);
    }
    written = timed(file, way, mine, data, 1);
    ok(MPI_File_sync(file), "sync");
    memset(data, 0, mine);
    read = timed(file, way, mine, data, 0);
    for (long long i = 0; i < mine; i++)
        if ((unsigned char)data[i] != content(place(way, mine, i)))
            fail("what was read is not what was written", 0);
    ok(MPI_File_close(&file), "close");
    if (rank == 0)
        printf("%s %.6f %.6f\n", name, written, read), fflush(stdout);
    free(data);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 4)
        fail("usage: files NAME MEBIBYTES WAY...", 0);
    long long mine = (atoll(argv[2]) << 20) / size >> 20 << 20;
    for (int i = 3; i < argc; i++)
        measure(argv[1], mine, argv[i]);
    if (rank == 0)
        remove(argv[1]);
    MPI_Finalize();
    return 0;
}
