/* SPDX-License-Identifier: Apache-2.0 */
/* Erroneous calls that the standard lets a library detect: process topologies, intercommunicators, sessions, requests of other
   kinds, buffered mode, persistent and neighbourhood operations, large counts, attributes, status.
   ranks: 1 2 */
#include "erroneous.h"
#include <stdint.h>

static int buf[64], other[64], size, rank, n, flag;
static MPI_Comm self, cart, graph;
static MPI_Request request;
static MPI_Status status;

static void topologies(void)
{
    int dims[2] = {1, 1}, periods[2] = {0, 0}, zero[2] = {0, 1}, outside[2] = {5, 0}, index[1] = {0}, edges[1] = {7};
    int far[1] = {9}, weights[1] = {-1}, bad_dims[2] = {3, 0}, remain[2] = {1, 0};
    MPI_Comm new;
    ERR(MPI_ERR_ARG, "comm_cart", MPI_Cart_create(self, 1, dims, periods, 0, NULL));
    ERR(-1, "dims", MPI_Cart_create(self, 2, zero, periods, 0, &new));
    ERR(MPI_ERR_ARG, "dims", MPI_Cart_create(self, 2, NULL, periods, 0, &new));
    ERR(MPI_ERR_ARG, "periods", MPI_Cart_create(self, 2, dims, NULL, 0, &new));
    ERR(MPI_ERR_COMM, "comm", MPI_Cart_create(MPI_COMM_NULL, 1, dims, periods, 0, &new));
    ERR(-1, "direction", MPI_Cart_shift(cart, 7, 1, &n, &flag));
    ERR(-1, "direction", MPI_Cart_shift(cart, -1, 1, &n, &flag));
    ERR(MPI_ERR_TOPOLOGY, "comm", MPI_Cart_shift(self, 0, 1, &n, &flag));
    ERR(MPI_ERR_ARG, "rank_source", MPI_Cart_shift(cart, 0, 1, NULL, &flag));
    ERR(-1, "coords", MPI_Cart_rank(cart, outside, &n));
    ERR(MPI_ERR_RANK, "rank", MPI_Cart_coords(cart, 55, 2, dims));
    ERR(MPI_ERR_TOPOLOGY, "comm", MPI_Cart_sub(self, remain, &new));
    ERR(MPI_ERR_TOPOLOGY, "comm", MPI_Cart_get(self, 2, dims, periods, dims));
    ERR(MPI_ERR_ARG, "ndims", MPI_Cartdim_get(cart, NULL));
    ERR(MPI_ERR_ARG, "status", MPI_Topo_test(self, NULL));
    ERR(-1, "nnodes", MPI_Graph_create(self, -1, index, edges, 0, &new));
    ERR(-1, "edges", MPI_Graph_create(self, 1, (int[]){1}, edges, 0, &new));
    ERR(MPI_ERR_TOPOLOGY, "comm", MPI_Graph_get(cart, 1, 1, index, edges));
    ERR(MPI_ERR_RANK, "rank", MPI_Graph_neighbors_count(graph, 4, &n));
    ERR(MPI_ERR_TOPOLOGY, "comm", MPI_Dist_graph_neighbors_count(self, &n, &n, &flag));
    ERR(-1, "sources",
        MPI_Dist_graph_create_adjacent(self, 1, far, MPI_UNWEIGHTED, 0, index, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &new));
    ERR(-1, "indegree",
        MPI_Dist_graph_create_adjacent(self, -1, far, MPI_UNWEIGHTED, 0, index, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &new));
    ERR(-1, NULL, MPI_Dist_graph_create_adjacent(self, 1, index, weights, 0, index, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &new));
    ERR(MPI_ERR_DIMS, "nnodes", MPI_Dims_create(4, 2, bad_dims));
    ERR(MPI_ERR_BUFFER, "sendbuf", MPI_Neighbor_allgather(NULL, 1, MPI_INT, other, 1, MPI_INT, graph));
    ERR(MPI_ERR_COUNT, "sendcount", MPI_Neighbor_alltoall(buf, -1, MPI_INT, other, 1, MPI_INT, graph));
    ERR(MPI_ERR_ARG, "request", MPI_Ineighbor_allgather(buf, 1, MPI_INT, other, 1, MPI_INT, graph, NULL));
}

static void groups_of_processes(void)
{
    MPI_Comm new;
    MPI_Group group, none;
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Info info;
    char text[64];
    OK(MPI_Comm_group(self, &group));
    ERR(MPI_ERR_RANK, "local_leader", MPI_Intercomm_create(self, 4, MPI_COMM_WORLD, 0, 0, &new));
    ERR(MPI_ERR_COMM, "local_comm", MPI_Intercomm_create(MPI_COMM_NULL, 0, MPI_COMM_WORLD, 0, 0, &new));
    ERR(MPI_ERR_ARG, "newintercomm", MPI_Intercomm_create(self, 0, MPI_COMM_WORLD, 0, 0, NULL));
    ERR(MPI_ERR_TAG, "tag", MPI_Intercomm_create(self, 0, MPI_COMM_WORLD, 0, -7, &new));
    ERR(MPI_ERR_GROUP, "group", MPI_Comm_create_group(self, MPI_GROUP_NULL, 0, &new));
    ERR(MPI_ERR_TAG, "tag", MPI_Comm_create_group(self, group, -3, &new));
    ERR(MPI_ERR_ARG, "newcomm", MPI_Comm_create_group(self, group, 0, NULL));
    ERR(MPI_ERR_ARG, "request", MPI_Comm_idup(self, &new, NULL));
    ERR(MPI_ERR_INFO, "info", MPI_Comm_set_info(self, (MPI_Info)MPI_INT));
    ERR(MPI_ERR_ARG, "info", MPI_Comm_get_info(self, NULL));
    ERR(MPI_ERR_SESSION, "session", MPI_Session_finalize(&session));
    ERR(MPI_ERR_SESSION, "session", MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n));
    ERR(MPI_ERR_SESSION, "session", MPI_Session_get_info(session, &info));
    ERR(MPI_ERR_ARG, "session", MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, NULL));
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    n = sizeof text;
    ERR(MPI_ERR_ARG, "n", MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 1000, &n, text));
    ERR(-1, "pset", MPI_Session_get_pset_info(session, "none", &info));
    ERR(-1, "pset", MPI_Group_from_session_pset(session, "none", &none));
    OK(MPI_Session_finalize(&session));
    OK(MPI_Group_free(&group));
}

static int gq(void *state, MPI_Status *s)
{
    (void)state, (void)s;
    return MPI_SUCCESS;
}

static void other_requests(void)
{
    MPI_Request null = MPI_REQUEST_NULL, partitioned, parts[1];
    void *address;
    int detached;
    ERR(MPI_ERR_ARG, "request", MPI_Grequest_start(gq, NULL, NULL, NULL, NULL));
    ERR(MPI_ERR_COUNT, "count", MPI_Psend_init(buf, 1, -1, MPI_INT, 0, 0, self, MPI_INFO_NULL, &request));
    ERR(-1, "partitions", MPI_Psend_init(buf, -1, 1, MPI_INT, 0, 0, self, MPI_INFO_NULL, &request));
    ERR(MPI_ERR_RANK, "dest", MPI_Psend_init(buf, 1, 1, MPI_INT, 9, 0, self, MPI_INFO_NULL, &request));
    ERR(MPI_ERR_TAG, "tag", MPI_Precv_init(buf, 1, 1, MPI_INT, 0, -1, self, MPI_INFO_NULL, &request));
    ERR(MPI_ERR_REQUEST, "request", MPI_Pready(0, MPI_REQUEST_NULL));
    OK(MPI_Psend_init(buf, 2, 1, MPI_INT, 0, 3, self, MPI_INFO_NULL, &partitioned));
    OK(MPI_Precv_init(other, 2, 1, MPI_INT, 0, 3, self, MPI_INFO_NULL, &parts[0]));
    OK(MPI_Start(&parts[0]));
    OK(MPI_Start(&partitioned));
    ERR(MPI_ERR_ARG, "partition", MPI_Pready(2, partitioned));
    ERR(MPI_ERR_ARG, "partition", MPI_Pready(-1, partitioned));
    ERR(MPI_ERR_ARG, "partition", MPI_Parrived(parts[0], 2, &flag));
    OK(MPI_Pready_range(0, 1, partitioned));
    OK(MPI_Wait(&partitioned, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&parts[0], MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&partitioned));
    OK(MPI_Request_free(&parts[0]));
    ERR(MPI_ERR_COUNT, "size", MPI_Buffer_attach(buf, -1));
    OK(MPI_Buffer_attach(buf, sizeof buf));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Buffer_attach(other, sizeof other));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Bsend(other, 64, MPI_INT, 0, 0, self));
    OK(MPI_Buffer_detach(&address, &detached));
    ERR(MPI_ERR_COMM, "comm", MPI_Comm_attach_buffer(MPI_COMM_NULL, buf, sizeof buf));
    ERR(MPI_ERR_COUNT, "recvcount", MPI_Isendrecv(buf, 1, MPI_INT, 0, 0, other, -1, MPI_INT, 0, 0, self, &request));
    ERR(MPI_ERR_ARG, "request", MPI_Isendrecv_replace(buf, 1, MPI_INT, 0, 0, 0, 0, self, NULL));
    /* Only persistent requests that are not active are started. */
    OK(MPI_Recv_init(other, 1, MPI_INT, 0, 8, self, &request));
    OK(MPI_Start(&request));
    ERR(MPI_ERR_REQUEST, "request", MPI_Start(&request));
    OK(MPI_Send(buf, 1, MPI_INT, 0, 8, self));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));
}

static void collectives(void)
{
    int counts[2] = {1, 1}, places[2] = {0, 4};
    MPI_Count large[2] = {-1, -1};
    MPI_Aint far[2] = {0, 4};
    MPI_Datatype types[2] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL}, good[2] = {MPI_INT, MPI_INT};
    ERR(MPI_ERR_COUNT, "count", MPI_Bcast_c(buf, -5, MPI_INT, 0, self));
    ERR(MPI_ERR_ROOT, "root", MPI_Ibcast(buf, 1, MPI_INT, 17, self, &request));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Iallgather(buf, 1, MPI_INT, buf, 1, MPI_INT, self, &request));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Igather(buf, 1, MPI_INT, buf, 1, MPI_INT, 0, self, &request));
    ERR(MPI_ERR_OP, "op", MPI_Ireduce(buf, other, 1, MPI_INT, MPI_OP_NULL, 0, self, &request));
    ERR(MPI_ERR_COUNT, "recvcounts", MPI_Allgatherv_c(buf, 1, MPI_INT, other, large, far, MPI_INT, self));
    ERR(MPI_ERR_TYPE, "sendtypes", MPI_Alltoallw(buf, counts, places, types, other, counts, places, good, self));
    ERR(MPI_ERR_TYPE, "recvtypes", MPI_Alltoallw(buf, counts, places, good, other, counts, places, types, self));
    ERR(MPI_ERR_ARG, "sendtypes", MPI_Alltoallw(buf, counts, places, NULL, other, counts, places, good, self));
    ERR(MPI_ERR_INFO, "info", MPI_Barrier_init(self, (MPI_Info)MPI_INT, &request));
    ERR(MPI_ERR_ARG, "request", MPI_Bcast_init(buf, 1, MPI_INT, 0, self, MPI_INFO_NULL, NULL));
    ERR(MPI_ERR_ROOT, "root", MPI_Bcast_init(buf, 1, MPI_INT, -8, self, MPI_INFO_NULL, &request));
    ERR(MPI_ERR_OP, "op", MPI_Allreduce_init(buf, other, 1, MPI_DOUBLE, MPI_LXOR, self, MPI_INFO_NULL, &request));
    ERR(MPI_ERR_BUFFER, NULL, MPI_Allreduce_init(buf, buf, 1, MPI_INT, MPI_SUM, self, MPI_INFO_NULL, &request));
    ERR(MPI_ERR_COUNT, "recvcount", MPI_Ireduce_scatter_block(buf, other, -1, MPI_INT, MPI_SUM, self, &request));
}

static void large_counts_and_status(void)
{
    MPI_Datatype type;
    MPI_Count lengths[1] = {-1}, count;
    MPI_Aint extent;
    int key;
    ERR(MPI_ERR_COUNT, "count", MPI_Type_contiguous_c(-1, MPI_INT, &type));
    ERR(MPI_ERR_ARG, "blocklength", MPI_Type_vector_c(1, -1, 1, MPI_INT, &type));
    ERR(MPI_ERR_ARG, "blocklength", MPI_Type_indexed_c(1, lengths, lengths, MPI_INT, &type));
    ERR(MPI_ERR_ARG, "newtype", MPI_Type_create_resized(MPI_INT, 0, 8, NULL));
    ERR(MPI_ERR_ARG, "size", MPI_Type_size_c(MPI_INT, NULL));
    ERR(MPI_ERR_ARG, "distribs",
        MPI_Type_create_darray(1, 0, 1, (int[]){4}, (int[]){77}, (int[]){MPI_DISTRIBUTE_DFLT_DARG}, (int[]){1}, MPI_ORDER_C,
                               MPI_INT, &type));
    ERR(-1, "rank", MPI_Type_create_darray(1, 3, 1, (int[]){4}, (int[]){MPI_DISTRIBUTE_BLOCK}, (int[]){4}, (int[]){1},
                                           MPI_ORDER_C, MPI_INT, &type));
    ERR(MPI_ERR_TYPE, "value_type", MPI_Type_get_value_index(MPI_DATATYPE_NULL, MPI_INT, &type));
    ERR(MPI_ERR_ARG, "count", MPI_Get_elements_c(&status, MPI_INT, NULL));
    ERR(MPI_ERR_ARG, "status", MPI_Status_set_cancelled(NULL, 1));
    ERR(MPI_ERR_ARG, "source", MPI_Status_get_source(&status, NULL));
    ERR(MPI_ERR_ARG, "lb", MPI_Type_get_true_extent(MPI_INT, NULL, &extent));
    ERR(MPI_ERR_TYPE, "datatype", MPI_Pack_external_size("external32", 1, MPI_DATATYPE_NULL, &extent));
    ERR(MPI_ERR_COUNT, "outcount", MPI_Unpack_c(buf, 64, &(MPI_Count){0}, other, -1, MPI_INT, self));
    ERR(MPI_ERR_ARG, "keyval", MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, NULL, NULL));
    OK(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &key, NULL));
    ERR(MPI_ERR_KEYVAL, "keyval", MPI_Comm_set_attr(self, key, buf));
    OK(MPI_Type_free_keyval(&key));
    ERR(MPI_ERR_KEYVAL, "keyval", MPI_Type_free_keyval(&(int){12345}));
    (void)count;
}

/* Functions whose bodies are shared: each names its own arguments. */
static void names(void)
{
    MPI_Comm new;
    MPI_Group group;
    MPI_Session session;
    MPI_Request requests[2] = {(MPI_Request)MPI_COMM_WORLD, MPI_REQUEST_NULL};
    int one[1] = {1}, zero[1] = {0}, key = 12345, range[1][3] = {{0, 9, 1}}, at = 0;
    MPI_Datatype types[1] = {MPI_INT};
    ERR(MPI_ERR_COMM, "argument comm_old ", MPI_Cart_create(MPI_COMM_NULL, 1, one, zero, 0, &new));
    ERR(MPI_ERR_COMM, "argument comm_old ", MPI_Graph_create(MPI_COMM_NULL, 1, one, zero, 0, &new));
    ERR(MPI_ERR_ARG, "argument comm_graph ", MPI_Graph_create(self, 1, one, zero, 0, NULL));
    ERR(MPI_ERR_COMM, "argument comm_old ",
        MPI_Dist_graph_create_adjacent(MPI_COMM_NULL, 0, zero, MPI_UNWEIGHTED, 0, zero, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &new));
    ERR(MPI_ERR_ARG, "argument comm_dist_graph ",
        MPI_Dist_graph_create(self, 0, zero, zero, zero, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, NULL));
    ERR(MPI_ERR_COMM, "argument intercomm ", MPI_Intercomm_merge(self, 0, &new));
    ERR(MPI_ERR_KEYVAL, "argument comm_keyval ", MPI_Comm_delete_attr(self, key));
    ERR(MPI_ERR_KEYVAL, "argument type_keyval ", MPI_Type_delete_attr(MPI_INT, key));
    ERR(MPI_ERR_KEYVAL, "argument keyval ", MPI_Attr_delete(self, key));
    ERR(MPI_ERR_FILE, "argument fh ", MPI_File_get_group(MPI_FILE_NULL, &group));
    ERR(MPI_ERR_WIN, "argument win ", MPI_Win_get_group(MPI_WIN_NULL, &group));
    OK(MPI_Comm_group(self, &group));
    ERR(MPI_ERR_RANK, "argument ranges ", MPI_Group_range_incl(group, 1, range, &(MPI_Group){MPI_GROUP_NULL}));
    OK(MPI_Group_free(&group));
    ERR(MPI_ERR_TAG, "argument sendtag ",
        MPI_Sendrecv_replace(buf, 1, MPI_INT, MPI_PROC_NULL, -7, MPI_PROC_NULL, 0, self, &status));
    ERR(MPI_ERR_TAG, "argument recvtag ", MPI_Isendrecv_replace(buf, 1, MPI_INT, 0, 0, 0, -7, self, &request));
    ERR(MPI_ERR_REQUEST, "argument array_of_requests ", MPI_Waitany(2, requests, &n, &status));
    ERR(MPI_ERR_REQUEST, "argument array_of_requests ", MPI_Request_get_status_any(2, requests, &n, &flag, &status));
    ERR(MPI_ERR_ARG, "argument sdispls ", MPI_Alltoallv(buf, one, NULL, MPI_INT, other, one, zero, MPI_INT, self));
    ERR(MPI_ERR_ARG, "argument rdispls ", MPI_Alltoallw(buf, one, zero, types, other, one, NULL, types, self));
    ERR(MPI_ERR_ARG, "argument displs ", MPI_Gatherv(buf, 1, MPI_INT, other, one, NULL, MPI_INT, 0, self));
    ERR(MPI_ERR_ARG, "argument displs ", MPI_Scatterv(buf, one, NULL, MPI_INT, other, 1, MPI_INT, 0, self));
    ERR(MPI_ERR_ARG, "argument outsize ", MPI_Pack(buf, 1, MPI_INT, other, -1, &at, self));
    ERR(MPI_ERR_ARG, "argument insize ", MPI_Unpack(buf, -1, &at, other, 1, MPI_INT, self));
    ERR(MPI_ERR_ERRHANDLER, "argument errhandler ", MPI_Session_init(MPI_INFO_NULL, MPI_ERRHANDLER_NULL, &session));
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    ERR(MPI_ERR_INFO, "argument info ", MPI_Session_get_num_psets(session, (MPI_Info)MPI_COMM_WORLD, &n));
    ERR(MPI_ERR_INFO, "argument info ", MPI_Session_get_nth_pset(session, (MPI_Info)MPI_INT, 0, &at, NULL));
    OK(MPI_Session_finalize(&session));
}

/* More items than any memory has. */
static void too_many(void)
{
    MPI_Datatype type, types[1] = {MPI_INT};
    MPI_Count one[1] = {1};
    ERR(MPI_ERR_COUNT, "no memory holds", MPI_Type_indexed_c(INT64_MAX, one, one, MPI_INT, &type));
    ERR(MPI_ERR_COUNT, "no memory holds", MPI_Type_create_hindexed_block_c(INT64_MAX, 1, one, MPI_INT, &type));
    ERR(MPI_ERR_COUNT, "no memory holds", MPI_Type_create_struct_c(INT64_MAX, one, one, types, &type));
}

int main(int argc, char **argv)
{
    int ones[2] = {1, 1}, zeros[2] = {0, 0};
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    OK(MPI_Comm_dup(MPI_COMM_SELF, &self));
    OK(MPI_Cart_create(self, 2, ones, zeros, 0, &cart));
    OK(MPI_Graph_create(self, 1, ones, zeros, 0, &graph));
    MPI_Comm_set_errhandler(cart, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(graph, MPI_ERRORS_RETURN);
    topologies();
    groups_of_processes();
    other_requests();
    collectives();
    large_counts_and_status();
    names();
    too_many();
    OK(MPI_Comm_free(&cart));
    OK(MPI_Comm_free(&graph));
    OK(MPI_Comm_free(&self));
    OK(MPI_Finalize());
    return verdict(rank);
}
