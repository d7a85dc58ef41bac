/* SPDX-License-Identifier: Apache-2.0 */
/* A program in C with procedures in Fortran (mixed_part.f90): handles, attributes, operators and error handlers cross the languages. */
#include <mpi.h>
#include <mpi_f2c.h>
#include <stdio.h>

void fortran_part_(MPI_Fint *comm, MPI_Fint *key, MPI_Fint *op, MPI_Fint *made, MPI_Fint *good);
void fortran_attributes_(MPI_Fint *comm, MPI_Fint *from_c, MPI_Fint *made, MPI_Fint *good);

static void check(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "wrong: %s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void smaller(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)type;
    for (int n = 0; n < *len; n++)
        if (((int *)in)[n] < ((int *)inout)[n])
            ((int *)inout)[n] = ((int *)in)[n];
}

int main(int argc, char **argv)
{
    int rank, size, value = 5, flag, *pointer;
    MPI_Fint comm, key_f, op_f, made, good = 0;
    MPI_Aint *cell;
    MPI_Op op, of_fortran;
    MPI_Comm dup;
    MPI_Status status;
    MPI_Fint status_f[MPI_F_STATUS_SIZE];
    int key;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    comm = MPI_Comm_c2f(dup);
    check(MPI_Comm_f2c(comm) == dup, "handles there and back");
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(dup, key, &value);
    key_f = key;
    MPI_Op_create(smaller, 1, &op);
    op_f = MPI_Op_c2f(op);

    /* Fortran uses the operator of C, and makes one that C uses. */
    fortran_part_(&comm, &key_f, &op_f, &made, &good);
    check(good == 1, "Fortran is content");
    of_fortran = MPI_Op_f2c(made);
    value = rank;
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, of_fortran, dup);
    check(value == size * (size - 1) / 2, "an operator in Fortran");
    MPI_Op_free(&of_fortran);
    MPI_Op_free(&op);

    /* An attribute of C is an address in Fortran; one of Fortran is a pointer to the value in C. */
    value = 77;
    fortran_attributes_(&comm, &key_f, &made, &good);
    check(good == 2, "Fortran reads the attribute of C");
    MPI_Comm_get_attr(dup, made, &cell, &flag);
    check(flag && *cell == -3, "C reads the attribute of Fortran");
    MPI_Comm_get_attr(dup, key, &pointer, &flag);
    check(flag && *pointer == 77, "C reads its own");

    MPI_Sendrecv(&rank, 1, MPI_INT, rank, 9, &value, 1, MPI_INT, rank, 9, dup, &status);
    MPI_Status_c2f(&status, status_f);
    check(status_f[MPI_F_TAG] == 9 && status_f[MPI_F_SOURCE] == rank, "a status in Fortran");
    MPI_Comm_free(&dup);
    MPI_Finalize();
    return 0;
}
