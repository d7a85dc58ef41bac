/* SPDX-License-Identifier: Apache-2.0 */
/* For lost-client.sh: a server of two processes, of which only the first exchanges messages with its clients. The first client is killed, the second
   one is served. Arguments: server FILE, or killed FILE, or served FILE; the file has the name of the port. With `leaves` instead of `server` it ends
   after the first client, with which it stays connected. With `waits` its processes wait for messages of a client that has `gone` before it has sent any:
   one receives, the other one probes. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void exchange(MPI_Comm other)
{
    int one = 1;
    MPI_Sendrecv(&one, 1, MPI_INT, 0, 1, &one, 1, MPI_INT, 0, 1, other, MPI_STATUS_IGNORE);
}

/* The same for the message that does not come, and for one of anybody. */
static void wait_in_vain(MPI_Comm other, int rank)
{
    MPI_Status status;
    int more, error = rank ? MPI_Probe(MPI_ANY_SOURCE, 2, other, &status) : MPI_Recv(&more, 1, MPI_INT, 0, 2, other, MPI_STATUS_IGNORE);
    printf("process %d waits for client 0: %s\n", rank, error ? "an error" : "all is well");
    fflush(stdout);
    MPI_Comm_disconnect(&other);
}

static void serve(const char *file, int rank, int leaves, int waits)
{
    char port[MPI_MAX_PORT_NAME] = "", made[4096];
    MPI_Comm other;
    FILE *out;
    int more, error;
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        snprintf(made, sizeof made, "%s.made", file);
        out = fopen(made, "w");
        fputs(port, out);
        fclose(out);
        rename(made, file);
    }
    for (int client = 0; client < 2; client++) {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
        MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
        if (waits) {
            wait_in_vain(other, rank);
            return;
        }
        if (rank == 0) {
            exchange(other);
            /* Until the first one is lost. */
            if (client == 0 && MPI_Recv(&more, 1, MPI_INT, 0, 2, other, MPI_STATUS_IGNORE) == MPI_SUCCESS)
                MPI_Abort(MPI_COMM_WORLD, 2);
        }
        if (leaves)
            return;
        error = MPI_Comm_disconnect(&other);
        printf("process %d is through with client %d: %s\n", rank, client, error ? "an error" : "all is well");
        fflush(stdout);
    }
    if (rank == 0)
        MPI_Close_port(port);
}

static void visit(const char *file, int dies, int at_once)
{
    char port[MPI_MAX_PORT_NAME] = "";
    FILE *in = fopen(file, "r");
    MPI_Comm other;
    if (!in || !fgets(port, sizeof port, in))
        MPI_Abort(MPI_COMM_WORLD, 3);
    fclose(in);
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
    if (!at_once)
        exchange(other);
    if (dies)
        raise(SIGKILL);
    MPI_Comm_disconnect(&other);
    printf("the client was served\n");
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 3)
        MPI_Abort(MPI_COMM_WORLD, 1);
    int leaves = !strcmp(argv[1], "leaves"), waits = !strcmp(argv[1], "waits"), gone = !strcmp(argv[1], "gone");
    if (!strcmp(argv[1], "server") || leaves || waits)
        serve(argv[2], rank, leaves, waits);
    else
        visit(argv[2], gone || !strcmp(argv[1], "killed"), gone);
    MPI_Finalize();
    printf("process %d has ended\n", rank);
    return 0;
}
