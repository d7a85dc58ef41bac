// SPDX-License-Identifier: Apache-2.0
//! Scatter and scatterv.

mod counts;
mod tree;

pub(crate) use counts::plan as counts;
pub(crate) use tree::spread;

use crate::choose::Question;
use crate::cost::Way;
use crate::rooted;
pub(crate) use crate::rooted::{bytes, messages};
use crate::script::Script;
use crate::step::{Plan, Rank};
use crate::strategy::Strategy;
use crate::{Blocks, Call, Network, Operation};
use std::sync::Arc;

pub(crate) fn plan(call: &Call, network: &Arc<Network>, me: Rank) -> Box<dyn Plan> {
    if call.operation == Operation::Scatter && call.blocks == Blocks::Equal(0) {
        return Box::new(Script::default());
    }
    tree::plan(call, network, me)
}

pub(crate) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    vec![rooted::blocks(question, network, Way::Down)]
}
