/* SPDX-License-Identifier: Apache-2.0 */
/* Erroneous calls that the standard lets a library detect: each must return the right class, and the text of the error must
   name the argument. A class of -1 means that any error will do.
   ranks: 1 2 */
#include "erroneous.h"

static int buf[64], other[64], size, rank, n, flag;
static MPI_Datatype uncommitted, freed_type, type;
static MPI_Comm freed_comm, comm, self;
static MPI_Request request;
static MPI_Status status;

static void handles(void)
{
    MPI_Comm_dup(MPI_COMM_SELF, &freed_comm);
    comm = freed_comm;
    OK(MPI_Comm_free(&comm));
    OK(MPI_Type_contiguous(2, MPI_INT, &uncommitted));
    OK(MPI_Type_contiguous(2, MPI_INT, &freed_type));
    type = freed_type;
    OK(MPI_Type_free(&type));
}

static void point_to_point(void)
{
    ERR(MPI_ERR_COMM, "comm", MPI_Send(buf, 1, MPI_INT, 0, 0, MPI_COMM_NULL));
    ERR(MPI_ERR_COMM, "comm", MPI_Send(buf, 1, MPI_INT, 0, 0, freed_comm));
    ERR(MPI_ERR_COMM, "comm", MPI_Send(buf, 1, MPI_INT, 0, 0, (MPI_Comm)MPI_INT));
    ERR(MPI_ERR_COUNT, "count", MPI_Send(buf, -1, MPI_INT, 0, 0, self));
    ERR(MPI_ERR_TYPE, "datatype", MPI_Send(buf, 1, MPI_DATATYPE_NULL, 0, 0, self));
    ERR(MPI_ERR_TYPE, "datatype", MPI_Send(buf, 1, freed_type, 0, 0, self));
    ERR(MPI_ERR_TYPE, "datatype", MPI_Send(buf, 1, uncommitted, 0, 0, self));
    ERR(MPI_ERR_RANK, "dest", MPI_Send(buf, 1, MPI_INT, 1, 0, self));
    ERR(MPI_ERR_RANK, "dest", MPI_Send(buf, 1, MPI_INT, -99, 0, self));
    ERR(MPI_ERR_RANK, "dest", MPI_Send(buf, 1, MPI_INT, MPI_ANY_SOURCE, 0, self));
    ERR(MPI_ERR_TAG, "tag", MPI_Send(buf, 1, MPI_INT, 0, -1, self));
    ERR(MPI_ERR_TAG, "tag", MPI_Send(buf, 1, MPI_INT, 0, MPI_ANY_TAG, self));
    ERR(MPI_ERR_BUFFER, "buf", MPI_Send(NULL, 1, MPI_INT, 0, 0, self));
    ERR(MPI_ERR_BUFFER, "buf", MPI_Send(MPI_IN_PLACE, 1, MPI_INT, 0, 0, self));
    ERR(MPI_ERR_COUNT, "count", MPI_Send_c(buf, -1, MPI_INT, 0, 0, self));
    ERR(MPI_ERR_TAG, "tag", MPI_Ssend(buf, 1, MPI_INT, 0, -1, self));
    ERR(MPI_ERR_RANK, "dest", MPI_Rsend(buf, 1, MPI_INT, 9, 0, self));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Bsend(buf, 1, MPI_INT, 0, 0, self));
    ERR(MPI_ERR_COUNT, "count", MPI_Recv(buf, -1, MPI_INT, 0, 0, self, &status));
    ERR(MPI_ERR_TYPE, "datatype", MPI_Recv(buf, 1, uncommitted, 0, 0, self, &status));
    ERR(MPI_ERR_RANK, "source", MPI_Recv(buf, 1, MPI_INT, 1, 0, self, &status));
    ERR(MPI_ERR_TAG, "tag", MPI_Recv(buf, 1, MPI_INT, 0, -9, self, &status));
    ERR(MPI_ERR_BUFFER, "buf", MPI_Recv(NULL, 1, MPI_INT, 0, 0, self, &status));
    ERR(MPI_ERR_COMM, "comm", MPI_Recv(buf, 1, MPI_INT, 0, 0, MPI_COMM_NULL, &status));
    ERR(MPI_ERR_ARG, "request", MPI_Isend(buf, 1, MPI_INT, 0, 0, self, NULL));
    ERR(MPI_ERR_COUNT, "count", MPI_Isend(buf, -1, MPI_INT, 0, 0, self, &request));
    ERR(MPI_ERR_TYPE, "datatype", MPI_Isend(buf, 1, uncommitted, 0, 0, self, &request));
    ERR(MPI_ERR_ARG, "request", MPI_Irecv(buf, 1, MPI_INT, 0, 0, self, NULL));
    ERR(MPI_ERR_RANK, "source", MPI_Irecv(buf, 1, MPI_INT, 7, 0, self, &request));
    ERR(MPI_ERR_TAG, "tag", MPI_Issend(buf, 1, MPI_INT, 0, -7, self, &request));
    ERR(MPI_ERR_COUNT, "count", MPI_Send_init(buf, -1, MPI_INT, 0, 0, self, &request));
    ERR(MPI_ERR_TYPE, "datatype", MPI_Send_init(buf, 1, uncommitted, 0, 0, self, &request));
    ERR(MPI_ERR_RANK, "dest", MPI_Send_init(buf, 1, MPI_INT, 5, 0, self, &request));
    ERR(MPI_ERR_TAG, "tag", MPI_Recv_init(buf, 1, MPI_INT, 0, -5, self, &request));
    ERR(MPI_ERR_ARG, "request", MPI_Recv_init(buf, 1, MPI_INT, 0, 0, self, NULL));
    ERR(MPI_ERR_COUNT, "sendcount", MPI_Sendrecv(buf, -1, MPI_INT, 0, 0, other, 1, MPI_INT, 0, 0, self, &status));
    ERR(MPI_ERR_TYPE, "sendtype",
        MPI_Sendrecv(buf, 1, MPI_DATATYPE_NULL, 0, 0, other, 1, MPI_INT, 0, 0, self, &status));
    ERR(MPI_ERR_TYPE, "recvtype", MPI_Sendrecv(buf, 1, MPI_INT, 0, 0, other, 1, uncommitted, 0, 0, self, &status));
    ERR(MPI_ERR_COUNT, "recvcount", MPI_Sendrecv(buf, 1, MPI_INT, 0, 0, other, -1, MPI_INT, 0, 0, self, &status));
    ERR(MPI_ERR_RANK, "source", MPI_Sendrecv(buf, 1, MPI_INT, 0, 0, other, 1, MPI_INT, 4, 0, self, &status));
    ERR(MPI_ERR_TAG, "recvtag", MPI_Sendrecv(buf, 1, MPI_INT, 0, 0, other, 1, MPI_INT, 0, -4, self, &status));
    ERR(MPI_ERR_TAG, "sendtag", MPI_Sendrecv(buf, 1, MPI_INT, 0, -4, other, 1, MPI_INT, 0, 0, self, &status));
    ERR(MPI_ERR_BUFFER, "recvbuf", MPI_Sendrecv(buf, 1, MPI_INT, 0, 0, NULL, 1, MPI_INT, 0, 0, self, &status));
    ERR(MPI_ERR_BUFFER, "sendbuf", MPI_Sendrecv(NULL, 1, MPI_INT, 0, 0, buf, 1, MPI_INT, 0, 0, self, &status));
    ERR(MPI_ERR_RANK, "dest", MPI_Sendrecv_replace(buf, 1, MPI_INT, 4, 0, 0, 0, self, &status));
    ERR(MPI_ERR_RANK, "source", MPI_Probe(3, 0, self, &status));
    ERR(MPI_ERR_TAG, "tag", MPI_Probe(0, -3, self, &status));
    ERR(MPI_ERR_COMM, "comm", MPI_Probe(0, 0, MPI_COMM_NULL, &status));
    ERR(MPI_ERR_ARG, "flag", MPI_Iprobe(0, 0, self, NULL, &status));
    ERR(MPI_ERR_ARG, "flag", MPI_Improbe(0, 0, self, NULL, &(MPI_Message){MPI_MESSAGE_NULL}, &status));
    ERR(MPI_ERR_REQUEST, "message", MPI_Mrecv(buf, 1, MPI_INT, &(MPI_Message){MPI_MESSAGE_NULL}, &status));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Buffer_detach(&n, &n));
    ERR(MPI_ERR_COUNT, "count", MPI_Psend_init(buf, 1, -1, MPI_INT, 0, 0, self, MPI_INFO_NULL, &request));
    ERR(-1, "partitions", MPI_Psend_init(buf, -1, 1, MPI_INT, 0, 0, self, MPI_INFO_NULL, &request));
    ERR(MPI_ERR_REQUEST, NULL, MPI_Pready(0, MPI_REQUEST_NULL));
}

static void requests(void)
{
    MPI_Request null = MPI_REQUEST_NULL, bad = (MPI_Request)MPI_COMM_WORLD, list[2] = {MPI_REQUEST_NULL, bad};
    MPI_Status several[2];
    int index, indices[2];
    ERR(MPI_ERR_REQUEST, "request", MPI_Wait(&bad, &status));
    ERR(MPI_ERR_ARG, "request", MPI_Wait(NULL, &status));
    ERR(MPI_ERR_REQUEST, "request", MPI_Test(&bad, &flag, &status));
    ERR(MPI_ERR_ARG, "flag", MPI_Test(&null, NULL, &status));
    ERR(MPI_ERR_REQUEST, "request", MPI_Start(&null));
    ERR(MPI_ERR_REQUEST, "request", MPI_Start(&bad));
    ERR(MPI_ERR_REQUEST, "request", MPI_Cancel(&null));
    ERR(MPI_ERR_REQUEST, "request", MPI_Request_free(&null));
    ERR(MPI_ERR_REQUEST, NULL, MPI_Waitall(2, list, several));
    ERR(MPI_ERR_REQUEST, NULL, MPI_Waitany(2, list, &index, &status));
    ERR(MPI_ERR_REQUEST, NULL, MPI_Testall(2, list, &flag, several));
    ERR(MPI_ERR_REQUEST, NULL, MPI_Waitsome(2, list, &index, indices, several));
    ERR(-1, "count", MPI_Waitall(-1, list, several));
    ERR(-1, "count", MPI_Waitany(-1, list, &index, &status));
    ERR(MPI_ERR_ARG, "index", MPI_Waitany(0, list, NULL, &status));
    ERR(-1, "count", MPI_Startall(-1, list));
    ERR(MPI_ERR_REQUEST, "request", MPI_Request_get_status(bad, &flag, &status));
    ERR(MPI_ERR_ARG, "flag", MPI_Request_get_status(null, NULL, &status));
    ERR(MPI_ERR_REQUEST, "request", MPI_Grequest_complete(MPI_REQUEST_NULL));
    ERR(MPI_ERR_TYPE, "datatype", MPI_Get_count(&status, MPI_DATATYPE_NULL, &n));
    ERR(MPI_ERR_ARG, "count", MPI_Get_count(&status, MPI_INT, NULL));
    ERR(MPI_ERR_ARG, "status", MPI_Get_count(MPI_STATUS_IGNORE, MPI_INT, &n));
    ERR(MPI_ERR_ARG, "flag", MPI_Test_cancelled(&status, NULL));
    ERR(MPI_ERR_TYPE, "datatype", MPI_Get_elements(&status, MPI_DATATYPE_NULL, &n));
    ERR(MPI_ERR_TYPE, "datatype", MPI_Status_set_elements(&status, MPI_DATATYPE_NULL, 1));
}

static void add(void *in, void *inout, int *length, MPI_Datatype *datatype)
{
    (void)in, (void)inout, (void)length, (void)datatype;
}

static void collectives(void)
{
    int counts[2] = {1, 1}, negative[2] = {-1, -1}, displacements[2] = {0, 1};
    MPI_Comm world = MPI_COMM_WORLD;
    ERR(MPI_ERR_COMM, "comm", MPI_Barrier(MPI_COMM_NULL));
    ERR(MPI_ERR_ARG, "request", MPI_Ibarrier(self, NULL));
    ERR(MPI_ERR_ROOT, "root", MPI_Bcast(buf, 1, MPI_INT, size, world));
    ERR(MPI_ERR_ROOT, "root", MPI_Bcast(buf, 1, MPI_INT, -1, world));
    ERR(MPI_ERR_COUNT, "count", MPI_Bcast(buf, -1, MPI_INT, 0, world));
    ERR(MPI_ERR_TYPE, "datatype", MPI_Bcast(buf, 1, MPI_DATATYPE_NULL, 0, world));
    ERR(MPI_ERR_TYPE, "datatype", MPI_Bcast(buf, 1, uncommitted, 0, world));
    ERR(MPI_ERR_BUFFER, "buffer", MPI_Bcast(NULL, 1, MPI_INT, 0, world));
    ERR(MPI_ERR_ROOT, "root", MPI_Gather(buf, 1, MPI_INT, other, 1, MPI_INT, 9, world));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Gather(buf, 1, MPI_INT, buf, 1, MPI_INT, 0, self));
    ERR(MPI_ERR_COUNT, "sendcount", MPI_Gather(buf, -1, MPI_INT, other, 1, MPI_INT, 0, self));
    ERR(MPI_ERR_COUNT, "recvcount", MPI_Gather(buf, 1, MPI_INT, other, -1, MPI_INT, 0, self));
    ERR(MPI_ERR_TYPE, "sendtype", MPI_Gather(buf, 1, uncommitted, other, 2, MPI_INT, 0, self));
    ERR(MPI_ERR_TYPE, "recvtype", MPI_Gather(buf, 1, MPI_INT, other, 1, MPI_DATATYPE_NULL, 0, self));
    ERR(MPI_ERR_BUFFER, "sendbuf", MPI_Gather(NULL, 1, MPI_INT, other, 1, MPI_INT, 0, self));
    ERR(MPI_ERR_BUFFER, "recvbuf", MPI_Gather(buf, 1, MPI_INT, NULL, 1, MPI_INT, 0, self));
    ERR(MPI_ERR_ROOT, "root", MPI_Gatherv(buf, 1, MPI_INT, other, counts, displacements, MPI_INT, -5, self));
    ERR(MPI_ERR_COUNT, "recvcounts", MPI_Gatherv(buf, 1, MPI_INT, other, negative, displacements, MPI_INT, 0, self));
    ERR(MPI_ERR_ARG, "recvcounts", MPI_Gatherv(buf, 1, MPI_INT, other, NULL, displacements, MPI_INT, 0, self));
    ERR(MPI_ERR_ARG, "displs", MPI_Gatherv(buf, 1, MPI_INT, other, counts, NULL, MPI_INT, 0, self));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Gatherv(buf, 1, MPI_INT, buf, counts, displacements, MPI_INT, 0, self));
    ERR(MPI_ERR_ROOT, "root", MPI_Scatter(buf, 1, MPI_INT, other, 1, MPI_INT, 9, world));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Scatter(buf, 1, MPI_INT, buf, 1, MPI_INT, 0, self));
    ERR(MPI_ERR_COUNT, "sendcounts", MPI_Scatterv(buf, negative, displacements, MPI_INT, other, 1, MPI_INT, 0, self));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Scatterv(buf, counts, displacements, MPI_INT, buf, 1, MPI_INT, 0, self));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Allgather(buf, 1, MPI_INT, buf, 1, MPI_INT, self));
    ERR(MPI_ERR_TYPE, "recvtype", MPI_Allgather(buf, 1, MPI_INT, other, 1, uncommitted, self));
    /* What a process gives to itself is as long as what it takes. */
    ERR(MPI_ERR_COUNT, "sendcount", MPI_Allgather(buf, 0, MPI_INT, other, 1, MPI_INT, self));
    ERR(MPI_ERR_TRUNCATE, "sendcount", MPI_Alltoall(buf, 1, MPI_INT, other, 0, MPI_INT, self));
    ERR(MPI_ERR_COUNT, "sendcount", MPI_Gather(buf, 0, MPI_INT, other, 1, MPI_INT, 0, self));
    ERR(MPI_ERR_COUNT, "sendcount", MPI_Scatter(buf, 0, MPI_INT, other, 1, MPI_INT, 0, self));
    ERR(MPI_ERR_COUNT, "recvcounts", MPI_Allgatherv(buf, 1, MPI_INT, other, negative, displacements, MPI_INT, self));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Allgatherv(buf, 1, MPI_INT, buf, counts, displacements, MPI_INT, self));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Alltoall(buf, 1, MPI_INT, buf, 1, MPI_INT, self));
    ERR(MPI_ERR_COUNT, "sendcounts",
        MPI_Alltoallv(buf, negative, displacements, MPI_INT, other, counts, displacements, MPI_INT, self));
    ERR(MPI_ERR_BUFFER, NULL,
        MPI_Alltoallv(buf, counts, displacements, MPI_INT, buf, counts, displacements, MPI_INT, self));
    ERR(MPI_ERR_OP, "op", MPI_Reduce(buf, other, 1, MPI_INT, MPI_OP_NULL, 0, self));
    ERR(MPI_ERR_OP, "op", MPI_Reduce(buf, other, 1, MPI_INT, (MPI_Op)MPI_COMM_WORLD, 0, self));
    ERR(MPI_ERR_OP, "op", MPI_Reduce(buf, other, 1, MPI_DOUBLE, MPI_BAND, 0, self));
    ERR(MPI_ERR_OP, "op", MPI_Allreduce(buf, other, 1, MPI_FLOAT, MPI_MAXLOC, self));
    ERR(MPI_ERR_OP, "MPI_SIGNED_CHAR", MPI_Allreduce(buf, other, 1, MPI_CHAR, MPI_SUM, self));
    ERR(MPI_ERR_OP, "MPI_INT32_T", MPI_Allreduce(buf, other, 1, MPI_WCHAR, MPI_MAX, self));
    ERR(MPI_ERR_OP, "MPI_UINT8_T", MPI_Allreduce(buf, other, 1, MPI_BYTE, MPI_SUM, self));
    ERR(MPI_ERR_OP, "MPI_DOUBLE_INT", MPI_Allreduce(buf, other, 1, MPI_DOUBLE, MPI_MAXLOC, self));
    ERR(MPI_ERR_OP, "op", MPI_Allreduce(buf, other, 1, MPI_INT, MPI_REPLACE, self));
    ERR(MPI_ERR_ROOT, "root", MPI_Reduce(buf, other, 1, MPI_INT, MPI_SUM, 3, self));
    ERR(MPI_ERR_COUNT, "count", MPI_Reduce(buf, other, -1, MPI_INT, MPI_SUM, 0, self));
    ERR(MPI_ERR_TYPE, "datatype", MPI_Reduce(buf, other, 1, MPI_DATATYPE_NULL, MPI_SUM, 0, self));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Reduce(buf, buf, 1, MPI_INT, MPI_SUM, 0, self));
    ERR(MPI_ERR_BUFFER, "sendbuf", MPI_Reduce(NULL, other, 1, MPI_INT, MPI_SUM, 0, self));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Allreduce(buf, buf, 1, MPI_INT, MPI_SUM, self));
    ERR(MPI_ERR_BUFFER, "recvbuf", MPI_Allreduce(buf, NULL, 1, MPI_INT, MPI_SUM, self));
    ERR(MPI_ERR_BUFFER, "recvbuf", MPI_Allreduce(MPI_IN_PLACE, NULL, 1, MPI_INT, MPI_SUM, self));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Scan(buf, buf, 1, MPI_INT, MPI_SUM, self));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Exscan(buf, buf, 1, MPI_INT, MPI_SUM, self));
    ERR(MPI_ERR_COUNT, "recvcounts", MPI_Reduce_scatter(buf, other, negative, MPI_INT, MPI_SUM, self));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Reduce_scatter(buf, buf, counts, MPI_INT, MPI_SUM, self));
    ERR(MPI_ERR_COUNT, "recvcount", MPI_Reduce_scatter_block(buf, other, -1, MPI_INT, MPI_SUM, self));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Reduce_scatter_block(buf, buf, 1, MPI_INT, MPI_SUM, self));
    ERR(MPI_ERR_COUNT, "count", MPI_Reduce_local(buf, other, -1, MPI_INT, MPI_SUM));
    ERR(MPI_ERR_OP, "op", MPI_Reduce_local(buf, other, 1, MPI_INT, MPI_OP_NULL));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Reduce_local(buf, buf, 1, MPI_INT, MPI_SUM));
    ERR(MPI_ERR_COUNT, "count", MPI_Ibcast(buf, -1, MPI_INT, 0, self, &request));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Iallreduce(buf, buf, 1, MPI_INT, MPI_SUM, self, &request));
    ERR(MPI_ERR_ARG, "request", MPI_Iallreduce(buf, other, 1, MPI_INT, MPI_SUM, self, NULL));
    ERR(MPI_ERR_OP, "op", MPI_Op_free(&(MPI_Op){MPI_SUM}));
    ERR(MPI_ERR_OP, "op", MPI_Op_free(&(MPI_Op){MPI_OP_NULL}));
    ERR(MPI_ERR_ARG, "op", MPI_Op_create(add, 1, NULL));
    ERR(MPI_ERR_ARG, NULL, MPI_Op_create(NULL, 1, &(MPI_Op){MPI_OP_NULL}));
    ERR(MPI_ERR_OP, "op", MPI_Op_commutative(MPI_OP_NULL, &flag));
    ERR(MPI_ERR_ARG, "commute", MPI_Op_commutative(MPI_SUM, NULL));
}

static void datatypes(void)
{
    int lengths[2] = {1, -1}, places[2] = {0, 1}, sizes[2] = {4, 4}, large[2] = {5, 1}, starts[2] = {0, 0};
    MPI_Aint bytes[2] = {0, 8}, extent;
    MPI_Datatype types[2] = {MPI_INT, MPI_DATATYPE_NULL}, both[2] = {MPI_INT, MPI_INT};
    MPI_Datatype predefined = MPI_INT;
    ERR(MPI_ERR_TYPE, "datatype", MPI_Type_free(&predefined));
    ERR(MPI_ERR_TYPE, "datatype", MPI_Type_free(&(MPI_Datatype){MPI_DATATYPE_NULL}));
    ERR(MPI_ERR_ARG, "datatype", MPI_Type_free(NULL));
    ERR(MPI_ERR_TYPE, "datatype", MPI_Type_commit(&(MPI_Datatype){MPI_DATATYPE_NULL}));
    ERR(MPI_ERR_COUNT, "count", MPI_Type_contiguous(-1, MPI_INT, &type));
    ERR(MPI_ERR_TYPE, "oldtype", MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type));
    ERR(MPI_ERR_ARG, "newtype", MPI_Type_contiguous(1, MPI_INT, NULL));
    ERR(MPI_ERR_COUNT, "count", MPI_Type_vector(-1, 1, 1, MPI_INT, &type));
    ERR(MPI_ERR_ARG, "blocklength", MPI_Type_vector(1, -1, 1, MPI_INT, &type));
    ERR(MPI_ERR_TYPE, "oldtype", MPI_Type_vector(1, 1, 1, freed_type, &type));
    ERR(MPI_ERR_ARG, "blocklength", MPI_Type_create_hvector(1, -1, 1, MPI_INT, &type));
    ERR(MPI_ERR_ARG, "blocklength", MPI_Type_indexed(2, lengths, places, MPI_INT, &type));
    ERR(MPI_ERR_ARG, "blocklength", MPI_Type_indexed(2, NULL, places, MPI_INT, &type));
    ERR(MPI_ERR_ARG, "displacements", MPI_Type_indexed(1, lengths, NULL, MPI_INT, &type));
    ERR(MPI_ERR_COUNT, "count", MPI_Type_indexed(-1, lengths, places, MPI_INT, &type));
    ERR(MPI_ERR_ARG, "blocklength", MPI_Type_create_indexed_block(2, -1, places, MPI_INT, &type));
    ERR(MPI_ERR_ARG, "blocklength", MPI_Type_create_struct(2, lengths, bytes, both, &type));
    ERR(MPI_ERR_TYPE, "types", MPI_Type_create_struct(2, places, bytes, types, &type));
    ERR(MPI_ERR_ARG, "subsizes",
        MPI_Type_create_subarray(2, sizes, large, starts, MPI_ORDER_C, MPI_INT, &type));
    ERR(MPI_ERR_ARG, "order", MPI_Type_create_subarray(2, sizes, sizes, starts, 77, MPI_INT, &type));
    ERR(MPI_ERR_ARG, "ndims", MPI_Type_create_subarray(-2, sizes, sizes, starts, MPI_ORDER_C, MPI_INT, &type));
    ERR(MPI_ERR_TYPE, "oldtype", MPI_Type_create_resized(MPI_DATATYPE_NULL, 0, 4, &type));
    ERR(MPI_ERR_TYPE, "datatype", MPI_Type_size(MPI_DATATYPE_NULL, &n));
    ERR(MPI_ERR_ARG, "size", MPI_Type_size(MPI_INT, NULL));
    ERR(MPI_ERR_ARG, "lb", MPI_Type_get_extent(MPI_INT, NULL, &extent));
    ERR(MPI_ERR_ARG, "extent", MPI_Type_get_extent(MPI_INT, &extent, NULL));
    ERR(MPI_ERR_TYPE, NULL, MPI_Type_get_contents(MPI_INT, 0, 0, 0, NULL, NULL, NULL));
    ERR(MPI_ERR_TYPE, "oldtype", MPI_Type_dup(MPI_DATATYPE_NULL, &type));
    ERR(MPI_ERR_ARG, "typeclass", MPI_Type_match_size(77, 4, &type));
    ERR(MPI_ERR_ARG, "size", MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, &type));
    ERR(MPI_ERR_ARG, "p", MPI_Type_create_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, &type));
    ERR(MPI_ERR_ARG, NULL, MPI_Type_create_f90_real(1000, 10, &type));
    ERR(MPI_ERR_ARG, "r", MPI_Type_create_f90_integer(-3, &type));
    ERR(MPI_ERR_TYPE, "datatype", MPI_Type_set_name(MPI_DATATYPE_NULL, "x"));
    ERR(MPI_ERR_ARG, "type_name", MPI_Type_set_name(uncommitted, NULL));
    ERR(MPI_ERR_COUNT, "incount", MPI_Pack(buf, -1, MPI_INT, other, 64, &n, self));
    ERR(MPI_ERR_TYPE, "datatype", MPI_Pack(buf, 1, MPI_DATATYPE_NULL, other, 64, &n, self));
    n = 0;
    ERR(-1, "outbuf", MPI_Pack(buf, 10, MPI_INT, other, 4, &n, self));
    ERR(MPI_ERR_ARG, "position", MPI_Pack(buf, 1, MPI_INT, other, 64, NULL, self));
    ERR(MPI_ERR_COMM, "comm", MPI_Pack(buf, 1, MPI_INT, other, 64, &n, MPI_COMM_NULL));
    ERR(MPI_ERR_COUNT, "outcount", MPI_Unpack(buf, 64, &n, other, -1, MPI_INT, self));
    ERR(MPI_ERR_COUNT, "incount", MPI_Pack_size(-1, MPI_INT, self, &n));
    ERR(MPI_ERR_UNSUPPORTED_DATAREP, "datarep", MPI_Pack_external_size("native", 1, MPI_INT, &extent));
}

static void communicators(void)
{
    MPI_Group group, none;
    MPI_Comm new;
    int ranks[2] = {0, 0}, outside[1] = {99}, range[1][3] = {{0, 5, 0}};
    char name[MPI_MAX_OBJECT_NAME];
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    ERR(MPI_ERR_COMM, "comm", MPI_Comm_size(MPI_COMM_NULL, &n));
    ERR(MPI_ERR_ARG, "size", MPI_Comm_size(self, NULL));
    ERR(MPI_ERR_ARG, "rank", MPI_Comm_rank(self, NULL));
    ERR(MPI_ERR_COMM, "comm", MPI_Comm_rank(freed_comm, &n));
    ERR(MPI_ERR_COMM, "comm1", MPI_Comm_compare(MPI_COMM_NULL, self, &n));
    ERR(MPI_ERR_COMM, "comm2", MPI_Comm_compare(self, MPI_COMM_NULL, &n));
    ERR(MPI_ERR_ARG, "result", MPI_Comm_compare(self, self, NULL));
    ERR(MPI_ERR_COMM, "comm", MPI_Comm_dup(MPI_COMM_NULL, &new));
    ERR(MPI_ERR_ARG, "newcomm", MPI_Comm_dup(self, NULL));
    ERR(MPI_ERR_ARG, "newcomm", MPI_Comm_split(self, 0, 0, NULL));
    ERR(MPI_ERR_ARG, "split_type", MPI_Comm_split_type(self, 4711, 0, MPI_INFO_NULL, &new));
    ERR(MPI_ERR_INFO, "info", MPI_Comm_split_type(self, MPI_COMM_TYPE_SHARED, 0, (MPI_Info)MPI_INT, &new));
    ERR(MPI_ERR_GROUP, "group", MPI_Comm_create(self, MPI_GROUP_NULL, &new));
    ERR(MPI_ERR_COMM, "comm", MPI_Comm_free(&(MPI_Comm){MPI_COMM_WORLD}));
    ERR(MPI_ERR_COMM, "comm", MPI_Comm_free(&(MPI_Comm){MPI_COMM_NULL}));
    ERR(MPI_ERR_ARG, "comm", MPI_Comm_free(NULL));
    ERR(MPI_ERR_ARG, "comm_name", MPI_Comm_set_name(self, NULL));
    ERR(MPI_ERR_ARG, "resultlen", MPI_Comm_get_name(self, name, NULL));
    ERR(MPI_ERR_ARG, "flag", MPI_Comm_test_inter(self, NULL));
    ERR(MPI_ERR_COMM, "comm", MPI_Comm_remote_size(self, &n));
    ERR(MPI_ERR_COMM, "comm", MPI_Comm_remote_group(self, &none));
    ERR(MPI_ERR_COMM, "intercomm", MPI_Intercomm_merge(self, 0, &new));
    ERR(MPI_ERR_GROUP, "group", MPI_Group_size(MPI_GROUP_NULL, &n));
    ERR(MPI_ERR_ARG, "size", MPI_Group_size(group, NULL));
    ERR(MPI_ERR_ARG, "rank", MPI_Group_rank(group, NULL));
    ERR(MPI_ERR_GROUP, "group1", MPI_Group_union(MPI_GROUP_NULL, group, &none));
    ERR(MPI_ERR_GROUP, "group2", MPI_Group_union(group, MPI_GROUP_NULL, &none));
    ERR(MPI_ERR_ARG, "newgroup", MPI_Group_union(group, group, NULL));
    ERR(MPI_ERR_RANK, "ranks", MPI_Group_incl(group, 1, outside, &none));
    ERR(MPI_ERR_RANK, "ranks", MPI_Group_incl(group, 2, ranks, &none));
    ERR(-1, "n", MPI_Group_incl(group, -1, ranks, &none));
    ERR(MPI_ERR_ARG, "ranks", MPI_Group_incl(group, 1, NULL, &none));
    ERR(MPI_ERR_RANK, "ranks", MPI_Group_excl(group, 1, outside, &none));
    ERR(MPI_ERR_ARG, "ranges", MPI_Group_range_incl(group, 1, range, &none));
    ERR(MPI_ERR_RANK, "ranks1", MPI_Group_translate_ranks(group, 1, outside, group, &n));
    ERR(MPI_ERR_GROUP, "group", MPI_Group_free(&(MPI_Group){MPI_GROUP_NULL}));
    OK(MPI_Group_free(&group));
}

static void of_session(MPI_Session *session, int *code, ...)
{
    (void)session, (void)code;
}

static void others(void)
{
    int key = MPI_KEYVAL_INVALID, predefined = MPI_TAG_UB;
    char text[16];
    void *value;
    MPI_Info info;
    MPI_Errhandler handler;
    MPI_Comm new;
    int dims[2] = {0, 0}, periods[2] = {0, 0}, negative[1] = {-1}, huge[1] = {1000};
    ERR(MPI_ERR_KEYVAL, "keyval", MPI_Comm_set_attr(self, MPI_KEYVAL_INVALID, buf));
    ERR(MPI_ERR_KEYVAL, "keyval", MPI_Comm_set_attr(self, MPI_TAG_UB, buf));
    ERR(MPI_ERR_KEYVAL, "keyval", MPI_Comm_get_attr(self, MPI_KEYVAL_INVALID, &value, &flag));
    ERR(MPI_ERR_ARG, "flag", MPI_Comm_get_attr(self, MPI_TAG_UB, &value, NULL));
    ERR(MPI_ERR_KEYVAL, "keyval", MPI_Comm_delete_attr(self, MPI_TAG_UB));
    ERR(MPI_ERR_KEYVAL, "keyval", MPI_Comm_free_keyval(&key));
    ERR(MPI_ERR_KEYVAL, "keyval", MPI_Comm_free_keyval(&predefined));
    ERR(MPI_ERR_ARG, "keyval", MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, NULL, NULL));
    ERR(MPI_ERR_KEYVAL, "keyval", MPI_Type_set_attr(uncommitted, MPI_KEYVAL_INVALID, buf));

    OK(MPI_Info_create(&info));
    ERR(MPI_ERR_INFO_KEY, "key", MPI_Info_set(info, NULL, "x"));
    ERR(MPI_ERR_INFO_KEY, "key", MPI_Info_set(info, "", "x"));
    ERR(MPI_ERR_INFO_VALUE, "value", MPI_Info_set(info, "x", NULL));
    ERR(MPI_ERR_INFO, "info", MPI_Info_set(MPI_INFO_NULL, "x", "y"));
    ERR(MPI_ERR_INFO_NOKEY, "key", MPI_Info_delete(info, "absent"));
    ERR(MPI_ERR_INFO, "info", MPI_Info_get_nkeys(MPI_INFO_NULL, &n));
    ERR(MPI_ERR_ARG, "nkeys", MPI_Info_get_nkeys(info, NULL));
    ERR(-1, "n", MPI_Info_get_nthkey(info, 3, text));
    ERR(MPI_ERR_ARG, "flag", MPI_Info_get_string(info, "x", &n, text, NULL));
    n = -1;
    ERR(MPI_ERR_ARG, "buflen", MPI_Info_get_string(info, "x", &n, text, &flag));
    ERR(MPI_ERR_ARG, "info", MPI_Info_create(NULL));
    ERR(MPI_ERR_INFO, "info", MPI_Info_free(&(MPI_Info){MPI_INFO_NULL}));
    ERR(MPI_ERR_INFO, "info", MPI_Info_dup(MPI_INFO_NULL, &info));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", "3"));
    ERR(MPI_ERR_INFO_VALUE, "info", MPI_Alloc_mem(10, info, &value));
    OK(MPI_Info_free(&info));

    ERR(-1, "errhandler", MPI_Comm_set_errhandler(self, MPI_ERRHANDLER_NULL));
    ERR(MPI_ERR_ARG, "errhandler", MPI_Comm_get_errhandler(self, NULL));
    ERR(-1, "errhandler", MPI_Errhandler_free(&(MPI_Errhandler){MPI_ERRHANDLER_NULL}));
    ERR(MPI_ERR_ARG, NULL, MPI_Comm_create_errhandler(NULL, &handler));
    OK(MPI_Session_create_errhandler(of_session, &handler));
    ERR(MPI_ERR_ERRHANDLER, "errhandler", MPI_Comm_set_errhandler(self, handler));
    ERR(MPI_ERR_ERRHANDLER, "errhandler", MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "x", MPI_INFO_NULL, handler, &new));
    OK(MPI_Errhandler_free(&handler));
    ERR(MPI_ERR_BUFFER, "buffer", MPI_Buffer_attach(NULL, 1000));
    ERR(MPI_ERR_ARG, "errorcode", MPI_Error_class(123456, &n));
    ERR(MPI_ERR_ARG, "errorclass", MPI_Add_error_code(123456, &n));
    ERR(MPI_ERR_ARG, "errorcode", MPI_Add_error_string(MPI_ERR_TAG, "no"));
    ERR(MPI_ERR_ARG, "errorclass", MPI_Remove_error_class(MPI_ERR_TAG));
    ERR(MPI_ERR_ARG, "errorcode", MPI_Remove_error_code(123456));
    ERR(MPI_ERR_ARG, "size", MPI_Alloc_mem(-1, MPI_INFO_NULL, &value));
    ERR(MPI_ERR_ARG, "baseptr", MPI_Alloc_mem(1, MPI_INFO_NULL, NULL));
    ERR(MPI_ERR_BASE, "base", MPI_Free_mem(buf));
    ERR(MPI_ERR_ARG, "flag", MPI_Initialized(NULL));
    ERR(MPI_ERR_ARG, "version", MPI_Get_version(NULL, &n));
    ERR(MPI_ERR_ARG, "logical_size", MPI_Abi_set_fortran_booleans(3, buf, other));

    ERR(MPI_ERR_TOPOLOGY, "comm", MPI_Cartdim_get(self, &n));
    ERR(MPI_ERR_TOPOLOGY, "comm", MPI_Cart_rank(self, dims, &n));
    ERR(MPI_ERR_TOPOLOGY, "comm", MPI_Graphdims_get(self, &n, &n));
    ERR(MPI_ERR_TOPOLOGY, "comm", MPI_Neighbor_alltoall(buf, 1, MPI_INT, other, 1, MPI_INT, self));
    ERR(-1, "dims", MPI_Cart_create(self, 1, negative, periods, 0, &new));
    ERR(-1, NULL, MPI_Cart_create(self, 1, huge, periods, 0, &new));
    ERR(-1, "ndims", MPI_Cart_create(self, -1, dims, periods, 0, &new));
    ERR(-1, "ndims", MPI_Dims_create(4, -1, dims));
    ERR(-1, "nnodes", MPI_Dims_create(-4, 2, dims));
    ERR(MPI_ERR_DIMS, "dims", MPI_Dims_create(4, 1, negative));
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    OK(MPI_Comm_dup(MPI_COMM_SELF, &self));
    handles();
    point_to_point();
    requests();
    collectives();
    datatypes();
    communicators();
    others();
    OK(MPI_Type_free(&uncommitted));
    OK(MPI_Comm_free(&self));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    return verdict(rank);
}
