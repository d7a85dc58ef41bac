/* SPDX-License-Identifier: Apache-2.0 */
/* One process gives a wrong argument to a collective call on a file: all get its error, nobody waits, the pointers stay where they were, and
   later calls are in step. */
/* ranks: 2 4 */
#include "files.h"
#include <stdint.h>

static int rank, size, bad;
static MPI_File f;
static MPI_Status status;
static MPI_Request request;
static MPI_Datatype raw;
static const MPI_Info no_info = (MPI_Info)MPI_COMM_WORLD;

typedef int form(MPI_Offset at, void *data, int n, MPI_Datatype type);
typedef int end(MPI_File file, void *data, MPI_Status *status);

static int waited(int error) { return error ? error : MPI_Wait(&request, &status); }

#define USED(body) { (void)at; return body; }
static int read_at_all(MPI_Offset at, void *data, int n, MPI_Datatype type) USED(MPI_File_read_at_all(f, at, data, n, type, &status))
static int write_at_all(MPI_Offset at, void *data, int n, MPI_Datatype type) USED(MPI_File_write_at_all(f, at, data, n, type, &status))
static int read_all(MPI_Offset at, void *data, int n, MPI_Datatype type) USED(MPI_File_read_all(f, data, n, type, &status))
static int write_all(MPI_Offset at, void *data, int n, MPI_Datatype type) USED(MPI_File_write_all(f, data, n, type, &status))
static int read_ordered(MPI_Offset at, void *data, int n, MPI_Datatype type) USED(MPI_File_read_ordered(f, data, n, type, &status))
static int write_ordered(MPI_Offset at, void *data, int n, MPI_Datatype type) USED(MPI_File_write_ordered(f, data, n, type, &status))
static int iread_at_all(MPI_Offset at, void *data, int n, MPI_Datatype type) USED(waited(MPI_File_iread_at_all(f, at, data, n, type, &request)))
static int iwrite_at_all(MPI_Offset at, void *data, int n, MPI_Datatype type) USED(waited(MPI_File_iwrite_at_all(f, at, data, n, type, &request)))
static int iread_all(MPI_Offset at, void *data, int n, MPI_Datatype type) USED(waited(MPI_File_iread_all(f, data, n, type, &request)))
static int iwrite_all(MPI_Offset at, void *data, int n, MPI_Datatype type) USED(waited(MPI_File_iwrite_all(f, data, n, type, &request)))
#define SPLIT(begin, end) { (void)at; int error = begin; return error ? error : end; }
static int read_at_split(MPI_Offset at, void *data, int n, MPI_Datatype type) SPLIT(MPI_File_read_at_all_begin(f, at, data, n, type), MPI_File_read_at_all_end(f, data, &status))
static int write_at_split(MPI_Offset at, void *data, int n, MPI_Datatype type) SPLIT(MPI_File_write_at_all_begin(f, at, data, n, type), MPI_File_write_at_all_end(f, data, &status))
static int read_split(MPI_Offset at, void *data, int n, MPI_Datatype type) SPLIT(MPI_File_read_all_begin(f, data, n, type), MPI_File_read_all_end(f, data, &status))
static int write_split(MPI_Offset at, void *data, int n, MPI_Datatype type) SPLIT(MPI_File_write_all_begin(f, data, n, type), MPI_File_write_all_end(f, data, &status))
static int read_ordered_split(MPI_Offset at, void *data, int n, MPI_Datatype type) SPLIT(MPI_File_read_ordered_begin(f, data, n, type), MPI_File_read_ordered_end(f, data, &status))
static int write_ordered_split(MPI_Offset at, void *data, int n, MPI_Datatype type) SPLIT(MPI_File_write_ordered_begin(f, data, n, type), MPI_File_write_ordered_end(f, data, &status))

static const struct { const char *name; form *call; int at; } forms[] = {
    {"read_at_all", read_at_all, 1}, {"write_at_all", write_at_all, 1}, {"read_all", read_all, 0}, {"write_all", write_all, 0},
    {"read_ordered", read_ordered, 0}, {"write_ordered", write_ordered, 0}, {"iread_at_all", iread_at_all, 1}, {"iwrite_at_all", iwrite_at_all, 1},
    {"iread_all", iread_all, 0}, {"iwrite_all", iwrite_all, 0}, {"read_at_all_begin", read_at_split, 1}, {"write_at_all_begin", write_at_split, 1},
    {"read_all_begin", read_split, 0}, {"write_all_begin", write_split, 0}, {"read_ordered_begin", read_ordered_split, 0},
    {"write_ordered_begin", write_ordered_split, 0},
};

static void expect(const char *call, const char *what, int error, int class)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (class_of(error) == class) return;
    if (error) MPI_Error_string(error, text, &length);
    fprintf(stderr, "rank %d: %s with %s: class %d instead of %d: %s\n", rank, call, what, class_of(error), class, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Everybody writes something, and reads what another one has written. */
static void in_step(void)
{
    static int round;
    int value = 100 * ++round + rank, other = (rank + 1) % size;
    OK(MPI_File_write_at_all(f, rank, &value, 1, MPI_INT, &status));
    OK(MPI_File_sync(f));
    OK(MPI_File_read_at_all(f, other, &value, 1, MPI_INT, &status));
    CHECK(value == 100 * round + other);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void accesses(void)
{
    const MPI_Offset far = INT64_MAX / 4;
    int data[4] = {0};
    const struct { const char *what; int class; MPI_Offset at; void *data; int n; MPI_Datatype type; } wrong[] = {
        {"a negative count", MPI_ERR_COUNT, rank, data, -1, MPI_INT},
        {"no datatype", MPI_ERR_TYPE, rank, data, 1, MPI_DATATYPE_NULL},
        {"a datatype that is not committed", MPI_ERR_TYPE, rank, data, 1, raw},
        {"half an etype", MPI_ERR_TYPE, rank, data, 1, MPI_SHORT},
        {"no buffer", MPI_ERR_BUFFER, rank, NULL, 1, MPI_INT},
        {"a negative offset", MPI_ERR_ARG, -1, data, 1, MPI_INT},
        {"an offset that no file has", MPI_ERR_ARG, far, data, 1, MPI_INT},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
            MPI_Offset before[2], after[2];
            if (wrong[k].at != rank && !forms[i].at) continue;
            OK(MPI_File_get_position(f, &before[0]));
            OK(MPI_File_get_position_shared(f, &before[1]));
            MPI_Barrier(MPI_COMM_WORLD);
            int error = bad ? forms[i].call(wrong[k].at, wrong[k].data, wrong[k].n, wrong[k].type) : forms[i].call(rank, data, 1, MPI_INT);
            expect(forms[i].name, wrong[k].what, error, wrong[k].class);
            MPI_Barrier(MPI_COMM_WORLD);
            OK(MPI_File_get_position(f, &after[0]));
            OK(MPI_File_get_position_shared(f, &after[1]));
            CHECK(before[0] == after[0] && before[1] == after[1]);
        }
        in_step();
    }
    expect("iwrite_all", "no request", waited(MPI_File_iwrite_all(f, data, 1, MPI_INT, bad ? NULL : &request)), MPI_ERR_ARG);
    in_step();
}

#define VIEW(disp, etype, filetype, datarep, info) MPI_File_set_view(f, disp, etype, filetype, datarep, info)
/* Other calls: B(WRONG, RIGHT) is wrong at one. */
#define B(wrong, right) (bad ? (wrong) : (right))
#define CALLS(X) \
    X(MPI_ERR_DISP, VIEW(B(-1, 0), MPI_INT, MPI_INT, "native", MPI_INFO_NULL)) \
    X(MPI_ERR_TYPE, VIEW(0, B(MPI_DATATYPE_NULL, MPI_INT), MPI_INT, "native", MPI_INFO_NULL)) \
    X(MPI_ERR_TYPE, VIEW(0, MPI_INT, B(MPI_DATATYPE_NULL, MPI_INT), "native", MPI_INFO_NULL)) \
    X(MPI_ERR_TYPE, VIEW(0, MPI_INT, B(raw, MPI_INT), "native", MPI_INFO_NULL)) \
    X(MPI_ERR_UNSUPPORTED_DATAREP, VIEW(0, MPI_INT, MPI_INT, B("nonsense", "native"), MPI_INFO_NULL)) \
    X(MPI_ERR_NOT_SAME, VIEW(0, MPI_INT, MPI_INT, B("internal", "native"), MPI_INFO_NULL)) \
    X(MPI_ERR_ARG, VIEW(0, MPI_INT, MPI_INT, B(NULL, "native"), MPI_INFO_NULL)) \
    X(MPI_ERR_NOT_SAME, VIEW(0, B(MPI_SHORT, MPI_INT), MPI_INT, "native", MPI_INFO_NULL)) \
    X(MPI_ERR_INFO, VIEW(0, MPI_INT, MPI_INT, "native", B(no_info, MPI_INFO_NULL))) \
    X(MPI_ERR_ARG, MPI_File_set_size(f, B(-1, 100))) \
    X(MPI_ERR_NOT_SAME, MPI_File_set_size(f, B(200, 100))) \
    X(MPI_ERR_ARG, MPI_File_preallocate(f, B(-1, 100))) \
    X(MPI_ERR_NOT_SAME, MPI_File_preallocate(f, B(200, 100))) \
    X(MPI_ERR_INFO, MPI_File_set_info(f, B(no_info, MPI_INFO_NULL))) \
    X(MPI_ERR_NOT_SAME, MPI_File_set_atomicity(f, bad)) \
    X(MPI_ERR_ARG, MPI_File_seek_shared(f, 2, B(99, MPI_SEEK_SET))) \
    X(MPI_ERR_NOT_SAME, MPI_File_seek_shared(f, B(1, 2), MPI_SEEK_SET)) \
    X(MPI_ERR_NOT_SAME, MPI_File_seek_shared(f, 2, B(MPI_SEEK_CUR, MPI_SEEK_SET)))

static void calls(void)
{
#define TRY(class, call) expect(#call, "one wrong argument", call, class), in_step();
    CALLS(TRY)
}

static void opens(const char *name)
{
    const int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
    char site[1200];
    MPI_File other = MPI_FILE_NULL;
    snprintf(site, sizeof site, "isthmus://nowhere/%s", name);
#define OPEN(class, name, mode, info, file) expect("open " #name, #mode, MPI_File_open(MPI_COMM_WORLD, name, mode, info, file), class), in_step();
    OPEN(MPI_ERR_BAD_FILE, B(NULL, name), mode, MPI_INFO_NULL, &other)
    OPEN(MPI_ERR_BAD_FILE, B("", name), mode, MPI_INFO_NULL, &other)
    OPEN(MPI_ERR_BAD_FILE, B(site, name), mode, MPI_INFO_NULL, &other)
    OPEN(MPI_ERR_AMODE, name, B(0, mode), MPI_INFO_NULL, &other)
    OPEN(MPI_ERR_NOT_SAME, name, B(MPI_MODE_RDWR, mode), MPI_INFO_NULL, &other)
    OPEN(MPI_ERR_INFO, name, mode, B(no_info, MPI_INFO_NULL), &other)
    OPEN(MPI_ERR_ARG, name, mode, MPI_INFO_NULL, B(NULL, &other))
    CHECK(other == MPI_FILE_NULL);
}

/* One process has not ended a split operation: the file stays open at all. */
static void closes(void)
{
    MPI_File kept = f;
    int value = rank;
    OK(MPI_File_write_at_all_begin(f, rank, &value, 1, MPI_INT));
    if (!bad) OK(MPI_File_write_at_all_end(f, &value, &status));
    expect("close", "an operation that has not ended", MPI_File_close(&f), MPI_ERR_OTHER);
    CHECK(f == kept);
    expect("begin", "an operation that has not ended", write_split(0, &value, 1, MPI_INT), MPI_ERR_OTHER);
    if (bad) OK(MPI_File_write_at_all_end(f, &value, &status));
    in_step();
    OK(MPI_File_close(&f));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *name = file_name();
    OK(MPI_Type_contiguous(2, MPI_INT, &raw));
    for (int sequential = 0; sequential < 2; sequential++) {
        /* Where accesses are independent, and where processes access the file for each other. */
        MPI_Info info;
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "romio_cb_write", sequential ? "disable" : "enable"));
        OK(MPI_Info_set(info, "romio_cb_read", sequential ? "disable" : "enable"));
        OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &f));
        OK(MPI_Info_free(&info));
        OK(VIEW(0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
        bad = rank == (sequential ? 0 : size - 1);
        accesses();
        calls();
        opens(name);
        closes();
    }
    OK(MPI_Type_free(&raw));
    MPI_Finalize();
    return 0;
}
