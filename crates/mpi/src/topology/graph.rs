// SPDX-License-Identifier: Apache-2.0
//! Graph topologies that every process knows whole (MPI 5.0 section 8.5.3).

use std::ffi::c_int;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::create::topologies;
use isthmus_core::error::Result;
use isthmus_core::topology::Graph;

use super::{put, rank_or, room};
use crate::c::{In, Out};
use crate::call::call_on;
use crate::comm::{find, give, intra};
use crate::process;

fn graph(comm: h::Comm, nodes: c_int, index: In<c_int>, edges: In<c_int>) -> Result<Graph> {
    let index = index.slice("index", room("nnodes", nodes)?)?;
    Graph::new(intra(comm)?.size(), index, |n| edges.slice("edges", n))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Graph_create(
    comm: h::Comm,
    nodes: c_int,
    index: In<c_int>,
    edges: In<c_int>,
    reorder: c_int,
    new: Out<h::Comm>,
) -> c_int {
    call_on("MPI_Graph_create", comm, || {
        give(new, || {
            let graph = graph(comm, nodes, index, edges)?;
            topologies::graph_create(process::world()?, find(comm)?, graph, reorder != 0)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Graph_map(
    comm: h::Comm,
    nodes: c_int,
    index: In<c_int>,
    edges: In<c_int>,
    rank: Out<c_int>,
) -> c_int {
    call_on("MPI_Graph_map", comm, || {
        let graph = graph(comm, nodes, index, edges)?;
        let mapped = topologies::graph_map(process::world()?, find(comm)?, &graph);
        rank.set("newrank", rank_or(mapped, abi::MPI_UNDEFINED))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Graphdims_get(comm: h::Comm, nodes: Out<c_int>, edges: Out<c_int>) -> c_int {
    call_on("MPI_Graphdims_get", comm, || {
        let graph = topologies::graph(find(comm)?)?;
        nodes.set("nnodes", graph.size() as c_int)?;
        edges.set("nedges", graph.edges().len() as c_int)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Graph_get(
    comm: h::Comm,
    max_index: c_int,
    max_edges: c_int,
    index: Out<c_int>,
    edges: Out<c_int>,
) -> c_int {
    call_on("MPI_Graph_get", comm, || {
        let graph = topologies::graph(find(comm)?)?;
        // As much as there is room for.
        let (nodes, lines) = (room("maxindex", max_index)?, room("maxedges", max_edges)?);
        let (nodes, lines) = (nodes.min(graph.index().len()), lines.min(graph.edges().len()));
        put(index, "index", graph.index()[..nodes].iter().map(|i| *i as c_int))?;
        put(edges, "edges", graph.edges()[..lines].iter().map(|e| *e as c_int))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Graph_neighbors_count(comm: h::Comm, rank: c_int, n: Out<c_int>) -> c_int {
    call_on("MPI_Graph_neighbors_count", comm, || {
        let comm = find(comm)?;
        let rank = topologies::check_node(comm, "rank", rank)?;
        n.set("nneighbors", topologies::graph(comm)?.neighbours(rank).len() as c_int)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Graph_neighbors(comm: h::Comm, rank: c_int, n: c_int, neighbours: Out<c_int>) -> c_int {
    call_on("MPI_Graph_neighbors", comm, || {
        let comm = find(comm)?;
        let rank = topologies::check_node(comm, "rank", rank)?;
        let all = topologies::graph(comm)?.neighbours(rank);
        let shown = room("maxneighbors", n)?.min(all.len());
        put(neighbours, "neighbors", all[..shown].iter().map(|r| *r as c_int))
    })
}
