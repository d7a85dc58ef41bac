/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of a Fortran program, called by MPI in C: everything by reference, handles as INTEGERs, the error code as the last argument. */
#include "callbacks.h"
#include <stdlib.h>
#include <sys/mman.h>

/* Of Isthmus only: this function is Fortran's. */
__attribute__((weak)) extern void isthmus_fortran_function(const void *function);

procedure *isthmus_fortran_direct(procedure *function)
{
    if (isthmus_fortran_function)
        isthmus_fortran_function((const void *)(uintptr_t)function);
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    else
        return NULL;
#endif
    return function;
}

/* Cells are slots of one reserved range, so that an address tells whether it is one. */
#define CELLS ((size_t)1 << 22)
struct cell {
    union {
        MPI_Aint value;
        int old;
        struct cell *next;
    } as;
    int is_old;
};
static struct cell *cells, *free_cells;
static size_t used_cells;
static int lock;

static void take(void)
{
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
        ;
}
static void give(void) { __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); }

static int is_cell(const void *address)
{
    uintptr_t start = (uintptr_t)__atomic_load_n(&cells, __ATOMIC_ACQUIRE), place = (uintptr_t)address;
    return start && place >= start && place < start + CELLS * sizeof(struct cell);
}

void *isthmus_fortran_cell(MPI_Aint value, int old)
{
    struct cell *cell = NULL;
    take();
    if (!cells) {
        void *range = mmap(NULL, CELLS * sizeof(struct cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range != MAP_FAILED)
            __atomic_store_n(&cells, range, __ATOMIC_RELEASE);
    }
    if (free_cells) {
        cell = free_cells;
        free_cells = cell->as.next;
    } else if (cells && used_cells < CELLS) {
        cell = &cells[used_cells++];
    }
    give();
    if (!cell)
        return NULL;
    cell->is_old = old;
    if (old)
        cell->as.old = (int)value;
    else
        cell->as.value = value;
    return cell;
}

void isthmus_fortran_free_cell(void *address)
{
    struct cell *cell = address;
    if (!is_cell(address))
        return;
    take();
    cell->as.next = free_cells;
    free_cells = cell;
    give();
}

MPI_Aint isthmus_fortran_value(int keyval, void *attribute)
{
    const struct cell *cell = attribute;
    if (is_cell(attribute))
        return cell->is_old ? cell->as.old : cell->as.value;
    switch (keyval) {
    case MPI_TAG_UB: case MPI_IO: case MPI_HOST: case MPI_WTIME_IS_GLOBAL: case MPI_APPNUM: case MPI_LASTUSEDCODE: case MPI_UNIVERSE_SIZE:
    case MPI_WIN_DISP_UNIT: case MPI_WIN_CREATE_FLAVOR: case MPI_WIN_MODEL:
        return *(const int *)attribute;
    case MPI_WIN_SIZE:
        return *(const MPI_Aint *)attribute;
    default:
        return (MPI_Aint)attribute;
    }
}

/* Nobody is told when a key and the last attribute under it are gone, so equal ones share what stays: a program that
 * makes the same key again and again takes no more memory. */
#define KEY_LISTS 64
static struct keyval *keyvals[KEY_LISTS];

struct keyval *isthmus_fortran_keyval(procedure *copy, procedure *remove, MPI_Aint extra, int old)
{
    struct keyval **list = &keyvals[((uintptr_t)copy / 16 + (uintptr_t)remove / 16 + (uintptr_t)extra) % KEY_LISTS], *key;
    take();
    for (key = *list; key; key = key->next)
        if (key->copy == copy && key->remove == remove && key->extra == extra && key->old == old)
            break;
    if (!key) {
        key = isthmus_fortran_memory(sizeof *key);
        key->copy = copy;
        key->remove = remove;
        key->extra = extra;
        key->old = old;
        key->next = *list;
        *list = key;
    }
    give();
    return key;
}

typedef void copy_aint(int *, int *, MPI_Aint *, MPI_Aint *, MPI_Aint *, int *, int *);
typedef void copy_int(int *, int *, int *, int *, int *, int *, int *);
typedef void delete_aint(int *, int *, MPI_Aint *, MPI_Aint *, int *);
typedef void delete_int(int *, int *, int *, int *, int *);

static int copy(int handle, int key, struct keyval *functions, void *in, void **out, int *flag)
{
    MPI_Aint value = isthmus_fortran_value(MPI_KEYVAL_INVALID, in), made = 0, state = functions->extra;
    int logical = 0, code = MPI_SUCCESS;
    if (functions->old) {
        int value_old = (int)value, made_old = 0, extra = (int)functions->extra;
        ((copy_int *)functions->copy)(&handle, &key, &extra, &value_old, &made_old, &logical, &code);
        made = made_old;
        if (!is_cell(in) && made_old == value_old)
            made = value;
    } else {
        ((copy_aint *)functions->copy)(&handle, &key, &state, &value, &made, &logical, &code);
    }
    *flag = LOGICAL(logical);
    if (code != MPI_SUCCESS || !*flag)
        return code;
    /* What C has set and is handed on as it is stays set by C. */
    *out = !is_cell(in) && made == value ? in : isthmus_fortran_cell(made, functions->old);
    return *out || !is_cell(in) ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static int remove_value(int handle, int key, struct keyval *functions, void *attribute)
{
    MPI_Aint value = isthmus_fortran_value(MPI_KEYVAL_INVALID, attribute), state = functions->extra;
    int code = MPI_SUCCESS;
    if (functions->old) {
        int value_old = (int)value, extra = (int)functions->extra;
        ((delete_int *)functions->remove)(&handle, &key, &value_old, &extra, &code);
    } else {
        ((delete_aint *)functions->remove)(&handle, &key, &value, &state, &code);
    }
    if (code == MPI_SUCCESS)
        isthmus_fortran_free_cell(attribute);
    return code;
}

#define OBJECT(name, type, prefix)                                                                                          \
    int isthmus_fortran_copy_##name(type handle, int key, void *extra, void *in, void *out, int *flag)                     \
    {                                                                                                                       \
        return copy(OUT(prefix, handle), key, extra, in, out, flag);                                                       \
    }                                                                                                                       \
    int isthmus_fortran_delete_##name(type handle, int key, void *value, void *extra)                                      \
    {                                                                                                                       \
        return remove_value(OUT(prefix, handle), key, extra, value);                                                       \
    }
OBJECT(comm, MPI_Comm, Comm)
OBJECT(type, MPI_Datatype, Type)
OBJECT(win, MPI_Win, Win)

int isthmus_fortran_grequest_query(void *state, MPI_Status *status)
{
    struct grequest *request = state;
    int code = MPI_SUCCESS;
    ((void (*)(MPI_Aint *, MPI_Status *, int *))request->query)(&request->extra, status, &code);
    return code;
}

int isthmus_fortran_grequest_free(void *state)
{
    struct grequest *request = state;
    int code = MPI_SUCCESS;
    ((void (*)(MPI_Aint *, int *))request->release)(&request->extra, &code);
    free(request);
    return code;
}

int isthmus_fortran_grequest_cancel(void *state, int complete)
{
    struct grequest *request = state;
    int code = MPI_SUCCESS, logical = LOGICAL(complete);
    ((void (*)(MPI_Aint *, int *, int *))request->cancel)(&request->extra, &logical, &code);
    return code;
}

/* The conversion functions with int counts and with large ones. */
#define CONVERSION(name, field, count_type)                                                                                 \
    int isthmus_fortran_datarep_##name(void *user, MPI_Datatype type, count_type count, void *file, MPI_Offset position, void *state) \
    {                                                                                                                       \
        struct datarep *datarep = state;                                                                                    \
        int number = OUT(Type, type), code = MPI_SUCCESS;                                                                   \
        ((void (*)(void *, int *, count_type *, void *, MPI_Offset *, MPI_Aint *, int *))datarep->field)(                  \
            user, &number, &count, file, &position, &datarep->extra, &code);                                                \
        return code;                                                                                                        \
    }
CONVERSION(read, read, int)
CONVERSION(write, write, int)
CONVERSION(read_c, read, MPI_Count)
CONVERSION(write_c, write, MPI_Count)

int isthmus_fortran_datarep_extent(MPI_Datatype type, MPI_Aint *extent, void *state)
{
    struct datarep *datarep = state;
    int number = OUT(Type, type), code = MPI_SUCCESS;
    ((void (*)(int *, MPI_Aint *, MPI_Aint *, int *))datarep->extent)(&number, extent, &datarep->extra, &code);
    return code;
}

/* The functions that MPI provides are ordinary ones here: they do in Fortran what their names say. */
#define VARIANT(lower, name, upper, ...)                                                                                    \
    FOUR(void, lower, "mpi_" name, "MPI_" upper, __VA_ARGS__);                                                             \
    extern void isthmus_provided_##lower(__VA_ARGS__) __asm__("pmpi_" name "_") __attribute__((visibility("default"), alias("mpi_" name "_")));   \
    void SYMBOL(lower)(__VA_ARGS__)
#define NO_COPY(lower, name, upper, value)                                                                                  \
    VARIANT(lower, name, upper, int *handle, int *key, value *extra, value *in, value *out, int *flag, int *ierror)        \
    {                                                                                                                       \
        (void)handle, (void)key, (void)extra, (void)in, (void)out;                                                          \
        *flag = LOGICAL(0);                                                                                                 \
        *ierror = MPI_SUCCESS;                                                                                              \
    }
#define COPY(lower, name, upper, value)                                                                                     \
    VARIANT(lower, name, upper, int *handle, int *key, value *extra, value *in, value *out, int *flag, int *ierror)        \
    {                                                                                                                       \
        (void)handle, (void)key, (void)extra;                                                                               \
        *out = *in;                                                                                                         \
        *flag = LOGICAL(1);                                                                                                 \
        *ierror = MPI_SUCCESS;                                                                                              \
    }
#define NO_DELETE(lower, name, upper, value)                                                                                \
    VARIANT(lower, name, upper, int *handle, int *key, value *attribute, value *extra, int *ierror)                        \
    {                                                                                                                       \
        (void)handle, (void)key, (void)attribute, (void)extra;                                                              \
        *ierror = MPI_SUCCESS;                                                                                              \
    }
NO_COPY(comm_null_copy_fn, "comm_null_copy_fn", "COMM_NULL_COPY_FN", MPI_Aint)
COPY(comm_dup_fn, "comm_dup_fn", "COMM_DUP_FN", MPI_Aint)
NO_DELETE(comm_null_delete_fn, "comm_null_delete_fn", "COMM_NULL_DELETE_FN", MPI_Aint)
NO_COPY(type_null_copy_fn, "type_null_copy_fn", "TYPE_NULL_COPY_FN", MPI_Aint)
COPY(type_dup_fn, "type_dup_fn", "TYPE_DUP_FN", MPI_Aint)
NO_DELETE(type_null_delete_fn, "type_null_delete_fn", "TYPE_NULL_DELETE_FN", MPI_Aint)
NO_COPY(win_null_copy_fn, "win_null_copy_fn", "WIN_NULL_COPY_FN", MPI_Aint)
COPY(win_dup_fn, "win_dup_fn", "WIN_DUP_FN", MPI_Aint)
NO_DELETE(win_null_delete_fn, "win_null_delete_fn", "WIN_NULL_DELETE_FN", MPI_Aint)
NO_COPY(null_copy_fn, "null_copy_fn", "NULL_COPY_FN", int)
COPY(dup_fn, "dup_fn", "DUP_FN", int)
NO_DELETE(null_delete_fn, "null_delete_fn", "NULL_DELETE_FN", int)

/* No conversion: known by its address, never called. */
VARIANT(conversion_fn_null, "conversion_fn_null", "CONVERSION_FN_NULL", void *user, int *type, int *count, void *file, MPI_Offset *position,
        MPI_Aint *extra, int *ierror)
{
    (void)user, (void)type, (void)count, (void)file, (void)position, (void)extra;
    *ierror = MPI_SUCCESS;
}
VARIANT(conversion_fn_null_c, "conversion_fn_null_c", "CONVERSION_FN_NULL_C", void *user, int *type, MPI_Count *count, void *file,
        MPI_Offset *position, MPI_Aint *extra, int *ierror)
{
    (void)user, (void)type, (void)count, (void)file, (void)position, (void)extra;
    *ierror = MPI_SUCCESS;
}

int isthmus_fortran_no_conversion(procedure *function)
{
    return function == (procedure *)SYMBOL(conversion_fn_null) || function == (procedure *)SYMBOL(conversion_fn_null_c);
}
