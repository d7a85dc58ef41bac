/* SPDX-License-Identifier: Apache-2.0 */
/* What an adaptor offers: a machine's own MPI ("vendor MPI") as a table of functions that use C's built-in types only.
 *
 * The adaptor is compiled by the vendor's mpicc and opened by Isthmus with deep binding, so that its MPI_ names are the vendor's although
 * the program's are ours. Every function returns 0 or the vendor's error code (explain() has its text). Communicators and requests are
 * names that the adaptor gives, 0 is none. Lengths are bytes.
 *
 * Threads: one at a time, as MPI_THREAD_SERIALIZED, unless begin() is told that there is one only. */
#ifndef ISTHMUS_VENDOR_H
#define ISTHMUS_VENDOR_H

#define ISTHMUS_VENDOR_INTERFACE 5

/* Sources and tags that match any; the ends of a line of processes do not occur. */
#define ISTHMUS_VENDOR_ANY (-1)

/* Operators and types of allreduce and reduce. */
enum isthmus_vendor_operator { ISTHMUS_VENDOR_SUM, ISTHMUS_VENDOR_PROD, ISTHMUS_VENDOR_MIN, ISTHMUS_VENDOR_MAX,
    ISTHMUS_VENDOR_BAND, ISTHMUS_VENDOR_BOR, ISTHMUS_VENDOR_BXOR, ISTHMUS_VENDOR_OPERATORS };
enum isthmus_vendor_type { ISTHMUS_VENDOR_INT8, ISTHMUS_VENDOR_INT16, ISTHMUS_VENDOR_INT32, ISTHMUS_VENDOR_INT64,
    ISTHMUS_VENDOR_UINT8, ISTHMUS_VENDOR_UINT16, ISTHMUS_VENDOR_UINT32, ISTHMUS_VENDOR_UINT64,
    ISTHMUS_VENDOR_FLOAT, ISTHMUS_VENDOR_DOUBLE, ISTHMUS_VENDOR_TYPES };

/* Collective operations. */
enum isthmus_vendor_kind { ISTHMUS_VENDOR_BARRIER, ISTHMUS_VENDOR_BCAST, ISTHMUS_VENDOR_GATHER, ISTHMUS_VENDOR_SCATTER,
    ISTHMUS_VENDOR_ALLGATHER, ISTHMUS_VENDOR_ALLTOALL, ISTHMUS_VENDOR_REDUCE, ISTHMUS_VENDOR_ALLREDUCE, ISTHMUS_VENDOR_SCAN,
    ISTHMUS_VENDOR_EXSCAN, ISTHMUS_VENDOR_REDUCE_SCATTER_BLOCK, ISTHMUS_VENDOR_REDUCE_SCATTER, ISTHMUS_VENDOR_GATHERV,
    ISTHMUS_VENDOR_SCATTERV, ISTHMUS_VENDOR_ALLGATHERV, ISTHMUS_VENDOR_ALLTOALLV };

/* A collective operation in full. What it names stays until it is over. */
struct isthmus_vendor_operation {
    int kind;
    int root;
    /* Of reductions. */
    int type;
    int op;
    /* Of this process: MPI_IN_PLACE. */
    int in_place;
    /* Of the communicator: the own rank, and how many there are. */
    int rank;
    int members;
    /* bcast has its data in result. */
    const void *data;
    void *result;
    /* Bytes of a block; of gatherv, scatterv and allgatherv of the own one. Reductions: elements, at most INT_MAX. */
    long long count;
    /* Unequal blocks by rank, bytes and where they lie, of those that are sent and those that are received: scatterv and gatherv at the root
     * only, allgatherv (whose numbers and their sum are ints), alltoallv both. reduce_scatter: elements for each in taken, the sum an int. */
    const long long *given;
    const long long *given_at;
    const long long *taken;
    const long long *taken_at;
};

/* A message that was received or found. */
struct isthmus_vendor_arrival {
    int source;
    int tag;
    /* -1: the message was longer than the room, and what fits is there. */
    long long bytes;
    /* find() only: name of the message for take() and start_take(). */
    unsigned long long message;
    int cancelled;
};

struct isthmus_vendor {
    /* ISTHMUS_VENDOR_INTERFACE of the header that the adaptor was compiled with. */
    unsigned interface;
    /* sizeof (struct isthmus_vendor). */
    unsigned size;

    /* Name and version; may be called at any time. Texts are cut to `room` bytes with their end. */
    int (*version)(char *text, int room);
    int (*explain)(int code, char *text, int room);

    /* MPI_Init_thread, rank and number of processes of the vendor's job, MPI_Finalize, MPI_Abort. single: all calls come from this thread, so that
     * a vendor whose locks cost time needs none. */
    int (*begin)(int single, int *rank, int *count);
    int (*end)(void);
    int (*abort)(int status);
    /* The largest tag. */
    int (*tags)(int *limit);

    /* Communicators: 1 is MPI_COMM_WORLD. Collective over the given one. */
    int (*duplicate)(unsigned long long comm, unsigned long long *made);
    /* Of these ranks of MPI_COMM_WORLD, in this order; collective over them only. */
    int (*among)(const int *ranks, int count, int tag, unsigned long long *made);
    int (*release)(unsigned long long comm);

    /* Point to point. start_* begin; start_send gives no request if the message has left; test ends a request when it is complete (complete = 1), and gives what arrived. */
    int (*send)(unsigned long long comm, const void *data, long long bytes, int to, int tag);
    int (*receive)(unsigned long long comm, void *room, long long bytes, int from, int tag, struct isthmus_vendor_arrival *arrival);
    int (*start_send)(unsigned long long comm, const void *data, long long bytes, int to, int tag, int synchronous,
        unsigned long long *request);
    int (*start_receive)(unsigned long long comm, void *room, long long bytes, int from, int tag, unsigned long long *request);
    /* As start_receive, and looks up to `rounds` times whether it is complete; gives what arrived if there is no request. */
    int (*receive_soon)(unsigned long long comm, void *room, long long bytes, int from, int tag, int rounds,
        unsigned long long *request, struct isthmus_vendor_arrival *arrival);
    int (*test)(unsigned long long *request, int *complete, struct isthmus_vendor_arrival *arrival);
    /* Asks to cancel a receive; test() says what became of it. */
    int (*cancel)(unsigned long long request);
    /* Looks for a message; find() also takes it out of the matching. */
    int (*peek)(unsigned long long comm, int from, int tag, int *found, struct isthmus_vendor_arrival *arrival);
    int (*find)(unsigned long long comm, int from, int tag, int *found, struct isthmus_vendor_arrival *arrival);
    /* Receives a message that find() has taken out of the matching. Blocks until it is there. */
    int (*take)(unsigned long long message, void *room, long long bytes);
    int (*start_take)(unsigned long long message, void *room, long long bytes, unsigned long long *request);

    /* Collectives. Without data (NULL) they are in place. */
    int (*barrier)(unsigned long long comm);
    int (*bcast)(unsigned long long comm, void *data, long long bytes, int root);
    int (*reduce)(unsigned long long comm, const void *data, void *result, long long count, int type, int op, int root);
    int (*allreduce)(unsigned long long comm, const void *data, void *result, long long count, int type, int op);
    int (*allgather)(unsigned long long comm, const void *data, void *result, long long bytes);
    int (*alltoall)(unsigned long long comm, const void *data, void *result, long long bytes);
    /* Any of them; start_collective begins it, and test() ends the request. All members start operations in the same order. */
    int (*collective)(unsigned long long comm, const struct isthmus_vendor_operation *what);
    int (*start_collective)(unsigned long long comm, const struct isthmus_vendor_operation *what, unsigned long long *request);
};

/* The one name that an adaptor exports. */
__attribute__((visibility("default"))) const struct isthmus_vendor *isthmus_vendor(void);

#endif
