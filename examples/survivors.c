/* SPDX-License-Identifier: Apache-2.0 */
/* Heat that goes on when processes, machines or sites are lost (docs/faults.md): the survivors begin again at the last copy of the field,
   which all of them have, with larger parts. At the end the field is compared with that of a single process: not a bit may differ.
   usage: survivors [STEPS [MICROSECONDS PER STEP]] [RANK@STEP]...    RANK kills itself before STEP
   isthmus run --on-loss go-on -n 4 ./survivors 400 2@150 */
#include <mpi-ext.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POINTS = 3000, EVERY = 50 };

/* The field after so many steps, as all processes had it. */
struct copy {
    int step;
    double field[POINTS];
};

/* The last two copies: the newest one of somebody else may be the one before ours. */
static struct copy copies[2];
static int newest, steps = 400, pause_us, dies_before = -1, world_rank;

static void begin(double *field)
{
    for (int i = 0; i < POINTS; i++)
        field[i] = i % 700 < 90 ? 100.0 + i : 0.0;
}

static void advance(const double *old, double *new, int count)
{
    for (int i = 1; i <= count; i++)
        new[i] = old[i] + 0.2 * (old[i - 1] - 2 * old[i] + old[i + 1]);
}

/* Everybody gets the whole field, as the newest copy. */
static int keep(MPI_Comm comm, const double *part, int step, const int *counts, const int *firsts, int me)
{
    struct copy *copy = &copies[!newest];
    int code = MPI_Allgatherv(part + 1, counts[me], MPI_DOUBLE, copy->field, counts, firsts, MPI_DOUBLE, comm);
    if (code == MPI_SUCCESS) {
        copy->step = step;
        newest = !newest;
    }
    return code;
}

/* From the last copy that all have to the end. The first error is given back: somebody is lost, or others have noticed that. */
static int compute(MPI_Comm comm)
{
    int me, size, from, code;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &size);
    code = MPI_Allreduce(&copies[newest].step, &from, 1, MPI_INT, MPI_MIN, comm);
    if (code != MPI_SUCCESS)
        return code;
    if (copies[newest].step != from)
        newest = !newest;
    int *counts = malloc(2 * (size_t)size * sizeof *counts), *firsts = counts + size;
    for (int rank = 0; rank < size; rank++) {
        firsts[rank] = (int)((long)POINTS * rank / size);
        counts[rank] = (int)((long)POINTS * (rank + 1) / size) - firsts[rank];
    }
    int count = counts[me], left = me > 0 ? me - 1 : MPI_PROC_NULL, right = me + 1 < size ? me + 1 : MPI_PROC_NULL;
    double *part = calloc(2 * ((size_t)count + 2), sizeof *part), *old = part, *new = part + count + 2;
    memcpy(old + 1, copies[newest].field + firsts[me], (size_t)count * sizeof *old);
    for (int step = from; step < steps && code == MPI_SUCCESS; step++) {
        if (step == dies_before)
            raise(SIGKILL);
        if (step % EVERY == 0 && step != from && (code = keep(comm, old, step, counts, firsts, me)) != MPI_SUCCESS)
            break;
        code = MPI_Sendrecv(old + 1, 1, MPI_DOUBLE, left, 0, old + count + 1, 1, MPI_DOUBLE, right, 0, comm, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS)
            code = MPI_Sendrecv(old + count, 1, MPI_DOUBLE, right, 1, old, 1, MPI_DOUBLE, left, 1, comm, MPI_STATUS_IGNORE);
        advance(old, new, count);
        double *swap = old;
        old = new;
        new = swap;
        if (pause_us)
            usleep((unsigned)pause_us);
    }
    if (code == MPI_SUCCESS)
        code = keep(comm, old, steps, counts, firsts, me);
    free(part);
    free(counts);
    return code;
}

/* Whether the field is what one process alone computes. */
static int is_right(const double *field)
{
    static double old[POINTS + 2], new[POINTS + 2];
    begin(old + 1);
    for (int step = 0; step < steps; step++) {
        advance(old, new, POINTS);
        memcpy(old + 1, new + 1, POINTS * sizeof *old);
    }
    return memcmp(old + 1, field, POINTS * sizeof *old) == 0;
}

static void read_arguments(int argc, char **argv)
{
    int *number = &steps;
    for (int i = 1; i < argc; i++) {
        const char *at = strchr(argv[i], '@');
        if (at) {
            if (atoi(argv[i]) == world_rank)
                dies_before = atoi(at + 1);
        } else {
            *number = atoi(argv[i]);
            number = &pause_us;
        }
    }
}

int main(int argc, char **argv)
{
    MPI_Comm comm = MPI_COMM_WORLD, smaller;
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &world_rank);
    read_arguments(argc, argv);
    begin(copies[0].field);
    for (;;) {
        /* Whoever notices a loss tells those who do not, and all decide together whether the field is finished. */
        int finished = compute(comm) == MPI_SUCCESS;
        if (!finished)
            MPIX_Comm_revoke(comm);
        MPIX_Comm_agree(comm, &finished);
        if (finished)
            break;
        if (MPIX_Comm_shrink(comm, &smaller) != MPI_SUCCESS)
            MPI_Abort(MPI_COMM_WORLD, 2);
        if (comm != MPI_COMM_WORLD)
            MPI_Comm_free(&comm);
        comm = smaller;
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        if (rank == 0) {
            printf("going on with %d processes\n", size);
            fflush(stdout);
        }
    }
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int right = is_right(copies[newest].field);
    if (rank == 0)
        printf("%d steps done by %d processes: the field is %s\n", steps, size, right ? "right" : "WRONG");
    MPI_Finalize();
    return right ? 0 : 1;
}
