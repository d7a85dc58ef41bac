/* SPDX-License-Identifier: Apache-2.0
 *
 * Measurements of an MPI library with nothing but MPI: compiled with each library's own mpicc and driven by
 * isthmus-bench, which interleaves libraries and compares.
 *
 *   mpibench [-c PROCESSOR] [-m] [-p PLACES] [-d NANOSECONDS] [-t SECONDS] [-a ITERATIONS] TEST[:BYTES]...
 *
 * Tests: latency (half a ping-pong of the first and the last rank), polled and probed (the same, received by loops over MPI_Test and MPI_Iprobe), all-latency, all-polled
 * and all-probed (the same of all ranks at once, in pairs), bandwidth (a message from the first to the last rank and an empty answer), rate (64 messages under way from the first to the last rank, then an empty answer), barrier, bcast, reduce, allreduce, gather, allgather, alltoall (BYTES each rank contributes;
 * alltoall: to each rank), pending (a ping-pong of ranks 0 and 1 on a communicator of their own, while both wait for the last
 * rank too), any (the same on MPI_COMM_WORLD, received from any source), blocked (CPU time of the last rank while it waits in MPI_Recv for BYTES milliseconds),
 * rss and pss (resident memory of a rank, mean over all, pages that ranks share counted for each or in parts; after an exchange with two neighbours),
 * distance (of the processors of ranks 0 and 1, see cores.h: the median of probes over SECONDS).
 * Rank 0 prints a line for each: RESULT TEST BYTES VALUE UNIT.
 *
 * -c: every rank runs on this processor only, from before MPI_Init on.
 *
 * -m: messages are timed in one loop of at least half of SECONDS, all of it. Where processors are shared the median of short loops tells of the
 * luckiest moments.
 *
 * -p: ranks of each machine, as "4,4", with sites divided by slashes; it is checked that they are there: ranks that a launcher has put on one
 * host would measure its memory.
 *
 * -d: measure where ranks 0 and 1 (of more than three: the first two processors, which must be all there are) are about so far apart: each
 * test waits for that and is repeated if it is not so at its end. What never came so is reported as the value "elsewhere".
 *
 * A collective is timed in loops that last about SECONDS together: the median. Where some ranks may be many operations ahead of others (a root
 * that only sends, those that only send to it) a short loop shows how far ahead they are; there one loop of the whole length counts, at
 * the rank where it lasts longest. With -a (across an emulated wide area, whose hosts
 * share a clock; wrong across real machines) bandwidth counts until the last rank has the message, without the answer,
 * and each collective starts on all ranks at one moment and lasts until the last rank is done; the median of
 * ITERATIONS is given.
 */
#include "cores.h"
#include "fill.h"
#include "places.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { BATCHES = 21 };
/* How often a test is repeated while ranks are not where they should be, and how long each time it waits for that. */
enum { ATTEMPTS = 4, PATIENCE_SECONDS = 3 };

static int rank, size;
static double seconds = 0.3;
static int aligned, mean;
static double distance;
static char *out, *in;

static double now(void)
{
    return cores_now();
}

static void sleep_until(double at)
{
    struct timespec t;
    t.tv_sec = (time_t)at;
    t.tv_nsec = (long)((at - (double)t.tv_sec) * 1e9);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        ;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return values[count / 2];
}

/* How often to repeat what took `once` seconds; the same on all ranks. */
static int repeats(double once, double budget)
{
    double n = budget / (once > 1e-9 ? once : 1e-9);
    int count = n < 1 ? 1 : n > 1e6 ? 1000000 : (int)n;
    MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return count;
}

/* How messages are received. */
static enum { BLOCKING, TESTING, PROBING } way;
/* All ranks exchange messages, in pairs; otherwise the first and the last. */
static int everybody;

static void receive(int bytes, int from, int tag)
{
    MPI_Request request;
    int there = 0;
    while (way == PROBING && !there)
        MPI_Iprobe(from, tag, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    if (way != TESTING) {
        MPI_Recv(in, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    MPI_Irecv(in, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
    while (!there)
        MPI_Test(&request, &there, MPI_STATUS_IGNORE);
}

/* With whom this rank exchanges messages: itself, if with nobody. */
static int partner(void)
{
    int half = size / 2;
    if (everybody)
        return rank >= 2 * half ? rank : rank < half ? rank + half : rank - half;
    return rank == 0 ? size - 1 : rank == size - 1 ? 0 : rank;
}

static void ping(int bytes, int back, int count)
{
    int other = partner();
    for (int i = 0; i < count; i++) {
        if (rank < other) {
            MPI_Send(out, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
            receive(back, other, 2);
        } else if (rank > other) {
            receive(bytes, other, 1);
            MPI_Send(out, back, MPI_BYTE, other, 2, MPI_COMM_WORLD);
        }
    }
}

/* Of ranks 0 and 1, received from the given source. */
static void pair(int bytes, int count, int source, MPI_Comm comm)
{
    for (int i = 0; i < count; i++) {
        if (rank == 0) {
            MPI_Send(out, bytes, MPI_BYTE, 1, 7, comm);
            MPI_Recv(in, bytes, MPI_BYTE, source, 7, comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, bytes, MPI_BYTE, source, 7, comm, MPI_STATUS_IGNORE);
            MPI_Send(out, bytes, MPI_BYTE, 0, 7, comm);
        }
    }
}

/* Seconds of an exchange of ranks 0 and 1 while the last rank is idle; `pending`: while both wait for it. */
static double besides(int bytes, int pending)
{
    double batch[BATCHES], result = 0;
    int last = size - 1, late = 0, count = 1000;
    MPI_Comm comm;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2, 0, &comm);
    if (rank < 2) {
        if (pending && last > 1)
            MPI_Irecv(&late, 1, MPI_INT, last, 8, MPI_COMM_WORLD, &request);
        for (int b = -1; b < BATCHES; b++) {
            double start = now();
            pair(bytes, count, pending ? 1 - rank : MPI_ANY_SOURCE, pending ? comm : MPI_COMM_WORLD);
            if (b >= 0)
                batch[b] = (now() - start) / count;
        }
        result = median(batch, BATCHES);
    }
    if (rank == last && last > 1 && pending)
        for (int to = 0; to < 2; to++) {
            MPI_Recv(&late, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&late, 1, MPI_INT, to, 8, MPI_COMM_WORLD);
        }
    else if (rank == 0 && last > 1 && pending)
        for (int to = 0; to < 2; to++)
            MPI_Send(&late, 1, MPI_INT, last, 9, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
    return result;
}

/* Seconds until the last rank has a message of the first, by the clock that both share: the median. */
static double arrival(int bytes)
{
    double batch[BATCHES], end = 0;
    int batches = aligned < BATCHES ? aligned : BATCHES, last = size - 1;
    for (int b = -1; b < batches; b++) {
        double start = now();
        if (rank == 0) {
            MPI_Send(out, bytes, MPI_BYTE, last, 5, MPI_COMM_WORLD);
            MPI_Recv(&end, 1, MPI_DOUBLE, last, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank == last) {
            MPI_Recv(in, bytes, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            end = now();
            MPI_Send(&end, 1, MPI_DOUBLE, 0, 6, MPI_COMM_WORLD);
        }
        if (b >= 0)
            batch[b] = end - start;
    }
    return median(batch, batches);
}

/* Seconds of an exchange: the mean of a long loop. */
static double mean_exchange(int bytes, int back)
{
    double time = 0;
    int count = 8, enough = 0;
    while (!enough) {
        count *= 2;
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now();
        ping(bytes, back, count);
        time = now() - start;
        enough = time >= seconds / 2;
        MPI_Bcast(&enough, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    return time / count;
}

/* Seconds of an exchange: the median of batches. */
static double exchange(int bytes, int back)
{
    if (mean)
        return mean_exchange(bytes, back);
    double batch[BATCHES];
    int batches = aligned ? (aligned < BATCHES ? aligned : BATCHES) : BATCHES;
    ping(bytes, back, 1);
    double start = now();
    ping(bytes, back, 2);
    int count = aligned ? 1 : repeats((now() - start) / 2, seconds / batches);
    for (int b = 0; b < batches; b++) {
        start = now();
        ping(bytes, back, count);
        batch[b] = (now() - start) / count;
    }
    return median(batch, batches);
}

/* Seconds for each of many messages of which OUTSTANDING are under way at a time: the median of batches. */
static double outstanding(int bytes)
{
    enum { OUTSTANDING = 64 };
    MPI_Request request[OUTSTANDING];
    double batch[BATCHES];
    int last = size - 1, count = 2;
    for (int b = -1; b < BATCHES; b++) {
        double start = now();
        for (int i = 0; i < count; i++) {
            for (int m = 0; m < OUTSTANDING && rank == 0; m++)
                MPI_Isend(out, bytes, MPI_BYTE, last, 7, MPI_COMM_WORLD, &request[m]);
            for (int m = 0; m < OUTSTANDING && rank == last; m++)
                MPI_Irecv(in, bytes, MPI_BYTE, 0, 7, MPI_COMM_WORLD, &request[m]);
            if (rank == 0 || rank == last)
                MPI_Waitall(OUTSTANDING, request, MPI_STATUSES_IGNORE);
            if (rank == 0)
                MPI_Recv(in, 0, MPI_BYTE, last, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            else if (rank == last)
                MPI_Send(out, 0, MPI_BYTE, 0, 8, MPI_COMM_WORLD);
        }
        double once = (now() - start) / count;
        if (b < 0)
            count = repeats(once, seconds / BATCHES);
        else
            batch[b] = once / OUTSTANDING;
    }
    return median(batch, BATCHES);
}

static void collective(const char *test, int bytes)
{
    int doubles = bytes / 8;
    if (!strcmp(test, "barrier"))
        MPI_Barrier(MPI_COMM_WORLD);
    else if (!strcmp(test, "bcast"))
        MPI_Bcast(out, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    else if (!strcmp(test, "reduce"))
        MPI_Reduce(out, in, doubles, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    else if (!strcmp(test, "allreduce"))
        MPI_Allreduce(out, in, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    else if (!strcmp(test, "gather"))
        MPI_Gather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    else if (!strcmp(test, "allgather"))
        MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
    else if (!strcmp(test, "alltoall"))
        MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
    else {
        if (rank == 0)
            fprintf(stderr, "mpibench: no test named %s\n", test);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

/* Whether some ranks need not wait for others. */
static int may_run_ahead(const char *test)
{
    return !strcmp(test, "bcast") || !strcmp(test, "reduce") || !strcmp(test, "gather");
}

static double loop_time(const char *test, int bytes)
{
    double batch[BATCHES];
    collective(test, bytes);
    double start = now();
    collective(test, bytes);
    int count = repeats(now() - start, seconds / 10);
    start = now();
    for (int i = 0; i < count; i++)
        collective(test, bytes);
    if (may_run_ahead(test))
        MPI_Barrier(MPI_COMM_WORLD);
    count = repeats((now() - start) / count, seconds);
    /* Few long ones are one batch: what ranks do before and behind others is in each batch. */
    int batches = count < 10 * BATCHES || may_run_ahead(test) ? 1 : BATCHES;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int b = 0; b < batches; b++) {
        start = now();
        for (int i = 0; i < count / batches; i++)
            collective(test, bytes);
        batch[b] = (now() - start) / (count / batches);
    }
    double mine = median(batch, batches), longest = mine;
    if (may_run_ahead(test))
        MPI_Allreduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longest;
}

static double aligned_time(const char *test, int bytes)
{
    double *times = malloc((size_t)aligned * sizeof *times);
    for (int i = -1; i < aligned; i++) {
        double start = now() + 0.4, end, last;
        MPI_Bcast(&start, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        sleep_until(start);
        collective(test, bytes);
        end = now();
        MPI_Reduce(&end, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (i >= 0)
            times[i] = last - start;
    }
    double result = rank == 0 ? median(times, aligned) : 0;
    free(times);
    return result;
}

/* Seconds of CPU that the last rank uses while it waits. */
static double blocked(int milliseconds)
{
    struct rusage a, b;
    double used = 0;
    int last = size - 1;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        sleep_until(now() + milliseconds / 1e3);
        MPI_Send(out, 1, MPI_BYTE, last, 3, MPI_COMM_WORLD);
        MPI_Recv(&used, 1, MPI_DOUBLE, last, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == last) {
        getrusage(RUSAGE_SELF, &a);
        MPI_Recv(in, 1, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        getrusage(RUSAGE_SELF, &b);
        used = (double)(b.ru_utime.tv_sec - a.ru_utime.tv_sec + b.ru_stime.tv_sec - a.ru_stime.tv_sec)
            + 1e-6 * (double)(b.ru_utime.tv_usec - a.ru_utime.tv_usec + b.ru_stime.tv_usec - a.ru_stime.tv_usec);
        MPI_Send(&used, 1, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD);
    }
    return used;
}

/* KiB of this process's memory by the name that the system gives it, mean over all ranks. */
static double resident(const char *name)
{
    char line[256];
    double own = 0, all = 0;
    size_t length = strlen(name);
    MPI_Sendrecv(out, 8, MPI_BYTE, (rank + 1) % size, 10, in, 8, MPI_BYTE, (rank + size - 1) % size, 10, MPI_COMM_WORLD,
        MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, length) && line[length] == ':')
            own = atof(line + length + 1);
    if (file)
        fclose(file);
    MPI_Reduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return all / size;
}

/* The processors' distance: the median of probes over some time. */
static double usual_distance(void)
{
    enum { MOST = 10000 };
    double *probe = malloc(MOST * sizeof *probe), start = now(), result = 0;
    int probes = 0;
    if (!cores_there && !cores_open(rank)) {
        free(probe);
        return 0;
    }
    if (rank == 1)
        cores_echo();
    if (rank == 0) {
        while (probe && probes < MOST && (probes == 0 || now() - start < seconds))
            probe[probes++] = cores_probe();
        cores_say(-1);
        result = probes ? median(probe, probes) : 0;
    }
    free(probe);
    return result;
}

/* Whether ranks 0 and 1 are as far apart as they should be; waits for it up to so many seconds. The same on both. */
static int in_place(double patience)
{
    double start = now();
    cpu_set_t allowed;
    int alike = 0;
    if (distance <= 0)
        return 1;
    if (rank > 1) {
        cores_sleep();
        return 1;
    }
    int pinned = size > CORES_ALONE && cores_pin(rank, &allowed);
    if (rank == 1) {
        alike = cores_echo() == -1;
    } else {
        do
            alike = cores_alike(cores_probe(), distance);
        while (!alike && now() - start < patience);
        cores_say(alike ? -1 : -2);
    }
    if (pinned)
        sched_setaffinity(0, sizeof allowed, &allowed);
    return alike;
}

/* What a test gives, and in which unit. */
static double measure(const char *spec, int bytes, const char **unit)
{
    double value;
    *unit = "us";
    const char *kind = strncmp(spec, "all-", 4) ? spec : spec + 4;
    if (!strcmp(kind, "latency") || !strcmp(kind, "polled") || !strcmp(kind, "probed")) {
        way = !strcmp(kind, "polled") ? TESTING : !strcmp(kind, "probed") ? PROBING : BLOCKING;
        everybody = kind != spec;
        value = exchange(bytes, bytes) / 2 * 1e6;
        way = BLOCKING;
        everybody = 0;
    } else if (!strcmp(spec, "bandwidth")) {
        value = bytes / (aligned ? arrival(bytes) : exchange(bytes, 0)) / 1e6;
        *unit = "MB/s";
    } else if (!strcmp(spec, "rate")) {
        value = outstanding(bytes) * 1e6;
    } else if (!strcmp(spec, "pending") || !strcmp(spec, "any")) {
        value = besides(bytes, spec[0] == 'p') / 2 * 1e6;
    } else if (!strcmp(spec, "rss") || !strcmp(spec, "pss")) {
        value = resident(spec[0] == 'r' ? "Rss" : "Pss");
        *unit = "KiB";
    } else if (!strcmp(spec, "blocked")) {
        value = blocked(bytes);
        *unit = "s";
    } else if (!strcmp(spec, "distance")) {
        value = usual_distance();
        *unit = "ns";
    } else {
        value = (aligned ? aligned_time(spec, bytes) : loop_time(spec, bytes)) * 1e6;
    }
    return value;
}

static void run(char *spec)
{
    char *colon = strchr(spec, ':');
    int bytes = colon ? atoi(colon + 1) : 0;
    if (colon)
        *colon = 0;
    size_t room = (size_t)bytes * (size_t)size + 64;
    out = malloc(room);
    in = malloc(room);
    if (!out || !in) {
        fprintf(stderr, "mpibench: no memory for %s of %d bytes\n", spec, bytes);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    fill(out, room, rank);
    memset(in, 0, room);
    MPI_Barrier(MPI_COMM_WORLD);
    double value = 0;
    const char *unit = "us";
    int there = 0;
    for (int attempt = 0; attempt < ATTEMPTS && !there; attempt++) {
        there = in_place(PATIENCE_SECONDS);
        MPI_Barrier(MPI_COMM_WORLD);
        value = measure(spec, bytes, &unit);
        there = in_place(0) && there;
        /* Ranks that did not look repeat it with the others. */
        if (distance > 0)
            MPI_Bcast(&there, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) {
        if (there)
            printf("RESULT %s %d %.6g %s\n", spec, bytes, value, unit);
        else
            printf("RESULT %s %d elsewhere %s\n", spec, bytes, unit);
        fflush(stdout);
    }
    free(out);
    free(in);
}

static void check_places(const char *places)
{
    const char *wrong = NULL;
    if (places_read(places) != size)
        wrong = "are not as many as said by";
    else if (!places_are_right(rank))
        wrong = "are not on the machines said by";
    if (!wrong)
        return;
    if (rank == 0)
        fprintf(stderr, "mpibench: the ranks %s -p %s\n", wrong, places);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static void run_on(int processor)
{
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(processor, &only);
    if (sched_setaffinity(0, sizeof only, &only) != 0) {
        fprintf(stderr, "mpibench: cannot run on processor %d\n", processor);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], "-c"))
            run_on(atoi(argv[i + 1]));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-c"))
            i++;
        else if (!strcmp(argv[i], "-m"))
            mean = 1;
        else if (!strcmp(argv[i], "-t") && i + 1 < argc)
            seconds = atof(argv[++i]);
        else if (!strcmp(argv[i], "-d") && i + 1 < argc)
            distance = size > 1 && cores_open(rank) ? atof(argv[++i]) : (i++, 0);
        else if (!strcmp(argv[i], "-a") && i + 1 < argc)
            aligned = atoi(argv[++i]);
        else if (!strcmp(argv[i], "-p") && i + 1 < argc)
            check_places(argv[++i]);
        else
            run(argv[i]);
    }
    MPI_Finalize();
    return 0;
}
