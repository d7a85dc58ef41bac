/* SPDX-License-Identifier: Apache-2.0
 *
 * How far apart the processors of ranks 0 and 1 are: half the time in which a word goes from one to the other and back. On a virtual machine that
 * changes while programs run, from processors that share a cache to processors that do not, and with it every time inside a node, by a factor of
 * three. What is compared is measured at the same distance. More ranks on two processors are measured at the distance of these: while ranks 0 and 1
 * find it out, each on one of them, the others sleep.
 */
#ifndef CORES_H
#define CORES_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* A file of memory is grown to this, and words lie so far apart. */
enum { CORES_ROOM = 4096, CORES_APART = 256 };
/* Of up to so many ranks the first two have processors of their own. */
enum { CORES_ALONE = 3 };
enum { CORES_BURSTS = 20, CORES_TURNS = 250 };

/* There and back; anything below zero ends a series of probes. How many series have ended. */
static _Atomic int *cores_there, *cores_back, *cores_series;
static int cores_turn, cores_known;

static double cores_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Shares the words. Collective. Whether that worked. */
static int cores_open(int rank)
{
    char name[] = "/dev/shm/mpibench-XXXXXX";
    int file = -1, works = 1, everywhere = 0;
    if (rank == 0) {
        file = mkstemp(name);
        works = file >= 0 && ftruncate(file, CORES_ROOM) == 0;
    }
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank > 0)
        works = (file = open(name, O_RDWR)) >= 0;
    if (works) {
        char *room = mmap(NULL, CORES_ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        works = room != MAP_FAILED;
        if (works) {
            cores_there = (_Atomic int *)room;
            cores_back = (_Atomic int *)(room + CORES_APART);
            cores_series = (_Atomic int *)(room + 2 * CORES_APART);
        }
    }
    /* Others may be elsewhere. */
    if (rank > 1)
        works = 1;
    MPI_Allreduce(&works, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0 && file >= 0)
        unlink(name);
    if (file >= 0)
        close(file);
    return everywhere;
}

/* Nanoseconds, by rank 0 while rank 1 echoes: the best of some bursts. */
static double cores_probe(void)
{
    double best = 1e9;
    for (int burst = 0; burst < CORES_BURSTS; burst++) {
        double start = cores_now();
        for (int i = 0; i < CORES_TURNS; i++) {
            atomic_store_explicit(cores_there, ++cores_turn, memory_order_release);
            while (atomic_load_explicit(cores_back, memory_order_acquire) != cores_turn)
                ;
        }
        double once = (cores_now() - start) / CORES_TURNS / 2 * 1e9;
        best = once < best ? once : best;
    }
    return best;
}

/* Rank 1, until rank 0 has said what comes of the probes: that is the result. */
static int cores_echo(void)
{
    int seen = atomic_load_explicit(cores_back, memory_order_relaxed), word;
    while ((word = atomic_load_explicit(cores_there, memory_order_acquire)) >= 0)
        if (word != seen)
            atomic_store_explicit(cores_back, seen = word, memory_order_release);
    atomic_store_explicit(cores_back, word, memory_order_release);
    /* The next series, which may begin already, is not mistaken for this one. */
    while (atomic_load_explicit(cores_there, memory_order_acquire) == word)
        ;
    return word;
}

/* Rank 0 ends a series of probes with a word below zero, which rank 1 gets. */
static void cores_say(int word)
{
    atomic_store_explicit(cores_there, word, memory_order_release);
    while (atomic_load_explicit(cores_back, memory_order_acquire) != word)
        ;
    cores_turn = 0;
    atomic_store_explicit(cores_there, 0, memory_order_release);
    atomic_fetch_add(cores_series, 1);
}

/* Ranks that do not probe, until a series has ended. */
static void cores_sleep(void)
{
    struct timespec nap = {0, 1000000};
    while (cores_series && atomic_load(cores_series) == cores_known)
        nanosleep(&nap, NULL);
    cores_known++;
}

/* Ranks 0 and 1 where others share their processors: each on one of these, until it is `allowed` others again. Whether these are known. */
static int cores_pin(int rank, cpu_set_t *allowed)
{
    cpu_set_t one;
    int which = rank;
    if (sched_getaffinity(0, sizeof *allowed, allowed))
        return 0;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, allowed) && which-- == 0)
            CPU_SET(cpu, &one);
    if (CPU_COUNT(&one) > 0)
        sched_setaffinity(0, sizeof one, &one);
    return 1;
}

static int cores_alike(double a, double b)
{
    return a < b * 1.5 && b < a * 1.5;
}

#endif
