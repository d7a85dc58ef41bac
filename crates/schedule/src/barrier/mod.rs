// SPDX-License-Identifier: Apache-2.0
//! Barrier.

mod dissemination;
mod tree;

use crate::choose::{self, Order, Question};
use crate::cost::Flow;
use crate::meeting;
use crate::script::Script;
use crate::step::{Plan, Rank};
use crate::strategy::{Algorithm, Dealing, Strategy};
use crate::trees::{Load, Trees};
use crate::{Call, Messages, Network, Operation};
use std::sync::Arc;

pub(crate) fn plan(call: &Call, network: &Arc<Network>, me: Rank) -> Box<dyn Plan> {
    let mut script = Script::default();
    tree::write(&mut script, network, me, &strategy(call, network));
    Box::new(script)
}

fn strategy(call: &Call, network: &Network) -> Arc<Strategy> {
    let question = Question::new(Operation::Barrier, Order::Any, Some(0));
    let nodes = call.nodes && network.takes_steps(Operation::Barrier);
    choose::answer(&Question { nodes, ..question }, network)
}

pub(crate) fn messages(call: &Call, network: &Network) -> Option<Messages> {
    Some(tree::messages(network, &strategy(call, network)))
}

pub(crate) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    let meetings = meeting::possible(
        network,
        &[Algorithm::Flat, Algorithm::Routed, Algorithm::Tree, Algorithm::Doubling],
    );
    let trees = |algorithm| Trees {
        question,
        network,
        algorithm,
        flows: &[(Flow::Up, Load::Piece), (Flow::Down, Load::Piece)],
        cut: false,
        any_root: false,
        dealing: Dealing::WHOLE,
    };
    meetings
        .into_iter()
        .map(|algorithm| trees(algorithm).strategy(&|bytes| meeting::cost(network, algorithm, bytes, false)))
        .collect()
}
