/* SPDX-License-Identifier: Apache-2.0 */
/* Parents and children on two machines, of each world two processes on both: what is merged of them knows machines and
   sites, and operations cross what is between these the fewest times. Messages across a level are counted by MPI_T; merged.sh judges them. */
#include "check.h"
#include "sent.h"

/* Messages that all have sent in one operation, across a level. */
static void crossings(MPI_Comm all, const char *what, int root, long long counted[3])
{
    static const char *levels[] = {"wide", "local", "node"};
    static char data[1000];
    long long mine[3];
    for (int i = 0; i < 3; i++)
        mine[i] = -(long long)sent_by(what, levels[i]);
    if (what[0] == 'b') /* bcast */
        OK(MPI_Bcast(data, sizeof data, MPI_CHAR, root, all));
    else
        OK(MPI_Reduce(data, data + 500, 500, MPI_UNSIGNED_CHAR, MPI_BOR, root, all));
    for (int i = 0; i < 3; i++)
        mine[i] += (long long)sent_by(what, levels[i]);
    OK(MPI_Allreduce(mine, counted, 3, MPI_LONG_LONG, MPI_SUM, all));
}

int main(int argc, char **argv)
{
    MPI_Comm parent, inter, all;
    int provided, rank, size;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_Comm_get_parent(&parent));
    inter = parent;
    if (parent == MPI_COMM_NULL) {
        char *commands[] = {argv[0], argv[0]};
        int counts[] = {2, 2};
        MPI_Info infos[2];
        for (int i = 0; i < 2; i++) {
            OK(MPI_Info_create(&infos[i]));
            OK(MPI_Info_set(infos[i], "isthmus_site", argv[1 + i]));
        }
        OK(MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, counts, infos, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    }
    OK(MPI_Intercomm_merge(inter, parent != MPI_COMM_NULL, &all));
    OK(MPI_Comm_rank(all, &rank));
    OK(MPI_Comm_size(all, &size));
    int **colors, flag;
    OK(MPI_Comm_get_attr(all, MPICHX_TOPOLOGY_COLORS, &colors, &flag));
    CHECK(flag);
    for (int root = 0; root < size; root++) {
        long long counted[3];
        crossings(all, "bcast", root, counted);
        if (rank == 0)
            printf("bcast from %d: wide %lld, local %lld, node %lld\n", root, counted[0], counted[1], counted[2]);
        crossings(all, "reduce", root, counted);
        if (rank == 0)
            printf("reduce to %d: wide %lld, local %lld, node %lld\n", root, counted[0], counted[1], counted[2]);
    }
    for (int i = 0; rank == 0 && i < size; i++)
        printf("rank %d: area %d, machine %d\n", i, colors[i][1], colors[i][2]);
    OK(MPI_Comm_disconnect(&all));
    OK(MPI_Comm_disconnect(&inter));
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return 0;
}
