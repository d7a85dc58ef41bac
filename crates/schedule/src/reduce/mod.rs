// SPDX-License-Identifier: Apache-2.0
//! Reduce to a root.

pub(crate) mod fixed;
mod shared;
mod tree;
pub(crate) mod whole;

use crate::choose::{self, Order, Question};
use crate::cost::Flow;
use crate::script::Script;
use crate::step::{Plan, Rank};
use crate::strategy::{Algorithm, Dealing, Strategy};
use crate::trees::{Load, Trees};
use crate::{Bytes, Call, Messages, Network, gather};
use std::sync::Arc;

pub(crate) fn plan(call: &Call, network: &Arc<Network>, me: Rank) -> Box<dyn Plan> {
    let units = call.blocks.size(0);
    if units == 0 {
        return Box::new(Script::default());
    }
    if call.fixed {
        return fixed::plan(call, network, me, units);
    }
    match choose::strategy(call, network).algorithm {
        Algorithm::Whole => whole::plan(call, network, me, units),
        _ if call.commutative || network.in_rank_order() => tree::plan(call, network, me, units),
        _ => tree::plan(call, network.by_rank(), me, units),
    }
}

pub(crate) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    if let Some(whole) = choose::whole(question, network) {
        return vec![whole];
    }
    let trees = Trees {
        question,
        network,
        algorithm: match question.order {
            Order::Fixed => Algorithm::Fixed,
            Order::Any | Order::Ranks => Algorithm::Tree,
        },
        flows: &[(Flow::Combine, Load::Piece)],
        cut: true,
        any_root: question.order != Order::Ranks,
        dealing: Dealing::WHOLE,
    };
    let mut all = vec![trees.strategy(&|_| Vec::new())];
    all.extend(shared::candidates(&trees));
    all
}

pub(crate) fn messages(call: &Call, network: &Network) -> Option<Messages> {
    let strategy = choose::strategy(call, network);
    match strategy.algorithm {
        _ if call.blocks.size(0) == 0 => Some(Messages::default()),
        Algorithm::Whole => Some(gather::brought(call, network, call.bytes(call.blocks.size(0)))),
        Algorithm::Fixed => Some(tree::messages(call, network, &strategy)),
        Algorithm::Tree | Algorithm::Shared if call.commutative || network.in_rank_order() => {
            Some(tree::messages(call, network, &strategy))
        }
        _ => None,
    }
}

/// Whole messages in all, in however many pieces.
pub(crate) fn bytes(call: &Call, network: &Network) -> Option<Bytes> {
    let each = call.bytes(call.blocks.size(0));
    let strategy = choose::strategy(call, network);
    match strategy.algorithm {
        Algorithm::Tree | Algorithm::Shared if call.commutative || network.in_rank_order() => Some(Bytes::of(
            strategy.crossing(network, Messages::of_trees(network, 0)),
            each,
        )),
        _ => None,
    }
}
