// SPDX-License-Identifier: Apache-2.0
// A byte-exact random exchange between two halves of a world: every process sends so many messages of random length to random
// processes of the other half, short and long, and knows what must come from whom. Prints a line when it has begun, when all was right.
// With a third argument "lost": the other half goes away; the survivors must be told, and compute on.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static int length_of(int from, int to, int i) {
    uint64_t r = mix(((uint64_t)from << 48) ^ ((uint64_t)to << 32) ^ (uint64_t)i);
    // Mostly short, some of a few hundred kilobytes, few that need a rendezvous.
    if (r % 1000 == 0) return 1100000 + (int)(r >> 40) % 900000;
    if (r % 100 < 2) return (int)((r >> 20) % 200000);
    return (int)((r >> 20) % 2000);
}

static void fill(unsigned char *buffer, int length, int from, int to, int i) {
    uint64_t state = mix(((uint64_t)to << 48) ^ ((uint64_t)from << 32) ^ (uint64_t)i ^ 0x5555);
    int at = 0;
    for (; at + 8 <= length; at += 8) {
        state += 0x9e3779b97f4a7c15u;
        uint64_t word = state ^ (state >> 29);
        memcpy(buffer + at, &word, 8);
    }
    for (; at < length; at++) buffer[at] = (unsigned char)(state >> (at & 7));
}

enum { WINDOW = 16, LONGEST = 2000000 };

static int exchange(int messages, int rank, int size, double spread) {
    int half = size / 2, low = rank < half;
    int first = low ? half : 0, count = low ? size - half : half;
    unsigned char *sent[WINDOW], *got = malloc(LONGEST), *want = malloc(LONGEST);
    MPI_Request requests[WINDOW];
    for (int w = 0; w < WINDOW; w++) sent[w] = malloc(LONGEST), requests[w] = MPI_REQUEST_NULL;
    double begin = MPI_Wtime();
    long bytes = 0;
    for (int i = 0; i < messages; i++) {
        // Both sides agree on who talks to whom in round i.
        int turn = (int)(mix((uint64_t)i) % (uint64_t)count);
        int peer = first + (low ? (rank + turn) % count : ((rank - half) % count - turn % count + count) % count);
        int w = i % WINDOW, length = length_of(rank, peer, i);
        MPI_Wait(&requests[w], MPI_STATUS_IGNORE);
        fill(sent[w], length, rank, peer, i);
        MPI_Isend(sent[w], length, MPI_BYTE, peer, i & 7, MPI_COMM_WORLD, &requests[w]);
        bytes += length;
        int expected = length_of(peer, rank, i), n;
        MPI_Status status;
        MPI_Recv(got, LONGEST, MPI_BYTE, peer, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &n);
        fill(want, expected, peer, rank, i);
        if (n != expected || status.MPI_TAG != (i & 7) || memcmp(got, want, (size_t)n) != 0) {
            printf("rank %d: message %d from %d is wrong: %d bytes of %d, tag %d\n", rank, i, peer, n, expected, status.MPI_TAG);
            return 1;
        }
        while (spread > 0 && MPI_Wtime() < begin + spread * i / messages) usleep(1000);
    }
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    printf("rank %d: %d messages each way, %ld bytes, %.1f s\n", rank, messages, bytes, MPI_Wtime() - begin);
    return 0;
}

// The other half goes away while this one waits for it.
static int lose(int rank, int size) {
    MPI_Comm own;
    int half = size / 2, peer = (rank + half) % size, byte = 0;
    MPI_Comm_split(MPI_COMM_WORLD, rank < half, rank, &own);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Sendrecv_replace(&byte, 1, MPI_BYTE, peer, 1, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("ready\n"), fflush(stdout);
    int error = MPI_Recv(&byte, 1, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (error == MPI_SUCCESS) return printf("rank %d: a message came from nowhere\n", rank), 1;
    char text[MPI_MAX_ERROR_STRING];
    int n, sum = 0;
    MPI_Error_string(error, text, &n);
    printf("rank %d: told: %s\n", rank, text);
    int one = 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, own);
    printf("rank %d: %d survivors compute on\n", rank, sum);
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, messages = argc > 1 ? atoi(argv[1]) : 1000;
    double spread = argc > 2 ? atof(argv[2]) : 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 3) {
        if (lose(rank, size)) MPI_Abort(MPI_COMM_WORLD, 1);
        // There is nobody to end orderly with.
        _exit(0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("begun\n"), fflush(stdout);
    if (exchange(messages, rank, size, spread)) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("all right\n");
    MPI_Finalize();
    return 0;
}
