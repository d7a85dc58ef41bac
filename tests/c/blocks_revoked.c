/* SPDX-License-Identifier: Apache-2.0 */
/* A gather of long blocks, to which the others write in the root's memory, and whose communicator the root revokes meanwhile; and a reduction
   between two, of whose result the other one writes a part, revoked by another thread of the root. When the root's call has ended with
   MPIX_ERR_REVOKED the memory is the program's again, and nobody writes there any more.
   ranks: 2 4 */
#include "check.h"
#include <mpi-ext.h>
#include <pthread.h>
#include <unistd.h>

/* So often at least, and no more than MOST times until one has ended early. */
enum { BLOCK = 1 << 20, TIMES = 24, MOST = 1000 };

static int rank, size;
static char *own, *all;

static int class_of(int code)
{
    int class;
    OK(MPI_Error_class(code, &class));
    return class;
}

/* Whether another turn is wanted, as the root says. */
static int goes_on(int turn, int ended)
{
    int wanted = turn < TIMES || (ended == 0 && turn < MOST);
    OK(MPI_Bcast(&wanted, 1, MPI_INT, 0, MPI_COMM_WORLD));
    return wanted;
}

/* Members of these are the first so many. */
static MPI_Comm made(int members)
{
    MPI_Comm comm;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank < members ? 0 : MPI_UNDEFINED, rank, &comm));
    if (comm != MPI_COMM_NULL)
        OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    return comm;
}

/* The root's memory is as it left it when its call had ended; whoever wrote there would have by now. */
static void untouched(MPI_Comm comm)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (long i = 0; rank == 0 && i < (long)size * BLOCK; i++)
        CHECK(all[i] == 7);
    if (comm != MPI_COMM_NULL)
        OK(MPI_Comm_free(&comm));
}

static int gathers(void)
{
    int ended = 0;
    for (int turn = 0; goes_on(turn, ended); turn++) {
        MPI_Comm comm = made(size);
        MPI_Request request;
        if (rank == 0) {
            OK(MPI_Igather(own, BLOCK, MPI_BYTE, all, BLOCK, MPI_BYTE, 0, comm, &request));
            /* Some have written then, some have not, and some do. */
            if (turn % 3)
                usleep((useconds_t)(turn % TIMES * 20));
            int revoked = MPIX_Comm_revoke(comm) == MPI_SUCCESS;
            int class = class_of(MPI_Wait(&request, MPI_STATUS_IGNORE));
            CHECK(class == MPI_SUCCESS || class == MPIX_ERR_REVOKED);
            ended += class != MPI_SUCCESS;
            CHECK(revoked || class == MPI_SUCCESS);
            memset(all, 7, (size_t)size * BLOCK);
        } else {
            if (turn % 2)
                usleep((useconds_t)(rank * 50));
            int class = class_of(MPI_Gather(own, BLOCK, MPI_BYTE, NULL, 0, MPI_BYTE, 0, comm));
            CHECK(class == MPI_SUCCESS || class == MPIX_ERR_REVOKED);
        }
        untouched(comm);
    }
    return ended;
}

/* How long a thread waits before it revokes a communicator. */
struct revocation {
    MPI_Comm comm;
    useconds_t after;
};

static void *revokes(void *given)
{
    struct revocation *one = given;
    usleep(one->after);
    OK(MPIX_Comm_revoke(one->comm));
    return NULL;
}

static int reductions(void)
{
    int ended = 0;
    for (int turn = 0; goes_on(turn, ended); turn++) {
        MPI_Comm comm = made(2);
        if (rank == 0) {
            pthread_t thread;
            struct revocation one = {comm, (useconds_t)(turn % TIMES * 20)};
            CHECK(pthread_create(&thread, NULL, revokes, &one) == 0);
            int class = class_of(MPI_Reduce(own, all, BLOCK, MPI_UNSIGNED_CHAR, MPI_SUM, 0, comm));
            CHECK(class == MPI_SUCCESS || class == MPIX_ERR_REVOKED);
            ended += class != MPI_SUCCESS;
            memset(all, 7, (size_t)size * BLOCK);
            CHECK(pthread_join(thread, NULL) == 0);
        } else if (rank == 1) {
            if (turn % 2)
                usleep(50);
            int class = class_of(MPI_Reduce(own, NULL, BLOCK, MPI_UNSIGNED_CHAR, MPI_SUM, 0, comm));
            CHECK(class == MPI_SUCCESS || class == MPIX_ERR_REVOKED);
        }
        untouched(comm);
    }
    return ended;
}

int main(int argc, char **argv)
{
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    own = malloc(BLOCK), all = malloc((size_t)size * BLOCK);
    CHECK(own && all);
    memset(own, 1, BLOCK);
    int gathered = gathers(), reduced = provided == MPI_THREAD_MULTIPLE ? reductions() : -1;
    CHECK(rank != 0 || (gathered > 0 && reduced != 0));
    if (rank == 0)
        printf("nobody writes to memory of an operation that has ended; %d gathers and %d reductions were revoked\n", gathered, reduced);
    free(own);
    free(all);
    OK(MPI_Finalize());
    return 0;
}
