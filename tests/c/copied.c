/* SPDX-License-Identifier: Apache-2.0 */
/* How often the processes of a node copy long blocks, counted by isthmus_node_straight_bytes, _cells_bytes and _frames_bytes: which way an
   operation takes cannot be seen by its result.
   ranks: 2 4 */
#include "check.h"
#include <sched.h>

enum { TIMES = 12, LONGEST = 1 << 20, MOST = 4 };
enum { STRAIGHT, CELLS, FRAMES, WAYS };

static int rank, size;
static MPI_Comm comm;
static char *give, *take;
static int bytes, counts[MOST], starts[MOST];
static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[WAYS];

static void open_counters(void)
{
    static const char *names[WAYS] = {"isthmus_node_straight_bytes", "isthmus_node_cells_bytes", "isthmus_node_frames_bytes"};
    int provided, index, one;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_pvar_session_create(&session));
    for (int way = 0; way < WAYS; way++) {
        OK(MPI_T_pvar_get_index(names[way], MPI_T_PVAR_CLASS_COUNTER, &index));
        OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handles[way], &one));
        CHECK(one == 1);
    }
}

/* Of this process, and of all together, so far. What this itself takes is far below what is judged. */
static void count(unsigned long long own[WAYS], unsigned long long all[WAYS])
{
    for (int way = 0; way < WAYS; way++)
        OK(MPI_T_pvar_read(session, handles[way], &own[way]));
    OK(MPI_Allreduce(own, all, WAYS, MPI_UNSIGNED_LONG_LONG, MPI_SUM, comm));
}

static void alltoall(void) { OK(MPI_Alltoall(give, bytes, MPI_BYTE, take, bytes, MPI_BYTE, comm)); }
static void alltoallv(void) { OK(MPI_Alltoallv(give, counts, starts, MPI_BYTE, take, counts, starts, MPI_BYTE, comm)); }
static void allgather(void) { OK(MPI_Allgather(give, bytes, MPI_BYTE, take, bytes, MPI_BYTE, comm)); }
static void allgatherv(void) { OK(MPI_Allgatherv(give, bytes, MPI_BYTE, take, counts, starts, MPI_BYTE, comm)); }
static void in_place(void) { OK(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, take, counts, starts, MPI_BYTE, comm)); }
static void gatherv(void) { OK(MPI_Gatherv(give, bytes, MPI_BYTE, take, counts, starts, MPI_BYTE, 0, comm)); }
static void scatterv(void) { OK(MPI_Scatterv(give, counts, starts, MPI_BYTE, take, bytes, MPI_BYTE, 0, comm)); }
static void gather(void) { OK(MPI_Gather(give, bytes, MPI_BYTE, take, bytes, MPI_BYTE, 0, comm)); }
static void scatter(void) { OK(MPI_Scatter(give, bytes, MPI_BYTE, take, bytes, MPI_BYTE, 0, comm)); }
static void bcast(void) { OK(MPI_Bcast(give, bytes, MPI_BYTE, 0, comm)); }
static void reduce(void) { OK(MPI_Reduce(give, take, bytes / 4, MPI_INT, MPI_SUM, 0, comm)); }
static void reduce_scatter_block(void) { OK(MPI_Reduce_scatter_block(give, take, bytes / 4, MPI_INT, MPI_SUM, comm)); }
static void reduce_scatter(void)
{
    int elements[MOST];
    for (int r = 0; r < size; r++)
        elements[r] = bytes / 4;
    OK(MPI_Reduce_scatter(give, take, elements, MPI_INT, MPI_SUM, comm));
}
static void allreduce(void) { OK(MPI_Allreduce(give, take, bytes / 4, MPI_INT, MPI_SUM, comm)); }

static void wait(MPI_Request request) { OK(MPI_Wait(&request, MPI_STATUS_IGNORE)); }

static void ialltoall(void)
{
    MPI_Request request;
    OK(MPI_Ialltoall(give, bytes, MPI_BYTE, take, bytes, MPI_BYTE, comm, &request));
    wait(request);
}

static void iallgatherv(void)
{
    MPI_Request request;
    OK(MPI_Iallgatherv(give, bytes, MPI_BYTE, take, counts, starts, MPI_BYTE, comm, &request));
    wait(request);
}

static void ibcast(void)
{
    MPI_Request request;
    OK(MPI_Ibcast(give, bytes, MPI_BYTE, 0, comm, &request));
    wait(request);
}

/* Around a ring. */
static void sendrecv(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    OK(MPI_Sendrecv(give, bytes, MPI_BYTE, next, 0, take, bytes, MPI_BYTE, before, 0, comm, MPI_STATUS_IGNORE));
}

/* ONCE: copied straight and not otherwise. EITHER: straight, or put down where all see it, and not both. SHARED: put down where all see it. */
enum rule { ONCE, EITHER, SHARED };

/* Blocks of an operation: those that go from one process to another, and those that are put down where all see them. */
static long none(void) { return 0; }
static long one(void) { return 1; }
static long others(void) { return size - 1; }
static long each(void) { return size; }
static long pairs(void) { return (long)size * (size - 1); }
/* Of two, one reads what the other gives of its part of the result, and the other reads and writes its own part. */
static long parts(void) { return size == 2 ? 2 : size - 1; }
/* What each gives, and a part of the result of each. */
static long results(void) { return size + 1; }

static const struct {
    const char *name;
    void (*call)(void);
    enum rule rule;
    long (*straight)(void), (*shared)(void);
} operations[] = {
    {"alltoall", alltoall, EITHER, pairs, pairs},
    {"ialltoall", ialltoall, EITHER, pairs, pairs},
    {"alltoallv", alltoallv, ONCE, pairs, pairs},
    {"allgatherv", allgatherv, EITHER, pairs, each},
    {"allgatherv in place", in_place, EITHER, pairs, each},
    {"iallgatherv", iallgatherv, EITHER, pairs, each},
    {"gatherv", gatherv, ONCE, others, others},
    {"scatterv", scatterv, ONCE, others, others},
    {"bcast", bcast, EITHER, others, one},
    {"ibcast", ibcast, EITHER, others, one},
    {"sendrecv", sendrecv, EITHER, each, each},
    {"allgather", allgather, EITHER, pairs, each},
    {"gather", gather, EITHER, others, others},
    {"scatter", scatter, EITHER, others, others},
    {"reduce", reduce, EITHER, parts, results},
    {"reduce_scatter_block", reduce_scatter_block, EITHER, pairs, pairs},
    {"reduce_scatter", reduce_scatter, EITHER, pairs, pairs},
    {"allreduce", allreduce, SHARED, none, results},
};

/* On which this process may run. */
static int processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static void judge(int which, int can_copy)
{
    unsigned long long before[WAYS], after[WAYS], own_before[WAYS], own[WAYS];
    count(own_before, before);
    for (int n = 0; n < TIMES; n++)
        operations[which].call();
    OK(MPI_Barrier(comm));
    count(own, after);
    double copied[WAYS], block = (double)bytes * TIMES;
    for (int way = 0; way < WAYS; way++)
        copied[way] = (double)(after[way] - before[way]);
    if (rank == 0)
        printf("%-20s %8d bytes: blocks straight %6.3f, in cells %6.3f, in frames %6.3f\n", operations[which].name, bytes, copied[STRAIGHT] / block,
            copied[CELLS] / block, copied[FRAMES] / block);
    /* Offers and other words beside the data are less than so many bytes for each process. */
    double straight = (double)operations[which].straight() * block, shared = (double)operations[which].shared() * block;
    double seen = copied[CELLS] + copied[FRAMES] - 512.0 * TIMES * size;
    enum rule rule = can_copy ? operations[which].rule : SHARED;
    CHECK(rule != SHARED || (copied[STRAIGHT] == 0 && seen <= shared));
    CHECK(rule != ONCE || (copied[STRAIGHT] == straight && seen <= 0));
    /* Each copies its own block: in messages the root would copy one after another. */
    double copied_by_this = (double)(own[STRAIGHT] - own_before[STRAIGHT]);
    CHECK(!can_copy || operations[which].call != gatherv || copied_by_this == (rank == 0 ? 0 : block));
    /* Each time one way or the other. */
    CHECK(rule != EITHER || copied[STRAIGHT] / straight + seen / shared <= 1);
    /* Where each of two has a processor, both compute: the root reads more than half of a block, the other one reads and writes less than half.
       So long a block is always copied straight. */
    if (can_copy && operations[which].call == reduce && size == 2 && bytes == LONGEST && processors() >= size) {
        double copied_here = (double)(own[STRAIGHT] - own_before[STRAIGHT]);
        CHECK(copied_here > block / 2 && copied_here < block);
    }
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    comm = MPI_COMM_WORLD;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    give = calloc((size_t)size, LONGEST);
    take = calloc((size_t)size, LONGEST);
    CHECK(give && take && size <= MOST);
    open_counters();
    /* Whether the system lets processes copy from each other. */
    unsigned long long own[WAYS], all[WAYS];
    bytes = 1 << 16;
    for (int n = 0; n < TIMES; n++)
        sendrecv();
    count(own, all);
    int can_copy = all[STRAIGHT] > 0;
    if (!can_copy && rank == 0)
        printf("the system does not let processes copy from each other\n");
    for (bytes = 1 << 16; bytes <= LONGEST; bytes <<= 4) {
        for (int r = 0; r < size; r++)
            counts[r] = bytes, starts[r] = r * bytes;
        for (size_t which = 0; which < sizeof operations / sizeof *operations; which++)
            judge((int)which, can_copy);
    }
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_T_finalize());
    free(give);
    free(take);
    OK(MPI_Finalize());
    return 0;
}
