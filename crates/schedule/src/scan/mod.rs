// SPDX-License-Identifier: Apache-2.0
//! Scan (inclusive) and exscan (exclusive).

mod fixed;
mod tree;
mod whole;

use crate::choose::{self, Order, Question, WHOLE};
use crate::cost::Flow;
use crate::meeting;
use crate::script::Script;
use crate::step::{Plan, Rank};
use crate::strategy::{Algorithm, Dealing, Strategy};
use crate::trees::{Load, Trees};
use crate::{Call, Messages, Network};
use std::sync::Arc;

pub(crate) fn plan(call: &Call, network: &Arc<Network>, me: Rank) -> Box<dyn Plan> {
    let units = call.blocks.size(0);
    if units == 0 {
        return Box::new(Script::default());
    }
    if call.fixed {
        return fixed::plan(call, network, me, units);
    }
    if is_whole(call, network, units) {
        return whole::plan(call, network, me, units);
    }
    if !network.in_rank_order() {
        return plan(call, network.by_rank(), me);
    }
    tree::plan(call, network, me, units, &choose::strategy(call, network))
}

pub(crate) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    use Algorithm as A;
    let meetings: &[A] = match question.order {
        Order::Fixed => &[A::FixedFlat, A::FixedRouted, A::Fixed],
        Order::Any | Order::Ranks => &[A::Flat, A::Routed, A::Tree],
    };
    let trees = |algorithm| Trees {
        question,
        network,
        algorithm,
        flows: &[(Flow::Combine, Load::Piece), (Flow::Down, Load::Piece)],
        cut: true,
        any_root: false,
        dealing: Dealing::WHOLE,
    };
    meeting::possible(network, meetings)
        .into_iter()
        .map(|algorithm| trees(algorithm).strategy(&|bytes| meeting::cost(network, algorithm, bytes, true)))
        .collect()
}

pub(crate) fn messages(call: &Call, network: &Arc<Network>) -> Option<Messages> {
    let (units, strategy) = (call.blocks.size(0), choose::strategy(call, network));
    match strategy.algorithm {
        _ if units == 0 => Some(Messages::default()),
        // Those to whom nothing is missing are told nothing.
        _ if call.fixed => None,
        _ if is_whole(call, network, units) => Some(whole::messages(call, network)),
        Algorithm::Tree | Algorithm::Flat | Algorithm::Routed if network.in_rank_order() => {
            Some(tree::messages(call, network, &strategy))
        }
        _ => None,
    }
}

/// Whether ranks are not in the order of positions, and data are short enough to be brought together whole.
fn is_whole(call: &Call, network: &Network, units: u64) -> bool {
    !network.in_rank_order() && call.bytes(units).saturating_mul(u64::from(network.size())) <= WHOLE
}
