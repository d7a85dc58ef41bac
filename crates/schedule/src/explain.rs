// SPDX-License-Identifier: Apache-2.0
//! What is chosen for a call, for people: all candidates with what they are expected to cost. The choices are asked
//! from where plans get them.

use crate::amount::{Cost, Factor};
use crate::choose::{self, Question};
use crate::strategy::{Algorithm, Sharing, Strategy};
use crate::{Call, Network, Operation, Steps, form, in_order, node, together, tree};
use isthmus_topology::{Level, Shape};
use std::sync::Arc;

/// What is chosen for one tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Level of the tier.
    pub level: Level,
    /// Groups of leaders that talk at this tier.
    pub councils: u32,
    /// Members of the largest of them.
    pub members: u32,
    /// What they do.
    pub algorithm: String,
}

/// One way to carry out a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The algorithm.
    pub algorithm: &'static str,
    /// Processes that carry shares for each part of the outermost tier.
    pub leaders: u32,
    /// Per tier, slowest level first; empty for algorithms without trees.
    pub tiers: Vec<Choice>,
    /// Pieces that the message is handed on in, and bytes of one; of unequal blocks those of the largest.
    pub pieces: (u64, u64),
    /// What makes up the cost.
    pub factors: Vec<Factor>,
    /// Nanoseconds in all.
    pub total: u64,
    /// Nanoseconds more over connections of the wide area that are new or have been idle.
    pub opening: u64,
    /// Whether processes in jobs of vendor MPIs take steps with these.
    pub natively: bool,
    /// Whether it is the one that is taken.
    pub chosen: bool,
}

/// The candidates of a call in declared order, those in which jobs of vendor MPIs take steps with these last.
/// Empty for calls without a choice: without data, and of neighbourhoods.
pub fn explain(call: &Call, network: &Arc<Network>) -> Vec<Candidate> {
    if call.operation.is_neighborhood() {
        return Vec::new();
    }
    let met = together::cost(call, network).map(|cost| in_memory(&cost, call.bytes(call.blocks.largest())));
    let jobs = network
        .with_whole_jobs()
        .filter(|jobs| call.nodes && node::considers_jobs(call, jobs).is_some());
    let with_jobs = jobs.is_some() && node::steps_together(call, network, true) == Steps::Jobs;
    let whole = (network, met.is_none() && !with_jobs, false);
    let among = std::iter::once(whole).chain(jobs.map(|jobs| (jobs, with_jobs, true)));
    let messages = among.flat_map(|(network, taken, natively)| {
        let network = in_order(call, network);
        let question = Question::of(call, network);
        let candidates = choose::candidates(&question, network);
        let chosen = choose::cheapest(&candidates);
        let all = candidates.iter().enumerate();
        let all = all.filter(|(_, strategy)| !natively || strategy.meets_on_nodes());
        let describe = |(i, strategy)| candidate(strategy, call, network, natively, taken && chosen == i);
        all.map(describe).collect::<Vec<_>>()
    });
    let messages: Vec<Candidate> = messages.collect();
    met.into_iter().chain(messages).collect()
}

/// Processes that share memory meet there, whatever messages would cost, unless an override names an algorithm.
fn in_memory(cost: &Cost, block: u64) -> Candidate {
    Candidate {
        algorithm: form::TOGETHER,
        leaders: 1,
        tiers: Vec::new(),
        pieces: (1, block),
        factors: cost.factors().to_vec(),
        total: cost.total(),
        opening: 0,
        natively: false,
        chosen: true,
    }
}

fn candidate(strategy: &Strategy, call: &Call, network: &Network, natively: bool, chosen: bool) -> Candidate {
    let units = call.blocks.largest();
    // Where each block has trees of its own, each is cut by itself.
    let of_blocks = matches!(
        call.operation,
        Operation::Allgather | Operation::Allgatherv | Operation::ReduceScatterBlock | Operation::ReduceScatter
    );
    let cut = match of_blocks && strategy.algorithm == Algorithm::Shared {
        true => strategy.cut_of_blocks(call, units),
        false => strategy.cut_in_shares(call, network, units, !call.commutative),
    };
    let tiers = 0..strategy.forms.len();
    Candidate {
        algorithm: strategy.algorithm.name(),
        leaders: strategy.leaders,
        tiers: tiers.map(|tier| choice(strategy, network, tier)).collect(),
        pieces: (cut.pieces(), call.bytes(cut.piece.min(units))),
        factors: strategy.cost.factors().to_vec(),
        total: strategy.cost.total(),
        opening: strategy.opening,
        natively,
        chosen,
    }
}

fn choice(strategy: &Strategy, network: &Network, tier: usize) -> Choice {
    let (councils, members) = sizes(network, tier);
    Choice {
        level: network.level(tier),
        councils,
        members,
        algorithm: match (tier < strategy.first_tier(), tier, strategy.sharing) {
            (true, ..) => format!("{} meeting of the leaders", strategy.algorithm.name()),
            (_, 0, Sharing::Dealt) => format!(
                "{} tree, {} shares through leaders of their own",
                strategy.forms[tier].name(),
                strategy.shares
            ),
            (_, 0, Sharing::Relayed) => format!("{} shares through each other", strategy.shares),
            (_, 0, Sharing::Tops) => format!("{} shares, each with a top of its own", strategy.shares),
            _ if tree::is_last(&strategy.forms, tier) => form::TOGETHER.to_owned(),
            _ => format!("{} tree", strategy.forms[tier].name()),
        },
    }
}

/// Groups of more than one member at a tier, and members of the largest.
fn sizes(shape: &Shape, tier: usize) -> (u32, u32) {
    let sizes = (0..shape.clusters(tier)).map(|c| shape.parts(tier, c).len() as u32);
    sizes
        .filter(|&members| members > 1)
        .fold((0, 0), |(count, most), members| (count + 1, most.max(members)))
}
