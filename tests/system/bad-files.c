/* SPDX-License-Identifier: Apache-2.0 */
/* Files that cannot be opened, written or deleted, at this site and at another one: class and sentence of each error. See bad-files.sh. */
#include "files.h"
static int rank, size, wrong;
/* isthmus://SITE, and where the path behind it begins. */
static char name[5000], *path;
static const int create = MPI_MODE_CREATE | MPI_MODE_RDWR;

/* A call must end with this class, and its sentence have these words. */
static void expect(int error, int class, const char *what, const char *words)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (error) MPI_Error_string(error, text, &length);
    if (class_of(error) == class && (!words || strstr(text, words))) return;
    printf("%d: %.100s: class %d and not %d, or not '%s': %s\n", rank, what, class_of(error), class, words ? words : "", text);
    wrong = 1;
}

static void opens(int amode, int class, const char *words)
{
    MPI_File file;
    expect(MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &file), class, name, words);
    if (file != MPI_FILE_NULL) {
        printf("%d: %.100s is open\n", rank, name);
        exit(1);
    }
}

static void opening(const char *site)
{
    char words[200];
    snprintf(words, sizeof words, "at site %s: No such file", site);
    strcpy(path, "/tmp/no such\n\xff");
    opens(MPI_MODE_RDONLY, MPI_ERR_NO_SUCH_FILE, words);
    strcpy(path, "/tmp/bad/directory");
    opens(MPI_MODE_RDONLY, MPI_ERR_BAD_FILE, "Is a directory");
    opens(create, MPI_ERR_BAD_FILE, "Is a directory");
    strcpy(path, "/tmp/bad/directory/");
    opens(create, MPI_ERR_BAD_FILE, "Is a directory");
    strcpy(path, "/tmp/bad/file/below");
    opens(create, MPI_ERR_BAD_FILE, "Not a directory");
    strcpy(path, "/tmp/bad/file/");
    opens(MPI_MODE_RDWR, MPI_ERR_BAD_FILE, "Not a directory");
    strcpy(path, "/tmp/bad/dangling");
    opens(MPI_MODE_RDWR, MPI_ERR_NO_SUCH_FILE, words);
    strcpy(path, "/tmp/bad/loop");
    opens(MPI_MODE_RDWR, MPI_ERR_BAD_FILE, "symbolic links");
    strcpy(path, "/tmp/bad/file");
    opens(create | MPI_MODE_EXCL, MPI_ERR_FILE_EXISTS, "File exists");
    memset(path, 'x', 4500), path[0] = '/', path[4500] = 0;
    opens(create, MPI_ERR_BAD_FILE, "File name too long");
    strcpy(path, "/tmp/bad/pipe");
    opens(MPI_MODE_RDONLY, MPI_ERR_BAD_FILE, "Illegal seek");
    opens(MPI_MODE_WRONLY, MPI_ERR_BAD_FILE, "cannot open");
    opens(MPI_MODE_RDWR, MPI_ERR_BAD_FILE, "Illegal seek");
    strcpy(path, "/sys/kernel/uevent_seqnum");
    opens(MPI_MODE_WRONLY, MPI_ERR_ACCESS, "Permission denied");
    strcpy(path, "/tmp/bad/readonly/file");
    opens(MPI_MODE_RDWR, MPI_ERR_READ_ONLY, "Read-only file system");
    opens(create, MPI_ERR_READ_ONLY, "Read-only file system");
    strcpy(path, "/tmp/bad/program");
    opens(MPI_MODE_WRONLY, MPI_ERR_FILE_IN_USE, "Text file busy");
}

/* Disks that are full, written by each in its way. */
static void writing(const char *site)
{
    static char data[1 << 20];
    char words[200];
    MPI_File file;
    int error, value = 1;
    snprintf(words, sizeof words, "at site %s: No space left", site);
    strcpy(path, "/dev/full");
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    expect(MPI_File_write_at(file, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_NO_SPACE, name, words);
    expect(MPI_File_write_at_all(file, rank * 4, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_NO_SPACE, name, words);
    OK(MPI_File_close(&file));
    strcpy(path, "/tmp/bad/small/full");
    OK(MPI_File_open(MPI_COMM_WORLD, name, create, MPI_INFO_NULL, &file));
    error = MPI_File_write_at_all(file, (MPI_Offset)rank << 20, data, 1 << 20, MPI_BYTE, MPI_STATUS_IGNORE);
    expect(error, MPI_ERR_NO_SPACE, name, words);
    expect(MPI_File_preallocate(file, 1 << 30), MPI_ERR_NO_SPACE, name, words);
    OK(MPI_File_set_size(file, 4));
    OK(MPI_File_write_at_all(file, 0, &value, rank == 0, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
}

/* MPI_File_delete is no collective call. */
static void deleting(const char *site)
{
    char words[200];
    OK(MPI_File_delete(name, MPI_INFO_NULL));
    snprintf(words, sizeof words, "rank %d cannot delete \"/tmp/bad/small/full\" at site %s: No such file", rank, site);
    expect(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE, name, words);
    strcpy(path, "/tmp/bad/directory");
    expect(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_BAD_FILE, name, "Is a directory");
    strcpy(path, "/tmp/bad/readonly/file");
    expect(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_READ_ONLY, name, "Read-only");
    strcpy(path, "/proc/version");
    expect(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_ACCESS, name, "cannot delete");
    memset(path, 'x', 4500), path[0] = '/', path[4500] = 0;
    expect(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_BAD_FILE, name, "too long");
    strcpy(path, "/~/below home\n\xff");
    OK(MPI_File_delete(name, MPI_INFO_NULL));
    expect(MPI_File_delete("isthmus://nowhere/x", MPI_INFO_NULL), MPI_ERR_BAD_FILE, "nowhere", "its sites are");
}

/* bad SITE...: what cannot be opened, written or deleted at each of these sites, seen from every process. */
int main(int argc, char **argv)
{
    MPI_Errhandler handler;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_File_get_errhandler(MPI_FILE_NULL, &handler));
    CHECK(handler == MPI_ERRORS_RETURN);
    for (int i = 1; i < argc; i++) {
        path = name + sprintf(name, "isthmus://%s", argv[i]);
        opening(argv[i]);
        writing(argv[i]);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == size - 1)
            deleting(argv[i]);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return wrong;
}
