// SPDX-License-Identifier: Apache-2.0
//! Broadcast.

mod tree;

use crate::choose::{Algorithm, Load, Question, Strategy, Trees};
use crate::cost::Way;
use crate::script::Script;
use crate::step::{Plan, Rank};
use crate::{Call, Network};
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
        flows: &[(Way::Down, Load::Piece)],
        cut: true,
        any_root: true,
    };
    vec![trees.strategy(&|_| Vec::new())]
}
