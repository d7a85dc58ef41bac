// SPDX-License-Identifier: Apache-2.0
// Rank 0 sends to rank 1, at another site, on one communicator after the other: by the kind of connection that they ask for (isthmus_path), then of
// each class. Prints when each part began and ended, seconds since 1970.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { LENGTH = 1 << 20, MESSAGES = 8, PINGS = 150 };

static int rank;
static char *data;

static double now(void)
{
    struct timeval t;
    gettimeofday(&t, NULL);
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static MPI_Comm with(const char *key, const char *value)
{
    MPI_Info info;
    MPI_Comm comm;
    char got[64];
    int length = sizeof got, flag;
    MPI_Info_create(&info);
    MPI_Info_set(info, "isthmus_compress", "false");
    MPI_Info_set(info, key, value);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    MPI_Info_free(&info);
    MPI_Comm_get_info(comm, &info);
    MPI_Info_get_string(info, key, &length, got, &flag);
    if (!flag || strcmp(got, value) != 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Info_free(&info);
    return comm;
}

static void pings(MPI_Comm comm)
{
    for (int i = 0; i < PINGS; i++) {
        if (rank == 0)
            MPI_Send(data, 64, MPI_CHAR, 1, 1, comm), MPI_Recv(data, 64, MPI_CHAR, 1, 1, comm, MPI_STATUS_IGNORE);
        else
            MPI_Recv(data, 64, MPI_CHAR, 0, 1, comm, MPI_STATUS_IGNORE), MPI_Send(data, 64, MPI_CHAR, 0, 1, comm);
    }
}

static void stream(MPI_Comm comm)
{
    for (int i = 0; i < MESSAGES; i++) {
        if (rank == 0)
            MPI_Send(data, LENGTH, MPI_CHAR, 1, 2, comm);
        else
            MPI_Recv(data, LENGTH, MPI_CHAR, 0, 2, comm, MPI_STATUS_IGNORE);
    }
}

// Connections of the kind that is wanted come about during the first pings.
static void part(const char *name, MPI_Comm comm, void (*work)(MPI_Comm))
{
    pings(comm);
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(200000);
    double begin = now();
    work(comm);
    MPI_Barrier(comm);
    usleep(200000);
    if (rank == 0) {
        printf("part %s %.6f %.6f\n", name, begin, now());
        fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    data = calloc(LENGTH, 1);
    part("direct", with("isthmus_path", "direct"), stream);
    part("gateway", with("isthmus_path", "gateway"), stream);
    part("common", MPI_COMM_WORLD, stream);
    part("latency", with("isthmus_class", "latency"), pings);
    part("bulk", with("isthmus_class", "bulk"), stream);
    if (rank == 0) {
        printf("hold\n");
        fflush(stdout);
    }
    for (int go = 1; go; usleep(100000)) {
        if (rank == 0 && argc > 1 && access(argv[1], F_OK) == 0)
            go = 0;
        MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
