// SPDX-License-Identifier: Apache-2.0
//! Distributed graph topologies (MPI 5.0 section 8.5.4): each process knows its own edges.

use std::sync::Arc;

use isthmus_abi::constants as abi;

use super::{Topology, placement};
use crate::comm::{Comm, asks_for_placement, create};
use crate::error::Result;
use crate::fail;
use crate::info::Info;
use crate::internal;
use crate::world::World;

/// The edges of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DistGraph {
    /// Whom edges come from.
    pub sources: Vec<u32>,
    /// Weights of these edges.
    pub source_weights: Vec<i32>,
    /// Whom edges go to.
    pub destinations: Vec<u32>,
    /// Weights of these edges.
    pub destination_weights: Vec<i32>,
    /// False: made with MPI_UNWEIGHTED.
    pub weighted: bool,
}

/// An edge that a process has given: from, to, weight.
pub type Given = (u32, u32, i32);

const EDGE: usize = 12;

fn encode(edges: &[Given]) -> Vec<u8> {
    let words = edges.iter().flat_map(|&(from, to, weight)| [from, to, weight as u32]);
    words.flat_map(u32::to_le_bytes).collect()
}

fn decode(bytes: &[u8]) -> Vec<Given> {
    let word = |b: &[u8], at: usize| b[4 * at..].first_chunk().map_or(0, |w| u32::from_le_bytes(*w));
    let edge = |b: &[u8]| (word(b, 0), word(b, 1), word(b, 2) as i32);
    bytes.chunks_exact(EDGE).map(edge).collect()
}

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
    placement::order(world, comm.group(), &adjacency)
}

fn with_dist_graph(world: &World, comm: &Comm, order: &[u32], graph: DistGraph, hints: &Info) -> Result<Arc<Comm>> {
    let topology = Topology::DistGraph(Arc::new(graph));
    match create::with_topology(world, comm, order, topology, crate::comm::kept(hints))? {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_survive_the_wire() {
        let edges = [(0, 1, -3), (7, 0, i32::MAX)];
        assert_eq!(decode(&encode(&edges)), edges);
    }
}
