// SPDX-License-Identifier: Apache-2.0
//! Graph topologies that every process knows whole (MPI_Graph_create, MPI 5.0 section 8.5.3).

use isthmus_abi::constants as abi;

use crate::error::Result;
use crate::fail;

/// A graph as the standard gives it: neighbours of node i are `edges[index[i - 1] .. index[i]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    index: Vec<u32>,
    edges: Vec<u32>,
}

impl Graph {
    /// A graph of at most `processes` nodes. `edges` is called with the number of edges.
    pub fn new<'a>(processes: u32, index: &[i32], edges: impl FnOnce(usize) -> Result<&'a [i32]>) -> Result<Self> {
        if index.len() > processes as usize {
            fail!(
                abi::MPI_ERR_ARG,
                argument("nnodes"),
                "is {}, the communicator has {processes} processes",
                index.len()
            );
        }
        let mut last = 0;
        for (at, &end) in index.iter().enumerate() {
            if end < last {
                fail!(
                    abi::MPI_ERR_ARG,
                    argument(format!("index[{at}]")),
                    "is {end}, expected at least {last}: it counts the edges up to node {at}"
                );
            }
            last = end;
        }
        let edges = edges(last as usize)?;
        let nodes = index.len() as i32;
        if let Some((at, bad)) = edges.iter().enumerate().find(|(_, e)| !(0..nodes).contains(*e)) {
            fail!(
                abi::MPI_ERR_ARG,
                argument(format!("edges[{at}]")),
                "is {bad}, the nodes are 0 to {}",
                nodes - 1
            );
        }
        Ok(Self {
            index: index.iter().map(|&i| i as u32).collect(),
            edges: edges.iter().map(|&e| e as u32).collect(),
        })
    }

    /// Number of nodes.
    pub fn size(&self) -> u32 {
        self.index.len() as u32
    }

    /// Ends of the nodes' ranges in [`Graph::edges`].
    pub fn index(&self) -> &[u32] {
        &self.index
    }

    /// Neighbours of all nodes, one node behind the other.
    pub fn edges(&self) -> &[u32] {
        &self.edges
    }

    /// Neighbours of a node.
    pub fn neighbours(&self, node: u32) -> &[u32] {
        let node = node as usize;
        let start = if node == 0 { 0 } else { self.index[node - 1] };
        &self.edges[start as usize..self.index[node] as usize]
    }

    /// The nodes next to each node, for placement.
    pub(crate) fn adjacency(&self) -> Vec<Vec<(u32, u32)>> {
        let around = |node| self.neighbours(node).iter().map(|&n| (n, 1)).collect();
        (0..self.size()).map(around).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_found_and_bad_graphs_refused() {
        let edges = [1, 3, 0, 3, 0, 2];
        let graph = Graph::new(4, &[2, 3, 4, 6], |n| Ok(&edges[..n])).unwrap();
        assert_eq!(graph.neighbours(0), [1, 3]);
        assert_eq!(graph.neighbours(2), [3]);
        assert!(Graph::new(3, &[2, 3, 4, 6], |n| Ok(&edges[..n])).is_err());
        assert!(Graph::new(4, &[2, 1, 4, 6], |n| Ok(&edges[..n])).is_err());
        assert!(
            Graph::new(4, &[2, 3, 6], |n| Ok(&edges[..n])).is_err(),
            "node 3 does not exist"
        );
    }
}
