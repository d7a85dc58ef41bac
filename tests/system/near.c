/* SPDX-License-Identifier: Apache-2.0 */
/* For near.sh: two programs of one node connect, `server FILE HOW` and `client FILE HOW`.
   talk: they send each other messages, and say how many of them crossed which level.
   send, receive: the client is killed in the middle of a long message that it sends, or receives; the server hears it.
   wait: both wait for what never comes, until somebody kills them. */
#include "../c/sent.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONG = 32 << 20, TIMES = 5 };

static MPI_Comm meet(int server, const char *file)
{
    char port[MPI_MAX_PORT_NAME] = "", unfinished[4096];
    MPI_Comm other;
    if (server) {
        MPI_Open_port(MPI_INFO_NULL, port);
        snprintf(unfinished, sizeof unfinished, "%s.part", file);
        FILE *out = fopen(unfinished, "w");
        if (!out || fputs(port, out) < 0 || fclose(out) || rename(unfinished, file))
            MPI_Abort(MPI_COMM_WORLD, 1);
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
    } else {
        FILE *in;
        while (!(in = fopen(file, "r")))
            usleep(1000);
        if (!fgets(port, sizeof port, in))
            MPI_Abort(MPI_COMM_WORLD, 1);
        fclose(in);
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
    }
    MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
    return other;
}

static void talk(MPI_Comm other, int server, char *data)
{
    for (int length = 1; length <= 1 << 20; length *= 32) {
        if (server)
            MPI_Send(data, length, MPI_CHAR, 0, 0, other);
        MPI_Recv(data, length, MPI_CHAR, 0, 0, other, MPI_STATUS_IGNORE);
        if (!server)
            MPI_Send(data, length, MPI_CHAR, 0, 0, other);
    }
    printf("%s: node %llu, local %llu, wide %llu\n", server ? "server" : "client", sent("node"), sent("local"), sent("wide"));
    MPI_Comm_disconnect(&other);
}

/* The end of the client, which has been asked to begin. */
static void dies(MPI_Comm other, const char *how, char *data)
{
    MPI_Request request;
    int flag;
    MPI_Recv(data, 1, MPI_CHAR, 0, 1, other, MPI_STATUS_IGNORE);
    if (!strcmp(how, "send"))
        MPI_Isend(data, LONG, MPI_CHAR, 0, 2, other, &request);
    else
        MPI_Irecv(data, LONG, MPI_CHAR, 0, 2, other, &request);
    for (int i = 0; i < 100; i++)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    kill(getpid(), SIGKILL);
}

static void hears(MPI_Comm other, const char *how, char *data)
{
    char text[MPI_MAX_ERROR_STRING];
    int length, code = MPI_Send(data, 1, MPI_CHAR, 0, 1, other);
    for (int i = 0; code == MPI_SUCCESS && i < TIMES; i++)
        code = !strcmp(how, "send") ? MPI_Recv(data, LONG, MPI_CHAR, 0, 2, other, MPI_STATUS_IGNORE) : MPI_Send(data, LONG, MPI_CHAR, 0, 2, other);
    MPI_Error_string(code, text, &length);
    printf("server: %s\n", text);
    MPI_Comm_disconnect(&other);
}

int main(int argc, char **argv)
{
    int provided, server = argc > 3 && !strcmp(argv[1], "server");
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (argc != 4)
        MPI_Abort(MPI_COMM_WORLD, 2);
    char *data = calloc(LONG, 1);
    MPI_Comm other = meet(server, argv[2]);
    if (!strcmp(argv[3], "talk"))
        talk(other, server, data);
    else if (!strcmp(argv[3], "wait"))
        MPI_Recv(data, 1, MPI_CHAR, 0, 9, other, MPI_STATUS_IGNORE);
    else if (server)
        hears(other, argv[3], data);
    else
        dies(other, argv[3], data);
    free(data);
    MPI_Finalize();
    return 0;
}
