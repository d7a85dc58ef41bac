/* SPDX-License-Identifier: Apache-2.0 */
/* Array sections that are not contiguous (MPI 5.0 section 19.1.12). */
#include "fortran.h"
#include <stdio.h>
#include <string.h>

/* As gfortran counts the types of elements: INTEGER, LOGICAL, REAL and COMPLEX are before. What is between TEXT and UNSIGNED is not known to it
 * (CLASS(*)), and the length is that of something else. */
enum { DERIVED = 5, TEXT = 6, UNSIGNED = 14 };

const struct descriptor *isthmus_fortran_described(const struct native *array, struct descriptor *to)
{
    int last = array->rank - 1, from_zero = 1;
    ptrdiff_t span = array->span ? array->span : (ptrdiff_t)array->length;
    to->address = array->address;
    to->length = array->type > TEXT && array->type < UNSIGNED ? (size_t)span : array->length;
    to->version = 0;
    to->rank = array->rank;
    for (int n = 0; n <= last; n++) {
        ptrdiff_t lower = array->dimension[n].lower, upper = array->dimension[n].upper;
        struct dimension *d = &to->dimension[n];
        d->lower = span;
        d->extent = n == last && upper == -1 ? -1 : upper < lower ? 0 : upper - lower + 1;
        d->stride = array->dimension[n].stride * span;
        from_zero &= lower == 0;
    }
    /* Of arrays and sections of the program bounds begin at 1 here, of the compiler's copies at 0 (`isthmus fortran` tries that). */
    if (from_zero && to->dimension[last].extent != -1)
        to->version = FLEETING;
    else if (array->type == DERIVED && span > (ptrdiff_t)to->length)
        to->version = UNCLEAR;
    return to;
}

static MPI_Count elements(const struct descriptor *array, int dimensions)
{
    MPI_Count count = 1;
    for (int n = 0; n < dimensions; n++)
        count *= array->dimension[n].extent;
    return count;
}

static int wrong(const char *text)
{
    int code = MPI_ERR_TYPE;
    if (PMPI_Add_error_code(MPI_ERR_TYPE, &code) == MPI_SUCCESS)
        PMPI_Add_error_string(code, text);
    PMPI_Comm_call_errhandler(MPI_COMM_SELF, code);
    return code;
}

/* The first `wanted` elements of the leading `dimensions` dimensions as a datatype: whole slices, then part of the next one. */
static int first(const struct descriptor *array, int dimensions, MPI_Count wanted, MPI_Datatype element, MPI_Datatype *made)
{
    const struct dimension *last = &array->dimension[dimensions - 1];
    MPI_Count slice, whole, rest, lengths[2] = {1, 1};
    MPI_Count places[2] = {0, 0};
    MPI_Datatype inner, parts[2];
    int code;
    if (dimensions == 1)
        return PMPI_Type_create_hvector_c(wanted, 1, last->stride, element, made);
    slice = elements(array, dimensions - 1);
    whole = wanted / slice;
    rest = wanted % slice;
    if ((code = first(array, dimensions - 1, slice, element, &inner)) != MPI_SUCCESS)
        return code;
    code = PMPI_Type_create_hvector_c(whole, 1, last->stride, inner, &parts[0]);
    PMPI_Type_free(&inner);
    if (code != MPI_SUCCESS || rest == 0) {
        *made = parts[0];
        return code;
    }
    if ((code = first(array, dimensions - 1, rest, element, &parts[1])) == MPI_SUCCESS) {
        places[1] = whole * last->stride;
        code = PMPI_Type_create_struct_c(2, lengths, places, parts, made);
        PMPI_Type_free(&parts[1]);
    }
    PMPI_Type_free(&parts[0]);
    return code;
}

/* The element of the array in terms of the datatype of the call, so that unlike machines convert what they should.
 * `element` stays MPI_DATATYPE_NULL if the datatype has gaps or does not fit the elements. */
static int element_of(const struct descriptor *array, MPI_Datatype type, MPI_Count size, MPI_Datatype *element)
{
    MPI_Count lower, extent, length = (MPI_Count)array->length;
    int code = PMPI_Type_get_extent_c(type, &lower, &extent);
    if (code != MPI_SUCCESS || lower != 0 || extent != size || size <= 0)
        return code;
    if (length % size == 0)
        return PMPI_Type_contiguous_c(length / size, type, element);
    /* An element of the type is several of the array (MPI_2REAL): its bytes, which is all that can be said. */
    return size % length == 0 ? PMPI_Type_contiguous_c(length, MPI_BYTE, element) : MPI_SUCCESS;
}

/* Whether the elements of a call lie within the section, taken as if it were contiguous (MPI 5.0 section 19.1.12). */
static int within(const struct descriptor *array, MPI_Count count, MPI_Datatype type)
{
    MPI_Count lower, extent, true_lower, true_extent, end, bytes = elements(array, array->rank) * (MPI_Count)array->length;
    int code = PMPI_Type_get_extent_c(type, &lower, &extent);
    if (code != MPI_SUCCESS || (code = PMPI_Type_get_true_extent_c(type, &true_lower, &true_extent)) != MPI_SUCCESS)
        return code;
    if (__builtin_mul_overflow(count - 1, extent, &end) || __builtin_add_overflow(end, true_lower + true_extent, &end) || end > bytes)
        return wrong("an array section is shorter than count and datatype of the call say");
    return true_lower < 0 || extent < 0 ? wrong("a datatype reaches before the begin of an array section that is not contiguous") : MPI_SUCCESS;
}

/* Of which length the elements are: the extent of the datatype tells, or how much the call wants. */
static int clear(const struct descriptor *array, MPI_Count count, MPI_Datatype type, const char *function, struct descriptor *to)
{
    MPI_Count lower, extent, bytes, number = elements(array, array->rank), shorter = (MPI_Count)array->length, longer = array->dimension[0].lower;
    char text[MPI_MAX_ERROR_STRING];
    int code = PMPI_Type_get_extent_c(type, &lower, &extent);
    if (code != MPI_SUCCESS)
        return code;
    *to = *array;
    to->version = 0;
    if (__builtin_mul_overflow(count, extent, &bytes))
        bytes = -1;
    if (extent == longer || (extent != shorter && bytes == number * longer))
        to->length = (size_t)longer;
    else if (extent != shorter && bytes != number * shorter) {
        snprintf(text, sizeof text,
                 "%s: gfortran does not say whether elements of the buffer are %lld bytes long (a pointer to a component) or %lld (a CLASS of an "
                 "extended type); use a datatype of one of these extents, or SELECT TYPE",
                 function, (long long)shorter, (long long)longer);
        return wrong(text);
    }
    return MPI_SUCCESS;
}

static struct typed of_elements(const struct descriptor *array, MPI_Count count, MPI_Datatype type, struct use use, int *code);

struct typed isthmus_fortran_section(const struct descriptor *array, MPI_Count count, MPI_Datatype type, struct use use, int *code)
{
    struct typed same = {choice(array->address), count, type, 0, NULL};
    struct descriptor cleared;
    if (array->version == FLEETING) {
        if (use.how != COPIED && count > 0)
            same.address = isthmus_fortran_kept(array, use, code);
        return same;
    }
    if (array->version != UNCLEAR)
        return of_elements(array, count, type, use, code);
    if (count <= 0 || (*code = clear(array, count, type, use.function, &cleared)) != MPI_SUCCESS || is_contiguous(&cleared))
        return same;
    same = of_elements(&cleared, count, type, use, code);
    if (!same.copy)
        return same;
    /* What is copied back is copied by the caller's descriptor, which does not know the length. */
    isthmus_fortran_release(same.copy);
    same.copy = same.address = NULL;
    *code = wrong("a datatype that does not fit the elements is used with a CLASS array or a pointer to components; use one of their extent");
    return same;
}

static struct typed of_elements(const struct descriptor *array, MPI_Count count, MPI_Datatype type, struct use use, int *code)
{
    struct typed section = {array->address, count, type, 0, NULL};
    MPI_Datatype element = MPI_DATATYPE_NULL;
    MPI_Count size = 0, length = (MPI_Count)array->length;
    if (array->rank < 1 || array->dimension[array->rank - 1].extent < 0 || count <= 0)
        return section;
    if ((*code = PMPI_Type_size_c(type, &size)) != MPI_SUCCESS || size == 0 || (*code = within(array, count, type)) != MPI_SUCCESS ||
        (*code = element_of(array, type, size, &element)) != MPI_SUCCESS)
        return section;
    if (element == MPI_DATATYPE_NULL || (count * size) % length != 0) {
        if (element != MPI_DATATYPE_NULL)
            PMPI_Type_free(&element);
        if (use.how == REFUSED)
            *code = wrong("an array section that is not contiguous is used with a datatype that does not fit its elements, in an operation "
                          "without a request; pass a contiguous array");
        else if (use.how != COPIED)
            section.address = isthmus_fortran_kept(array, use, code);
        else
            section.address = section.copy = isthmus_fortran_copy_in(array, use.write, code);
        return section;
    }
    *code = first(array, array->rank, count * size / length, element, &section.type);
    PMPI_Type_free(&element);
    if (*code != MPI_SUCCESS)
        return section;
    section.made = 1;
    section.count = 1;
    *code = PMPI_Type_commit(&section.type);
    return section;
}

/* A contiguous copy of a section, in array element order. What is written back is what differs from `before`: an operation may leave parts of its
 * buffer alone, and these are the program's meanwhile. */
struct walk {
    const struct descriptor *array;
    char *copy, *before;
    size_t from, to; /* bytes of the copy that are meant */
    size_t at;
    int back;
};

static void element(struct walk *walk, char *place)
{
    size_t length = walk->array->length, begin = walk->at, end = walk->at + length;
    if (begin < walk->from)
        begin = walk->from;
    if (end > walk->to)
        end = walk->to;
    if (begin < end) {
        char *copy = walk->copy + begin, *before = walk->before ? walk->before + begin : NULL;
        place += begin - walk->at;
        length = end - begin;
        if (!walk->back)
            memcpy(copy, place, length);
        else if (memcmp(copy, before, length) != 0)
            memcpy(place, copy, length);
        if (before)
            memcpy(before, copy, length);
    }
    walk->at += walk->array->length;
}

static void each(struct walk *walk, int dimension, char *place)
{
    const struct dimension *d = &walk->array->dimension[dimension];
    for (ptrdiff_t n = 0; n < d->extent; n++, place += d->stride)
        if (dimension > 0)
            each(walk, dimension - 1, place);
        else
            element(walk, place);
}

static size_t bytes_of(const struct descriptor *array) { return (size_t)elements(array, array->rank) * array->length; }

static void move(const struct descriptor *array, char *copy, int write, int back, size_t from, size_t to)
{
    struct walk walk = {array, copy, write ? copy + bytes_of(array) : NULL, from, to, 0, back};
    each(&walk, array->rank - 1, array->address);
}

static void *room(const struct descriptor *array, int write) { return isthmus_fortran_memory(bytes_of(array) * (write ? 2 : 1)); }

void *isthmus_fortran_copy_in(const struct descriptor *array, int write, int *code)
{
    char *copy;
    if (array->version == UNCLEAR) {
        *code = wrong("gfortran does not say how long the elements of a buffer are (a CLASS of an extended type, or a pointer to a component), and "
                      "this call uses it in parts; use SELECT TYPE, or a contiguous array");
        return NULL;
    }
    copy = room(array, write);
    move(array, copy, write, 0, 0, SIZE_MAX);
    return copy;
}

void isthmus_fortran_copy_out(const struct descriptor *array, void *copy, int write)
{
    if (write)
        move(array, copy, 1, 1, 0, SIZE_MAX);
    isthmus_fortran_release(copy);
}

/* Copies that live with a request. No operation has more than two buffers. */
struct copies {
    size_t part; /* bytes of a partition */
    int number;
    struct {
        struct descriptor array;
        char *copy;
        int write;
    } all[2];
};

/* What the C library calls when an operation with copies begins, is complete, and is gone. `part` is a partition, or -1 for all. */
struct hooks {
    void (*begin)(void *state, int part);
    void (*end)(void *state, int part);
    void (*release)(void *state);
};
/* Of Isthmus only; with another MPI library these sections are refused. */
__attribute__((weak)) extern int isthmus_request_copies(MPI_Request request, const struct hooks *hooks, void *state);

static void move_all(struct copies *copies, int part, int back)
{
    size_t from = part < 0 ? 0 : (size_t)part * copies->part;
    for (int n = 0; n < copies->number; n++)
        if (!back || copies->all[n].write)
            move(&copies->all[n].array, copies->all[n].copy, copies->all[n].write, back, from, part < 0 ? SIZE_MAX : from + copies->part);
}

static void begin(void *state, int part) { move_all(state, part, 0); }
static void end(void *state, int part) { move_all(state, part, 1); }
static void release(void *state)
{
    struct copies *copies = state;
    for (int n = 0; n < copies->number; n++)
        isthmus_fortran_release(copies->all[n].copy);
    isthmus_fortran_release(copies);
}

void *isthmus_fortran_kept(const struct descriptor *array, struct use use, int *code)
{
    struct copies **copies = use.copies;
    void *copy;
    int n;
    /* What is only read may be read now; a persistent operation reads when it is started. */
    if (array->version == FLEETING && (use.how != KEPT || use.write)) {
        *code = isthmus_fortran_not_whole(array, use.function, use.argument);
        return NULL;
    }
    if (!isthmus_request_copies) {
        *code = wrong("an array section that is not contiguous is used after the call, which this MPI library has no means for; pass a "
                      "contiguous array");
        return NULL;
    }
    if (!*copies) {
        *copies = isthmus_fortran_memory(sizeof **copies);
        (*copies)->number = 0;
        (*copies)->part = 0;
    }
    copy = isthmus_fortran_copy_in(array, use.write, code);
    if (!copy)
        return NULL;
    n = (*copies)->number++;
    memcpy(&(*copies)->all[n].array, array, offsetof(struct descriptor, dimension) + (size_t)array->rank * sizeof array->dimension[0]);
    (*copies)->all[n].write = use.write;
    (*copies)->all[n].copy = copy;
    return copy;
}

void isthmus_fortran_parts(struct copies *copies, int partitions, MPI_Count count, MPI_Datatype type, int *code)
{
    MPI_Count lower, extent = 0, all;
    if (*code != MPI_SUCCESS || partitions <= 0 || count <= 0 || (*code = PMPI_Type_get_extent_c(type, &lower, &extent)) != MPI_SUCCESS)
        return;
    if (__builtin_mul_overflow(count, partitions, &all))
        all = INT64_MAX;
    if ((*code = within(&copies->all[0].array, all, type)) == MPI_SUCCESS)
        copies->part = (size_t)(count * extent);
}

void isthmus_fortran_hand_over(struct copies *copies, MPI_Request request, int code)
{
    static const struct hooks hooks = {begin, end, release};
    if (code != MPI_SUCCESS || request == MPI_REQUEST_NULL || isthmus_request_copies(request, &hooks, copies) != MPI_SUCCESS)
        release(copies);
}
