/* SPDX-License-Identifier: Apache-2.0 */
/* Two children of the same parents do not know each other. Where they meet, each beside a parent, who knows everybody already, they talk in the
   memory of their node: in that of a parent, whichever of the groups is the first one.
   ranks: 2 */
#include "check.h"
#include "sent.h"

enum { ROUNDS = 3, LONG = 100000 };

/* The parents and one more, who goes with the parent of rank `beside`; at the other parent nobody. */
static MPI_Comm pair_of(MPI_Comm inter, int is_child, int beside)
{
    MPI_Comm all, pair;
    int rank;
    OK(MPI_Intercomm_merge(inter, is_child, &all));
    OK(MPI_Comm_rank(all, &rank));
    OK(MPI_Comm_split(all, is_child || rank == beside ? 0 : MPI_UNDEFINED, rank, &pair));
    OK(MPI_Comm_free(&all));
    return pair;
}

/* The pairs meet, and the children exchange something. */
static void meet(MPI_Comm pair, int other, int is_child)
{
    static int data[LONG], got[LONG];
    MPI_Comm inter;
    OK(MPI_Intercomm_create(pair, 0, MPI_COMM_WORLD, other, 5, &inter));
    if (is_child) {
        for (int i = 0; i < LONG; i++)
            data[i] = i * 3;
        OK(MPI_Sendrecv(data, LONG, MPI_INT, 1, 0, got, LONG, MPI_INT, 1, 0, inter, MPI_STATUS_IGNORE));
        for (int i = 0; i < LONG; i++)
            CHECK(got[i] == i * 3);
    }
    OK(MPI_Comm_disconnect(&inter));
}

int main(int argc, char **argv)
{
    int provided, rank;
    MPI_Comm parent;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_get_parent(&parent));
    int is_child = parent != MPI_COMM_NULL;
    if (is_child) {
        MPI_Comm pair = pair_of(parent, 1, 0);
        meet(pair, 0, 1);
        OK(MPI_Comm_free(&pair));
        OK(MPI_Comm_disconnect(&parent));
    }
    for (int round = 0; !is_child && round < ROUNDS; round++) {
        MPI_Comm children[2], pairs[2];
        for (int i = 0; i < 2; i++)
            OK(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children[i], MPI_ERRCODES_IGNORE));
        for (int i = 0; i < 2; i++)
            pairs[i] = pair_of(children[i], 0, i);
        meet(pairs[rank], 1 - rank, 0);
        OK(MPI_Comm_free(&pairs[rank]));
        for (int i = 0; i < 2; i++)
            OK(MPI_Comm_disconnect(&children[i]));
    }
    CHECK(sent("node") > 0);
    CHECK(sent("machine") == 0 && sent("local") == 0 && sent("wide") == 0);
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return 0;
}
