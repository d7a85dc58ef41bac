/* SPDX-License-Identifier: Apache-2.0 */
/* For faults.sh: parents and children lose somebody, which does not end the job (isthmus_on_loss). The first argument says when:
   waiting: one of two children is killed while its parents wait for it; all that are left disconnect then.
   revoked: the communicator of parents and children is given up before they disconnect.
   parent: a parent is killed while the others spawn.
   beginning: children are killed at several moments of their MPI_Init.
   apart: children are killed after they have disconnected; what is left of their world ends, and nobody else.
   replaced: a child is killed and replaced again and again, and what connects with it is freed only.
   held: a child is killed, and all others wait until there is a file "seen". */
#include <dirent.h>
#include <mpi-ext.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: rank %d: not true: %s\n", __FILE__, __LINE__, rank, #condition); \
            MPI_Abort(MPI_COMM_WORLD, 1); \
        } \
    } while (0)

static int rank, size;
static const char *how;

static int class_of(int code)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    return class;
}

static int spawn(char *program, char *when, int count, MPI_Comm comm, MPI_Comm *children)
{
    char *arguments[] = {(char *)how, when, NULL};
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "isthmus_on_loss", "go-on");
    int code = MPI_Comm_spawn(program, arguments, count, info, 0, comm, children, MPI_ERRCODES_IGNORE);
    MPI_Info_free(&info);
    if (code == MPI_SUCCESS)
        MPI_Comm_set_errhandler(*children, MPI_ERRORS_RETURN);
    return code;
}

/* The end of what cannot be disconnected in peace: an error, and all the same no handle is left. */
static void part(MPI_Comm *comm, int expected)
{
    CHECK(class_of(MPI_Comm_disconnect(comm)) == expected && *comm == MPI_COMM_NULL);
}

static void waiting(char *program)
{
    MPI_Comm children;
    char text[MPI_MAX_ERROR_STRING];
    int length, number = 0;
    CHECK(spawn(program, "", 2, MPI_COMM_WORLD, &children) == MPI_SUCCESS);
    CHECK(MPI_Recv(&number, 1, MPI_INT, 0, 0, children, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    int code = MPI_Recv(&number, 1, MPI_INT, 1, 0, children, MPI_STATUS_IGNORE);
    CHECK(class_of(code) == MPIX_ERR_PROC_FAILED);
    MPI_Error_string(code, text, &length);
    printf("parent %d heard: %s\n", rank, text);
    CHECK(MPI_Send(&rank, 1, MPI_INT, 0, 0, children) == MPI_SUCCESS);
    part(&children, MPIX_ERR_PROC_FAILED);
}

static void revoked(char *program)
{
    MPI_Comm children;
    CHECK(spawn(program, "", 2, MPI_COMM_WORLD, &children) == MPI_SUCCESS);
    if (rank == 0)
        CHECK(MPIX_Comm_revoke(children) == MPI_SUCCESS);
    part(&children, MPIX_ERR_REVOKED);
    printf("parent %d parted\n", rank);
}

/* The last one does not come: at whatever moment it is killed the others are told, and no child is left to wait. */
static void parent(char *program)
{
    MPI_Comm children, left;
    MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1, rank, &left);
    if (rank == size - 1) {
        usleep(300000);
        raise(SIGKILL);
    }
    int code = class_of(spawn(program, "", 2, MPI_COMM_WORLD, &children));
    CHECK(code == MPIX_ERR_PROC_FAILED || code == MPI_ERR_SPAWN);
    CHECK(spawn(program, "last", 1, left, &children) == MPI_SUCCESS);
    CHECK(MPI_Comm_disconnect(&children) == MPI_SUCCESS);
    printf("parent %d went on\n", rank);
}

static void beginning(char *program)
{
    for (int moment = 0; moment < 8; moment++) {
        char when[16];
        MPI_Comm children;
        snprintf(when, sizeof when, "%d", 1 + 9000 * moment);
        int code = spawn(program, when, 2, MPI_COMM_WORLD, &children), class = class_of(code);
        if (code == MPI_SUCCESS)
            part(&children, MPIX_ERR_PROC_FAILED);
        else
            CHECK(class == MPI_ERR_SPAWN || class == MPIX_ERR_PROC_FAILED);
        CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    }
    printf("parent %d went on\n", rank);
}

static int descriptors(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    CHECK(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

/* MPI_Comm_free keeps processes connected, but not with the dead. */
static void replaced(char *program)
{
    int number, early = 0;
    for (int round = 0; round < 12; round++) {
        MPI_Comm children;
        CHECK(spawn(program, "", 1, MPI_COMM_WORLD, &children) == MPI_SUCCESS);
        CHECK(class_of(MPI_Recv(&number, 1, MPI_INT, 0, 0, children, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED);
        CHECK(MPI_Comm_free(&children) == MPI_SUCCESS);
        if (round == 3)
            early = descriptors();
    }
    CHECK(descriptors() <= early + 2);
    printf("parent %d went on\n", rank);
}

static void until_seen(void)
{
    for (int tries = 0; access("seen", F_OK) != 0 && tries < 1000; tries++)
        usleep(50000);
}

static void held(char *program)
{
    MPI_Comm children;
    int number;
    CHECK(spawn(program, "", 2, MPI_COMM_WORLD, &children) == MPI_SUCCESS);
    CHECK(class_of(MPI_Recv(&number, 1, MPI_INT, 1, 0, children, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED);
    printf("parent %d waits\n", rank);
    fflush(stdout);
    until_seen();
    part(&children, MPIX_ERR_PROC_FAILED);
}

/* Nothing is said of losses here: the job would end with whoever is connected. */
static void apart(char *program)
{
    char *arguments[] = {"apart", NULL, NULL};
    MPI_Comm children;
    int pids[2], gone = 0;
    CHECK(MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_Bcast(pids, 2, MPI_INT, 0, children) == MPI_SUCCESS);
    part(&children, MPI_SUCCESS);
    for (int tries = 0; !gone && tries < 1200; tries++) {
        gone = kill(pids[0], 0) != 0 && kill(pids[1], 0) != 0;
        usleep(gone ? 0 : 50000);
    }
    CHECK(gone);
    arguments[1] = "last";
    CHECK(MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE) == MPI_SUCCESS);
    part(&children, MPI_SUCCESS);
    printf("parent %d went on\n", rank);
}

static void child_apart(MPI_Comm parent, const char *when)
{
    int pids[2], pid = (int)getpid();
    if (strcmp(when, "last") != 0) {
        MPI_Allgather(&pid, 1, MPI_INT, pids, 1, MPI_INT, MPI_COMM_WORLD);
        CHECK(MPI_Bcast(pids, 2, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, parent) == MPI_SUCCESS);
    }
    part(&parent, MPI_SUCCESS);
    if (strcmp(when, "last") == 0)
        return;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        raise(SIGKILL);
    for (;;)
        pause();
}

static void child(MPI_Comm parent, const char *when)
{
    int count, number;
    MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
    MPI_Comm_remote_size(parent, &count);
    if (strcmp(how, "parent") == 0) {
        CHECK(strcmp(when, "last") == 0);
        CHECK(MPI_Comm_disconnect(&parent) == MPI_SUCCESS);
    } else if (strcmp(how, "apart") == 0) {
        child_apart(parent, when);
    } else if (strcmp(how, "revoked") == 0) {
        part(&parent, MPIX_ERR_REVOKED);
    } else if (strcmp(how, "replaced") == 0) {
        raise(SIGKILL);
    } else if (strcmp(how, "held") == 0) {
        if (rank == 1)
            raise(SIGKILL);
        until_seen();
        part(&parent, MPIX_ERR_PROC_FAILED);
    } else if (strcmp(how, "beginning") == 0) {
        if (rank == 1)
            for (;;)
                pause();
        part(&parent, MPIX_ERR_PROC_FAILED);
    } else {
        if (rank == 1) {
            usleep(300000);
            raise(SIGKILL);
        }
        for (int i = 0; i < count; i++)
            MPI_Send(&rank, 1, MPI_INT, i, 0, parent);
        for (int i = 0; i < count; i++)
            CHECK(MPI_Recv(&number, 1, MPI_INT, i, 0, parent, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        part(&parent, MPIX_ERR_PROC_FAILED);
    }
}

/* The second child of two is killed so many microseconds from now. */
static void killed_in(const char *when)
{
    const char *place = getenv("MPI_LOCALRANKID");
    if (!place || atoi(place) != 1)
        return;
    struct itimerval timer = {.it_value = {0, atoi(when)}};
    signal(SIGALRM, SIG_DFL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

int main(int argc, char **argv)
{
    MPI_Comm above;
    how = argc > 1 ? argv[1] : "waiting";
    if (argc > 2 && atoi(argv[2]) > 0)
        killed_in(argv[2]);
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&above);
    if (above != MPI_COMM_NULL)
        child(above, argc > 2 ? argv[2] : "");
    else if (strcmp(how, "revoked") == 0)
        revoked(argv[0]);
    else if (strcmp(how, "parent") == 0)
        parent(argv[0]);
    else if (strcmp(how, "beginning") == 0)
        beginning(argv[0]);
    else if (strcmp(how, "apart") == 0)
        apart(argv[0]);
    else if (strcmp(how, "replaced") == 0)
        replaced(argv[0]);
    else if (strcmp(how, "held") == 0)
        held(argv[0]);
    else
        waiting(argv[0]);
    MPI_Finalize();
    return 0;
}
