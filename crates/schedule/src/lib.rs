// SPDX-License-Identifier: Apache-2.0
//! Collective operations as data.
//!
//! A collective call computes, on each process alone and without communication, its part of a plan: steps
//! (send, receive, reduce, copy) over ranges of named buffers, with dependencies. The same plans feed the
//! engine, and the checker and the simulator of the room `simulate`. This room knows no communicator, pointer, datatype
//! or transport.
//!
//! Every operation is composed by level from single-level schedules: trees inside each cluster, joined over all tiers,
//! and meetings of the leaders of the outermost tier. There is one folder per collective and in it one file per
//! algorithm, which opens with its cost card. `spec/algorithms.tsv` lists them.
#![forbid(unsafe_code)]

mod amount;
mod apart;
mod beside;
mod call;
mod choices;
mod choose;
mod compose;
mod cost;
mod crossings;
mod direct;
mod explain;
mod fold;
mod form;
mod leaders;
mod meeting;
mod network;
mod node;
mod order;
mod overrides;
mod parcels;
mod parties;
mod places;
mod recorded;
mod ring;
mod rooted;
mod routes;
mod row;
mod script;
mod share;
mod shares;
mod short;
mod signal;
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

pub use amount::{Cost, Factor};
pub use beside::{LONG_BLOCK, long_blocks};
pub use call::{Blocks, Call, Operation, Steps};
pub use choose::MARGIN;
pub use compose::{Composite, Members, SubPlan};
pub use cost::{ALONE, Spent, combining, natively};
pub use crossings::{Bytes, Crossings, Messages, OfBytes, OfMessages};
pub use explain::{Candidate, Choice, explain};
pub use inter::{Sides, inter_common_bytes, inter_counts_phase, inter_plan};
pub use neighbor::{Done, Edge, Neighbours, neighbor_plan, neighbor_rest};
pub use network::{Jobs, Network};
pub use node::steps_together;
pub use overrides::{OverrideError, Overrides};
pub use recorded::Recorded;
use std::sync::Arc;
use step::{Plan, Rank};
pub use together::{COPIED, together};
pub use touch::Touch;

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
    (collective(call.operation).plan)(call, in_order(call, network), me)
}

/// How many messages the data of a call send over each level, as the cost card of the chosen algorithm states. `None`
/// where that depends on more than the group's shape: on unequal blocks, or on where neighbours and ranks are.
pub fn messages(call: &Call, network: &Arc<Network>) -> Option<Messages> {
    if together::plan(call, network, 0).is_some() {
        return Some(Messages::default());
    }
    (collective(call.operation).messages)(call, in_order(call, network))
}

/// How many bytes the data of a call send over each level, as the cost card of the chosen algorithm states. `None`
/// where that depends on more than shape and sizes: on trees that hand blocks on, on ways through other sites, on who
/// has what.
pub fn bytes(call: &Call, network: &Arc<Network>) -> Option<Bytes> {
    if together::plan(call, network, 0).is_some() {
        return Some(Bytes::default());
    }
    (collective(call.operation).bytes)(call, in_order(call, network))
}

/// The network in the order of sites in which a call is carried out: another than that of ranks where messages are put
/// together or cut on their way between sites and nothing depends on the order. The same for equal calls.
fn in_order<'a>(call: &Call, network: &'a Arc<Network>) -> &'a Arc<Network> {
    let free = match collective(call.operation).order {
        SiteOrder::Any => true,
        SiteOrder::IfOperandsMay => call.commutative || call.fixed || !network.in_rank_order(),
        SiteOrder::Ranks => false,
    };
    if free { network.arranged() } else { network }
}

/// The part of a process that has none.
pub fn nothing() -> Box<dyn Plan> {
    Box::new(script::Script::default())
}

/// What gatherv, scatterv, alltoallv and alltoallw do first, where processes that act for others must learn sizes that
/// only others know.
pub struct CountsPhase {
    /// Moves counts; a unit is one count (a `u64`), reductions add. Its `Send`: [`CountsPhase::send`], or if that is
    /// empty, gatherv: the size of the own block (1 unit); scatterv at the root: the sizes of all blocks by rank (p
    /// units). Its `Recv`: [`CountsPhase::receive`] units.
    pub plan: Box<dyn Plan>,
    /// What its `Send` holds, where the call says it.
    pub send: Vec<u64>,
    /// Units of `Recv`. If not 0 its contents are given to the call ([`Call::learn`]), else that stays as it is.
    pub receive: u64,
    /// Gatherv and scatterv: which of these is the size of the own block. Where messages are routed through sites,
    /// whoever hands others' blocks on need not stand before them.
    pub own: usize,
}

/// The counts phase of a gatherv, scatterv, alltoallv or alltoallw for process `me`, if it takes part in one. The
/// caller executes it, gives what was received to the call, and goes on with [`plan`]. Messages of the two phases have
/// different slots. All other operations have no counts phase.
///
/// `call.blocks` is [`Blocks::Known`] at the root and [`Blocks::Own`] elsewhere; the phase's structure depends on
/// neither.
pub fn counts_phase(call: &Call, network: &Arc<Network>, me: Rank) -> Option<CountsPhase> {
    (collective(call.operation).counts)(call, in_order(call, network), me)
}

/// In which order a collective may meet the sites.
enum SiteOrder {
    /// In any: messages are put together or cut on their way, and nothing depends on the order.
    Any,
    /// The same, as far as operands may be exchanged.
    IfOperandsMay,
    /// In that of ranks: leaders exchange whole items, whose order costs nothing.
    Ranks,
}

/// What there is of a collective operation: a new one is a row here and a folder.
struct Collective {
    plan: fn(&Call, &Arc<Network>, Rank) -> Box<dyn Plan>,
    /// The ways in which it can be carried out, in declared order.
    candidates: fn(&choose::Question, &Network) -> Vec<strategy::Strategy>,
    messages: fn(&Call, &Arc<Network>) -> Option<Messages>,
    bytes: fn(&Call, &Arc<Network>) -> Option<Bytes>,
    counts: fn(&Call, &Arc<Network>, Rank) -> Option<CountsPhase>,
    order: SiteOrder,
}

const BARRIER: Collective = Collective {
    plan: |call, network, me| barrier::plan(call, network, me),
    candidates: |question, network| barrier::candidates(question, network),
    messages: |call, network| barrier::messages(call, network),
    bytes: |_, _| Some(Bytes::default()),
    counts: |_, _, _| None,
    order: SiteOrder::Ranks,
};

const BCAST: Collective = Collective {
    plan: |call, network, me| bcast::plan(call, network, me),
    candidates: |question, network| bcast::candidates(question, network),
    messages: |call, network| bcast::messages(call, network),
    bytes: |call, network| bcast::bytes(call, network),
    counts: |_, _, _| None,
    order: SiteOrder::Any,
};

const REDUCE: Collective = Collective {
    plan: |call, network, me| reduce::plan(call, network, me),
    candidates: |question, network| reduce::candidates(question, network),
    messages: |call, network| reduce::messages(call, network),
    bytes: |call, network| reduce::bytes(call, network),
    counts: |_, _, _| None,
    order: SiteOrder::IfOperandsMay,
};

const ALLREDUCE: Collective = Collective {
    plan: |call, network, me| allreduce::plan(call, network, me),
    candidates: |question, network| allreduce::candidates(question, network),
    messages: |call, network| allreduce::messages(call, network),
    bytes: |call, network| allreduce::bytes(call, network),
    counts: |_, _, _| None,
    order: SiteOrder::Ranks,
};

const GATHER: Collective = Collective {
    plan: |call, network, me| gather::plan(call, network, me),
    candidates: |question, network| gather::candidates(question, network),
    messages: |call, network| gather::messages(call, network),
    bytes: |call, network| gather::bytes(call, network),
    counts: |_, _, _| None,
    order: SiteOrder::Any,
};

const GATHERV: Collective = Collective {
    bytes: |_, _| None,
    counts: |call, network, me| gather::counts(call, network, me),
    ..GATHER
};

const SCATTER: Collective = Collective {
    plan: |call, network, me| scatter::plan(call, network, me),
    candidates: |question, network| scatter::candidates(question, network),
    messages: |call, network| scatter::messages(call, network),
    bytes: |call, network| scatter::bytes(call, network),
    counts: |_, _, _| None,
    order: SiteOrder::Any,
};

const SCATTERV: Collective = Collective {
    bytes: |_, _| None,
    counts: |call, network, me| scatter::counts(call, network, me),
    ..SCATTER
};

const ALLGATHER: Collective = Collective {
    plan: |call, network, me| allgather::plan(call, network, me),
    candidates: |question, network| allgather::candidates(question, network),
    messages: |call, network| allgather::messages(call, network),
    bytes: |call, network| allgather::bytes(call, network),
    counts: |_, _, _| None,
    order: SiteOrder::Ranks,
};

const ALLTOALL: Collective = Collective {
    plan: |call, network, me| alltoall::plan(call, network, me),
    candidates: |question, network| alltoall::candidates(question, network),
    messages: |call, network| alltoall::messages(call, network),
    bytes: |call, network| alltoall::bytes(call, network),
    counts: |_, _, _| None,
    order: SiteOrder::Any,
};

const ALLTOALLV: Collective = Collective {
    messages: |_, _| None,
    bytes: |_, _| None,
    counts: |call, network, me| match call.blocks {
        Blocks::Known(_) => alltoall::counts(call, network, me),
        _ => None,
    },
    ..ALLTOALL
};

const SCAN: Collective = Collective {
    plan: |call, network, me| scan::plan(call, network, me),
    candidates: |question, network| scan::candidates(question, network),
    messages: |call, network| scan::messages(call, network),
    bytes: |_, _| None,
    counts: |_, _, _| None,
    order: SiteOrder::Ranks,
};

const REDUCE_SCATTER: Collective = Collective {
    plan: |call, network, me| reduce_scatter::plan(call, network, me),
    candidates: |question, network| reduce_scatter::candidates(question, network),
    messages: |call, network| reduce_scatter::messages(call, network),
    bytes: |call, network| reduce_scatter::bytes(call, network),
    counts: |_, _, _| None,
    order: SiteOrder::IfOperandsMay,
};

/// Along the edges of a topology there is one way ([`neighbor_plan`]), and nothing to choose.
const NEIGHBORHOOD: Collective = Collective {
    plan: |_, _, _| unreachable!("neighbourhoods have plans of their own: neighbor_plan"),
    candidates: |_, _| unreachable!("neighbourhoods have no choice"),
    messages: |_, _| None,
    bytes: |_, _| None,
    counts: |_, _, _| None,
    order: SiteOrder::Ranks,
};

const fn collective(operation: Operation) -> &'static Collective {
    use Operation as O;
    match operation {
        O::Barrier => &BARRIER,
        O::Bcast => &BCAST,
        O::Reduce => &REDUCE,
        O::Allreduce => &ALLREDUCE,
        O::Gather => &GATHER,
        O::Gatherv => &GATHERV,
        O::Scatter => &SCATTER,
        O::Scatterv => &SCATTERV,
        O::Allgather | O::Allgatherv => &ALLGATHER,
        O::Alltoall => &ALLTOALL,
        O::Alltoallv | O::Alltoallw => &ALLTOALLV,
        O::Scan | O::Exscan => &SCAN,
        O::ReduceScatterBlock | O::ReduceScatter => &REDUCE_SCATTER,
        O::NeighborAllgather
        | O::NeighborAllgatherv
        | O::NeighborAlltoall
        | O::NeighborAlltoallv
        | O::NeighborAlltoallw => &NEIGHBORHOOD,
    }
}
