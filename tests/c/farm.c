/* SPDX-License-Identifier: Apache-2.0 */
/* A farm: 130 jobs are spawned one after the other, each says a word and leaves. What worlds and transports had is given back: the parents end
   with about as many open files as they had after the first jobs.
   ranks: 2 */
#include <dirent.h>

#include "check.h"

enum { JOBS = 130, FIRST = 10 };

static int open_files(void)
{
    int count = 0;
    DIR *all = opendir("/proc/self/fd");
    if (!all)
        return 0;
    while (readdir(all))
        count++;
    closedir(all);
    return count;
}

int main(int argc, char **argv)
{
    int rank, word, open_then = 0;
    MPI_Comm parent;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        OK(MPI_Bcast(&word, 1, MPI_INT, 0, parent));
        word = -word;
        OK(MPI_Send(&word, 1, MPI_INT, 0, 0, parent));
        OK(MPI_Comm_disconnect(&parent));
    } else {
        for (int job = 1; job <= JOBS; job++) {
            MPI_Comm child;
            OK(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &child, MPI_ERRCODES_IGNORE));
            word = job;
            OK(MPI_Bcast(&word, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, child));
            if (rank == 0) {
                OK(MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 0, child, MPI_STATUS_IGNORE));
                CHECK(word == -job);
            }
            OK(MPI_Comm_disconnect(&child));
            if (job == FIRST)
                open_then = open_files();
        }
        /* What the last one had may be given back a moment later. */
        CHECK(open_files() < open_then + FIRST);
    }
    OK(MPI_Finalize());
    return 0;
}
