/* SPDX-License-Identifier: Apache-2.0 */
/* Collective operations in a random order, blocking and nonblocking, with random lengths (many of them none, others around what fits into a cell or may
   be copied), places of blocks and roots, in place, some at one member with gaps: each result is what the lengths say, and nothing beside it is
   written. All members draw the same numbers. A seed may be given.
   ranks: 2 3 5 9 */
#include "values.h"

enum { MOST = 9, UNDER_WAY = 4, PAD = 8, LONGEST = 24000 };
enum what { GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALLV, REDUCE, REDUCE_SCATTER, KINDS };

/* Elements around the ends of what goes one way: 111 and 112 bytes, 4 KiB, 32 and 64 KiB. */
static const int lengths[] = {0, 0, 0, 0, 1, 2, 13, 27, 28, 29, 250, 1023, 1024, 1052, 1056, 1100, 8191, 8192, 16384, LONGEST};

struct step {
    enum what what;
    int root, in_place, salt, gaps;
    /* From each to each: elements, places of blocks in what is given and taken by this process. */
    int n[MOST][MOST], give_counts[MOST], give_at[MOST], take_counts[MOST], take_at[MOST];
    int *give, *take;
    long give_room, take_room;
    MPI_Request request;
};

static unsigned state;
static MPI_Datatype wide;

static int draw(int below)
{
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (unsigned)below);
}

/* Blocks in any order, with gaps between them; returns the room that they take. */
static int lay_out(const int *counts, int *at)
{
    int order[MOST], end = PAD;
    for (int i = 0; i < size; i++)
        order[i] = i;
    for (int i = size - 1; i > 0; i--) {
        int j = draw(i + 1), keep = order[i];
        order[i] = order[j], order[j] = keep;
    }
    for (int i = 0; i < size; i++) {
        at[order[i]] = end;
        end += counts[order[i]] + draw(3);
    }
    return end + PAD;
}

static int is_rooted(enum what what)
{
    return what == GATHER || what == GATHERV || what == SCATTER || what == SCATTERV || what == REDUCE;
}

static int *room(long n, int width)
{
    int *memory = malloc((size_t)(n * width) * sizeof(int));
    CHECK(memory);
    fill(memory, n * width, -1, 0);
    return memory;
}

/* Draws a step: the same numbers at all members, whatever they use of them. */
static void make(struct step *step, int turn)
{
    int alike = lengths[draw((int)(sizeof lengths / sizeof *lengths))];
    step->what = (enum what)draw(KINDS);
    step->root = draw(size);
    step->in_place = draw(4) == 0;
    step->gaps = draw(8);
    step->salt = turn;
    int equal = step->what == GATHER || step->what == SCATTER || step->what == ALLGATHER || step->what == REDUCE;
    for (int from = 0; from < size; from++)
        for (int to = 0; to < size; to++)
            step->n[from][to] = equal ? alike : lengths[draw((int)(sizeof lengths / sizeof *lengths))];
    for (int from = 0; from < size && step->what == ALLGATHERV; from++)
        for (int to = 1; to < size; to++)
            step->n[from][to] = step->n[from][0];
    for (int r = 0; r < size; r++) {
        step->give_counts[r] = step->n[rank][r];
        step->take_counts[r] = step->n[r][rank];
    }
    if (step->what == GATHERV || step->what == SCATTERV)
        for (int r = 0; r < size; r++) {
            step->give_counts[r] = step->n[step->root][r];
            step->take_counts[r] = step->n[r][step->root];
        }
    step->give_room = lay_out(step->give_counts, step->give_at);
    step->take_room = lay_out(step->take_counts, step->take_at);
    if (equal)
        for (int r = 0; r < size; r++)
            step->give_at[r] = step->take_at[r] = PAD + r * alike;
    if (equal)
        step->give_room = step->take_room = 2 * PAD + (long)size * alike;
    if (step->what == REDUCE_SCATTER) {
        long all = 0;
        for (int r = 0; r < size; r++)
            step->give_counts[r] = step->n[0][r], step->give_at[r] = PAD + (int)all, all += step->n[0][r];
        step->give_room = step->take_room = all + 2 * PAD;
    }
}

/* Element i of the block of a process for another. */
static int element(const struct step *step, int from, int to, long i)
{
    return value(from * MOST + to, i, step->salt);
}

/* Gaps: at one process each second int of what it takes or gives is somebody else's. */
static int width(const struct step *step)
{
    return step->gaps == rank && step->what != REDUCE && step->what != REDUCE_SCATTER ? 2 : 1;
}

static void put(const struct step *step, int *memory, int at, int from, int to, long n)
{
    for (long i = 0; i < n; i++)
        memory[(at + i) * width(step)] = element(step, from, to, i);
}

static void call(struct step *s, int blocking)
{
    int root = s->root, at_root = rank == root, w = width(s);
    int in_place = s->in_place && s->what != ALLTOALLV && s->what != REDUCE_SCATTER && (!is_rooted(s->what) || at_root);
    MPI_Datatype type = w > 1 ? wide : MPI_INT;
    MPI_Request *q = &s->request;
    int *give = s->give, *take = s->take + (long)PAD * w, own = s->n[rank][s->what == SCATTERV ? rank : root];
    void *in = MPI_IN_PLACE;
    *q = MPI_REQUEST_NULL;
    switch (s->what) {
    case GATHER:
        put(s, in_place ? s->take : give, in_place ? s->take_at[rank] : PAD, rank, root, own);
        if (blocking)
            OK(MPI_Gather(in_place ? in : give + PAD * w, own, type, take, own, type, root, comm));
        else
            OK(MPI_Igather(in_place ? in : give + PAD * w, own, type, take, own, type, root, comm, q));
        break;
    case GATHERV:
        put(s, in_place ? s->take : give, in_place ? s->take_at[rank] : PAD, rank, root, own);
        if (blocking)
            OK(MPI_Gatherv(in_place ? in : give + PAD * w, own, type, s->take, s->take_counts, s->take_at, type, root, comm));
        else
            OK(MPI_Igatherv(in_place ? in : give + PAD * w, own, type, s->take, s->take_counts, s->take_at, type, root, comm, q));
        break;
    case SCATTER:
    case SCATTERV:
        for (int r = 0; r < size && at_root; r++)
            put(s, give, s->give_at[r], root, r, s->give_counts[r]);
        own = s->n[root][rank];
        if (s->what == SCATTER && blocking)
            OK(MPI_Scatter(give + PAD * w, own, type, in_place ? in : take, own, type, root, comm));
        else if (s->what == SCATTER)
            OK(MPI_Iscatter(give + PAD * w, own, type, in_place ? in : take, own, type, root, comm, q));
        else if (blocking)
            OK(MPI_Scatterv(give, s->give_counts, s->give_at, type, in_place ? in : take, own, type, root, comm));
        else
            OK(MPI_Iscatterv(give, s->give_counts, s->give_at, type, in_place ? in : take, own, type, root, comm, q));
        break;
    case ALLGATHER:
    case ALLGATHERV:
        own = s->n[rank][0];
        put(s, in_place ? s->take : give, in_place ? s->take_at[rank] : PAD, rank, 0, own);
        if (s->what == ALLGATHER && blocking)
            OK(MPI_Allgather(in_place ? in : give + PAD * w, own, type, take, own, type, comm));
        else if (s->what == ALLGATHER)
            OK(MPI_Iallgather(in_place ? in : give + PAD * w, own, type, take, own, type, comm, q));
        else if (blocking)
            OK(MPI_Allgatherv(in_place ? in : give + PAD * w, own, type, s->take, s->take_counts, s->take_at, type, comm));
        else
            OK(MPI_Iallgatherv(in_place ? in : give + PAD * w, own, type, s->take, s->take_counts, s->take_at, type, comm, q));
        break;
    case ALLTOALLV:
        for (int r = 0; r < size; r++)
            put(s, give, s->give_at[r], rank, r, s->give_counts[r]);
        if (blocking)
            OK(MPI_Alltoallv(give, s->give_counts, s->give_at, type, s->take, s->take_counts, s->take_at, type, comm));
        else
            OK(MPI_Ialltoallv(give, s->give_counts, s->give_at, type, s->take, s->take_counts, s->take_at, type, comm, q));
        break;
    case REDUCE:
        own = s->n[0][0];
        fill(in_place ? take : give + PAD, own, rank, s->salt);
        if (blocking)
            OK(MPI_Reduce(in_place ? in : give + PAD, take, own, MPI_INT, MPI_SUM, root, comm));
        else
            OK(MPI_Ireduce(in_place ? in : give + PAD, take, own, MPI_INT, MPI_SUM, root, comm, q));
        break;
    default:
        fill(give + PAD, s->give_room - 2 * PAD, rank, s->salt);
        if (blocking)
            OK(MPI_Reduce_scatter(give + PAD, take, s->give_counts, MPI_INT, MPI_SUM, comm));
        else
            OK(MPI_Ireduce_scatter(give + PAD, take, s->give_counts, MPI_INT, MPI_SUM, comm, q));
    }
}

/* What is to be in the memory that this process takes: written over what was there before. */
static void expect(const struct step *s, int *memory)
{
    int at_root = rank == s->root, w = width(s);
    fill(memory, s->take_room * w, -1, 0);
    switch (s->what) {
    case GATHER:
    case GATHERV:
        for (int r = 0; r < size && at_root; r++)
            put(s, memory, s->take_at[r], r, s->root, s->n[r][s->root]);
        break;
    case SCATTER:
    case SCATTERV:
        if (!(at_root && s->in_place))
            put(s, memory, PAD, s->root, rank, s->n[s->root][rank]);
        break;
    case ALLGATHER:
    case ALLGATHERV:
        for (int r = 0; r < size; r++)
            put(s, memory, s->take_at[r], r, 0, s->n[r][0]);
        break;
    case ALLTOALLV:
        for (int r = 0; r < size; r++)
            put(s, memory, s->take_at[r], r, rank, s->n[r][rank]);
        break;
    case REDUCE:
        for (long i = 0; i < s->n[0][0] && at_root; i++)
            memory[PAD + i] = total(i, s->salt);
        break;
    default:
        for (long i = 0; i < s->give_counts[rank]; i++)
            memory[PAD + i] = total(s->give_at[rank] - PAD + i, s->salt);
    }
}

static void judge(struct step *s, unsigned seed)
{
    int *right = room(s->take_room, 2);
    expect(s, right);
    int same = memcmp(right, s->take, (size_t)(s->take_room * width(s)) * sizeof(int)) == 0;
    if (!same)
        printf("seed %u, step %d: operation %d, root %d, in place %d, of %d processes\n", seed, s->salt, (int)s->what, s->root, s->in_place, size);
    CHECK(same);
    free(right);
    free(s->give);
    free(s->take);
}

int main(int argc, char **argv)
{
    unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 54;
    struct step steps[UNDER_WAY];
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    CHECK(size <= MOST);
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &wide));
    OK(MPI_Type_commit(&wide));
    state = seed * 2654435761u + (unsigned)size;
    for (int turn = 0; turn < 1500 / size;) {
        int many = draw(3) ? 1 : 1 + draw(UNDER_WAY), blocking = many == 1 && draw(2);
        for (int i = 0; i < many; i++, turn++) {
            make(&steps[i], turn);
            steps[i].give = room(steps[i].give_room + (long)LONGEST + PAD, width(&steps[i]));
            steps[i].take = room(steps[i].take_room + (long)LONGEST + PAD, width(&steps[i]));
            steps[i].take_room += LONGEST;
            call(&steps[i], blocking);
        }
        for (int i = many - 1; i >= 0; i--) {
            OK(MPI_Wait(&steps[i].request, MPI_STATUS_IGNORE));
            judge(&steps[i], seed);
        }
    }
    OK(MPI_Type_free(&wide));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    if (rank == 0)
        printf("all blocks are where they belong\n");
    return 0;
}
