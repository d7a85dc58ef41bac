/* SPDX-License-Identifier: Apache-2.0 */
/* Part of vendor.c: collective operations. Those with functions of their own in the table are what programs call most, with short data. */
#ifndef ISTHMUS_VENDOR_COLLECTIVE_H
#define ISTHMUS_VENDOR_COLLECTIVE_H

#include "objects.h"

static const void *own(const void *data) { return data ? data : MPI_IN_PLACE; }

static MPI_Op op_of(int op)
{
    switch (op) {
    case ISTHMUS_VENDOR_SUM: return MPI_SUM;
    case ISTHMUS_VENDOR_PROD: return MPI_PROD;
    case ISTHMUS_VENDOR_MIN: return MPI_MIN;
    case ISTHMUS_VENDOR_MAX: return MPI_MAX;
    case ISTHMUS_VENDOR_BAND: return MPI_BAND;
    case ISTHMUS_VENDOR_BOR: return MPI_BOR;
    case ISTHMUS_VENDOR_BXOR: return MPI_BXOR;
    default: return MPI_OP_NULL;
    }
}

static MPI_Datatype type_of(int type)
{
    switch (type) {
    case ISTHMUS_VENDOR_INT8: return MPI_INT8_T;
    case ISTHMUS_VENDOR_INT16: return MPI_INT16_T;
    case ISTHMUS_VENDOR_INT32: return MPI_INT32_T;
    case ISTHMUS_VENDOR_INT64: return MPI_INT64_T;
    case ISTHMUS_VENDOR_UINT8: return MPI_UINT8_T;
    case ISTHMUS_VENDOR_UINT16: return MPI_UINT16_T;
    case ISTHMUS_VENDOR_UINT32: return MPI_UINT32_T;
    case ISTHMUS_VENDOR_UINT64: return MPI_UINT64_T;
    case ISTHMUS_VENDOR_FLOAT: return MPI_FLOAT;
    case ISTHMUS_VENDOR_DOUBLE: return MPI_DOUBLE;
    default: return MPI_DATATYPE_NULL;
    }
}

static int barrier(unsigned long long comm) { return CALL(Barrier)(comm_of(comm)); }

static int bcast(unsigned long long comm, void *data, long long bytes, int root)
{
    if (bytes <= INT_MAX)
        return CALL(Bcast)(data, (int)bytes, MPI_BYTE, root, comm_of(comm));
    int count;
    MPI_Datatype type;
    int code = as_type(bytes, &count, &type);
    if (code)
        return code;
    code = CALL(Bcast)(data, count, type, root, comm_of(comm));
    done_with(&type);
    return code;
}

/* Elements above what an int holds go in several calls: the result is the same. */
#define IN_PARTS(count, width, call)                                                                                   \
    long long at_ = 0;                                                                                                 \
    do {                                                                                                               \
        int part = count - at_ > INT_MAX ? INT_MAX : (int)(count - at_);                                               \
        const void *from = data ? (const char *)data + at_ * width : MPI_IN_PLACE;                                                           \
        char *to = (char *)result + at_ * width;                                                                       \
        int code = call;                                                                                               \
        if (code)                                                                                                      \
            return code;                                                                                               \
        at_ += part;                                                                                                   \
    } while (at_ < count);                                                                                             \
    return MPI_SUCCESS;

static long long width_of(int type)
{
    const char all[ISTHMUS_VENDOR_TYPES] = { 1, 2, 4, 8, 1, 2, 4, 8, sizeof(float), sizeof(double) };
    return type >= 0 && type < ISTHMUS_VENDOR_TYPES ? all[type] : 0;
}

static int reduce(unsigned long long comm, const void *data, void *result, long long count, int type, int op, int root)
{
    IN_PARTS(count, width_of(type), CALL(Reduce)(from, to, part, type_of(type), op_of(op), root, comm_of(comm)))
}

static int allreduce(unsigned long long comm, const void *data, void *result, long long count, int type, int op)
{
    if (count <= INT_MAX)
        return CALL(Allreduce)(own(data), result, (int)count, type_of(type), op_of(op), comm_of(comm));
    IN_PARTS(count, width_of(type), CALL(Allreduce)(from, to, part, type_of(type), op_of(op), comm_of(comm)))
}

static int allgather(unsigned long long comm, const void *data, void *result, long long bytes)
{
    int count;
    MPI_Datatype type;
    int code = as_type(bytes, &count, &type);
    if (code)
        return code;
    code = CALL(Allgather)(own(data), count, type, result, count, type, comm_of(comm));
    done_with(&type);
    return code;
}

static int alltoall(unsigned long long comm, const void *data, void *result, long long bytes)
{
    if (bytes <= INT_MAX)
        return CALL(Alltoall)(own(data), (int)bytes, MPI_BYTE, result, (int)bytes, MPI_BYTE, comm_of(comm));
    int count;
    MPI_Datatype type;
    int code = as_type(bytes, &count, &type);
    if (code)
        return code;
    code = CALL(Alltoall)(own(data), count, type, result, count, type, comm_of(comm));
    done_with(&type);
    return code;
}

/* Any operation, blocking, or with a request started. What each member knows for itself (how the sizes of unequal blocks add up, or where they
 * lie) decides only how it calls a function, never which: that is the same at all. */

/* The function, or the one that starts the same. */
#define EITHER(blocking, starting, ...) (request ? CALL(starting)(__VA_ARGS__, request) : CALL(blocking)(__VA_ARGS__))

static int equal(MPI_Comm comm, const struct isthmus_vendor_operation *what, MPI_Request *request, struct kept **kept)
{
    int count;
    MPI_Datatype type;
    int code = as_type(what->count, &count, &type);
    if (code)
        return code;
    if (type != MPI_BYTE) {
        *kept = keep(1, 0);
        if (!*kept) {
            done_with(&type);
            return MPI_ERR_NO_MEM;
        }
        (*kept)->types[0] = type;
    }
    const void *data = what->in_place ? MPI_IN_PLACE : what->data;
    void *result = what->result;
    switch (what->kind) {
    case ISTHMUS_VENDOR_BCAST: return EITHER(Bcast, Ibcast, result, count, type, what->root, comm);
    case ISTHMUS_VENDOR_GATHER: return EITHER(Gather, Igather, data, count, type, result, count, type, what->root, comm);
    case ISTHMUS_VENDOR_SCATTER:
        if (what->in_place)
            return EITHER(Scatter, Iscatter, what->data, count, type, MPI_IN_PLACE, count, type, what->root, comm);
        return EITHER(Scatter, Iscatter, what->data, count, type, result, count, type, what->root, comm);
    case ISTHMUS_VENDOR_ALLGATHER: return EITHER(Allgather, Iallgather, data, count, type, result, count, type, comm);
    default: return EITHER(Alltoall, Ialltoall, data, count, type, result, count, type, comm);
    }
}

static int reduction(MPI_Comm comm, const struct isthmus_vendor_operation *what, MPI_Request *request, struct kept **kept)
{
    const void *data = what->in_place ? MPI_IN_PLACE : what->data;
    void *result = what->result;
    int count = (int)what->count;
    MPI_Datatype type = type_of(what->type);
    MPI_Op op = op_of(what->op);
    if (what->count > INT_MAX)
        return MPI_ERR_COUNT;
    switch (what->kind) {
    case ISTHMUS_VENDOR_REDUCE: return EITHER(Reduce, Ireduce, data, result, count, type, op, what->root, comm);
    case ISTHMUS_VENDOR_ALLREDUCE: return EITHER(Allreduce, Iallreduce, data, result, count, type, op, comm);
    case ISTHMUS_VENDOR_SCAN: return EITHER(Scan, Iscan, data, result, count, type, op, comm);
    case ISTHMUS_VENDOR_EXSCAN: return EITHER(Exscan, Iexscan, data, result, count, type, op, comm);
    case ISTHMUS_VENDOR_REDUCE_SCATTER_BLOCK:
        return EITHER(Reduce_scatter_block, Ireduce_scatter_block, data, result, count, type, op, comm);
    default: break;
    }
    *kept = keep(0, what->members);
    if (!*kept)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < what->members; i++)
        (*kept)->numbers[i] = (int)what->taken[i];
    return EITHER(Reduce_scatter, Ireduce_scatter, data, result, (*kept)->numbers, type, op, comm);
}

/* Every member knows all sizes, and their sum is an int. Where they lie is too. */
static int allgatherv(MPI_Comm comm, const struct isthmus_vendor_operation *what, MPI_Request *request, struct kept **kept)
{
    const void *data = what->in_place ? MPI_IN_PLACE : what->data;
    int n = what->members;
    *kept = keep(0, 2 * n);
    if (!*kept)
        return MPI_ERR_NO_MEM;
    int *sizes = (*kept)->numbers, *places = sizes + n;
    for (int i = 0; i < n; i++) {
        sizes[i] = (int)what->taken[i];
        places[i] = (int)what->taken_at[i];
    }
    return EITHER(Allgatherv, Iallgatherv, data, (int)what->count, MPI_BYTE, what->result, sizes, places, MPI_BYTE, comm);
}

#if MPI_VERSION >= 4
/* Sizes and places of any length are arguments. */
_Static_assert(sizeof(MPI_Count) == sizeof(long long) && sizeof(MPI_Aint) == sizeof(long long), "numbers of 64 bits");

static const MPI_Count *sizes_of(const long long *row) { return (const MPI_Count *)(const void *)row; }
static const MPI_Aint *places_of(const long long *row) { return (const MPI_Aint *)(const void *)row; }

static int unequal(MPI_Comm comm, const struct isthmus_vendor_operation *what, MPI_Request *request, struct kept **kept)
{
    (void)kept;
    const MPI_Count *given = sizes_of(what->given), *taken = sizes_of(what->taken);
    const MPI_Aint *from = places_of(what->given_at), *to = places_of(what->taken_at);
    const void *data = what->in_place ? MPI_IN_PLACE : what->data;
    switch (what->kind) {
    case ISTHMUS_VENDOR_GATHERV:
        return EITHER(Gatherv_c, Igatherv_c, data, what->count, MPI_BYTE, what->result, taken, to, MPI_BYTE, what->root, comm);
    case ISTHMUS_VENDOR_SCATTERV: {
        void *result = what->in_place ? MPI_IN_PLACE : what->result;
        return EITHER(Scatterv_c, Iscatterv_c, what->data, given, from, MPI_BYTE, result, what->count, MPI_BYTE, what->root, comm);
    }
    default:
        return EITHER(Alltoallv_c, Ialltoallv_c, what->data, given, from, MPI_BYTE, what->result, taken, to, MPI_BYTE, comm);
    }
}
#else
/* A block of any length anywhere: a count and a place that are ints, or a type that was made for it. */
static int placed(long long bytes, long long place, int *count, int *at, MPI_Datatype *type)
{
    *count = 0;
    *at = 0;
    if (!bytes)
        return MPI_SUCCESS;
    if (bytes <= INT_MAX && place >= INT_MIN && place <= INT_MAX) {
        *count = (int)bytes;
        *at = (int)place;
        return MPI_SUCCESS;
    }
    int length;
    MPI_Datatype whole, made;
    MPI_Aint start = (MPI_Aint)place;
    int code = as_type(bytes, &length, &whole);
    if (code)
        return code;
    code = CALL(Type_create_struct)(1, &length, &start, &whole, &made);
    done_with(&whole);
    if (code)
        return code;
    *type = made;
    *count = 1;
    return CALL(Type_commit)(type);
}

/* Only the root knows all sizes, or each its own: nobody knows whether an int is enough for everybody. So all call the one function that
 * takes a type for each block. */
static int unequal(MPI_Comm comm, const struct isthmus_vendor_operation *what, MPI_Request *request, struct kept **kept)
{
    int n = what->members, code = MPI_SUCCESS;
    *kept = keep(2 * n, 4 * n);
    if (!*kept)
        return MPI_ERR_NO_MEM;
    int *given = (*kept)->numbers, *from = given + n, *taken = from + n, *to = taken + n;
    MPI_Datatype *gives = (*kept)->types, *takes = gives + n;
    for (int i = 0; i < n && !code; i++) {
        long long give = what->given ? what->given[i] : 0, give_at = what->given ? what->given_at[i] : 0;
        long long take = what->taken ? what->taken[i] : 0, take_at = what->taken ? what->taken_at[i] : 0;
        /* The root's own block may be where it belongs. */
        if (what->kind == ISTHMUS_VENDOR_GATHERV)
            give = i == what->root && !what->in_place ? what->count : 0;
        if (what->kind == ISTHMUS_VENDOR_SCATTERV)
            take = i == what->root && !what->in_place ? what->count : 0;
        if (what->in_place && i == what->rank)
            give = take = 0;
        code = placed(give, give_at, &given[i], &from[i], &gives[i]);
        if (!code)
            code = placed(take, take_at, &taken[i], &to[i], &takes[i]);
    }
    return code ? code : EITHER(Alltoallw, Ialltoallw, what->data, given, from, gives, what->result, taken, to, takes, comm);
}
#endif

static int any_operation(unsigned long long name, const struct isthmus_vendor_operation *what, MPI_Request *request,
    struct kept **kept)
{
    MPI_Comm comm = comm_of(name);
    switch (what->kind) {
    case ISTHMUS_VENDOR_BARRIER: return request ? CALL(Ibarrier)(comm, request) : CALL(Barrier)(comm);
    case ISTHMUS_VENDOR_BCAST:
    case ISTHMUS_VENDOR_GATHER:
    case ISTHMUS_VENDOR_SCATTER:
    case ISTHMUS_VENDOR_ALLGATHER:
    case ISTHMUS_VENDOR_ALLTOALL: return equal(comm, what, request, kept);
    case ISTHMUS_VENDOR_REDUCE:
    case ISTHMUS_VENDOR_ALLREDUCE:
    case ISTHMUS_VENDOR_SCAN:
    case ISTHMUS_VENDOR_EXSCAN:
    case ISTHMUS_VENDOR_REDUCE_SCATTER_BLOCK:
    case ISTHMUS_VENDOR_REDUCE_SCATTER: return reduction(comm, what, request, kept);
    case ISTHMUS_VENDOR_ALLGATHERV: return allgatherv(comm, what, request, kept);
    case ISTHMUS_VENDOR_GATHERV:
    case ISTHMUS_VENDOR_SCATTERV:
    case ISTHMUS_VENDOR_ALLTOALLV: return unequal(comm, what, request, kept);
    default: return MPI_ERR_ARG;
    }
}

static int collective(unsigned long long comm, const struct isthmus_vendor_operation *what)
{
    struct kept *kept = NULL;
    int code = any_operation(comm, what, NULL, &kept);
    free_kept(kept);
    return code;
}

static int start_collective(unsigned long long comm, const struct isthmus_vendor_operation *what, unsigned long long *name)
{
    struct kept *kept = NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    *name = 0;
    int code = any_operation(comm, what, &request, &kept);
    if (code) {
        free_kept(kept);
        return code;
    }
    *name = requests_put((struct request){ request, kept, 1 });
    return *name ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

#endif
