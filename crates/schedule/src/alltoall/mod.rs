// SPDX-License-Identifier: Apache-2.0
//! Alltoall and alltoallv.

mod leaders;
mod pairwise;

use crate::choose::{self, Algorithm, Question, Strategy};
use crate::script::Script;
use crate::step::{Plan, Rank};
use crate::{Blocks, Call, Messages, Network, Operation};
use std::sync::Arc;

pub(crate) fn plan(call: &Call, network: &Arc<Network>, me: Rank) -> Box<dyn Plan> {
    match call.blocks {
        Blocks::Equal(0) => Box::new(Script::default()),
        Blocks::Equal(n) if call.operation == Operation::Alltoall => match choose::strategy(call, network).algorithm {
            Algorithm::Leaders | Algorithm::LeadersRouted => leaders::plan(call, network, me, n),
            _ => pairwise::plan(call, network, me, &call.blocks, &call.blocks),
        },
        _ => pairwise::plan(call, network, me, &call.blocks, &call.receive_blocks),
    }
}

pub(crate) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    let mut all: Vec<Strategy> = leaders::strategies(question, network);
    all.push(pairwise::strategy(question, network));
    all
}

pub(crate) fn messages(call: &Call, network: &Network) -> Option<Messages> {
    match (&call.blocks, choose::strategy(call, network).algorithm) {
        (Blocks::Equal(0), _) => Some(Messages::default()),
        (Blocks::Equal(_), Algorithm::Leaders | Algorithm::LeadersRouted) => Some(leaders::messages(network)),
        (Blocks::Equal(_), Algorithm::Pairwise) => Some(pairwise::messages(network)),
        _ => None,
    }
}
