// SPDX-License-Identifier: Apache-2.0
//! Scatter and scatterv.

mod counts;
mod tree;

pub(crate) use counts::plan as counts;
pub(crate) use tree::spread;

use crate::choose::{Algorithm, Load, Question, Strategy, Trees};
use crate::cost::{Cost, Way};
use crate::script::Script;
use crate::step::{Plan, Rank};
use crate::{Blocks, Call, Network, Operation};
use std::sync::Arc;

pub(crate) fn plan(call: &Call, network: &Arc<Network>, me: Rank) -> Box<dyn Plan> {
    if call.operation == Operation::Scatter && call.blocks == Blocks::Equal(0) {
        return Box::new(Script::default());
    }
    tree::plan(call, network, me)
}

pub(crate) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    if question.bytes.is_none() {
        // Every tier flat, so that a subtree is a cluster.
        return vec![Strategy::without_trees(Algorithm::Tree, Cost::default())];
    }
    let trees = Trees {
        question,
        network,
        algorithm: Algorithm::Tree,
        flows: &[(Way::Down, Load::Blocks(question.bytes()))],
        cut: false,
        any_root: true,
    };
    vec![trees.strategy(&|_| Vec::new())]
}
