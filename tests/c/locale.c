/* SPDX-License-Identifier: Apache-2.0 */
/* A program in another language: the system's words are translated and numbers have commas, and nothing is decided by
   either. ranks: 2 */
#include "check.h"
#include <errno.h>
#include <locale.h>
#include <string.h>

/* The class of a code, and what is said of it. */
static int class_of(int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int class, length;
    OK(MPI_Error_class(code, &class));
    OK(MPI_Error_string(code, text, &length));
    CHECK(length > 0);
    return class;
}

int main(int argc, char **argv)
{
    char name[64], value[16], comma[16];
    int rank, number, flag, length = sizeof value;
    MPI_File file, again;
    MPI_Info info;
    if (!setlocale(LC_ALL, "de_DE.UTF-8")) {
        OK(MPI_Init(&argc, &argv));
        OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
        if (rank == 0)
            printf("skipped: there is no locale de_DE.UTF-8 (localedef -i de_DE -f UTF-8 de_DE.UTF-8)\n");
        OK(MPI_Finalize());
        return 0;
    }
    snprintf(comma, sizeof comma, "%.1f", 1.5);
    CHECK(strcmp(comma, "1,5") == 0);
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    snprintf(name, sizeof name, "/tmp/isthmus-locale-%d", rank);
    CHECK(class_of(MPI_File_open(MPI_COMM_SELF, "/no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file)) == MPI_ERR_NO_SUCH_FILE);
    CHECK(class_of(MPI_File_delete("/no/such/file", MPI_INFO_NULL)) == MPI_ERR_NO_SUCH_FILE);
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    CHECK(class_of(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY, MPI_INFO_NULL, &again)) == MPI_ERR_FILE_EXISTS);
    OK(MPI_File_close(&file));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "number", "1.5"));
    OK(MPI_Info_get_string(info, "number", &length, value, &flag));
    CHECK(flag && strcmp(value, "1.5") == 0);
    OK(MPI_Info_free(&info));
    number = 1;
    OK(MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(number == 2);
    /* The language is the program's. */
    CHECK(strcmp(setlocale(LC_MESSAGES, NULL), "de_DE.UTF-8") == 0);
    OK(MPI_Finalize());
    if (rank == 0)
        printf("the language of a program changes nothing\n");
    return 0;
}
