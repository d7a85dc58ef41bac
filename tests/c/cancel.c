/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever waits for a send that was cancelled waits for nobody: here the receiver is outside MPI until all such waits are over. What was not cancelled
   arrives whole and in its place, although its memory has been used again.
   ranks: 2 */
#include "check.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LENGTHS = 4, MODES = 6, WAYS = 5, LONGEST = 3 << 20 };
static const int lengths[LENGTHS] = {0, 8, 50000, LONGEST};
static char data[LONGEST], more[1], in[LONGEST], buffer[2 * LONGEST];

static MPI_Request start(int mode, int bytes, int tag)
{
    MPI_Request request;
    MPI_Datatype pairs;
    switch (mode) {
    case 0:
        OK(MPI_Isend(data, bytes, MPI_CHAR, 1, tag, MPI_COMM_WORLD, &request));
        break;
    case 1:
        OK(MPI_Issend(data, bytes, MPI_CHAR, 1, tag, MPI_COMM_WORLD, &request));
        break;
    case 2:
        OK(MPI_Ibsend(data, bytes, MPI_CHAR, 1, tag, MPI_COMM_WORLD, &request));
        break;
    case 3:
        OK(MPI_Irsend(data, bytes, MPI_CHAR, 1, tag, MPI_COMM_WORLD, &request));
        break;
    case 4:
        OK(MPI_Send_init(data, bytes, MPI_CHAR, 1, tag, MPI_COMM_WORLD, &request));
        OK(MPI_Start(&request));
        break;
    default:
        OK(MPI_Type_vector(bytes / 2, 1, 2, MPI_CHAR, &pairs));
        OK(MPI_Type_commit(&pairs));
        OK(MPI_Isend(data, 1, pairs, 1, tag, MPI_COMM_WORLD, &request));
        OK(MPI_Type_free(&pairs));
    }
    return request;
}

/* Returns whether it was cancelled; 2: nobody can know. */
static int end(MPI_Request *request, int way)
{
    MPI_Status status;
    int flag = 0, index;
    OK(MPI_Cancel(request));
    switch (way) {
    case 0:
        OK(MPI_Wait(request, &status));
        break;
    case 1:
        while (!flag)
            OK(MPI_Test(request, &flag, &status));
        break;
    case 2:
        OK(MPI_Waitall(1, request, &status));
        break;
    case 3:
        OK(MPI_Waitany(1, request, &index, &status));
        break;
    default:
        OK(MPI_Request_free(request));
        return 2;
    }
    OK(MPI_Test_cancelled(&status, &flag));
    if (*request != MPI_REQUEST_NULL)
        OK(MPI_Request_free(request));
    return flag;
}

/* The memory of a request that was freed is nobody's again only later, so it is left alone. */
static void sender(int mode, int bytes, int way, const char *door)
{
    int gone, fd;
    MPI_Request request, after, ready;
    memset(data, 1, bytes);
    request = start(mode, bytes, 0);
    gone = end(&request, way);
    if (gone != 2)
        memset(data, 99, bytes);
    /* What begins now does not overtake it. */
    OK(MPI_Isend(more, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &after));
    OK(MPI_Isend(&gone, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &ready));
    fd = open(door, O_WRONLY);
    CHECK(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0);
    OK(MPI_Wait(&ready, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&after, MPI_STATUS_IGNORE));
}

/* Takes the message if it is there, and the one behind it. */
static void receiver(int bytes, const char *door)
{
    int gone, got, fd = open(door, O_RDONLY);
    char ready;
    MPI_Status status;
    CHECK(fd >= 0 && read(fd, &ready, 1) == 1 && close(fd) == 0);
    OK(MPI_Recv(&gone, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Recv(in, LONGEST, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_CHAR, &got));
    CHECK(got == 1 ? gone != 0 : gone != 1 && got == bytes);
    if (got == 1)
        return;
    for (int k = 0; k < got; k++)
        CHECK(in[k] == 1);
    OK(MPI_Recv(in, LONGEST, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_CHAR, &got));
    CHECK(got == 1);
}

int main(int argc, char **argv)
{
    char name[] = "/tmp/isthmus-cancel-XXXXXX", door[64];
    void *attached;
    int rank, size;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Buffer_attach(buffer, sizeof buffer));
    if (rank == 0)
        CHECK(mkdtemp(name) != NULL);
    OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
    snprintf(door, sizeof door, "%s/door", name);
    if (rank == 0)
        CHECK(mkfifo(door, 0600) == 0);
    for (int i = 0; i < LENGTHS * MODES; i++) {
        int mode = i % MODES, bytes = lengths[i / MODES];
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0)
            sender(mode, bytes, i % WAYS, door);
        else
            receiver(mode == MODES - 1 ? bytes / 2 : bytes, door);
    }
    if (rank == 0)
        CHECK(unlink(door) == 0 && rmdir(name) == 0);
    OK(MPI_Buffer_detach(&attached, &size));
    OK(MPI_Finalize());
    if (rank == 0)
        printf("whoever waits for a cancelled send waits for nobody\n");
    return 0;
}
