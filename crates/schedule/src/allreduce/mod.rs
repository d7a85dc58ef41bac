// SPDX-License-Identifier: Apache-2.0
//! Allreduce.

mod doubling;
mod fixed;
mod flat;
mod halving;
mod shared;
mod split;
mod tree;
mod whole;

pub(crate) use fixed::exchange;

use crate::choose::{self, Order, Question};
use crate::cost::{Flow, Phase};
use crate::meeting;
use crate::script::Script;
use crate::step::{Plan, Rank};
use crate::strategy::{Algorithm, Dealing, Strategy};
use crate::trees::{Load, Trees};
use crate::{Bytes, Call, Messages, Network};
use std::sync::Arc;

pub(crate) fn plan(call: &Call, network: &Arc<Network>, me: Rank) -> Box<dyn Plan> {
    let units = call.blocks.size(0);
    if units == 0 {
        return Box::new(Script::default());
    }
    if call.fixed {
        return fixed::plan(call, network, me, units);
    }
    let strategy = choose::strategy(call, network);
    match strategy.algorithm {
        Algorithm::Whole => whole::plan(call, network, me, units),
        _ if call.commutative || network.in_rank_order() => tree::plan(call, network, me, units, &strategy),
        _ => plan(call, network.by_rank(), me),
    }
}

pub(crate) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    use Algorithm as A;
    if let Some(whole) = choose::whole(question, network) {
        return vec![whole];
    }
    let meetings: &[A] = match question.order {
        Order::Fixed => &[A::FixedFlat, A::FixedRouted, A::Fixed],
        Order::Ranks => &[A::Tree],
        Order::Any => &[A::Flat, A::Routed, A::Tree, A::Doubling, A::Split, A::Halving],
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
    let mut all: Vec<Strategy> = meeting::possible(network, meetings)
        .into_iter()
        .map(|algorithm| trees(algorithm).strategy(&|bytes| meet(network, algorithm, bytes)))
        .collect();
    if question.order == Order::Any {
        all.extend(shared::candidates(&trees(A::Shared)));
    }
    all
}

/// What the leaders' meeting costs for a message of so many bytes.
fn meet(network: &Network, algorithm: Algorithm, bytes: u64) -> Vec<Phase> {
    match algorithm {
        Algorithm::Halving => meeting::there_and_back(network, bytes),
        _ => meeting::cost(network, algorithm, bytes, true),
    }
}

pub(crate) fn messages(call: &Call, network: &Network) -> Option<Messages> {
    use Algorithm as A;
    let strategy = choose::strategy(call, network);
    let in_order = call.commutative || network.in_rank_order();
    match strategy.algorithm {
        _ if call.blocks.size(0) == 0 => Some(Messages::default()),
        A::Whole => Some(whole::messages(call, network)),
        A::Fixed | A::FixedFlat | A::FixedRouted => Some(tree::messages(call, network, &strategy)),
        A::Tree | A::Flat | A::Routed | A::Doubling | A::Split | A::Halving | A::Shared if in_order => {
            Some(tree::messages(call, network, &strategy))
        }
        _ => None,
    }
}

/// Whole messages in all, in however many pieces; shares in the meeting of those who split them.
pub(crate) fn bytes(call: &Call, network: &Network) -> Option<Bytes> {
    use Algorithm as A;
    let strategy = choose::strategy(call, network);
    let each = call.bytes(call.blocks.size(0));
    match strategy.algorithm {
        A::Tree | A::Flat | A::Routed | A::Doubling | A::Shared if call.commutative || network.in_rank_order() => {
            Some(Bytes::of(tree::once(network, &strategy), each))
        }
        A::Split | A::Halving if call.commutative || network.in_rank_order() => {
            let others = 2 * (u64::from(network.clusters(1)) - 1);
            let inside = Bytes::of(
                strategy.crossing(network, Messages::of_trees(network, 1)).times(2),
                each,
            );
            Some(inside.and(network.level(0), others.saturating_mul(each)))
        }
        _ => None,
    }
}
