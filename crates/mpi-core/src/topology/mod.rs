// SPDX-License-Identifier: Apache-2.0
//! Process topologies (MPI 5.0 chapter 8): grids, graphs, and where their nodes go on the real network.

use std::sync::Arc;

use rustc_hash::FxHashMap;

mod cart;
mod dims;
pub(crate) mod dist_graph;
mod graph;

pub use cart::Cart;
pub use dims::balance;
pub use dist_graph::{DistGraph, Given};
pub use graph::Graph;
pub use isthmus_schedule::{Edge, Neighbours};

/// The process topology of a communicator. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Topology {
    /// MPI_CART.
    Cart(Arc<Cart>),
    /// MPI_GRAPH.
    Graph(Arc<Graph>),
    /// MPI_DIST_GRAPH: each process knows its own edges only.
    DistGraph(Arc<DistGraph>),
}

impl Topology {
    /// The neighbours of the process with this rank, which is the own one.
    pub(crate) fn neighbours(&self, rank: u32) -> Neighbours {
        match self {
            Self::Cart(grid) => grid.edges(rank),
            Self::Graph(whole) => {
                let edges = numbered(whole.neighbours(rank));
                Neighbours {
                    sources: edges.clone(),
                    destinations: edges,
                }
            }
            Self::DistGraph(own) => Neighbours {
                sources: numbered(&own.sources),
                destinations: numbered(&own.destinations),
            },
        }
    }
}

/// Edges to these processes; the k-th to the same one has the slot k at both ends.
fn numbered(ranks: &[u32]) -> Vec<Edge> {
    let mut seen: FxHashMap<u32, u16> = FxHashMap::default();
    let edge = |&rank: &u32| {
        let next = seen.entry(rank).or_default();
        let slot = *next;
        *next = next.wrapping_add(1);
        Edge { rank: Some(rank), slot }
    };
    ranks.iter().map(edge).collect()
}
