/* SPDX-License-Identifier: Apache-2.0 */
/* For ended.sh: process 0 of a server waits for processes of another job in many ways at once, in a thread each. The server's other process is killed; those
   of the client hear of that, so that they do not wait for anybody in MPI_Finalize, and end in order. Whoever waits for one of them gets an error.
   Arguments: server FILE, or client FILE; the file has the name of the port. Each way has a client of its own, of that rank. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECV, PROBE, SSEND, LONG, UNLOCK, FLUSH, RGET, COMPLETE, WIN_WAIT, BARRIER, WAYS };
static const char *names[] = {"MPI_Recv", "MPI_Probe", "MPI_Ssend", "MPI_Wait of a long message", "MPI_Win_unlock", "MPI_Win_flush", "MPI_Wait of MPI_Rget",
                              "MPI_Win_complete", "MPI_Win_wait", "MPI_Barrier"};
enum { TAG = 1, GO = 2, DEATH = 3, LONGEST = 4 << 20 };

static MPI_Comm all, between, pair[WAYS];
static MPI_Win windows[WAYS];
static int errors[WAYS], ended[WAYS];

/* Everybody of the two that are in it. */
static void make(int way)
{
    long *memory;
    MPI_Comm_set_errhandler(pair[way], MPI_ERRORS_RETURN);
    MPI_Win_allocate(64 * sizeof(long), sizeof(long), MPI_INFO_NULL, pair[way], &memory, &windows[way]);
    MPI_Win_set_errhandler(windows[way], MPI_ERRORS_RETURN);
}

static int one_of(int a, int b)
{
    return a != MPI_SUCCESS ? a : b;
}

/* In pairs the server is rank 0. */
static int wait_in(int way)
{
    static char data[LONGEST];
    static long got;
    MPI_Comm comm = pair[way];
    MPI_Win win = windows[way];
    MPI_Request request;
    MPI_Status status;
    MPI_Group group, other;
    int one = 1, code, error;
    switch (way) {
    case RECV:
        return MPI_Recv(&one, 1, MPI_INT, 1, TAG, comm, MPI_STATUS_IGNORE);
    case PROBE:
        return MPI_Probe(MPI_ANY_SOURCE, TAG, comm, &status);
    case SSEND:
        return MPI_Ssend(&one, 1, MPI_INT, 1, TAG, comm);
    case LONG:
        code = MPI_Issend(data, LONGEST, MPI_CHAR, 1, TAG, comm, &request);
        return code != MPI_SUCCESS ? code : MPI_Wait(&request, &status);
    case UNLOCK:
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        code = MPI_Put(&got, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win);
        error = MPI_Win_unlock(1, win);
        return one_of(code, error);
    case FLUSH:
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        code = MPI_Put(&got, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win);
        error = MPI_Win_flush(1, win);
        return one_of(code, error);
    case RGET:
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        code = MPI_Rget(&got, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win, &request);
        return code != MPI_SUCCESS ? code : MPI_Wait(&request, &status);
    case COMPLETE:
    case WIN_WAIT:
        MPI_Comm_group(comm, &group);
        MPI_Group_incl(group, 1, &one, &other);
        if (way == COMPLETE) {
            code = MPI_Win_start(other, 0, win);
            error = MPI_Win_complete(win);
        } else {
            code = MPI_Win_post(other, 0, win);
            error = MPI_Win_wait(win);
        }
        return one_of(code, error);
    case BARRIER:
        return MPI_Barrier(comm);
    }
    return MPI_SUCCESS;
}

static void *waiter(void *way)
{
    int at = (int)(size_t)way;
    errors[at] = wait_in(at);
    ended[at] = 1;
    return NULL;
}

static void serve(const char *file, int rank)
{
    char port[MPI_MAX_PORT_NAME] = "", made[4096];
    int word = 0;
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        snprintf(made, sizeof made, "%s.made", file);
        FILE *out = fopen(made, "w");
        fputs(port, out);
        fclose(out);
        rename(made, file);
    }
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between);
    MPI_Intercomm_merge(between, 0, &all);
    /* The server's own rank 1 is the one that dies. */
    for (int way = 0; way < WAYS; way++) {
        MPI_Comm_split(all, rank == 0 ? 0 : MPI_UNDEFINED, 0, &pair[way]);
        if (rank == 0)
            make(way);
    }
    MPI_Barrier(all);
    if (rank == 1) {
        sleep(1);
        raise(SIGKILL);
    }
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN);
    for (int way = 0; way < WAYS; way++)
        MPI_Recv(&word, 1, MPI_INT, 2 + way, GO, all, MPI_STATUS_IGNORE);
    for (int way = 0; way < WAYS; way++)
        MPI_Send(&word, 1, MPI_INT, 2 + way, GO, all);
    pthread_t threads[WAYS];
    for (size_t way = 0; way < WAYS; way++)
        pthread_create(&threads[way], NULL, waiter, (void *)way);
    for (int left = 1, tenths = 0; left && tenths < 300; tenths++) {
        left = 0;
        for (int way = 0; way < WAYS; way++)
            left += !((volatile int *)ended)[way];
        usleep(100000);
    }
    for (int way = 0; way < WAYS; way++)
        printf("%s: %s\n", names[way], !ended[way] ? "waits" : errors[way] == MPI_SUCCESS ? "no error" : "an error");
    fflush(stdout);
    /* Those that have all ended are not waited for. */
    printf("MPI_Comm_disconnect: %s\n", MPI_Comm_disconnect(&between) ? "an error" : "no error");
    fflush(stdout);
}

static void visit(const char *file, int rank)
{
    char port[MPI_MAX_PORT_NAME] = "";
    FILE *in = fopen(file, "r");
    int word = 0;
    if (!in || !fgets(port, sizeof port, in))
        MPI_Abort(MPI_COMM_WORLD, 3);
    fclose(in);
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between);
    MPI_Intercomm_merge(between, 1, &all);
    for (int way = 0; way < WAYS; way++) {
        MPI_Comm_split(all, way == rank ? 0 : MPI_UNDEFINED, 0, &pair[way]);
        if (way == rank)
            make(way);
    }
    MPI_Barrier(all);
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    if (MPI_Recv(&word, 1, MPI_INT, 1, DEATH, all, MPI_STATUS_IGNORE) == MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 4);
    /* Whoever wants it waits: this process ends without giving it back. */
    if (rank >= UNLOCK && rank <= RGET) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, windows[rank]);
        MPI_Win_flush(1, windows[rank]);
    }
    MPI_Send(&word, 1, MPI_INT, 0, GO, all);
    MPI_Recv(&word, 1, MPI_INT, 0, GO, all, MPI_STATUS_IGNORE);
    sleep(2);
}

int main(int argc, char **argv)
{
    int rank, provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 3)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (!strcmp(argv[1], "server")) {
        serve(argv[2], rank);
    } else {
        visit(argv[2], rank);
    }
    MPI_Finalize();
    printf("process %d has ended\n", rank);
    fflush(stdout);
    /* Its connections stay for a while. */
    if (strcmp(argv[1], "server"))
        sleep(8);
    return 0;
}
