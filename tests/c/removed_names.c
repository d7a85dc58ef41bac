/* SPDX-License-Identifier: Apache-2.0 */
/* Names of MPI-1 that were removed, as programs get them with -DISTHMUS_MPI1. */
/* ranks: 1 2 */
#define ISTHMUS_MPI1
#include "check.h"

static int called;

static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    called++;
}

struct item {
    int number;
    double value;
};

static void types(void)
{
    struct item items[2] = {{1, 0.5}, {2, 1.5}}, got[2];
    int lengths[4] = {1, 1, 1, 1};
    MPI_Aint places[4] = {0, 0, 0, 0}, extent, lower, upper;
    MPI_Datatype parts[4] = {MPI_LB, MPI_INT, MPI_DOUBLE, MPI_UB}, type;
    MPI_Address(&items[0].number, &places[1]);
    MPI_Address(&items[0].value, &places[2]);
    MPI_Address(&items[1], &places[3]);
    for (int i = 3; i > 0; i--)
        places[i] -= places[1];
    places[0] = -8;
    CHECK(MPI_Type_struct(4, lengths, places, parts, &type) == MPI_SUCCESS);
    MPI_Type_commit(&type);
    MPI_Type_extent(type, &extent);
    MPI_Type_lb(type, &lower);
    MPI_Type_ub(type, &upper);
    CHECK(lower == -8 && upper == (MPI_Aint)sizeof(struct item) && extent == upper + 8);
    MPI_Type_free(&type);
    CHECK(MPI_Type_struct(3, lengths + 1, places + 1, parts + 1, &type) == MPI_SUCCESS);
    MPI_Type_commit(&type);
    MPI_Sendrecv(items, 2, type, 0, 0, got, 2, type, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    CHECK(got[1].number == 2 && got[0].value == 0.5 && got[1].value == 1.5);
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    MPI_Errhandler errhandler, known;
    MPI_Init(&argc, &argv);
    MPI_Errhandler_create(handler, &errhandler);
    MPI_Errhandler_set(MPI_COMM_SELF, errhandler);
    MPI_Errhandler_get(MPI_COMM_SELF, &known);
    MPI_Errhandler_set(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Errhandler_set(MPI_COMM_SELF, known);
    MPI_Send(&argc, -1, MPI_INT, 0, 0, MPI_COMM_SELF);
    CHECK(called == 1);
    MPI_Errhandler_set(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&known);
    MPI_Errhandler_free(&errhandler);
    types();
    MPI_Finalize();
    return 0;
}
