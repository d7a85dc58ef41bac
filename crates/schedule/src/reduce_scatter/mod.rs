// SPDX-License-Identifier: Apache-2.0
//! Reduce_scatter_block and reduce_scatter.

mod fixed;
mod halving;
mod shared;
mod tree;

use crate::choose::{self, Order, Question};
use crate::cost::Flow;
use crate::meeting;
use crate::script::Script;
use crate::step::{Plan, Rank};
use crate::strategy::{Algorithm, Dealing, Strategy};
use crate::trees::{Load, Trees};
use crate::{Bytes, Call, Messages, Network};
use std::sync::Arc;

pub(crate) fn plan(call: &Call, network: &Arc<Network>, me: Rank) -> Box<dyn Plan> {
    let units = call.blocks.offset(network.size());
    if units == 0 {
        return Box::new(Script::default());
    }
    if call.fixed {
        return fixed::plan(call, network, me, units);
    }
    if !call.commutative && !network.in_rank_order() {
        return plan(call, network.by_rank(), me);
    }
    let strategy = choose::strategy(call, network);
    match strategy.algorithm {
        Algorithm::Shared => shared::plan(call, network, me, &strategy),
        _ => tree::plan(call, network, me, &strategy),
    }
}

pub(crate) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    if question.order == Order::Fixed {
        return fixed::candidates(question, network);
    }
    let block = question.bytes() / u64::from(network.size());
    let flows = [(Flow::Combine, Load::Piece), (Flow::Down, Load::Blocks(block))];
    let trees = |algorithm| Trees {
        question,
        network,
        algorithm,
        flows: &flows,
        cut: false,
        any_root: false,
        dealing: Dealing::WHOLE,
    };
    let share = |bytes: u64| bytes / u64::from(network.clusters(1).max(1));
    let meeting = |algorithm, bytes: u64| match algorithm {
        Algorithm::Routed => meeting::by_routes(network, share(bytes), true),
        _ => meeting::cost(network, algorithm, share(bytes), true),
    };
    let meetings = [Algorithm::Flat, Algorithm::Routed, Algorithm::Tree, Algorithm::Halving];
    meeting::possible(network, &meetings)
        .into_iter()
        .map(|algorithm| trees(algorithm).strategy(&|bytes| meeting(algorithm, bytes)))
        .chain(shared::candidates(question, network))
        .collect()
}

pub(crate) fn messages(call: &Call, network: &Arc<Network>) -> Option<Messages> {
    use Algorithm as A;
    let units = call.blocks.offset(network.size());
    let strategy = choose::strategy(call, network);
    match strategy.algorithm {
        _ if units == 0 => Some(Messages::default()),
        _ if call.fixed => fixed::messages(call, network, units),
        _ if !(call.commutative || network.in_rank_order()) => None,
        A::Tree | A::Flat | A::Routed | A::Halving => Some(tree::messages(network, &strategy)),
        A::Shared => Some(shared::messages(call, network, &strategy)),
        _ => None,
    }
}

pub(crate) fn bytes(call: &Call, network: &Network) -> Option<Bytes> {
    let strategy = choose::strategy(call, network);
    let free = !call.fixed && (call.commutative || network.in_rank_order());
    match strategy.algorithm {
        _ if !free => None,
        Algorithm::Tree if strategy.is_flat(0) => Some(tree::bytes(call, network, 0)),
        Algorithm::Flat if strategy.is_flat(1) => Some(tree::bytes(call, network, 1)),
        Algorithm::Halving if strategy.is_flat(1) => {
            let back = call.bytes(halving::units_back(call, network));
            Some(tree::bytes(call, network, 1).and(network.level(0), back))
        }
        Algorithm::Shared => Some(shared::bytes(call, network)),
        _ => None,
    }
}
