// SPDX-License-Identifier: Apache-2.0
//! Broadcast.

mod shared;
mod tree;

use crate::choose::{self, Question};
use crate::cost::Flow;
use crate::script::Script;
use crate::step::{Plan, Rank};
use crate::strategy::{Algorithm, Dealing, Strategy};
use crate::trees::{Load, Trees};
use crate::{Bytes, Call, Messages, Network};
use std::sync::Arc;

pub(crate) fn plan(call: &Call, network: &Arc<Network>, me: Rank) -> Box<dyn Plan> {
    match call.blocks.size(0) {
        0 => Box::new(Script::default()),
        units => tree::plan(call, network, me, units),
    }
}

pub(crate) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    let trees = Trees {
        question,
        network,
        algorithm: Algorithm::Tree,
        flows: &[(Flow::Down, Load::Piece)],
        cut: true,
        any_root: true,
        dealing: Dealing::WHOLE,
    };
    let mut all = vec![trees.strategy(&|_| Vec::new())];
    all.extend(shared::candidates(&trees));
    all
}

pub(crate) fn messages(call: &Call, network: &Network) -> Option<Messages> {
    let strategy = choose::strategy(call, network);
    match (call.blocks.size(0), strategy.algorithm) {
        (0, _) => Some(Messages::default()),
        (_, Algorithm::Tree | Algorithm::Shared) => Some(tree::messages(call, network, &strategy)),
        _ => None,
    }
}

/// Whole messages in all, in however many pieces.
pub(crate) fn bytes(call: &Call, network: &Network) -> Option<Bytes> {
    let each = call.bytes(call.blocks.size(0));
    let strategy = choose::strategy(call, network);
    Some(Bytes::of(
        strategy.crossing(network, Messages::of_trees(network, 0)),
        each,
    ))
}
