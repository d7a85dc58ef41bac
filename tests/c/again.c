/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators that are made, used and freed again and again: the memory in which their members meet goes from one to the next, of
   the same members and of others, used much, little or not at all. More of them than there is such memory for.
   ranks: 2 3 5 */
#include "check.h"

enum { LONGEST = 40000, MOST = 8, ALIVE = 100 };

static int rank, size;
static int out[MOST * LONGEST], in[MOST * LONGEST];
static unsigned state = 2463534242u;

/* The same at all processes. */
static int below(int bound)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return (int)(state % (unsigned)bound);
}

/* Lengths of all sizes of cells, and longer ones. */
static int some_length(void)
{
    static const int lengths[] = {1, 2, 5, 27, 100, 900, 5000, LONGEST};
    return lengths[below(8)];
}

/* An operation on a communicator; `salt` tells it from all others. */
static void use(MPI_Comm comm, int salt)
{
    int what = below(6), n = some_length(), choice = below(MOST), me, members;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &members);
    int root = choice % members;
    for (int i = 0; i < n; i++)
        out[i] = salt + me + i;
    memset(in, 0x55, sizeof(int) * (size_t)(n * members));
    switch (what) {
    case 0:
        OK(MPI_Bcast(me == root ? out : in, n, MPI_INT, root, comm));
        for (int i = 0; me != root && i < n; i++)
            CHECK(in[i] == salt + root + i);
        break;
    case 1:
        OK(MPI_Allreduce(out, in, n, MPI_INT, MPI_SUM, comm));
        for (int i = 0; i < n; i++)
            CHECK(in[i] == members * (salt + i) + members * (members - 1) / 2);
        break;
    case 2:
        OK(MPI_Allgather(out, n, MPI_INT, in, n, MPI_INT, comm));
        for (int r = 0; r < members; r++)
            for (int i = 0; i < n; i++)
                CHECK(in[r * n + i] == salt + r + i);
        break;
    case 3:
        OK(MPI_Gather(out, n, MPI_INT, in, n, MPI_INT, root, comm));
        for (int r = 0; me == root && r < members; r++)
            CHECK(in[r * n] == salt + r && in[r * n + n - 1] == salt + r + n - 1);
        break;
    case 4:
        OK(MPI_Scan(out, in, n, MPI_INT, MPI_SUM, comm));
        for (int i = 0; i < n; i++)
            CHECK(in[i] == (me + 1) * (salt + i) + me * (me + 1) / 2);
        break;
    default: OK(MPI_Barrier(comm));
    }
}

/* Of all, of all in reverse, or of all but the last one, who gets none. */
static MPI_Comm made(int how)
{
    MPI_Comm comm;
    switch (how) {
    case 0: OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm)); break;
    case 1: OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm)); break;
    default: OK(MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1 ? MPI_UNDEFINED : 0, rank, &comm));
    }
    return comm;
}

/* The same choices at a process without a part. */
static void skip(void)
{
    below(6);
    some_length();
    below(MOST);
}

static void one_at_a_time(void)
{
    for (int turn = 0; turn < 60; turn++) {
        MPI_Comm comm = made(below(3));
        for (int uses = below(5) == 0 ? 80 : below(4); uses > 0; uses--)
            if (comm != MPI_COMM_NULL)
                use(comm, 1000 * turn + uses);
            else
                skip();
        if (comm != MPI_COMM_NULL)
            OK(MPI_Comm_free(&comm));
    }
}

static void many(void)
{
    static MPI_Comm alive[ALIVE];
    for (int n = 0; n < ALIVE; n++)
        alive[n] = made(n % 3);
    for (int turn = 0; turn < 300; turn++) {
        int n = below(ALIVE), how = below(3), anew = below(3) == 0;
        if (anew) {
            if (alive[n] != MPI_COMM_NULL)
                OK(MPI_Comm_free(&alive[n]));
            alive[n] = made(how);
        }
        if (alive[n] != MPI_COMM_NULL)
            use(alive[n], turn);
        else
            skip();
    }
    for (int n = 0; n < ALIVE; n++)
        if (alive[n] != MPI_COMM_NULL)
            OK(MPI_Comm_free(&alive[n]));
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    one_at_a_time();
    many();
    one_at_a_time();
    OK(MPI_Finalize());
    return 0;
}
