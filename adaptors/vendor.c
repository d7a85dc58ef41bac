/* SPDX-License-Identifier: Apache-2.0 */
/* An adaptor: see vendor.h. Compile it with the machine's own mpicc:  mpicc -shared -fPIC -O2 -o adaptor.so vendor.c
 *
 * objects.h: how the vendor's functions are called, and its objects by name; collective.h: collective operations; this file: the rest.
 * Calls go by PMPI_ names: a tool that the program carries watches our functions, not those underneath. MPI 3.1 is enough. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "vendor.h"

#include "objects.h"

static int copy_text(char *from, int length, char *text, int room)
{
    if (room < 1)
        return MPI_ERR_ARG;
    if (length > room - 1)
        length = room - 1;
    memcpy(text, from, (size_t)length);
    text[length] = 0;
    return MPI_SUCCESS;
}

static int version(char *text, int room)
{
    char *whole = malloc(MPI_MAX_LIBRARY_VERSION_STRING);
    if (!whole)
        return MPI_ERR_NO_MEM;
    int length = 0, code = CALL(Get_library_version)(whole, &length);
    if (!code)
        code = copy_text(whole, length, text, room);
    free(whole);
    return code;
}

static int explain(int code, char *text, int room)
{
    char whole[MPI_MAX_ERROR_STRING];
    int length = 0, failed = CALL(Error_string)(code, whole, &length);
    return failed ? failed : copy_text(whole, length, text, room);
}

static int begin(int single, int *rank, int *count)
{
    int provided;
    int code = CALL(Init_thread)(NULL, NULL, single ? MPI_THREAD_SINGLE : MPI_THREAD_SERIALIZED, &provided);
    if (code)
        return code;
    CALL(Comm_set_errhandler)(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CALL(Comm_set_errhandler)(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (comms_put(MPI_COMM_WORLD) != 1)
        return MPI_ERR_NO_MEM;
    CALL(Comm_rank)(MPI_COMM_WORLD, rank);
    return CALL(Comm_size)(MPI_COMM_WORLD, count);
}

static int tags(int *limit)
{
    int *value, there = 0, code = CALL(Comm_get_attr)(MPI_COMM_WORLD, MPI_TAG_UB, &value, &there);
    *limit = !code && there ? *value : 32767;
    return code;
}

static int end(void) { return CALL(Finalize)(); }
static int abort_all(int status) { return CALL(Abort)(MPI_COMM_WORLD, status); }

/* Gives a communicator a name, or frees it again. */
static int named(int code, MPI_Comm comm, unsigned long long *made)
{
    *made = 0;
    if (code || comm == MPI_COMM_NULL)
        return code;
    *made = comms_put(comm);
    if (*made)
        return MPI_SUCCESS;
    CALL(Comm_free)(&comm);
    return MPI_ERR_NO_MEM;
}

static int duplicate(unsigned long long comm, unsigned long long *made)
{
    MPI_Comm copy = MPI_COMM_NULL;
    int code = CALL(Comm_dup)(comm_of(comm), &copy);
    return named(code, copy, made);
}

static int among(const int *ranks, int count, int tag, unsigned long long *made)
{
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Group all, some;
    int code = CALL(Comm_group)(MPI_COMM_WORLD, &all);
    if (code)
        return code;
    code = CALL(Group_incl)(all, count, ranks, &some);
    CALL(Group_free)(&all);
    if (code)
        return code;
    code = CALL(Comm_create_group)(MPI_COMM_WORLD, some, tag, &part);
    CALL(Group_free)(&some);
    return named(code, part, made);
}

static int release(unsigned long long comm)
{
    MPI_Comm *place = comms_get(comm);
    if (!place || comm == 1)
        return MPI_ERR_COMM;
    int code = CALL(Comm_free)(place);
    comms_drop(comm);
    return code;
}

static int any_source(int from) { return from == ISTHMUS_VENDOR_ANY ? MPI_ANY_SOURCE : from; }
static int any_tag(int tag) { return tag == ISTHMUS_VENDOR_ANY ? MPI_ANY_TAG : tag; }

static void arrived(MPI_Status *status, struct isthmus_vendor_arrival *arrival)
{
    int bytes = 0;
    CALL(Get_count)(status, MPI_BYTE, &bytes);
    arrival->bytes = bytes;
    if (bytes == MPI_UNDEFINED) {
        MPI_Count all = 0;
        CALL(Get_elements_x)(status, MPI_BYTE, &all);
        arrival->bytes = all;
    }
    arrival->source = status->MPI_SOURCE;
    arrival->tag = status->MPI_TAG;
    arrival->message = 0;
    arrival->cancelled = 0;
}

/* What is told of a receive that has ended so; a message that does not fit is an arrival too. */
static int ended(int code, MPI_Status *status, struct isthmus_vendor_arrival *arrival)
{
    int class = MPI_SUCCESS;
    if (code && (CALL(Error_class)(code, &class) || class != MPI_ERR_TRUNCATE))
        return code;
    arrived(status, arrival);
    if (code)
        arrival->bytes = -1;
    return MPI_SUCCESS;
}

static int send(unsigned long long comm, const void *data, long long bytes, int to, int tag)
{
    if (bytes <= INT_MAX)
        return CALL(Send)(data, (int)bytes, MPI_BYTE, to, tag, comm_of(comm));
    int count;
    MPI_Datatype type;
    int code = as_type(bytes, &count, &type);
    if (code)
        return code;
    code = CALL(Send)(data, count, type, to, tag, comm_of(comm));
    done_with(&type);
    return code;
}

static int receive(unsigned long long comm, void *room, long long bytes, int from, int tag,
    struct isthmus_vendor_arrival *arrival)
{
    int count;
    MPI_Datatype type;
    MPI_Status status;
    int code = as_type(bytes, &count, &type);
    if (code)
        return code;
    code = CALL(Recv)(room, count, type, any_source(from), any_tag(tag), comm_of(comm), &status);
    done_with(&type);
    return ended(code, &status, arrival);
}

/* Gives a request a name. A request that cannot be named is given up: its memory may still be used, so nothing else is safe. */
static int pending(int code, MPI_Request request, unsigned long long *name)
{
    *name = 0;
    if (code)
        return code;
    *name = requests_put((struct request){ request, NULL, 0 });
    return *name ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static int start_send(unsigned long long comm, const void *data, long long bytes, int to, int tag, int synchronous,
    unsigned long long *name)
{
    int count;
    MPI_Datatype type;
    MPI_Request request = MPI_REQUEST_NULL;
    int code = as_type(bytes, &count, &type);
    if (code)
        return code;
    code = synchronous ? CALL(Issend)(data, count, type, to, tag, comm_of(comm), &request)
                       : CALL(Isend)(data, count, type, to, tag, comm_of(comm), &request);
    done_with(&type);
    if (code)
        return code;
    int complete = 0;
    *name = 0;
    code = CALL(Test)(&request, &complete, MPI_STATUS_IGNORE);
    return code || complete ? code : pending(code, request, name);
}

static int start_receive(unsigned long long comm, void *room, long long bytes, int from, int tag,
    unsigned long long *name)
{
    int count;
    MPI_Datatype type;
    MPI_Request request = MPI_REQUEST_NULL;
    int code = as_type(bytes, &count, &type);
    if (code)
        return code;
    code = CALL(Irecv)(room, count, type, any_source(from), any_tag(tag), comm_of(comm), &request);
    done_with(&type);
    return pending(code, request, name);
}

static int receive_soon(unsigned long long comm, void *room, long long bytes, int from, int tag, int rounds,
    unsigned long long *name, struct isthmus_vendor_arrival *arrival)
{
    int count, complete = 0;
    MPI_Datatype type;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    int code = as_type(bytes, &count, &type);
    if (code)
        return code;
    code = CALL(Irecv)(room, count, type, any_source(from), any_tag(tag), comm_of(comm), &request);
    done_with(&type);
    *name = 0;
    if (code)
        return code;
    while (rounds-- > 0 && !complete) {
        code = CALL(Test)(&request, &complete, &status);
        if (code)
            return ended(code, &status, arrival);
    }
    if (!complete)
        return pending(code, request, name);
    arrived(&status, arrival);
    return MPI_SUCCESS;
}

static int cancel(unsigned long long name)
{
    struct request *request = requests_get(name);
    return request ? CALL(Cancel)(&request->request) : MPI_ERR_REQUEST;
}

static int peek(unsigned long long comm, int from, int tag, int *found, struct isthmus_vendor_arrival *arrival)
{
    MPI_Status status;
    int code = CALL(Iprobe)(any_source(from), any_tag(tag), comm_of(comm), found, &status);
    if (!code && *found)
        arrived(&status, arrival);
    return code;
}

static int test(unsigned long long *name, int *complete, struct isthmus_vendor_arrival *arrival)
{
    MPI_Status status;
    struct request *request = requests_get(*name);
    *complete = 0;
    if (!request)
        return MPI_ERR_REQUEST;
    int code = CALL(Test)(&request->request, complete, &status), collective = request->collective;
    if (code || *complete) {
        free_kept(request->kept);
        requests_drop(*name);
        *name = 0;
    }
    if ((!code && !*complete) || collective)
        return code;
    code = ended(code, &status, arrival);
    if (!code && arrival->bytes >= 0)
        CALL(Test_cancelled)(&status, &arrival->cancelled);
    *complete = 1;
    return code;
}

static int find(unsigned long long comm, int from, int tag, int *found, struct isthmus_vendor_arrival *arrival)
{
    MPI_Message message;
    MPI_Status status;
    int code = CALL(Improbe)(any_source(from), any_tag(tag), comm_of(comm), found, &message, &status);
    if (code || !*found)
        return code;
    arrived(&status, arrival);
    arrival->message = messages_put(message);
    return arrival->message ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static int take(unsigned long long name, void *room, long long bytes)
{
    int count;
    MPI_Datatype type;
    MPI_Message *message = messages_get(name);
    if (!message)
        return MPI_ERR_REQUEST;
    int code = as_type(bytes, &count, &type);
    if (code)
        return code;
    code = CALL(Mrecv)(room, count, type, message, MPI_STATUS_IGNORE);
    messages_drop(name);
    done_with(&type);
    return code;
}

static int start_take(unsigned long long name, void *room, long long bytes, unsigned long long *made)
{
    int count;
    MPI_Datatype type;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Message *message = messages_get(name);
    if (!message)
        return MPI_ERR_REQUEST;
    int code = as_type(bytes, &count, &type);
    if (code)
        return code;
    code = CALL(Imrecv)(room, count, type, message, &request);
    messages_drop(name);
    done_with(&type);
    return pending(code, request, made);
}

#include "collective.h"

const struct isthmus_vendor *isthmus_vendor(void)
{
    static const struct isthmus_vendor functions = { ISTHMUS_VENDOR_INTERFACE, sizeof(struct isthmus_vendor), version,
        explain, begin, end, abort_all, tags, duplicate, among, release, send, receive, start_send, start_receive,
        receive_soon, test, cancel, peek, find, take, start_take, barrier, bcast, reduce, allreduce, allgather, alltoall,
        collective, start_collective };
    return &functions;
}
