/* SPDX-License-Identifier: Apache-2.0 */
/* Two jobs that find each other by a name. usage: meet-ports server|client ROUNDS MESSAGES [killed]
   Each round they exchange random messages and disconnect; "killed": the client kills itself instead in the last one, and in its middle
   the server waits for a file "cut".
   Before and after them the client knocks with names of ports that are not good, before them many times at once. */
#include "crowd.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST = 3000 };
static int waits;

static unsigned next(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Both ends draw the same numbers. */
static void exchange(MPI_Comm inter, int messages, int server, unsigned seed)
{
    unsigned mine = seed * 2 + (unsigned)server, theirs = seed * 2 + (unsigned)!server;
    unsigned char out[LONGEST], in[LONGEST];
    int rank;
    OK(MPI_Comm_rank(inter, &rank));
    mine += 7u * (unsigned)rank;
    theirs += 7u * (unsigned)rank;
    for (int n = 0; n < messages; n++) {
        int length = (int)(next(&mine) % LONGEST), expected = (int)(next(&theirs) % LONGEST), got;
        MPI_Status status;
        if (waits && n == messages / 2) {
            printf("half\n");
            fflush(stdout);
            for (int tries = 0; access("cut", F_OK) != 0 && tries < 1200; tries++)
                usleep(50000);
        }
        for (int i = 0; i < length; i++)
            out[i] = (unsigned char)next(&mine);
        OK(MPI_Sendrecv(out, length, MPI_BYTE, rank, n & 1023, in, LONGEST, MPI_BYTE, rank, n & 1023, inter, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &got));
        CHECK(got == expected);
        for (int i = 0; i < got; i++)
            CHECK(in[i] == (unsigned char)next(&theirs));
    }
}

/* Nobody lets this one in, and it is told so soon. */
static void turned_away(const char *port)
{
    MPI_Comm inter;
    int class;
    double begin = MPI_Wtime();
    int error = MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    CHECK(error != MPI_SUCCESS);
    OK(MPI_Error_class(error, &class));
    CHECK(class == MPI_ERR_PORT);
    printf("turned away after %.1f s\n", MPI_Wtime() - begin);
    fflush(stdout);
}

/* The same name with a letter changed. */
static void changed(const char *port, size_t at)
{
    char other[MPI_MAX_PORT_NAME];
    CHECK(strlen(port) > at);
    strcpy(other, port);
    other[at] = other[at] == 'A' ? 'B' : 'A';
    turned_away(other);
}

/* A byte of what a name is base64 of. */
static int byte_of(const char *port, int at)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const char *first = port + 9 + at * 8 / 6;
    int word = (int)(strchr(digits, first[0]) - digits) << 6 | (int)(strchr(digits, first[1]) - digits);
    return word >> (4 - at * 8 % 6) & 255;
}

/* Where the key is by which the process is known at the host: after 50 bytes and a mark, perhaps 9 and a gate of 2, 16 and some addresses, then 7, the host's
   length and name, 8 and 2. */
static int key_at_host(const char *port)
{
    int at = 51;
    if (byte_of(port, at) == 9) {
        int addresses = byte_of(port, at + 19);
        at += 20;
        while (addresses--)
            at += byte_of(port, at) == 4 ? 5 : 17;
    }
    CHECK(byte_of(port, at) == 7);
    return at + 2 + byte_of(port, at + 1) + 8 + 2;
}

/* Nothing of the exchange is on its way any more when the client is killed. */
static void settle(MPI_Comm inter, int server, int rank)
{
    char byte = 0;
    if (server)
        OK(MPI_Send(&byte, 1, MPI_BYTE, rank, 2000, inter));
    else
        OK(MPI_Recv(&byte, 1, MPI_BYTE, rank, 2000, inter, MPI_STATUS_IGNORE));
}

int main(int argc, char **argv)
{
    int server = strcmp(argv[1], "server") == 0, rounds = atoi(argv[2]), messages = atoi(argv[3]), rank, error, provided;
    int killed = argc > 4;
    double quickest = 1e9;
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Info info;
    MPI_Comm inter;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "isthmus_scope", "user"));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    if (rank == 0 && server) {
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        OK(MPI_Publish_name("rivers", info, port));
        printf("open\n");
        fflush(stdout);
    }
    if (rank == 0 && !server) {
        do
            error = MPI_Lookup_name("rivers", info, port);
        while (error != MPI_SUCCESS && usleep(100000) == 0);
        /* The secret of the port, and the key at the host. */
        if (!killed) {
            printf("turned away after %.1f s\n", crowd_is_refused(port, 100));
            changed(port, 9 + (key_at_host(port) + 8) * 4 / 3);
        }
    }
    for (int round = 0; round < rounds; round++) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        double begin = MPI_Wtime();
        error = server ? MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter)
                       : MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        if (error != MPI_SUCCESS) {
            char text[MPI_MAX_ERROR_STRING];
            int length;
            MPI_Error_string(error, text, &length);
            printf("not connected: %s\n", text);
            return 1;
        }
        if (MPI_Wtime() - begin < quickest)
            quickest = MPI_Wtime() - begin;
        waits = killed && server;
        exchange(inter, messages, server, (unsigned)round);
        if (killed && round == rounds - 1) {
            settle(inter, server, rank);
            break;
        }
        OK(MPI_Comm_disconnect(&inter));
    }
    if (rank == 0 && !server)
        printf("connected in %.0f ms at best\n", quickest * 1e3);
    if (killed && !server)
        raise(SIGKILL);
    if (killed) {
        char byte;
        OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
        error = MPI_Recv(&byte, 1, MPI_BYTE, rank, 0, inter, MPI_STATUS_IGNORE);
        CHECK(error != MPI_SUCCESS);
        /* Its error handler hears of the loss, and the communicator is gone all the same. */
        MPI_Comm_disconnect(&inter);
        CHECK(inter == MPI_COMM_NULL);
        printf("goes on\n");
    }
    if (rank == 0 && server) {
        OK(MPI_Unpublish_name("rivers", info, port));
        OK(MPI_Close_port(port));
    }
    if (rank == 0 && !server)
        turned_away(port);
    OK(MPI_Info_free(&info));
    OK(MPI_Finalize());
    printf("%s: all is well\n", argv[1]);
    return 0;
}
