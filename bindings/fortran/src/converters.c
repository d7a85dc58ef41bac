/* SPDX-License-Identifier: Apache-2.0 */
/* Fortran's handles and statuses in C (mpi_f2c.h), and the comparison of handles in the modules. */
#pragma GCC visibility push(default)
#include "mpi_f2c.h"
#include "fortran.h"

#define WEAK(name) __attribute__((weak, visibility("default"), alias("P" #name)))
#define CONVERT(type, prefix)                                                                                               \
    MPI_Fint PMPI_##prefix##_c2f(type handle) { return PMPI_##prefix##_toint(handle); }                                     \
    type PMPI_##prefix##_f2c(MPI_Fint handle) { return PMPI_##prefix##_fromint(handle); }                                   \
    WEAK(MPI_##prefix##_c2f) MPI_Fint MPI_##prefix##_c2f(type);                                                             \
    WEAK(MPI_##prefix##_f2c) type MPI_##prefix##_f2c(MPI_Fint);
CONVERT(MPI_Comm, Comm)
CONVERT(MPI_Datatype, Type)
CONVERT(MPI_Errhandler, Errhandler)
CONVERT(MPI_File, File)
CONVERT(MPI_Group, Group)
CONVERT(MPI_Info, Info)
CONVERT(MPI_Message, Message)
CONVERT(MPI_Op, Op)
CONVERT(MPI_Request, Request)
CONVERT(MPI_Session, Session)
CONVERT(MPI_Win, Win)

/* All statuses are the same eight integers. */
#define COPY(name, from_type, to_type)                                                                                      \
    int PMPI_Status_##name(const from_type *from, to_type *to)                                                              \
    {                                                                                                                       \
        if (!from || !to)                                                                                                   \
            return MPI_ERR_ARG;                                                                                             \
        __builtin_memcpy(to, from, sizeof(MPI_Status));                                                                     \
        return MPI_SUCCESS;                                                                                                 \
    }                                                                                                                       \
    WEAK(MPI_Status_##name) int MPI_Status_##name(const from_type *, to_type *);
COPY(c2f, MPI_Status, MPI_Fint)
COPY(f2c, MPI_Fint, MPI_Status)
COPY(c2f08, MPI_Status, MPI_F08_status)
COPY(f082c, MPI_F08_status, MPI_Status)
COPY(f082f, MPI_F08_status, MPI_Fint)
COPY(f2f08, MPI_Fint, MPI_F08_status)

MPI_Fint *MPI_F_STATUS_IGNORE = isthmus_mpi_status_ignore_, *MPI_F_STATUSES_IGNORE = isthmus_mpi_statuses_ignore_;
MPI_F08_status *MPI_F08_STATUS_IGNORE = &isthmus_mpi_f08_status_ignore;
MPI_F08_status *MPI_F08_STATUSES_IGNORE = isthmus_mpi_f08_statuses_ignore;
extern MPI_Fint *PMPI_F_STATUS_IGNORE __attribute__((visibility("default"), alias("MPI_F_STATUS_IGNORE")));
extern MPI_Fint *PMPI_F_STATUSES_IGNORE __attribute__((visibility("default"), alias("MPI_F_STATUSES_IGNORE")));
extern MPI_F08_status *PMPI_F08_STATUS_IGNORE __attribute__((visibility("default"), alias("MPI_F08_STATUS_IGNORE")));
extern MPI_F08_status *PMPI_F08_STATUSES_IGNORE __attribute__((visibility("default"), alias("MPI_F08_STATUSES_IGNORE")));

/* Operators of handles: functions with LOGICAL results. */
#define COMPARE(lower, upper)                                                                                               \
    FOUR(int, equal_##lower, "isthmus_equal_" #lower, "ISTHMUS_EQUAL_" #upper, const int *a, const int *b);                \
    int SYMBOL(equal_##lower)(const int *a, const int *b) { return LOGICAL(*a == *b); }                                     \
    FOUR(int, differ_##lower, "isthmus_differ_" #lower, "ISTHMUS_DIFFER_" #upper, const int *a, const int *b);             \
    int SYMBOL(differ_##lower)(const int *a, const int *b) { return LOGICAL(*a != *b); }
COMPARE(comm, COMM)
COMPARE(datatype, DATATYPE)
COMPARE(errhandler, ERRHANDLER)
COMPARE(file, FILE)
COMPARE(group, GROUP)
COMPARE(info, INFO)
COMPARE(message, MESSAGE)
COMPARE(op, OP)
COMPARE(request, REQUEST)
COMPARE(session, SESSION)
COMPARE(win, WIN)
