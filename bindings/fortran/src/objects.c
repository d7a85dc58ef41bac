/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes, and procedures that take functions of the program. */
#include "callbacks.h"
#include <stdlib.h>

#define KEYS(lower, upper, name, prefix, type)                                                                              \
    ENTRY(lower##_create_keyval, upper##_CREATE_KEYVAL, procedure *copy, procedure *remove, int *keyval, const MPI_Aint *extra, int *ierror) \
    {                                                                                                                       \
        int code = MPI(name##_create_keyval)(isthmus_fortran_copy_##lower, isthmus_fortran_delete_##lower, keyval,          \
                                             isthmus_fortran_keyval(copy, remove, *extra, 0));                              \
        GIVE(ierror, code);                                                                                                 \
    }                                                                                                                       \
    ENTRY(lower##_set_attr, upper##_SET_ATTR, const int *object, const int *keyval, const MPI_Aint *value, int *ierror)    \
    {                                                                                                                       \
        void *cell = isthmus_fortran_cell(*value, 0);                                                                       \
        int code = cell ? MPI(name##_set_attr)(IN(prefix, *object), *keyval, cell) : no_cells();                            \
        if (code != MPI_SUCCESS)                                                                                            \
            isthmus_fortran_free_cell(cell);                                                                                \
        GIVE(ierror, code);                                                                                                 \
    }                                                                                                                       \
    ENTRY(lower##_get_attr, upper##_GET_ATTR, const int *object, const int *keyval, MPI_Aint *value, int *flag, int *ierror) \
    {                                                                                                                       \
        void *attribute = NULL;                                                                                             \
        int found = 0, code = MPI(name##_get_attr)(IN(prefix, *object), *keyval, &attribute, &found);                       \
        if (code == MPI_SUCCESS && found)                                                                                   \
            *value = isthmus_fortran_value(*keyval, attribute);                                                             \
        *flag = LOGICAL(found);                                                                                             \
        GIVE(ierror, code);                                                                                                 \
    }

static int no_cells(void)
{
    PMPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_NO_MEM);
    return MPI_ERR_NO_MEM;
}

KEYS(comm, COMM, Comm, Comm, MPI_Comm)
KEYS(type, TYPE, Type, Type, MPI_Datatype)
KEYS(win, WIN, Win, Win, MPI_Win)

ENTRY(keyval_create, KEYVAL_CREATE, procedure *copy, procedure *remove, int *keyval, const int *extra, int *ierror)
{
    int code = MPI(Comm_create_keyval)(isthmus_fortran_copy_comm, isthmus_fortran_delete_comm, keyval,
                                       isthmus_fortran_keyval(copy, remove, *extra, 1));
    GIVE(ierror, code);
}

ENTRY(attr_put, ATTR_PUT, const int *comm, const int *keyval, const int *value, int *ierror)
{
    void *cell = isthmus_fortran_cell(*value, 1);
    int code = cell ? MPI(Comm_set_attr)(IN(Comm, *comm), *keyval, cell) : no_cells();
    if (code != MPI_SUCCESS)
        isthmus_fortran_free_cell(cell);
    GIVE(ierror, code);
}

ENTRY(attr_get, ATTR_GET, const int *comm, const int *keyval, int *value, int *flag, int *ierror)
{
    void *attribute = NULL;
    int found = 0, code = MPI(Comm_get_attr)(IN(Comm, *comm), *keyval, &attribute, &found);
    if (code == MPI_SUCCESS && found)
        *value = (int)isthmus_fortran_value(*keyval, attribute);
    *flag = LOGICAL(found);
    GIVE(ierror, code);
}

#define ERRHANDLER(lower, upper, name)                                                                                      \
    ENTRY(lower##_create_errhandler, upper##_CREATE_ERRHANDLER, procedure *function, int *errhandler, int *ierror)         \
    {                                                                                                                       \
        MPI_Errhandler made = MPI_ERRHANDLER_NULL;                                                                          \
        int code = MPI(name##_create_errhandler)(DIRECT(MPI_##name##_errhandler_function, function), &made);                \
        *errhandler = OUT(Errhandler, made);                                                                                \
        GIVE(ierror, code);                                                                                                 \
    }
ERRHANDLER(comm, COMM, Comm)
ERRHANDLER(file, FILE, File)
ERRHANDLER(win, WIN, Win)
ERRHANDLER(session, SESSION, Session)

ENTRY_LARGE(errhandler_create, ERRHANDLER_CREATE, procedure *function, int *errhandler, int *ierror)
{
    MPI_Errhandler made = MPI_ERRHANDLER_NULL;
    int code = MPI(Comm_create_errhandler)(DIRECT(MPI_Comm_errhandler_function, function), &made);
    *errhandler = OUT(Errhandler, made);
    GIVE(ierror, code);
}

ENTRY(op_create, OP_CREATE, procedure *function, const int *commute, int *op, int *ierror)
{
    MPI_Op made = MPI_OP_NULL;
    int code = MPI(Op_create)(DIRECT(MPI_User_function, function), *commute != 0, &made);
    *op = OUT(Op, made);
    GIVE(ierror, code);
}

ENTRY_LARGE(op_create_f08_c, OP_CREATE_F08_C, procedure *function, const int *commute, int *op, int *ierror)
{
    MPI_Op made = MPI_OP_NULL;
    int code = MPI(Op_create_c)(DIRECT(MPI_User_function_c, function), *commute != 0, &made);
    *op = OUT(Op, made);
    GIVE(ierror, code);
}

ENTRY(grequest_start, GREQUEST_START, procedure *query, procedure *release, procedure *cancel, const MPI_Aint *extra, int *request, int *ierror)
{
    struct grequest *state = isthmus_fortran_memory(sizeof *state);
    MPI_Request made = MPI_REQUEST_NULL;
    int code;
    state->query = query;
    state->release = release;
    state->cancel = cancel;
    state->extra = *extra;
    code = MPI(Grequest_start)(isthmus_fortran_grequest_query, isthmus_fortran_grequest_free, isthmus_fortran_grequest_cancel, state, &made);
    *request = OUT(Request, made);
    if (code != MPI_SUCCESS)
        free(state);
    GIVE(ierror, code);
}

#define DATAREP(head, name, suffix, null)                                                                                   \
    head(const char *datarep, procedure *read, procedure *write, procedure *extent, const MPI_Aint *extra, int *ierror, size_t datarep_length) \
    {                                                                                                                       \
        struct datarep *state = isthmus_fortran_memory(sizeof *state);                                                      \
        struct text name_c;                                                                                                 \
        int code;                                                                                                           \
        state->read = read;                                                                                                 \
        state->write = write;                                                                                               \
        state->extent = extent;                                                                                             \
        state->extra = *extra;                                                                                              \
        text_in(&name_c, datarep, datarep_length, 0);                                                                       \
        code = MPI(name)(name_c.text, isthmus_fortran_no_conversion(read) ? null : isthmus_fortran_datarep_read##suffix,    \
                         isthmus_fortran_no_conversion(write) ? null : isthmus_fortran_datarep_write##suffix,               \
                         isthmus_fortran_datarep_extent, state);                                                            \
        text_done(&name_c);                                                                                                 \
        if (code != MPI_SUCCESS)                                                                                            \
            free(state);                                                                                                    \
        GIVE(ierror, code);                                                                                                 \
    }
#define SMALL_HEAD(...) ENTRY(register_datarep, REGISTER_DATAREP, __VA_ARGS__)
#define LARGE_HEAD(...) ENTRY_LARGE(register_datarep_f08_c, REGISTER_DATAREP_F08_C, __VA_ARGS__)
DATAREP(SMALL_HEAD, Register_datarep, , MPI_CONVERSION_FN_NULL)
DATAREP(LARGE_HEAD, Register_datarep_c, _c, MPI_CONVERSION_FN_NULL_C)
