/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that nobody receives do not keep the end of the last session from ending, with one session, several, and beside
   the world model. Whoever is late receives what was sent before the sender's end, as it was then.
   ranks: 1 2 3 */
#include "check.h"

#include <unistd.h>

enum { LONG = 1 << 20, UNWANTED = 77, WANTED = 5 };
static char wanted[LONG], unwanted[LONG], got[LONG];

static MPI_Comm comm_of(MPI_Session session, const char *tag)
{
    MPI_Group group;
    MPI_Comm comm;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    OK(MPI_Group_free(&group));
    return comm;
}

static void forget(const char *data, int length, int to, int tag, MPI_Comm comm)
{
    MPI_Request request;
    OK(MPI_Isend(data, length, MPI_CHAR, to, tag, comm, &request));
    OK(MPI_Request_free(&request));
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Session first, second;
    MPI_Request request;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &first));
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &second));
    MPI_Comm one = comm_of(first, "one"), two = comm_of(second, "two");
    OK(MPI_Comm_rank(one, &rank));
    OK(MPI_Comm_size(one, &size));
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;

    /* The memory is the program's again when the world model has ended. */
    memset(wanted, rank + 1, LONG);
    forget(unwanted, LONG, next, UNWANTED, MPI_COMM_WORLD);
    forget(wanted, LONG, next, WANTED, two);
    OK(MPI_Finalize());
    memset(wanted, 100, LONG);

    forget(unwanted, LONG, next, UNWANTED, one);
    OK(MPI_Issend(unwanted, 1, MPI_CHAR, next, UNWANTED, two, &request));
    OK(MPI_Request_free(&request));
    OK(MPI_Comm_free(&one));
    OK(MPI_Session_finalize(&first));
    OK(MPI_Recv(got, LONG, MPI_CHAR, previous, WANTED, two, MPI_STATUS_IGNORE));
    for (int i = 0; i < LONG; i++)
        CHECK(got[i] == previous + 1);

    /* Rank 0 has ended its last session, or is about to, before its message is asked for. */
    memset(wanted, rank + 2, LONG);
    forget(wanted, LONG, next, WANTED, two);
    if (rank != 0) {
        usleep(20000);
        OK(MPI_Recv(got, LONG, MPI_CHAR, previous, WANTED, two, MPI_STATUS_IGNORE));
        for (int i = 0; i < LONG; i++)
            CHECK(got[i] == previous + 2);
    }
    OK(MPI_Comm_free(&two));
    OK(MPI_Session_finalize(&second));
    memset(wanted, 100, LONG);
    memset(unwanted, 100, LONG);

    /* And once more: what is left of before does no harm. */
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &first));
    one = comm_of(first, "once more");
    OK(MPI_Allreduce(&rank, got, 1, MPI_INT, MPI_SUM, one));
    OK(MPI_Comm_free(&one));
    OK(MPI_Session_finalize(&first));
    return 0;
}
