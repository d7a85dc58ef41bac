/* SPDX-License-Identifier: Apache-2.0 */
/* Fortran's statuses and handles in C with mpi.h alone; with the Fortran library (mpi_f2c.h) if STATUSES_F2C is defined. */
#if defined(STATUSES_F2C)
#include <mpi_f2c.h>
#else
#include <mpi.h>
#endif
#include <stdio.h>
#include <string.h>

#define CHECK(right)                                                                                                        \
    do {                                                                                                                    \
        if (!(right)) {                                                                                                     \
            printf("wrong at line %d: %s\n", __LINE__, #right);                                                             \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                                   \
        }                                                                                                                   \
    } while (0)

int main(int argc, char **argv)
{
    MPI_Status status, again;
    MPI_F08_status modern, other;
    MPI_Fint old[MPI_F_STATUS_SIZE], back[MPI_F_STATUS_SIZE], *ignored = MPI_F_STATUS_IGNORE;
    MPI_F08_status *unused = MPI_F08_STATUS_IGNORE;
    int rank, count, sent[3] = {1, 2, 3}, got[5];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Sendrecv(sent, 3, MPI_INT, rank, 9, got, 5, MPI_INT, rank, 9, MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_WORLD)), &status);
    CHECK(MPI_Status_c2f(&status, old) == MPI_SUCCESS);
    CHECK(old[MPI_F_SOURCE] == rank && old[MPI_F_TAG] == 9);
    memset(&again, 0xff, sizeof again);
    CHECK(MPI_Status_f2c(old, &again) == MPI_SUCCESS && again.MPI_SOURCE == rank && again.MPI_TAG == 9);
    CHECK(MPI_Get_count(&again, MPI_INT, &count) == MPI_SUCCESS && count == 3);
    CHECK(MPI_Status_c2f08(&status, &modern) == MPI_SUCCESS && modern.MPI_TAG == 9);
    CHECK(MPI_Status_f082f(&modern, back) == MPI_SUCCESS && memcmp(old, back, sizeof back) == 0);
    CHECK(MPI_Status_f2f08(back, &other) == MPI_SUCCESS && other.MPI_SOURCE == rank);
    memset(&again, 0xff, sizeof again);
    CHECK(PMPI_Status_f082c(&other, &again) == MPI_SUCCESS);
    CHECK(MPI_Get_count(&again, MPI_INT, &count) == MPI_SUCCESS && count == 3);
    CHECK(old != ignored && old != MPI_F_STATUSES_IGNORE && &modern != unused && &modern != MPI_F08_STATUSES_IGNORE);
#if defined(STATUSES_F2C)
    CHECK(ignored != NULL && unused != NULL && ignored != MPI_F_STATUSES_IGNORE);
#endif
    MPI_Finalize();
    return 0;
}
