/* SPDX-License-Identifier: Apache-2.0 */
/* What each call on files says when it fails: every sentence names the file, a rank, and the reason. With an argument it prints the sentences. */
/* ranks: 1 4 */
#include "files.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

static int rank, size, prints, data[4];
static const char *base;
/* The name as errors show it. */
static char shown[2200];
static MPI_Status status;
static MPI_Request request;
static MPI_Offset offset;
static MPI_Datatype types[2];
static char text[MPI_MAX_DATAREP_STRING];

static int waited(int error) { return error ? error : MPI_Wait(&request, &status); }

/* The calls that move data, and how many elements they are given: `R` reads, `W` writes. */
#define DATA(X) \
    X(R, read, MPI_File_read(f, data, n, MPI_INT, &status)) \
    X(R, read_all, MPI_File_read_all(f, data, n, MPI_INT, &status)) \
    X(R, read_at, MPI_File_read_at(f, 0, data, n, MPI_INT, &status)) \
    X(R, read_at_all, MPI_File_read_at_all(f, 0, data, n, MPI_INT, &status)) \
    X(R, read_shared, MPI_File_read_shared(f, data, n, MPI_INT, &status)) \
    X(R, read_ordered, MPI_File_read_ordered(f, data, n, MPI_INT, &status)) \
    X(W, write, MPI_File_write(f, data, n, MPI_INT, &status)) \
    X(W, write_all, MPI_File_write_all(f, data, n, MPI_INT, &status)) \
    X(W, write_at, MPI_File_write_at(f, 0, data, n, MPI_INT, &status)) \
    X(W, write_at_all, MPI_File_write_at_all(f, 0, data, n, MPI_INT, &status)) \
    X(W, write_shared, MPI_File_write_shared(f, data, n, MPI_INT, &status)) \
    X(W, write_ordered, MPI_File_write_ordered(f, data, n, MPI_INT, &status)) \
    X(R, iread, waited(MPI_File_iread(f, data, n, MPI_INT, &request))) \
    X(R, iread_all, waited(MPI_File_iread_all(f, data, n, MPI_INT, &request))) \
    X(R, iread_at, waited(MPI_File_iread_at(f, 0, data, n, MPI_INT, &request))) \
    X(R, iread_at_all, waited(MPI_File_iread_at_all(f, 0, data, n, MPI_INT, &request))) \
    X(R, iread_shared, waited(MPI_File_iread_shared(f, data, n, MPI_INT, &request))) \
    X(W, iwrite, waited(MPI_File_iwrite(f, data, n, MPI_INT, &request))) \
    X(W, iwrite_all, waited(MPI_File_iwrite_all(f, data, n, MPI_INT, &request))) \
    X(W, iwrite_at, waited(MPI_File_iwrite_at(f, 0, data, n, MPI_INT, &request))) \
    X(W, iwrite_at_all, waited(MPI_File_iwrite_at_all(f, 0, data, n, MPI_INT, &request))) \
    X(W, iwrite_shared, waited(MPI_File_iwrite_shared(f, data, n, MPI_INT, &request))) \
    X(R, read_all_begin, split(MPI_File_read_all_begin(f, data, n, MPI_INT), MPI_File_read_all_end, f)) \
    X(R, read_at_all_begin, split(MPI_File_read_at_all_begin(f, 0, data, n, MPI_INT), MPI_File_read_at_all_end, f)) \
    X(R, read_ordered_begin, split(MPI_File_read_ordered_begin(f, data, n, MPI_INT), MPI_File_read_ordered_end, f)) \
    X(W, write_all_begin, split(MPI_File_write_all_begin(f, data, n, MPI_INT), write_all_end, f)) \
    X(W, write_at_all_begin, split(MPI_File_write_at_all_begin(f, 0, data, n, MPI_INT), write_at_all_end, f)) \
    X(W, write_ordered_begin, split(MPI_File_write_ordered_begin(f, data, n, MPI_INT), write_ordered_end, f)) \
    X(R, read_c, MPI_File_read_c(f, data, n, MPI_INT, &status)) \
    X(R, read_all_c, MPI_File_read_all_c(f, data, n, MPI_INT, &status)) \
    X(R, read_at_c, MPI_File_read_at_c(f, 0, data, n, MPI_INT, &status)) \
    X(R, read_at_all_c, MPI_File_read_at_all_c(f, 0, data, n, MPI_INT, &status)) \
    X(R, read_shared_c, MPI_File_read_shared_c(f, data, n, MPI_INT, &status)) \
    X(R, read_ordered_c, MPI_File_read_ordered_c(f, data, n, MPI_INT, &status)) \
    X(W, write_c, MPI_File_write_c(f, data, n, MPI_INT, &status)) \
    X(W, write_all_c, MPI_File_write_all_c(f, data, n, MPI_INT, &status)) \
    X(W, write_at_c, MPI_File_write_at_c(f, 0, data, n, MPI_INT, &status)) \
    X(W, write_at_all_c, MPI_File_write_at_all_c(f, 0, data, n, MPI_INT, &status)) \
    X(W, write_shared_c, MPI_File_write_shared_c(f, data, n, MPI_INT, &status)) \
    X(W, write_ordered_c, MPI_File_write_ordered_c(f, data, n, MPI_INT, &status)) \
    X(R, iread_c, waited(MPI_File_iread_c(f, data, n, MPI_INT, &request))) \
    X(R, iread_all_c, waited(MPI_File_iread_all_c(f, data, n, MPI_INT, &request))) \
    X(R, iread_at_c, waited(MPI_File_iread_at_c(f, 0, data, n, MPI_INT, &request))) \
    X(R, iread_at_all_c, waited(MPI_File_iread_at_all_c(f, 0, data, n, MPI_INT, &request))) \
    X(R, iread_shared_c, waited(MPI_File_iread_shared_c(f, data, n, MPI_INT, &request))) \
    X(W, iwrite_c, waited(MPI_File_iwrite_c(f, data, n, MPI_INT, &request))) \
    X(W, iwrite_all_c, waited(MPI_File_iwrite_all_c(f, data, n, MPI_INT, &request))) \
    X(W, iwrite_at_c, waited(MPI_File_iwrite_at_c(f, 0, data, n, MPI_INT, &request))) \
    X(W, iwrite_at_all_c, waited(MPI_File_iwrite_at_all_c(f, 0, data, n, MPI_INT, &request))) \
    X(W, iwrite_shared_c, waited(MPI_File_iwrite_shared_c(f, data, n, MPI_INT, &request))) \
    X(R, read_all_begin_c, split(MPI_File_read_all_begin_c(f, data, n, MPI_INT), MPI_File_read_all_end, f)) \
    X(R, read_at_all_begin_c, split(MPI_File_read_at_all_begin_c(f, 0, data, n, MPI_INT), MPI_File_read_at_all_end, f)) \
    X(R, read_ordered_begin_c, split(MPI_File_read_ordered_begin_c(f, data, n, MPI_INT), MPI_File_read_ordered_end, f)) \
    X(W, write_all_begin_c, split(MPI_File_write_all_begin_c(f, data, n, MPI_INT), write_all_end, f)) \
    X(W, write_at_all_begin_c, split(MPI_File_write_at_all_begin_c(f, 0, data, n, MPI_INT), write_at_all_end, f)) \
    X(W, write_ordered_begin_c, split(MPI_File_write_ordered_begin_c(f, data, n, MPI_INT), write_ordered_end, f))

/* Calls whose arguments are wrong, whatever the file is like. */
#define WRONG(X) \
    X(set_size, MPI_ERR_ARG, MPI_File_set_size(f, -1)) \
    X(preallocate, MPI_ERR_ARG, MPI_File_preallocate(f, -1)) \
    X(seek, MPI_ERR_ARG, MPI_File_seek(f, 0, 99)) \
    X(seek below, MPI_ERR_ARG, MPI_File_seek(f, -1, MPI_SEEK_SET)) \
    X(seek_shared, MPI_ERR_ARG, MPI_File_seek_shared(f, -1, MPI_SEEK_SET)) \
    X(get_byte_offset, MPI_ERR_ARG, MPI_File_get_byte_offset(f, -1, &offset)) \
    X(set_view disp, MPI_ERR_DISP, MPI_File_set_view(f, -1, MPI_INT, MPI_INT, "native", MPI_INFO_NULL)) \
    X(set_view etype, MPI_ERR_TYPE, MPI_File_set_view(f, 0, MPI_DATATYPE_NULL, MPI_INT, "native", MPI_INFO_NULL)) \
    X(set_view datarep, MPI_ERR_UNSUPPORTED_DATAREP, MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "no such one", MPI_INFO_NULL)) \
    X(get_type_extent, MPI_ERR_TYPE, MPI_File_get_type_extent(f, MPI_DATATYPE_NULL, NULL)) \
    X(get_type_extent_c, MPI_ERR_TYPE, MPI_File_get_type_extent_c(f, MPI_DATATYPE_NULL, NULL)) \
    X(get_size, MPI_ERR_ARG, MPI_File_get_size(f, NULL)) \
    X(get_amode, MPI_ERR_ARG, MPI_File_get_amode(f, NULL)) \
    X(get_info, MPI_ERR_ARG, MPI_File_get_info(f, NULL)) \
    X(get_view, MPI_ERR_ARG, MPI_File_get_view(f, NULL, types, types + 1, text)) \
    X(get_position, MPI_ERR_ARG, MPI_File_get_position(f, NULL)) \
    X(get_position_shared, MPI_ERR_ARG, MPI_File_get_position_shared(f, NULL)) \
    X(get_atomicity, MPI_ERR_ARG, MPI_File_get_atomicity(f, NULL)) \
    X(set_info, MPI_ERR_INFO, MPI_File_set_info(f, (MPI_Info)MPI_COMM_WORLD)) \
    X(write_at offset, MPI_ERR_ARG, MPI_File_write_at(f, -1, data, 1, MPI_INT, &status)) \
    X(read_at_all type, MPI_ERR_TYPE, MPI_File_read_at_all(f, 0, data, 1, MPI_DATATYPE_NULL, &status))

/* Calls that the system refuses when the descriptor is not one to use. */
#define SYSTEM(X) \
    X(set_size, MPI_ERR_IO, MPI_File_set_size(f, 4)) \
    X(preallocate, MPI_ERR_IO, MPI_File_preallocate(f, 4)) \
    X(sync, MPI_ERR_IO, MPI_File_sync(f)) \
    X(set_atomicity, MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_set_atomicity(f, 1))

static int split(int error, int (*end)(MPI_File, void *, MPI_Status *), MPI_File f) { return error ? error : end(f, data, &status); }
static int write_all_end(MPI_File f, void *from, MPI_Status *s) { return MPI_File_write_all_end(f, from, s); }
static int write_at_all_end(MPI_File f, void *from, MPI_Status *s) { return MPI_File_write_at_all_end(f, from, s); }
static int write_ordered_end(MPI_File f, void *from, MPI_Status *s) { return MPI_File_write_ordered_end(f, from, s); }

/* The sentence of an error. */
static void says(const char *call, int error, int class, const char *name, const char *reason)
{
    char sentence[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(error, sentence, &length);
    if (prints && rank == size - 1) printf("%s: %s\n", call, sentence);
    if (class_of(error) == class && strstr(sentence, name) && strstr(sentence, "rank ") && strstr(sentence, reason)) return;
    fprintf(stderr, "rank %d: %s: class %d instead of %d, or without %s or \"%s\": %s\n", rank, call, class_of(error), class, name, reason, sentence);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static MPI_File opened(int amode)
{
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, base, amode, MPI_INFO_NULL, &file));
    return file;
}

/* Behind the library's back the descriptors of the file come to be such that are good for nothing. */
static void spoil(void)
{
    char path[300], target[1200];
    struct dirent *one;
    DIR *all = opendir("/proc/self/fd");
    int useless = open("/", O_PATH);
    CHECK(all && useless >= 0);
    while ((one = readdir(all))) {
        snprintf(path, sizeof path, "/proc/self/fd/%s", one->d_name);
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length <= 0) continue;
        target[length] = 0;
        if (strcmp(target, base) == 0) CHECK(dup2(useless, atoi(one->d_name)) >= 0);
    }
    closedir(all);
    close(useless);
}

enum { R, W };

static void data_calls(void)
{
    int n = 1;
    MPI_File f = opened(MPI_MODE_CREATE | MPI_MODE_WRONLY);
#define REFUSED(way, name, call) if (way == R) says(#name, call, MPI_ERR_ACCESS, shown, "MPI_MODE_WRONLY");
    DATA(REFUSED)
    OK(MPI_File_close(&f));
    f = opened(MPI_MODE_RDONLY);
#undef REFUSED
#define REFUSED(way, name, call) if (way == W) says(#name, call, MPI_ERR_READ_ONLY, shown, "MPI_MODE_RDONLY");
    DATA(REFUSED)
    OK(MPI_File_close(&f));
    f = opened(MPI_MODE_RDWR);
    n = -1;
#define COUNTED(way, name, call) says(#name, call, MPI_ERR_COUNT, shown, "argument count is -1");
    DATA(COUNTED)
    n = 1;
    spoil();
#define SPOILT(way, name, call) says(#name, call, MPI_ERR_IO, shown, "Bad file descriptor");
    DATA(SPOILT)
    OK(MPI_File_close(&f));
}

static void other_calls(void)
{
    MPI_File f = opened(MPI_MODE_RDWR);
#define MISTAKEN(name, class, call) says(#name, call, class, shown, "argument ");
    WRONG(MISTAKEN)
    says("get_group", MPI_File_get_group(f, NULL), MPI_ERR_ARG, shown, "argument group is");
    says("write_all_end", MPI_File_write_all_end(f, data, &status), MPI_ERR_OTHER, shown, "MPI_File_write_all_begin");
    if (size > 1) {
        says("set_size differs", MPI_File_set_size(f, 4 + rank), MPI_ERR_NOT_SAME, shown, "argument size");
        says("set_atomicity differs", MPI_File_set_atomicity(f, rank == 1), MPI_ERR_NOT_SAME, shown, "argument flag");
        says("seek_shared differs", MPI_File_seek_shared(f, rank, MPI_SEEK_SET), MPI_ERR_NOT_SAME, shown, "argument offset");
        /* All hear what is wrong at one. */
        says("set_view of one", MPI_File_set_view(f, 0, rank == 1 ? MPI_DATATYPE_NULL : MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_TYPE, shown, "argument etype");
    }
    spoil();
#define USELESS(name, class, call) says(#name, call, class, shown, "Bad file descriptor");
    SYSTEM(USELESS)
    OK(MPI_File_close(&f));
}

static int heard;
static void hears(MPI_File *file, int *code, ...)
{
    CHECK(*file != MPI_FILE_NULL);
    CHECK(class_of(*code) != MPI_SUCCESS);
    heard++;
}

/* Of a close that fails the file's own handler hears, and the handle is none any more; while an operation is to be ended it stays. */
static void closes(void)
{
    MPI_File f = opened(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE), kept = f;
    MPI_Errhandler handler;
    OK(MPI_File_create_errhandler(hears, &handler));
    OK(MPI_File_set_errhandler(f, handler));
    OK(MPI_File_write_all_begin(f, data, 1, MPI_INT));
    says("close too early", MPI_File_close(&f), MPI_ERR_OTHER, shown, "write_all");
    CHECK(f == kept && heard == 1);
    OK(MPI_File_write_all_end(f, data, &status));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) CHECK(unlink(base) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    says("close", MPI_File_close(&f), MPI_ERR_NO_SUCH_FILE, shown, "cannot delete");
    CHECK(f == MPI_FILE_NULL && heard == 2);
    OK(MPI_Errhandler_free(&handler));
}

static void opens(void)
{
    MPI_File f;
    says("open", MPI_File_open(MPI_COMM_WORLD, base, MPI_MODE_RDWR, MPI_INFO_NULL, &f), MPI_ERR_NO_SUCH_FILE, shown, "No such file");
    CHECK(f == MPI_FILE_NULL);
    says("open of no mode", MPI_File_open(MPI_COMM_WORLD, base, 0, MPI_INFO_NULL, &f), MPI_ERR_AMODE, shown, "argument amode");
    says("open of a directory", MPI_File_open(MPI_COMM_WORLD, "/proc", MPI_MODE_RDONLY, MPI_INFO_NULL, &f), MPI_ERR_BAD_FILE, "\"/proc\"", "directory");
    says("open at no site", MPI_File_open(MPI_COMM_WORLD, "isthmus://nowhere/x y", MPI_MODE_RDONLY, MPI_INFO_NULL, &f), MPI_ERR_BAD_FILE, "nowhere/x y\"", "site named");
    says("delete", MPI_File_delete(base, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE, shown, "No such file");
    says("delete at no site", MPI_File_delete("isthmus://nowhere/x y", MPI_INFO_NULL), MPI_ERR_BAD_FILE, "nowhere/x y\"", "site named");
    if (size == 1) return;
    says("open differs", MPI_File_open(MPI_COMM_WORLD, base, rank == 1 ? MPI_MODE_RDONLY : MPI_MODE_RDWR, MPI_INFO_NULL, &f), MPI_ERR_NOT_SAME, shown, "argument amode");
    says("open of no mode at one", MPI_File_open(MPI_COMM_WORLD, base, rank == 1 ? 0 : MPI_MODE_RDWR, MPI_INFO_NULL, &f), MPI_ERR_AMODE, shown, "argument amode");
}

/* The system's write, which the library calls: from now on it is over quota, if that is so. */
static volatile int over_quota;
ssize_t pwrite64(int descriptor, const void *from, size_t bytes, off64_t at)
{
    if (!over_quota) return syscall(SYS_pwrite64, descriptor, from, bytes, at);
    errno = EDQUOT;
    return -1;
}

static void quota(void)
{
    MPI_File f = opened(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    over_quota = 1;
    says("write over quota", MPI_File_write_at(f, 4 * rank, data, 1, MPI_INT, &status), MPI_ERR_QUOTA, shown, "quota exceeded");
    says("write_all over quota", MPI_File_write_at_all(f, 4 * rank, data, 1, MPI_INT, &status), MPI_ERR_QUOTA, shown, "quota exceeded");
    says("iwrite over quota", waited(MPI_File_iwrite(f, data, 1, MPI_INT, &request)), MPI_ERR_QUOTA, shown, "quota exceeded");
    MPI_Barrier(MPI_COMM_WORLD);
    over_quota = 0;
    OK(MPI_File_close(&f));
}

/* The system's close, which says so late that the disk has no room for what was written, as network file systems do. */
static volatile int close_fails;
int close(int descriptor)
{
    char path[64], target[1200];
    ssize_t length = 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    if (close_fails) length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = 0;
    int done = (int)syscall(SYS_close, descriptor);
    if (!close_fails || strncmp(target, base, strlen(base)) != 0) return done;
    errno = EDQUOT;
    return -1;
}

static void late(int amode)
{
    MPI_File f = opened(MPI_MODE_CREATE | MPI_MODE_RDWR | amode);
    OK(MPI_File_write_at_all(f, 4 * rank, data, 1, MPI_INT, &status));
    close_fails = rank == size - 1;
    says("close over quota", MPI_File_close(&f), MPI_ERR_QUOTA, shown, "cannot close");
    CHECK(f == MPI_FILE_NULL);
    close_fails = 0;
}

/* A disk that is full, where the system has one to try. */
static void full(void)
{
    MPI_File f;
    if (MPI_File_open(MPI_COMM_WORLD, "/dev/full", MPI_MODE_WRONLY, MPI_INFO_NULL, &f) != MPI_SUCCESS) return;
    says("write to a full disk", MPI_File_write(f, data, 1, MPI_INT, &status), MPI_ERR_NO_SPACE, "\"/dev/full\"", "No space left");
    says("write_all to a full disk", MPI_File_write_ordered(f, data, 1, MPI_INT, &status), MPI_ERR_NO_SPACE, "\"/dev/full\"", "No space left");
    OK(MPI_File_close(&f));
}

int main(int argc, char **argv)
{
    (void)argv;
    prints = argc > 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    base = file_name();
    char *out = shown;
    *out++ = '"';
    for (const char *in = base; *in; in++) out += sprintf(out, *in == '\n' ? "\\n" : *in == '\xff' ? "\\xFF" : "%c", *in);
    sprintf(out, "\"");
    data_calls();
    other_calls();
    closes();
    opens();
    quota();
    late(0);
    late(MPI_MODE_DELETE_ON_CLOSE);
    if (rank == 0) CHECK(access(base, F_OK) != 0);
    full();
    MPI_Finalize();
    return 0;
}
