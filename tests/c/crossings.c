/* SPDX-License-Identifier: Apache-2.0 */
/* How many messages each operation sends across the wide and the local area, by the counters of MPI_T, for every root.
   With the argument `grid` the job must be 3 sites of 2 machines of 4 processes; otherwise it is on one machine and nothing
   may cross either.
   ranks: 1 4 */
#include "check.h"

static int rank, size;
static MPI_T_pvar_session session;

static MPI_T_pvar_handle counter(const char *operation, const char *level)
{
    char name[128];
    int index, n;
    MPI_T_pvar_handle handle;
    snprintf(name, sizeof name, "isthmus_%s_%s_messages", operation, level);
    OK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &n));
    CHECK(n == 1);
    return handle;
}

/* What this process has sent so far: wide, local. */
static void read_counters(MPI_T_pvar_handle handles[2], long long values[2])
{
    for (int level = 0; level < 2; level++) {
        unsigned long long value;
        OK(MPI_T_pvar_read(session, handles[level], &value));
        values[level] = (long long)value;
    }
}

static void perform(int which, int root)
{
    static char data[1024], all[1024 * 64];
    static double in[128], out[128];
    for (int i = 0; i < 128; i++)
        in[i] = rank;
    switch (which) {
    case 0:
        memset(data, rank == root ? 'x' : 0, sizeof data);
        OK(MPI_Bcast(data, 1024, MPI_CHAR, root, MPI_COMM_WORLD));
        CHECK(data[0] == 'x' && data[1023] == 'x');
        break;
    case 1:
        OK(MPI_Reduce(in, out, 128, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD));
        CHECK(rank != root || out[127] == size * (size - 1) / 2);
        break;
    case 2: OK(MPI_Gather(data, 1024, MPI_CHAR, all, 1024, MPI_CHAR, root, MPI_COMM_WORLD)); break;
    case 3: OK(MPI_Scatter(all, 1024, MPI_CHAR, data, 1024, MPI_CHAR, root, MPI_COMM_WORLD)); break;
    case 4: OK(MPI_Barrier(MPI_COMM_WORLD)); break;
    case 5:
        OK(MPI_Allreduce(in, out, 128, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
        CHECK(out[0] == size * (size - 1) / 2);
        break;
    }
}

int main(int argc, char **argv)
{
    /* Rooted: one message to or from each other site, one for each second machine. Without a root the leaders of the 3
       sites meet: 6 messages; the second machine of each site is heard and told: 6 messages. */
    static const struct { const char *name; int wide, local; } cards[] = {
        {"bcast", 2, 3}, {"reduce", 2, 3}, {"gather", 2, 3}, {"scatter", 2, 3}, {"barrier", 6, 6}, {"allreduce", 6, 6},
    };
    int grid, provided;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    grid = argc > 1 && strcmp(argv[1], "grid") == 0;
    CHECK(!grid || size == 24);
    OK(MPI_T_pvar_session_create(&session));
    for (int which = 0; which < 6; which++) {
        MPI_T_pvar_handle handles[2] = {counter(cards[which].name, "wide"), counter(cards[which].name, "local")};
        for (int root = 0; root < size; root++) {
            long long before[2], after[2], sent[2], total[2];
            read_counters(handles, before);
            perform(which, root);
            read_counters(handles, after);
            for (int level = 0; level < 2; level++)
                sent[level] = after[level] - before[level];
            OK(MPI_Exscan(sent, total, 2, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD));
            if (rank == 0)
                total[0] = total[1] = 0;
            if (rank == size - 1) {
                total[0] += sent[0], total[1] += sent[1];
                if (total[0] != grid * cards[which].wide || total[1] != grid * cards[which].local)
                    fprintf(stderr, "%s with root %d: %lld wide-area and %lld local-area messages\n", cards[which].name,
                            root, total[0], total[1]);
                CHECK(total[0] == grid * cards[which].wide && total[1] == grid * cards[which].local);
            }
        }
        OK(MPI_T_pvar_handle_free(session, &handles[0]));
        OK(MPI_T_pvar_handle_free(session, &handles[1]));
    }
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return 0;
}
