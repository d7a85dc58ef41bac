// SPDX-License-Identifier: Apache-2.0
//! Communicators with graph topologies that every process knows whole.

use std::sync::Arc;

use isthmus_abi::constants as abi;

use super::placement;
use crate::comm::Comm;
use crate::create::{self, Alike};
use crate::error::Result;
use crate::fail;
use crate::info::Info;
use crate::topology::{Graph, Topology};
use crate::world::World;

/// The graph of a communicator with a graph topology.
pub fn graph(comm: &Comm) -> Result<&Arc<Graph>> {
    match comm.topology() {
        Some(Topology::Graph(graph)) => Ok(graph),
        _ => fail!(abi::MPI_ERR_TOPOLOGY, "{} has no graph topology", comm.describe()),
    }
}

fn order(world: &World, comm: &Comm, graph: &Graph, reorder: bool) -> Vec<u32> {
    if !reorder {
        return (0..graph.size()).collect();
    }
    placement::order(world, comm, &graph.adjacency())
}

/// MPI_Graph_create; collective. `None` for processes outside the graph.
pub fn graph_create(world: &World, comm: &Comm, graph: Graph, reorder: bool) -> Result<Option<Arc<Comm>>> {
    let order = order(world, comm, &graph, reorder);
    let words = graph.index().iter().chain(graph.edges()).copied().map(u64::from);
    let said = Alike::new("nodes and edges of the graph", words);
    let topology = Topology::Graph(Arc::new(graph));
    create::with_topology(world, comm, &order, topology, Info::default(), &said)
}

/// MPI_Graph_map: the rank that this process would have with `reorder`.
pub fn graph_map(world: &World, comm: &Comm, graph: &Graph) -> Option<u32> {
    let order = order(world, comm, graph, true);
    order.iter().position(|&r| r == comm.rank()).map(|r| r as u32)
}
