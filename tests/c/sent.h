/* SPDX-License-Identifier: Apache-2.0 */
/* How many messages this process has sent across a level, as MPI_T counts them. */
#include <mpi.h>
#include <stdio.h>

/* `operation`: "point_to_point", or a collective one; `level`: "node", "machine", "local" or "wide". */
static inline unsigned long long sent_by(const char *operation, const char *level)
{
    char name[80];
    int index, count;
    unsigned long long value;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    snprintf(name, sizeof name, "isthmus_%s_%s_messages", operation, level);
    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS) {
        fprintf(stderr, "there is no counter %s\n", name);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
    MPI_T_pvar_read(session, handle, &value);
    MPI_T_pvar_session_free(&session);
    return value;
}

static inline unsigned long long sent(const char *level)
{
    return sent_by("point_to_point", level);
}
