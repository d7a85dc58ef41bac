/* SPDX-License-Identifier: Apache-2.0 */
/* For lost-client.sh: a server of two processes, of which only the first exchanges messages with its clients. The first client is killed, the second
   one is served. Arguments: server FILE, or killed FILE, or served FILE; the file has the name of the port. With `leaves` instead of `server` it ends
   after the first client, with which it stays connected. */
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

static void serve(const char *file, int rank, int leaves)
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

static void visit(const char *file, int dies)
{
    char port[MPI_MAX_PORT_NAME] = "";
    FILE *in = fopen(file, "r");
    MPI_Comm other;
    if (!in || !fgets(port, sizeof port, in))
        MPI_Abort(MPI_COMM_WORLD, 3);
    fclose(in);
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
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
    if (!strcmp(argv[1], "server") || !strcmp(argv[1], "leaves"))
        serve(argv[2], rank, argv[1][0] == 'l');
    else
        visit(argv[2], !strcmp(argv[1], "killed"));
    MPI_Finalize();
    printf("process %d has ended\n", rank);
    return 0;
}
