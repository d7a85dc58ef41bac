/* SPDX-License-Identifier: Apache-2.0 */
/* One of two parallel codes that preCICE couples: SolverOne sends what depends on place and time, SolverTwo checks it and sends
   its double back. usage: exchange CONFIGURATION SolverOne|SolverTwo */
#include <mpi.h>
#include <precice/preciceC.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERTICES = 60, DIMENSIONS = 3 };

static double field(int vertex, int component, int step)
{
    return 1000.0 * step + vertex + component / 8.0;
}

int main(int argc, char **argv)
{
    int rank, size, ids[VERTICES], wrong = 0, steps = 0;
    double places[VERTICES * DIMENSIONS], out[VERTICES * DIMENSIONS], in[VERTICES * DIMENSIONS];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 3 || VERTICES % size)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int one = strcmp(argv[2], "SolverOne") == 0, mine = VERTICES / size, first = rank * mine;
    const char *mesh = one ? "SolverOne-Mesh" : "SolverTwo-Mesh";
    const char *writes = one ? "Data-One" : "Data-Two", *reads = one ? "Data-Two" : "Data-One";
    precicec_createParticipant(argv[2], argv[1], rank, size);
    for (int i = 0; i < mine * DIMENSIONS; i++)
        places[i] = i % DIMENSIONS == 0 ? first + i / DIMENSIONS : 0;
    precicec_setMeshVertices(mesh, mine, places, ids);
    precicec_initialize();
    while (precicec_isCouplingOngoing()) {
        double dt = precicec_getMaxTimeStepSize();
        steps++;
        if (!one)
            precicec_readData(mesh, reads, mine, ids, dt, in);
        for (int i = 0; i < mine * DIMENSIONS; i++) {
            double right = field(first + i / DIMENSIONS, i % DIMENSIONS, steps);
            wrong += !one && in[i] != right;
            out[i] = one ? right : 2 * in[i];
        }
        precicec_writeData(mesh, writes, mine, ids, out);
        precicec_advance(dt);
        if (one && precicec_isCouplingOngoing()) {
            precicec_readData(mesh, reads, mine, ids, 0, in);
            for (int i = 0; i < mine * DIMENSIONS; i++)
                wrong += in[i] != 2 * field(first + i / DIMENSIONS, i % DIMENSIONS, steps);
        }
    }
    precicec_finalize();
    printf("%s: rank %d of %d: %d steps, %d values wrong\n", argv[2], rank, size, steps, wrong);
    MPI_Finalize();
    return wrong != 0;
}
