/* SPDX-License-Identifier: Apache-2.0 */
/* Procedures whose arguments need more than a conversion one by one. */
#include "fortran.h"

/* Initialization: Fortran has no argc and argv. */
ENTRY(init, INIT, int *ierror)
{
    int code = MPI(Init)(NULL, NULL);
    GIVE(ierror, code);
}

ENTRY(init_thread, INIT_THREAD, const int *required, int *provided, int *ierror)
{
    int code = MPI(Init_thread)(NULL, NULL, *required, provided);
    GIVE(ierror, code);
}

/* In Fortran it has one argument and no ierror. */
ENTRY(pcontrol, PCONTROL, const int *level) { MPI(Pcontrol)(*level); }

/* It does nothing: that the compiler does not know is what it is for. */
ENTRY(f_sync_reg, F_SYNC_REG, void *buf) { (void)buf; }
ENTRY_TS(f_sync_reg_f08ts, const struct descriptor *buf) { (void)buf; }
ENTRY_NATIVE(f_sync_reg_f08ts, const struct native *buf) { (void)buf; }

/* Functions (in mpif.h declared as such). */
FUNCTION(double, wtime, WTIME, void) { return MPI(Wtime)(); }
FUNCTION(double, wtick, WTICK, void) { return MPI(Wtick)(); }
FUNCTION(MPI_Aint, aint_add, AINT_ADD, const MPI_Aint *base, const MPI_Aint *disp) { return MPI(Aint_add)(*base, *disp); }
FUNCTION(MPI_Aint, aint_diff, AINT_DIFF, const MPI_Aint *addr1, const MPI_Aint *addr2) { return MPI(Aint_diff)(*addr1, *addr2); }

/* A status is the same eight integers in mpif.h and mpi_f08. */
ENTRY(status_f082f, STATUS_F082F, const MPI_Status *from, MPI_Status *to, int *ierror)
{
    *to = *from;
    GIVE(ierror, MPI_SUCCESS);
}

ENTRY(status_f2f08, STATUS_F2F08, const MPI_Status *from, MPI_Status *to, int *ierror)
{
    *to = *from;
    GIVE(ierror, MPI_SUCCESS);
}

/* Addresses of buffers that are handed back: mpif.h has no place for them, mpi_f08 has. */
#define BUFFER_AUTOMATIC_OUT(address)                                                                                       \
    if (code == MPI_SUCCESS && *(address) == MPI_BUFFER_AUTOMATIC)                                                         \
    *(address) = &isthmus_mpi_buffer_automatic_
ENTRY_LARGE(buffer_detach, BUFFER_DETACH, void *address, int *size, int *ierror)
{
    void *buffer;
    int code = MPI(Buffer_detach)(&buffer, size);
    (void)address;
    GIVE(ierror, code);
}
ENTRY_LARGE(buffer_detach_f08, BUFFER_DETACH_F08, void **address, int *size, int *ierror)
{
    int code = MPI(Buffer_detach)(address, size);
    BUFFER_AUTOMATIC_OUT(address);
    GIVE(ierror, code);
}
ENTRY_LARGE(buffer_detach_f08_c, BUFFER_DETACH_F08_C, void **address, MPI_Count *size, int *ierror)
{
    int code = MPI(Buffer_detach_c)(address, size);
    BUFFER_AUTOMATIC_OUT(address);
    GIVE(ierror, code);
}
#define DETACH(lower, upper, name, prefix)                                                                                  \
    ENTRY_LARGE(lower, upper, const int *object, void *address, int *size, int *ierror)                                    \
    {                                                                                                                       \
        void *buffer;                                                                                                       \
        int code = MPI(name)(IN(prefix, *object), &buffer, size);                                                           \
        (void)address;                                                                                                      \
        GIVE(ierror, code);                                                                                                 \
    }                                                                                                                       \
    ENTRY_LARGE(lower##_f08, upper##_F08, const int *object, void **address, int *size, int *ierror)                       \
    {                                                                                                                       \
        int code = MPI(name)(IN(prefix, *object), address, size);                                                           \
        BUFFER_AUTOMATIC_OUT(address);                                                                                      \
        GIVE(ierror, code);                                                                                                 \
    }                                                                                                                       \
    ENTRY_LARGE(lower##_f08_c, upper##_F08_C, const int *object, void **address, MPI_Count *size, int *ierror)             \
    {                                                                                                                       \
        int code = MPI(name##_c)(IN(prefix, *object), address, size);                                                       \
        BUFFER_AUTOMATIC_OUT(address);                                                                                      \
        GIVE(ierror, code);                                                                                                 \
    }
DETACH(comm_detach_buffer, COMM_DETACH_BUFFER, Comm_detach_buffer, Comm)
DETACH(session_detach_buffer, SESSION_DETACH_BUFFER, Session_detach_buffer, Session)

/* Texts whose length the program says: without the end that C counts. */
ENTRY(info_get, INFO_GET, const int *info, const char *key, const int *valuelen, char *value, int *flag, int *ierror, size_t key_length,
      size_t value_length)
{
    struct text key_c;
    int found = 0, code, length = *valuelen < 0 ? *valuelen : (size_t)*valuelen > value_length ? (int)value_length : *valuelen;
    char *value_c = isthmus_fortran_memory((size_t)(length < 0 ? 0 : length) + 1);
    text_in(&key_c, key, key_length, 1);
    code = MPI(Info_get)(IN(Info, *info), key_c.text, length, value_c, &found);
    if (code == MPI_SUCCESS && found)
        text_out(value, value_length, value_c);
    *flag = LOGICAL(found);
    text_done(&key_c);
    isthmus_fortran_release(value_c);
    GIVE(ierror, code);
}

ENTRY(info_get_string, INFO_GET_STRING, const int *info, const char *key, int *buflen, char *value, int *flag, int *ierror,
      size_t key_length, size_t value_length)
{
    struct text key_c;
    int found = 0, code, room = *buflen > 0 ? ((size_t)*buflen > value_length ? (int)value_length : *buflen) + 1 : *buflen;
    char *value_c = isthmus_fortran_memory((size_t)(room < 0 ? 0 : room) + 1);
    text_in(&key_c, key, key_length, 1);
    code = MPI(Info_get_string)(IN(Info, *info), key_c.text, &room, value_c, &found);
    if (code == MPI_SUCCESS && found) {
        if (*buflen > 0)
            text_out(value, value_length, value_c);
        *buflen = room - 1;
    }
    *flag = LOGICAL(found);
    text_done(&key_c);
    isthmus_fortran_release(value_c);
    GIVE(ierror, code);
}

ENTRY(session_get_nth_pset, SESSION_GET_NTH_PSET, const int *session, const int *info, const int *n, int *pset_len, char *pset_name, int *ierror,
      size_t name_length)
{
    int room = *pset_len > 0 ? ((size_t)*pset_len > name_length ? (int)name_length : *pset_len) + 1 : *pset_len;
    int code, wanted = *pset_len;
    char *name_c = isthmus_fortran_memory((size_t)(room < 0 ? 0 : room) + 1);
    code = MPI(Session_get_nth_pset)(IN(Session, *session), IN(Info, *info), *n, &room, name_c);
    if (code == MPI_SUCCESS) {
        if (wanted > 0)
            text_out(pset_name, name_length, name_c);
        *pset_len = room - 1;
    }
    isthmus_fortran_release(name_c);
    GIVE(ierror, code);
}

/* Truth values in the program's own representation. */
ENTRY(abi_get_fortran_booleans, ABI_GET_FORTRAN_BOOLEANS, const int *logical_size, void *logical_true, void *logical_false, int *is_set, int *ierror)
{
    int set = 0, code = MPI(Abi_get_fortran_booleans)(*logical_size, logical_true, logical_false, &set);
    *is_set = LOGICAL(set);
    GIVE(ierror, code);
}

ENTRY(abi_set_fortran_booleans, ABI_SET_FORTRAN_BOOLEANS, const int *logical_size, void *logical_true, void *logical_false, int *ierror)
{
    int code = MPI(Abi_set_fortran_booleans)(*logical_size, logical_true, logical_false);
    GIVE(ierror, code);
}

/* The name of a data representation is a text. */
ENTRY(pack_external, PACK_EXTERNAL, const char *datarep, const void *inbuf, const int *incount, const int *datatype, void *outbuf,
      const MPI_Aint *outsize, MPI_Aint *position, int *ierror, size_t datarep_length)
{
    struct text name;
    int code;
    text_in(&name, datarep, datarep_length, 0);
    code = MPI(Pack_external)(name.text, choice(inbuf), *incount, IN(Type, *datatype), choice(outbuf), *outsize, position);
    text_done(&name);
    GIVE(ierror, code);
}

ENTRY_LARGE(pack_external_f08_c, PACK_EXTERNAL_F08_C, const char *datarep, const void *inbuf, const MPI_Count *incount, const int *datatype,
            void *outbuf, const MPI_Count *outsize, MPI_Count *position, int *ierror, size_t datarep_length)
{
    struct text name;
    int code;
    text_in(&name, datarep, datarep_length, 0);
    code = MPI(Pack_external_c)(name.text, choice(inbuf), *incount, IN(Type, *datatype), choice(outbuf), *outsize, position);
    text_done(&name);
    GIVE(ierror, code);
}

ENTRY(unpack_external, UNPACK_EXTERNAL, const char *datarep, const void *inbuf, const MPI_Aint *insize, MPI_Aint *position, void *outbuf,
      const int *outcount, const int *datatype, int *ierror, size_t datarep_length)
{
    struct text name;
    int code;
    text_in(&name, datarep, datarep_length, 0);
    code = MPI(Unpack_external)(name.text, choice(inbuf), *insize, position, choice(outbuf), *outcount, IN(Type, *datatype));
    text_done(&name);
    GIVE(ierror, code);
}

ENTRY_LARGE(unpack_external_f08_c, UNPACK_EXTERNAL_F08_C, const char *datarep, const void *inbuf, const MPI_Count *insize, MPI_Count *position,
            void *outbuf, const MPI_Count *outcount, const int *datatype, int *ierror, size_t datarep_length)
{
    struct text name;
    int code;
    text_in(&name, datarep, datarep_length, 0);
    code = MPI(Unpack_external_c)(name.text, choice(inbuf), *insize, position, choice(outbuf), *outcount, IN(Type, *datatype));
    text_done(&name);
    GIVE(ierror, code);
}

/* The same with descriptors; sections are packed and unpacked through datatypes. */
#define PACK_TS(lower, name, integer, place)                                                                                  \
    ENTRY_TS(lower, const struct descriptor *datarep, const struct descriptor *inbuf, const integer *incount, const int *datatype,        \
             const struct descriptor *outbuf, const place *outsize, place *position, int *ierror)                          \
    {                                                                                                                       \
        struct text external;                                                                                               \
        int code = MPI_SUCCESS;                                                                                             \
        struct typed from = typed(inbuf, *incount, IN(Type, *datatype), (struct use){COPIED, 0, NULL, "MPI_Pack_external", "inbuf"}, &code);                                \
        void *to = copy_in(outbuf, 1, &code);                                                                           \
        text_in(&external, datarep->address, datarep->length, 0);                                                           \
        if (code == MPI_SUCCESS)                                                                                            \
            code = MPI(name)(external.text, from.address, (integer)from.count, from.type, to, *outsize, position);                \
        text_done(&external);                                                                                               \
        typed_done(&from, inbuf, 0);                                                                                       \
        copy_out(outbuf, to, 1);                                                                                            \
        GIVE(ierror, code);                                                                                                 \
    }                                                                                                                       \
    ENTRY_NATIVE(lower, const char *datarep, const struct native *inbuf, const integer *incount, const int *datatype, const struct native *outbuf, \
                 const place *outsize, place *position, int *ierror, size_t datarep_length)                                \
    {                                                                                                                       \
        struct descriptor name_d = {(char *)datarep, datarep_length, 0, 0, {0}, {{0}}}, inbuf_d, outbuf_d;                  \
        SYMBOL(lower)(&name_d, described(inbuf, &inbuf_d), incount, datatype, described(outbuf, &outbuf_d), outsize, position, ierror); \
    }
PACK_TS(pack_external_f08ts, Pack_external, int, MPI_Aint)
PACK_TS(pack_external_f08ts_c, Pack_external_c, MPI_Count, MPI_Count)
#define UNPACK_TS(lower, name, integer, place)                                                                                \
    ENTRY_TS(lower, const struct descriptor *datarep, const struct descriptor *inbuf, const place *insize, place *position,             \
             const struct descriptor *outbuf, const integer *outcount, const int *datatype, int *ierror)                     \
    {                                                                                                                       \
        struct text external;                                                                                               \
        int code = MPI_SUCCESS;                                                                                             \
        struct typed to = typed(outbuf, *outcount, IN(Type, *datatype), (struct use){COPIED, 1, NULL, "MPI_Unpack_external", "outbuf"}, &code);                                \
        void *from = copy_in(inbuf, 0, &code);                                                                          \
        text_in(&external, datarep->address, datarep->length, 0);                                                           \
        if (code == MPI_SUCCESS)                                                                                            \
            code = MPI(name)(external.text, from, *insize, position, to.address, (integer)to.count, to.type);                     \
        text_done(&external);                                                                                               \
        typed_done(&to, outbuf, 1);                                                                                        \
        copy_out(inbuf, from, 0);                                                                                           \
        GIVE(ierror, code);                                                                                                 \
    }                                                                                                                       \
    ENTRY_NATIVE(lower, const char *datarep, const struct native *inbuf, const place *insize, place *position, const struct native *outbuf, \
                 const integer *outcount, const int *datatype, int *ierror, size_t datarep_length)                         \
    {                                                                                                                       \
        struct descriptor name_d = {(char *)datarep, datarep_length, 0, 0, {0}, {{0}}}, inbuf_d, outbuf_d;                  \
        SYMBOL(lower)(&name_d, described(inbuf, &inbuf_d), insize, position, described(outbuf, &outbuf_d), outcount, datatype, ierror); \
    }
UNPACK_TS(unpack_external_f08ts, Unpack_external, int, MPI_Aint)
UNPACK_TS(unpack_external_f08ts_c, Unpack_external_c, MPI_Count, MPI_Count)

/* Arguments of spawned processes: blank-filled strings, the list ended by a blank one. */
static char **strings(const char *list, size_t length, int count, size_t step)
{
    int n = 0;
    char **all;
    if (count < 0)
        for (n = 0; ; n++) {
            const char *word = list + (size_t)n * step * length;
            size_t k = 0;
            while (k < length && word[k] == ' ')
                k++;
            if (k == length)
                break;
        }
    else
        n = count;
    all = isthmus_fortran_memory(((size_t)n + 1) * sizeof *all);
    for (int k = 0; k < n; k++) {
        const char *word = list + (size_t)k * step * length;
        size_t end = length;
        while (end && word[end - 1] == ' ')
            end--;
        all[k] = isthmus_fortran_memory(end + 1);
        for (size_t c = 0; c < end; c++)
            all[k][c] = word[c];
        all[k][end] = '\0';
    }
    all[n] = NULL;
    return all;
}

static void free_strings(char **all)
{
    for (char **one = all; all && *one; one++)
        isthmus_fortran_release(*one);
    isthmus_fortran_release(all);
}

static int is_root(int comm, int root)
{
    int rank = -1;
    return PMPI_Comm_rank(PMPI_Comm_fromint(comm), &rank) == MPI_SUCCESS && rank == root;
}

ENTRY(comm_spawn, COMM_SPAWN, const char *command, const char *argv, const int *maxprocs, const int *info, const int *root, const int *comm,
      int *intercomm, int *errcodes, int *ierror, size_t command_length, size_t argv_length)
{
    int code, here = is_root(*comm, *root);
    struct text command_c;
    char **argv_c = here && ours(argv) != isthmus_mpi_argv_null_ ? strings(argv, argv_length, -1, 1) : NULL;
    MPI_Comm made = MPI_COMM_NULL;
    text_in(&command_c, command, here ? command_length : 0, 0);
    code = MPI(Comm_spawn)(command_c.text, argv_c ? argv_c : MPI_ARGV_NULL, *maxprocs, IN(Info, *info), *root, IN(Comm, *comm), &made,
                           error_codes(errcodes));
    *intercomm = OUT(Comm, made);
    free_strings(argv_c);
    text_done(&command_c);
    GIVE(ierror, code);
}

ENTRY(comm_spawn_multiple, COMM_SPAWN_MULTIPLE, const int *count, const char *commands, const char *argv, const int *maxprocs, const int *info,
      const int *root, const int *comm, int *intercomm, int *errcodes, int *ierror, size_t command_length, size_t argv_length)
{
    int code, here = is_root(*comm, *root), number = here && *count > 0 ? *count : 0;
    char **commands_c = here ? strings(commands, command_length, number, 1) : NULL;
    char ***argv_c = here && ours(argv) != isthmus_mpi_argvs_null_ ? isthmus_fortran_memory((size_t)(number + 1) * sizeof *argv_c) : NULL;
    MPI_Comm made = MPI_COMM_NULL;
    HANDLES(MPI_Info, info_c, number);
    EACH(info_c)
    {
        info_c.all[n] = IN(Info, info[n]);
        if (argv_c)
            argv_c[n] = strings(argv + (size_t)n * argv_length, argv_length, -1, (size_t)number);
    }
    code = MPI(Comm_spawn_multiple)(here ? *count : 0, commands_c, argv_c ? argv_c : MPI_ARGVS_NULL, maxprocs, info_c.all, *root,
                                    IN(Comm, *comm), &made, error_codes(errcodes));
    *intercomm = OUT(Comm, made);
    for (int n = 0; argv_c && n < number; n++)
        free_strings(argv_c[n]);
    isthmus_fortran_release(argv_c);
    free_strings(commands_c);
    DONE(info_c);
    GIVE(ierror, code);
}

/* Procedures that MPI-3.0 removed and old programs call: their addresses are INTEGERs. MPI_LB and MPI_UB are no more. */
ENTRY_LARGE(address, ADDRESS, const void *location, int *address, int *ierror)
{
    MPI_Aint value = 0;
    int code = MPI(Get_address)(choice(location), &value);
    *address = (int)value;
    if (code == MPI_SUCCESS && value != (MPI_Aint)(int)value)
        code = PMPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_VALUE_TOO_LARGE) == MPI_SUCCESS ? MPI_ERR_VALUE_TOO_LARGE : MPI_ERR_ARG;
    GIVE(ierror, code);
}

ENTRY_LARGE(type_extent, TYPE_EXTENT, const int *datatype, int *extent, int *ierror)
{
    MPI_Aint lower, value = 0;
    int code = MPI(Type_get_extent)(IN(Type, *datatype), &lower, &value);
    *extent = (int)value;
    GIVE(ierror, code);
}

ENTRY_LARGE(type_lb, TYPE_LB, const int *datatype, int *displacement, int *ierror)
{
    MPI_Aint lower = 0, extent;
    int code = MPI(Type_get_extent)(IN(Type, *datatype), &lower, &extent);
    *displacement = (int)lower;
    GIVE(ierror, code);
}

ENTRY_LARGE(type_ub, TYPE_UB, const int *datatype, int *displacement, int *ierror)
{
    MPI_Aint lower = 0, extent = 0;
    int code = MPI(Type_get_extent)(IN(Type, *datatype), &lower, &extent);
    *displacement = (int)(lower + extent);
    GIVE(ierror, code);
}

ENTRY_LARGE(type_hvector, TYPE_HVECTOR, const int *count, const int *blocklength, const int *stride, const int *oldtype, int *newtype, int *ierror)
{
    MPI_Datatype made = MPI_DATATYPE_NULL;
    int code = MPI(Type_create_hvector)(*count, *blocklength, *stride, IN(Type, *oldtype), &made);
    *newtype = OUT(Type, made);
    GIVE(ierror, code);
}

ENTRY_LARGE(type_hindexed, TYPE_HINDEXED, const int *count, const int *lengths, const int *places, const int *oldtype, int *newtype, int *ierror)
{
    MPI_Datatype made = MPI_DATATYPE_NULL;
    int code;
    HANDLES(MPI_Aint, places_c, *count);
    EACH(places_c) places_c.all[n] = places[n];
    code = MPI(Type_create_hindexed)(*count, lengths, places_c.all, IN(Type, *oldtype), &made);
    *newtype = OUT(Type, made);
    DONE(places_c);
    GIVE(ierror, code);
}

ENTRY_LARGE(type_struct, TYPE_STRUCT, const int *count, const int *lengths, const int *places, const int *types, int *newtype, int *ierror)
{
    MPI_Datatype made = MPI_DATATYPE_NULL;
    int code;
    HANDLES(MPI_Aint, places_c, *count);
    HANDLES(MPI_Datatype, types_c, *count);
    EACH(places_c)
    {
        places_c.all[n] = places[n];
        types_c.all[n] = IN(Type, types[n]);
    }
    code = MPI(Type_create_struct)(*count, lengths, places_c.all, types_c.all, &made);
    *newtype = OUT(Type, made);
    DONE(places_c);
    DONE(types_c);
    GIVE(ierror, code);
}

ENTRY_LARGE(errhandler_get, ERRHANDLER_GET, const int *comm, int *errhandler, int *ierror)
{
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    int code = MPI(Comm_get_errhandler)(IN(Comm, *comm), &handler);
    *errhandler = OUT(Errhandler, handler);
    GIVE(ierror, code);
}

ENTRY_LARGE(errhandler_set, ERRHANDLER_SET, const int *comm, const int *errhandler, int *ierror)
{
    int code = MPI(Comm_set_errhandler)(IN(Comm, *comm), IN(Errhandler, *errhandler));
    GIVE(ierror, code);
}

/* MPI_SIZEOF (deprecated): by the descriptor, or by the type of the argument. */
ENTRY_TS(sizeof_f08ts, const struct descriptor *x, int *size, int *ierror)
{
    *size = (int)x->length;
    GIVE(ierror, MPI_SUCCESS);
}
ENTRY_NATIVE(sizeof_f08ts, const struct native *x, int *size, int *ierror)
{
    struct descriptor x_d;
    /* The descriptor of a part of a text (type 6) has the length of the whole; a character is its element, as for other compilers. */
    *size = x->type == 6 ? 1 : (int)described(x, &x_d)->length;
    GIVE(ierror, MPI_SUCCESS);
}
#define SIZEOF(lower, upper, bytes)                                                                                         \
    ENTRY_LARGE(lower, upper, const void *x, int *size, int *ierror)                                                       \
    {                                                                                                                       \
        (void)x;                                                                                                            \
        *size = bytes;                                                                                                      \
        GIVE(ierror, MPI_SUCCESS);                                                                                          \
    }
SIZEOF(sizeof_i1, SIZEOF_I1, 1)
SIZEOF(sizeof_i2, SIZEOF_I2, 2)
SIZEOF(sizeof_i4, SIZEOF_I4, 4)
SIZEOF(sizeof_i8, SIZEOF_I8, 8)
SIZEOF(sizeof_r4, SIZEOF_R4, 4)
SIZEOF(sizeof_r8, SIZEOF_R8, 8)
SIZEOF(sizeof_c4, SIZEOF_C4, 8)
SIZEOF(sizeof_c8, SIZEOF_C8, 16)
SIZEOF(sizeof_l1, SIZEOF_L1, 1)
SIZEOF(sizeof_l2, SIZEOF_L2, 2)
SIZEOF(sizeof_l4, SIZEOF_L4, 4)
SIZEOF(sizeof_l8, SIZEOF_L8, 8)
SIZEOF(sizeof_ch, SIZEOF_CH, 1)

/* The environment of the program's start: Fortran has no argc and argv. */
ENTRY(info_create_env, INFO_CREATE_ENV, int *info, int *ierror)
{
    MPI_Info made = MPI_INFO_NULL;
    int code = MPI(Info_create_env)(0, NULL, &made);
    *info = OUT(Info, made);
    GIVE(ierror, code);
}
