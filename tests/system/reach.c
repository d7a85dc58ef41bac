/* SPDX-License-Identifier: Apache-2.0 */
/* What processes of other sites may do with files of a site: nothing outside of the job's directories and those that it shares. See mpi-io.sh. */
#include "files.h"
#include <unistd.h>
static int rank, size;
/* isthmus://SITE, and where the path behind it begins. */
static char name[5000], *path;
static const int modes[] = { MPI_MODE_RDONLY, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_MODE_CREATE | MPI_MODE_RDWR,
                             MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY };

/* Refused with the sentence that names the option. */
static void refused(int error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (error) MPI_Error_string(error, text, &length);
    if (class_of(error) == MPI_ERR_ACCESS && strstr(text, "--share DIR")) return;
    printf("%d: %s is not refused: %s\n", rank, name, error ? text : "it is done");
    exit(1);
}

static void opens(MPI_Comm comm, const char *there, int amode)
{
    MPI_File file;
    strcpy(path, there);
    refused(MPI_File_open(comm, name, amode, MPI_INFO_NULL, &file));
}

/* What is allowed is made, written, read and deleted. */
static void works(MPI_Comm comm, const char *there)
{
    int value = 7, me;
    MPI_File file;
    MPI_Comm_rank(comm, &me);
    strcpy(path, there);
    OK(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_write_at(file, 4 * me, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    value = 0;
    OK(MPI_File_read_at(file, 4 * me, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(value == 7);
    OK(MPI_File_close(&file));
    OK(MPI_File_open(comm, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_close(&file));
    ERROR(MPI_File_open(comm, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    if (comm != MPI_COMM_SELF) return;
    OK(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_close(&file));
    OK(MPI_File_delete(name, MPI_INFO_NULL));
}

/* A process of another site alone, and all together. `shared`: whether /tmp/opened is. */
static void at(int shared, int asks)
{
    static const char *const hidden[] = { "/tmp/hidden/key", "/tmp/hidden/new", "/tmp/opened/out/key", "/tmp/opened/../hidden/key",
                                          "/proc/self/root/tmp/hidden/key", "//tmp//hidden/./key", "/~/.keys/key" };
    char here[4000], own[4100], leads_out[4100];
    MPI_File file;
    size_t i, mode;
    CHECK(getcwd(here, sizeof here) != NULL);
    snprintf(own, sizeof own, "%s/made by another site", here);
    snprintf(leads_out, sizeof leads_out, "%s/leads-out", here);
    if (asks) {
        for (i = 0; i < sizeof hidden / sizeof *hidden; i++) {
            for (mode = 0; mode < 4; mode++) opens(MPI_COMM_SELF, hidden[i], modes[mode]);
            refused(MPI_File_delete(name, MPI_INFO_NULL));
        }
        opens(MPI_COMM_SELF, leads_out, MPI_MODE_RDONLY);
        opens(MPI_COMM_SELF, leads_out, MPI_MODE_CREATE | MPI_MODE_RDWR);
        opens(MPI_COMM_SELF, "/tmp/opened/link", MPI_MODE_RDWR);
        opens(MPI_COMM_SELF, "/tmp/opened/to-new", MPI_MODE_CREATE | MPI_MODE_RDWR);
        works(MPI_COMM_SELF, own);
        if (shared) works(MPI_COMM_SELF, "/tmp/open/mine");
        else opens(MPI_COMM_SELF, "/tmp/open/mine", MPI_MODE_CREATE | MPI_MODE_RDWR);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    opens(MPI_COMM_WORLD, "/tmp/hidden/key", modes[0]);
    opens(MPI_COMM_WORLD, "/tmp/hidden/key", modes[1]);
    opens(MPI_COMM_WORLD, "/tmp/hidden/new", modes[2]);
    opens(MPI_COMM_WORLD, "/tmp/hidden/new", modes[3]);
    opens(MPI_COMM_WORLD, leads_out, modes[0]);
    works(MPI_COMM_WORLD, own);
    if (shared) works(MPI_COMM_WORLD, "/tmp/opened/all");
    else opens(MPI_COMM_WORLD, "/tmp/opened/all", modes[2]);
    /* What a process sees itself it opens. */
    OK(MPI_File_open(MPI_COMM_SELF, "/tmp/hidden/key", MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* reach SITE SITE: of two processes each, in the order of their ranks. +SITE: /tmp/opened is shared there. */
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i < argc; i++) {
        int shared = argv[i][0] == '+';
        path = name + sprintf(name, "isthmus://%s", argv[i] + shared);
        at(shared, rank == (i == 1 ? size - 1 : 0));
    }
    MPI_Finalize();
    return 0;
}
