/* SPDX-License-Identifier: Apache-2.0 */
/* Two jobs meet by a published name, in MPI_Init of a program that knows nothing of it. */
#define MET_ITSELF
#include "world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

MPI_Comm met_world;

/* MET_NAME is what both jobs look for, MET_SIDE says which one accepts. Without them the program is one job. */
static int meet(void)
{
    const char *name = getenv("MET_NAME"), *side = getenv("MET_SIDE");
    char port[MPI_MAX_PORT_NAME] = "";
    int rank, first = side && !strcmp(side, "first");
    MPI_Info scope;
    MPI_Comm other;
    met_world = MPI_COMM_WORLD;
    if (!name || !side)
        return MPI_SUCCESS;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Info_create(&scope);
    MPI_Info_set(scope, "isthmus_scope", "user");
    if (first) {
        if (rank == 0) {
            MPI_Open_port(MPI_INFO_NULL, port);
            MPI_Publish_name(name, scope, port);
        }
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
        if (rank == 0) {
            MPI_Unpublish_name(name, scope, port);
            MPI_Close_port(port);
        }
    } else {
        if (rank == 0) {
            MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
            while (MPI_Lookup_name(name, scope, port) != MPI_SUCCESS)
                usleep(50000);
            MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
        }
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
    }
    MPI_Info_free(&scope);
    MPI_Intercomm_merge(other, !first, &met_world);
    return MPI_Comm_disconnect(&other);
}

int met_init(int *argc, char ***argv)
{
    int error = MPI_Init(argc, argv);
    return error ? error : meet();
}

int met_init_thread(int *argc, char ***argv, int required, int *provided)
{
    int error = MPI_Init_thread(argc, argv, required, provided);
    return error ? error : meet();
}

int met_finalize(void)
{
    if (met_world != MPI_COMM_WORLD)
        MPI_Comm_disconnect(&met_world);
    return MPI_Finalize();
}
