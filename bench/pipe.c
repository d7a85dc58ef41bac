// SPDX-License-Identifier: Apache-2.0
// What passes between the first half of the ranks and the second: rank i sends to rank i + half.
//   pipe rate SECONDS[,MIB] [random|field] [INFO KEY=VALUE...]   bytes per second of all pairs together, after a third of that to warm up,
//                                                                with 16 messages of so many MiB (1) under way
//   pipe ping SECONDS CLASS                                 median of 8-byte pings on a communicator of this class, idle and under load
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WINDOW = 16, PINGS = 2000 };

static int rank, size, half, message = 1 << 20;

static MPI_Comm with(int count, char **pairs) {
    MPI_Info info;
    MPI_Comm comm;
    MPI_Info_create(&info);
    for (int i = 0; i < count; i++) {
        char *value = strchr(pairs[i], '=');
        if (!value) continue;
        *value = 0;
        MPI_Info_set(info, pairs[i], value + 1);
        *value = '=';
    }
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    MPI_Info_free(&info);
    return comm;
}

// Data as a simulation has them, in single precision, or noise.
static void fill(char *data, int field) {
    float *values = (float *)data;
    unsigned state = 12345u + (unsigned)rank;
    for (int i = 0; i < message / 4; i++) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        if (field) values[i] = 280.0f + 15.0f * sinf((float)i / 900.0f) + 3.0f * cosf((float)i / 4000.0f);
        else memcpy(&values[i], &state, 4);
    }
}

// The first half sends to the second as fast as it can until `until`; bytes per second that arrive here between `from` and then. Times of MPI_Wtime.
static double flow(double from, double until, MPI_Comm comm, int field) {
    char *data[WINDOW];
    MPI_Request requests[WINDOW];
    for (int w = 0; w < WINDOW; w++) {
        data[w] = malloc(message);
        fill(data[w], field);
        requests[w] = MPI_REQUEST_NULL;
    }
    int sending = rank < half, go = 1;
    double first = 0, bytes = 0, mine = 0;
    // Receives are posted ahead: otherwise every message waits a round trip for its clearance.
    for (int w = 0; !sending && w < WINDOW; w++) MPI_Irecv(data[w], message, MPI_BYTE, rank - half, 0, comm, &requests[w]);
    for (int i = 0; go; i++) {
        int w = i % WINDOW;
        MPI_Status status;
        MPI_Wait(&requests[w], &status);
        double now = MPI_Wtime();
        if (sending) {
            go = now < until;
            MPI_Isend(data[w], go ? message : 0, MPI_BYTE, rank + half, 0, comm, &requests[w]);
            continue;
        }
        int n;
        MPI_Get_count(&status, MPI_BYTE, &n);
        go = n > 0;
        if (go) MPI_Irecv(data[w], message, MPI_BYTE, rank - half, 0, comm, &requests[w]);
        if (!first) {
            if (now > from) first = now;
        } else if (go && now < until) {
            bytes += n;
            mine = bytes / (now - first);
        }
    }
    // As many empty messages as there are receives that still wait.
    for (int w = 1; sending && w < WINDOW; w++) MPI_Send(data[0], 0, MPI_BYTE, rank + half, 0, comm);
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    for (int w = 0; w < WINDOW; w++) free(data[w]);
    return mine;
}

static double rate(double seconds, MPI_Comm comm, int field) {
    double begin = MPI_Wtime(), sum = 0, mine = flow(begin + seconds / 3, begin + seconds * 4 / 3, comm, field);
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(MPI_Comm comm, double seconds) {
    static double times[PINGS];
    double begin = MPI_Wtime();
    int n = 0;
    long word = 0;
    while (n < PINGS && MPI_Wtime() < begin + seconds) {
        double start = MPI_Wtime();
        MPI_Send(&word, 8, MPI_BYTE, half, 1, comm);
        MPI_Recv(&word, 8, MPI_BYTE, half, 1, comm, MPI_STATUS_IGNORE);
        times[n++] = MPI_Wtime() - start;
    }
    word = -1;
    MPI_Send(&word, 8, MPI_BYTE, half, 2, comm);
    qsort(times, (size_t)n, sizeof times[0], by_size);
    return times[n / 2];
}

static void echo(MPI_Comm comm) {
    long word;
    MPI_Status status;
    for (;;) {
        MPI_Recv(&word, 8, MPI_BYTE, 0, MPI_ANY_TAG, comm, &status);
        if (status.MPI_TAG == 2) return;
        MPI_Send(&word, 8, MPI_BYTE, 0, 1, comm);
    }
}

// Ranks 0 and half ping; the other pairs send.
static void ping(double seconds, const char *class, const char *other) {
    char text[100], load[100];
    snprintf(text, sizeof text, "isthmus_class=%s", class);
    snprintf(load, sizeof load, "isthmus_class=%s", other);
    char *pairs[] = {text}, *loads[] = {load};
    MPI_Comm comm = with(1, pairs), bulk = with(1, loads);
    double idle = 0, busy = 0, carried = 0, all = 0;
    for (int loaded = 0; loaded < 2; loaded++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        if (rank == 0 || rank == half) {
            // The load gets going.
            while (MPI_Wtime() < begin + loaded * seconds / 2) usleep(10000);
            if (rank) echo(comm);
            else if (loaded) busy = median(comm, seconds / 2);
            else idle = median(comm, seconds / 2);
        } else if (loaded) {
            // What arrives while the others ping.
            carried = flow(begin + seconds / 2, begin + seconds, bulk, 0);
        }
    }
    MPI_Reduce(&carried, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("ping idle_ms %.3f loaded_ms %.3f ratio %.3f, load of %.1f Mbit/s\n", idle * 1e3, busy * 1e3, busy / idle, all * 8e-6);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    half = size / 2;
    char *end = "";
    double seconds = argc > 2 ? strtod(argv[2], &end) : 10;
    if (*end == ',') message = atoi(end + 1) << 20;
    if (seconds <= 0 || message <= 0 || message > 64 << 20) {
        if (rank == 0) fprintf(stderr, "pipe: %s: not SECONDS[,MIB] with 1 to 64 MiB\n", argv[2]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (argc > 1 && !strcmp(argv[1], "ping")) {
        ping(seconds, argc > 3 ? argv[3] : "latency", argc > 4 ? argv[4] : "bulk");
    } else {
        int field = argc > 3 && !strcmp(argv[3], "field"), skip = argc > 3 ? 4 : 3;
        MPI_Comm comm = with(argc > skip ? argc - skip : 0, argv + skip);
        double bytes = rate(seconds, comm, field);
        if (rank == 0) printf("rate_mbit %.2f\n", bytes * 8e-6);
    }
    MPI_Finalize();
    return 0;
}
