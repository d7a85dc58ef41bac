// SPDX-License-Identifier: Apache-2.0
//! Distributed graph topologies (MPI 5.0 section 8.5.4): each process knows its own edges.

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

/// Edges as they travel.
pub(crate) fn encode(edges: &[Given]) -> Vec<u8> {
    let words = edges.iter().flat_map(|&(from, to, weight)| [from, to, weight as u32]);
    words.flat_map(u32::to_le_bytes).collect()
}

/// Edges that have travelled.
pub(crate) fn decode(bytes: &[u8]) -> Vec<Given> {
    let word = |b: &[u8], at: usize| b[4 * at..].first_chunk().map_or(0, |w| u32::from_le_bytes(*w));
    let edge = |b: &[u8]| (word(b, 0), word(b, 1), word(b, 2) as i32);
    bytes.chunks_exact(EDGE).map(edge).collect()
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
