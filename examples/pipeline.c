/* SPDX-License-Identifier: Apache-2.0 */
/* A simulation that viewers look at: they connect while it computes, get frames, leave and come back. It never waits for one.
 *
 *   pipeline simulate NAME VIEWERS   computes until so many viewers have come and gone; NAME is published
 *   pipeline view NAME FRAMES        gets so many frames and leaves
 *   pipeline                         computes 200 steps that nobody looks at
 *
 * Heat spreads in a room with one warm wall. Rows are divided among the processes, at however many sites. */
/* ranks: 1 3 */
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 32, COLUMNS = 64, ROUND = 10, WANT = 1, FRAME = 2, PICTURE = 3 };
typedef double Row[COLUMNS];

/* A thread accepts, so that the simulation goes on meanwhile. */
static char port[MPI_MAX_PORT_NAME];
static MPI_Comm accepted;
static atomic_int waits; /* a viewer has come, and nobody has taken it */

static void *accept_one(void *unused)
{
    (void)unused;
    /* An error means that the port was closed: nobody comes any more. */
    if (MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &accepted) == MPI_SUCCESS)
        atomic_store(&waits, 1);
    return NULL;
}

static void step(Row *now, Row *next, int rank, int size)
{
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(now[1], COLUMNS, MPI_DOUBLE, up, 0, now[ROWS + 1], COLUMNS, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(now[ROWS], COLUMNS, MPI_DOUBLE, down, 0, now[0], COLUMNS, MPI_DOUBLE, up, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int row = 1; row <= ROWS; row++)
        for (int column = 0; column < COLUMNS; column++) {
            double left = column > 0 ? now[row][column - 1] : 1, right = column < COLUMNS - 1 ? now[row][column + 1] : now[row][column];
            next[row][column] = (now[row - 1][column] + now[row + 1][column] + left + right) / 4;
        }
    /* Walls above and below let no heat out. */
    if (rank == 0)
        memcpy(next[0], next[1], sizeof(Row));
    if (rank == size - 1)
        memcpy(next[ROWS + 1], next[ROWS], sizeof(Row));
}

/* Whether the viewer, if there is one, wants a frame: 1; 0: it does not; -1: it leaves, or is lost. */
static int wish(MPI_Comm *viewer)
{
    int has_come = 0, wanted = 0;
    if (*viewer == MPI_COMM_NULL)
        return 0;
    if (MPI_Iprobe(0, WANT, *viewer, &has_come, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return -1;
    if (!has_come)
        return 0;
    if (MPI_Recv(&wanted, 1, MPI_INT, 0, WANT, *viewer, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return -1;
    return wanted ? 1 : -1;
}

static void simulate(const char *name, int viewers)
{
    int rank, size, gone = 0, wanted;
    long steps = 0;
    MPI_Comm viewer = MPI_COMM_NULL;
    pthread_t thread;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    Row *now = calloc(ROWS + 2, sizeof(Row)), *next = calloc(ROWS + 2, sizeof(Row)), *all = calloc((size_t)size * ROWS, sizeof(Row));
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "isthmus_scope", "user");
    if (rank == 0 && name) {
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        MPI_Open_port(MPI_INFO_NULL, port);
        if (MPI_Publish_name(name, info, port) != MPI_SUCCESS)
            MPI_Abort(MPI_COMM_WORLD, 1);
        pthread_create(&thread, NULL, accept_one, NULL);
    }
    while (name ? gone < viewers : steps < 200) {
        for (int one = 0; one < ROUND; one++, steps++) {
            step(now, next, rank, size);
            Row *last = now;
            now = next;
            next = last;
        }
        if (atomic_exchange(&waits, 0)) {
            pthread_join(thread, NULL);
            viewer = accepted;
        }
        wanted = wish(&viewer);
        MPI_Bcast(&wanted, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (wanted > 0) {
            MPI_Gather(now[1], ROWS * COLUMNS, MPI_DOUBLE, all, ROWS * COLUMNS, MPI_DOUBLE, 0, MPI_COMM_WORLD);
            long head[2] = {steps, size * ROWS};
            if (rank == 0) {
                MPI_Send(head, 2, MPI_LONG, 0, FRAME, viewer);
                MPI_Send(all, size * ROWS * COLUMNS, MPI_DOUBLE, 0, PICTURE, viewer);
            }
        } else if (wanted < 0) {
            gone++;
            if (rank == 0) {
                printf("a viewer has left after step %ld\n", steps);
                fflush(stdout);
                /* With one that is lost this is an error, which changes nothing here. */
                MPI_Comm_disconnect(&viewer);
                viewer = MPI_COMM_NULL;
                pthread_create(&thread, NULL, accept_one, NULL);
            }
        }
    }
    if (rank == 0 && name) {
        MPI_Unpublish_name(name, info, port);
        MPI_Close_port(port);
        pthread_join(thread, NULL);
    }
    double heat = 0, own = 0;
    for (int row = 1; row <= ROWS; row++)
        for (int column = 0; column < COLUMNS; column++)
            own += now[row][column];
    MPI_Reduce(&own, &heat, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%ld steps, mean %.3f\n", steps, heat / (size * ROWS * COLUMNS));
    if (rank == 0 && !(heat > 0 && isfinite(heat)))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Info_free(&info);
    free(now);
    free(next);
    free(all);
}

static void view(const char *name, int frames)
{
    static const char shades[] = " .:-=+*#%@";
    MPI_Comm simulation;
    int found = MPI_ERR_NAME, more = 1;
    /* The simulation may not be there yet. */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (double until = MPI_Wtime() + 60; found != MPI_SUCCESS && MPI_Wtime() < until;)
        found = MPI_Lookup_name(name, MPI_INFO_NULL, port);
    if (found != MPI_SUCCESS || MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &simulation) != MPI_SUCCESS) {
        fprintf(stderr, "there is no simulation '%s'\n", name);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int frame = 0; frame < frames; frame++) {
        long head[2];
        MPI_Send(&more, 1, MPI_INT, 0, WANT, simulation);
        MPI_Recv(head, 2, MPI_LONG, 0, FRAME, simulation, MPI_STATUS_IGNORE);
        Row *rows = malloc((size_t)head[1] * sizeof(Row));
        MPI_Recv(rows, (int)head[1] * COLUMNS, MPI_DOUBLE, 0, PICTURE, simulation, MPI_STATUS_IGNORE);
        char line[COLUMNS + 1] = "";
        for (int column = 0; column < COLUMNS; column++)
            line[column] = shades[(int)(rows[head[1] / 2][column] * 9.99)];
        printf("step %ld of %ld rows: |%s|\n", head[0], head[1], line);
        free(rows);
    }
    more = 0;
    MPI_Send(&more, 1, MPI_INT, 0, WANT, simulation);
    MPI_Comm_disconnect(&simulation);
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (argc == 4 && !strcmp(argv[1], "view"))
        view(argv[2], atoi(argv[3]));
    else
        simulate(argc == 4 ? argv[2] : NULL, argc == 4 ? atoi(argv[3]) : 0);
    MPI_Finalize();
    return 0;
}
