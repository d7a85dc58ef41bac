/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of programs that measure steps of their own: microseconds a step at the slowest process, in tables as IMB prints them. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

static int rank, size;

struct step {
    const char *name;
    void (*step)(void);
};

/* Ends the program: the values that came are not those that were sent. */
static void fail(const char *what)
{
    fprintf(stderr, "rank %d: wrong values in %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Seconds of so many steps at the slowest process, known to all. */
static double seconds_of(void (*step)(void), long count)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime(), own, slowest;
    for (long n = 0; n < count; n++)
        step();
    own = MPI_Wtime() - begin;
    MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

/* How long each step is to be measured, seconds: the first argument. Finds rank and size, too. */
static double begin_steps(int argc, char **argv)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double seconds = argc > 1 ? atof(argv[1]) : 0;
    if (seconds <= 0 || size > MOST) {
        fprintf(stderr, "usage: %s SECONDS [STEP...], by at most %d processes\n", argv[0], MOST);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return seconds;
}

/* Measures those of the steps that the arguments name, or all: as many of each as take about so many seconds. */
static void measure(const struct step *steps, size_t number, double seconds, int argc, char **argv)
{
    for (size_t k = 0; k < number; k++) {
        int wanted = argc == 2;
        for (int i = 2; i < argc; i++)
            wanted |= strcmp(argv[i], steps[k].name) == 0;
        if (!wanted)
            continue;
        long count = 8;
        double time = seconds_of(steps[k].step, count);
        while (time < seconds / 8 && count < 1L << 30)
            time = seconds_of(steps[k].step, count *= 4);
        count = (long)((double)count * seconds / time) + 1;
        time = seconds_of(steps[k].step, count);
        if (rank == 0)
            printf("# Benchmarking %s\n #repetitions t[usec]\n %ld %.3f\n", steps[k].name, count, time / (double)count * 1e6);
    }
}
