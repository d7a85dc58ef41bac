// SPDX-License-Identifier: Apache-2.0
//! The simulator: all members' plans in virtual time, over links with parameters.
//!
//! **Model.** A process does one thing at a time, in the order in which things become possible: it sends, receives,
//! combines and copies for as long as its [`Links`] say. A sent message then waits for its link, occupies it for the
//! gap, and arrives after the latency; the send is complete when the link has taken the message. A receive begins when
//! it is posted and the message is there. Links carry one message at a time, each way apart: between two local areas
//! one link, between two machines of a local area one, out of a node into its machine one, out of a process into its
//! node one.
//!
//! Connections between local areas are warm unless [`Limits::window`] says what a new or idle one carries before its
//! first acknowledgement: a message that is longer arrives by as many round trips later as TCP's slow start takes for
//! it.
//!
//! What all processes of a node do together in its memory begins when the last of them has come to it, and takes each
//! as long as its own copying and combining. What those of a job of a vendor MPI do with that MPI begins then
//! too, and takes all of them as long as such an operation is expected to take.
//!
//! **Ties.** What happens to a process or a link at one time happens in the order in which it was decided; messages
//! from other local areas come before that, ordered by when they left, then by sender.
//!
//! Deterministic: equal input gives equal output, to the nanosecond. Memory is proportional to the steps in all windows
//! (at most [`WINDOW`](isthmus_schedule::step::WINDOW) a process, 24 bytes each), the messages under way and the kept
//! [`Record`]s, which are bounded by [`Limits`].

#![forbid(unsafe_code)]

mod areas;
pub mod check;
mod circles;
mod journal;
mod limits;
mod members;
mod outcome;
mod process;
mod queue;
mod wires;
mod world;

pub use limits::{Limits, Stopped};
pub use members::{call_of, plans};
pub use outcome::{Kind, LinkUse, Outcome, Record};

use isthmus_schedule::step::Plan;
use isthmus_schedule::{Call, Network, Steps};
use isthmus_topology::{Links, Topology};
use std::sync::Arc;
use world::World;

/// Runs a call of all processes of the world, whose network is given. Sizes as for [`plans`].
///
/// # Panics
/// If the call contradicts itself; see [`plan`](isthmus_schedule::plan()).
pub fn simulate(call: &Call, topology: &Topology, network: &Arc<Network>, limits: Limits) -> Result<Outcome, Stopped> {
    let steps = if network.jobs().is_some() {
        Steps::Jobs
    } else {
        Steps::Nodes
    };
    let links = network.links();
    run(plans(call, network), call.unit_bytes, topology, links, steps, limits)
}

/// Runs one plan for each process of the world. Units have so many bytes. `steps`: who takes those steps of plans that
/// are taken together, but by all.
pub fn run(
    plans: impl Iterator<Item = Box<dyn Plan>>,
    unit_bytes: u64,
    topology: &Topology,
    links: &Links,
    steps: Steps,
    limits: Limits,
) -> Result<Outcome, Stopped> {
    World::new(topology, links, steps, unit_bytes, limits).run(plans)
}
