/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast an MPI library moves data that do not lie in one piece, with nothing but MPI: compiled with each library's own
 * mpicc and driven by isthmus-bench, which interleaves libraries and compares. Two ranks.
 *
 *   datatypes [-t SECONDS] LAYOUT[/BLOCK]:BYTES...
 *
 * BYTES of data each, in blocks of BLOCK bytes (multiples of 8):
 *
 *   vector    blocks with gaps of the same size between them (MPI_Type_vector)
 *   nested    eight blocks with gaps, and a longer gap before the next eight (hvector of a vector)
 *   indexed   blocks with gaps of irregular size (MPI_Type_indexed)
 *   struct    { double, int, gap, double }: 20 bytes of every 32 (MPI_Type_create_struct, resized, many)
 *   xface yface zface   one layer of a 3-D array of doubles that is 16 thick in that direction (MPI_Type_create_subarray);
 *             x is the fastest dimension
 *
 * Three results for each, in microseconds: pack (MPI_Pack), unpack (MPI_Unpack), send (half a ping-pong of the two ranks, from
 * such a buffer into such a buffer). Rank 0 prints a line for each: RESULT pack:LAYOUT/BLOCK BYTES VALUE us.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCHES = 21 };

static int rank;
static double seconds = 0.05;

/* What is moved: `count` elements of `type` at `memory`. */
static struct {
    MPI_Datatype type;
    int count;
    char *memory;
    char *packed;
    int bytes;
} data;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void pack(void)
{
    int position = 0;
    MPI_Pack(data.memory, data.count, data.type, data.packed, data.bytes, &position, MPI_COMM_WORLD);
}

static void unpack(void)
{
    int position = 0;
    MPI_Unpack(data.packed, data.bytes, &position, data.memory, data.count, data.type, MPI_COMM_WORLD);
}

static void ping(void)
{
    if (rank == 0) {
        MPI_Send(data.memory, data.count, data.type, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(data.memory, data.count, data.type, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(data.memory, data.count, data.type, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(data.memory, data.count, data.type, 0, 2, MPI_COMM_WORLD);
    }
}

/* Seconds that `work` takes: the median of batches. `both`: the other rank takes part, as often. */
static double timed(void (*work)(void), int both)
{
    double batch[BATCHES];
    work();
    double start = now();
    work();
    double once = now() - start, n = seconds / BATCHES / (once > 1e-9 ? once : 1e-9);
    int count = n < 1 ? 1 : n > 1e6 ? 1000000 : (int)n;
    if (both)
        MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int b = 0; b < BATCHES; b++) {
        start = now();
        for (int i = 0; i < count; i++)
            work();
        batch[b] = (now() - start) / count;
    }
    qsort(batch, BATCHES, sizeof *batch, ascending);
    return batch[BATCHES / 2];
}

static void *room(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory) {
        fprintf(stderr, "datatypes: no memory for %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return memset(memory, 1, bytes);
}

static void indexed(int blocks, int length)
{
    int *lengths = room((size_t)blocks * sizeof *lengths), *places = room((size_t)blocks * sizeof *places);
    for (int i = 0; i < blocks; i++) {
        lengths[i] = length;
        /* Gaps of half a block to one and a half. */
        places[i] = 2 * i * length + (length > 1 ? i * 7919 / 32 % length : i * 7919 / 32 % 2);
    }
    MPI_Type_indexed(blocks, lengths, places, MPI_DOUBLE, &data.type);
    free(lengths);
    free(places);
}

static void nested(int blocks, int length)
{
    MPI_Datatype inner;
    MPI_Type_vector(8, length, 2 * length, MPI_DOUBLE, &inner);
    MPI_Type_create_hvector(blocks / 8, 1, (MPI_Aint)(8 * 20 * length), inner, &data.type);
    MPI_Type_free(&inner);
}

static void structure(void)
{
    int lengths[] = { 1, 1, 1 };
    MPI_Aint places[] = { 0, 8, 24 };
    MPI_Datatype types[] = { MPI_DOUBLE, MPI_INT, MPI_DOUBLE }, bare;
    MPI_Type_create_struct(3, lengths, places, types, &bare);
    MPI_Type_create_resized(bare, 0, 32, &data.type);
    MPI_Type_free(&bare);
}

/* A layer of an array that is 16 thick in dimension `normal`; 2 is the fastest. */
static void face(int normal, int bytes)
{
    int points = bytes / 8, a = 1, part[3], start[3] = { 0, 0, 0 }, whole[3];
    while (a * a < points)
        a *= 2;
    for (int d = 0, first = 1; d < 3; d++) {
        part[d] = d == normal ? 1 : first ? a : points / a;
        first = d == normal ? first : 0;
        whole[d] = d == normal ? 16 : part[d];
        start[d] = d == normal ? 7 : 0;
    }
    MPI_Type_create_subarray(3, whole, part, start, MPI_ORDER_C, MPI_DOUBLE, &data.type);
}

/* Makes the type; false if there is no such layout. */
static int make(const char *layout, int block, int bytes)
{
    int length = block / 8, blocks = block > 0 ? bytes / block : 0;
    data.count = 1;
    if (!strcmp(layout, "vector"))
        MPI_Type_vector(blocks, length, 2 * length, MPI_DOUBLE, &data.type);
    else if (!strcmp(layout, "nested"))
        nested(blocks, length);
    else if (!strcmp(layout, "indexed"))
        indexed(blocks, length);
    else if (!strcmp(layout, "struct"))
        structure(), data.count = bytes / 20;
    else if (!strcmp(layout, "xface"))
        face(2, bytes);
    else if (!strcmp(layout, "yface"))
        face(1, bytes);
    else if (!strcmp(layout, "zface"))
        face(0, bytes);
    else
        return 0;
    MPI_Type_commit(&data.type);
    return 1;
}

static void report(const char *what, const char *name, int bytes, double value)
{
    if (rank == 0) {
        printf("RESULT %s:%s %d %.6g us\n", what, name, bytes, value * 1e6);
        fflush(stdout);
    }
}

static void run(const char *spec)
{
    char name[64], layout[64];
    int block = 0, bytes = 0;
    MPI_Aint low, extent;
    if (sscanf(spec, "%63[^:]:%d", name, &bytes) != 2 || sscanf(name, "%63[^/]/%d", layout, &block) < 1
        || !make(layout, block, bytes)) {
        if (rank == 0)
            fprintf(stderr, "datatypes: %s is not LAYOUT[/BLOCK]:BYTES\n", spec);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Type_get_extent(data.type, &low, &extent);
    data.memory = room((size_t)extent * (size_t)data.count);
    MPI_Pack_size(data.count, data.type, MPI_COMM_WORLD, &data.bytes);
    data.packed = room((size_t)data.bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        report("pack", name, bytes, timed(pack, 0));
        report("unpack", name, bytes, timed(unpack, 0));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        report("send", name, bytes, timed(ping, 1) / 2);
    } else {
        int count;
        ping();
        ping();
        MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
        for (int i = 0; i < BATCHES * count; i++)
            ping();
    }
    MPI_Type_free(&data.type);
    free(data.memory);
    free(data.packed);
}

int main(int argc, char **argv)
{
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) {
        if (rank == 0)
            fprintf(stderr, "datatypes: needs 2 ranks, not %d\n", size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-t") && i + 1 < argc)
            seconds = atof(argv[++i]);
        else
            run(argv[i]);
    }
    MPI_Finalize();
    return 0;
}
