// SPDX-License-Identifier: Apache-2.0
//! Gather and gatherv.

mod counts;
mod direct;
mod shared;
mod tree;

pub(crate) use counts::plan as counts;
pub(crate) use tree::{bring, brought};

use crate::choose::{self, Question};
use crate::cost::Flow;
use crate::rooted;
pub(crate) use crate::rooted::{bytes, messages};
use crate::script::Script;
use crate::step::{Plan, Rank};
use crate::strategy::{Algorithm, Strategy};
use crate::{Blocks, Call, Network, Operation};
use std::sync::Arc;

pub(crate) fn plan(call: &Call, network: &Arc<Network>, me: Rank) -> Box<dyn Plan> {
    if call.operation == Operation::Gather && call.blocks == Blocks::Equal(0) {
        return Box::new(Script::default());
    }
    let strategy = choose::strategy(call, network);
    match strategy.algorithm {
        Algorithm::Shared => shared::plan(call, network, me, &strategy),
        _ => tree::plan(call, network, me),
    }
}

pub(crate) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    rooted::candidates(question, network, Flow::Up, (direct::candidates, shared::candidates))
}
