// SPDX-License-Identifier: Apache-2.0
//! Scatter and scatterv.

mod counts;
mod tree;

pub(crate) use counts::plan as counts;
pub(crate) use tree::spread;

use crate::choose::{self, Algorithm, Load, Question, Strategy, Trees};
use crate::cost::Way;
use crate::script::Script;
use crate::shares::Sharing;
use crate::step::{Plan, Rank};
use crate::{Blocks, Call, Messages, Network, Operation};
use std::sync::Arc;

pub(crate) fn plan(call: &Call, network: &Arc<Network>, me: Rank) -> Box<dyn Plan> {
    if call.operation == Operation::Scatter && call.blocks == Blocks::Equal(0) {
        return Box::new(Script::default());
    }
    tree::plan(call, network, me)
}

pub(crate) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    if question.bytes.is_none() {
        return vec![choose::unequal(question, network, Way::Down)];
    }
    let trees = Trees {
        question,
        network,
        algorithm: Algorithm::Tree,
        flows: &[(Way::Down, Load::Blocks(question.bytes()))],
        cut: false,
        any_root: true,
        sharing: (Sharing::Whole, 1),
    };
    vec![trees.strategy(&|_| Vec::new())]
}

pub(crate) fn messages(call: &Call, network: &Network) -> Option<Messages> {
    let empty = call.operation == Operation::Scatter && call.blocks == Blocks::Equal(0);
    Some(if empty {
        Messages::default()
    } else {
        tree::messages(network)
    })
}
