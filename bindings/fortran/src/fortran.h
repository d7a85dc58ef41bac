/* SPDX-License-Identifier: Apache-2.0 */
/* What the C functions behind the Fortran interfaces share: names, arguments, and their conversions.
 *
 * Every source is compiled twice: as MPI_X, which calls the C function MPI_X, so that a profiling library in C sees each call of a
 * Fortran program once; and with ISTHMUS_PROFILED as PMPI_X, which calls PMPI_X (MPI 5.0 section 15.2). Internal calls are PMPI always.
 */
#ifndef ISTHMUS_FORTRAN_H
#define ISTHMUS_FORTRAN_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#define HIDDEN __attribute__((visibility("hidden")))
#define LIKELY(x) __builtin_expect(!!(x), 1)

#if defined(ISTHMUS_PROFILED)
#define MPI(name) PMPI_##name
#define PREFIX_LOWER "pmpi_"
#define PREFIX_UPPER "PMPI_"
#define SYMBOL(lower) isthmus_pmpi_##lower
#else
#define MPI(name) MPI_##name
#define PREFIX_LOWER "mpi_"
#define PREFIX_UPPER "MPI_"
#define SYMBOL(lower) isthmus_mpi_##lower
#endif

/* A function under the compilers' usual ways to write a Fortran name. */
#define FOUR(type, lower, base_lower, base_upper, ...)                                                                      \
    __attribute__((visibility("default"))) type SYMBOL(lower)(__VA_ARGS__) __asm__(base_lower "_");                        \
    extern type SYMBOL(lower##_2)(__VA_ARGS__) __asm__(base_lower "__") __attribute__((visibility("default"), alias(base_lower "_")));            \
    extern type SYMBOL(lower##_0)(__VA_ARGS__) __asm__(base_lower) __attribute__((visibility("default"), alias(base_lower "_")));                 \
    extern type SYMBOL(lower##_u)(__VA_ARGS__) __asm__(base_upper) __attribute__((visibility("default"), alias(base_lower "_")))
/* A procedure of mpif.h and `use mpi` that mpi_f08 shares: `mpi_x_` and `mpi_x_f08_` in four spellings each. */
#define ENTRY(lower, upper, ...)                                                                                            \
    FOUR(void, lower, PREFIX_LOWER #lower, PREFIX_UPPER #upper, __VA_ARGS__);                                              \
    extern void SYMBOL(lower##_f)(__VA_ARGS__) __asm__(PREFIX_LOWER #lower "_f08_") __attribute__((visibility("default"), alias(PREFIX_LOWER #lower "_")));   \
    extern void SYMBOL(lower##_f2)(__VA_ARGS__) __asm__(PREFIX_LOWER #lower "_f08__") __attribute__((visibility("default"), alias(PREFIX_LOWER #lower "_"))); \
    extern void SYMBOL(lower##_f0)(__VA_ARGS__) __asm__(PREFIX_LOWER #lower "_f08") __attribute__((visibility("default"), alias(PREFIX_LOWER #lower "_")));   \
    extern void SYMBOL(lower##_fu)(__VA_ARGS__) __asm__(PREFIX_UPPER #upper "_F08") __attribute__((visibility("default"), alias(PREFIX_LOWER #lower "_")));   \
    void SYMBOL(lower)(__VA_ARGS__)
/* A procedure of one interface only. */
#define ENTRY_LARGE(lower, upper, ...)                                                                                      \
    FOUR(void, lower, PREFIX_LOWER #lower, PREFIX_UPPER #upper, __VA_ARGS__);                                              \
    void SYMBOL(lower)(__VA_ARGS__)
#define FUNCTION(type, lower, upper, ...)                                                                                   \
    FOUR(type, lower, PREFIX_LOWER #lower, PREFIX_UPPER #upper, __VA_ARGS__);                                              \
    type SYMBOL(lower)(__VA_ARGS__)
/* A procedure with descriptors: its interface has BIND(C). */
#define ENTRY_TS(lower, ...)                                                                                                \
    __attribute__((visibility("default"))) void SYMBOL(lower)(__VA_ARGS__) __asm__(PREFIX_LOWER #lower);                   \
    void SYMBOL(lower)(__VA_ARGS__)

/* The same for gfortran, whose own descriptors come: its interface has no BIND(C). */
#define ENTRY_NATIVE(lower, ...)                                                                                            \
    __attribute__((visibility("default"))) void SYMBOL(lower##_n)(__VA_ARGS__) __asm__(PREFIX_LOWER #lower "_");           \
    void SYMBOL(lower##_n)(__VA_ARGS__)

/* ierror is OPTIONAL in mpi_f08: absent is a null pointer. */
#define GIVE(ierror, code)                                                                                                  \
    do {                                                                                                                    \
        if (LIKELY(ierror))                                                                                                 \
            *(ierror) = (code);                                                                                             \
    } while (0)
#define IN(prefix, number) PMPI_##prefix##_fromint(number)
#define OUT(prefix, handle) PMPI_##prefix##_toint(handle)
#define LOGICAL(value) ((value) != 0)

/* Sentinels: the program passes the address of a COMMON block or of a module's variable; a program with COMMON blocks defines them itself,
 * and the dynamic linker makes all names mean that. */
#pragma GCC visibility push(default)
extern int isthmus_mpi_bottom_, isthmus_mpi_in_place_, isthmus_mpi_buffer_automatic_;
extern int isthmus_mpi_status_ignore_[8], isthmus_mpi_statuses_ignore_[8];
/* The modules may be used together, so those of mpi_f08, of another type, have names of their own. */
extern MPI_Status isthmus_mpi_f08_status_ignore, isthmus_mpi_f08_statuses_ignore[1];
extern int isthmus_mpi_errcodes_ignore_[1], isthmus_mpi_unweighted_[1], isthmus_mpi_weights_empty_[1];
extern char isthmus_mpi_argv_null_[1], isthmus_mpi_argvs_null_[1];
#pragma GCC visibility pop

/* A shared library that is loaded by itself, such as an extension of Python, has COMMON blocks of its own, of which here.c tells. */
extern HIDDEN int isthmus_fortran_others;
HIDDEN const void *isthmus_fortran_ours(const void *address);
static inline const void *ours(const void *address)
{
    return LIKELY(!isthmus_fortran_others) ? address : isthmus_fortran_ours(address);
}

static inline void *choice(const void *address)
{
    address = ours(address);
    if (address == &isthmus_mpi_bottom_)
        return MPI_BOTTOM;
    if (address == &isthmus_mpi_in_place_)
        return MPI_IN_PLACE;
    if (address == &isthmus_mpi_buffer_automatic_)
        return MPI_BUFFER_AUTOMATIC;
    return (void *)address;
}

static inline int is_in_place(const void *address) { return ours(address) == &isthmus_mpi_in_place_; }

static inline MPI_Status *status_of(MPI_Status *status)
{
    const void *address = ours(status);
    if (address == isthmus_mpi_status_ignore_ || address == isthmus_mpi_statuses_ignore_ || address == &isthmus_mpi_f08_status_ignore ||
        address == isthmus_mpi_f08_statuses_ignore)
        return MPI_STATUS_IGNORE;
    return status;
}

static inline MPI_Status *statuses_of(MPI_Status *status) { return status_of(status) ? status : MPI_STATUSES_IGNORE; }

static inline int *weights_of(int *list)
{
    const void *address = ours(list);
    if (address == isthmus_mpi_unweighted_)
        return MPI_UNWEIGHTED;
    return address == isthmus_mpi_weights_empty_ ? MPI_WEIGHTS_EMPTY : list;
}

static inline int *error_codes(int *list) { return ours(list) == isthmus_mpi_errcodes_ignore_ ? MPI_ERRCODES_IGNORE : list; }

/* Memory that must be had: ends the job with a message if there is none. */
HIDDEN void *isthmus_fortran_memory(size_t bytes);
HIDDEN void isthmus_fortran_release(void *memory);

/* An array in C's representation of its elements: on the stack if it is short. */
#define SHORT 32
#define HANDLES(type, name, length)                                                                                         \
    struct {                                                                                                                \
        int count;                                                                                                          \
        type *all;                                                                                                          \
        type few[SHORT];                                                                                                    \
    } name;                                                                                                                 \
    name.count = (length);                                                                                                  \
    if (name.count < 0)                                                                                                     \
        name.count = 0;                                                                                                     \
    name.all = name.count <= SHORT ? name.few : isthmus_fortran_memory((size_t)name.count * sizeof(type))
#define EACH(name) for (int n = 0; n < name.count; n++)
#define DONE(name)                                                                                                          \
    if (name.all != name.few)                                                                                               \
    isthmus_fortran_release(name.all)

/* Indexes count from 1 in Fortran; MPI_UNDEFINED stays. */
static inline void count_from_one(int *indexes, int count)
{
    for (int n = 0; n < count; n++)
        if (indexes[n] != MPI_UNDEFINED)
            indexes[n]++;
}

/* A Fortran text in C: without trailing blanks (and leading ones if `both`), ended by NUL. */
struct text {
    char *text;
    char few[256];
};
HIDDEN void isthmus_fortran_text_in(struct text *to, const char *from, size_t length, int both);
#define text_in isthmus_fortran_text_in
static inline void text_done(struct text *text)
{
    if (text->text != text->few)
        isthmus_fortran_release(text->text);
}
/* The other way: cut or filled with blanks. */
HIDDEN void isthmus_fortran_text_out(char *to, size_t length, const char *from);
#define text_out isthmus_fortran_text_out

/* How long the arrays of a call are: processes on the other side, neighbours, dimensions. */
HIDDEN int isthmus_fortran_peers(int comm);
HIDDEN int isthmus_fortran_neighbours(int comm, int sending);
HIDDEN int isthmus_fortran_dimensions(int comm);
#define peers isthmus_fortran_peers
#define neighbours isthmus_fortran_neighbours
#define dimensions isthmus_fortran_dimensions

/* A C descriptor (Fortran 2018 section 18.5.3), as far as gfortran and flang agree on it. */
struct dimension {
    ptrdiff_t lower, extent, stride; /* stride in bytes; extent -1: assumed size */
};
struct descriptor {
    void *address;
    size_t length; /* of an element, bytes */
    int version;   /* of the compiler's header; or FLEETING, UNCLEAR */
    signed char rank;
    unsigned char others[3];
    struct dimension dimension[15];
};
/* FLEETING: a copy that the compiler has made for the call, gone when it returns. UNCLEAR: elements are `length` or `dimension[0].lower` bytes
 * long, the compiler does not say which. */
enum { FLEETING = -1, UNCLEAR = -2 };

/* gfortran's own descriptor. Its interfaces are not BIND(C): in calls of such procedures gfortran 12 to 16 move the array itself (`a` after
 * `call f(a%x)`), send wrong elements of CLASS(*) arrays, or fail. */
struct native {
    void *address;
    ptrdiff_t offset;
    size_t length;
    int version;
    signed char rank, type;
    short attribute;
    ptrdiff_t span; /* bytes from element to element where the stride is 1 */
    struct {
        ptrdiff_t stride, lower, upper; /* upper -1: assumed size */
    } dimension[15];
};
HIDDEN const struct descriptor *isthmus_fortran_described(const struct native *array, struct descriptor *to);
static inline const struct descriptor *described(const struct native *array, struct descriptor *to)
{
    if (array && array->rank > 0)
        return isthmus_fortran_described(array, to);
    to->address = array ? array->address : NULL;
    to->length = array ? array->length : 0;
    to->version = 0;
    to->rank = 0;
    return to;
}

/* What is not allocated has no shape: compilers leave anything there. */
static inline int is_contiguous(const struct descriptor *array)
{
    ptrdiff_t stride = (ptrdiff_t)array->length;
    if (!array->address)
        return 1;
    for (int n = 0; n < array->rank; n++) {
        const struct dimension *d = &array->dimension[n];
        if (d->extent != 1 && d->stride != stride)
            return d->extent == 0;
        stride *= d->extent;
    }
    return 1;
}

/* Copies of the sections of a request, which live as long as it. */
struct copies;
/* What describes a section to MPI: the buffer of the call, a datatype that picks the elements out, or a contiguous copy. */
struct typed {
    void *address;
    MPI_Count count;
    MPI_Datatype type;
    int made;   /* the datatype was made for this call */
    void *copy; /* of a blocking call */
};
/* What a call may do with a section that no datatype describes: copy it for the call, for a request, for one that is started again and again, or
 * refuse it. */
enum { REFUSED, COPIED, KEPT, STARTED };
struct use {
    int how, write;
    struct copies **copies;
    const char *function, *argument;
};
/* Whether the address is all that a call needs. */
static inline int is_plain(const struct descriptor *array) { return array->version != FLEETING && is_contiguous(array); }
HIDDEN struct typed isthmus_fortran_section(const struct descriptor *array, MPI_Count count, MPI_Datatype type, struct use use, int *code);
static inline struct typed typed(const struct descriptor *array, MPI_Count count, MPI_Datatype type, struct use use, int *code)
{
    if (LIKELY(is_plain(array))) {
        struct typed same = {choice(array->address), count, type, 0, NULL};
        return same;
    }
    return isthmus_fortran_section(array, count, type, use, code);
}
/* A section that the call reads or writes in parts: a contiguous copy of it, and back. */
HIDDEN void *isthmus_fortran_copy_in(const struct descriptor *array, int write, int *code);
HIDDEN void isthmus_fortran_copy_out(const struct descriptor *array, void *copy, int write);
static inline void *copy_in(const struct descriptor *array, int write, int *code)
{
    return LIKELY(is_contiguous(array)) ? choice(array->address) : isthmus_fortran_copy_in(array, write, code);
}
static inline void copy_out(const struct descriptor *array, void *copy, int write)
{
    if (!is_contiguous(array) && copy)
        isthmus_fortran_copy_out(array, copy, write);
}
static inline void typed_done(struct typed *section, const struct descriptor *array, int write)
{
    if (section->made)
        PMPI_Type_free(&section->type);
    if (section->copy)
        isthmus_fortran_copy_out(array, section->copy, write);
}
/* The same for a request: the copy is made when the operation starts and goes back when it is complete. */
HIDDEN void *isthmus_fortran_kept(const struct descriptor *array, struct use use, int *code);
static inline void *kept(const struct descriptor *array, struct use use, int *code)
{
    return LIKELY(is_plain(array)) ? choice(array->address) : isthmus_fortran_kept(array, use, code);
}
/* The copies are of partitions of so many elements. */
HIDDEN void isthmus_fortran_parts(struct copies *copies, int partitions, MPI_Count count, MPI_Datatype type, int *code);
static inline void parts(struct copies *copies, int partitions, MPI_Count count, MPI_Datatype type, int *code)
{
    if (copies)
        isthmus_fortran_parts(copies, partitions, count, type, code);
}
/* The request has them from now on. */
HIDDEN void isthmus_fortran_hand_over(struct copies *copies, MPI_Request request, int code);
static inline void hand_over(struct copies *copies, MPI_Request request, int code)
{
    if (copies)
        isthmus_fortran_hand_over(copies, request, code);
}
/* A buffer that is used after the call and that other arguments describe in parts: it must be contiguous. */
HIDDEN int isthmus_fortran_not_whole(const struct descriptor *array, const char *function, const char *argument);
static inline void *whole(const struct descriptor *array, const char *function, const char *argument, int *code)
{
    if (LIKELY(is_plain(array)))
        return choice(array->address);
    *code = isthmus_fortran_not_whole(array, function, argument);
    return NULL;
}
/* Only the address counts, which must be the program's own. */
static inline void *address_of(const struct descriptor *array, const char *function, const char *argument, int *code)
{
    if (LIKELY(array->version != FLEETING))
        return choice(array->address);
    *code = isthmus_fortran_not_whole(array, function, argument);
    return NULL;
}

#endif
