/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses by which a program or a shared library says MPI_BOTTOM and the like: its COMMON blocks. */
#ifndef ISTHMUS_SENTINELS_H
#define ISTHMUS_SENTINELS_H

#define SENTINELS 10
#define OWN_SENTINELS                                                                                                       \
    {                                                                                                                       \
        &isthmus_mpi_bottom_, &isthmus_mpi_in_place_, &isthmus_mpi_buffer_automatic_, isthmus_mpi_status_ignore_,          \
            isthmus_mpi_statuses_ignore_, isthmus_mpi_errcodes_ignore_, isthmus_mpi_unweighted_, isthmus_mpi_weights_empty_, \
            isthmus_mpi_argv_null_, isthmus_mpi_argvs_null_                                                                 \
    }
struct sentinels {
    const void *all[SENTINELS];
    struct sentinels *next;
};

#endif
