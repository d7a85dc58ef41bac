/* SPDX-License-Identifier: Apache-2.0 */
/* A world of parts that were started by hand: its size, its programs, and sums over all of it. Arguments: processes and parts that there must be; without them
 * it is a job of one part. */
/* ranks: 1 3 */
#include "check.h"

int main(int argc, char **argv)
{
    int rank, size, flag, appnum = -1, most, *number;
    MPI_Comm local;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(argc < 3 || size == atoi(argv[1]));
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &flag);
    if (flag)
        appnum = *number;
    MPI_Allreduce(&appnum, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(argc < 3 || most == atoi(argv[2]) - 1);
    long sum = 0, own = rank + 1, part = 0;
    MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == (long)size * (size + 1) / 2);
    MPI_Comm_split(MPI_COMM_WORLD, appnum, rank, &local);
    MPI_Allreduce(&own, &part, 1, MPI_LONG, MPI_SUM, local);
    long first = 0;
    MPI_Allreduce(&own, &first, 1, MPI_LONG, MPI_MIN, local);
    int members;
    MPI_Comm_size(local, &members);
    CHECK(part == members * first + (long)members * (members - 1) / 2);
    char *all = malloc((size_t)size << 16), *mine = malloc(1 << 16);
    memset(mine, 'a' + rank % 26, 1 << 16);
    MPI_Allgather(mine, 1 << 16, MPI_CHAR, all, 1 << 16, MPI_CHAR, MPI_COMM_WORLD);
    for (int other = 0; other < size; other++)
        for (int at = 0; at < 1 << 16; at++)
            CHECK(all[((size_t)other << 16) + at] == 'a' + other % 26);
    free(all);
    free(mine);
    MPI_Comm_free(&local);
    MPI_Finalize();
    printf("rank %d: all is well\n", rank);
    return 0;
}
