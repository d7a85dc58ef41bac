/* SPDX-License-Identifier: Apache-2.0 */
/* In front of every source of a program (cc -include world.h): its MPI_COMM_WORLD are the processes of two jobs that have met. */
#ifndef MET_WORLD_H
#define MET_WORLD_H
#include <mpi.h>

extern MPI_Comm met_world;
int met_init(int *argc, char ***argv);
int met_init_thread(int *argc, char ***argv, int required, int *provided);
int met_finalize(void);

#ifndef MET_ITSELF
#undef MPI_COMM_WORLD
#define MPI_COMM_WORLD met_world
#define MPI_Init met_init
#define MPI_Init_thread met_init_thread
#define MPI_Finalize met_finalize
#define PMPI_Init met_init
#define PMPI_Init_thread met_init_thread
#define PMPI_Finalize met_finalize
#endif
#endif
