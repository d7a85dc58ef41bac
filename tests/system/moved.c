/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an input, says what it says, waits for a file, writes an output and a mark that it is through.
   usage: moved WAIT-FOR MARK */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size;
    char word[64] = "nothing", name[256];
    FILE *file = fopen("mesh.txt", "r");
    if (file) {
        if (!fgets(word, sizeof word, file))
            word[0] = 0;
        fclose(file);
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("rank %d of %d read %s", rank, size, word);
    fflush(stdout);
    while (access(argv[1], F_OK) != 0)
        usleep(20000);
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(name, sizeof name, "out.%d", rank);
    file = fopen(name, "w");
    fprintf(file, "%d\n", rank);
    fclose(file);
    MPI_Finalize();
    snprintf(name, sizeof name, "%s.%d", argv[2], rank);
    file = fopen(name, "w");
    fclose(file);
    return 0;
}
