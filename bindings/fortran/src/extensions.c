/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of mpi-ext.h for Fortran: the same as those of MPI, but for their prefix. */
#include "fortran.h"

#include <mpi-ext.h>

#undef MPI
#undef PREFIX_LOWER
#undef PREFIX_UPPER
#if defined(ISTHMUS_PROFILED)
#define MPI(name) PMPIX_##name
#define PREFIX_LOWER "pmpix_"
#define PREFIX_UPPER "PMPIX_"
#else
#define MPI(name) MPIX_##name
#define PREFIX_LOWER "mpix_"
#define PREFIX_UPPER "MPIX_"
#endif

ENTRY(comm_agree, COMM_AGREE, const int *comm, int *flag, int *ierror)
{
    int code = MPI_SUCCESS;
    code = MPI(Comm_agree)(IN(Comm, *comm), flag);
    GIVE(ierror, code);
}

ENTRY(comm_iagree, COMM_IAGREE, const int *comm, int *flag, int *request, int *ierror)
{
    int code = MPI_SUCCESS;
    MPI_Request request_c = MPI_REQUEST_NULL;
    code = MPI(Comm_iagree)(IN(Comm, *comm), flag, &request_c);
    *request = OUT(Request, request_c);
    GIVE(ierror, code);
}

ENTRY(comm_revoke, COMM_REVOKE, const int *comm, int *ierror)
{
    int code = MPI_SUCCESS;
    code = MPI(Comm_revoke)(IN(Comm, *comm));
    GIVE(ierror, code);
}

ENTRY(comm_is_revoked, COMM_IS_REVOKED, const int *comm, int *flag, int *ierror)
{
    int code = MPI_SUCCESS;
    int flag_c = 0;
    code = MPI(Comm_is_revoked)(IN(Comm, *comm), &flag_c);
    *flag = LOGICAL(flag_c);
    GIVE(ierror, code);
}

ENTRY(comm_shrink, COMM_SHRINK, const int *comm, int *newcomm, int *ierror)
{
    int code = MPI_SUCCESS;
    MPI_Comm newcomm_c = MPI_COMM_NULL;
    code = MPI(Comm_shrink)(IN(Comm, *comm), &newcomm_c);
    *newcomm = OUT(Comm, newcomm_c);
    GIVE(ierror, code);
}

ENTRY(comm_ishrink, COMM_ISHRINK, const int *comm, int *newcomm, int *request, int *ierror)
{
    int code = MPI_SUCCESS;
    MPI_Comm newcomm_c = MPI_COMM_NULL;
    MPI_Request request_c = MPI_REQUEST_NULL;
    code = MPI(Comm_ishrink)(IN(Comm, *comm), &newcomm_c, &request_c);
    *newcomm = OUT(Comm, newcomm_c);
    *request = OUT(Request, request_c);
    GIVE(ierror, code);
}

ENTRY(comm_get_failed, COMM_GET_FAILED, const int *comm, int *failedgrp, int *ierror)
{
    int code = MPI_SUCCESS;
    MPI_Group failedgrp_c = MPI_GROUP_NULL;
    code = MPI(Comm_get_failed)(IN(Comm, *comm), &failedgrp_c);
    *failedgrp = OUT(Group, failedgrp_c);
    GIVE(ierror, code);
}

ENTRY(comm_ack_failed, COMM_ACK_FAILED, const int *comm, const int *num_to_ack, int *num_acked, int *ierror)
{
    int code = MPI_SUCCESS;
    code = MPI(Comm_ack_failed)(IN(Comm, *comm), *num_to_ack, num_acked);
    GIVE(ierror, code);
}

ENTRY(comm_failure_ack, COMM_FAILURE_ACK, const int *comm, int *ierror)
{
    int code = MPI_SUCCESS;
    code = MPI(Comm_failure_ack)(IN(Comm, *comm));
    GIVE(ierror, code);
}

ENTRY(comm_failure_get_acked, COMM_FAILURE_GET_ACKED, const int *comm, int *failedgrp, int *ierror)
{
    int code = MPI_SUCCESS;
    MPI_Group failedgrp_c = MPI_GROUP_NULL;
    code = MPI(Comm_failure_get_acked)(IN(Comm, *comm), &failedgrp_c);
    *failedgrp = OUT(Group, failedgrp_c);
    GIVE(ierror, code);
}
