/* SPDX-License-Identifier: Apache-2.0 */
/* Client and server: two groups connect through a port, talk in every way, disconnect and connect again. Without arguments
   the groups are halves of one job; `server FILE ROUNDS` and `client FILE ROUNDS` are two jobs, which tests/system/connect.sh starts.
   `spawn` starts two processes of itself. `crowd FILE COUNT` is a third one, of which so many threads of each process know a secret that is nearly right.
   ranks: 2 3 4 */
#include "connect.h"
#include "crowd.h"
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void meet(MPI_Comm inter, int high)
{
    int flag;
    OK(MPI_Comm_test_inter(inter, &flag));
    CHECK(flag);
    between_groups(inter);
    collective(inter);
    merged(inter, high);
    collective(inter);
    MPI_File alone, file = getenv("ISTHMUS_TEST_KEPT") ? MPI_FILE_NULL : opened_on_both(inter, high, &alone);
    OK(MPI_Comm_disconnect(&inter));
    CHECK(inter == MPI_COMM_NULL);
    if (file != MPI_FILE_NULL)
        used_after(file, alone);
}

/* The port name is significant at the root only. */
static void serve(MPI_Comm comm, int root, const char *port, int rounds)
{
    int rank;
    MPI_Comm inter;
    OK(MPI_Comm_rank(comm, &rank));
    for (int n = 0; n < rounds; n++) {
        OK(MPI_Comm_accept(rank == root ? port : NULL, MPI_INFO_NULL, root, comm, &inter));
        meet(inter, n % 2);
    }
}

static void visit(MPI_Comm comm, int root, const char *port, int rounds)
{
    int rank;
    MPI_Comm inter;
    OK(MPI_Comm_rank(comm, &rank));
    for (int n = 0; n < rounds; n++) {
        OK(MPI_Comm_connect(rank == root ? port : NULL, MPI_INFO_NULL, root, comm, &inter));
        meet(inter, n % 2 == 0);
    }
}

static int class_of(int code)
{
    int class;
    OK(MPI_Error_class(code, &class));
    return class;
}

/* What is no port, or no longer one. */
static void mistakes(void)
{
    char port[MPI_MAX_PORT_NAME], other[MPI_MAX_PORT_NAME];
    const char *none[] = { "", "nowhere", "isthmus1:", "isthmus1:AAAA", "tag#0$description#x$port#1$" };
    MPI_Comm inter;
    MPI_Info info;
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        CHECK(class_of(MPI_Comm_connect(none[i], MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter)) == MPI_ERR_PORT);
        CHECK(class_of(MPI_Comm_accept(none[i], MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter)) == MPI_ERR_PORT);
        CHECK(class_of(MPI_Close_port(none[i])) == MPI_ERR_PORT);
    }
    OK(MPI_Open_port(MPI_INFO_NULL, port));
    CHECK(strlen(port) <= 255);
    for (const char *c = port; *c; c++)
        CHECK(*c > ' ' && *c < 127);
    /* Nobody accepts. */
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "timeout", "1"));
    CHECK(class_of(MPI_Comm_connect(port, info, 0, MPI_COMM_SELF, &inter)) == MPI_ERR_PORT);
    /* No number, and one of seconds that no clock counts. */
    OK(MPI_Info_set(info, "timeout", "soon"));
    CHECK(class_of(MPI_Comm_connect(port, info, 0, MPI_COMM_SELF, &inter)) == MPI_ERR_INFO_VALUE);
    OK(MPI_Info_set(info, "timeout", "18446744073709551615"));
    CHECK(class_of(MPI_Comm_connect("isthmus1:AAAA", info, 0, MPI_COMM_SELF, &inter)) == MPI_ERR_PORT);
    /* Whom a port takes: words that are none, and a key that nobody has. */
    OK(MPI_Info_set(info, "isthmus_accept", "everybody"));
    CHECK(class_of(MPI_Open_port(info, other)) == MPI_ERR_INFO_VALUE);
    CHECK(class_of(MPI_Comm_accept(port, info, 0, MPI_COMM_SELF, &inter)) == MPI_ERR_INFO_VALUE);
    OK(MPI_Info_set(info, "isthmus_accept", "user=no-such-key"));
    CHECK(class_of(MPI_Open_port(info, other)) == MPI_ERR_OTHER);
    CHECK(class_of(MPI_Comm_accept(port, info, 0, MPI_COMM_SELF, &inter)) == MPI_ERR_OTHER);
    OK(MPI_Info_set(info, "isthmus_accept", "any-with-port"));
    OK(MPI_Open_port(info, other));
    OK(MPI_Close_port(other));
    OK(MPI_Close_port(port));
    CHECK(class_of(MPI_Comm_connect(port, info, 0, MPI_COMM_SELF, &inter)) == MPI_ERR_PORT);
    OK(MPI_Info_free(&info));
    CHECK(class_of(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter)) == MPI_ERR_PORT);
    CHECK(class_of(MPI_Comm_accept(port, MPI_INFO_NULL, 7, MPI_COMM_SELF, &inter)) == MPI_ERR_ROOT);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

/* Each process connects to its neighbour by itself, all at one time, through one port of each. */
static void by_oneself(int rank, int size)
{
    char port[MPI_MAX_PORT_NAME], theirs[MPI_MAX_PORT_NAME];
    MPI_Comm before, after;
    int value;
    OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Sendrecv(port, sizeof port, MPI_CHAR, (rank + 1) % size, 1, theirs, sizeof theirs, MPI_CHAR, (rank + size - 1) % size, 1,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (rank == 0) {
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &after));
        OK(MPI_Comm_connect(theirs, MPI_INFO_NULL, 0, MPI_COMM_SELF, &before));
    } else {
        OK(MPI_Comm_connect(theirs, MPI_INFO_NULL, 0, MPI_COMM_SELF, &before));
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &after));
    }
    /* Who connected here is the one after this process. */
    MPI_Request request;
    OK(MPI_Isend(&rank, 1, MPI_INT, 0, 2, before, &request));
    OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 2, after, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(value == (rank + 1) % size);
    /* Collective: in one order round the ring. */
    OK(MPI_Comm_disconnect(rank == 0 ? &after : &before));
    OK(MPI_Comm_disconnect(rank == 0 ? &before : &after));
    OK(MPI_Close_port(port));
}

/* Whether such a descriptor joins; if not, the error is one of the argument, with these words. */
static int joins(int fd, const char *words)
{
    char text[MPI_MAX_ERROR_STRING];
    int error, class, length;
    MPI_Comm inter;
    if ((error = MPI_Comm_join(fd, &inter)) == MPI_SUCCESS)
        return 1;
    OK(MPI_Error_class(error, &class));
    OK(MPI_Error_string(error, text, &length));
    CHECK(class == MPI_ERR_ARG && strstr(text, words));
    return 0;
}

/* Two processes that have a socket. */
static void by_socket(int rank)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof at;
    MPI_Comm inter;
    int fd, value;
    if (rank > 1)
        return;
    int first = socket(AF_INET, SOCK_STREAM, 0);
    if (rank == 0) {
        CHECK(bind(first, (struct sockaddr *) &at, sizeof at) == 0 && listen(first, 1) == 0);
        CHECK(getsockname(first, (struct sockaddr *) &at, &length) == 0);
        OK(MPI_Send(&at, sizeof at, MPI_BYTE, 1, 4, MPI_COMM_WORLD));
        fd = accept(first, NULL, NULL);
        close(first);
    } else {
        OK(MPI_Recv(&at, sizeof at, MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(connect(first, (struct sockaddr *) &at, sizeof at) == 0);
        fd = first;
    }
    CHECK(fd >= 0);
    /* One of them begins a message that it has to pack, which the other one needs before it joins. */
    enum { PIECES = 1 << 20 };
    static char data[8 * PIECES];
    MPI_Datatype pieces;
    MPI_Request request = MPI_REQUEST_NULL;
    OK(MPI_Type_vector(PIECES, 4, 8, MPI_CHAR, &pieces));
    OK(MPI_Type_commit(&pieces));
    if (rank == 0)
        OK(MPI_Isend(data, 1, pieces, 1, 5, MPI_COMM_WORLD, &request));
    else
        OK(MPI_Recv(data, 1, pieces, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Comm_join(fd, &inter));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Type_free(&pieces));
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, 0, 0, &value, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE));
    CHECK(value == 1 - rank);
    OK(MPI_Comm_disconnect(&inter));
    /* The socket is the program's, and quiet. */
    CHECK(write(fd, &rank, sizeof rank) == sizeof rank);
    CHECK(read(fd, &value, sizeof value) == sizeof value && value == 1 - rank);
    close(fd);
    /* No stream: a pipe, datagrams, and one whose other end is closed. */
    int none[2];
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    CHECK(pipe(none) == 0 && !joins(none[0], "non-socket"));
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, none) == 0 && !joins(none[0], "datagrams"));
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, none) == 0 && write(none[1], &rank, sizeof rank) == sizeof rank);
    CHECK(shutdown(none[1], SHUT_WR) == 0 && !joins(none[0], "the other end has closed it"));
    /* A process that says the first words, with a low number, and is gone before it connects. */
    char words[16 + sizeof(short) + MPI_MAX_PORT_NAME] = { [16] = 4, [18] = 'n', 'o', 'n', 'e' };
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, none) == 0);
    pid_t other = fork();
    if (other == 0) {
        close(none[0]);
        if (write(none[1], words, 22) != 22 || read(none[1], words, sizeof words) < 22)
            _exit(1);
        usleep(100000);
        _exit(0);
    }
    close(none[1]);
    CHECK(other > 0 && !joins(none[0], "the other end has closed it"));
    close(none[0]);
    CHECK(waitpid(other, &value, 0) == other && value == 0);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
}

static void read_port(const char *from, char *port)
{
    FILE *file;
    while (!(file = fopen(from, "r")))
        usleep(10000);
    CHECK(fgets(port, MPI_MAX_PORT_NAME, file));
    fclose(file);
}

int main(int argc, char **argv)
{
    char port[MPI_MAX_PORT_NAME];
    int rank, size, rounds = argc > 3 ? atoi(argv[3]) : 3, crowd = argc > 3 && strcmp(argv[1], "crowd") == 0, provided;
    OK(MPI_Init_thread(&argc, &argv, crowd ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    int root = size - 1;
    if (argc == 2) {
        MPI_Comm inter;
        OK(MPI_Comm_get_parent(&inter));
        if (inter == MPI_COMM_NULL)
            OK(MPI_Comm_spawn(argv[0], &argv[1], 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE));
        OK(MPI_Comm_disconnect(&inter));
    } else if (argc > 2 && strcmp(argv[1], "server") == 0) {
        if (rank == root) {
            char name[4096];
            OK(MPI_Open_port(MPI_INFO_NULL, port));
            snprintf(name, sizeof name, "%s.new", argv[2]);
            FILE *file = fopen(name, "w");
            CHECK(file && fputs(port, file) >= 0 && fclose(file) == 0 && rename(name, argv[2]) == 0);
        }
        serve(MPI_COMM_WORLD, root, port, rounds);
        if (rank == root)
            OK(MPI_Close_port(port));
    } else if (crowd) {
        CHECK(provided == MPI_THREAD_MULTIPLE);
        read_port(argv[2], port);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        printf("begins\n");
        fflush(stdout);
        printf("turned away after %.1f s\n", crowd_is_refused(port, rounds));
    } else if (argc > 2) {
        if (rank == root)
            read_port(argv[2], port);
        visit(MPI_COMM_WORLD, root, port, rounds);
    } else {
        MPI_Comm half;
        mistakes();
        if (rank == 0)
            OK(MPI_Open_port(MPI_INFO_NULL, port));
        OK(MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD));
        OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
        if (rank % 2 == 0)
            serve(half, 0, port, rounds);
        else
            visit(half, 0, port, rounds);
        OK(MPI_Comm_free(&half));
        by_oneself(rank, size);
        by_socket(rank);
        if (rank == 0)
            OK(MPI_Close_port(port));
    }
    OK(MPI_Finalize());
    if (rank == 0)
        printf("%s: all is well\n", argc > 2 ? argv[1] : "one job");
    return 0;
}
