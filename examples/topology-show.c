/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of the network as MPI sees it: depth and colours of every rank, the communicator of each local area,
   and one reduction over all. Same colour at a level = can talk at that level. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const level[] = {"wide area", "local area", "machine", "vendor MPI"};

static void print_table(int size, const int *depths, int *const *colors, char (*hosts)[MPI_MAX_PROCESSOR_NAME])
{
    int deepest = 0;
    for (int rank = 0; rank < size; rank++)
        deepest = depths[rank] > deepest ? depths[rank] : deepest;
    printf("%-12s", "rank");
    for (int rank = 0; rank < size; rank++)
        printf(" %3d", rank);
    printf("\n%-12s", "depth");
    for (int rank = 0; rank < size; rank++)
        printf(" %3d", depths[rank]);
    for (int l = 0; l < deepest; l++) {
        printf("\n%-12s", l < 4 ? level[l] : "deeper");
        for (int rank = 0; rank < size; rank++) {
            if (l < depths[rank])
                printf(" %3d", colors[rank][l]);
            else
                printf("   -");
        }
    }
    printf("\n\n");
    for (int rank = 0; rank < size; rank++)
        printf("rank %d runs on %s\n", rank, hosts[rank]);
}

int main(int argc, char *argv[])
{
    int me, size, flag, other, length, lan_rank, lan_size;
    int *depths;
    int **colors;
    char host[MPI_MAX_PROCESSOR_NAME] = "";
    MPI_Comm lan;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPICHX_TOPOLOGY_DEPTHS, &depths, &flag);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPICHX_TOPOLOGY_COLORS, &colors, &other);
    if (!flag || !other) {
        fprintf(stderr, "this MPI does not say what the network looks like\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }

    MPI_Get_processor_name(host, &length);
    char (*hosts)[MPI_MAX_PROCESSOR_NAME] = malloc(sizeof(host) * (size_t)size);
    if (!hosts)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Gather(host, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, hosts, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (me == 0)
        print_table(size, depths, colors, hosts);
    free(hosts);

    MPI_Comm_split(MPI_COMM_WORLD, colors[me][1], 0, &lan);
    MPI_Comm_rank(lan, &lan_rank);
    MPI_Comm_size(lan, &lan_size);

    int area[2] = {colors[me][1], lan_rank == 0 ? lan_size : 0};
    int *areas = malloc(sizeof(area) * (size_t)size);
    if (!areas)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Gather(area, 2, MPI_INT, areas, 2, MPI_INT, 0, MPI_COMM_WORLD);
    for (int rank = 0; me == 0 && rank < size; rank++)
        if (areas[2 * rank + 1] > 0)
            printf("local area %d has %d ranks, the first is %d\n", areas[2 * rank], areas[2 * rank + 1], rank);
    free(areas);

    double mine = me, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    int wrong = sum != 0.5 * size * (size - 1);
    if (me == 0)
        printf("the sum of all ranks is %g: %s\n", sum, wrong ? "WRONG" : "right");

    MPI_Comm_free(&lan);
    MPI_Finalize();
    return wrong;
}
