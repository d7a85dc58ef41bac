/* SPDX-License-Identifier: Apache-2.0 */
/* Names of MPI-1 that MPI-3.0 removed (MPI 3.0 chapter 16), for programs that are compiled with -DISTHMUS_MPI1.
 * mpi.h includes this file. Nothing here is part of the ABI: every name is another one's, or an inline function. */
#ifndef ISTHMUS_MPI1_H
#define ISTHMUS_MPI1_H

#include <stdlib.h>

typedef MPI_Comm_errhandler_function MPI_Handler_function;

#define MPI_Errhandler_create MPI_Comm_create_errhandler
#define MPI_Errhandler_get MPI_Comm_get_errhandler
#define MPI_Errhandler_set MPI_Comm_set_errhandler
#define MPI_Address MPI_Get_address
#define MPI_Type_hvector MPI_Type_create_hvector
#define MPI_Type_hindexed MPI_Type_create_hindexed
#define MPI_Type_struct isthmus_Type_struct
#define MPI_Type_extent isthmus_Type_extent
#define MPI_Type_lb isthmus_Type_lb
#define MPI_Type_ub isthmus_Type_ub

/* Markers: in the list of types of MPI_Type_struct only. */
static const char isthmus_marker_lb = 0, isthmus_marker_ub = 0;
#define MPI_LB ((MPI_Datatype)(const void *)&isthmus_marker_lb)
#define MPI_UB ((MPI_Datatype)(const void *)&isthmus_marker_ub)

static inline int isthmus_Type_extent(MPI_Datatype datatype, MPI_Aint *extent)
{
    MPI_Aint lower = 0;
    return MPI_Type_get_extent(datatype, &lower, extent);
}

static inline int isthmus_Type_lb(MPI_Datatype datatype, MPI_Aint *lower)
{
    MPI_Aint extent = 0;
    return MPI_Type_get_extent(datatype, lower, &extent);
}

static inline int isthmus_Type_ub(MPI_Datatype datatype, MPI_Aint *upper)
{
    MPI_Aint lower = 0, extent = 0;
    int error = MPI_Type_get_extent(datatype, &lower, &extent);
    *upper = lower + extent;
    return error;
}

/* The type without its markers, resized as they say: the lowest MPI_LB, the highest MPI_UB. */
static inline int isthmus_Type_marked(int count, const int *lengths, const MPI_Aint *places, const MPI_Datatype *types,
                                      int marked[2], MPI_Aint bounds[2], MPI_Datatype *made)
{
    size_t room = count > 0 ? (size_t)count : 1;
    int *l = (int *)malloc(room * sizeof *l);
    MPI_Aint *p = (MPI_Aint *)malloc(room * sizeof *p);
    MPI_Datatype *t = (MPI_Datatype *)malloc(room * sizeof *t);
    int kept = 0, i, error = MPI_ERR_NO_MEM;
    if (l && p && t) {
        for (i = 0; i < count; i++) {
            if (types[i] == MPI_LB || types[i] == MPI_UB) {
                int upper = types[i] == MPI_UB;
                if (!marked[upper] || (upper ? places[i] > bounds[1] : places[i] < bounds[0]))
                    bounds[upper] = places[i];
                marked[upper] = 1;
                continue;
            }
            l[kept] = lengths[i];
            p[kept] = places[i];
            t[kept++] = types[i];
        }
        error = MPI_Type_create_struct(kept, l, p, t, made);
    }
    free(l);
    free(p);
    free(t);
    return error;
}

static inline int isthmus_Type_struct(int count, const int *lengths, const MPI_Aint *places, const MPI_Datatype *types,
                                      MPI_Datatype *made)
{
    int marked[2] = {0, 0};
    MPI_Aint bounds[2] = {0, 0}, lower = 0, extent = 0;
    MPI_Datatype plain = MPI_DATATYPE_NULL;
    int error = isthmus_Type_marked(count, lengths, places, types, marked, bounds, &plain);
    if (error != MPI_SUCCESS || (!marked[0] && !marked[1])) {
        *made = plain;
        return error;
    }
    error = MPI_Type_get_extent(plain, &lower, &extent);
    if (error == MPI_SUCCESS) {
        if (!marked[0])
            bounds[0] = lower;
        if (!marked[1])
            bounds[1] = lower + extent;
        error = MPI_Type_create_resized(plain, bounds[0], bounds[1] - bounds[0], made);
    }
    MPI_Type_free(&plain);
    return error;
}

#endif
