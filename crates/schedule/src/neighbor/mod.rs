// SPDX-License-Identifier: Apache-2.0
//! Neighbourhood collectives: along the edges of a process topology.

mod direct;
mod edges;

pub use edges::{Done, Edge, Neighbours};

use crate::Call;
use crate::step::{Plan, Rank};
use std::sync::Arc;

/// The part of process `me` in a neighbourhood collective. `call.blocks`: own blocks by destination
/// (neighbor_allgather(v): the own block, `Equal`); `call.receive_blocks`: by source.
pub fn neighbor_plan(call: &Call, neighbours: &Arc<Neighbours>, me: Rank) -> Box<dyn Plan> {
    direct::plan(call, neighbours, me, Done::default())
}

/// What is left of [`neighbor_plan`].
pub fn neighbor_rest(call: &Call, neighbours: &Arc<Neighbours>, me: Rank, done: Done) -> Box<dyn Plan> {
    direct::plan(call, neighbours, me, done)
}
