/* SPDX-License-Identifier: Apache-2.0 */
/* Two jobs that know each other by a file. usage: ways server|client FILE ROUNDS MESSAGES
   All processes of both exchange messages with all of the other one, and disconnect. In the last round's middle the server waits for a file "cut". */
#include "check.h"
#include <string.h>
#include <unistd.h>

enum { LONGEST = 3000 };

static unsigned next(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void fill(unsigned char *bytes, int length, unsigned seed)
{
    for (int i = 0; i < length; i++)
        bytes[i] = (unsigned char)next(&seed);
}

/* Both ends know what the other one sends. */
static void exchange(MPI_Comm inter, int messages, int server, int waits)
{
    unsigned char out[LONGEST], in[LONGEST], right[LONGEST];
    int rank, others;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_remote_size(inter, &others));
    for (int n = 0; n < messages; n++) {
        if (waits && n == messages / 2) {
            printf("half\n");
            fflush(stdout);
            for (int tries = 0; access("cut", F_OK) != 0 && tries < 1200; tries++)
                usleep(50000);
        }
        for (int other = 0; other < others; other++) {
            unsigned mine = (unsigned)(n * 1000 + (server ? rank * 10 + other : other * 10 + rank));
            int sent = (int)(mine % LONGEST), got;
            MPI_Status status;
            fill(out, sent, 2 * mine + (unsigned)server);
            OK(MPI_Sendrecv(out, sent, MPI_BYTE, other, n & 1023, in, LONGEST, MPI_BYTE, other, n & 1023, inter, &status));
            OK(MPI_Get_count(&status, MPI_BYTE, &got));
            fill(right, got, 2 * mine + (unsigned)!server);
            CHECK(got == sent && memcmp(in, right, (size_t)got) == 0);
        }
    }
}

int main(int argc, char **argv)
{
    int server = strcmp(argv[1], "server") == 0, rounds = atoi(argv[3]), messages = atoi(argv[4]), rank;
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    FILE *file;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (rank == 0 && server) {
        char new[4096];
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        snprintf(new, sizeof new, "%s.new", argv[2]);
        file = fopen(new, "w");
        CHECK(file && fputs(port, file) >= 0 && fclose(file) == 0 && rename(new, argv[2]) == 0);
    }
    if (rank == 0 && !server) {
        file = fopen(argv[2], "r");
        CHECK(file && fgets(port, sizeof port, file) && fclose(file) == 0);
    }
    for (int round = 0; round < rounds; round++) {
        int error = server ? MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter)
                           : MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        OK(error);
        exchange(inter, messages, server, server && rank == 0 && round == rounds - 1);
        OK(MPI_Comm_disconnect(&inter));
    }
    if (rank == 0 && server)
        OK(MPI_Close_port(port));
    OK(MPI_Finalize());
    printf("%s: all is well\n", argv[1]);
    return 0;
}
