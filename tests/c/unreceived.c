/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that nobody receives do not keep MPI_Finalize from ending, and are told of. One whose request was freed still arrives at a
   receiver that comes after its sender has called MPI_Finalize.
   ranks: 1 2 3 */
#include "check.h"

#include <fcntl.h>
#include <unistd.h>

enum { LONG = 1 << 20, WANTED = 5, UNWANTED = 77 };
static char wanted[LONG], unwanted[LONG], got[LONG];

int main(int argc, char **argv)
{
    int rank, size, ends[2];
    static char words[4096];
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    memset(wanted, rank + 1, LONG);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    OK(MPI_Isend(unwanted, LONG, MPI_CHAR, next, UNWANTED, MPI_COMM_WORLD, &request));
    OK(MPI_Request_free(&request));
    OK(MPI_Issend(unwanted, 1, MPI_CHAR, next, UNWANTED, MPI_COMM_WORLD, &request));
    OK(MPI_Request_free(&request));
    OK(MPI_Isend(wanted, LONG, MPI_CHAR, next, WANTED, MPI_COMM_WORLD, &request));
    OK(MPI_Request_free(&request));
    /* Rank 0 is in MPI_Finalize before its message is asked for. */
    if (rank != 0 || size == 1) {
        usleep(50000);
        OK(MPI_Recv(got, LONG, MPI_CHAR, previous, WANTED, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < LONG; i++)
            CHECK(got[i] == previous + 1);
    }
    CHECK(pipe(ends) == 0 && dup2(ends[1], 2) == 2 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
    MPI_Finalize();
    ssize_t length = read(ends[0], words, sizeof words - 1);
    /* Where others have ended before this process looks, their messages count as lost and not as unreceived. */
    return size == 1 && !(length > 0 && strstr(words, "warning: at MPI_Finalize nobody had received") && strstr(words, "tag 77"));
}
