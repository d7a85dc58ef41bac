/* SPDX-License-Identifier: Apache-2.0
 *
 * Where ranks are, as told to a program and as found.
 */
#ifndef PLACES_H
#define PLACES_H
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { PLACE_MOST = 4096 };

/* For each rank the number of its machine and of its site; set by places_read. */
static int place_machine[PLACE_MOST], place_site[PLACE_MOST], place_ranks;

/* Reads "4,4/4,4": ranks of each machine, sites divided by slashes. The number of ranks, or -1 for a mistake. */
static int places_read(const char *text)
{
    int machine = 0, site = 0;
    place_ranks = 0;
    for (;;) {
        char *end;
        long count = strtol(text, &end, 10);
        if (end == text || count < 1 || place_ranks + count > PLACE_MOST)
            return -1;
        for (; count > 0; count--) {
            place_machine[place_ranks] = machine;
            place_site[place_ranks++] = site;
        }
        if (*end == 0)
            return place_ranks;
        if (*end != ',' && *end != '/')
            return -1;
        site += *end == '/';
        machine++;
        text = end + 1;
    }
}

/* Whether ranks are where places_read was told: those of a machine on one host, and those of two machines on two. A launcher that puts all of them on
 * one host would make every operation look quick. Collective. */
static int places_are_right(int rank)
{
    char own[MPI_MAX_PROCESSOR_NAME] = "", *all = calloc((size_t)place_ranks, sizeof own);
    int length, right = 1, everywhere = 0;
    if (!all)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Get_processor_name(own, &length);
    MPI_Allgather(own, sizeof own, MPI_CHAR, all, sizeof own, MPI_CHAR, MPI_COMM_WORLD);
    for (int i = 0; i < place_ranks; i++)
        right = right && !strcmp(own, all + (size_t)i * sizeof own) == (place_machine[i] == place_machine[rank]);
    free(all);
    MPI_Allreduce(&right, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return everywhere;
}

#endif
