// SPDX-License-Identifier: Apache-2.0
//! Barrier.

mod dissemination;
mod tree;

use crate::choose::{self, Algorithm, Load, Order, Question, Strategy, Trees};
use crate::cost::Way;
use crate::script::Script;
use crate::step::{Plan, Rank};
use crate::{Network, Operation};
use std::sync::Arc;

pub(crate) fn plan(network: &Arc<Network>, me: Rank) -> Box<dyn Plan> {
    let question = Question::new(Operation::Barrier, Order::Any, Some(0));
    let mut script = Script::default();
    tree::write(&mut script, network, me, &choose::answer(&question, network));
    Box::new(script)
}

pub(crate) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    let meetings = choose::meetings(
        network,
        &[Algorithm::Flat, Algorithm::Routed, Algorithm::Tree, Algorithm::Doubling],
    );
    let trees = |algorithm| Trees {
        question,
        network,
        algorithm,
        flows: &[(Way::Up, Load::Piece), (Way::Down, Load::Piece)],
        cut: false,
        any_root: false,
    };
    meetings
        .into_iter()
        .map(|algorithm| trees(algorithm).strategy(&|bytes| choose::meeting(network, algorithm, bytes, false)))
        .collect()
}
