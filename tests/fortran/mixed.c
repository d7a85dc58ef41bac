/* SPDX-License-Identifier: Apache-2.0 */
/* A program in C with procedures in Fortran (mixed_part.f90): handles, attributes, operators and error handlers cross the languages. */
#include <malloc.h>
#include <mpi.h>
#include <mpi_f2c.h>
#include <stdio.h>

void fortran_part_(MPI_Fint *comm, MPI_Fint *key, MPI_Fint *op, MPI_Fint *made, MPI_Fint *good);
void fortran_handler_(MPI_Fint *comm, MPI_Fint *made);
void fortran_heard_(MPI_Fint *comm, MPI_Fint *code);
void fortran_fails_(MPI_Fint *comm, MPI_Fint *code);
void fortran_keys_(MPI_Fint *times);
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

static MPI_Comm heard_of = MPI_COMM_NULL;
static int heard = MPI_SUCCESS;
static void hears(MPI_Comm *comm, int *code, ...)
{
    heard_of = *comm;
    heard = *code;
}

/* A library in C that a Fortran program calls (mixed_main.f90): it has handles of Fortran, and gives its own. */
void c_library(MPI_Fint *comm, MPI_Fint *made, MPI_Fint *type, MPI_Fint *good)
{
    MPI_Comm theirs = MPI_Comm_f2c(*comm), mine;
    MPI_Datatype pair;
    int rank, size, sum;
    MPI_Comm_rank(theirs, &rank);
    MPI_Comm_size(theirs, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, theirs);
    MPI_Comm_split(theirs, 0, -rank, &mine);
    MPI_Type_contiguous(2, MPI_INTEGER, &pair);
    MPI_Type_commit(&pair);
    *made = MPI_Comm_c2f(mine);
    *type = MPI_Type_c2f(pair);
    *good = sum == size * (size - 1) / 2;
}

/* What is compiled with MIXED_LIBRARY is the library alone. */
#if !defined(MIXED_LIBRARY)
int main(int argc, char **argv)
{
    int rank, size, value = 5, flag, *pointer;
    MPI_Fint comm, key_f, op_f, made, good = 0;
    MPI_Aint *cell;
    MPI_Op op, of_fortran;
    MPI_Comm dup;
    MPI_Errhandler handler;
    MPI_Status status;
    MPI_Fint status_f[MPI_F_STATUS_SIZE];
    int key;
    size_t before;

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

    /* Fortran makes keys and frees them: nothing of them stays. */
    made = 10;
    fortran_keys_(&made);
    before = mallinfo2().uordblks;
    made = 1000;
    fortran_keys_(&made);
    check(mallinfo2().uordblks < before + 8 * 1000, "memory of keys");

    MPI_Sendrecv(&rank, 1, MPI_INT, rank, 9, &value, 1, MPI_INT, rank, 9, dup, &status);
    MPI_Status_c2f(&status, status_f);
    check(status_f[MPI_F_TAG] == 9 && status_f[MPI_F_SOURCE] == rank, "a status in Fortran");

    /* A handler in Fortran hears of errors of C, and one in C of those of Fortran. */
    fortran_handler_(&comm, &made);
    handler = MPI_Errhandler_f2c(made);
    MPI_Comm_set_errhandler(dup, handler);
    MPI_Errhandler_free(&handler);
    check(MPI_Send(&rank, 1, MPI_INT, size, 0, dup) != MPI_SUCCESS, "an error in C");
    fortran_heard_(&made, &good);
    MPI_Error_class(good, &value);
    check(made == comm && value == MPI_ERR_RANK, "Fortran hears of an error in C");
    MPI_Comm_create_errhandler(hears, &handler);
    MPI_Comm_set_errhandler(dup, handler);
    MPI_Errhandler_free(&handler);
    fortran_fails_(&comm, &good);
    MPI_Error_class(heard, &value);
    check(heard_of == dup && heard == good && value == MPI_ERR_TAG, "C hears of an error in Fortran");
    MPI_Comm_free(&dup);
    MPI_Finalize();
    return 0;
}
#endif
