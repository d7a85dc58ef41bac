// SPDX-License-Identifier: Apache-2.0
//! The edges of a process topology at one process.

use crate::step::Rank;

/// One direction of exchange with a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The neighbour; `None`: MPI_PROC_NULL, at the border of a grid that is not periodic.
    pub rank: Option<Rank>,
    /// Tells several edges between the same two processes apart. The edge from p to q has the same slot in the
    /// destinations of p and in the sources of q, and no other edge from p to q has it.
    pub slot: u16,
}

/// The neighbours of a process, in the order in which neighbourhood collectives lay out their blocks (MPI 5.0 section
/// 8.6).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// Whom blocks come from.
    pub sources: Vec<Edge>,
    /// Whom blocks go to.
    pub destinations: Vec<Edge>,
}

/// What of a neighbourhood collective is done already: everything to the first so many destinations, and everything
/// from the first so many sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Destinations.
    pub sent: usize,
    /// Sources.
    pub received: usize,
}
