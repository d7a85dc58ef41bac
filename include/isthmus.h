/* SPDX-License-Identifier: Apache-2.0 */
/* What Isthmus has beyond MPI: remote service requests and global pointers. For C and C++; docs/requests.md explains it.
 * Functions return MPI_SUCCESS or an error class of MPI, and call error handlers as functions of MPI do. */
#ifndef ISTHMUS_H
#define ISTHMUS_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A handler, by its number in this process. */
typedef int isthmus_handler;
/* Memory that others may have pointers to, by its number in this process. */
typedef int isthmus_memory;
/* What a handler was called with; only while it runs, and in its thread. */
typedef struct isthmus_call isthmus_call;

#define ISTHMUS_POINTER_BYTES 40
/* A process, or memory of one. Send it as ISTHMUS_POINTER_BYTES of MPI_BYTE; the same on all machines. */
typedef struct isthmus_pointer {
    unsigned char bytes[ISTHMUS_POINTER_BYTES];
} isthmus_pointer;

typedef void isthmus_function(isthmus_call *call, const void *data, MPI_Count bytes, void *user);

/* Flag of a handler: it may run beside the program, on the thread of the library. */
#define ISTHMUS_SHORT 1
/* Flag of a request: if there is no room, it is not sent, and ISTHMUS_WOULD_BLOCK comes back. */
#define ISTHMUS_NOWAIT 2
/* No error, and no error handler is called. */
#define ISTHMUS_WOULD_BLOCK (-1)

/* Most bytes of a request or a reply, and of the name of a handler. */
#define ISTHMUS_MAX_BYTES ((4 << 20) - 24)
#define ISTHMUS_MAX_NAME 128

/* Handlers. A null pointer as function: this process only sends such requests. */
int isthmus_handler_register(const char *name, isthmus_function *function, void *user, int flags,
                             isthmus_handler *handler);
int isthmus_handler_unregister(isthmus_handler *handler);
int isthmus_handlers_run(int wait, int *ran);

/* Requests to a process of a communicator, or to a global pointer. */
int isthmus_request_send(const void *data, MPI_Count bytes, int rank, isthmus_handler handler, MPI_Comm comm,
                         int flags);
int isthmus_request_send_to(const void *data, MPI_Count bytes, const isthmus_pointer *to, isthmus_handler handler,
                            int flags);
int isthmus_request_ask(const void *data, MPI_Count bytes, void *reply, MPI_Count room, int rank,
                        isthmus_handler handler, MPI_Comm comm, int flags, MPI_Request *request);
int isthmus_request_ask_to(const void *data, MPI_Count bytes, void *reply, MPI_Count room, const isthmus_pointer *to,
                           isthmus_handler handler, int flags, MPI_Request *request);
int isthmus_request_flush(int rank, MPI_Comm comm);
int isthmus_request_flush_to(const isthmus_pointer *to);

/* In a handler. */
int isthmus_call_rank(isthmus_call *call, MPI_Comm comm, int *rank);
int isthmus_call_sender(isthmus_call *call, isthmus_pointer *sender);
int isthmus_call_memory(isthmus_call *call, void *address, MPI_Count *bytes);
int isthmus_call_reply(isthmus_call *call, const void *data, MPI_Count bytes);

/* Global pointers. */
int isthmus_memory_register(void *base, MPI_Aint size, isthmus_memory *memory);
int isthmus_memory_unregister(isthmus_memory *memory);
int isthmus_pointer_to_process(int rank, MPI_Comm comm, isthmus_pointer *pointer);
int isthmus_pointer_to_memory(isthmus_memory memory, MPI_Aint offset, MPI_Aint bytes, isthmus_pointer *pointer);
int isthmus_pointer_to_window(MPI_Win win, MPI_Aint disp, MPI_Aint bytes, isthmus_pointer *pointer);
int isthmus_pointer_text(const isthmus_pointer *pointer, char *text, int size);

#ifdef __cplusplus
}
#endif

#endif
