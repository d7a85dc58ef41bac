/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process has sent across a level of the network, by the performance variables of Isthmus; other libraries have none.
 */
#ifndef COUNTERS_H
#define COUNTERS_H
#include <mpi.h>
#include <stdio.h>

struct counter {
    int there;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
};

/* Messages of an operation ("bcast") across a level ("wide", "local"). MPI_T must be initialised. */
static struct counter counter_open(const char *operation, const char *level)
{
    struct counter c = {0};
    char name[128];
    int index, count;
    snprintf(name, sizeof name, "isthmus_%s_%s_messages", operation, level);
    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS)
        return c;
    if (MPI_T_pvar_session_create(&c.session) != MPI_SUCCESS)
        return c;
    if (MPI_T_pvar_handle_alloc(c.session, index, NULL, &c.handle, &count) != MPI_SUCCESS)
        return c;
    /* Counters that never stop refuse to be started; that is as good. */
    (void)MPI_T_pvar_start(c.session, c.handle);
    c.there = 1;
    return c;
}

/* Messages so far; -1 where there is no such counter. */
static long long counter_read(struct counter *c)
{
    unsigned long long value = 0;
    if (!c->there || MPI_T_pvar_read(c->session, c->handle, &value) != MPI_SUCCESS)
        return -1;
    return (long long)value;
}
#endif
