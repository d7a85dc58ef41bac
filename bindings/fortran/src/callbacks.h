/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that a Fortran program gives to MPI, and attributes as Fortran sees them. */
#ifndef ISTHMUS_FORTRAN_CALLBACKS_H
#define ISTHMUS_FORTRAN_CALLBACKS_H

#include "fortran.h"

/* A procedure of the program: what it takes depends on what it is for. */
typedef void procedure(void);

/* The functions of a key, and of all keys with the same; lives as long as the process, because attributes may outlive their key. */
struct keyval {
    procedure *copy, *remove;
    MPI_Aint extra;
    int old; /* made by MPI_KEYVAL_CREATE: values and extra state are INTEGERs */
    struct keyval *next;
};
HIDDEN struct keyval *isthmus_fortran_keyval(procedure *copy, procedure *remove, MPI_Aint extra, int old);
HIDDEN int isthmus_fortran_copy_comm(MPI_Comm, int, void *, void *, void *, int *);
HIDDEN int isthmus_fortran_delete_comm(MPI_Comm, int, void *, void *);
HIDDEN int isthmus_fortran_copy_type(MPI_Datatype, int, void *, void *, void *, int *);
HIDDEN int isthmus_fortran_delete_type(MPI_Datatype, int, void *, void *);
HIDDEN int isthmus_fortran_copy_win(MPI_Win, int, void *, void *, void *, int *);
HIDDEN int isthmus_fortran_delete_win(MPI_Win, int, void *, void *);

/* A value that Fortran sets is kept in a cell, so that C gets a pointer to it (MPI 5.0 section 19.3.7). NULL: no memory. */
HIDDEN void *isthmus_fortran_cell(MPI_Aint value, int old);
HIDDEN void isthmus_fortran_free_cell(void *cell);
/* What Fortran gets: the content of a cell, the address that C has set, or the value of a key of MPI's own. */
HIDDEN MPI_Aint isthmus_fortran_value(int keyval, void *attribute);

/* A generalized request: lives until the free function was called. */
struct grequest {
    procedure *query, *release, *cancel;
    MPI_Aint extra;
};
HIDDEN int isthmus_fortran_grequest_query(void *, MPI_Status *);
HIDDEN int isthmus_fortran_grequest_free(void *);
HIDDEN int isthmus_fortran_grequest_cancel(void *, int);

/* A data representation: lives as long as the process, as in MPI. */
struct datarep {
    procedure *read, *write, *extent;
    MPI_Aint extra;
};
HIDDEN int isthmus_fortran_datarep_read(void *, MPI_Datatype, int, void *, MPI_Offset, void *);
HIDDEN int isthmus_fortran_datarep_write(void *, MPI_Datatype, int, void *, MPI_Offset, void *);
HIDDEN int isthmus_fortran_datarep_read_c(void *, MPI_Datatype, MPI_Count, void *, MPI_Offset, void *);
HIDDEN int isthmus_fortran_datarep_write_c(void *, MPI_Datatype, MPI_Count, void *, MPI_Offset, void *);
HIDDEN int isthmus_fortran_datarep_extent(MPI_Datatype, MPI_Aint *, void *);
HIDDEN int isthmus_fortran_no_conversion(procedure *);

/* Error handlers and operators get addresses of handles. Fortran reads an INTEGER there, which a little-endian machine has in the same place as C; on
 * others the C library must know whose functions they are. NULL: this MPI library cannot. */
HIDDEN procedure *isthmus_fortran_direct(procedure *function);
#define DIRECT(type, function) ((type *)isthmus_fortran_direct(function))

#endif
