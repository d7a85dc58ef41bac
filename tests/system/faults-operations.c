/* SPDX-License-Identifier: Apache-2.0 */
/* For faults.sh: the last rank dies while operations of all kinds wait for it, and before others. All of them end at all survivors, with an
   error where they needed it; what does not need it goes on. */
#include <mpi-ext.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: rank %d: not true: %s\n", __FILE__, __LINE__, rank, #condition); \
            MPI_Abort(MPI_COMM_WORLD, 1); \
        } \
    } while (0)

enum { KINDS = 14, LONG = 1 << 17 };

static int rank, size, dies;
static int from[8 * LONG], into[8 * LONG], counts[64], places[64];

static int class_of(int code)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    return class;
}

/* One operation of each kind; the root is the one that dies where `root` is. */
static int collective(int kind, int n, int root, MPI_Comm comm)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int code;
    switch (kind) {
    case 0: return MPI_Barrier(comm);
    case 1: return MPI_Bcast(from, n, MPI_INT, root, comm);
    case 2: return MPI_Allreduce(from, into, n, MPI_INT, MPI_SUM, comm);
    case 3: return MPI_Reduce(from, into, n, MPI_INT, MPI_SUM, root, comm);
    case 4: return MPI_Allgather(from, n, MPI_INT, into, n, MPI_INT, comm);
    case 5: return MPI_Alltoall(from, n, MPI_INT, into, n, MPI_INT, comm);
    case 6: return MPI_Gather(from, n, MPI_INT, into, n, MPI_INT, root, comm);
    case 7: return MPI_Scatter(from, n, MPI_INT, into, n, MPI_INT, root, comm);
    case 8: return MPI_Scan(from, into, n, MPI_INT, MPI_SUM, comm);
    case 9: return MPI_Reduce_scatter_block(from, into, n, MPI_INT, MPI_SUM, comm);
    case 10: return MPI_Allgatherv(from, n, MPI_INT, into, counts, places, MPI_INT, comm);
    case 11: code = MPI_Ibarrier(comm, &request); break;
    case 12: code = MPI_Iallreduce(from, into, n, MPI_INT, MPI_SUM, comm, &request); break;
    default: code = MPI_Ialltoall(from, n, MPI_INT, into, n, MPI_INT, comm, &request);
    }
    return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

/* Receives from anybody: they wait on, and are told of once more after each loss that the program does not know. */
static void anybody(MPI_Comm world, MPI_Comm left)
{
    int came = -1, flag, known;
    MPI_Request request;
    MPI_Status status;
    MPI_Group failed;
    CHECK(class_of(MPI_Recv(&came, 1, MPI_INT, MPI_ANY_SOURCE, 7, world, &status)) == MPIX_ERR_PROC_FAILED);
    CHECK(class_of(MPI_Probe(MPI_ANY_SOURCE, 7, world, &status)) == MPIX_ERR_PROC_FAILED);
    CHECK(MPI_Irecv(&came, 1, MPI_INT, MPI_ANY_SOURCE, 8, world, &request) == MPI_SUCCESS);
    CHECK(class_of(MPI_Wait(&request, &status)) == MPIX_ERR_PROC_FAILED_PENDING && request != MPI_REQUEST_NULL);
    CHECK(class_of(MPI_Test(&request, &flag, &status)) == MPIX_ERR_PROC_FAILED_PENDING && !flag);
    CHECK(MPI_Waitall(1, &request, &status) == MPI_ERR_IN_STATUS && class_of(status.MPI_ERROR) == MPIX_ERR_PROC_FAILED_PENDING);
    CHECK(MPIX_Comm_get_failed(world, &failed) == MPI_SUCCESS);
    CHECK(MPI_Group_size(failed, &known) == MPI_SUCCESS && known == 1);
    CHECK(MPIX_Comm_ack_failed(world, known, &known) == MPI_SUCCESS && known == 1);
    CHECK(MPI_Test(&request, &flag, &status) == MPI_SUCCESS && (!flag || came >= 0));
    MPI_Barrier(left);
    int to = (rank + 1) % (size - 1), before = (rank + size - 2) % (size - 1);
    CHECK(MPI_Send(&rank, 1, MPI_INT, to, 8, world) == MPI_SUCCESS);
    if (!flag)
        CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS);
    CHECK(came == before && status.MPI_SOURCE == before);
    CHECK(MPI_Send(&rank, 1, MPI_INT, to, 9, world) == MPI_SUCCESS);
    CHECK(MPI_Recv(&came, 1, MPI_INT, MPI_ANY_SOURCE, 9, world, &status) == MPI_SUCCESS && came == before);
    MPI_Group_free(&failed);
}

/* A window of survivors, and one that has lost a member. */
static void windows(MPI_Win old, MPI_Comm left)
{
    MPI_Win win;
    int *memory, one = 1, sum;
    CHECK(class_of(MPI_Win_fence(0, old)) != MPI_SUCCESS);
    CHECK(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, left, &memory, &win) == MPI_SUCCESS);
    *memory = 0;
    MPI_Barrier(left);
    CHECK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win) == MPI_SUCCESS);
    CHECK(MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win) == MPI_SUCCESS);
    CHECK(MPI_Win_unlock(0, win) == MPI_SUCCESS);
    MPI_Barrier(left);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    CHECK(MPI_Get(&sum, 1, MPI_INT, 0, 0, 1, MPI_INT, win) == MPI_SUCCESS);
    MPI_Win_unlock(0, win);
    CHECK(sum == size - 1);
    CHECK(MPI_Win_free(&win) == MPI_SUCCESS);
}

static void files(MPI_Comm left)
{
    MPI_File file;
    MPI_Status status;
    int mine = 100 + rank, read = 0, next = (rank + 1) % (size - 1);
    CHECK(MPI_File_open(left, "faults-file", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) == MPI_SUCCESS);
    CHECK(MPI_File_write_at_all(file, (MPI_Offset)rank * 4, &mine, 1, MPI_INT, &status) == MPI_SUCCESS);
    MPI_File_sync(file);
    MPI_Barrier(left);
    MPI_File_sync(file);
    CHECK(MPI_File_read_at_all(file, (MPI_Offset)next * 4, &read, 1, MPI_INT, &status) == MPI_SUCCESS && read == 100 + next);
    CHECK(MPI_File_close(&file) == MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    MPI_Comm before[KINDS], after[KINDS], left, half, inter;
    MPI_Request kept, started;
    MPI_Win win;
    int *memory, one = 1, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int n = argc > 1 ? atoi(argv[1]) : 1;
    dies = rank == size - 1;
    for (int i = 0; i < size; i++)
        counts[i] = n, places[i] = n * i;
    for (int kind = 0; kind < KINDS; kind++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &before[kind]);
        MPI_Comm_dup(MPI_COMM_WORLD, &after[kind]);
    }
    MPI_Comm_split(MPI_COMM_WORLD, dies, rank, &left);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 0 : 1, 3, &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Allreduce_init(from, into, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &kept);
    MPI_Win_fence(0, win);
    MPI_Start(&kept);
    MPI_Wait(&kept, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (dies) {
        usleep(200000);
        raise(SIGKILL);
    }
    /* These wait for it when it dies. */
    CHECK(MPI_Ibarrier(MPI_COMM_WORLD, &started) == MPI_SUCCESS);
    for (int kind = 0; kind < KINDS; kind++) {
        int code = collective(kind, n, kind % 2 ? size - 1 : 0, before[kind]);
        /* Some need nothing from it. */
        CHECK(code == MPI_SUCCESS || class_of(code) == MPIX_ERR_PROC_FAILED);
    }
    CHECK(class_of(MPI_Wait(&started, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED);
    /* These begin afterwards. */
    for (int kind = 0; kind < KINDS; kind++)
        for (int root = 0; root < size; root += size - 1) {
            int code = collective(kind, n, root, after[kind]);
            CHECK(code == MPI_SUCCESS || class_of(code) == MPIX_ERR_PROC_FAILED);
            CHECK(kind > 0 || code != MPI_SUCCESS);
        }
    int code = MPI_Start(&kept);
    if (code == MPI_SUCCESS)
        code = MPI_Wait(&kept, MPI_STATUS_IGNORE);
    CHECK(class_of(code) == MPIX_ERR_PROC_FAILED);
    CHECK(class_of(MPI_Barrier(inter)) == MPIX_ERR_PROC_FAILED);
    CHECK(class_of(MPI_Send(&one, 1, MPI_INT, size - 1, 1, MPI_COMM_WORLD)) == MPIX_ERR_PROC_FAILED);
    CHECK(class_of(MPI_Recv(&one, 1, MPI_INT, size - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED);
    /* Among the survivors all is as ever. */
    one = 1;
    for (int round = 0; round < 20; round++)
        CHECK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, left) == MPI_SUCCESS && sum == size - 1);
    anybody(MPI_COMM_WORLD, left);
    windows(win, left);
    files(left);
    printf("rank %d went on as one of %d\n", rank, sum);
    MPI_Finalize();
    return 0;
}
