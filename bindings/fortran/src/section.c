/* SPDX-License-Identifier: Apache-2.0 */
/* Array sections that are not contiguous (MPI 5.0 section 19.1.12). */
#include "fortran.h"
#include <stdio.h>
#include <string.h>

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

/* The element of the array in terms of the datatype of the call, so that unlike machines convert what they should. */
static int element_of(const struct descriptor *array, MPI_Datatype type, MPI_Count size, MPI_Datatype *element, MPI_Count *each)
{
    MPI_Count lower, extent, length = (MPI_Count)array->length;
    int code = PMPI_Type_get_extent_c(type, &lower, &extent);
    if (code != MPI_SUCCESS)
        return code;
    if (lower != 0 || extent != size)
        return wrong("an array section that is not contiguous is used with a datatype that has gaps; describe the section by the datatype, "
                     "or pass a contiguous array");
    *each = 1;
    if (size > 0 && length % size == 0)
        return PMPI_Type_contiguous_c(length / size, type, element);
    if (size > 0 && size % length == 0) {
        /* An element of the type is several of the array (MPI_2REAL): its bytes, which is all that can be said. */
        *each = size / length;
        return PMPI_Type_contiguous_c(length, MPI_BYTE, element);
    }
    return wrong("an array section that is not contiguous is used with a datatype whose size does not fit the elements of the array");
}

struct typed isthmus_fortran_section(const struct descriptor *array, MPI_Count count, MPI_Datatype type, int *code)
{
    struct typed section = {array->address, count, type, 0};
    MPI_Datatype element = MPI_DATATYPE_NULL;
    MPI_Count size = 0, each = 1, wanted;
    if (array->rank < 1 || array->dimension[array->rank - 1].extent < 0 || count <= 0)
        return section;
    if ((*code = PMPI_Type_size_c(type, &size)) != MPI_SUCCESS || (*code = element_of(array, type, size, &element, &each)) != MPI_SUCCESS)
        return section;
    wanted = (count * size + (MPI_Count)array->length - 1) / (MPI_Count)array->length;
    if ((count * size) % (MPI_Count)array->length != 0)
        *code = wrong("a part of an element of an array section that is not contiguous is used");
    else if (wanted > elements(array, array->rank))
        *code = wrong("an array section is shorter than the count of the call says");
    if (*code == MPI_SUCCESS)
        *code = first(array, array->rank, wanted, element, &section.type);
    PMPI_Type_free(&element);
    if (*code != MPI_SUCCESS)
        return section;
    section.made = 1;
    section.count = 1;
    *code = PMPI_Type_commit(&section.type);
    return section;
}

/* Copies between a section and contiguous memory, in array element order. */
static char *move(const struct descriptor *array, int dimension, char *place, char *copy, int gather)
{
    const struct dimension *d = &array->dimension[dimension];
    for (ptrdiff_t n = 0; n < d->extent; n++, place += d->stride) {
        if (dimension > 0) {
            copy = move(array, dimension - 1, place, copy, gather);
            continue;
        }
        memcpy(gather ? copy : place, gather ? place : copy, array->length);
        copy += array->length;
    }
    return copy;
}

void *isthmus_fortran_copy_in(const struct descriptor *array)
{
    char *copy = isthmus_fortran_memory((size_t)elements(array, array->rank) * array->length);
    move(array, array->rank - 1, array->address, copy, 1);
    return copy;
}

void isthmus_fortran_copy_out(const struct descriptor *array, void *copy, int write)
{
    if (write)
        move(array, array->rank - 1, array->address, copy, 0);
    isthmus_fortran_release(copy);
}
