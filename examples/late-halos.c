/* SPDX-License-Identifier: Apache-2.0 */
/* One backward Euler step of the heat equation on a square, by Jacobi iterations, over several sites: a rank whose neighbour is at another
   site computes on with that neighbour's last known row while the wide area is late. Inside a site rows are exchanged as always.
   usage: late-halos [SIDE [late|wait [ITERATIONS at most]]]   prints iterations, what each took, and how far the result is from the exact one. */
/* ranks: 1 3 */
/* arguments: 64 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UP, DOWN };
#define STEP 25.0 /* k dt / h^2: how stiff one time step is */
#define WANTED 1e-8

static int side, rows, rank, size;

/* A neighbour at another site. Whatever row it sends last is the one that counts. */
struct far {
    int peer;
    double *arriving, *leaving, *halo;
    MPI_Request in, out;
    long taken;
};

static void far_begin(struct far *f, int peer, double *halo)
{
    *f = (struct far){.peer = peer, .halo = halo, .in = MPI_REQUEST_NULL, .out = MPI_REQUEST_NULL};
    f->arriving = malloc(side * sizeof(double));
    f->leaving = malloc(side * sizeof(double));
    MPI_Irecv(f->arriving, side, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD, &f->in);
}

/* Takes rows that have come, and sends the present one unless the last one is still on its way. Never waits. */
static void far_exchange(struct far *f, const double *edge)
{
    int done;
    for (MPI_Test(&f->in, &done, MPI_STATUS_IGNORE); done; MPI_Test(&f->in, &done, MPI_STATUS_IGNORE)) {
        memcpy(f->halo, f->arriving, side * sizeof(double));
        f->taken++;
        MPI_Irecv(f->arriving, side, MPI_DOUBLE, f->peer, 1, MPI_COMM_WORLD, &f->in);
    }
    MPI_Test(&f->out, &done, MPI_STATUS_IGNORE);
    if (done) {
        memcpy(f->leaving, edge, side * sizeof(double));
        MPI_Issend(f->leaving, side, MPI_DOUBLE, f->peer, 1, MPI_COMM_WORLD, &f->out);
    }
}

/* An empty message says that no row follows. */
static void far_end(struct far *f)
{
    MPI_Request last;
    MPI_Status status;
    int count;
    MPI_Isend(NULL, 0, MPI_DOUBLE, f->peer, 1, MPI_COMM_WORLD, &last);
    for (;;) {
        MPI_Wait(&f->in, &status);
        MPI_Get_count(&status, MPI_DOUBLE, &count);
        if (count == 0)
            break;
        MPI_Irecv(f->arriving, side, MPI_DOUBLE, f->peer, 1, MPI_COMM_WORLD, &f->in);
    }
    MPI_Wait(&f->out, MPI_STATUS_IGNORE);
    MPI_Wait(&last, MPI_STATUS_IGNORE);
    free(f->arriving);
    free(f->leaving);
}

/* The site of each rank, as a number. */
static int *sites(void)
{
    int *depths, **colors, found, *site = malloc(size * sizeof(int));
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPICHX_TOPOLOGY_COLORS, &colors, &found);
    for (int i = 0; i < size; i++)
        site[i] = found ? colors[i][1] : 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPICHX_TOPOLOGY_DEPTHS, &depths, &found);
    return site;
}

/* u(x, y) = sin(pi x) sin(pi y) is an eigenvector, so the exact result is the start times a factor. */
static double start(int row, int column)
{
    return sin(M_PI * (row + 1) / (side + 1)) * sin(M_PI * (column + 1) / (side + 1));
}

static double sweep(const double *old, double *new, const double *known)
{
    double most = 0;
    for (int r = 1; r <= rows; r++) {
        const double *up = old + (r - 1) * (size_t)side, *at = up + side, *down = at + side;
        double *to = new + r * (size_t)side;
        const double *b = known + r * (size_t)side;
        for (int c = 0; c < side; c++) {
            double left = c > 0 ? at[c - 1] : 0, right = c < side - 1 ? at[c + 1] : 0;
            to[c] = (b[c] + STEP * (up[c] + down[c] + left + right)) / (1 + 4 * STEP);
            double change = fabs(to[c] - at[c]);
            most = change > most ? change : most;
        }
    }
    return most;
}

/* The temperatures before the step, in the rows of this process. */
static void begin(double *known, int first)
{
    for (int r = 1; r <= rows; r++)
        for (int c = 0; c < side; c++)
            known[r * (size_t)side + c] = start(first + r - 1, c);
}

/* How far the result is from the exact one at most. */
static double wrong(const double *result, int first)
{
    double mode = 2 - 2 * cos(M_PI / (side + 1)), factor = 1 / (1 + 2 * STEP * mode), error = 0;
    for (int r = 1; r <= rows; r++)
        for (int c = 0; c < side; c++)
            error = fmax(error, fabs(result[r * (size_t)side + c] - factor * start(first + r - 1, c)));
    return error;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    side = argc > 1 ? atoi(argv[1]) : 512;
    int late = argc < 3 || strcmp(argv[2], "wait") != 0;
    long enough = !late && argc > 3 ? atol(argv[3]) : -1;
    int first = (int)((long)side * rank / size);
    rows = (int)((long)side * (rank + 1) / size) - first;
    size_t cells = (rows + 2) * (size_t)side;
    double *old = calloc(cells, sizeof(double)), *new = calloc(cells, sizeof(double)), *known = calloc(cells, sizeof(double));
    double *halos[2] = {calloc(side, sizeof(double)), calloc(side, sizeof(double))};
    begin(known, first);

    int *site = sites(), peers[2] = {rank > 0 ? rank - 1 : MPI_PROC_NULL, rank < size - 1 ? rank + 1 : MPI_PROC_NULL};
    int near[2];
    struct far far[2];
    for (int d = UP; d <= DOWN; d++) {
        int other = peers[d] != MPI_PROC_NULL && late && site[peers[d]] != site[rank];
        near[d] = other ? MPI_PROC_NULL : peers[d];
        far[d].peer = MPI_PROC_NULL;
        if (other)
            far_begin(&far[d], peers[d], halos[d]);
    }

    /* Whether all are done the first ranks of the sites find out on the side, so that nobody waits for the answer. With late rows a small change
       is not enough: it must stay small for as long as news may be on their way. */
    MPI_Comm together, firsts;
    int place, every = late ? 1 : 10;
    MPI_Comm_split(MPI_COMM_WORLD, late ? site[rank] : 0, rank, &together);
    MPI_Comm_rank(together, &place);
    MPI_Comm_split(MPI_COMM_WORLD, place == 0 ? 0 : MPI_UNDEFINED, rank, &firsts);
    MPI_Request asking = MPI_REQUEST_NULL;
    double asked = 1, worst = 1, since = 0, began = MPI_Wtime();
    long iterations = 0;
    int quiet = 0;
    while (quiet < 3 && iterations != enough) {
        double *into[2] = {old, old + (rows + 1) * (size_t)side}, *edges[2] = {old + side, old + rows * (size_t)side};
        for (int d = UP; d <= DOWN; d++)
            MPI_Sendrecv(edges[d], side, MPI_DOUBLE, near[d], 0, into[!d], side, MPI_DOUBLE, near[!d], 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        for (int d = UP; d <= DOWN; d++)
            if (far[d].peer != MPI_PROC_NULL) {
                far_exchange(&far[d], edges[d]);
                memcpy(into[d], halos[d], side * sizeof(double));
            }
        double change = sweep(old, new, known), *swap = old;
        old = new, new = swap;
        if (++iterations % every)
            continue;
        int answered = 0;
        if (place == 0)
            MPI_Test(&asking, &answered, MPI_STATUS_IGNORE);
        if (answered && iterations > every)
            quiet = worst < WANTED ? quiet + 1 : 0;
        double said[2] = {change, quiet}, all[2];
        MPI_Allreduce(said, all, 2, MPI_DOUBLE, MPI_MAX, together);
        since = fmax(since, all[0]);
        quiet = (int)all[1];
        if (answered && quiet < 3) {
            asked = since, since = 0;
            MPI_Iallreduce(&asked, &worst, 1, MPI_DOUBLE, MPI_MAX, firsts, &asking);
        }
    }
    double took = MPI_Wtime() - began;
    MPI_Wait(&asking, MPI_STATUS_IGNORE);
    for (int d = UP; d <= DOWN; d++)
        if (far[d].peer != MPI_PROC_NULL)
            far_end(&far[d]);

    double error = wrong(old, first);
    double all[3] = {error, (double)iterations, took / (double)iterations}, most[3];
    MPI_Reduce(all, most, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%s: %.0f iterations, %.3f ms each, error %.1e\n", late ? "late" : "wait", most[1], 1e3 * most[2], most[0]);
    }
    MPI_Finalize();
    return error > 1e-5 && enough < 0;
}
