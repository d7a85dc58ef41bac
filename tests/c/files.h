/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of files share: a name that all processes know and nobody else uses. */
#ifndef FILES_H
#define FILES_H

#include "check.h"
#include <unistd.h>

#define ERROR(call, wanted) CHECK(class_of(call) == (wanted))

static int class_of(int error)
{
    int class;
    MPI_Error_class(error, &class);
    return class;
}

__attribute__((unused)) static const char *file_name(void)
{
    static char name[1024];
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        const char *directory = getenv("TMPDIR");
        snprintf(name, sizeof name, "%s/isthmus test\n\xff.%d", directory ? directory : "/tmp", (int)getpid());
    }
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    return name;
}

#endif
