// SPDX-License-Identifier: Apache-2.0
//! Allgather and allgatherv.

mod bruck;
mod ring;
mod shared;
mod tree;

pub(crate) use tree::{ask, bring, messages_of};

use crate::choose::{self, Question};
use crate::cost::Flow;
use crate::meeting;
use crate::script::Script;
use crate::step::{Plan, Rank};
use crate::strategy::{Algorithm, Dealing, Strategy};
use crate::trees::{Load, Trees};
use crate::{Bytes, Call, Messages, Network};
use std::sync::Arc;

pub(crate) fn plan(call: &Call, network: &Arc<Network>, me: Rank) -> Box<dyn Plan> {
    if call.blocks.offset(network.size()) == 0 {
        return Box::new(Script::default());
    }
    let strategy = choose::strategy(call, network);
    match strategy.algorithm {
        Algorithm::Shared => shared::plan(call, network, me, &strategy),
        _ => tree::plan(call, network, me, &strategy),
    }
}

pub(crate) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    let block = question.bytes() / u64::from(network.size());
    let flows = [(Flow::Up, Load::Blocks(block)), (Flow::Down, Load::Piece)];
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
    let long = ring::is_worth_while(question.bytes());
    use Algorithm as A;
    meeting::possible(network, &[A::Flat, A::Routed, A::Tree, A::Bruck, A::Ring])
        .into_iter()
        .filter(|&algorithm| algorithm != if long { A::Bruck } else { A::Ring })
        .map(|algorithm| trees(algorithm).strategy(&|bytes| meeting::cost(network, algorithm, share(bytes), false)))
        // Trees of blocks have messages in nodes too.
        .chain(shared::candidates(
            &Question {
                nodes: false,
                ..*question
            },
            network,
        ))
        .collect()
}

pub(crate) fn messages(call: &Call, network: &Network) -> Option<Messages> {
    let strategy = choose::strategy(call, network);
    match (call.blocks.offset(network.size()), strategy.algorithm) {
        (0, _) => Some(Messages::default()),
        (units, Algorithm::Tree | Algorithm::Flat | Algorithm::Routed | Algorithm::Ring | Algorithm::Bruck) => {
            Some(messages_of(&strategy, network, call.bytes(units)))
        }
        _ => None,
    }
}

pub(crate) fn bytes(call: &Call, network: &Network) -> Option<Bytes> {
    let strategy = choose::strategy(call, network);
    let meets = matches!(
        strategy.algorithm,
        Algorithm::Flat | Algorithm::Routed | Algorithm::Ring | Algorithm::Bruck
    );
    (meets && strategy.is_flat(1)).then(|| strategy.crossing(network, tree::bytes(call, network)))
}
