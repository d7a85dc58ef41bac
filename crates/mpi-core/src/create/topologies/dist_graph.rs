// SPDX-License-Identifier: Apache-2.0
//! Communicators with distributed graph topologies.

use std::sync::Arc;

use isthmus_abi::constants as abi;

use super::placement;
use crate::comm::{Comm, asks_for_placement};
use crate::create::{self, Alike};
use crate::error::Result;
use crate::fail;
use crate::info::Info;
use crate::internal;
use crate::topology::Topology;
use crate::topology::dist_graph::{DistGraph, Given, decode, encode};
use crate::world::World;

/// The own edges, on a communicator with a distributed graph topology.
pub fn dist_graph(comm: &Comm) -> Result<&Arc<DistGraph>> {
    match comm.topology() {
        Some(Topology::DistGraph(graph)) => Ok(graph),
        _ => fail!(
            abi::MPI_ERR_TOPOLOGY,
            "{} has no distributed graph topology",
            comm.describe()
        ),
    }
}

/// An argument that names a node of a graph.
pub fn check_node(comm: &Comm, argument: &str, node: i32) -> Result<u32> {
    match u32::try_from(node) {
        Ok(node) if node < comm.size() => Ok(node),
        _ => fail!(
            abi::MPI_ERR_RANK,
            argument(argument),
            "has the entry {node}, the ranks of {} are 0 to {}",
            comm.describe(),
            i64::from(comm.size()) - 1
        ),
    }
}

/// MPI_Dist_graph_create_adjacent; collective.
pub fn dist_graph_adjacent(
    world: &World,
    comm: &Comm,
    own: DistGraph,
    reorder: bool,
    hints: &Info,
) -> Result<Arc<Comm>> {
    if !(reorder && asks_for_placement(hints)) {
        let order: Vec<u32> = (0..comm.size()).collect();
        return with_dist_graph(world, comm, &order, own, hints);
    }
    // With other ranks processes get the edges of other nodes: everybody's are needed. Sources and destinations
    // apart, in the order in which they were given.
    let me = comm.rank();
    let into = own
        .sources
        .iter()
        .zip(&own.source_weights)
        .map(|(&from, &w)| (from, me, w));
    let out = own
        .destinations
        .iter()
        .zip(&own.destination_weights)
        .map(|(&to, &w)| (me, to, w));
    let into = internal::gather_all(world, comm, &encode(&into.collect::<Vec<_>>()))?;
    let out = internal::gather_all(world, comm, &encode(&out.collect::<Vec<_>>()))?;
    let (into, out): (Vec<_>, Vec<_>) = (
        into.iter().map(|b| decode(b)).collect(),
        out.iter().map(|b| decode(b)).collect(),
    );
    let order = order(world, comm, out.iter().flatten());
    let node = position(&order, me)?;
    let (into, out) = (&into[node], &out[node]);
    let graph = DistGraph {
        sources: into.iter().map(|e| e.0).collect(),
        source_weights: into.iter().map(|e| e.2).collect(),
        destinations: out.iter().map(|e| e.1).collect(),
        destination_weights: out.iter().map(|e| e.2).collect(),
        weighted: own.weighted,
    };
    with_dist_graph(world, comm, &order, graph, hints)
}

/// MPI_Dist_graph_create; collective. `edges`: what this process gives, of any processes.
pub fn dist_graph_create(
    world: &World,
    comm: &Comm,
    edges: &[Given],
    weighted: bool,
    reorder: bool,
    hints: &Info,
) -> Result<Arc<Comm>> {
    let all = internal::gather_all(world, comm, &encode(edges))?;
    let all: Vec<Given> = all.iter().flat_map(|b| decode(b)).collect();
    let order = if reorder && asks_for_placement(hints) {
        order(world, comm, all.iter())
    } else {
        (0..comm.size()).collect()
    };
    let node = position(&order, comm.rank())? as u32;
    let mut graph = DistGraph {
        weighted,
        ..DistGraph::default()
    };
    for &(from, to, weight) in &all {
        if to == node {
            graph.sources.push(from);
            graph.source_weights.push(weight);
        }
        if from == node {
            graph.destinations.push(to);
            graph.destination_weights.push(weight);
        }
    }
    with_dist_graph(world, comm, &order, graph, hints)
}

/// Which member each node should be.
fn order<'a>(world: &World, comm: &Comm, edges: impl Iterator<Item = &'a Given>) -> Vec<u32> {
    let mut adjacency = vec![Vec::new(); comm.size() as usize];
    for &(from, to, weight) in edges {
        let weight = u32::try_from(weight).unwrap_or(0).max(1);
        if let Some(around) = adjacency.get_mut(from as usize).filter(|_| to < comm.size()) {
            around.push((to, weight));
        }
    }
    placement::order(world, comm, &adjacency)
}

fn with_dist_graph(world: &World, comm: &Comm, order: &[u32], graph: DistGraph, hints: &Info) -> Result<Arc<Comm>> {
    let topology = Topology::DistGraph(Arc::new(graph));
    // What must be alike are hints only.
    let said = Alike::new("hints", std::iter::empty());
    match create::with_topology(world, comm, order, topology, crate::comm::kept(hints), &said)? {
        Some(comm) => Ok(comm),
        None => fail!(abi::MPI_ERR_INTERN, "a process has no place in its own graph"),
    }
}

fn position(order: &[u32], rank: u32) -> Result<usize> {
    match order.iter().position(|&r| r == rank) {
        Some(at) => Ok(at),
        None => fail!(abi::MPI_ERR_INTERN, "rank {rank} has no place in the graph"),
    }
}
