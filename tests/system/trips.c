/* SPDX-License-Identifier: Apache-2.0 */
/* How often processes of two sites must hear from each other to open and close a file, and to set views: exchanges are counted, not time.
   In each exchange a site sends one message, so two exchanges are a round trip. See mpi-io.sh. */
#include "files.h"
static int rank, size;

/* Messages that this process has sent to other sites. */
static long sent(void)
{
    static MPI_T_pvar_session session;
    int number;
    long all = 0;
    if (!session) MPI_T_pvar_session_create(&session);
    MPI_T_pvar_get_num(&number);
    for (int i = 0; i < number; i++) {
        char name[200];
        int length = sizeof name, none = 0, verbosity, class, bind, readonly, continuous, atomic, count;
        MPI_Datatype type;
        MPI_T_enum values;
        MPI_T_pvar_handle handle;
        unsigned long long value = 0;
        MPI_T_pvar_get_info(i, name, &length, &verbosity, &class, &type, &values, NULL, &none, &bind, &readonly, &continuous, &atomic);
        if (!strstr(name, "_wide_messages") || strstr(name, "wait")) continue;
        OK(MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count));
        OK(MPI_T_pvar_read(session, handle, &value));
        OK(MPI_T_pvar_handle_free(session, &handle));
        all += (long)value;
    }
    return all;
}

/* The messages of the process that sends most, for each open and close. */
static long counted(const char *name, int amode, int moves)
{
    enum { TIMES = 4 };
    long before = sent(), most;
    for (int i = 0; i < TIMES; i++) {
        MPI_File file;
        OK(MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &file));
        if (moves && rank == 0) OK(MPI_File_write_at(file, 0, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
        OK(MPI_File_close(&file));
    }
    before = sent() - before;
    MPI_Allreduce(&before, &most, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    return (most + TIMES - 1) / TIMES;
}

/* The same for each MPI_File_set_view, rounded down. `moves`: a process moves the shared pointer before. */
static long viewed(const char *name, int moves)
{
    enum { TIMES = 20 };
    long all = 0, most;
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    for (int i = 0; i < TIMES; i++) {
        MPI_Offset at;
        /* All have asked where the pointer is. */
        MPI_Barrier(MPI_COMM_WORLD);
        if (moves && rank == size - 1) OK(MPI_File_write_shared(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
        /* What others have asked of this process is answered. */
        MPI_Barrier(MPI_COMM_WORLD);
        const long before = sent();
        OK(MPI_File_set_view(file, 4 * rank, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
        all += sent() - before;
        OK(MPI_File_get_position_shared(file, &at));
        CHECK(at == 0);
    }
    OK(MPI_File_close(&file));
    MPI_Allreduce(&all, &most, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    return most / TIMES;
}

/* trips NAME */
int main(int argc, char **argv)
{
    int provided;
    const int create = MPI_MODE_CREATE | MPI_MODE_RDWR;
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* The first one may bring what is known of the links. */
    counted(argv[1], create, 0);
    const struct { const char *what; int amode, moves; long most; } cases[] = {
        {"create", create, 0, 4},
        {"open", MPI_MODE_RDONLY, 0, 4},
        {"open and write", MPI_MODE_RDWR, 1, 4},
        {"append", MPI_MODE_RDWR | MPI_MODE_APPEND, 0, 4},
        {"delete on close", create | MPI_MODE_DELETE_ON_CLOSE, 0, 4},
    };
    for (int i = 0; i < 5; i++) {
        long exchanges = counted(argv[1], cases[i].amode, cases[i].moves);
        /* News of the links go with a new communicator in an exchange of their own. Links change on a busy machine, but not each time. */
        for (int again = 0; again < 3 && exchanges > cases[i].most; again++) exchanges = counted(argv[1], cases[i].amode, cases[i].moves);
        if (rank == 0) printf("%s: %ld exchanges between sites\n", cases[i].what, exchanges);
        CHECK(exchanges > 0 && exchanges <= cases[i].most);
    }
    /* Only where somebody has moved the shared pointer others wait until it is at the beginning. */
    for (int moves = 0; moves <= 1; moves++) {
        long exchanges = viewed(argv[1], moves);
        if (rank == 0) printf("view%s: %ld exchanges between sites\n", moves ? " after the shared pointer" : "", exchanges);
        CHECK(exchanges > 0 && exchanges <= 1 + moves);
    }
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
