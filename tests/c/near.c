/* SPDX-License-Identifier: Apache-2.0 */
/* Parents and the children that they spawn on their node talk in its memory: nothing of what they send each other crosses a level above the
   node, in whatever length and order, and as often as they meet. Their levels say that they are on one node, and windows in its memory are for
   processes of one world. Nothing is left of it afterwards.
   ranks: 1 2 3 */
#include "check.h"
#include "sent.h"
#include <dirent.h>
#include <unistd.h>

enum { ROUNDS = 6, LONG = 1 << 21 };

static int rank, size;

static int entries(const char *path)
{
    int count = 0;
    DIR *directory = opendir(path);
    CHECK(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

/* Messages of many lengths to everybody on the other side, in order, and received in another one. */
static void talk(MPI_Comm inter, int high)
{
    static const int lengths[] = {0, 1, 8, 100, 5000, 9000, 70000, 1 << 20, LONG};
    enum { KINDS = sizeof lengths / sizeof *lengths };
    int remote;
    OK(MPI_Comm_remote_size(inter, &remote));
    MPI_Request *requests = malloc(remote * KINDS * sizeof *requests);
    char *data = malloc(LONG), *got = malloc(LONG);
    for (int i = 0; i < LONG; i++)
        data[i] = (char)(i * 7 + rank);
    for (int to = 0; to < remote; to++)
        for (int kind = 0; kind < KINDS; kind++)
            OK(MPI_Isend(data, lengths[kind], MPI_CHAR, to, kind % 2, inter, &requests[to * KINDS + kind]));
    for (int from = remote - 1; from >= 0; from--)
        for (int tag = 1; tag >= 0; tag--)
            for (int kind = tag; kind < KINDS; kind += 2) {
                MPI_Status status;
                int count;
                OK(MPI_Recv(got, LONG, MPI_CHAR, from, tag, inter, &status));
                OK(MPI_Get_count(&status, MPI_CHAR, &count));
                CHECK(count == lengths[kind]);
                for (int i = 0; i < count; i++)
                    CHECK(got[i] == (char)(i * 7 + from));
            }
    OK(MPI_Waitall(remote * KINDS, requests, MPI_STATUSES_IGNORE));
    /* Who waits for long sleeps, and is woken. */
    if (rank == 0) {
        int other = -1;
        if (high)
            usleep(200000);
        OK(MPI_Send(&rank, 1, MPI_INT, 0, 7, inter));
        OK(MPI_Recv(&other, 1, MPI_INT, 0, 7, inter, MPI_STATUS_IGNORE));
        CHECK(other == 0);
    }
    free(requests);
    free(data);
    free(got);
}

/* Again and again: the first ones go by messages alone, later ones in the memory of each world where it has several. */
static void operations(MPI_Comm all, int everybody)
{
    enum { TIMES = 6, NUMBERS = 300 };
    int me, in[NUMBERS], out[NUMBERS], *blocks = malloc(everybody * sizeof *blocks);
    OK(MPI_Comm_rank(all, &me));
    for (int time = 0; time < TIMES; time++)
        for (int root = 0; root < everybody; root++) {
            for (int i = 0; i < NUMBERS; i++)
                in[i] = me == root ? i * root + time : -1;
            OK(MPI_Bcast(in, NUMBERS, MPI_INT, root, all));
            for (int i = 0; i < NUMBERS; i++)
                CHECK(in[i] == i * root + time);
            OK(MPI_Allreduce(in, out, NUMBERS, MPI_INT, MPI_SUM, all));
            CHECK(out[NUMBERS - 1] == everybody * in[NUMBERS - 1]);
            OK(MPI_Reduce(&me, out, 1, MPI_INT, MPI_MAX, root, all));
            CHECK(me != root || out[0] == everybody - 1);
            OK(MPI_Allgather(&me, 1, MPI_INT, blocks, 1, MPI_INT, all));
            for (int i = 0; i < everybody; i++)
                CHECK(blocks[i] == i);
            OK(MPI_Gather(&me, 1, MPI_INT, blocks, 1, MPI_INT, root, all));
            OK(MPI_Scatter(blocks, 1, MPI_INT, out, 1, MPI_INT, root, all));
            CHECK(out[0] == me);
            OK(MPI_Barrier(all));
        }
    free(blocks);
}

static void meet(MPI_Comm inter, int high)
{
    MPI_Comm all, node;
    talk(inter, high);
    OK(MPI_Intercomm_merge(inter, high, &all));
    int sum, one = 1, everybody;
    OK(MPI_Comm_size(all, &everybody));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all));
    CHECK(sum == everybody);
    /* One machine: both worlds are on a node of it. */
    int **colors, flag;
    OK(MPI_Comm_get_attr(all, MPICHX_TOPOLOGY_COLORS, &colors, &flag));
    CHECK(flag);
    for (int i = 0; i < everybody; i++)
        CHECK(colors[i][1] == 0 && colors[i][2] == 0);
    operations(all, everybody);
    /* Whatever is said to share memory can have windows there. */
    OK(MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    int *part, mine, last;
    MPI_Win win;
    OK(MPI_Comm_rank(node, &mine));
    OK(MPI_Comm_size(node, &everybody));
    OK(MPI_Win_allocate_shared(sizeof *part, sizeof *part, MPI_INFO_NULL, node, &part, &win));
    *part = mine;
    OK(MPI_Win_fence(0, win));
    MPI_Aint length;
    int unit, *theirs;
    last = everybody - 1;
    OK(MPI_Win_shared_query(win, last, &length, &unit, &theirs));
    CHECK(*theirs == last);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&node));
    OK(MPI_Comm_disconnect(&all));
    OK(MPI_Comm_disconnect(&inter));
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Comm parent, children;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL)
        meet(parent, 1);
    int open = 0, named = 0;
    for (int round = 0; parent == MPI_COMM_NULL && round < ROUNDS; round++) {
        OK(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
        meet(children, 0);
        if (round == 2) {
            open = entries("/proc/self/fd");
            named = entries("/dev/shm");
        }
    }
    if (parent == MPI_COMM_NULL) {
        /* Doorbells of others are opened when they first sleep. A meeting has more descriptors than that. */
        CHECK(entries("/proc/self/fd") < open + size + 4);
        /* Other jobs of this machine come and go; children that end meanwhile have memory of their own. */
        CHECK(entries("/dev/shm") < named + ROUNDS);
    }
    CHECK(sent("node") > 0);
    CHECK(sent("machine") == 0 && sent("local") == 0 && sent("wide") == 0);
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return 0;
}
