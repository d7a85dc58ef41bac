// SPDX-License-Identifier: Apache-2.0
//! Collective operations as data.
//!
//! A collective call computes, on each process alone and without communication, its part of a plan: steps
//! (send, receive, reduce, copy) over ranges of named buffers, with dependencies. The same plans feed the
//! engine, the checker and (later) the simulator. This room knows no communicator, pointer, datatype or transport.
#![forbid(unsafe_code)]

mod call;
mod script;
pub mod step;

pub use call::{Blocks, Call, Operation};
use isthmus_topology::Shape;
use std::sync::Arc;
use step::{Plan, Rank};

/// The part of process `me` (its rank in the group) in a collective operation.
///
/// Pure: equal calls and shapes on all members give plans that match. Small operations take well under a
/// microsecond; nothing here is proportional to the group's size unless the process's own part is.
///
/// # Panics
/// If the call contradicts itself: a rank outside the group, or sizes of blocks that the operation needs and
/// the call does not know (see [`Call::blocks`] and [`counts_phase`]).
pub fn plan(call: &Call, shape: &Arc<Shape>, me: Rank) -> Box<dyn Plan> {
    assert!(me < shape.size() && call.root < shape.size(), "rank outside the group of {}", shape.size());
    Box::new(script::Script::default())
}

/// What gatherv and scatterv do first, where processes that act for others must learn sizes that only others know.
pub struct CountsPhase {
    /// Moves counts; a unit is one count (a `u64`). Its `Send`: gatherv: the size of the own block (1 unit); scatterv at the
    /// root: the sizes of all blocks by rank (p units). Its `Recv`: [`CountsPhase::receive`] units.
    pub plan: Box<dyn Plan>,
    /// Units of `Recv`. If not 0: its contents become [`Blocks::Subtree`] of the call, else the call stays as it is.
    pub receive: u64,
}

/// The counts phase of a gatherv or scatterv for process `me`, if it takes part in one. The caller executes it, puts
/// what was received into `call.blocks`, and goes on with [`plan`]. Messages of both phases match in order: the
/// slots of the two are different. All other operations have none.
pub fn counts_phase(_call: &Call, _shape: &Arc<Shape>, _me: Rank) -> Option<CountsPhase> {
    None
}
