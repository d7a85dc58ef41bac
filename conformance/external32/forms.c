/* SPDX-License-Identifier: Apache-2.0 */
/* external32 between implementations: forms write|read FILE KIND. Everything here is MPI 3, so that each of them compiles it.

   read tells what is different. The bytes of each kind follow from MPI 5.0 section 14.5.2. */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 5 };
struct mixed {
    int i;
    double d;
    short s;
};
static const int ints[N] = {0, 1, -2, 0x12345678, -2147483647};
static const short shorts[N] = {0, 1, -2, 0x1234, -32767};
static const long long longs[N] = {0, 1, -2, 0x123456789abcdef0, -9223372036854775807};
static const unsigned unsigneds[N] = {0, 1, 2, 0x89abcdef, 4294967295u};
static const float floats[N] = {0, 1, -2.5f, 1e-20f, 3e38f};
static const double doubles[N] = {0, 1, -2.5, 1e-300, 1e308};
static const char chars[N] = {'a', 'b', 0, 127, -1};
static const struct mixed mixeds[N] = {{1, 2.5, 3}, {-1, -2.5, -3}, {4, 1e300, 5}, {6, 0, 7}, {8, -0.5, 9}};
static const struct kind {
    const char *name;
    const void *data;
    size_t bytes;
} kinds[] = {{"int", ints, sizeof ints},     {"short", shorts, sizeof shorts}, {"longlong", longs, sizeof longs}, {"unsigned", unsigneds, sizeof unsigneds},
             {"float", floats, sizeof floats}, {"double", doubles, sizeof doubles}, {"char", chars, sizeof chars}, {"mixed", mixeds, sizeof mixeds}};

static void check(int error, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (error == MPI_SUCCESS) return;
    MPI_Error_string(error, text, &length);
    printf("%s: %s\n", what, text);
    exit(1);
}

/* In memory (`disk` 0), or as it lies in the file, without holes. */
static MPI_Datatype type_of(const char *name, int disk)
{
    const MPI_Datatype types[] = {MPI_INT, MPI_SHORT, MPI_LONG_LONG, MPI_UNSIGNED, MPI_FLOAT, MPI_DOUBLE, MPI_CHAR};
    for (int i = 0; i < 7; i++)
        if (strcmp(name, kinds[i].name) == 0) return types[i];
    int lengths[] = {1, 1, 1};
    MPI_Aint memory[] = {offsetof(struct mixed, i), offsetof(struct mixed, d), offsetof(struct mixed, s)}, file[] = {0, 4, 12};
    MPI_Datatype parts[] = {MPI_INT, MPI_DOUBLE, MPI_SHORT}, type, whole;
    check(MPI_Type_create_struct(3, lengths, disk ? file : memory, parts, &type), "struct");
    check(MPI_Type_create_resized(type, 0, disk ? 14 : sizeof(struct mixed), &whole), "resized");
    check(MPI_Type_commit(&whole), "commit");
    MPI_Type_free(&type);
    return whole;
}

int main(int argc, char **argv)
{
    MPI_File file;
    MPI_Status status;
    char back[sizeof mixeds];
    int n, bad = 0;
    if (argc != 4) return 2;
    MPI_Init(&argc, &argv);
    const int writes = strcmp(argv[1], "write") == 0;
    const struct kind *kind = kinds;
    while (strcmp(kind->name, argv[3]) != 0) kind++;
    MPI_Datatype memory = type_of(kind->name, 0), disk = type_of(kind->name, 1);
    check(MPI_File_open(MPI_COMM_SELF, argv[2], writes ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY, MPI_INFO_NULL, &file), "open");
    check(MPI_File_set_view(file, 0, disk, disk, "external32", MPI_INFO_NULL), "set_view");
    if (writes) check(MPI_File_write(file, (void *)kind->data, N, memory, &status), "write");
    else {
        memset(back, 0, sizeof back);
        check(MPI_File_read(file, back, N, memory, &status), "read");
        MPI_Get_count(&status, memory, &n);
        if (n != N) printf("%d of %d elements came\n", n, N), bad = 1;
        const struct mixed *mixed = (const struct mixed *)back;
        for (int i = 0; i < N && memory == disk; i++)
            if (memcmp(back + i * kind->bytes / N, (const char *)kind->data + i * kind->bytes / N, kind->bytes / N)) printf("element %d is wrong\n", i), bad = 1;
        for (int i = 0; i < N && memory != disk; i++)
            if (mixed[i].i != mixeds[i].i || mixed[i].d != mixeds[i].d || mixed[i].s != mixeds[i].s) printf("structure %d is wrong\n", i), bad = 1;
    }
    check(MPI_File_close(&file), "close");
    MPI_Finalize();
    return bad;
}
