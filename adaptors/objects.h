/* SPDX-License-Identifier: Apache-2.0 */
/* Part of vendor.c: how the vendor's functions are called, its objects by name, and lengths above what an int holds. */
#ifndef ISTHMUS_VENDOR_OBJECTS_H
#define ISTHMUS_VENDOR_OBJECTS_H

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

/* A library of the standard ABI has the file name of ours, which the loader takes for the same: it is opened by its path, and its functions
 * are looked up by name, each once. */
#ifdef ISTHMUS_VENDOR_LIBRARY
#include <dlfcn.h>
#include <stdio.h>

static void *by_name(const char *name)
{
    static void *library;
    if (!library)
        library = dlopen(ISTHMUS_VENDOR_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "isthmus: %s of %s: %s\n", name, ISTHMUS_VENDOR_LIBRARY, dlerror());
        abort();
    }
    return found;
}

#define CALL(name)                                                                                                     \
    __extension__({                                                                                                    \
        static __typeof__(&PMPI_##name) at;                                                                            \
        if (!at)                                                                                                       \
            *(void **)&at = by_name("PMPI_" #name);                                                                    \
        at;                                                                                                            \
    })
#else
#define CALL(name) PMPI_##name
#endif

/* Objects by name: name n is in place n - 1; free places are linked. A place that is taken says so, and no other has a name. */
#define TAKEN UINT_MAX
#define TABLE(name, object, type)                                                                                      \
    static struct { type *places; unsigned *next; unsigned room, free; } name;                                         \
    static unsigned long long name##_put(type value)                                                                   \
    {                                                                                                                  \
        if (name.free == name.room) {                                                                                  \
            unsigned room = name.room ? 2 * name.room : 16;                                                            \
            type *places = realloc(name.places, room * sizeof *places);                                                \
            if (places)                                                                                                \
                name.places = places;                                                                                  \
            unsigned *next = realloc(name.next, room * sizeof *next);                                                  \
            if (next)                                                                                                  \
                name.next = next;                                                                                      \
            if (!places || !next)                                                                                      \
                return 0;                                                                                              \
            for (unsigned i = name.room; i < room; i++)                                                                \
                next[i] = i + 1;                                                                                       \
            name.room = room;                                                                                          \
        }                                                                                                              \
        unsigned at = name.free;                                                                                       \
        name.free = name.next[at];                                                                                     \
        name.next[at] = TAKEN;                                                                                         \
        name.places[at] = value;                                                                                       \
        return at + 1ULL;                                                                                              \
    }                                                                                                                  \
    static type *name##_get(unsigned long long n)                                                                      \
    {                                                                                                                  \
        return n > 0 && n <= name.room && name.next[n - 1] == TAKEN ? &name.places[n - 1] : NULL;                      \
    }                                                                                                                  \
    static void name##_drop(unsigned long long n)                                                                      \
    {                                                                                                                  \
        name.next[n - 1] = name.free;                                                                                  \
        name.free = (unsigned)(n - 1);                                                                                 \
    }

TABLE(comms, communicator, MPI_Comm)
/* What an operation uses until it is over: numbers and types of ours, those that were made to be freed. */
struct kept {
    int *numbers;
    int count;
    MPI_Datatype types[];
};

struct request {
    MPI_Request request;
    struct kept *kept;
    /* It has no status. */
    int collective;
};

TABLE(requests, request, struct request)
TABLE(messages, message, MPI_Message)

/* Lengths above what an int holds go as blocks of this many bytes and a rest, in one message. */
#define BLOCK (1 << 20)

static MPI_Comm comm_of(unsigned long long name)
{
    MPI_Comm *comm = comms_get(name);
    return comm ? *comm : MPI_COMM_NULL;
}

/* Bytes as a count of a type: above INT_MAX of a type made for the length, which the caller frees. */
static int as_type(long long bytes, int *count, MPI_Datatype *type)
{
    *type = MPI_BYTE;
    if (bytes <= INT_MAX) {
        *count = (int)bytes;
        return MPI_SUCCESS;
    }
    *count = 1;
    MPI_Datatype block, parts[2];
    int code = CALL(Type_contiguous)(BLOCK, MPI_BYTE, &block);
    if (code)
        return code;
    code = CALL(Type_contiguous)((int)(bytes / BLOCK), block, &parts[0]);
    CALL(Type_free)(&block);
    if (code)
        return code;
    parts[1] = MPI_BYTE;
    int lengths[2] = { 1, (int)(bytes % BLOCK) };
    MPI_Aint places[2] = { 0, (MPI_Aint)(bytes / BLOCK) * BLOCK };
    code = CALL(Type_create_struct)(2, lengths, places, parts, type);
    CALL(Type_free)(&parts[0]);
    return code ? code : CALL(Type_commit)(type);
}

static void done_with(MPI_Datatype *type)
{
    if (*type != MPI_BYTE)
        CALL(Type_free)(type);
}

/* Room for so many types, all MPI_BYTE so far, and numbers; NULL: there is no memory. */
static struct kept *keep(int types, int numbers)
{
    struct kept *kept = malloc(sizeof *kept + (size_t)types * sizeof(MPI_Datatype) + (size_t)numbers * sizeof(int));
    if (!kept)
        return NULL;
    kept->count = types;
    for (int i = 0; i < types; i++)
        kept->types[i] = MPI_BYTE;
    kept->numbers = (int *)(void *)(kept->types + types);
    return kept;
}

static void free_kept(struct kept *kept)
{
    if (!kept)
        return;
    for (int i = 0; i < kept->count; i++)
        done_with(&kept->types[i]);
    free(kept);
}

#endif
