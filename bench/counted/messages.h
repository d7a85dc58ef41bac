/* SPDX-License-Identifier: Apache-2.0 */
/* Messages. */
#ifndef COUNTED_MESSAGES_H
#define COUNTED_MESSAGES_H

#include "counted.h"

/* A receive that is started again and again. */
static MPI_Request started = MPI_REQUEST_NULL;

static inline void send_to(int peer, int bytes)
{
    MPI_Send(out, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
}

static inline void receive_from(int peer, int bytes)
{
    MPI_Recv(in, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static inline void isend_to(int peer, int bytes)
{
    MPI_Request request;
    MPI_Isend(out, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static inline void irecv_from(int peer, int bytes)
{
    MPI_Request request;
    MPI_Irecv(in, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void send(int bytes) { send_to(other, bytes); }
static void receive(int bytes) { receive_from(other, bytes); }
static void isend(int bytes) { isend_to(other, bytes); }
static void irecv(int bytes) { irecv_from(other, bytes); }

/* Nobody at the other end. */
static void send_to_none(int bytes) { send_to(MPI_PROC_NULL, bytes); }
static void receive_from_none(int bytes) { receive_from(MPI_PROC_NULL, bytes); }
static void isend_to_none(int bytes) { isend_to(MPI_PROC_NULL, bytes); }
static void irecv_from_none(int bytes) { irecv_from(MPI_PROC_NULL, bytes); }

static void sendrecv(int bytes)
{
    MPI_Sendrecv(out, bytes, MPI_BYTE, other, 0, in, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* From anybody, with any tag. */
static void sendrecv_any(int bytes)
{
    MPI_Sendrecv(out, bytes, MPI_BYTE, other, 0, in, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void sendrecv_replace(int bytes)
{
    MPI_Sendrecv_replace(in, bytes, MPI_BYTE, other, 0, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void from_any(int bytes)
{
    MPI_Recv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void probed(int bytes)
{
    int there = 0;
    while (!there)
        MPI_Iprobe(other, 0, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    receive(bytes);
}

static void improbed(int bytes)
{
    MPI_Message message;
    int there = 0;
    while (!there)
        MPI_Improbe(other, 0, MPI_COMM_WORLD, &there, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(in, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
}

static void persistent(int bytes)
{
    if (started == MPI_REQUEST_NULL)
        MPI_Recv_init(in, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &started);
    MPI_Start(&started);
    MPI_Wait(&started, MPI_STATUS_IGNORE);
}

static void to_self(int bytes)
{
    MPI_Request requests[2];
    MPI_Irecv(in, bytes, MPI_BYTE, rank, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, bytes, MPI_BYTE, rank, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void iprobe(int bytes)
{
    int there;
    (void)bytes;
    MPI_Iprobe(other, 1, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
}

static const struct operation messages[] = {
    {"send-8", nothing, send, receive, 8},
    {"send-1024", nothing, send, receive, 1024},
    {"isend+wait-8", nothing, isend, receive, 8},
    {"recv-8", send, receive, nothing, 8},
    {"recv-1024", send, receive, nothing, 1024},
    {"irecv+wait-8", send, irecv, nothing, 8},
    {"recv-any-8", send, from_any, nothing, 8},
    {"iprobe+recv-8", send, probed, nothing, 8},
    {"improbe+mrecv-8", send, improbed, nothing, 8},
    {"start+wait-8", send, persistent, nothing, 8},
    {"sendrecv-8", sendrecv, sendrecv, nothing, 8},
    {"sendrecv-any-8", sendrecv_any, sendrecv_any, nothing, 8},
    {"sendrecv_replace-8", sendrecv_replace, sendrecv_replace, nothing, 8},
    {"self-irecv+isend+waitall", nothing, to_self, nothing, 256},
    {"send-none", nothing, send_to_none, nothing, 8},
    {"recv-none", nothing, receive_from_none, nothing, 8},
    {"isend+wait-none", nothing, isend_to_none, nothing, 8},
    {"irecv+wait-none", nothing, irecv_from_none, nothing, 8},
    {"iprobe-nothing", nothing, iprobe, nothing, 8},
};

#endif
