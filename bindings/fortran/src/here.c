/* SPDX-License-Identifier: Apache-2.0 */
/* Linked by mpifort into every program and shared library: tells the Fortran library of COMMON blocks that are not its own.
 *
 * The dynamic linker makes the COMMON blocks of mpif.h one for a program and what it is linked with, but not for shared libraries that are loaded
 * later with RTLD_LOCAL, as Python loads extensions: the second one has blocks of its own, and its MPI_IN_PLACE would be a buffer.
 */
#include "sentinels.h"

extern int isthmus_mpi_bottom_, isthmus_mpi_in_place_, isthmus_mpi_buffer_automatic_;
extern int isthmus_mpi_status_ignore_[8], isthmus_mpi_statuses_ignore_[8];
extern int isthmus_mpi_errcodes_ignore_[1], isthmus_mpi_unweighted_[1], isthmus_mpi_weights_empty_[1];
extern char isthmus_mpi_argv_null_[1], isthmus_mpi_argvs_null_[1];
/* The Fortran library of another MPI has none. */
extern void isthmus_mpi_sentinels(struct sentinels *set, int come) __attribute__((weak));

/* What makes the linker take this object. */
__attribute__((visibility("hidden"))) int isthmus_mpi_here;
static struct sentinels here = {OWN_SENTINELS, 0};

__attribute__((constructor)) static void come(void)
{
    if (isthmus_mpi_sentinels)
        isthmus_mpi_sentinels(&here, 1);
}

__attribute__((destructor)) static void go(void)
{
    if (isthmus_mpi_sentinels)
        isthmus_mpi_sentinels(&here, 0);
}
