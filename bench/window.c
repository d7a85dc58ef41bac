// SPDX-License-Identifier: Apache-2.0
/* Eight bytes between two processes of a node, by MPI_Put, by MPI_Get and by memcpy through plain shared memory, in turns.
   usage: mpiexec -n 2 window [ROUNDS] [TIMES]
   A line each: `put`, `get`, `memcpy`: nanoseconds of a call, the fewest of ROUNDS (20) of TIMES (100000) calls in a row, with the
   flush; `there and back`: half of the time in which a word goes there and another one comes back, put or copied. The last lines say the
   ratios to memcpy. Each process needs a processor of its own. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORDS = 512, WAYS = 3 };
enum { PUT, GET, COPY };
static const char *names[WAYS] = {"put", "get", "memcpy"};

static int rank, other;
static MPI_Win window;
/* What this process and the other one look at: of the window, and of plain shared memory. */
static volatile long *mine, *plain_mine;
static long *plain_there;

static long *plain(void)
{
    char name[64];
    int id = rank == 0 ? (int)getpid() : 0;
    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "/isthmus-bench-%d", id);
    int file = shm_open(name, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 2 * WORDS * sizeof(long)))
        MPI_Abort(MPI_COMM_WORLD, 1);
    long *memory = mmap(NULL, 2 * WORDS * sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        shm_unlink(name);
    close(file);
    if (memory == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return memory;
}

static void operate(int way, long *word, long at)
{
    switch (way) {
    case PUT:
        MPI_Put(word, 1, MPI_LONG, other, at, 1, MPI_LONG, window);
        MPI_Win_flush(other, window);
        break;
    case GET:
        MPI_Get(word, 1, MPI_LONG, other, at, 1, MPI_LONG, window);
        MPI_Win_flush(other, window);
        break;
    default:
        memcpy(plain_there + at, word, sizeof *word);
        __asm__ volatile("" ::: "memory");
    }
}

static double alone(int way, int times)
{
    double began = MPI_Wtime();
    for (long i = 0; i < times; i++) {
        long word = i;
        operate(way, &word, 1 + i % (WORDS - 1));
    }
    return (MPI_Wtime() - began) / times * 1e9;
}

/* A word in the first place that the other process waits for, which then puts its own. */
static double there_and_back(int way, int times, long *turn)
{
    volatile long *seen = way == COPY ? plain_mine : mine;
    double began = MPI_Wtime();
    for (int i = 0; i < times; i++) {
        ++*turn;
        if (rank == 0)
            operate(way, turn, 0);
        while (*seen != *turn)
            ;
        if (rank == 1)
            operate(way, turn, 0);
    }
    return (MPI_Wtime() - began) / times / 2 * 1e9;
}

int main(int argc, char **argv)
{
    int size, rounds = argc > 1 ? atoi(argv[1]) : 20, times = argc > 2 ? atoi(argv[2]) : 100000;
    long *memory, turns[WAYS] = {0};
    double calls[WAYS] = {1e9, 1e9, 1e9}, ways[WAYS] = {1e9, 1e9, 1e9};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2 || rounds < 1 || times < 1) {
        fprintf(stderr, "usage: window [ROUNDS] [TIMES], by two processes\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    other = 1 - rank;
    MPI_Win_allocate(WORDS * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    memset(memory, 0, WORDS * sizeof(long));
    mine = memory;
    long *both = plain();
    plain_mine = both + rank * WORDS;
    plain_there = both + other * WORDS;
    MPI_Win_lock_all(0, window);
    for (int round = 0; round < rounds; round++) {
        for (int way = 0; way < WAYS; way++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double taken = rank == 0 ? alone(way, times) : 0;
            calls[way] = rank == 0 && taken < calls[way] ? taken : calls[way];
            MPI_Barrier(MPI_COMM_WORLD);
            if (way == GET)
                continue;
            taken = there_and_back(way, times / 10 + 1, &turns[way]);
            ways[way] = taken < ways[way] ? taken : ways[way];
        }
    }
    if (rank == 0) {
        for (int way = 0; way < WAYS; way++)
            printf("%s: %.1f ns\n", names[way], calls[way]);
        printf("there and back: put %.1f ns, memcpy %.1f ns\n", ways[PUT], ways[COPY]);
        printf("ratios: put %.2f, get %.2f, there and back %.2f\n", calls[PUT] / calls[COPY], calls[GET] / calls[COPY], ways[PUT] / ways[COPY]);
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
