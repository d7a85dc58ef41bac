/* SPDX-License-Identifier: Apache-2.0 */
/* ranks: 1 3 4 */
/* Collective access through every kind of view gives what independent access gives: small buffers, so that it takes several rounds; blocks of all
   ranks in turn; tiles that lie between each other, or upon each other where only the first is used; data that overlap, for reading; ranks
   without data. */
#include "files.h"

static int rank, size;

/* A view of this rank, and how much of it is used. */
struct view {
    MPI_Datatype type;
    MPI_Offset displacement;
    int bytes;
};

static MPI_Datatype tiled(int count, const int *lengths, const MPI_Aint *at, MPI_Aint extent)
{
    MPI_Datatype pieces, tile;
    OK(MPI_Type_create_hindexed(count, lengths, at, MPI_BYTE, &pieces));
    OK(MPI_Type_create_resized(pieces, 0, extent, &tile));
    OK(MPI_Type_commit(&tile));
    OK(MPI_Type_free(&pieces));
    return tile;
}

static struct view in_turn(int block, int blocks)
{
    struct view view = {tiled(1, &block, (MPI_Aint[]){0}, (MPI_Aint)block * size), (MPI_Offset)block * rank, block * blocks};
    return view;
}

static struct view between(void)
{
    struct view view = {tiled(2, (int[]){3, 3}, (MPI_Aint[]){0, 33}, 6), rank * 100000, 6 * 2000};
    return view;
}

/* However many ranks there are, no two have the same byte in the first tile. */
static struct view first_only(void)
{
    const MPI_Aint all = 1000 * size;
    struct view view = {tiled(3, (int[]){700, 50, 900}, (MPI_Aint[]){0, all, 2 * all}, 1232), rank * 1000, 1650};
    return view;
}

static struct view twice(void)
{
    struct view view = {tiled(3, (int[]){4000, 2000, 1}, (MPI_Aint[]){0, 100, 200}, 3000), rank * 500, 6001 * 7};
    return view;
}

static MPI_File opened(const char *name, int amode, struct view view)
{
    MPI_File file;
    MPI_Info hints;
    OK(MPI_Info_create(&hints));
    OK(MPI_Info_set(hints, "romio_cb_write", "enable"));
    OK(MPI_Info_set(hints, "romio_cb_read", "enable"));
    OK(MPI_Info_set(hints, "cb_buffer_size", "4096"));
    OK(MPI_Info_set(hints, "striping_unit", "512"));
    OK(MPI_File_open(MPI_COMM_WORLD, name, amode, hints, &file));
    OK(MPI_File_set_view(file, view.displacement, MPI_BYTE, view.type, "native", MPI_INFO_NULL));
    OK(MPI_Info_free(&hints));
    return file;
}

/* All of a file, by everybody. */
static unsigned char *content(MPI_File file, MPI_Offset *length)
{
    unsigned char *all;
    MPI_Status status;
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_get_size(file, length));
    all = calloc(1, *length + 1);
    OK(MPI_File_read_at(file, 0, all, (int)*length, MPI_BYTE, &status));
    return all;
}

static void writing(struct view view, int used)
{
    char name[2][4096];
    unsigned char *data = malloc(view.bytes + 1), *all[2];
    MPI_Offset length[2];
    MPI_File files[2];
    MPI_Status status;
    int n;
    for (int i = 0; i < view.bytes; i++)
        data[i] = (unsigned char)(1 + (i * 7 + rank * 31 + i / 251) % 255);
    for (int i = 0; i < 2; i++) {
        snprintf(name[i], sizeof name[i], "%s.%d", file_name(), i);
        files[i] = opened(name[i], MPI_MODE_CREATE | MPI_MODE_RDWR, view);
    }
    OK(MPI_File_write_at_all(files[0], 0, data, used, MPI_BYTE, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &n));
    CHECK(n == used);
    OK(MPI_File_write_at(files[1], 0, data, used, MPI_BYTE, &status));
    for (int i = 0; i < 2; i++)
        all[i] = content(files[i], &length[i]);
    CHECK(length[0] == length[1] && memcmp(all[0], all[1], length[0]) == 0);
    for (int i = 0; i < 2; i++) {
        free(all[i]);
        OK(MPI_File_close(&files[i]));
    }
    free(data);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        for (int i = 0; i < 2; i++)
            OK(MPI_File_delete(name[i], MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The file ends in the middle of what is read. */
static void reading(struct view view, int used)
{
    unsigned char *data[2] = {calloc(1, view.bytes + 1), calloc(1, view.bytes + 1)};
    unsigned char all[20000];
    char name[4096];
    struct view plain = {MPI_BYTE, 0, 0};
    MPI_File file;
    MPI_Status status[2];
    MPI_Request request;
    int n[2];
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (unsigned char)(i * 13 + i / 256 * 7);
    strcpy(name, file_name());
    file = opened(name, MPI_MODE_CREATE | MPI_MODE_WRONLY, plain);
    if (rank == 0)
        OK(MPI_File_write_at(file, 0, all, sizeof all, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    file = opened(name, MPI_MODE_RDONLY, view);
    OK(MPI_File_read_at(file, 0, data[0], used, MPI_BYTE, &status[0]));
    OK(MPI_File_iread_at_all(file, 0, data[1], used, MPI_BYTE, &request));
    OK(MPI_Wait(&request, &status[1]));
    for (int i = 0; i < 2; i++)
        OK(MPI_Get_count(&status[i], MPI_BYTE, &n[i]));
    CHECK(n[0] == n[1]);
    CHECK(memcmp(data[0], data[1], n[0]) == 0);
    OK(MPI_File_close(&file));
    free(data[0]);
    free(data[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        OK(MPI_File_delete(name, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct view written[] = {in_turn(1000, 33), in_turn(1, 3000), between(), first_only()};
    for (int i = 0; i < 4; i++) {
        writing(written[i], written[i].bytes);
        writing(written[i], rank == size / 2 ? 0 : written[i].bytes / 2);
    }
    struct view read[] = {in_turn(999, 20), between(), first_only(), twice()};
    for (int i = 0; i < 4; i++) {
        reading(read[i], read[i].bytes);
        reading(read[i], rank == size / 2 ? 0 : read[i].bytes / 3);
    }
    for (int i = 0; i < 4; i++) {
        OK(MPI_Type_free(&written[i].type));
        OK(MPI_Type_free(&read[i].type));
    }
    MPI_Finalize();
    return 0;
}
