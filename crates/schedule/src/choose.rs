// SPDX-License-Identifier: Apache-2.0
//! The choice between algorithms: the candidates of an operation are costed over the links in force, and the cheapest
//! is taken, the first in declared order where several are.
//!
//! All members must choose alike without asking each other, so a choice is made from a [`Question`] that is the same on
//! all of them, once per communicator, and kept.

use crate::amount::Cost;
use crate::strategy::{Algorithm, Strategy};
use crate::{Blocks, Call, Network, Operation};
use std::sync::Arc;

/// In which order operands may be combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// In that of positions, which is good enough: operators are commutative, or positions are ranks.
    Any,
    /// In that of ranks, which is not that of positions.
    Ranks,
    /// The fixed one.
    Fixed,
}

/// What a choice is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) operation: Operation,
    pub(crate) order: Order,
    /// Bytes that decide, representing all of their class: of the message; of one block (gather, scatter, alltoall); of
    /// all blocks (allgather, reduce_scatter). `None`: not known to all.
    pub(crate) bytes: Option<u64>,
    /// Whether the members of each node may take steps together.
    pub(crate) nodes: bool,
}

impl Question {
    /// What is asked by a call.
    pub(crate) fn of(call: &Call, network: &Network) -> Self {
        let order = match () {
            () if call.fixed => Order::Fixed,
            () if call.commutative || network.in_rank_order() => Order::Any,
            () => Order::Ranks,
        };
        let units = match (&call.blocks, call.operation) {
            (_, Operation::Barrier) => Some(0),
            (_, Operation::Gatherv | Operation::Scatterv | Operation::Alltoallv | Operation::Alltoallw) => None,
            (Blocks::Equal(n), O::Allgather | O::Allgatherv | O::ReduceScatterBlock | O::ReduceScatter) => {
                Some(n.saturating_mul(u64::from(network.size())))
            }
            (Blocks::Equal(n), _) => Some(*n),
            (Blocks::Known(sums), _) => sums.last().copied(),
            (Blocks::Own(_) | Blocks::Subtree(_), _) => None,
        };
        Self {
            nodes: call.nodes && order == Order::Any && network.takes_steps(call.operation),
            ..Self::new(call.operation, order, units.map(|units| call.bytes(units)))
        }
    }

    pub(crate) fn new(operation: Operation, order: Order, bytes: Option<u64>) -> Self {
        Self {
            operation,
            order,
            bytes: bytes.map(|bytes| representative(class(bytes))),
            nodes: false,
        }
    }

    /// Bytes; a short message where they are not known.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.unwrap_or(1 << 10)
    }
}

use Operation as O;

/// Classes of sizes: two for each power of two.
const CLASSES: usize = 2 * 64 + 2;

fn class(bytes: u64) -> usize {
    match bytes {
        0 => 0,
        _ => {
            let power = bytes.ilog2() as usize;
            let half = power > 0 && bytes >> (power - 1) & 1 == 1;
            1 + 2 * power + usize::from(half)
        }
    }
}

/// The smallest size of a class.
fn representative(class: usize) -> u64 {
    match class {
        0 => 0,
        _ => {
            let power = (class - 1) / 2;
            (1 << power) + if (class - 1) % 2 == 1 { 1 << power >> 1 } else { 0 }
        }
    }
}

/// The way a call is carried out.
pub(crate) fn strategy(call: &Call, network: &Network) -> Arc<Strategy> {
    answer(&Question::of(call, network), network)
}

/// The answer to a question; kept.
pub(crate) fn answer(question: &Question, network: &Network) -> Arc<Strategy> {
    let row = (question.operation as usize * 3 + question.order as usize) * 2 + usize::from(question.nodes);
    let place = question.bytes.map_or(CLASSES, class);
    network
        .choices()
        .made(row, place, CLASSES + 1, || best(question, network))
}

fn best(question: &Question, network: &Network) -> Strategy {
    let mut candidates = candidates(question, network);
    candidates.swap_remove(cheapest(&candidates))
}

/// A candidate may cost this part more than the cheapest.
pub const MARGIN: u64 = 16;

/// The first candidate that costs hardly more than the cheapest: no measurement of links is better than that, and those
/// that load slow links least are declared first. It is one that does not have to wait for windows to open, if there is
/// one. (Where all have to, few connections are better: they carry more, so they open sooner, and remain so.)
pub(crate) fn cheapest(candidates: &[Strategy]) -> usize {
    let least = candidates.iter().map(|s| s.cost.total()).min().unwrap_or(0);
    let good_enough = |s: &Strategy| s.cost.total() <= least.saturating_add(least / MARGIN);
    let at_once = candidates.iter().position(|s| good_enough(s) && s.opening == 0);
    at_once.or_else(|| candidates.iter().position(good_enough)).unwrap_or(0)
}

/// All ways that are possible, or those that the user asked for if there are any, in declared order. At least one.
pub(crate) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    let mut all = (crate::collective(question.operation).candidates)(question, network);
    let said = network.overrides().about(question.operation, None, question.bytes());
    if let Some(name) = &said.name {
        if all.iter().any(|s| s.algorithm.name() == name) {
            all.retain(|s| s.algorithm.name() == name);
        }
    }
    for strategy in &mut all {
        strategy.segment = said.segment.unwrap_or(strategy.segment);
        strategy.lanes = said.lanes.unwrap_or(strategy.lanes);
    }
    all
}

/// Bytes of all processes' contributions up to which they are brought together whole where they cannot be combined on
/// the way.
pub(crate) const WHOLE: u64 = 64 << 10;

/// The way of reductions in the order of ranks over other clusters, if they are small.
pub(crate) fn whole(question: &Question, network: &Network) -> Option<Strategy> {
    let all = question.bytes().saturating_mul(u64::from(network.size()));
    (question.order == Order::Ranks && all <= WHOLE).then(|| Strategy::without_trees(Algorithm::Whole, Cost::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_their_smallest_sizes_and_rise() {
        for bytes in [0, 1, 2, 3, 4, 5, 6, 7, 8, 1000, 4096, 6144, 1 << 40, u64::MAX] {
            let class = class(bytes);
            let low = representative(class);
            assert!(low <= bytes && bytes - low <= low / 2, "{bytes} in class of {low}");
            assert_eq!(super::class(low), class);
        }
        assert!((0..10_000).map(class).is_sorted());
        assert!(class(u64::MAX) < CLASSES);
    }
}
