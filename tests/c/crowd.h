/* SPDX-License-Identifier: Apache-2.0 */
/* Many who connect at once with a name that is nearly right, which needs MPI_THREAD_MULTIPLE: each is refused, and told so soon. */
#ifndef CROWD_H
#define CROWD_H

#include "check.h"
#include <pthread.h>

enum { CROWD = 300 };

struct stranger {
    pthread_t thread;
    MPI_Comm alone;
    const char *port;
    double seconds;
};

static void *is_refused(void *argument)
{
    struct stranger *self = argument;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Comm inter;
    int class, length;
    double begin = MPI_Wtime();
    int error = MPI_Comm_connect(self->port, MPI_INFO_NULL, 0, self->alone, &inter);
    self->seconds = MPI_Wtime() - begin;
    CHECK(error != MPI_SUCCESS);
    OK(MPI_Error_class(error, &class));
    OK(MPI_Error_string(error, text, &length));
    if (class != MPI_ERR_PORT || !strstr(text, "no such port"))
        printf("%s\n", text);
    CHECK(class == MPI_ERR_PORT && strstr(text, "no such port"));
    return NULL;
}

/* So many of them, who know another letter of the port's secret. How long the last one has waited, in seconds. */
static double crowd_is_refused(const char *port, int count)
{
    static struct stranger all[CROWD];
    char other[MPI_MAX_PORT_NAME];
    double longest = 0;
    CHECK(count <= CROWD && strlen(port) > 12);
    strcpy(other, port);
    other[12] = other[12] == 'A' ? 'B' : 'A';
    for (int i = 0; i < count; i++) {
        all[i].port = other;
        OK(MPI_Comm_dup(MPI_COMM_SELF, &all[i].alone));
        OK(MPI_Comm_set_errhandler(all[i].alone, MPI_ERRORS_RETURN));
    }
    for (int i = 0; i < count; i++)
        CHECK(pthread_create(&all[i].thread, NULL, is_refused, &all[i]) == 0);
    for (int i = 0; i < count; i++) {
        CHECK(pthread_join(all[i].thread, NULL) == 0);
        OK(MPI_Comm_free(&all[i].alone));
        if (all[i].seconds > longest)
            longest = all[i].seconds;
    }
    return longest;
}

#endif
