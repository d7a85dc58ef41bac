/* SPDX-License-Identifier: Apache-2.0 */
/* Process topologies, and reordering: fewer edges of a grid cross sites than without, never more. */
/* ranks: 1 4 6 */

#include "check.h"

static int rank, size;

/* A number for the site of this process. */
static int own_site(void)
{
    MPI_Info info;
    MPI_Comm comm;
    int site = rank;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_hw_resource_type", "site"));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, rank, info, &comm));
    OK(MPI_Info_free(&info));
    OK(MPI_Bcast(&site, 1, MPI_INT, 0, comm));
    OK(MPI_Comm_free(&comm));
    return site;
}

/* How many edges of all processes go to another site. */
static int crossing(MPI_Comm comm, int n, const int *neighbours, int site)
{
    int p, total, mine = 0;
    OK(MPI_Comm_size(comm, &p));
    int sites[p];
    OK(MPI_Allgather(&site, 1, MPI_INT, sites, 1, MPI_INT, comm));
    for (int i = 0; i < n; i++)
        mine += neighbours[i] != MPI_PROC_NULL && sites[neighbours[i]] != site;
    OK(MPI_Allreduce(&mine, &total, 1, MPI_INT, MPI_SUM, comm));
    return total;
}

static int cart_crossing(MPI_Comm old, int reorder, int site)
{
    int dims[2] = {0, 0}, periods[2] = {0, 1}, around[4], own, coords[2], back;
    MPI_Comm cart;
    OK(MPI_Dims_create(size, 2, dims));
    CHECK(dims[0] * dims[1] == size && dims[0] >= dims[1]);
    OK(MPI_Cart_create(old, 2, dims, periods, reorder, &cart));
    CHECK(cart != MPI_COMM_NULL);
    for (int d = 0; d < 2; d++)
        OK(MPI_Cart_shift(cart, d, 1, &around[2 * d], &around[2 * d + 1]));
    OK(MPI_Comm_rank(cart, &own));
    OK(MPI_Cart_coords(cart, own, 2, coords));
    OK(MPI_Cart_rank(cart, coords, &back));
    CHECK(back == own);
    int total = crossing(cart, 4, around, site);

    MPI_Comm copy, row;
    int keep[2] = {0, 1}, status, columns;
    OK(MPI_Comm_dup(cart, &copy));
    OK(MPI_Topo_test(copy, &status));
    CHECK(status == MPI_CART);
    OK(MPI_Cart_sub(copy, keep, &row));
    OK(MPI_Cartdim_get(row, &columns));
    CHECK(columns == 1);
    OK(MPI_Comm_rank(row, &columns));
    CHECK(columns == coords[1]);
    OK(MPI_Comm_free(&row));
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&cart));
    return total;
}

/* A ring, given by one process for all. */
static int ring_crossing(MPI_Comm old, int reorder, int site)
{
    int n = 0, own, sources[size], degrees[size], destinations[size];
    MPI_Comm ring;
    MPI_Info place;
    OK(MPI_Info_create(&place));
    OK(MPI_Info_set(place, "isthmus_placement", "true"));
    OK(MPI_Comm_rank(old, &own));
    if (own == size - 1)
        for (n = 0; n < size; n++) {
            sources[n] = n;
            degrees[n] = 1;
            destinations[n] = (n + 1) % size;
        }
    OK(MPI_Dist_graph_create(old, n, sources, degrees, destinations, MPI_UNWEIGHTED, place, reorder, &ring));
    int in, out, weighted, from, to;
    OK(MPI_Dist_graph_neighbors_count(ring, &in, &out, &weighted));
    CHECK(in == 1 && out == 1 && !weighted);
    OK(MPI_Dist_graph_neighbors(ring, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED));
    OK(MPI_Comm_rank(ring, &own));
    CHECK(to == (own + 1) % size && from == (own + size - 1) % size);
    int total = crossing(ring, 1, &to, site);

    /* The same, where everybody gives its own edges. */
    MPI_Comm adjacent;
    int weight = 3, w_in, w_out;
    OK(MPI_Dist_graph_create_adjacent(ring, 1, &from, &weight, 1, &to, &weight, place, reorder, &adjacent));
    OK(MPI_Info_free(&place));
    OK(MPI_Dist_graph_neighbors_count(adjacent, &in, &out, &weighted));
    CHECK(in == 1 && out == 1 && weighted);
    OK(MPI_Dist_graph_neighbors(adjacent, 1, &from, &w_in, 1, &to, &w_out));
    OK(MPI_Comm_rank(adjacent, &own));
    CHECK(to == (own + 1) % size && from == (own + size - 1) % size && w_in == 3 && w_out == 3);
    CHECK(crossing(adjacent, 1, &to, site) <= total);
    int left = -1, value = own;
    OK(MPI_Neighbor_allgather(&value, 1, MPI_INT, &left, 1, MPI_INT, adjacent));
    CHECK(left == from);
    OK(MPI_Comm_free(&adjacent));
    OK(MPI_Comm_free(&ring));
    return total;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int site = own_site(), place = 0, sites[size];
    OK(MPI_Allgather(&site, 1, MPI_INT, sites, 1, MPI_INT, MPI_COMM_WORLD));
    /* Sites take turns. */
    for (int i = 0; i < rank; i++)
        place += sites[i] == site;
    MPI_Comm mixed;
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, place, &mixed));
    int far = 0;
    for (int i = 0; i < size; i++)
        far |= sites[i] != site;
    int as_it_is = cart_crossing(mixed, 0, site), reordered = cart_crossing(mixed, 1, site);
    CHECK(reordered <= as_it_is);
    int ring = ring_crossing(mixed, 0, site), ring_reordered = ring_crossing(mixed, 1, site);
    CHECK(ring_reordered <= ring);
    if (far) {
        CHECK(ring_reordered == 2);
        CHECK(size < 4 || reordered < as_it_is);
    }
    if (rank == 0)
        printf("edges between sites: grid %d, reordered %d; ring %d, reordered %d\n", as_it_is, reordered, ring,
               ring_reordered);
    OK(MPI_Comm_free(&mixed));
    MPI_Finalize();
    return 0;
}
