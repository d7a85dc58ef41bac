// SPDX-License-Identifier: Apache-2.0
//! Collective operations as data.
//!
//! A collective call computes, on each process alone and without communication, its part of a plan: steps
//! (send, receive, reduce, copy) over ranges of named buffers, with dependencies. The same plans feed the
//! engine, the checker and the [simulator](simulate). This room knows no communicator, pointer, datatype or transport.
//!
//! Every operation is composed by level from single-level schedules: trees inside each cluster, joined over all tiers, and
//! meetings of the leaders of the outermost tier. There is one folder per collective and in it one file per
//! algorithm, which opens with its cost card. `spec/algorithms.tsv` lists them.
#![forbid(unsafe_code)]

mod apart;
mod beside;
mod call;
pub mod check;
mod choose;
mod compose;
mod cost;
mod crossings;
mod direct;
mod explain;
mod fold;
mod form;
mod meeting;
mod network;
mod node;
mod order;
mod overrides;
mod pace;
mod parcels;
mod parties;
mod places;
mod rooted;
mod routes;
mod row;
mod script;
mod shares;
pub mod simulate;
mod star;
pub mod step;
mod straight;
mod strategy;
mod together;
mod touch;
mod tree;
mod trees;

mod allgather;
mod allreduce;
mod alltoall;
mod barrier;
mod bcast;
mod gather;
mod inter;
mod neighbor;
mod reduce;
mod reduce_scatter;
mod scan;
mod scatter;

pub use beside::long_blocks;
pub use call::{Blocks, Call, Operation};
pub use choose::MARGIN;
pub use cost::{Cost, Factor};
pub use crossings::{Bytes, Messages};
pub use explain::{Candidate, Choice, explain};
pub use inter::{Sides, inter_counts_phase, inter_plan};
pub use neighbor::{Edge, Neighbours, neighbor_plan};
pub use network::Network;
pub use node::{Steps, steps_together};
pub use overrides::{OverrideError, Overrides};
use std::sync::Arc;
use step::{Plan, Rank};
pub use together::{ALONE, together};

/// The part of process `me` (its rank in the group) in a collective operation.
///
/// Pure: equal calls and networks on all members give plans that match. Small operations take well under a
/// microsecond; nothing here is proportional to the group's size unless the process's own part is.
///
/// # Panics
/// If the call contradicts itself: a rank outside the group, or sizes of blocks that the operation needs and
/// the call does not know (see [`Call::blocks`] and [`counts_phase`]), or a neighbourhood operation.
pub fn plan(call: &Call, network: &Arc<Network>, me: Rank) -> Box<dyn Plan> {
    assert!(
        me < network.size() && call.root < network.size(),
        "rank outside the group of {}",
        network.size()
    );
    if let Some(plan) = together::plan(call, network, me) {
        return plan;
    }
    let network = in_order(call, network);
    match call.operation {
        Operation::Barrier => barrier::plan(call, network, me),
        Operation::Bcast => bcast::plan(call, network, me),
        Operation::Reduce => reduce::plan(call, network, me),
        Operation::Allreduce => allreduce::plan(call, network, me),
        Operation::Gather | Operation::Gatherv => gather::plan(call, network, me),
        Operation::Scatter | Operation::Scatterv => scatter::plan(call, network, me),
        Operation::Allgather | Operation::Allgatherv => allgather::plan(call, network, me),
        Operation::Alltoall | Operation::Alltoallv | Operation::Alltoallw => alltoall::plan(call, network, me),
        Operation::Scan | Operation::Exscan => scan::plan(call, network, me),
        Operation::ReduceScatterBlock | Operation::ReduceScatter => reduce_scatter::plan(call, network, me),
        Operation::NeighborAllgather
        | Operation::NeighborAllgatherv
        | Operation::NeighborAlltoall
        | Operation::NeighborAlltoallv
        | Operation::NeighborAlltoallw => unreachable!("neighbourhoods have plans of their own: neighbor_plan"),
    }
}

/// How many messages the data of a call send over each level, as the cost card of the chosen algorithm states. `None` where that depends on
/// more than the group's shape: on unequal blocks, or on where neighbours and ranks are.
pub fn messages(call: &Call, network: &Arc<Network>) -> Option<Messages> {
    use Operation as O;
    if together::plan(call, network, 0).is_some() {
        return Some(Messages::default());
    }
    let network = in_order(call, network);
    match call.operation {
        O::Barrier => barrier::messages(call, network),
        O::Bcast => bcast::messages(call, network),
        O::Reduce => reduce::messages(call, network),
        O::Allreduce => allreduce::messages(call, network),
        O::Gather | O::Gatherv => gather::messages(call, network),
        O::Scatter | O::Scatterv => scatter::messages(call, network),
        O::Allgather | O::Allgatherv => allgather::messages(call, network),
        O::Alltoall => alltoall::messages(call, network),
        O::Scan | O::Exscan => scan::messages(call, network),
        O::ReduceScatter | O::ReduceScatterBlock => reduce_scatter::messages(call, network),
        _ => None,
    }
}

/// How many bytes the data of a call send over each level, as the cost card of the chosen algorithm states. `None` where that depends on
/// more than shape and sizes: on trees that hand blocks on, on ways through other sites, on who has what.
pub fn bytes(call: &Call, network: &Arc<Network>) -> Option<Bytes> {
    use Operation as O;
    if together::plan(call, network, 0).is_some() {
        return Some(Bytes::default());
    }
    let network = in_order(call, network);
    match call.operation {
        O::Barrier => Some(Bytes::default()),
        O::Bcast => bcast::bytes(call, network),
        O::Reduce => reduce::bytes(call, network),
        O::Allreduce => allreduce::bytes(call, network),
        O::Gather => gather::bytes(call, network),
        O::Scatter => scatter::bytes(call, network),
        O::Allgather | O::Allgatherv => allgather::bytes(call, network),
        O::Alltoall => alltoall::bytes(call, network),
        O::ReduceScatter | O::ReduceScatterBlock => reduce_scatter::bytes(call, network),
        _ => None,
    }
}

/// The network in the order of sites in which a call is carried out: another than that of ranks where messages are put together or
/// cut on their way between sites and nothing depends on the order. The same for equal calls.
fn in_order<'a>(call: &Call, network: &'a Arc<Network>) -> &'a Arc<Network> {
    use Operation as O;
    let free = match call.operation {
        O::Bcast | O::Gather | O::Gatherv | O::Scatter | O::Scatterv | O::Alltoall | O::Alltoallv | O::Alltoallw => {
            true
        }
        O::Reduce | O::ReduceScatter | O::ReduceScatterBlock => {
            call.commutative || call.fixed || !network.in_rank_order()
        }
        // Leaders exchange whole items, in any order.
        _ => false,
    };
    if free { network.arranged() } else { network }
}

/// The part of a process that has none.
pub fn nothing() -> Box<dyn Plan> {
    Box::new(script::Script::default())
}

/// What gatherv, scatterv, alltoallv and alltoallw do first, where processes that act for others must learn sizes that only others know.
pub struct CountsPhase {
    /// Moves counts; a unit is one count (a `u64`), reductions add. Its `Send`: [`CountsPhase::send`], or if that is empty, gatherv: the
    /// size of the own block (1 unit); scatterv at the root: the sizes of all blocks by rank (p units). Its `Recv`:
    /// [`CountsPhase::receive`] units.
    pub plan: Box<dyn Plan>,
    /// What its `Send` holds, where the call says it.
    pub send: Vec<u64>,
    /// Units of `Recv`. If not 0 its contents are given to the call ([`Call::learn`]), else that stays as it is.
    pub receive: u64,
}

/// The counts phase of a gatherv, scatterv, alltoallv or alltoallw for process `me`, if it takes part in one. The caller executes it, gives
/// what was received to the call, and goes on with [`plan`]. Messages of the two phases have different
/// slots. All other operations have no counts phase.
///
/// `call.blocks` is [`Blocks::Known`] at the root and [`Blocks::Own`] elsewhere; the phase's structure depends on neither.
pub fn counts_phase(call: &Call, network: &Arc<Network>, me: Rank) -> Option<CountsPhase> {
    let network = in_order(call, network);
    match call.operation {
        Operation::Gatherv => gather::counts(call, network, me),
        Operation::Scatterv => scatter::counts(call, network, me),
        Operation::Alltoallv | Operation::Alltoallw => match call.blocks {
            Blocks::Known(_) => alltoall::counts(call, network, me),
            _ => None,
        },
        _ => None,
    }
}
